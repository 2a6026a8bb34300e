//! Data sets and tables: what goes into a model and what comes out of it, as plain rows of `f32`.
//!
//! A [`Table`] is read and written by `files`; its columns are mapped to what networks see by `columns`. `shapes` simulates the
//! families of the paper, `lotka_volterra` its competing species over time, `uci` reads its tabular data sets. Nothing here knows a device or a model.

pub(crate) mod columns;
pub(crate) mod files;
mod lost;
pub(crate) mod lotka_volterra;
pub(crate) mod packing;
mod select;
pub(crate) mod shapes;
pub(crate) mod table;
pub(crate) mod uci;

pub use columns::units::Choice as ColumnTransform;
pub use table::Table;

pub(crate) use columns::units::Units;
#[cfg(feature = "cli")]
pub(crate) use files::npy::read_npy_numbers;
pub(crate) use files::npy::write_npy;
pub(crate) use files::{check_table_output, write_groups, write_table, write_vector};
pub(crate) use shapes::Shapes;
pub(crate) use table::side_by_side;

#[cfg(test)]
pub(crate) use {
    columns::standardize::Standardizer,
    columns::units::{Bounds, ColumnSetting},
    files::text::write_csv,
};

/// First row of a simulated test set. Training rows count from 0, so the two never share a row of one seed.
pub(crate) const TEST_FIRST_ROW: u64 = 1 << 40;

/// First row of a pool of draws for [`crate::eval::abc`], which shares no row with the training and test sets of a
/// seed.
pub(crate) const POOL_FIRST_ROW: u64 = 1 << 41;

//! Data sets and tables: what goes into a model and what comes out of it, as plain rows of `f32`.
//!
//! Files are read and written by `table` (formats in `npy` and `csv`), columns are mapped to what networks see by `units`,
//! which `standardize` is a part of. `shapes` simulates the families of the paper, `lens` and `cross`, as `fourier`
//! coefficients; `natural` is the shape with which it introduces them. `uci` reads its tabular data sets. Nothing here knows
//! a device or a model.

pub(crate) mod cross;
pub(crate) mod csv;
pub(crate) mod dependence;
pub(crate) mod fourier;
mod least_squares;
pub(crate) mod lens;
#[cfg(feature = "cli")]
pub(crate) mod natural;
pub(crate) mod npy;
pub(crate) mod plane;
mod precision;
pub(crate) mod quantile;
mod select;
pub(crate) mod shapes;
pub(crate) mod standardize;
pub(crate) mod table;
mod text_head;
pub(crate) mod uci;
pub(crate) mod units;

pub use table::Table;
pub use units::Choice as ColumnTransform;

pub(crate) use npy::write_npy;
pub(crate) use shapes::Shapes;
pub(crate) use table::{check_table_output, side_by_side, write_groups, write_table, write_vector};
pub(crate) use units::Units;

#[cfg(test)]
pub(crate) use {
    csv::write_csv,
    standardize::Standardizer,
    units::{Bounds, ColumnSetting},
};

/// First row of a simulated test set. Training rows count from 0, so the two never share a row of one seed.
pub(crate) const TEST_FIRST_ROW: u64 = 1 << 40;

/// First row of a pool of draws for [`crate::eval::abc`], which shares no row with the training and test sets of a
/// seed.
pub(crate) const POOL_FIRST_ROW: u64 = 1 << 41;

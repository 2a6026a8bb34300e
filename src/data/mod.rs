//! Data sets and tables: what goes into a model and what comes out of it, as plain rows of `f32`.
//!
//! Files are read and written by [`table`] (formats in [`npy`] and [`csv`]), every file of the crate is put in place by
//! `atomic`, columns are mapped to what networks see by [`units`], which [`standardize`] is a part of. [`shapes`]
//! simulates the families of the paper, [`lens`] and [`cross`], as [`fourier`] coefficients; [`natural`]
//! is the shape with which it introduces them. [`uci`] reads its tabular data sets. Nothing here knows a device or a
//! model.

pub mod cross;
pub mod csv;
pub(crate) mod dependence;
pub mod fourier;
mod least_squares;
pub mod lens;
pub mod natural;
pub mod npy;
pub mod plane;
mod precision;
pub(crate) mod quantile;
mod select;
pub mod shapes;
pub mod standardize;
pub mod table;
mod text_head;
pub mod uci;
pub mod units;

pub use csv::{read_csv, write_csv};
pub use npy::{read_npy, write_npy};
pub use shapes::Shapes;
pub use standardize::Standardizer;
pub use table::{Table, check_table_output, side_by_side, write_groups, write_table, write_vector};
pub use units::{Bounds, ColumnSetting, Units};

/// First row of a simulated test set. Training rows count from 0, so the two never share a row of one seed.
pub const TEST_FIRST_ROW: u64 = 1 << 40;

/// First row of a pool of draws for [`crate::eval::abc`], which shares no row with the training and test sets of a
/// seed.
pub const POOL_FIRST_ROW: u64 = 1 << 41;

//! Columns of a table: their way to the networks ([`units`], [`standardize`]), and what is to be known of them: quantiles, and
//! what other columns say of them.

pub(crate) mod dependence;
pub(crate) mod least_squares;
pub(crate) mod quantile;
pub(crate) mod standardize;
pub(crate) mod units;

//! placeholder
pub mod error;
pub mod eval;
#[cfg(feature = "plots")]
pub mod report;

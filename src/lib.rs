//! placeholder
pub mod data;
pub mod error;
pub mod rng;

//! hintflow: normalizing flows with recursive coupling.
pub mod buffer;
pub mod engine;
pub mod error;
pub mod optim;
pub mod plan;
pub mod program;
pub mod tape;

pub use error::{Error, Result};

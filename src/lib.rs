//! hintflow: normalizing flows with recursive coupling.
pub mod bench;
pub mod buffer;
pub mod data;
pub mod engine;
pub mod error;
pub mod eval;
pub mod flow;
mod kernel;
pub mod optim;
pub mod plan;
pub mod program;
#[cfg(feature = "plots")]
pub mod report;
pub mod rng;
pub mod tape;

pub use engine::Engine;
pub use error::{Error, Result};
pub use flow::Flow;

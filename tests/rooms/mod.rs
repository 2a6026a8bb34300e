//! Tests of whole rooms of the crate, which see what users do not: part of the library's own test binary.

mod circles;
#[path = "../it/common/mod.rs"]
pub(crate) mod common;
mod data;
mod filter;
mod inn;
mod memory;
mod posterior;
mod python;
mod train;

use hintflow::config::Config;
use hintflow::train::{Dataset, TrainingLoop};
use hintflow::{Flow, Result};

/// Begins a training with the settings of a configuration.
fn begin<'a>(flow: &'a Flow, config: &Config, data: &'a Dataset) -> Result<TrainingLoop<'a>> {
    TrainingLoop::new(flow, data.resolve(&config.train, config.model.kind, config.model.coupling)?, data)
}

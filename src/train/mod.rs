//! Training: from settings and rows to a trained model, in steps that can be stopped and taken up again.
//!
//! [`Trainer`] takes single steps on a [`crate::Flow`] and needs no files. [`run`] is a whole training with a run
//! folder: [`Dataset`] in, [`folder`] with settings, [`metrics`], [`checkpoint`] files, the model and pictures out.
//! Everything random is a function of the seed and the number of the step or epoch, so a checkpoint holds a position
//! and no generator, and a training that was killed and resumed ends with the bits of one that was not. A training that
//! diverges goes back by itself (`trainer/retry.rs`), which changes none of this.

mod belongs;
mod best;
pub(crate) mod checkpoint;
pub(crate) mod clock;
mod columns;
mod cooldown;
mod dataset;
pub(crate) mod density;
#[cfg(feature = "plots")]
mod figures;
pub(crate) mod folder;
mod inputs;
mod kept;
mod manifest;
pub(crate) mod metrics;
mod notes;
mod order;
pub(crate) mod run;
mod score;
mod settings;
mod trainer;
mod training_loop;
mod verdict;

pub use dataset::{Dataset, DatasetBuilder};
pub use metrics::EpochReport;
pub use settings::TrainConfig;
pub use trainer::{Event, Fitted, Trainer};
pub use training_loop::Progress;

#[cfg(feature = "plots")]
pub(crate) use belongs::settings_that_matter;
pub(crate) use dataset::add_test_noise;
pub(crate) use score::held_out_score;

#[cfg(test)]
pub(crate) use {
    best::Best,
    cooldown::Cooldown,
    kept::Kept,
    training_loop::{Retries, State, TrainingLoop},
};

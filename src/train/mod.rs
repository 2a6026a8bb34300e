//! Training: from settings and rows to a trained model, in steps that can be stopped and taken up again.
//!
//! [`Trainer`] trains a [`crate::Flow`] on a [`Dataset`] and needs no files. `run` is a whole training with a run folder: settings,
//! metrics, checkpoints, the model and pictures. Both take their steps by `training_loop`. Everything random is a function of
//! the seed and the number of the step or epoch, so a checkpoint holds a position and no generator, and a training that was
//! killed and resumed ends with the bits of one that was not. What follows when an epoch ends, or a training diverges, is
//! decided in `decision`, and only there.

#[cfg(feature = "cli")]
pub(crate) mod checkpoint;
#[cfg(feature = "cli")]
pub(crate) mod clock;
mod columns;
#[cfg(feature = "cli")]
mod compatibility;
pub(crate) mod data_report;
mod dataset;
mod decision;
pub(crate) mod density;
#[cfg(feature = "cli")]
pub(crate) mod ending;
mod epoch_report;
#[cfg(feature = "cli")]
mod figures;
#[cfg(feature = "cli")]
pub(crate) mod folder;
pub(crate) mod found;
#[cfg(feature = "cli")]
mod inputs;
mod logs;
#[cfg(feature = "cli")]
pub(crate) mod manifest;
pub(crate) mod metrics;
mod notes;
mod order;
mod rate;
#[cfg(feature = "cli")]
pub(crate) mod run;
mod score;
mod train_config;
mod trainer;
mod training_loop;
#[cfg(feature = "cli")]
pub(crate) mod verdict;

pub use dataset::{Dataset, DatasetBuilder};
pub use epoch_report::EpochReport;
pub use train_config::TrainConfig;
pub use trainer::{Event, Fitted, Trainer};
pub use training_loop::Progress;

#[cfg(feature = "cli")]
pub(crate) use compatibility::settings_that_matter;
pub(crate) use dataset::add_test_noise;
pub(crate) use decision::{CLEARLY, Kept};
pub(crate) use score::held_out_score;
pub(crate) use training_loop::{BeganCycle, Diverged, State, TrainingLoop, WentBack};

#[cfg(test)]
pub(crate) use {decision::BestEpoch, decision::Cooldown, decision::Retries, training_loop::Best};

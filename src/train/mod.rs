//! Training: from settings and rows to a trained model, in steps that can be stopped and taken up again.
//!
//! [`Trainer`] takes single steps on a [`crate::Flow`] and needs no files. [`run`] is a whole training with a run
//! folder: [`Dataset`] in, [`folder`] with settings, [`metrics`], [`checkpoint`] files, the model and pictures out.
//! Everything random is a function of the seed and the number of the step or epoch, so a checkpoint holds a position
//! and no generator, and a training that was killed and resumed ends with the bits of one that was not. A training that
//! diverges goes back by itself (`trainer/retry.rs`), which changes none of this.

mod belongs;
mod best;
pub mod checkpoint;
pub(crate) mod clock;
mod columns;
mod cooldown;
mod dataset;
pub mod density;
#[cfg(feature = "plots")]
mod figures;
pub mod folder;
mod inputs;
mod kept;
mod manifest;
pub mod metrics;
mod notes;
mod order;
pub mod run;
mod score;
mod settings;
mod trainer;
mod training_loop;
mod verdict;

#[cfg(feature = "plots")]
pub(crate) use belongs::settings_that_matter;
pub use best::Best;
pub use cooldown::Cooldown;
pub(crate) use dataset::add_test_noise;
pub use dataset::{Dataset, DatasetBuilder};
pub use kept::Kept;
pub use manifest::Manifest;
pub use metrics::EpochReport;
pub use score::{HeldOutScore, held_out_score};
pub use settings::TrainConfig;
pub use trainer::{Event, Fitted, Trainer};
pub use training_loop::{Position, Progress, Retries, State, TrainingLoop};

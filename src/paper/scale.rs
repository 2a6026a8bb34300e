//! How large trainings and measurements are.

use crate::config::Preset;
use crate::measure::Protocol;

use super::{Model, Size};

/// Size of trainings and measurements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Short trainings on few rows, Cross with a quarter of the parameters or of the width. Shows that all is in its
    /// place; the numbers are not the paper's.
    Quick,
    /// The paper's settings.
    Paper,
}

/// A quick Cross model has this part of the parameters of its budget, or of its width. Less than that has no room for
/// the orthogonal maps of 32 blocks.
const PART: u32 = 4;

impl Scale {
    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Paper => "paper",
        }
    }

    /// Its folder, where none is named.
    pub(crate) fn folder(self) -> &'static str {
        match self {
            Self::Quick => "reproduction-quick",
            Self::Paper => "reproduction",
        }
    }

    /// Trainings of each model of a table, where no number is asked for.
    pub(crate) fn runs(self) -> u64 {
        match self {
            Self::Quick => 1,
            Self::Paper => 3,
        }
    }

    /// What it changes of the paper's settings.
    pub(crate) fn in_words(self) -> &'static str {
        match self {
            Self::Quick => {
                "short trainings on few rows, measured with few draws, Cross models with a quarter of the \
                 parameters or of the width: to see that everything works; the numbers to compare are those of \
                 `--scale paper`"
            }
            Self::Paper => "the paper's settings",
        }
    }

    /// How much is drawn to measure a model. The paper measures no MMD of Cross shapes.
    pub(crate) fn protocol(self, model: &Model) -> Protocol {
        let all = match self {
            Self::Quick => Protocol::QUICK,
            Self::Paper => Protocol::PAPER,
        };
        if model.data == Preset::Cross { Protocol { batches: 0, ..all } } else { all }
    }

    /// Settings of a model that this scale changes.
    pub(super) fn assignments(self, model: &Model) -> Vec<String> {
        if self == Self::Paper {
            return Vec::new();
        }
        let mut all = vec!["train.epochs=10".to_owned(), "train.warmup_epochs=1".to_owned()];
        match model.data {
            Preset::Lens | Preset::Cross => {
                all.extend(["data.rows=50000", "data.test_rows=5000", "train.batch=500"].map(str::to_owned));
            }
            Preset::Power | Preset::Gas | Preset::Miniboone => {}
        }
        let batches = match model.data {
            Preset::Cross => 25,
            Preset::Lens if model.is_conditional() => 100,
            _ => 200,
        };
        all.push(format!("train.batches_per_epoch={batches}"));
        match (model.data, model.size) {
            (Preset::Cross, Size::Budget) => {
                let budget = if model.is_conditional() { 4_000_000 } else { 2_000_000 };
                all.push(format!("model.budget={}", budget / PART));
            }
            (Preset::Cross, Size::Width(width)) => all.push(format!("model.width={}", width / PART)),
            _ => {}
        }
        all
    }
}

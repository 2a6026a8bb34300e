//! `manifest.json`: what a run was, for people and scripts.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::atomic::{Overwrite, write_atomic};
use crate::engine::DeviceInfo;
use crate::error::{Error, Result};
use crate::eval::density::Density;
use crate::plan::Spec;

/// Facts about a run. Written when it begins and when it ends.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Manifest {
    /// Version of hintflow.
    pub version: &'static str,
    /// The command line, word by word.
    pub command: Vec<String>,
    /// "running", "finished", "interrupted", "diverged" or "failed".
    pub status: &'static str,
    /// Begin of this process, UTC.
    pub started: String,
    /// End of this process, UTC.
    pub ended: Option<String>,
    /// Step that this process went on from; 0 for a new run.
    pub from_step: u64,
    /// Steps done.
    pub step: u64,
    /// Seed of the training.
    pub seed: u64,
    /// The device.
    pub device: DeviceInfo,
    /// The model.
    pub model: Spec,
    /// Trained parameters.
    pub parameters: usize,
    /// The data.
    pub data: DataFacts,
    /// Epochs that the settings allow.
    pub epochs: u64,
    /// The epoch whose model was kept, counted from 1; none before the end.
    pub kept_epoch: Option<u64>,
    /// Whether the training ended before its last epoch, as no epoch was better for `train.patience` epochs.
    pub stopped_early: bool,
    /// LL of the held-out rows: of the model that was kept, or after the last epoch so far.
    pub ll: Option<f64>,
    /// Log-densities of the held-out rows, and samples, of the model that was kept; none before the end.
    pub density: Option<Density>,
    /// Seconds that all processes of the run took, those that were killed left out.
    pub seconds: f64,
    /// Warnings of the training.
    pub warnings: Vec<String>,
    /// What else it told.
    pub notes: Vec<String>,
}

/// Facts about the data of a run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct DataFacts {
    /// Preset, or stem of the file.
    pub name: String,
    /// SHA-256 of training and held-out rows.
    pub fingerprint: String,
    /// Training rows.
    pub train_rows: usize,
    /// Held-out rows.
    pub test_rows: usize,
}

impl Manifest {
    /// Writes the file atomically over what may be there.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::format(path, e.to_string()))?;
        write_atomic(path, Overwrite::Yes, |file| writeln!(file, "{json}"))
    }
}

/// Status of a run that did all that its settings ask for.
pub(crate) const FINISHED: &str = "finished";
/// The same of one whose pictures could not all be drawn: to resume it tries again.
pub(crate) const UNDRAWN: &str = "finished, but for pictures";
/// Status of a run that was stopped and can go on.
pub(crate) const INTERRUPTED: &str = "interrupted";
/// Status of a run that goes on, or whose process was killed.
pub(crate) const RUNNING: &str = "running";
/// Status of a run whose loss became no number.
pub(crate) const DIVERGED: &str = "diverged";

/// Whether a manifest gives its run this status. One that cannot be read says nothing.
pub(super) fn says(path: &Path, status: &str) -> bool {
    #[derive(Deserialize)]
    struct Status {
        status: String,
    }
    read::<Status>(path).is_some_and(|s| s.status == status)
}

/// What a manifest says of the rows of its run.
#[derive(Deserialize)]
pub(super) struct Rows {
    /// [`DataFacts::fingerprint`].
    pub(super) fingerprint: String,
    /// [`DataFacts::train_rows`].
    pub(super) train_rows: u64,
    /// [`DataFacts::test_rows`].
    pub(super) test_rows: u64,
}

/// The rows of a manifest's run, where it can be read.
pub(super) fn rows(path: &Path) -> Option<Rows> {
    #[derive(Deserialize)]
    struct Facts {
        data: Rows,
    }
    read::<Facts>(path).map(|facts| facts.data)
}

/// What a manifest says of the densities of its run's model.
pub(super) fn density(path: &Path) -> Option<Density> {
    #[derive(Deserialize)]
    struct Facts {
        density: Option<Density>,
    }
    read::<Facts>(path)?.density
}

/// A manifest that is read: what it says, or nothing if it is older than an entry.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Facts {
    pub(crate) version: String,
    pub(crate) command: Vec<String>,
    pub(crate) status: String,
    pub(crate) started: String,
    pub(crate) ended: Option<String>,
    pub(crate) seed: u64,
    pub(crate) device: DeviceFacts,
    pub(crate) model: Option<Spec>,
    pub(crate) parameters: u64,
    pub(crate) data: DataFacts,
    pub(crate) epochs: u64,
    pub(crate) kept_epoch: Option<u64>,
    pub(crate) ll: Option<f64>,
    pub(crate) density: Option<Density>,
    pub(crate) seconds: f64,
    pub(crate) warnings: Vec<String>,
    pub(crate) notes: Vec<String>,
}

/// What a manifest says of its device.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct DeviceFacts {
    pub(crate) name: String,
    pub(crate) backend: String,
}

/// What a manifest says; none if it cannot be read.
pub(crate) fn facts(path: &Path) -> Option<Facts> {
    read(path)
}

/// The same, or why a manifest that is there cannot be read.
pub(crate) fn facts_or_damage(path: &Path) -> Result<Option<Facts>, String> {
    json_or_damage(path)
}

/// What a JSON file holds; none if it is not there, and otherwise what is wrong with it.
pub(crate) fn json_or_damage<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Option<T>, String> {
    match std::fs::read(path) {
        Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|e| e.to_string()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e.to_string()),
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

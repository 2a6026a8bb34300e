//! What the files of a run folder say. Each may be missing, damaged or older than what it could say: then the page has
//! less.

use std::path::{Path, PathBuf};

use crate::config::{Config, Given};
use crate::diagnose::{Diagnostics, fingerprint};
use crate::plan::Kind;
use crate::train::folder::{
    MODEL, config_of, data_of, diagnosis_of, diagnostics_in, is_training, manifest_of, metrics_of, plots_of,
};
use crate::train::profile::Profile;
use crate::train::{EpochReport, manifest, metrics, run};
use crate::{Error, Result};

/// All there is to tell of a run.
pub(super) struct Facts {
    /// Its folder.
    pub(super) run: PathBuf,
    /// All settings, or why they cannot be read.
    pub(super) config: Result<Config, String>,
    /// They as they are written.
    pub(super) config_text: String,
    pub(super) manifest: manifest::Facts,
    pub(super) epochs: Vec<EpochReport>,
    pub(super) profile: Option<Profile>,
    pub(super) diagnostics: Option<Diagnosed>,
    pub(super) state: State,
    /// Whether there is a model.
    pub(super) has_model: bool,
}

/// What a diagnosis found.
pub(super) struct Diagnosed {
    pub(super) found: Diagnostics,
    /// Whether the model has changed since.
    pub(super) is_of_another: bool,
}

/// How far a training is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is over.
    Finished,
    /// A process works on it.
    Training,
    /// It was stopped, or its process was killed.
    Stopped,
    /// Its loss became no number.
    Diverged,
    /// It ended with another error.
    Failed,
    /// There is no manifest that says.
    Unknown,
}

impl Facts {
    /// # Errors
    /// [`Error::Io`] if not even the settings can be read.
    pub(super) fn of(run: &Path) -> Result<Self> {
        let config = config_of(run);
        let config_text = std::fs::read_to_string(&config).map_err(|e| Error::io("read", &config, e))?;
        let manifest = manifest::facts(&manifest_of(run));
        let state = match manifest.as_ref().map(|facts| facts.status.as_str()) {
            _ if is_training(run) => State::Training,
            Some(manifest::FINISHED | manifest::UNDRAWN) => State::Finished,
            Some(manifest::RUNNING | manifest::INTERRUPTED) => State::Stopped,
            Some(manifest::DIVERGED) => State::Diverged,
            Some(_) => State::Failed,
            None => State::Unknown,
        };
        let model = run.join(MODEL);
        let found: Option<Diagnostics> = json(&diagnostics_in(&diagnosis_of(run)));
        let diagnostics = found.map(|found| {
            let now = fingerprint(&model).ok();
            Diagnosed { is_of_another: found.model_sha256.is_some() && found.model_sha256 != now, found }
        });
        Ok(Self {
            run: run.into(),
            config: run::settings_of(run).map_err(|e| e.to_string()),
            config_text,
            manifest: manifest.unwrap_or_default(),
            epochs: metrics::read(&metrics_of(run)).unwrap_or_default(),
            profile: json(&data_of(run)),
            diagnostics,
            state,
            has_model: model.is_file(),
        })
    }

    /// What the page is of.
    pub(super) fn title(&self) -> String {
        let data = &self.manifest.data.name;
        let name = if data.is_empty() { self.run.display().to_string() } else { data.clone() };
        match self.kind() {
            Some(Kind::Flow) => format!("Density of {name}"),
            Some(kind) => format!("Posterior of {name} ({})", kind.name()),
            None => name,
        }
    }

    /// The kind of the model.
    pub(super) fn kind(&self) -> Option<Kind> {
        let of_config = || self.config.as_ref().ok().map(|config| config.model.kind);
        self.manifest.model.as_ref().map(|spec| spec.kind).or_else(of_config)
    }

    /// The epochs that were trained.
    pub(super) fn trained_epochs(&self) -> u64 {
        self.epochs.last().map_or(0, |report| report.epoch)
    }

    /// The SVG of a picture of the training.
    pub(super) fn plot(&self, name: &str) -> Option<String> {
        svg(&plots_of(&self.run), name)
    }

    /// The SVG of a picture of the diagnosis.
    pub(super) fn diagnosis_plot(&self, name: &str) -> Option<String> {
        svg(&diagnosis_of(&self.run), name)
    }

    /// The files that the run was trained on, and whether each is still there.
    pub(super) fn files(&self) -> Vec<(PathBuf, bool)> {
        let Ok(config) = &self.config else { return Vec::new() };
        let given = config.data.given.as_ref().and_then(Given::file);
        let files = config.data.path.as_deref().into_iter().chain(given);
        files.map(|path| (path.to_owned(), path.exists())).collect()
    }

    /// A command on this run.
    pub(super) fn command(&self, words: &str) -> String {
        words.replace("RUN", &quoted(&self.run.display().to_string()))
    }
}

fn svg(folder: &Path, name: &str) -> Option<String> {
    std::fs::read_to_string(folder.join(format!("{name}.svg"))).ok()
}

fn json<T: serde::de::DeserializeOwned>(path: &Path) -> Option<T> {
    serde_json::from_str(&std::fs::read_to_string(path).ok()?).ok()
}

/// A word as a shell takes it.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=,:+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_those_that_a_shell_takes() {
        assert_eq!(quoted("--set"), "--set");
        assert_eq!(quoted("train.lr=0.1"), "train.lr=0.1");
        assert_eq!(quoted("my table.csv"), "'my table.csv'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}

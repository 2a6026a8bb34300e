//! What the files of a run folder say. Each may be missing, damaged or older than what it could say: then the page has
//! less.

use std::path::{Path, PathBuf};

use crate::config::{Config, Given};
use crate::diagnose::{Diagnostics, fingerprint};
use crate::flow::ModelFile;
use crate::plan::Kind;
use crate::train::data_report::DataReport;
use crate::train::folder::{
    MODEL, config_of, data_of, diagnosis_of, diagnostics_in, is_training, manifest_of, metrics_of, plots_of,
};
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
    pub(super) profile: Option<DataReport>,
    pub(super) diagnostics: Option<Diagnosed>,
    pub(super) state: State,
    /// Whether there is a model.
    pub(super) has_model: bool,
    /// Files that cannot be understood.
    pub(super) damage: Vec<Damage>,
}

/// A file that cannot be understood.
pub(super) struct Damage {
    pub(super) file: PathBuf,
    /// Which it is, what is wrong, and what to do: a sentence.
    pub(super) says: String,
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
    /// There is no manifest that says, or it is damaged.
    Unknown,
}

impl Facts {
    /// # Errors
    /// [`Error::Io`] if not even the settings can be read.
    pub(super) fn of(run: &Path) -> Result<Self> {
        let mut damage = Vec::new();
        let settings = config_of(run);
        let config_text = std::fs::read(&settings).map_err(|e| Error::io("read", &settings, e))?;
        let config = run::settings_of(run).map_err(|e| e.to_string());
        if let Err(error) = &config {
            // The reason names the file, or the key in it.
            let says = format!(
                "the file {} cannot be understood ({error}): restore it from a copy, as the run cannot be resumed without it",
                settings.display()
            );
            damage.push(Damage { file: settings.clone(), says });
        }
        let mut told = |path: &Path, why: &str, lacks: &str, remedy: &str| {
            let says = format!("the file {} is damaged ({why}), so that {lacks}: {remedy}", path.display());
            damage.push(Damage { file: path.into(), says });
        };
        let path = manifest_of(run);
        let manifest = manifest::facts_or_damage(&path).unwrap_or_else(|why| {
            let remedy = "restore it from a copy; `hintflow train --resume` writes another one when it ends";
            told(
                &path,
                &why,
                "neither how the training ended is known nor its device, its densities and its warnings",
                remedy,
            );
            None
        });
        // An object without what every manifest has is none.
        let manifest = manifest.filter(|facts| {
            let is_one = !facts.status.is_empty();
            if !is_one {
                let lacks = "neither how the training ended is known nor its device, its densities and its warnings";
                told(&path, "it has no status", lacks, "restore it from a copy");
            }
            is_one
        });
        let path = metrics_of(run);
        let (epochs, why) = metrics::read_or_damage(&path);
        let state = match manifest.as_ref().map(|facts| facts.status.as_str()) {
            _ if is_training(run) => State::Training,
            Some(manifest::FINISHED | manifest::UNDRAWN) => State::Finished,
            Some(manifest::RUNNING | manifest::INTERRUPTED) => State::Stopped,
            Some(manifest::DIVERGED) => State::Diverged,
            Some(_) => State::Failed,
            None => State::Unknown,
        };
        // Of a training that goes on, the last line may be half written.
        if let Some(why) = why.filter(|_| state != State::Training) {
            told(&path, &why, "its epochs are known up to there", "restore it from a copy; the model does not need it");
        }
        let path = data_of(run);
        let profile = manifest::json_or_damage(&path).unwrap_or_else(|why| {
            told(
                &path,
                &why,
                "what the rows are like is not known",
                "restore it from a copy; the model does not need it",
            );
            None
        });
        let path = diagnostics_in(&diagnosis_of(run));
        let found: Option<Diagnostics> = manifest::json_or_damage(&path).unwrap_or_else(|why| {
            told(&path, &why, "what a diagnosis found is not known", "`hintflow diagnose` finds it again");
            None
        });
        let model = run.join(MODEL);
        if model.is_file()
            && let Err(error) = ModelFile::read(&model)
        {
            let remedy = "restore it from a copy, or take a checkpoint of the run in its place";
            told(&model, &error.to_string(), "there is no model to sample from or to score rows with", remedy);
        }
        let diagnostics = found.map(|found| {
            let now = fingerprint(&model).ok();
            let is_of_another = found.model_sha256.is_some() && now.is_some() && found.model_sha256 != now;
            Diagnosed { is_of_another, found }
        });
        Ok(Self {
            run: run.into(),
            config,
            config_text: String::from_utf8_lossy(&config_text).into_owned(),
            manifest: manifest.unwrap_or_default(),
            epochs,
            profile,
            diagnostics,
            state,
            has_model: model.is_file(),
            damage,
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

    /// Whether a file is there that cannot be understood.
    pub(super) fn is_damaged(&self, file: &Path) -> bool {
        self.damage.iter().any(|damage| damage.file == file)
    }

    /// The epochs that the settings allow.
    pub(super) fn all_epochs(&self) -> u64 {
        let of_config = || self.config.as_ref().map_or(0, |config| config.train.epochs);
        if self.manifest.epochs > 0 { self.manifest.epochs } else { of_config() }
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

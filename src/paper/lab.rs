//! Where experiments are carried out: trains or finds models, measures them or finds what was measured.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use serde_json::Value;

use super::result::{Measured, difference, other_settings};
use super::{Family, Model, Request, Watcher};
use crate::atomic::Overwrite;
use crate::config::{Config, Preset};
use crate::data::Shapes;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::flow::{Flow, ModelFile};
use crate::measure;
use crate::train::folder::{MODEL, has_diverged, known_rows, read_model};
use crate::train::run::{self, Options};
use crate::train::{clock, settings_that_matter};

/// Everything that experiments need.
pub(super) struct Lab<'a> {
    pub(super) request: &'a Request<'a>,
    pub(super) engine: &'a Engine,
    pub(super) watcher: &'a mut dyn Watcher,
    /// UCI data sets whose files cannot be read, and why.
    unreadable: Vec<(Preset, String)>,
}

/// What became of a training.
pub(super) enum Trained {
    /// It is done.
    Model(Box<ModelFile>),
    /// Its loss became no number.
    Diverged,
    /// It was asked to stop.
    Stopped,
}

/// A trained model, for a figure.
pub(super) enum Found {
    /// It is there.
    Flow(Box<Flow>),
    /// Its training diverged.
    Diverged,
    /// It was stopped, or may not be trained.
    Nothing,
}

/// Whether a model's name has that part: words between dashes, so `rnvp-1` is none of `lens-rnvp-16`.
pub(super) fn has_part(name: &str, part: &str) -> bool {
    format!("-{name}-").contains(&format!("-{part}-"))
}

/// Why a row has no numbers.
pub(super) enum Absent {
    /// A file of a UCI data set is missing: its name.
    NoFile(String),
    /// A file of a UCI data set cannot be read.
    Unreadable,
    /// Nobody has asked for it yet.
    NotRun,
}

impl<'a> Lab<'a> {
    /// Makes the folder.
    pub(super) fn new(request: &'a Request<'a>, engine: &'a Engine, watcher: &'a mut dyn Watcher) -> Result<Self> {
        for folder in ["results", "runs"] {
            let path = request.out.join(folder);
            std::fs::create_dir_all(&path).map_err(|e| Error::io("create", &path, e))?;
        }
        Ok(Self { request, engine, watcher, unreadable: Vec::new() })
    }

    /// Whether it was asked to stop.
    pub(super) fn stopped(&self) -> bool {
        self.request.stop.load(Ordering::Relaxed)
    }

    /// The runs of some models that are still to be measured, and how many are asked for.
    pub(super) fn left<'m>(
        &self,
        models: impl Iterator<Item = &'m Model> + Clone,
    ) -> Result<(Vec<(&'m Model, u64)>, usize)> {
        let all = (1..=self.request.runs).flat_map(|run| models.clone().map(move |model| (model, run)));
        let (mut left, mut asked) = (Vec::new(), 0);
        for (model, run) in all {
            if self.is_wanted(model) && self.missing_file(model).is_none() {
                asked += 1;
                if !self.is_done(model, run)? {
                    left.push((model, run));
                }
            }
        }
        Ok((left, asked))
    }

    /// Says which models cannot be measured, since their files are missing.
    pub(super) fn warn_of_missing<'m>(&mut self, models: impl Iterator<Item = &'m Model>) {
        let lacks = |model: &&Model| self.is_wanted(model) && self.missing_file(model).is_some();
        let mut sets: Vec<&str> = models.filter(lacks).map(|model| model.data.name()).collect();
        sets.sort_unstable();
        sets.dedup();
        if sets.is_empty() {
            return;
        }
        let place = match self.request.uci {
            Some(folder) => format!("{} has no files of", folder.display()),
            None => "no folder (--uci) was given for the files of".to_owned(),
        };
        let text = format!(
            "{place} {}, which are not measured; `hintflow train {}` says where to get {}",
            sets.join(", "),
            sets[0],
            if sets.len() == 1 { "it" } else { "it, and so for the others" }
        );
        self.watcher.warning(&text);
    }

    /// Measures a run, unless the file of its data set cannot be read: then says so, and leaves the data set out.
    pub(super) fn measure_if_readable(&mut self, model: &Model, run: u64) -> Result<()> {
        let file = model.data.uci().zip(self.request.uci).and_then(|(set, folder)| set.file_at(folder));
        match (self.measure(model, run), file) {
            (Err(error), Some(file)) if is_of_file(&error, &file) => {
                let text = match &error {
                    Error::Config { .. } => format!("{} has too few rows: {error}", file.display()),
                    _ => error.to_string(),
                };
                self.watcher.warning(&format!("{text}; {} is not measured", model.data.name()));
                self.unreadable.push((model.data, text));
                Ok(())
            }
            (result, _) => result,
        }
    }

    /// Data sets whose files cannot be read.
    pub(super) fn unreadable(&self) -> impl Iterator<Item = &'static str> {
        self.unreadable.iter().map(|(data, _)| data.name())
    }

    /// Why the rows of a model's data set cannot be read, where that was found out.
    pub(super) fn why_unreadable(&self, model: &Model) -> Option<&str> {
        self.unreadable.iter().find(|(data, _)| *data == model.data).map(|(_, why)| why.as_str())
    }

    /// Whether a run is measured, or diverged and was not trained on since.
    fn is_done(&self, model: &Model, run: u64) -> Result<bool> {
        let folder = self.folder(model, run);
        Ok(self.measured(model, run)?.is_some_and(|m| {
            let given_up = || has_diverged(&folder) || !folder.join("config.toml").is_file();
            m.scores.is_some() || given_up()
        }))
    }

    /// What was measured of a run; none where it was not.
    fn measured(&self, model: &Model, run: u64) -> Result<Option<Measured>> {
        let settings = settings_of(&self.config(model, run)?)?;
        Measured::read(&self.result(model, run), &settings, &self.request.scale.protocol(model))
    }

    /// What was measured of all runs of a model, of more than are asked for now too; or why there is nothing.
    pub(super) fn results(&self, model: &Model) -> Result<Result<Vec<Measured>, Absent>> {
        let mut all = Vec::new();
        for run in self.runs_with_results(model)? {
            all.extend(self.measured(model, run)?);
        }
        Ok(match (all.is_empty(), self.missing_file(model)) {
            (false, _) => Ok(all),
            (true, Some(what)) => Err(Absent::NoFile(what)),
            (true, None) if self.why_unreadable(model).is_some() => Err(Absent::Unreadable),
            (true, None) => Err(Absent::NotRun),
        })
    }

    /// Numbers of the runs of which there are files of results, from the least.
    fn runs_with_results(&self, model: &Model) -> Result<Vec<u64>> {
        let folder = self.request.out.join("results");
        let failed = |e| Error::io("read", &folder, e);
        let mut runs = Vec::new();
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let file = entry.map_err(failed)?.file_name();
            let number = file.to_str().and_then(|file| file.strip_suffix(".json")?.rsplit_once("-s"));
            if let Some((name, number)) = number
                && name == model.name()
                && let Ok(run @ 1..) = number.parse()
            {
                runs.push(run);
            }
        }
        runs.sort_unstable();
        Ok(runs)
    }

    /// The first run of a model, trained if need be.
    pub(super) fn flow(&mut self, model: &Model) -> Result<Found> {
        let folder = self.folder(model, 1);
        if !has_diverged(&folder) && read_model(&folder).is_err() {
            if !self.is_wanted(model) {
                let text = format!("{} is not trained and --only leaves it out", model.name());
                self.watcher.warning(&text);
                return Ok(Found::Nothing);
            }
            self.watcher.model(&run_name(model, 1), None);
        }
        match self.train(model, 1)? {
            Trained::Model(file) => Flow::from_file(*file, self.engine).map(|flow| Found::Flow(Box::new(flow))),
            Trained::Diverged => Ok(Found::Diverged),
            Trained::Stopped => Ok(Found::Nothing),
        }
    }

    /// Trains and measures a run, unless it is stopped.
    fn measure(&mut self, model: &Model, run: u64) -> Result<()> {
        let file = match self.train(model, run)? {
            Trained::Model(file) => Some(*file),
            Trained::Diverged => None,
            Trained::Stopped => return Ok(()),
        };
        let config = self.config(model, run)?;
        let protocol = self.request.scale.protocol(model);
        let mut rows = None;
        let (parameters, scores) = match file {
            Some(file) => {
                let data = measure::dataset_of_run(&self.folder(model, run), &config, &file)?;
                rows = measure::is_read(&config).then(|| data.fingerprint.clone());
                let flow = Flow::from_file(file, self.engine)?;
                let store = self.request.out.join("abc");
                let (stop, watcher) = (self.request.stop, &mut *self.watcher);
                let mut tell = |text: &str| {
                    watcher.measuring(text);
                    if stop.load(Ordering::Relaxed) { Err(Error::Stopped) } else { Ok(()) }
                };
                match measure::measure(&flow, &config, &data, &protocol, &store, &mut tell) {
                    Err(Error::Stopped) => return Ok(()),
                    scores => (flow.parameters(), Some(scores?)),
                }
            }
            None => (0, None),
        };
        let measured = Measured {
            model: model.name(),
            run,
            parameters,
            data: rows,
            scores,
            protocol,
            settings: settings_of(&config)?,
            device: self.engine.info().name,
            version: env!("CARGO_PKG_VERSION").into(),
            date: clock::today(),
        };
        measured.write(&self.result(model, run))
    }

    /// Trains a model, or goes on with its training, or finds that it is trained.
    fn train(&mut self, model: &Model, run: u64) -> Result<Trained> {
        let mut config = self.config(model, run)?;
        let folder = self.folder(model, run);
        let options = Options { command: self.request.command, overwrite: Overwrite::Yes, stop: self.request.stop };
        let begun = folder.join("config.toml").is_file();
        let outcome = if begun {
            let mut found = run::settings_of(&folder)?;
            config = config.on(known_rows(&folder));
            if let Some(key) = difference(&settings_of(&config)?, &settings_of(&found)?) {
                return Err(Error::format(folder, other_settings(&key)));
            }
            if has_diverged(&folder) {
                return Ok(self.diverged(model, run));
            }
            if let Ok(file) = read_model(&folder) {
                let spec = &file.plan.spec;
                if config.model.spec(spec.dim, spec.cond_dim)? != *spec {
                    let what = "holds a model of other settings than its config.toml; remove the folder";
                    return Err(Error::format(folder, what));
                }
                return Ok(Trained::Model(Box::new(file)));
            }
            // Rows are where they are now.
            found.data.path = config.data.path;
            run::resume(&folder, found, self.engine, options, self.watcher.observer())
        } else {
            config.run.out = Some(folder.clone());
            run::start(config, self.engine, options, self.watcher.observer())
        };
        match outcome {
            Ok(outcome) if outcome.finished => {
                read_model(&folder).map(|file| Trained::Model(Box::new(file))).map_err(|error| advised(error, &folder))
            }
            Ok(_) => Ok(Trained::Stopped),
            Err(Error::Diverged { .. }) => Ok(self.diverged(model, run)),
            Err(error) => Err(advised(error, &folder)),
        }
    }

    fn diverged(&mut self, model: &Model, run: u64) -> Trained {
        let (name, folder) = (run_name(model, run), self.folder(model, run));
        let text = format!("{name} diverged in its training; to train it again, remove {}", folder.display());
        self.watcher.warning(&text);
        Trained::Diverged
    }

    /// The settings of a run.
    pub(super) fn config(&self, model: &Model, run: u64) -> Result<Config> {
        let path = model.data.uci().map(|_| self.request.uci.unwrap_or(Path::new(".")));
        model.settings(self.request.scale, run, path, self.request.set)
    }

    /// The Lens shapes of the request.
    pub(super) fn lens(&self) -> Result<Shapes> {
        let outline = self.config(&Model::new(Preset::Lens, Family::RealNvp, 1), 1)?.data.outline;
        Ok(Shapes::Lens(outline.unwrap_or_default()))
    }

    /// Whether a model may be trained.
    fn is_wanted(&self, model: &Model) -> bool {
        let (only, name) = (self.request.only, model.name());
        only.is_empty() || only.iter().any(|part| has_part(&name, part))
    }

    /// What file a model of a UCI data set lacks.
    fn missing_file(&self, model: &Model) -> Option<String> {
        let uci = model.data.uci()?;
        let is_there = self.request.uci.is_some_and(|folder| uci.file_at(folder).is_some());
        (!is_there).then(|| uci.file_names())
    }

    fn folder(&self, model: &Model, run: u64) -> PathBuf {
        self.request.out.join("runs").join(run_name(model, run))
    }

    fn result(&self, model: &Model, run: u64) -> PathBuf {
        self.request.out.join("results").join(run_name(model, run) + ".json")
    }
}

/// An error about a file of a run, with what to do about it here: it may have advice for trainings by hand.
fn advised(error: Error, folder: &Path) -> Error {
    match error {
        Error::Format { path, what } if path.ends_with(MODEL) && is_in(&path, folder) => Error::format(
            path,
            format!("{what}; remove it, and the same command makes it again of the last checkpoint"),
        ),
        Error::Format { path, what } if is_in(&path, folder) => {
            Error::format(path, format!("{what}; here: to train it again, remove {}", folder.display()))
        }
        other => other,
    }
}

/// Whether a path is that of a folder or in it. Trainings name their files with absolute paths.
fn is_in(path: &Path, folder: &Path) -> bool {
    matches!((std::path::absolute(path), std::path::absolute(folder)), (Ok(path), Ok(folder)) if path.starts_with(&folder))
}

/// Whether an error is that of a file: its own, or a batch of the experiment that is larger than all its rows.
fn is_of_file(error: &Error, file: &Path) -> bool {
    match error {
        Error::Io { path, .. } | Error::Format { path, .. } | Error::Cell { path, .. } => is_in(path, file),
        Error::Config { key, .. } => key == "train.batch",
        _ => false,
    }
}

/// Name of a run's folder and result.
pub(super) fn run_name(model: &Model, run: u64) -> String {
    format!("{}-s{run}", model.name())
}

/// The settings that matter to a training's result.
fn settings_of(config: &Config) -> Result<Value> {
    let mut settings = settings_that_matter(config)?;
    // Patience may change while a training goes on, but not between results that are compared.
    if let Some(toml::Value::Table(train)) = settings.get_mut("train")
        && config.train.patience > 0
        && let Ok(patience) = i64::try_from(config.train.patience)
    {
        train.insert("patience".into(), patience.into());
    }
    serde_json::to_value(settings).map_err(|e| Error::config("settings", e.to_string()))
}

//! A filter with its run folder: begin or resume, step by step, stop, finish.
//!
//! After each step its states are written, then its line of `steps.csv`: a step is done when its line is there. The step
//! that a run was stopped in goes on from its own simulations and the newest checkpoint of its training, if it has one.

mod figures;
mod folder;
mod keeper;
mod series;
mod settings;
mod steps;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

pub(crate) use folder::samples_of;
pub(crate) use series::{Series, series_of};
pub(crate) use settings::{ColumnSettings, MethodSettings, Settings, SystemSettings, timeout};
pub(crate) use steps::{Row, read as read_steps};

use super::measure;
use super::system::System;
use super::update::{Moment, Update, start as draw_start};
use crate::atomic::Overwrite;
use crate::data::Table;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::train::{EpochReport, Progress};
use folder::Folder;
use keeper::Files;

/// What a filter needs besides its settings.
#[derive(Clone, Copy)]
pub(crate) struct Options<'a> {
    /// The run folder; none: a new one below `runs`.
    pub out: Option<&'a Path>,
    /// Whether it may hold an earlier run, which is replaced.
    pub overwrite: Overwrite,
    /// Set from elsewhere: keep what there is, and stop.
    pub stop: &'a AtomicBool,
    /// Batches between checkpoints of a training; none: by time.
    pub checkpoint_every: Option<u64>,
}

/// Is told how a filter goes. All methods do nothing unless they are written.
pub(crate) trait Watcher {
    /// It begins or goes on: in that folder, after that step of so many.
    fn started(&mut self, _folder: &Path, _step: u32, _of: u32) {}
    /// A step begins.
    fn step(&mut self, _step: u32, _of: u32) {}
    /// A loss of a step's training was read.
    fn progress(&mut self, _progress: &Progress) {}
    /// An epoch of a step's training ended.
    fn epoch(&mut self, _report: &EpochReport, _progress: &Progress) {}
    /// A step is done.
    fn done(&mut self, _row: &Row, _names: &[String]) {}
    /// Something that may not be as the user wants it.
    fn warning(&mut self, _text: &str) {}
}

/// A watcher that is not interested.
impl Watcher for () {}

/// How a filter ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    pub folder: PathBuf,
    /// Whether all steps are done; otherwise it was stopped.
    pub finished: bool,
    /// All steps that are done.
    pub rows: Vec<Row>,
}

/// Begins a filter. `start` are states at the beginning of a command's system.
///
/// # Errors
/// Those of the system, the method, and of writing; see [`Error`].
pub(crate) fn start(
    settings: &Settings,
    start: Vec<f32>,
    series: Series,
    engine: &Engine,
    options: Options<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    let system = settings.system.system(start, options.stop)?;
    let update = settings.method.method().update()?;
    series.check(&*system)?;
    let states = draw_start(&*system, &*update, settings.seed)?;
    let folder = match options.out {
        Some(out) => Folder::create(out, options.overwrite)?,
        None => {
            let name = format!("{}-{}", settings.system.name(), update.name());
            Folder::create(&crate::train::folder::RunFolder::default_path(&name, settings.seed), Overwrite::No)?
        }
    };
    series.observations.write(folder.observations(), Overwrite::Yes)?;
    if let Some(truth) = &series.truth {
        truth.write(folder.truth(), Overwrite::Yes)?;
    }
    folder.keep_states(0, &states, system.state_columns())?;
    steps::write(&folder.steps(), &names_of(&*system), &[])?;
    // Last: what has settings can be resumed.
    let observations_sha256 = Some(digest_of(&series.observations));
    Settings { observations_sha256, ..settings.clone() }.write(&folder.settings())?;
    Run { folder, settings, system, update, series, engine, options, states, rows: Vec::new() }.go_on(watcher)
}

/// The settings of a run that is to be resumed.
///
/// # Errors
/// [`Error::Format`] if the folder holds no run of a filter.
pub(crate) fn settings_of(path: &Path) -> Result<Settings> {
    folder::is_run(path)?;
    Settings::read(&folder::settings_of(path))
}

/// Goes on with a filter after its last step. One that is finished says so by its outcome.
///
/// # Errors
/// Those of [`start`], and of files that are missing or damaged.
pub(crate) fn resume(
    path: &Path,
    settings: &Settings,
    engine: &Engine,
    options: Options<'_>,
    watcher: &mut dyn Watcher,
) -> Result<Outcome> {
    let folder = Folder::open(path)?;
    let of_file = |error: Error| match error {
        Error::Argument { .. } | Error::Config { .. } | Error::UnknownKey { .. } => {
            Error::format(folder.settings(), error.to_string())
        }
        other => other,
    };
    let system = settings.system.system(Vec::new(), options.stop).map_err(of_file)?;
    let mut update = settings.method.method().update().map_err(of_file)?;
    let series = series_of(path)?;
    let own = digest_of(&series.observations);
    if settings.observations_sha256.as_ref().is_some_and(|began_with| *began_with != own) {
        let what = "holds other numbers than the filter began with; put back a copy of it, or begin the filter anew";
        return Err(Error::format(folder.observations(), what));
    }
    series.check(&*system).map_err(of_file)?;
    let n = system.state_columns();
    let rows = steps::read(&folder.steps(), n)?;
    let (done, of) = (rows.len(), series.observations.rows());
    if done > of {
        let what = format!("has {done} steps, but observations.csv beside it has {of} rows; put back a copy of either");
        return Err(Error::format(folder.steps(), what));
    }
    let mut states = Vec::new();
    if done < of {
        let done = done as u32;
        states = folder.states(done, (update.members(), n))?;
        if done > 0 && settings.method.is_warm() {
            match folder.weights(done)? {
                Some(weights) => update.begin_from(weights),
                None => watcher.warning(&format!(
                    "{} is missing: step {} begins with new weights, and will be another than without this break",
                    folder.model(done).display(),
                    done + 1
                )),
            }
        }
    }
    Run { folder, settings, system, update, series, engine, options, states, rows }.go_on(watcher)
}

/// SHA-256 of observations.
fn digest_of(observations: &Table) -> String {
    crate::data::table::fingerprint(observations.dim(), observations.values())
}

/// Names of the columns of the state; numbers if they have none.
pub(crate) fn names_of(system: &dyn System) -> Vec<String> {
    let names = system.state_names();
    if names.is_empty() { (1..=system.state_columns()).map(|i| format!("x{i}")).collect() } else { names }
}

struct Run<'a> {
    folder: Folder,
    settings: &'a Settings,
    system: Box<dyn System + 'a>,
    update: Box<dyn Update>,
    series: Series,
    engine: &'a Engine,
    options: Options<'a>,
    states: Vec<f32>,
    rows: Vec<Row>,
}

impl Run<'_> {
    fn go_on(mut self, watcher: &mut dyn Watcher) -> Result<Outcome> {
        let of = self.series.observations.rows() as u32;
        watcher.started(self.folder.path(), self.rows.len() as u32, of);
        let mut result = Ok(());
        while result.is_ok() && (self.rows.len() as u32) < of {
            let stopped = self.options.stop.load(Ordering::Relaxed);
            result = if stopped { Err(Error::Stopped) } else { self.step(watcher) };
        }
        // Also of the steps before one that failed.
        if let Err(error) =
            figures::draw(&self.folder, self.settings, &names_of(&*self.system), &self.rows, &self.series)
        {
            watcher.warning(&format!("not all pictures could be drawn: {error}"));
        }
        let finished = match result {
            Ok(()) => true,
            Err(Error::Stopped) => false,
            Err(error) => return Err(error),
        };
        Ok(Outcome { folder: self.folder.path().into(), finished, rows: self.rows })
    }

    fn step(&mut self, watcher: &mut dyn Watcher) -> Result<()> {
        let (begun, step, n) = (Instant::now(), self.rows.len() as u32 + 1, self.system.state_columns());
        watcher.step(step, self.series.observations.rows() as u32);
        let (system, engine, observations) = (&*self.system, self.engine, &self.series.observations);
        let at = Moment { system, engine, step, seed: self.settings.seed, names: observations.columns() };
        let observed = observations.row(step as usize - 1);
        let mut keeper = Files::new(&self.folder, step, &self.options, self.engine, watcher);
        let (states, report) = self.update.update(&at, &self.states, observed, &mut keeper)?;
        let truth = self.series.truth.as_ref().map(|truth| truth.row(step as usize - 1));
        let row = Row { step: report, seconds: 0.0, columns: measure::columns(&states, n, truth)? };
        let row = Row { seconds: begun.elapsed().as_secs_f64(), ..row };
        self.folder.keep_states(step, &states, n)?;
        self.rows.push(row);
        steps::write(&self.folder.steps(), &names_of(&*self.system), &self.rows)?;
        self.folder.tidy(step)?;
        self.states = states;
        if let Some(row) = self.rows.last() {
            watcher.done(row, &names_of(&*self.system));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;

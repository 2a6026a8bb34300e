//! The folder of a filter's run.
//!
//! ```text
//! runs/2026-11-27_lotka-volterra-hint_s1/
//!   filter.toml          all settings
//!   observations.csv     what is observed, a row for each step
//!   truth.csv            the true states, if they are known
//!   steps.csv            one line for each step
//!   samples/step-003.npy     states after a step, at most 64,000 rows; step 0: at the beginning
//!   models/step-003.safetensors      the flow of a step, which every command takes as a model
//!   state/step-003.npy   all states after the last step: what the next goes on from
//!   state/rows-004.npy   simulations of the step that is being trained
//!   checkpoints/         of the step that is being trained
//!   plots/               PNG and SVG
//! ```

use std::path::{Path, PathBuf};

use crate::atomic::{Overwrite, remove_temporaries};
use crate::data::files::npy::read_npy_bytes;
use crate::data::{Table, write_npy};
use crate::error::{Error, Result};
use crate::filter::measure::some_rows;
use crate::flow::ModelFile;
use crate::train::checkpoint::Store;
use crate::train::folder::RunFolder;

/// Rows of a file of samples, at most.
const SAMPLES: usize = 64_000;
const SETTINGS: &str = "filter.toml";
/// Folders that hold files of steps.
const OF_STEPS: [&str; 3] = ["samples", "models", "state"];

/// Holding one keeps other processes from filtering into it.
#[derive(Debug)]
pub(super) struct Folder {
    run: RunFolder,
}

impl Folder {
    /// Makes a folder for a new run; what an earlier one left in it goes if `overwrite` allows it.
    pub(super) fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        let folder = Self { run: RunFolder::create(path, overwrite)? };
        for file in [folder.settings(), folder.observations(), folder.truth(), folder.steps()] {
            remove(&file)?;
        }
        for name in OF_STEPS {
            let below = folder.path().join(name);
            std::fs::create_dir_all(&below).map_err(|e| Error::io("create", &below, e))?;
            folder.clear(&below, |_| true)?;
        }
        let plots = folder.plots();
        let pictures = std::fs::read_dir(&plots).into_iter().flatten().flatten().map(|entry| entry.path());
        let is_own = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("states.") || name.starts_with("posterior_")
        };
        pictures.filter(is_own).try_for_each(|path| remove(&path))?;
        Ok(folder)
    }

    /// Takes the folder of an earlier run.
    pub(super) fn open(path: &Path) -> Result<Self> {
        is_run(path)?;
        let folder = Self { run: RunFolder::lock(path)? };
        OF_STEPS.iter().for_each(|name| remove_temporaries(&folder.path().join(name)));
        Ok(folder)
    }

    pub(super) fn path(&self) -> &Path {
        self.run.path()
    }

    pub(super) fn settings(&self) -> PathBuf {
        self.path().join(SETTINGS)
    }

    pub(super) fn observations(&self) -> PathBuf {
        self.path().join("observations.csv")
    }

    pub(super) fn truth(&self) -> PathBuf {
        self.path().join("truth.csv")
    }

    pub(super) fn steps(&self) -> PathBuf {
        self.path().join("steps.csv")
    }

    pub(super) fn plots(&self) -> PathBuf {
        self.run.plots()
    }

    pub(super) fn checkpoints(&self) -> Store {
        self.run.checkpoints()
    }

    /// The flow of a step.
    pub(super) fn model(&self, step: u32) -> PathBuf {
        self.path().join(format!("models/step-{step:03}.safetensors"))
    }

    /// Samples of a step.
    pub(super) fn samples(&self, step: u32) -> PathBuf {
        samples_of(self.path(), step)
    }

    fn state(&self, step: u32) -> PathBuf {
        self.path().join(format!("state/step-{step:03}.npy"))
    }

    fn rows(&self, step: u32) -> PathBuf {
        self.path().join(format!("state/rows-{step:03}.npy"))
    }

    /// Keeps the states after a step, of N columns.
    pub(super) fn keep_states(&self, step: u32, states: &[f32], n: usize) -> Result<()> {
        let some = some_rows(states, n, SAMPLES);
        write_npy(&self.samples(step), some.len() / n, n, &some, Overwrite::Yes)?;
        write_npy(&self.state(step), states.len() / n, n, states, Overwrite::Yes)
    }

    /// The states after the last step that is done, of so many rows and columns.
    pub(super) fn states(&self, step: u32, shape: (usize, usize)) -> Result<Vec<f32>> {
        let path = self.state(step);
        if !path.is_file()
            && let Some(newest) = self.newest_states().filter(|&newest| newest > step)
        {
            let file = self.state(newest);
            let what = format!(
                "ends with step {step}, but {} is of step {newest}: lines of it are lost; {PUT_BACK}",
                file.display()
            );
            return Err(Error::format(self.steps(), what));
        }
        let remedy = format!("the step after {step} begins with it; {PUT_BACK}");
        array(&path, shape).map_err(|error| with_remedy(&path, error, &remedy))
    }

    /// The newest step whose states there are.
    fn newest_states(&self) -> Option<u32> {
        let entries = std::fs::read_dir(self.path().join("state")).into_iter().flatten();
        let number = |name: String| name.strip_prefix("step-")?.strip_suffix(".npy")?.parse().ok();
        entries.flatten().filter_map(|entry| number(entry.file_name().to_string_lossy().into_owned())).max()
    }

    /// Samples of a step.
    pub(super) fn sampled(&self, step: u32) -> Result<Table> {
        table(&self.samples(step))
    }

    /// The weights of the flow of a step, if it was kept.
    pub(super) fn weights(&self, step: u32) -> Result<Option<Vec<f32>>> {
        let path = self.model(step);
        if !path.is_file() {
            return Ok(None);
        }
        let remedy = format!("put back a copy of it, or remove it, so that step {} begins with new weights", step + 1);
        let file = ModelFile::read(&path).map_err(|error| with_remedy(&path, error, &remedy))?;
        Ok(Some(file.weights))
    }

    /// Keeps the simulations of a step.
    pub(super) fn keep_rows(&self, step: u32, rows: &[f32], columns: usize) -> Result<()> {
        write_npy(&self.rows(step), rows.len() / columns, columns, rows, Overwrite::Yes)
    }

    /// The simulations of a step, of so many rows and columns, if they were kept.
    pub(super) fn kept_rows(&self, step: u32, shape: (usize, usize)) -> Result<Option<Vec<f32>>> {
        let path = self.rows(step);
        if !path.is_file() {
            return Ok(None);
        }
        let remedy = format!("remove it, so that step {step} is simulated again");
        array(&path, shape).map(Some).map_err(|error| with_remedy(&path, error, &remedy))
    }

    /// Removes what only the steps before `step`, or that one's training, needed.
    pub(super) fn tidy(&self, step: u32) -> Result<()> {
        self.checkpoints().clear()?;
        let own = self.state(step);
        self.clear(&self.path().join("state"), |path| path != own)
    }

    /// Removes files of steps in a folder below this one.
    fn clear(&self, folder: &Path, which: impl Fn(&Path) -> bool) -> Result<()> {
        let entries = std::fs::read_dir(folder).map_err(|e| Error::io("read", folder, e))?;
        let of_steps = |path: &PathBuf| {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            name.starts_with("step-") || name.starts_with("rows-")
        };
        let paths = entries.filter_map(|entry| entry.ok().map(|entry| entry.path()));
        paths.filter(of_steps).filter(|path| which(path)).try_for_each(|path| remove(&path))
    }
}

/// An array of a run.
fn table(path: &Path) -> Result<Table> {
    let bytes = std::fs::read(path).map_err(|e| Error::io("read", path, e))?;
    let (values, columns) = read_npy_bytes(&bytes, path)?;
    Table::new(Vec::new(), columns, values)
}

/// The values of an array of a run that has so many rows and columns.
fn array(path: &Path, (rows, columns): (usize, usize)) -> Result<Vec<f32>> {
    let table = table(path)?;
    if (table.rows(), table.dim()) != (rows, columns) {
        let what = format!("has {} rows of {} numbers, must be {rows} of {columns}", table.rows(), table.dim());
        return Err(Error::format(path, what));
    }
    Ok(table.into_values())
}

/// What can be done about a file that cannot be made again.
const PUT_BACK: &str = "put back a copy of it, or begin the filter anew";

/// An error of a file of a run, with what can be done about it.
pub(super) fn with_remedy(path: &Path, error: Error, remedy: &str) -> Error {
    let what = match error {
        Error::Format { what, .. } => what,
        Error::Io { cause, .. } if cause.kind() == std::io::ErrorKind::NotFound => "is missing".into(),
        Error::Io { cause, .. } => format!("cannot be read: {cause}"),
        Error::Cell { row, column, what, .. } => format!("row {row}, column {column}: {what}"),
        other => other.to_string(),
    };
    Error::format(path, format!("{what}; {remedy}"))
}

/// Samples of a step of the run in a folder.
pub(crate) fn samples_of(run: &Path, step: u32) -> PathBuf {
    run.join(format!("samples/step-{step:03}.npy"))
}

/// Whether a folder holds the run of a filter.
///
/// # Errors
/// [`Error::Io`] if there is none, [`Error::Format`] if it holds something else.
pub(super) fn is_run(path: &Path) -> Result<()> {
    std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?;
    if path.join(SETTINGS).is_file() {
        return Ok(());
    }
    let what = if path.join("config.toml").is_file() {
        format!("is the run of a training; go on with `hintflow train --resume {}`", path.display())
    } else {
        format!("is not the run of a filter: it holds no {SETTINGS}")
    };
    Err(Error::format(path, what))
}

/// The settings of a run.
pub(super) fn settings_of(path: &Path) -> PathBuf {
    path.join(SETTINGS)
}

fn remove(file: &Path) -> Result<()> {
    match std::fs::remove_file(file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io("remove", file, e)),
        _ => Ok(()),
    }
}

//! The series that a filter follows, and whether it is one of its system.

use std::path::{Path, PathBuf};

use super::folder::with_remedy;
use crate::data::Table;
use crate::error::{Error, Result};
use crate::filter::System;
use crate::filter::ensemble::check;

/// The series.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    /// A row for each step.
    pub observations: Table,
    /// The true states, a row for each step, if they are known.
    pub truth: Option<Table>,
    /// The files of both, for messages; none of what is simulated.
    files: Option<[PathBuf; 2]>,
}

impl Series {
    /// A series that comes from no file.
    pub(crate) fn new(observations: Table, truth: Option<Table>) -> Self {
        Self { observations, truth, files: None }
    }

    /// The same from files. That of the truth does not matter if there is none.
    pub(crate) fn of_files(self, observations: &Path, truth: &Path) -> Self {
        Self { files: Some([observations.into(), truth.into()]), ..self }
    }

    /// Whether it is a series of a system, and that is one to filter.
    ///
    /// # Errors
    /// [`Error::Argument`], [`Error::Shape`] or, of files, [`Error::Format`].
    pub(super) fn check(&self, system: &dyn System) -> Result<()> {
        check(system)?;
        let Self { observations, truth, .. } = self;
        if u32::try_from(observations.rows()).is_err() {
            return Err(Error::argument("observations", "has 2^32 rows or more"));
        }
        let (n, c) = (system.state_columns(), system.observation_columns());
        self.agree(0, ("columns", "columns of an observation"), c, observations.dim())?;
        let Some(truth) = truth else { return Ok(()) };
        self.agree(1, ("columns", "columns of a state"), n, truth.dim())?;
        self.agree(1, ("rows", "observations, which are a row each"), observations.rows(), truth.rows())
    }

    fn agree(&self, file: usize, (what, of): (&str, &str), expected: usize, got: usize) -> Result<()> {
        if expected == got {
            return Ok(());
        }
        Err(match &self.files {
            Some(files) => {
                let what = if got == 1 { what.trim_end_matches('s') } else { what };
                Error::format(&files[file], format!("has {got} {what}; there are {expected} {of}"))
            }
            None => Error::Shape { what: of.into(), expected, got },
        })
    }
}

/// The series of a run.
///
/// # Errors
/// Those of reading tables.
pub(crate) fn series_of(run: &Path) -> Result<Series> {
    const REMEDY: &str = "put back a copy of it, or begin the filter anew";
    let read = |path: &Path| Table::read(path).map_err(|error| with_remedy(path, error, REMEDY));
    let [observations, truth] = ["observations.csv", "truth.csv"].map(|name| run.join(name));
    let truth_rows = if truth.is_file() { Some(read(&truth)?) } else { None };
    Ok(Series::new(read(&observations)?, truth_rows).of_files(&observations, &truth))
}

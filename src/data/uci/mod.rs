//! The tabular UCI data sets of the paper (section "UCI Density Estimation Benchmarks"): POWER, GAS and MINIBOONE, from
//! files that the user has.
//!
//! Rows are those of the public preprocessing that the paper, and most papers with these names in a table, use: that of
//! Papamakarios et al., *Masked Autoregressive Flow for Density Estimation*, NeurIPS 2017, appendix D.2 and
//! `github.com/gpapamak/maf`. `power`, `gas` and `miniboone` read a data set, raw as the UCI archive has it or
//! as the archive of that paper does, and take out rows and columns; `protocol` splits and normalises. `source` finds
//! the file; `pickle` and `frame` read a table of pandas. Everything is computed in 64-bit floats and rounded once, at
//! the end.
//!
//! | | columns | rows: training, validation, test | shuffled | normalised by |
//! |---|---|---|---|---|
//! | POWER | 6 | 1,659,917, 184,435, 204,928 | yes | training and validation |
//! | GAS | 8 | 852,174, 94,685, 105,206 | as the quarter of the file was drawn | all rows |
//! | MINIBOONE | 42 | 29,556, 3,284, 3,648 | no | training and validation |
//!
//! Of the paper's trainings the validation rows are no part: they learn from the training rows and are scored on the
//! test rows. Its table gives the mean log-likelihood of a whole row in nats, constant included, in the normalised
//! units and with noise of deviation 0.01 on training and test rows.

mod frame;
mod gas;
mod lines;
mod miniboone;
mod pickle;
mod power;
mod protocol;
mod random_state;
mod source;

use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A data set of the UCI archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Uci {
    /// Electric power of a household, minute by minute (Hebrail and Bérard).
    Power,
    /// Sensors in mixtures of ethylene and carbon monoxide (Fonollosa et al.).
    Gas,
    /// Electron neutrinos of MiniBooNE (Roe et al.).
    Miniboone,
}

/// Rows of a data set as models see them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Parts {
    /// Names of the N columns.
    pub columns: Vec<String>,
    /// Training rows, row-major (rows, N), in normalised units.
    pub train: Vec<f32>,
    /// Validation rows, as `train`.
    pub validation: Vec<f32>,
    /// Test rows, as `train`.
    pub test: Vec<f32>,
    /// What the user should know about the rows.
    pub notes: Vec<String>,
}

/// Rows before they are split, in the units of the file.
struct Values {
    columns: Vec<String>,
    /// Row-major.
    values: Vec<f64>,
    notes: Vec<String>,
}

impl Uci {
    /// Its name in settings and on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Gas => "gas",
            Self::Miniboone => "miniboone",
        }
    }

    /// The error for a data set whose file was not named, with where to get it.
    pub(crate) fn unnamed(self) -> Error {
        source::missing(self, "no file is named")
    }

    /// The names of the files that hold it, one of which is enough.
    pub(crate) fn file_names(self) -> String {
        source::names(self)
    }

    /// The data set whose text of the UCI archive has the name of this file.
    pub(crate) fn of_text(path: &Path) -> Option<Self> {
        [Self::Power, Self::Gas, Self::Miniboone].into_iter().find(|set| source::is_text_of(*set, path))
    }

    /// Its file: `path` itself, or the one in that folder, where it is there.
    pub(crate) fn file_at(self, path: &Path) -> Option<PathBuf> {
        source::find(self, path).ok()
    }

    /// Reads the data set from its file, or from a folder that holds it. `seed` is that of NumPy's generator: the
    /// published rows of POWER have 42. It shuffles POWER and adds its noise, and draws a quarter of the raw rows of
    /// GAS.
    ///
    /// # Errors
    /// [`Error::Config`] for `data.path` if there is no such file, or for a seed of 2^32 or more; [`Error::Format`]
    /// and [`Error::Cell`] with file and row where it is not laid out as it was published; [`Error::Io`].
    pub(crate) fn read(self, path: &Path, seed: u64) -> Result<Parts> {
        let seed = u32::try_from(seed).map_err(|_| {
            Error::config("data.seed", format!("is {seed}; that of {} must be less than 2^32", self.name()))
        })?;
        let file = source::find(self, path)?;
        let file = file.as_path();
        let values = match self {
            Self::Power => power::read(file, seed)?,
            Self::Gas => gas::read(file, seed)?,
            Self::Miniboone => miniboone::read(file)?,
        };
        protocol::split(values, self, file)
    }
}

#[cfg(test)]
mod tests;

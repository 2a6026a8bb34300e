//! The one error type of the crate: every variant holds the facts as fields and says in its message what to do.

use std::path::PathBuf;

/// Result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong outside our own bugs. Bugs panic; everything a user can cause is one of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a file failed in the operating system.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was attempted, as a verb: "read", "write", "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },
    /// A file exists already and must not be overwritten.
    #[error("{} exists already; choose another name or pass --force to overwrite it", path.display())]
    Exists {
        /// The file or folder that is in the way.
        path: PathBuf,
    },
    /// A file is not what its name promises (truncated, corrupt, wrong format).
    #[error("{}: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong, and what to do about it.
        what: String,
    },
    /// A value in a table is missing, not a number, NaN or infinite. Row and column count from 1.
    #[error("{}: row {row}, column {column}{}: {what}", path.display(), name.as_ref().map(|n| format!(" (`{n}`)")).unwrap_or_default())]
    Cell {
        /// The file.
        path: PathBuf,
        /// Data row, counted from 1 (a header line is not counted).
        row: usize,
        /// Column, counted from 1.
        column: usize,
        /// Name of the column where the file has names.
        name: Option<String>,
        /// What is wrong with the value.
        what: String,
    },
    /// An array handed to the library has the wrong size.
    #[error("{what}: expected {expected}, got {got}")]
    Shape {
        /// Which array or dimension.
        what: String,
        /// The size it must have.
        expected: usize,
        /// The size it has.
        got: usize,
    },
    /// A number handed to the library is NaN or infinite, or too large to reckon with.
    #[error("{what} is not a finite number of reasonable size")]
    NotFinite {
        /// Which number of which array.
        what: String,
    },
    /// A setting is out of range or contradicts another one.
    #[error("`{key}`: {what}")]
    Config {
        /// The configuration key, dotted: `train.batch`.
        key: String,
        /// What is wrong, and what to do.
        what: String,
    },
    /// A configuration key does not exist.
    #[error("unknown key `{key}` (from {origin}); {}", nearest.map_or("`hintflow train --help` lists all".into(), |n| format!("did you mean `{n}`?")))]
    UnknownKey {
        /// The key as written.
        key: String,
        /// File, variable or option that it comes from.
        origin: String,
        /// The known key that is spelled most like it, where one is.
        nearest: Option<&'static str>,
    },
    /// No device fits the request, or the device cannot hold the model.
    #[error("{what}")]
    Device {
        /// What was asked for, what there is, what to do.
        what: String,
    },
    /// The device stopped working during a run.
    #[error("the device was lost: {what}; continue from the last checkpoint with --resume")]
    DeviceLost {
        /// The driver's message.
        what: String,
    },
    /// A device computes something else than it should.
    #[error(
        "`{device}` computes {what} wrong: the deviation is {deviation:.1e} of the largest value, {bound:.0e} is allowed; \
         look for a newer driver or choose another --device (if this is the CPU engine, it is a mistake in hintflow)"
    )]
    CheckFailed {
        /// Name of the device.
        device: String,
        /// Which results, of which model.
        what: String,
        /// The largest deviation, relative to the largest expected value; infinite or NaN where results are no numbers.
        deviation: f64,
        /// The largest good one.
        bound: f64,
    },
    /// A long computation was asked to stop, by what it tells its progress to.
    #[error("stopped")]
    Stopped,
    /// The loss is no longer a finite number.
    #[error("the loss became {loss} at step {step}; {remedy}")]
    Diverged {
        /// Training step, counted from 1, at which it was seen.
        step: u64,
        /// The loss that was read.
        loss: f32,
        /// What to do, with the last good checkpoint where there is one.
        remedy: String,
    },
}

impl Error {
    /// Wraps an operating-system error with the action and the file it belongs to.
    pub fn io(action: &'static str, path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), source }
    }

    /// A file whose content is not acceptable.
    pub fn format(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Format { path: path.into(), what: what.into() }
    }

    /// A setting that is not acceptable.
    pub fn config(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Config { key: key.into(), what: what.into() }
    }

    /// Exit code of the command line for this error (see docs/own-data.md).
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Config { .. } | Self::UnknownKey { .. } => 2,
            Self::Diverged { .. } => 3,
            Self::Device { .. } | Self::DeviceLost { .. } => 4,
            Self::CheckFailed { .. } => 5,
            Self::Stopped => 130,
            _ => 1,
        }
    }
}

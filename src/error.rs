//! The one error type of the crate: every variant holds the facts as fields. What to do about
//! them at the command line is added by `cli/remedy.rs`.

use std::path::PathBuf;

/// Result of every fallible operation of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong outside our own bugs. Bugs panic; everything a user can cause is one of these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Reading or writing a file failed in the operating system.
    #[error("cannot {action} {}: {cause}", path.display())]
    Io {
        /// What was attempted, as a verb: "read", "write", "create".
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's reason. It is part of the message, and so no `source` that would be printed a second time.
        cause: std::io::Error,
    },
    /// A file exists already and must not be overwritten.
    #[error("{} exists already", path.display())]
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
    /// A call that a model of this kind has no answer to.
    #[error("this needs {needed}; the model is a `{found}`")]
    WrongKind {
        /// What the call needs.
        needed: &'static str,
        /// What the model is: `flow`, `cinn` or `hint`.
        found: &'static str,
    },
    /// An argument of a call is out of range or contradicts another one.
    #[error("`{name}`: {what}")]
    Argument {
        /// The argument.
        name: String,
        /// What is wrong with it, and what it may be.
        what: String,
    },
    /// Memory of the host or of the device cannot hold what was asked for.
    #[error("out of memory: {what}{}", amounts(*needed, *available))]
    OutOfMemory {
        /// What does not fit.
        what: String,
        /// Bytes that it takes, if they are known.
        needed: Option<u64>,
        /// Bytes that there are, if they are known.
        available: Option<u64>,
    },
    /// No adapter for GPU computing fits the request.
    #[error("{what}{}", if found.is_empty() { String::new() } else { format!("; there are:{}", found.concat()) })]
    NoAdapter {
        /// What was asked for.
        what: String,
        /// The adapters that there are, a line each.
        found: Vec<String>,
    },
    /// A limit of the device is too low.
    #[error("the device's limit {name} is {available}, {what} needs {needed}")]
    UnsupportedLimit {
        /// The limit, by its name in WebGPU.
        name: &'static str,
        /// What needs more.
        what: String,
        /// The least that would do.
        needed: u64,
        /// What the device has.
        available: u64,
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
    #[error("unknown key `{key}` (from {origin}){}", nearest.map(|n| format!("; did you mean `{n}`?")).unwrap_or_default())]
    UnknownKey {
        /// The key as written.
        key: String,
        /// File, variable or option that it comes from.
        origin: String,
        /// The known key that is spelled most like it, where one is.
        nearest: Option<&'static str>,
    },
    /// A device cannot do what was asked, or refused it.
    #[error("{what}")]
    Device {
        /// Which device, and what it cannot do.
        what: String,
    },
    /// The device stopped working during a run.
    #[error("the device was lost: {what}")]
    DeviceLost {
        /// The driver's message.
        what: String,
    },
    /// A device computes something else than it should.
    #[error(
        "`{device}` computes {what} wrong: the deviation is {deviation:.1e} of the largest value, {bound:.0e} is allowed"
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
    /// A simulator failed, or gave what is no simulation.
    #[error("step {step}{}: {what}", row.map(|row| format!(", row {row}")).unwrap_or_default())]
    Simulator {
        /// Step of the filter, counted from 1; 0: the states at the beginning.
        step: u32,
        /// Row of the simulation, counted from 1, where it is one row's fault.
        row: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// A command that simulates, or knows a density, failed, or wrote something else.
    #[error("{}{what}", row.map(|row| format!("row {row}: ")).unwrap_or_default())]
    Command {
        /// Row of what it was given, counted from 1, where it is one row's fault.
        row: Option<usize>,
        /// What is wrong.
        what: String,
    },
    /// The flow of a step of a filter could not be trained.
    #[error("step {step}: {what}")]
    StepDiverged {
        /// Step of the filter, counted from 1.
        step: u32,
        /// What was seen of it.
        what: String,
    },
    /// Ranks that work together do not agree, or one of them is gone or failed ([`crate::comm`]).
    #[error("{what}")]
    Ranks {
        /// Which rank, on which host, and what of it.
        what: String,
    },
    /// A long computation was asked to stop, by what it tells its progress to.
    #[error("stopped")]
    Stopped,
    /// The loss is no longer a finite number.
    #[error("the loss became {loss} at step {step}")]
    Diverged {
        /// Training step, counted from 1, at which it was seen.
        step: u64,
        /// The loss that was read.
        loss: f32,
        /// The last good checkpoint, if there is one.
        checkpoint: Option<PathBuf>,
    },
}

impl Error {
    /// Wraps an operating-system error with the action and the file it belongs to.
    pub(crate) fn io(action: &'static str, path: impl Into<PathBuf>, cause: std::io::Error) -> Self {
        Self::Io { action, path: path.into(), cause }
    }

    /// A file whose content is not acceptable.
    pub(crate) fn format(path: impl Into<PathBuf>, what: impl Into<String>) -> Self {
        Self::Format { path: path.into(), what: what.into() }
    }

    /// A setting that is not acceptable.
    pub(crate) fn config(key: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Config { key: key.into(), what: what.into() }
    }

    /// An argument that is not acceptable.
    pub(crate) fn argument(name: impl Into<String>, what: impl Into<String>) -> Self {
        Self::Argument { name: name.into(), what: what.into() }
    }
}

/// What is known of needed and available bytes, for the end of a message.
fn amounts(needed: Option<u64>, available: Option<u64>) -> String {
    let megabytes = |bytes: u64| format!("{:.1} MB", bytes as f64 / 1e6);
    match (needed, available) {
        (Some(needed), Some(available)) => {
            format!(" ({} are needed, there are {})", megabytes(needed), megabytes(available))
        }
        (Some(needed), None) => format!(" ({} are needed)", megabytes(needed)),
        (None, Some(available)) => format!(" (there are {})", megabytes(available)),
        (None, None) => String::new(),
    }
}

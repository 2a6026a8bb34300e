//! What a training is told from outside, and what it tells.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::atomic::Overwrite;
use crate::config::Config;
use crate::eval::density::Density;
use crate::flow::Flow;
use crate::train::dataset::Dataset;
use crate::train::decision::Kept;
use crate::train::epoch_report::EpochReport;
use crate::train::training_loop::{Position, Progress};

/// Is told how a training goes. All methods do nothing unless they are written.
pub(crate) trait Observer {
    /// The training begins or goes on.
    fn started(&mut self, _start: &Start<'_>) {}
    /// A loss was read.
    fn progress(&mut self, _progress: &Progress) {}
    /// An epoch ended.
    fn epoch(&mut self, _report: &EpochReport, _progress: &Progress) {}
    /// Everything that cannot be made again is written. What follows are pictures and measures.
    fn saved(&mut self) {}
    /// Something that the user may want to know.
    fn note(&mut self, _text: &str) {}
    /// Something that may not be as the user wants it.
    fn warning(&mut self, _text: &str) {}
}

/// An observer that is not interested.
impl Observer for () {}

/// Passes on what a training tells, and remembers its sentences for the manifest.
pub(super) struct Remembering<'a> {
    inner: &'a mut dyn Observer,
    /// What may not be as the user wants it.
    pub(super) warnings: Vec<String>,
    /// What the user may want to know.
    pub(super) notes: Vec<String>,
}

impl<'a> Remembering<'a> {
    /// After what was told of the run before it was resumed.
    pub(super) fn new(inner: &'a mut dyn Observer, (warnings, notes): (Vec<String>, Vec<String>)) -> Self {
        Self { inner, warnings, notes }
    }
}

/// A resumed run tells some things again.
fn add(to: &mut Vec<String>, text: &str) {
    if !to.iter().any(|known| known == text) {
        to.push(text.into());
    }
}

impl Observer for Remembering<'_> {
    fn started(&mut self, start: &Start<'_>) {
        self.inner.started(start);
    }

    fn progress(&mut self, progress: &Progress) {
        self.inner.progress(progress);
    }

    fn epoch(&mut self, report: &EpochReport, progress: &Progress) {
        self.inner.epoch(report, progress);
    }

    fn saved(&mut self) {
        self.inner.saved();
    }

    fn note(&mut self, text: &str) {
        add(&mut self.notes, text);
        self.inner.note(text);
    }

    fn warning(&mut self, text: &str) {
        add(&mut self.warnings, text);
        self.inner.warning(text);
    }
}

/// What begins.
pub(crate) struct Start<'a> {
    /// The run folder.
    pub folder: &'a Path,
    /// The model.
    pub flow: &'a Flow,
    /// The rows.
    pub data: &'a Dataset,
    /// All settings.
    pub config: &'a Config,
    /// Where it goes on from.
    pub position: Position,
}

/// How a training ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// The run folder.
    pub folder: PathBuf,
    /// Whether the training is over; otherwise it was stopped and can be resumed.
    pub finished: bool,
    /// Steps done.
    pub step: u64,
    /// The last epoch's report, if an epoch ended.
    pub last: Option<EpochReport>,
    /// The model that was kept, where the training is over and its checkpoint there.
    pub kept: Option<Kept>,
    /// Log-densities of the held-out rows, and samples, of the model that was kept, where the training is over.
    pub density: Option<Density>,
}

/// What a training needs besides its settings.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Options<'a> {
    /// The command line, for the manifest.
    pub command: &'a [String],
    /// Whether a folder that is not empty may be used, and an earlier run in it replaced.
    pub overwrite: Overwrite,
    /// Set from elsewhere: finish the step, save, and stop.
    pub stop: &'a AtomicBool,
}

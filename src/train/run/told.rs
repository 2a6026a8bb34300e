//! What a training is told from outside, and what it tells.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

use crate::atomic::Overwrite;
use crate::config::Resolved;
use crate::eval::density::Density;
use crate::flow::Flow;
use crate::train::checkpoint::Device;
use crate::train::dataset::Dataset;
use crate::train::decision::Kept;
use crate::train::ending::Ending;
use crate::train::epoch_report::EpochReport;
use crate::train::found::{Chose, Found};
use crate::train::training_loop::{BeganCycle, Position, Progress, WentBack};
use crate::train::verdict::Worse;

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
    /// Something to tell, which is put into words for [`Observer::note`] or [`Observer::warning`].
    fn told(&mut self, told: &Told) {
        let text = told.to_string();
        if told.is_warning() { self.warning(&text) } else { self.note(&text) }
    }
    /// Something that the user may want to know.
    fn note(&mut self, _text: &str) {}
    /// Something that may not be as the user wants it.
    fn warning(&mut self, _text: &str) {}
}

/// What a training tells besides its numbers: facts, which [`crate::words`] puts into words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Told {
    /// Something to know of the rows before a density of them is believed.
    Found(Found),
    /// Something that was chosen for the rows.
    Chose(Chose),
    /// A damaged checkpoint was passed over, for this reason.
    PassedOver(String),
    /// There is no checkpoint to go on from.
    NoCheckpoint,
    /// The run began on one device and goes on on another.
    OtherDevice { before: Device, now: Device },
    /// Lines of epochs up to this one are missing in metrics.csv.
    MetricsLack(u64),
    /// All epochs are warm-up.
    AllWarmUp { epochs: u64, factor: f64, warmup_epochs: u64 },
    /// It has diverged and gone back.
    WentBack(WentBack),
    /// A further cycle of the learning rate began.
    BeganCycle(BeganCycle),
    /// The way back of a reversible training loses this share of a row.
    LostDigits(f64),
    /// So many updates were left out.
    LeftOut(u32),
    /// How it ended, and which model is left.
    Ended(Ending),
    /// The end is worse than what came before it.
    Worse(Worse),
    /// Nothing was left to do.
    AlreadyFinished(AlreadyFinished),
    /// Not all pictures could be drawn, for this reason.
    NotDrawn(String),
    /// The densities could not be looked at, for this reason.
    NoDensity(String),
    /// A failure that does not end the run.
    Failed(String),
}

impl Told {
    /// Whether it may not be as the user wants it.
    pub(crate) fn is_warning(&self) -> bool {
        match self {
            Self::Found(_)
            | Self::PassedOver(_)
            | Self::OtherDevice { .. }
            | Self::MetricsLack(_)
            | Self::AllWarmUp { .. }
            | Self::WentBack(_)
            | Self::LostDigits(_)
            | Self::Worse(_)
            | Self::NotDrawn(_)
            | Self::NoDensity(_)
            | Self::Failed(_) => true,
            Self::Chose(_)
            | Self::NoCheckpoint
            | Self::BeganCycle(_)
            | Self::LeftOut(_)
            | Self::Ended(_)
            | Self::AlreadyFinished(_) => false,
        }
    }
}

/// A run that is to be resumed and has nothing left to do.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AlreadyFinished {
    /// The run folder.
    pub folder: PathBuf,
    /// Its settings.
    pub settings: PathBuf,
    /// Its model.
    pub model: PathBuf,
    /// Epochs of the settings.
    pub epochs: u64,
    /// How it ended, where that is known.
    pub ending: Option<Ending>,
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

    fn told(&mut self, told: &Told) {
        add(if told.is_warning() { &mut self.warnings } else { &mut self.notes }, &told.to_string());
        self.inner.told(told);
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
    pub config: &'a Resolved,
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

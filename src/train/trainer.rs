//! Training as a library has it: a model, a data set and a few settings in, a trained model out. No files.

use std::ops::ControlFlow;

use super::dataset::Dataset;
use super::decision::Kept;
use super::density;
use super::epoch_report::EpochReport;
use super::train_config::{TrainConfig, as_argument};
use super::training_loop::{Progress, TrainingLoop};
use crate::config::{CouplingKind, Memory};
use crate::error::{Error, Result};
use crate::flow::Flow;
use crate::plan::{Kind, Transform};

/// Trains a flow on a data set.
///
/// The flow is borrowed mutably as long as its trainer lives, so nothing else can change its weights, or look at them
/// before they are those of the model that is kept: that is what [`Trainer::fit`] and [`Trainer::finish`] leave in it.
/// A trainer that is dropped before leaves the weights of its last step.
///
/// ```
/// use std::ops::ControlFlow;
/// use hintflow::{Dataset, Engine, TrainConfig, Trainer};
///
/// # fn main() -> hintflow::Result<()> {
/// # let rows: Vec<f32> = (0..400).map(|i| ((i * 37 % 101) as f32).sin()).collect();
/// let data = Dataset::from_rows(&rows, 2).build()?; // rows of two columns, one after the other
/// let mut flow = data.flow().blocks(2).width(16).build(&Engine::cpu()?)?;
/// let fitted = Trainer::new(&mut flow, &data, TrainConfig::default().epochs(3))?.fit(|_| ControlFlow::Continue(()))?;
/// assert_eq!(fitted.epochs, 3);
/// let density = flow.log_prob(&rows)?;
/// # assert!(density.iter().all(|d| d.is_finite()));
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Trainer<'a> {
    flow: &'a Flow,
    data: &'a Dataset,
    steps: TrainingLoop<'a>,
    noise: f64,
}

/// What [`Trainer::fit`] tells on its way.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Event<'e> {
    /// A loss was read, which is once in ten steps.
    Step(&'e Progress),
    /// An epoch is over.
    Epoch(&'e EpochReport),
    /// The loss was no longer a number, or exploded: the training went back to its last good model and on with half the
    /// rate. In words, with the reason.
    WentBack(&'e str),
}

/// The model that a training leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Fitted {
    /// The epoch after which it was the model, counted from 1; 0: the initial weights.
    pub kept_epoch: u64,
    /// Epochs that were trained.
    pub epochs: u64,
    /// Mean loss of the validation rows in nats, in the units of the networks; none without such rows.
    pub validation_loss: Option<f64>,
    /// Mean log-density of the validation rows per column in nats, in the user's units, without the constant of the
    /// normal distribution (the paper's LL).
    pub ll: Option<f64>,
    /// Whether the training ended before its last epoch: patience was lost, or the caller ended it.
    pub stopped_early: bool,
}

impl<'a> Trainer<'a> {
    /// Compiles the training step and puts the rows on the device.
    ///
    /// # Errors
    /// [`Error::Argument`] if the flow was not made for this data ([`Dataset::flow`],
    /// [`crate::train::DatasetBuilder::columns_of`]), [`Error::Argument`] if a setting is out of range for it,
    /// [`Error::NotFinite`] if a weight of the flow is no number,
    /// [`Error::OutOfMemory`] or [`Error::UnsupportedLimit`] if the device cannot hold both.
    pub fn new(flow: &'a mut Flow, data: &'a Dataset, config: TrainConfig) -> Result<Self> {
        let flow: &'a Flow = flow;
        if (flow.units(), flow.units_of_conditions()) != (&data.x, &data.y) {
            let what = "was not made for this data: its columns have other names, bounds or transforms; make the flow by \
                        `Dataset::flow`, or the data set with `DatasetBuilder::columns_of` the flow";
            return Err(Error::argument("flow", what));
        }
        let coupling = match flow.spec().coupling {
            Transform::Affine => CouplingKind::Affine,
            Transform::Spline(_) => CouplingKind::Spline,
        };
        let kind = flow.spec().kind;
        if kind == Kind::Inn && data.x.regression.is_some() {
            let what = "is an `inn`, which tells the conditions from the rows, but their regression on them is taken off \
                        these rows; make the data set with `regression(false)`";
            return Err(Error::argument("flow", what));
        }
        let settings = data.resolve(&config.settings(kind, coupling)?, kind, coupling).map_err(as_argument)?;
        if kind == Kind::Inn && settings.memory != Memory::Stored {
            return Err(Error::argument(
                "memory",
                "must be `Memory::Stored` of an `inn`, whose inverse is trained too",
            ));
        }
        let noise = settings.noise;
        Ok(Self { flow, data, steps: TrainingLoop::new(flow, settings, data)?, noise })
    }

    /// Trains one epoch; none is left if this returns `None`.
    ///
    /// # Errors
    /// [`Error::Diverged`] if the loss is no longer a number and no retries are left, [`Error::DeviceLost`].
    pub fn epoch(&mut self) -> Result<Option<EpochReport>> {
        if self.steps.is_done() {
            return Ok(None);
        }
        while !self.steps.at_epoch_end() {
            self.steps.step()?;
        }
        self.steps.finish_epoch().map(Some)
    }

    /// Trains until the end, or until `on` breaks, and leaves the model that is kept in the flow.
    ///
    /// # Errors
    /// Those of [`Trainer::epoch`]. The flow then has the weights of the last step.
    pub fn fit(mut self, mut on: impl FnMut(Event<'_>) -> ControlFlow<()>) -> Result<Fitted> {
        while !self.steps.is_done() {
            // An error of an earlier call may have left the end of an epoch undone.
            if !self.steps.at_epoch_end() && self.steps.step()? && on(Event::Step(&self.steps.progress())).is_break() {
                break;
            }
            if self.steps.at_epoch_end() {
                let report = self.steps.finish_epoch()?;
                if on(Event::Epoch(&report)).is_break() {
                    break;
                }
            }
            if let Some(text) = self.steps.went_back()
                && on(Event::WentBack(&text)).is_break()
            {
                break;
            }
        }
        self.finish()
    }

    /// Ends the training here: leaves the model that is kept in the flow, and says which it is.
    ///
    /// # Errors
    /// [`Error::DeviceLost`].
    pub fn finish(mut self) -> Result<Fitted> {
        let by_caller = !self.steps.is_done();
        let Kept { epoch, epochs, test_loss, ll, stopped_early, .. } = self.steps.finish()?;
        density::remember(self.flow, self.data, self.noise)?;
        Ok(Fitted {
            kept_epoch: epoch,
            epochs,
            validation_loss: test_loss,
            ll,
            stopped_early: stopped_early || by_caller,
        })
    }
}

//! Back to another model: where a training diverges, and where a further cycle of the learning rate begins.

use super::TrainingLoop;
use crate::engine::{Skips, Values};
use crate::error::{Error, Result};
use crate::train::decision::{BestEpoch, GoBackTo, Retries};

/// A training that has diverged and gone back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct WentBack {
    /// What was seen.
    pub seen: Diverged,
    /// The epoch, counted from 1, whose model it goes on from; 0: the beginning.
    pub to: u64,
    /// How often it went back.
    pub retries: Retries,
    /// How often it may.
    pub most: u64,
}

/// How it was seen that a training has diverged.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Diverged {
    /// This loss, or a weight, in this step.
    InStep(f32, u64),
    /// This loss of the held-out rows after this epoch, counted from 1.
    InEpoch(f64, u64),
}

/// A further cycle of the learning rate that began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BeganCycle {
    /// The cycle, counted from 1.
    pub cycle: u64,
    /// How many there are.
    pub of: u64,
    /// Its first epoch, counted from 1.
    pub epoch: u64,
    /// The epoch whose model it goes on from; none where that is the last.
    pub from: Option<BestEpoch>,
    /// Whether there is decay, which is less in it.
    pub decays: bool,
}

impl TrainingLoop<'_> {
    /// That the training has diverged and gone back, once, where it has since the last call.
    pub(crate) fn retried(&mut self) -> Option<WentBack> {
        self.went_back.take()
    }

    /// The same as a sentence, for those who only pass it on.
    pub(crate) fn went_back(&mut self) -> Option<String> {
        self.retried().map(|back| back.to_string())
    }

    /// That a further cycle has begun, once, where one has since the last call.
    pub(crate) fn began_cycle(&mut self) -> Option<BeganCycle> {
        self.began_cycle.take()
    }

    /// Goes back to the last good model and the beginning of the epoch, where the training has diverged; with `error`
    /// where there are no retries left.
    pub(in crate::train) fn retry(&mut self, error: Error) -> Result<()> {
        let Error::Diverged { step, loss, .. } = error else { return Err(error) };
        let beginning = self.position.epoch * self.batches;
        let Some(good) = self.course.diverged(&self.rules, beginning) else { return Err(error) };
        self.begin_epoch();
        self.go_back(good, Diverged::InStep(loss, step))
    }

    /// Takes the last good model.
    pub(super) fn go_back(&mut self, good: GoBackTo, seen: Diverged) -> Result<()> {
        let (to, weights) = match good {
            GoBackTo::Best(best) => (best.epoch, &self.best),
            // Of an epoch that has exploded, the model before it is remembered.
            GoBackTo::Last => (self.good_epoch, &self.good),
        };
        self.begin_from(weights)?;
        self.skips.in_a_row = 0;
        self.flow.with_session(|session| {
            let skips = session.skips()?;
            session.set_skips(Skips { in_a_row: 0, ..skips })
        })?;
        self.went_back = Some(WentBack { seen, to, retries: self.course.retries, most: self.rules.retries });
        Ok(())
    }

    /// Takes the model that a further cycle, counted from 0, begins with: that of the best epoch, or the present one.
    pub(super) fn begin_cycle(&mut self, cycle: u64, best: Option<BestEpoch>) -> Result<()> {
        match best {
            Some(_) => self.begin_from(&self.best)?,
            None => self.begin_from(&self.model()?)?,
        }
        self.began_cycle = Some(BeganCycle {
            cycle: cycle + 1,
            of: self.rules.schedule.cycles,
            epoch: self.position.epoch + 1,
            from: best,
            decays: self.adam.decay > 0.0,
        });
        Ok(())
    }

    /// Remembers the model as the last good one, where the training may go back to it.
    pub(super) fn remember(&mut self) -> Result<()> {
        self.good = if self.course.needs_last(&self.rules) { self.model()? } else { Vec::new() };
        self.good_epoch = self.position.epoch;
        Ok(())
    }

    /// Whether all weights, moments and averages are numbers.
    pub(super) fn is_finite(&self) -> Result<bool> {
        let averages = self.averages().then_some(Values::Averages);
        for values in [Values::Weights, Values::FirstMoments, Values::SecondMoments].into_iter().chain(averages) {
            let array = self.flow.with_session(|session| session.read(values))?;
            if !array.iter().all(|v| v.is_finite()) {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

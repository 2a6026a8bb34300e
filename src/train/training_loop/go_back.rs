//! Back to another model: where a training diverges, and where a further cycle of the learning rate begins.

use super::TrainingLoop;
use crate::engine::{Skips, Values};
use crate::error::{Error, Result};
use crate::train::decision::{BestEpoch, CLEARLY, Good};

impl TrainingLoop<'_> {
    /// Says, once, that the training has diverged and gone back, where it has since the last call.
    pub(crate) fn went_back(&mut self) -> Option<String> {
        self.went_back.take()
    }

    /// Says, once, that a further cycle has begun, where one has since the last call.
    pub(crate) fn began_cycle(&mut self) -> Option<String> {
        self.began_cycle.take()
    }

    /// Goes back to the last good model and the beginning of the epoch, where the training has diverged; with `error`
    /// where there are no retries left.
    pub(in crate::train) fn retry(&mut self, error: Error) -> Result<()> {
        let Error::Diverged { step, loss, .. } = error else { return Err(error) };
        let beginning = self.position.epoch * self.batches;
        let Some(good) = self.course.diverged(&self.rules, beginning) else { return Err(error) };
        self.begin_epoch();
        self.go_back(good, &format!("the loss became {loss} at step {step}"))
    }

    /// Takes the last good model.
    pub(super) fn go_back(&mut self, good: Good, why: &str) -> Result<()> {
        let (epoch, weights) = match good {
            Good::Best(best) => (best.epoch, &self.best),
            // Of an epoch that has exploded, the model before it is remembered.
            Good::Last => (self.good_epoch, &self.good),
        };
        self.begin_from(weights)?;
        self.skips.in_a_row = 0;
        self.flow.with_session(|session| {
            let skips = session.skips()?;
            session.set_skips(Skips { in_a_row: 0, ..skips })
        })?;
        let from = if epoch == 0 { "the beginning".into() } else { format!("the model of epoch {epoch}") };
        let retries = self.course.retries;
        self.went_back = Some(format!(
            "{why}: went back to {from} and on with {} of the learning rate (retry {} of {}, train.retries)",
            retries.factor(),
            retries.count,
            self.rules.retries
        ));
        Ok(())
    }

    /// Takes the model that a further cycle, counted from 0, begins with: that of the best epoch, or the present one.
    pub(super) fn begin_cycle(&mut self, cycle: u64, best: Option<BestEpoch>) -> Result<()> {
        match best {
            Some(_) => self.begin_from(&self.best)?,
            None => self.begin_from(&self.model()?)?,
        }
        let from = match best {
            Some(best) => format!("goes on from the model of epoch {} (test loss {:.4})", best.epoch, best.test_loss),
            None => "goes on from the last model".into(),
        };
        let decay = if self.adam.decay > 0.0 { ", with a ninth of the decay" } else { "" };
        let has_to = match best {
            Some(_) => format!("; it has to be better by {CLEARLY} nats a row"),
            None => String::new(),
        };
        self.began_cycle = Some(format!(
            "cycle {} of {} of the learning rate begins with epoch {}: it {from}{decay}{has_to} (train.cycles)",
            cycle + 1,
            self.rules.schedule.cycles,
            self.position.epoch + 1
        ));
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

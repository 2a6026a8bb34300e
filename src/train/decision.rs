//! What follows when an epoch ends, or when a training has diverged: one state machine, with plain numbers in and an
//! [`AfterEpoch`] out. It reads no device, writes no file and says nothing; [`super::training_loop`] carries out what it
//! decides.
//!
//! The state is a [`Course`]: the best epoch so far, the cool-down if one has begun, and how often the training went
//! back. All of it is in a checkpoint, so a training that is resumed decides as one that never stopped. At the end of an
//! epoch, in this order:
//!
//! 1. Its model is the best so far, or not. One of a further cycle of the learning rate has to be [`CLEARLY`] better than
//!    one of a cycle before.
//! 2. If the epoch has destroyed the model, the training goes back to the last good one and on with half the rate. If no
//!    retries are left (`train.retries`) and no epoch was good, it fails.
//! 3. If patience is lost (`train.patience`), it goes back to the best model and cools down (`train.cooldown`). A model
//!    that overfits does so before its schedule has come to the small rates that settle it: waiting for them makes it
//!    worse, to end at the best epoch leaves it unsettled.
//! 4. If a further cycle of the learning rate begins (`train.cycles`), it takes the best model.
//! 5. It is over, or goes on.
//!
//! The last good model is that of the best epoch if its weights are remembered, else that of the last epoch, or of the
//! beginning. Whenever it is seen that a loss or a weight is no number, the training goes back to the beginning of its
//! epoch, so that it does not matter for what follows when that was.

use serde::{Deserialize, Serialize};

use crate::config::{Keep, Train};
use crate::optim::Schedule;

/// Nats per row by which a cycle of less decay has to be better than the one before: more than smooth tables of 500 rows
/// gained by luck, less than others gained by learning more. Of few rows the least of many losses is a lucky one.
pub(crate) const CLEARLY: f64 = 0.05;

/// A held-out loss that is worse than the best by more nats per column than this means that the model is destroyed.
/// Standardised rows that are normal have half a nat per column, and an epoch at a good rate costs a few at most.
const EXPLOSION: f64 = 100.0;

/// What the settings say of all this.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Rules {
    /// Epochs in all, at most.
    pub epochs: u64,
    /// Epochs without a better one after which patience is lost; 0: never.
    pub patience: u64,
    /// Epochs of a cool-down; 0: there is none, and a training without patience is over.
    pub cooldown: u64,
    /// How often a training may go back.
    pub retries: u64,
    /// Which model is left at the end.
    pub keep: Keep,
    /// Whether the weights of the best epoch are remembered.
    pub goes_back: bool,
    /// When a further cycle of the learning rate begins.
    pub schedule: Schedule,
}

impl From<&Train> for Rules {
    fn from(train: &Train) -> Self {
        Self {
            epochs: train.epochs,
            patience: train.patience,
            cooldown: train.cooldown,
            retries: train.retries,
            keep: train.keep,
            goes_back: train.goes_back(),
            schedule: train.schedule(),
        }
    }
}

/// The best epoch so far by the mean loss of the held-out rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct BestEpoch {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Mean loss of the held-out rows after it, in the units of the networks.
    pub test_loss: f64,
    /// Their LL, as in [`super::EpochReport::ll`].
    pub ll: f64,
}

/// The end of a training that lost its patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cooldown {
    /// Whole epochs that were done when it began.
    pub start: u64,
    /// The epoch, counted from 1, whose model it went back to.
    pub from: u64,
}

/// How often a training went back, and since when it is on its way again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retries {
    /// Number of times.
    pub count: u64,
    /// Steps that were done where it went on the last time.
    pub step: u64,
}

impl Cooldown {
    /// The number of epochs after which the training is over.
    pub(super) fn end(self, rules: &Rules) -> u64 {
        self.start.saturating_add(rules.cooldown).min(rules.epochs)
    }
}

impl Retries {
    /// What the learning rate of the schedule is multiplied with: half for each time.
    pub(crate) fn factor(self) -> f64 {
        0.5f64.powf(self.count as f64)
    }
}

/// An epoch that has ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Ended {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Steps done since the beginning of the training.
    pub step: u64,
    /// Mean loss of the held-out rows and their LL, if rows are held out.
    pub score: Option<(f64, f64)>,
    /// The least training loss that was read in it; infinite if none was, minus infinite if it is not known.
    pub least_loss: f64,
    /// Columns of a row.
    pub columns: usize,
}

/// What an epoch that has ended means, and what to do about it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct AfterEpoch {
    /// Whether its model is the best so far.
    pub is_best: bool,
    /// The model to go back to first, as this one is destroyed; the rate is less from here on.
    pub retry: Option<GoBackTo>,
    /// What comes then.
    pub next: Next,
}

/// What comes after an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Next {
    /// The next one.
    Epoch,
    /// Epochs that cool down from the best model, with moments at zero.
    CoolDown(Cooldown),
    /// The first epoch of this cycle of the learning rate, counted from 0: from the best model, if there is one with
    /// weights, else from the present one; with moments at zero.
    Cycle(u64, Option<BestEpoch>),
    /// Nothing.
    Over,
    /// Nothing: it has diverged and there is no way back.
    Fails,
}

/// The last good model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum GoBackTo {
    /// That of the best epoch.
    Best(BestEpoch),
    /// That after the last epoch whose end was good, or of the beginning.
    Last,
}

/// The state of the machine.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Course {
    /// The best epoch so far, if rows are held out.
    pub best: Option<BestEpoch>,
    /// The cool-down, if patience is lost.
    pub cooldown: Option<Cooldown>,
    /// How often it has diverged and gone back.
    pub retries: Retries,
}

impl Course {
    /// An epoch has ended: what follows. Nothing has changed if it [`Next::Fails`].
    pub(super) fn after(&mut self, rules: &Rules, ended: &Ended) -> AfterEpoch {
        let is_best = ended.score.is_some_and(|(loss, _)| self.is_beaten(rules, ended.epoch, loss));
        if let Some((test_loss, ll)) = ended.score.filter(|_| is_best) {
            self.best = Some(BestEpoch { epoch: ended.epoch, test_loss, ll });
        }
        let mut retry = None;
        if exploded(self.best, ended) {
            retry = self.diverged(rules, ended.step);
            if retry.is_none() && self.best.is_none() {
                return AfterEpoch { is_best, retry, next: Next::Fails };
            }
        }
        AfterEpoch { is_best, retry, next: self.next(rules, ended.epoch) }
    }

    /// The training has diverged: the model to go back to, with the beginning of an epoch at `step`; none if it may not
    /// go back again.
    pub(super) fn diverged(&mut self, rules: &Rules, step: u64) -> Option<GoBackTo> {
        if !self.may_retry(rules) {
            return None;
        }
        self.retries = Retries { count: self.retries.count + 1, step };
        Some(self.remembered(rules).map_or(GoBackTo::Last, GoBackTo::Best))
    }

    fn next(&mut self, rules: &Rules, epochs: u64) -> Next {
        if self.cooldown.is_none() {
            let cools = rules.cooldown > 0 && epochs < rules.epochs && self.has_lost_patience(rules, epochs);
            if let Some(best) = self.best.filter(|_| cools) {
                let cooldown = Cooldown { start: epochs, from: best.epoch };
                self.cooldown = Some(cooldown);
                return Next::CoolDown(cooldown);
            }
            // Also where patience is lost and nothing cools down: the model that is left is the best one then.
            if epochs > 0 && epochs < rules.epochs && rules.schedule.start_of(epochs) == epochs {
                return Next::Cycle(rules.schedule.cycle(epochs), self.remembered(rules));
            }
        }
        if self.is_over(rules, epochs) { Next::Over } else { Next::Epoch }
    }

    /// Whether a loss after an epoch, counted from 1, is better than the best so far. One that is no number is not.
    fn is_beaten(&self, rules: &Rules, epoch: u64, loss: f64) -> bool {
        let Some(best) = self.best else { return loss.is_finite() };
        let relaxed = rules.schedule.cycle(best.epoch - 1) < self.cycle(rules, epoch - 1);
        loss + if relaxed { CLEARLY } else { 0.0 } < best.test_loss
    }

    /// The cycle whose decay is in effect in an epoch, counted from 0: of a cool-down, that of the epoch that it went back
    /// to.
    pub(super) fn cycle(&self, rules: &Rules, epoch: u64) -> u64 {
        rules.schedule.cycle(self.cooldown.map_or(epoch, |cooldown| cooldown.from.saturating_sub(1)))
    }

    /// Whether there are retries left.
    pub(super) fn may_retry(&self, rules: &Rules) -> bool {
        self.retries.count < rules.retries
    }

    /// The best epoch, where its weights are remembered.
    fn remembered(&self, rules: &Rules) -> Option<BestEpoch> {
        self.best.filter(|_| rules.goes_back)
    }

    /// Whether a retry would take the model of the last epoch, so that it is to be remembered.
    pub(super) fn needs_last(&self, rules: &Rules) -> bool {
        self.may_retry(rules) && self.remembered(rules).is_none()
    }

    /// Whether `train.patience` epochs have passed since the best one, when `epochs` are done.
    fn has_lost_patience(&self, rules: &Rules, epochs: u64) -> bool {
        rules.patience > 0 && self.best.is_some_and(|best| epochs.saturating_sub(best.epoch) >= rules.patience)
    }

    /// The epochs that the training has in all, as far as is known after `epochs` of them.
    pub(super) fn end(&self, rules: &Rules, epochs: u64) -> u64 {
        match self.cooldown {
            Some(cooldown) => cooldown.end(rules),
            None if rules.cooldown == 0 && self.has_lost_patience(rules, epochs) => epochs,
            None => rules.epochs,
        }
    }

    /// Whether nothing is left of the training after `epochs` epochs.
    pub(super) fn is_over(&self, rules: &Rules, epochs: u64) -> bool {
        epochs >= self.end(rules, epochs)
    }

    /// Steps that were done when Adam's moments were zero the last time: before the epoch, counted from 0, of a cycle, a
    /// cool-down or a retry.
    pub(super) fn begun(&self, rules: &Rules, epoch: u64, batches: u64) -> u64 {
        let start = self.cooldown.map_or_else(|| rules.schedule.start_of(epoch), |cooldown| cooldown.start);
        (start * batches).max(self.retries.step)
    }

    /// The epoch whose model is left at the end, where that is not the last.
    pub(super) fn leaves(&self, rules: &Rules) -> Option<BestEpoch> {
        self.best.filter(|_| rules.keep == Keep::Best)
    }

    /// The model that is left after `epochs` epochs. `last` are loss and LL of the last model, for where that is left.
    pub(super) fn kept(&self, rules: &Rules, epochs: u64, last: Option<(f64, f64)>) -> Kept {
        let stopped_early = epochs < rules.epochs && self.is_over(rules, epochs);
        let (epoch, scores) = match self.leaves(rules) {
            Some(best) => (best.epoch, Some((best.test_loss, best.ll))),
            None => (epochs, last),
        };
        let (test_loss, ll) = scores.unzip();
        Kept { epoch, epochs, test_loss, ll, stopped_early, cooldown: self.cooldown }
    }
}

/// Whether an epoch has destroyed the model: every loss that was read in it, and that of the held-out rows, are far from
/// the best. One huge row among either spoils some batches or the held-out rows, but not all. If there is no best one
/// yet, that of the held-out rows must be no finite number: rows that are not standardised may begin with any other.
fn exploded(best: Option<BestEpoch>, ended: &Ended) -> bool {
    let Some((test_loss, _)) = ended.score else { return false };
    let bound = best.map_or(0.0, |best| best.test_loss) + EXPLOSION * ended.columns as f64;
    let test_exploded = match best {
        Some(_) => test_loss > bound || test_loss.is_nan(),
        None => !test_loss.is_finite(),
    };
    ended.least_loss > bound && test_exploded
}

/// The model that a training leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Kept {
    /// The epoch after which it was the model, counted from 1.
    pub epoch: u64,
    /// Epochs that were trained.
    pub epochs: u64,
    /// Mean loss of the held-out rows, in the units of the networks, where there are any.
    pub test_loss: Option<f64>,
    /// Their LL, as in [`super::EpochReport::ll`].
    pub ll: Option<f64>,
    /// Whether the training ended before its last epoch, since none was better for `train.patience` epochs.
    pub stopped_early: bool,
    /// Where it cooled down before it ended.
    pub cooldown: Option<Cooldown>,
}

#[cfg(test)]
mod tests;

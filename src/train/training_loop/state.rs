//! Everything that a training goes on from, and how it is taken and given back.

use serde::{Deserialize, Serialize};

use super::TrainingLoop;
use super::averages::averaged;
use crate::config::Train;
use crate::counted::counted;
use crate::engine::{Skips, Values};
use crate::error::{Error, Result};
use crate::train::decision::{BestEpoch, Cooldown, Course, Retries};

/// How far a training has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Position {
    /// Whole epochs done.
    pub epoch: u64,
    /// Batches done of the epoch after these.
    pub batch: u64,
    /// Steps done since the beginning of the training.
    pub step: u64,
}

/// The best epoch so far, and its model.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Mean loss of the held-out rows after it, in the units of the networks.
    pub test_loss: f64,
    /// Their LL, as in [`crate::train::EpochReport::ll`].
    pub ll: f64,
    /// The weight arena after it; empty where neither the end nor a cool-down goes back to it ([`Train::goes_back`]).
    pub weights: Vec<f32>,
}

/// Everything that a training goes on from. With the settings and the data it determines all that follows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct State {
    /// The weight arena.
    pub weights: Vec<f32>,
    /// Adam's first moments.
    pub first_moments: Vec<f32>,
    /// Adam's second moments.
    pub second_moments: Vec<f32>,
    /// Moving averages of the trained weights; empty without `train.average`.
    pub averages: Vec<f32>,
    /// How far the training has come.
    pub position: Position,
    /// Sum of the losses read in the present epoch.
    pub loss_sum: f64,
    /// Number of these losses.
    pub losses: u64,
    /// The least of them; infinite where there are none, minus infinite where it is not known.
    pub least_loss: f64,
    /// The best epoch so far, where rows are held out.
    pub best: Option<Best>,
    /// Where patience is lost and the training cools down.
    pub cooldown: Option<Cooldown>,
    /// How often it has diverged and gone back.
    pub retries: Retries,
    /// The model it goes back to next, where that is not the best epoch's: the weight arena after the last epoch.
    pub good: Vec<f32>,
    /// Updates left out.
    pub skips: Skips,
}

impl State {
    /// What was decided so far.
    pub(in crate::train) fn course(&self) -> Course {
        let best = self.best.as_ref().map(|&Best { epoch, test_loss, ll, .. }| BestEpoch { epoch, test_loss, ll });
        Course { best, cooldown: self.cooldown, retries: self.retries }
    }

    /// Whether nothing is left to do, as [`TrainingLoop::is_done`] has it.
    pub(in crate::train) fn is_done(&self, settings: &Train) -> bool {
        self.course().is_over(&settings.into(), self.position.epoch)
    }

    /// The weight arena of the present model: with the averages where there are any.
    pub(in crate::train) fn model(&self) -> Vec<f32> {
        averaged(self.weights.clone(), &self.averages)
    }
}

impl TrainingLoop<'_> {
    /// Everything that this training goes on from.
    ///
    /// # Errors
    /// [`Error::Diverged`] if a weight or moment is not finite: such a state must not be kept.
    /// [`Error::DeviceLost`].
    pub(crate) fn state(&self) -> Result<State> {
        let read = |values| self.flow.with_session(|session| session.read(values));
        let Course { best, cooldown, retries } = self.course;
        let best =
            best.map(|BestEpoch { epoch, test_loss, ll }| Best { epoch, test_loss, ll, weights: self.best.clone() });
        let state = State {
            weights: read(Values::Weights)?,
            first_moments: read(Values::FirstMoments)?,
            second_moments: read(Values::SecondMoments)?,
            averages: if self.averages() { read(Values::Averages)? } else { Vec::new() },
            position: self.position,
            loss_sum: self.loss_sum,
            losses: self.losses,
            least_loss: self.least_loss,
            best,
            cooldown,
            retries,
            good: self.good.clone(),
            skips: self.flow.with_session(|session| session.skips())?,
        };
        let best = state.best.as_ref().map_or(&[][..], |best| &best.weights[..]);
        let all = [&state.weights[..], &state.first_moments, &state.second_moments, &state.averages, best, &state.good];
        if all.into_iter().flatten().all(|v| v.is_finite()) { Ok(state) } else { Err(self.diverged(f32::NAN)) }
    }

    /// Goes on from a state of the same model, settings and data.
    ///
    /// # Errors
    /// [`Error::Shape`] if the state is that of another model, [`Error::Config`] if its position is beyond the
    /// end of the training.
    pub(crate) fn restore(&mut self, state: &State) -> Result<()> {
        let layout = &self.flow.plan().layout;
        if let Some(best) = &state.best {
            let expected = if self.settings.goes_back() { layout.len() } else { 0 };
            if best.weights.len() != expected {
                let got = best.weights.len();
                return Err(Error::Shape { what: "weights of the best epoch".into(), expected, got });
            }
            if best.epoch > state.position.epoch {
                let what = format!("epoch {} is the best of {}", best.epoch, counted(state.position.epoch, "epoch"));
                return Err(Error::config("train.epochs", what));
            }
        }
        if let Some(Cooldown { start, from }) =
            state.cooldown.filter(|c| c.start > state.position.epoch || c.from > c.start)
        {
            let what = format!(
                "a cool-down from epoch {from} after {} cannot be when {} are done",
                counted(start, "epoch"),
                state.position.epoch
            );
            return Err(Error::config("train.cooldown", what));
        }
        let averages = if self.averages() { layout.trained } else { 0 };
        let good = if state.good.is_empty() { 0 } else { layout.len() };
        for (what, array, expected) in [
            ("weights", &state.weights, layout.len()),
            ("first moments", &state.first_moments, layout.trained),
            ("second moments", &state.second_moments, layout.trained),
            ("averages of the weights", &state.averages, averages),
            ("weights to go back to", &state.good, good),
        ] {
            if array.len() != expected {
                return Err(Error::Shape { what: what.into(), expected, got: array.len() });
            }
        }
        let Position { epoch, batch, step } = state.position;
        let reached = epoch.checked_mul(self.batches).and_then(|steps| steps.checked_add(batch));
        if reached != Some(step) || epoch > self.settings.epochs || batch >= self.batches {
            let what = format!(
                "step {step} is not batch {batch} after {} of {}",
                counted(epoch, "epoch"),
                counted(self.batches, "batch")
            );
            return Err(Error::config("train.batches_per_epoch", what));
        }
        if state.retries.count > self.settings.retries || state.retries.step > step {
            let Retries { count, step: from } = state.retries;
            let what = format!("retry {count} from step {from} cannot be at step {step}");
            return Err(Error::config("train.retries", what));
        }
        self.flow.with_session(|session| {
            session.write(Values::Weights, &state.weights)?;
            session.write(Values::FirstMoments, &state.first_moments)?;
            session.write(Values::SecondMoments, &state.second_moments)?;
            if !state.averages.is_empty() {
                session.write(Values::Averages, &state.averages)?;
            }
            session.set_skips(state.skips)
        })?;
        self.position = state.position;
        (self.loss_sum, self.losses, self.least_loss) = (state.loss_sum, state.losses, state.least_loss);
        self.course = state.course();
        self.best = state.best.as_ref().map(|best| best.weights.clone()).unwrap_or_default();
        self.skips = state.skips;
        (self.went_back, self.began_cycle) = (None, None);
        self.remember()?;
        if !state.good.is_empty() {
            self.good = state.good.clone();
        }
        self.finished = false;
        self.ordered = None;
        Ok(())
    }
}

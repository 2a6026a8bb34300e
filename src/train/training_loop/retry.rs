//! What a training does that diverges: back to its last good model, and on from there with half the rate.
//!
//! The last good model is the best epoch's where its weights are remembered, else that of the last epoch, or of the
//! beginning. Whenever it is seen that the loss or a weight is no number, the training goes back to the beginning of its
//! epoch, so that it does not matter for what follows when that was; at the end of an epoch all weights are looked at.

use serde::{Deserialize, Serialize};

use super::TrainingLoop;
use crate::engine::{Skips, Values};
use crate::error::{Error, Result};
use crate::train::best::Best;

/// How often a training went back, and since when it is on its way again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Retries {
    /// Number of times.
    pub count: u64,
    /// Steps that were done where it went on the last time.
    pub step: u64,
}

impl Retries {
    /// What the learning rate of the schedule is multiplied with: half for each time.
    pub(crate) fn factor(self) -> f64 {
        0.5f64.powf(self.count as f64)
    }
}

/// Nats per column by which a loss is worse than the best that is no longer one of a model: standardised rows that are
/// taken for what they are, normal, have one of half a nat, and one epoch with a rate that is good costs a few at most.
const EXPLOSION: f64 = 100.0;

/// Whether an epoch has destroyed the model: every loss that was read in it, and that of the held-out rows, are far from
/// the best. One huge row among either spoils some batches or the held-out rows, but not all. If there is no best one
/// yet, that of the held-out rows must be no finite number: rows that are not standardised may begin with any other.
fn exploded(best: Option<&Best>, least_loss: f64, test_loss: Option<f64>, columns: usize) -> bool {
    let Some(test_loss) = test_loss else { return false };
    let bound = best.map_or(0.0, |best| best.test_loss) + EXPLOSION * columns as f64;
    let test_exploded = match best {
        Some(_) => test_loss > bound || test_loss.is_nan(),
        None => !test_loss.is_finite(),
    };
    least_loss > bound && test_exploded
}

impl TrainingLoop<'_> {
    /// Says, once, that the training has diverged and gone back, where it has since the last call.
    pub(crate) fn went_back(&mut self) -> Option<String> {
        self.went_back.take()
    }

    /// Goes back to the last good model and the beginning of the epoch, where the training has diverged; with `error`
    /// where there are no retries left.
    pub(in crate::train) fn retry(&mut self, error: Error) -> Result<()> {
        match error {
            Error::Diverged { step, loss, .. } if self.may_retry() => {
                self.begin_epoch();
                self.go_back(&format!("the loss became {loss} at step {step}"))
            }
            error => Err(error),
        }
    }

    /// Whether there are retries left.
    pub(super) fn may_retry(&self) -> bool {
        self.retries.count < self.settings.retries
    }

    /// Whether the epoch that ends here has destroyed the model.
    pub(super) fn has_exploded(&self, test_loss: Option<f64>) -> bool {
        exploded(self.best.as_ref(), self.least_loss, test_loss, self.data.row_columns())
    }

    /// Takes the last good model and half the rate.
    pub(super) fn go_back(&mut self, why: &str) -> Result<()> {
        self.retries = Retries { count: self.retries.count + 1, step: self.position.step };
        let best = self.best.as_ref().filter(|best| !best.weights.is_empty());
        let (epoch, weights) = match best {
            Some(best) => (best.epoch, &best.weights),
            // Of an epoch that has exploded, the model before it is remembered.
            None => (self.good_epoch, &self.good),
        };
        self.begin_from(weights)?;
        self.skips.in_a_row = 0;
        self.flow.with_session(|session| {
            let skips = session.skips()?;
            session.set_skips(Skips { in_a_row: 0, ..skips })
        })?;
        let from = if epoch == 0 { "the beginning".into() } else { format!("the model of epoch {epoch}") };
        self.went_back = Some(format!(
            "{why}: went back to {from} and on with {} of the learning rate (retry {} of {}, train.retries)",
            self.retries.factor(),
            self.retries.count,
            self.settings.retries
        ));
        Ok(())
    }

    /// Remembers the model as the last good one, where the training may go back to it.
    pub(super) fn remember(&mut self) -> Result<()> {
        let has_best = self.best.as_ref().is_some_and(|best| !best.weights.is_empty());
        self.good = if self.may_retry() && !has_best { self.model()? } else { Vec::new() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_model_that_is_gone_has_exploded() {
        let best = Best { epoch: 3, test_loss: -40.0, ll: 0.0, weights: vec![] };
        let told = |least, test| exploded(Some(&best), least, test, 4);
        assert!(told(1e6, Some(1e6)) && told(361.0, Some(f64::NAN)) && told(361.0, Some(f64::INFINITY)));
        // A huge row among the held-out ones, among those of some batches, or an epoch that is merely bad.
        assert!(!told(-39.0, Some(1e30)) && !told(-39.0, Some(f64::NAN)) && !told(1e6, Some(-39.0)));
        assert!(!told(359.0, Some(359.0)) && !told(f64::NEG_INFINITY, Some(1e6)));
        assert!(!told(1e6, None) && !exploded(None, 1e6, None, 4));
        // Without a best one.
        assert!(exploded(None, 1e6, Some(f64::NAN), 4) && exploded(None, 1e6, Some(f64::INFINITY), 4));
        assert!(!exploded(None, 1e6, Some(1e6), 4) && !exploded(None, 1.0, Some(f64::NAN), 4));
    }

    #[test]
    fn each_retry_halves_the_rate() {
        assert_eq!([0, 1, 3].map(|count| Retries { count, step: 7 }.factor()), [1.0, 0.5, 0.125]);
    }
}

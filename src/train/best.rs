//! The epoch after which the held-out rows were scored best, and whether a training waits for a better one in vain.

use crate::config::Train;

/// The best epoch so far by the mean loss of the held-out rows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Best {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Mean loss of the held-out rows after it, in the units of the networks.
    pub test_loss: f64,
    /// Their LL, as in [`super::EpochReport::ll`].
    pub ll: f64,
    /// The weight arena after it; empty where neither the end nor a cool-down goes back to it ([`Train::goes_back`]).
    pub weights: Vec<f32>,
}

impl Best {
    /// Whether a loss is better than the best so far. One that is no number is not.
    pub(super) fn is_beaten(best: Option<&Self>, test_loss: f64) -> bool {
        best.map_or(test_loss.is_finite(), |best| test_loss < best.test_loss)
    }

    /// Whether `train.patience` epochs have passed since the best one, when `epochs` are done.
    pub(super) fn was_long_ago(best: Option<&Self>, epochs: u64, settings: &Train) -> bool {
        settings.patience > 0 && best.is_some_and(|best| epochs.saturating_sub(best.epoch) >= settings.patience)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_affine_tables;

    fn best(epoch: u64, test_loss: f64) -> Best {
        Best { epoch, test_loss, ll: 0.0, weights: vec![] }
    }

    #[test]
    fn only_less_is_better() {
        assert!(
            Best::is_beaten(None, 5.0) && !Best::is_beaten(None, f64::NAN) && !Best::is_beaten(None, f64::INFINITY)
        );
        let before = best(3, 1.0);
        for (loss, better) in [(0.9, true), (1.0, false), (1.1, false), (f64::NAN, false)] {
            assert_eq!(Best::is_beaten(Some(&before), loss), better, "{loss}");
        }
    }

    #[test]
    fn patience_is_counted_from_the_best_epoch() {
        let mut train = for_affine_tables().train;
        train.patience = 4;
        let before = best(3, 1.0);
        let long_ago = |train: &Train| [3, 6, 7, 20].map(|epochs| Best::was_long_ago(Some(&before), epochs, train));
        assert_eq!(long_ago(&train), [false, false, true, true]);
        assert!(!Best::was_long_ago(None, 20, &train));
        train.patience = 0;
        assert_eq!(long_ago(&train), [false; 4]);
    }
}

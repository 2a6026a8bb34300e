//! The epoch after which the held-out rows were scored best, and whether a training waits for a better one in vain.

use super::cooldown::{Cooldown, is_over};
use crate::config::{Keep, Train};
use crate::error::Result;

/// The best epoch so far by the mean loss of the held-out rows.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The epoch, counted from 1.
    pub epoch: u64,
    /// Mean loss of the held-out rows after it, in the units of the networks.
    pub test_loss: f64,
    /// Their LL, as in [`super::EpochReport::ll`].
    pub ll: f64,
    /// The weight arena after it; empty where `train.keep` is [`Keep::Last`].
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

/// The model that a training leaves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Kept {
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

impl Kept {
    /// The model to keep after `epochs` epochs. `scores` are those of the last model: loss and LL.
    pub(super) fn of(
        epochs: u64,
        best: Option<&Best>,
        cooldown: Option<Cooldown>,
        settings: &Train,
        scores: impl FnOnce() -> Result<Option<(f64, f64)>>,
    ) -> Result<Self> {
        let stopped_early = epochs < settings.epochs && is_over(epochs, best, cooldown, settings);
        let (epoch, scores) = match best.filter(|_| settings.keep == Keep::Best) {
            Some(best) => (best.epoch, Some((best.test_loss, best.ll))),
            None => (epochs, scores()?),
        };
        let (test_loss, ll) = scores.unzip();
        Ok(Self { epoch, epochs, test_loss, ll, stopped_early, cooldown })
    }

    /// What there is to tell of it: nothing where it is simply the model after all epochs.
    pub(super) fn in_words(&self, settings: &Train) -> Option<String> {
        let Self { epoch, epochs, .. } = self;
        let mut parts = Vec::new();
        if let Some(Cooldown { start, from }) = self.cooldown {
            let back = if settings.keep == Keep::Best { "went back to its model and " } else { "" };
            parts.push(format!(
                "no better score of the held-out rows in {} epochs after epoch {from} (train.patience), so {back}cooled down in \
                 {} epochs ({})",
                start - from,
                epochs - start,
                if self.stopped_early { "train.cooldown" } else { "those that were left of train.epochs" }
            ));
        } else if self.stopped_early {
            parts.push(format!(
                "stopped after epoch {epochs} of {}: no better score of the held-out rows in {} epochs (train.patience)",
                settings.epochs, settings.patience
            ));
        }
        if let (Keep::Best, Some(loss)) = (settings.keep, self.test_loss) {
            parts.push(format!(
                "kept the model of epoch {epoch} of {epochs}, which scores the held-out rows best (test loss {loss:.4})"
            ));
        } else if self.stopped_early {
            parts.push("kept the last model (train.keep)".into());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;

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
        let mut train = for_tables().train;
        train.patience = 4;
        let before = best(3, 1.0);
        let long_ago = |train: &Train| [3, 6, 7, 20].map(|epochs| Best::was_long_ago(Some(&before), epochs, train));
        assert_eq!(long_ago(&train), [false, false, true, true]);
        assert!(!Best::was_long_ago(None, 20, &train));
        train.patience = 0;
        assert_eq!(long_ago(&train), [false; 4]);
    }

    #[test]
    fn words_say_which_model_and_why() {
        let mut train = for_tables().train;
        (train.epochs, train.patience, train.keep) = (50, 8, Keep::Best);
        let kept =
            Kept { epoch: 9, epochs: 17, test_loss: Some(1.5), ll: Some(-1.5), stopped_early: true, cooldown: None };
        let text = kept.in_words(&train).unwrap();
        assert!(text.contains("epoch 17 of 50") && text.contains("in 8 epochs") && text.contains("epoch 9"), "{text}");
        let cooled = Kept { cooldown: Some(Cooldown { start: 13, from: 5 }), ..kept }.in_words(&train).unwrap();
        assert!(cooled.contains("8 epochs after epoch 5") && cooled.contains("in 4 epochs"), "{cooled}");
        assert!(cooled.contains("kept the model of epoch 9 of 17") && !cooled.contains("stopped"), "{cooled}");
        let whole = Kept { epochs: 50, stopped_early: false, ..kept };
        assert!(!whole.in_words(&train).unwrap().contains("stopped"));
        train.keep = Keep::Last;
        assert!(kept.in_words(&train).unwrap().contains("last model"));
        assert_eq!(whole.in_words(&train), None);
        train.keep = Keep::Best;
        assert_eq!(Kept { test_loss: None, ..whole }.in_words(&train), None, "no rows are held out");
    }
}

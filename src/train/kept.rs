//! How the model that a training leaves is told.

use super::decision::{CLEARLY, Cooldown, Kept};
use crate::config::{Keep, Train};
use crate::counted::counted;

impl Kept {
    /// The cycles of the learning rate, from 0, that the model is of and that was the last. A cool-down belongs to the cycle of
    /// the model that it went back to.
    fn cycles(&self, settings: &Train) -> [u64; 2] {
        let schedule = settings.schedule();
        let (kept, last) = match self.cooldown {
            Some(Cooldown { start, from }) => (if self.epoch > start { from } else { self.epoch }, start),
            None => (self.epoch, self.epochs),
        };
        [kept, last].map(|epoch| schedule.cycle(epoch.saturating_sub(1)))
    }

    /// What there is to tell of it: nothing where it is simply the model after all epochs.
    pub(super) fn in_words(&self, settings: &Train) -> Option<String> {
        let Self { epoch, epochs, .. } = self;
        let mut parts = Vec::new();
        if let Some(Cooldown { start, from }) = self.cooldown {
            parts.push(format!(
                "no better score of the held-out rows in {} after epoch {from} (train.patience), so went back to its model and \
                 cooled down in {} ({})",
                count(start - from),
                count(epochs - start),
                if self.stopped_early { "train.cooldown" } else { "those that were left of train.epochs" }
            ));
        } else if self.stopped_early {
            parts.push(format!(
                "stopped after epoch {epochs} of {}: no better score of the held-out rows in {} (train.patience)",
                settings.epochs,
                count(settings.patience)
            ));
        }
        if let (Keep::Best, Some(loss)) = (settings.keep, self.test_loss) {
            let why = match self.cycles(settings) {
                [0, 0] => "which scores the held-out rows best".into(),
                [kept, last] if kept == last => {
                    format!("one of cycle {}, which scores the held-out rows best", kept + 1)
                }
                // A later one had to be clearly better, so that its losses may be lower.
                [kept, last] => format!(
                    "the best of cycle {}, as cycle {} was not better by {CLEARLY} nats a row (train.cycles)",
                    kept + 1,
                    last + 1
                ),
            };
            parts.push(format!("kept the model of epoch {epoch} of {epochs}, {why} (test loss {loss:.4})"));
        } else if !parts.is_empty() {
            parts.push("kept the last model (train.keep)".into());
        }
        (!parts.is_empty()).then(|| parts.join("; "))
    }
}

/// A number of epochs in words.
pub(super) fn count(epochs: u64) -> String {
    counted(epochs, "epoch")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_affine_tables;

    #[test]
    fn the_best_of_a_cycle_is_not_called_the_best_of_all() {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.keep, train.cycles) = (60, 0, Keep::Best, Some(2));
        let kept = |epoch, cooldown| {
            let kept = Kept { epoch, epochs: 60, test_loss: Some(1.5), ll: None, stopped_early: false, cooldown };
            kept.in_words(&train).unwrap()
        };
        let [first, second] = [28, 57].map(|epoch| kept(epoch, None));
        assert!(first.contains("epoch 28 of 60, the best of cycle 1") && first.contains("0.05 nats"), "{first}");
        assert!(first.contains("cycle 2") && !first.contains("scores the held-out rows best"), "{first}");
        assert!(second.contains("one of cycle 2, which scores the held-out rows best"), "{second}");
        // A cool-down in the epochs of the second that goes on from a model of the first.
        let cooled = kept(52, Some(Cooldown { start: 48, from: 28 }));
        assert!(cooled.contains("the best of cycle 1") && cooled.contains("cycle 2 was not better"), "{cooled}");
        let early = kept(33, Some(Cooldown { start: 29, from: 20 }));
        assert!(early.contains("which scores the held-out rows best") && !early.contains("cycle"), "{early}");
    }

    #[test]
    fn words_say_which_model_and_why() {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.keep) = (50, 8, Keep::Best);
        let kept =
            Kept { epoch: 9, epochs: 17, test_loss: Some(1.5), ll: Some(-1.5), stopped_early: true, cooldown: None };
        let text = kept.in_words(&train).unwrap();
        assert!(text.contains("epoch 17 of 50") && text.contains("in 8 epochs") && text.contains("epoch 9"), "{text}");
        let cooled = Kept { cooldown: Some(Cooldown { start: 13, from: 5 }), ..kept }.in_words(&train).unwrap();
        assert!(cooled.contains("8 epochs after epoch 5") && cooled.contains("in 4 epochs"), "{cooled}");
        assert!(cooled.contains("kept the model of epoch 9 of 17") && !cooled.contains("stopped"), "{cooled}");
        let once = Kept { cooldown: Some(Cooldown { start: 6, from: 5 }), epochs: 7, ..kept }.in_words(&train).unwrap();
        assert!(once.contains("in 1 epoch after") && once.contains("in 1 epoch ("), "{once}");
        let whole = Kept { epochs: 50, stopped_early: false, ..kept };
        assert!(!whole.in_words(&train).unwrap().contains("stopped"));
        train.keep = Keep::Last;
        assert!(kept.in_words(&train).unwrap().contains("last model"));
        for stopped_early in [true, false] {
            let cooldown = Some(Cooldown { start: 13, from: 5 });
            let text = Kept { cooldown, stopped_early, ..kept }.in_words(&train).unwrap();
            assert!(text.contains("went back to its model") && text.contains("last model"), "{text}");
        }
        assert_eq!(whole.in_words(&train), None);
        train.keep = Keep::Best;
        assert_eq!(Kept { test_loss: None, ..whole }.in_words(&train), None, "no rows are held out");
    }
}

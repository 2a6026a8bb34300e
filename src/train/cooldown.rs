//! What follows when patience runs out: back to the best model, and on from there while the learning rate falls.
//!
//! A model that overfits does so before its schedule has come to the small rates that settle it. Waiting for them makes
//! it worse, to end at the best epoch leaves it unsettled.

use serde::{Deserialize, Serialize};

use crate::config::Train;
use crate::optim::{Fall, Schedule};

use super::best::Best;

/// The end of a training that lost its patience.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Cooldown {
    /// Whole epochs that were done when it began.
    pub start: u64,
    /// The epoch, counted from 1, whose model it went back to.
    pub from: u64,
}

impl Cooldown {
    /// The one that is due after `epochs` epochs.
    pub(super) fn due(before: Option<Self>, best: Option<&Best>, epochs: u64, settings: &Train) -> Option<Self> {
        let lost_patience = Best::was_long_ago(best, epochs, settings);
        let due = before.is_none() && lost_patience && settings.cooldown > 0 && epochs < settings.epochs;
        best.filter(|_| due).map(|best| Self { start: epochs, from: best.epoch })
    }

    /// The number of epochs after which the training is over.
    pub(super) fn end(self, settings: &Train) -> u64 {
        self.start.saturating_add(settings.cooldown).min(settings.epochs)
    }

    /// The rate at `within`, from 0 to 1, of epoch `epoch`, counted from 0: falls as the schedule does, from that of the best epoch to `lr_final`, which the
    /// last epoch, or the last step of a cosine, has. Where the best epoch was one of the warm-up, from the rate after it: a rate as low as that of
    /// the warm-up would settle nothing.
    pub(super) fn rate(self, schedule: &Schedule, settings: &Train, epoch: u64, within: f64) -> f64 {
        let high = schedule.rate(self.from.saturating_sub(1).max(schedule.warmup_epochs)).max(schedule.lr_final);
        let epochs = self.end(settings).saturating_sub(self.start).max(1);
        let done = match schedule.fall {
            Fall::Exponential => (epoch - self.start + 1) as f64,
            Fall::Cosine => (epoch - self.start) as f64 + within,
        };
        schedule.fall.between(high, schedule.lr_final, done / epochs as f64)
    }
}

/// The epochs that a training has in all, as far as is known after `epochs` of them.
pub(super) fn end(epochs: u64, best: Option<&Best>, cooldown: Option<Cooldown>, settings: &Train) -> u64 {
    match cooldown {
        Some(cooldown) => cooldown.end(settings),
        None if settings.cooldown == 0 && Best::was_long_ago(best, epochs, settings) => epochs,
        None => settings.epochs,
    }
}

/// Whether nothing is left of a training after `epochs` epochs.
pub(super) fn is_over(epochs: u64, best: Option<&Best>, cooldown: Option<Cooldown>, settings: &Train) -> bool {
    epochs >= end(epochs, best, cooldown, settings)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::config::preset::for_affine_tables;

    fn settings() -> Train {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.cooldown, train.warmup_epochs) = (100, 5, 10, 0);
        (train.lr, train.lr_final) = (0.01, 0.0001);
        train
    }

    #[test]
    fn it_begins_once_when_patience_is_lost() {
        let mut train = settings();
        let best = Best { epoch: 20, test_loss: 1.0, ll: 0.0, weights: vec![] };
        let due = |before, epochs, train: &Train| Cooldown::due(before, Some(&best), epochs, train);
        let begun = Cooldown { start: 25, from: 20 };
        assert_eq!((due(None, 24, &train), due(None, 25, &train)), (None, Some(begun)));
        assert_eq!((due(Some(begun), 40, &train), Cooldown::due(None, None, 25, &train)), (None, None));
        assert_eq!(due(None, 100, &train), None, "there is no epoch left");
        train.cooldown = 0;
        assert_eq!(due(None, 25, &train), None);
    }

    #[test]
    fn the_rate_falls_from_that_of_the_best_epoch_to_the_last() {
        let train = settings();
        let schedule = train.schedule();
        let cooldown = Cooldown { start: 25, from: 20 };
        let rates: Vec<f64> = (25..35).map(|epoch| cooldown.rate(&schedule, &train, epoch, 0.5)).collect();
        assert!(rates[0] < schedule.rate(19) && rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
        assert_relative_eq!(rates[9], 0.0001, max_relative = 1e-12);
        // Nor does it stay at the rate of the warm-up, or rise from it.
        let warm = Train { warmup_epochs: 3, warmup_factor: 0.001, ..settings() };
        let cooled = |from, train: &Train| Cooldown { start: 9, from }.rate(&train.schedule(), train, 9, 0.0);
        assert_eq!([1, 3].map(|from| cooled(from, &warm)), [cooled(4, &train); 2]);
        assert!(cooled(4, &train) > cooled(5, &train));
        let all_warm = Train { warmup_epochs: 1000, ..warm };
        assert_eq!(cooled(4, &all_warm), all_warm.lr_final);
        // Where fewer epochs are left, it is quicker.
        let late = Cooldown { start: 96, from: 91 };
        assert_relative_eq!(late.rate(&schedule, &train, 99, 0.0), 0.0001, max_relative = 1e-12);
    }

    #[test]
    fn with_a_cosine_it_falls_from_step_to_step() {
        let train = Train { schedule: Fall::Cosine, ..settings() };
        let schedule = train.schedule();
        let cooldown = Cooldown { start: 25, from: 20 };
        let rate = |step: u64| cooldown.rate(&schedule, &train, 25 + step / 10, (step % 10) as f64 / 10.0);
        assert_relative_eq!(rate(0), schedule.rate(19), max_relative = 1e-12);
        assert_relative_eq!(rate(50), 0.5 * (rate(0) + 0.0001), max_relative = 1e-12);
        assert!((1..100).all(|step| rate(step) < rate(step - 1)) && rate(99) < 0.00011);
    }

    #[test]
    fn a_training_is_over_when_it_has_cooled_down() {
        let mut train = settings();
        let best = Best { epoch: 20, test_loss: 1.0, ll: 0.0, weights: vec![] };
        let over = |epochs, cooldown, train: &Train| is_over(epochs, Some(&best), cooldown, train);
        let cooldown = Some(Cooldown { start: 25, from: 20 });
        assert_eq!([34, 35, 36].map(|epochs| over(epochs, cooldown, &train)), [false, true, true]);
        assert_eq!([99, 100].map(|epochs| over(epochs, Some(Cooldown { start: 96, from: 91 }), &train)), [false, true]);
        assert_eq!([25, 99, 100].map(|epochs| over(epochs, None, &train)), [false, false, true]);
        train.cooldown = 0;
        assert_eq!([24, 25].map(|epochs| over(epochs, None, &train)), [false, true]);
    }
}

//! The learning rate and the decay of a step: those of the schedule, or of a cool-down, less after each retry.

use super::decision::{Cooldown, Course, Rules};
use crate::config::Train;
use crate::optim::{Adam, Fall};

/// The rate of a batch, counted from 0, of `batches` of an epoch, counted from 0.
pub(super) fn of_step(course: &Course, rules: &Rules, epoch: u64, batch: u64, batches: u64) -> f64 {
    let rate = match course.cooldown {
        Some(cooldown) => cooling(cooldown, rules, epoch, batch as f64 / batches as f64),
        None => rules.schedule.rate_of_step(epoch, batch, batches),
    };
    rate * course.retries.factor()
}

/// The optimiser with the decay of the cycle that an epoch, counted from 0, is one of.
pub(super) fn relaxed(adam: Adam, course: &Course, rules: &Rules, epoch: u64) -> Adam {
    let relax = Train::RELAX.powf(course.cycle(rules, epoch) as f64);
    Adam { decay: (f64::from(adam.decay) * relax) as f32, ..adam }
}

/// The rate at `within`, from 0 to 1, of epoch `epoch`, counted from 0: falls as the schedule does, from that of the best
/// epoch to `lr_final`, which the last epoch, or the last step of a cosine, has. Where the best epoch was one of the warm-up,
/// from the rate after it: a rate as low as that of the warm-up would settle nothing.
fn cooling(cooldown: Cooldown, rules: &Rules, epoch: u64, within: f64) -> f64 {
    let schedule = &rules.schedule;
    let high = schedule.rate(cooldown.from.saturating_sub(1).max(schedule.warmup_epochs)).max(schedule.lr_final);
    let epochs = cooldown.end(rules).saturating_sub(cooldown.start).max(1);
    let done = match schedule.fall {
        Fall::Exponential => (epoch - cooldown.start + 1) as f64,
        Fall::Cosine => (epoch - cooldown.start) as f64 + within,
    };
    schedule.fall.between(high, schedule.lr_final, done / epochs as f64)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;
    use crate::config::preset::for_affine_tables;
    use crate::train::Retries;

    fn settings() -> Train {
        let mut train = for_affine_tables().train;
        (train.epochs, train.patience, train.cooldown, train.warmup_epochs) = (100, 5, 10, 0);
        (train.lr, train.lr_final) = (0.01, 0.0001);
        train
    }

    fn cooling(cooldown: Cooldown, train: &Train, epoch: u64, within: f64) -> f64 {
        super::cooling(cooldown, &train.into(), epoch, within)
    }

    #[test]
    fn the_rate_falls_from_that_of_the_best_epoch_to_the_last() {
        let train = settings();
        let schedule = train.schedule();
        let cooldown = Cooldown { start: 25, from: 20 };
        let rates: Vec<f64> = (25..35).map(|epoch| cooling(cooldown, &train, epoch, 0.5)).collect();
        assert!(rates[0] < schedule.rate(19) && rates.windows(2).all(|pair| pair[1] < pair[0]), "{rates:?}");
        assert_relative_eq!(rates[9], 0.0001, max_relative = 1e-12);
        // Nor does it stay at the rate of the warm-up, or rise from it.
        let warm = Train { warmup_epochs: 3, warmup_factor: 0.001, ..settings() };
        let cooled = |from, train: &Train| cooling(Cooldown { start: 9, from }, train, 9, 0.0);
        assert_eq!([1, 3].map(|from| cooled(from, &warm)), [cooled(4, &train); 2]);
        assert!(cooled(4, &train) > cooled(5, &train));
        let all_warm = Train { warmup_epochs: 1000, ..warm };
        assert_eq!(cooled(4, &all_warm), all_warm.lr_final);
        // Where fewer epochs are left, it is quicker.
        let late = Cooldown { start: 96, from: 91 };
        assert_relative_eq!(cooling(late, &train, 99, 0.0), 0.0001, max_relative = 1e-12);
    }

    #[test]
    fn with_a_cosine_it_falls_from_step_to_step() {
        let train = Train { schedule: Fall::Cosine, ..settings() };
        let schedule = train.schedule();
        let cooldown = Cooldown { start: 25, from: 20 };
        let rate = |step: u64| cooling(cooldown, &train, 25 + step / 10, (step % 10) as f64 / 10.0);
        assert_relative_eq!(rate(0), schedule.rate(19), max_relative = 1e-12);
        assert_relative_eq!(rate(50), 0.5 * (rate(0) + 0.0001), max_relative = 1e-12);
        assert!((1..100).all(|step| rate(step) < rate(step - 1)) && rate(99) < 0.00011);
    }

    #[test]
    fn a_retry_halves_every_rate() {
        let rules = Rules::from(&settings());
        for cooldown in [None, Some(Cooldown { start: 25, from: 20 })] {
            let rate = |count| {
                let course = Course { cooldown, retries: Retries { count, step: 0 }, ..Course::default() };
                of_step(&course, &rules, 30, 2, 10)
            };
            assert_eq!([1, 3].map(rate), [0.5, 0.125].map(|factor| factor * rate(0)));
        }
    }

    #[test]
    fn each_cycle_has_a_ninth_of_the_decay() {
        let rules = Rules::from(&Train { cycles: Some(4), ..settings() });
        let adam = Adam { decay: 9.0, ..Adam::default() };
        let decay = |course: &Course, epoch| relaxed(adam, course, &rules, epoch).decay;
        assert_eq!([0, 24, 25, 60].map(|epoch| decay(&Course::default(), epoch)), [9.0, 9.0, 1.0, 1.0 / 9.0]);
        // A cool-down is one of the cycle of the model that it went back to.
        let cooled = Course { cooldown: Some(Cooldown { start: 60, from: 25 }), ..Course::default() };
        assert_eq!(decay(&cooled, 60), 9.0);
    }
}

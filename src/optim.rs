//! Adam as the paper uses it, and its learning-rate schedule (docs/model.md, Optimiser); with parts that the paper does
//! not use, each of them off unless it is asked for: clipping by the norm of the gradient, decoupled weight decay,
//! averages of the weights, a cosine schedule.

#[cfg(test)]
pub(crate) mod definition;

use serde::{Deserialize, Serialize};

/// Constants of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Adam {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// L2 strength, added to the gradient (not decoupled).
    pub l2: f32,
    /// Each element of the gradient is clamped to plus or minus this, after `clip_norm` and before anything else.
    pub grad_clamp: f32,
    /// The whole gradient is scaled by `min(1, clip_norm / |g|)`, and an update whose `|g|^2` is not finite in f32 is
    /// skipped: weights, moments and averages stay as they are. 0: neither.
    pub clip_norm: f32,
    /// Decoupled decay (Loshchilov and Hutter, 2019, AdamW) of the weight matrices of networks, not of biases and
    /// reflections: before an update `p -= lr * decay * p`. 0: none.
    pub decay: f32,
    /// Decay of the exponential moving average of the weights, less in the first updates: that of update t is
    /// `min(average, (1 + t) / (10 + t))`. 0: no average.
    pub average: f32,
}

impl Default for Adam {
    fn default() -> Self {
        let (clip_norm, decay, average) = (0.0, 0.0, 0.0);
        Self { beta1: 0.9, beta2: 0.95, eps: 1e-4, l2: 1.86e-5, grad_clamp: 5.0, clip_norm, decay, average }
    }
}

/// Everything one update needs, worked out on the host in f64: `p -= rate * m / (sqrt(v) * root + eps)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct AdamStep {
    /// Constants of the optimiser.
    pub adam: Adam,
    /// `lr / (1 - beta1^t)`.
    pub rate: f32,
    /// `1 / sqrt(1 - beta2^t)`.
    pub root: f32,
    /// `lr * decay`: the share of a weight that decays.
    pub shrink: f32,
    /// The share of the way to the new weights that their averages take; 0: there are none.
    pub follow: f32,
}

impl Adam {
    /// The update number `t`, counted from 1, at learning rate `lr`.
    pub(crate) fn step(self, lr: f64, t: u64) -> AdamStep {
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(t as f64);
        AdamStep {
            adam: self,
            rate: (lr / correction(self.beta1)) as f32,
            root: (1.0 / correction(self.beta2).sqrt()) as f32,
            shrink: (lr * f64::from(self.decay)) as f32,
            follow: if self.average > 0.0 { (1.0 - self.average_of(t)) as f32 } else { 0.0 },
        }
    }

    /// The share of the averages that update `t` leaves.
    fn average_of(self, t: u64) -> f64 {
        f64::from(self.average).min((1 + t) as f64 / (10 + t) as f64)
    }
}

/// How the learning rate falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Fall {
    /// By the same factor from epoch to epoch; constant within one.
    #[default]
    Exponential,
    /// As half a period of a cosine, from step to step.
    Cosine,
}

impl Fall {
    /// From `high` to `low` at `t` of the way, 0 to 1.
    pub(crate) fn between(self, high: f64, low: f64, t: f64) -> f64 {
        let ratio = low / high;
        match self {
            Self::Exponential => high * ratio.powf(t),
            Self::Cosine => high * (ratio + (1.0 - ratio) * 0.5 * (1.0 + (std::f64::consts::PI * t).cos())),
        }
    }
}

/// Learning rate: from `lr` to `lr_final`, lower at the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Schedule {
    /// How it falls.
    pub fall: Fall,
    /// Rate of epoch 0 without any warm-up.
    pub lr: f64,
    /// Rate that would be reached at epoch `epochs`.
    pub lr_final: f64,
    /// Number of epochs.
    pub epochs: u64,
    /// How often the rate falls in these, at least 1 (warm restarts).
    pub cycles: u64,
    /// Epochs with a reduced rate.
    pub warmup_epochs: u64,
    /// Factor on the rate in these epochs; the schedule goes on underneath.
    pub warmup_factor: f64,
    /// Steps of each cycle in which the rate rises: step s of them, counted from 1, has `s / warmup_steps` of it. The
    /// schedule goes on underneath, and `warmup_factor` applies as well.
    pub warmup_steps: u64,
}

impl Schedule {
    /// The rate at the beginning of epoch `epoch`, counted from 0, without the rise of `warmup_steps`: of the
    /// exponential schedule that of the whole epoch.
    pub(crate) fn rate(&self, epoch: u64) -> f64 {
        self.at(epoch, 0.0)
    }

    /// The rate of batch `batch`, counted from 0, of `batches` of epoch `epoch`.
    pub(crate) fn rate_of_step(&self, epoch: u64, batch: u64, batches: u64) -> f64 {
        let within = match self.fall {
            Fall::Exponential => 0.0,
            Fall::Cosine => batch as f64 / batches as f64,
        };
        self.at(epoch, within) * self.rise((epoch - self.start_of(epoch)) * batches + batch)
    }

    /// The cycle, counted from 0, that an epoch, counted from 0, is one of.
    pub(crate) fn cycle(&self, epoch: u64) -> u64 {
        (epoch / self.cycle_epochs()).min(self.cycles.saturating_sub(1))
    }

    /// The first epoch of the cycle of an epoch.
    pub(crate) fn start_of(&self, epoch: u64) -> u64 {
        self.cycle(epoch) * self.cycle_epochs()
    }

    /// Epochs of a cycle; the last may have fewer.
    fn cycle_epochs(&self) -> u64 {
        self.epochs.div_ceil(self.cycles.max(1)).max(1)
    }

    /// The share of the rate that a step has, counted from 0.
    pub(crate) fn rise(&self, step: u64) -> f64 {
        if step < self.warmup_steps { (step + 1) as f64 / self.warmup_steps as f64 } else { 1.0 }
    }

    /// The rate at `within` of epoch `epoch`, from 0 to 1.
    fn at(&self, epoch: u64, within: f64) -> f64 {
        let start = self.start_of(epoch);
        let length = self.cycle_epochs().min(self.epochs.saturating_sub(start));
        let rate = self.fall.between(self.lr, self.lr_final, ((epoch - start) as f64 + within) / length as f64);
        if epoch < self.warmup_epochs { rate * self.warmup_factor } else { rate }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    fn papers() -> Schedule {
        Schedule {
            fall: Fall::Exponential,
            lr: 0.01,
            lr_final: 0.0001,
            epochs: 50,
            cycles: 1,
            warmup_epochs: 3,
            warmup_factor: 0.01,
            warmup_steps: 0,
        }
    }

    #[test]
    fn the_papers_schedule() {
        let s = papers();
        assert_relative_eq!(s.rate(0), 0.0001, max_relative = 1e-12);
        assert_relative_eq!(s.rate(3), 0.01 * 0.01f64.powf(3.0 / 50.0), max_relative = 1e-12);
        assert_relative_eq!(s.rate(25), 0.001, max_relative = 1e-12);
        // To the bit, and all steps of an epoch alike.
        for epoch in 0..50 {
            let rate = 0.01 * (0.0001 / 0.01f64).powf(epoch as f64 / 50.0) * if epoch < 3 { 0.01 } else { 1.0 };
            assert_eq!([0, 7, 99].map(|batch| s.rate_of_step(epoch, batch, 100)), [rate; 3]);
        }
    }

    #[test]
    fn a_cosine_falls_from_step_to_step() {
        let s = Schedule { fall: Fall::Cosine, warmup_epochs: 0, ..papers() };
        let rate = |step: u64| s.rate_of_step(step / 20, step % 20, 20);
        assert_relative_eq!(rate(0), 0.01, max_relative = 1e-12);
        assert_relative_eq!(rate(500), 0.5 * (0.01 + 0.0001), max_relative = 1e-12);
        assert_relative_eq!(rate(250), 0.0001 + 0.0099 * 0.5 * (1.0 + 0.5f64.sqrt()), max_relative = 1e-12);
        assert!((1..1000).all(|step| rate(step) < rate(step - 1)) && rate(999) > 0.0001);
        assert_relative_eq!(rate(999), 0.0001, max_relative = 1e-3);
    }

    #[test]
    fn a_cycle_falls_as_the_whole_does() {
        for fall in [Fall::Exponential, Fall::Cosine] {
            let whole = Schedule { fall, epochs: 10, warmup_epochs: 0, warmup_steps: 4, ..papers() };
            // Two of nine epochs and one of seven.
            let cycles = Schedule { epochs: 25, cycles: 3, ..whole };
            let nine = Schedule { epochs: 9, ..whole };
            let seven = Schedule { epochs: 7, ..whole };
            for (epoch, alone, of) in
                [(3, 3, nine), (8, 8, nine), (9, 0, nine), (17, 8, nine), (18, 0, seven), (24, 6, seven)]
            {
                for batch in [0, 4] {
                    assert_eq!(cycles.rate_of_step(epoch, batch, 5), of.rate_of_step(alone, batch, 5), "{epoch}");
                }
            }
            assert_eq!([0, 8, 9, 18, 24, 25, 99].map(|epoch| cycles.cycle(epoch)), [0, 0, 1, 2, 2, 2, 2]);
        }
    }

    #[test]
    fn a_warm_up_of_steps_rises_to_the_schedule() {
        for fall in [Fall::Exponential, Fall::Cosine] {
            let plain = Schedule { fall, warmup_epochs: 0, ..papers() };
            let warm = Schedule { warmup_steps: 8, ..plain };
            let share =
                |step: u64| warm.rate_of_step(step / 5, step % 5, 5) / plain.rate_of_step(step / 5, step % 5, 5);
            assert_relative_eq!(share(0), 0.125, max_relative = 1e-12);
            assert_relative_eq!(share(6), 0.875, max_relative = 1e-12);
            assert_eq!([7, 8, 100].map(share), [1.0; 3]);
        }
    }

    #[test]
    fn averages_follow_quickly_at_first() {
        let adam = Adam { average: 0.9, ..Adam::default() };
        let follow = |t| f64::from(adam.step(0.1, t).follow);
        assert_relative_eq!(follow(1), 1.0 - 2.0 / 11.0, max_relative = 1e-6);
        assert_relative_eq!(follow(1000), 0.1, max_relative = 1e-6);
        assert_eq!(Adam::default().step(0.1, 5).follow, 0.0);
        let step = Adam { decay: 0.5, ..adam }.step(0.1, 3);
        assert_relative_eq!(f64::from(step.shrink), 0.05, max_relative = 1e-6);
    }

    #[test]
    fn bias_corrections_of_the_first_update_undo_the_decay() {
        let step = Adam::default().step(0.01, 1);
        assert_relative_eq!(f64::from(step.rate), 0.01 / 0.1, max_relative = 1e-6);
        assert_relative_eq!(f64::from(step.root), 1.0 / 0.05f64.sqrt(), max_relative = 1e-6);
    }

    #[test]
    fn defaults_are_the_papers() {
        let a = Adam::default();
        assert_eq!((a.beta1, a.beta2, a.eps, a.l2, a.grad_clamp), (0.9, 0.95, 1e-4, 1.86e-5, 5.0));
        assert_eq!((a.clip_norm, a.decay, a.average), (0.0, 0.0, 0.0));
    }
}

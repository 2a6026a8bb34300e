//! Adam as the paper uses it, and its learning-rate schedule (spec, section 5).

use serde::{Deserialize, Serialize};

/// Constants of the optimiser.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Adam {
    /// Decay of the first moment.
    pub beta1: f32,
    /// Decay of the second moment.
    pub beta2: f32,
    /// Added to the root of the second moment.
    pub eps: f32,
    /// L2 strength, added to the gradient (not decoupled).
    pub l2: f32,
    /// Each element of the gradient is clamped to plus or minus this, before anything else.
    pub grad_clamp: f32,
}

impl Default for Adam {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.95, eps: 1e-4, l2: 1.86e-5, grad_clamp: 5.0 }
    }
}

/// Everything one update needs, worked out on the host in f64: `p -= rate * m / (sqrt(v) * root + eps)`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamStep {
    /// Constants of the optimiser.
    pub adam: Adam,
    /// `lr / (1 - beta1^t)`.
    pub rate: f32,
    /// `1 / sqrt(1 - beta2^t)`.
    pub root: f32,
}

impl Adam {
    /// The update number `t`, counted from 1, at learning rate `lr`.
    pub fn step(self, lr: f64, t: u64) -> AdamStep {
        let correction = |beta: f32| 1.0 - f64::from(beta).powf(t as f64);
        AdamStep {
            adam: self,
            rate: (lr / correction(self.beta1)) as f32,
            root: (1.0 / correction(self.beta2).sqrt()) as f32,
        }
    }
}

/// Learning rate per epoch: exponential from `lr` to `lr_final`, much lower in the first epochs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Schedule {
    /// Rate of epoch 0 without the warm-up factor.
    pub lr: f64,
    /// Rate that would be reached at epoch `epochs`.
    pub lr_final: f64,
    /// Number of epochs.
    pub epochs: u64,
    /// Epochs with a reduced rate.
    pub warmup_epochs: u64,
    /// Factor on the rate in these epochs; the schedule goes on underneath.
    pub warmup_factor: f64,
}

impl Schedule {
    /// The constant rate within epoch `epoch`, counted from 0.
    pub fn rate(&self, epoch: u64) -> f64 {
        let rate = self.lr * (self.lr_final / self.lr).powf(epoch as f64 / self.epochs as f64);
        if epoch < self.warmup_epochs { rate * self.warmup_factor } else { rate }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    #[test]
    fn the_papers_schedule() {
        let s = Schedule { lr: 0.01, lr_final: 0.0001, epochs: 50, warmup_epochs: 3, warmup_factor: 0.01 };
        assert_relative_eq!(s.rate(0), 0.0001, max_relative = 1e-12);
        assert_relative_eq!(s.rate(3), 0.01 * 0.01f64.powf(3.0 / 50.0), max_relative = 1e-12);
        assert_relative_eq!(s.rate(25), 0.001, max_relative = 1e-12);
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
    }
}

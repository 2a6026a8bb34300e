//! How usual an observation is: its evidence among those of the training (docs/model.md, Densities).
//!
//! A posterior is learnt from observations like those of the training. For one unlike them, its samples look as good as
//! any and mean nothing; only the density of y, which a `hint` knows, tells.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Shares of the training rows at which `log p(y)` is kept: fine where rare observations are.
const SHARES: [f64; 14] = [0.0, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0];

/// Quantiles of `log p(y)` over the rows that a `hint` was trained on, in nats and the user's units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Evidence {
    /// Shares of the rows.
    pub(crate) shares: Vec<f64>,
    /// The `log p(y)` that this share of the rows is below.
    pub(crate) log_prob: Vec<f64>,
}

impl Evidence {
    /// The quantiles of some values of `log p(y)`. None if none is a number.
    pub(crate) fn of(log_prob: &[f32]) -> Option<Self> {
        let mut sorted: Vec<f64> = log_prob.iter().map(|&v| v.into()).filter(|v: &f64| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (low, part) = (place as usize, place.fract());
            sorted[low] + part * (sorted[(low + 1).min(last)] - sorted[low])
        };
        Some(Self { shares: SHARES.to_vec(), log_prob: SHARES.map(at).to_vec() })
    }

    /// The share of the training rows whose `log p(y)` is below a value; 0 for one below all, and for NaN.
    pub fn share_below(&self, log_prob: f64) -> f64 {
        let Some(next) = self.log_prob.iter().position(|&v| v > log_prob) else {
            return if log_prob.is_nan() { 0.0 } else { 1.0 };
        };
        let Some(before) = next.checked_sub(1) else { return 0.0 };
        let part = (log_prob - self.log_prob[before]) / (self.log_prob[next] - self.log_prob[before]);
        self.shares[before] + part * (self.shares[next] - self.shares[before])
    }

    /// Whether the lists belong together.
    pub(super) fn check(&self) -> Result<()> {
        let (expected, got) = (self.shares.len(), self.log_prob.len());
        let sorted = |values: &[f64]| values.is_sorted() && values.iter().all(|v| v.is_finite());
        if expected != got || got == 0 || !sorted(&self.shares) || !sorted(&self.log_prob) {
            let what = "must hold as many finite numbers in `shares` as in `log_prob`, both in order";
            return Err(Error::config("evidence", what));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_the_values() {
        let values: Vec<f32> = (0..10_001).map(|i| (i as f32) / 100.0).collect();
        let evidence = Evidence::of(&values).unwrap();
        for (value, share) in [(-1.0, 0.0), (0.05, 0.0005), (1.0, 0.01), (30.0, 0.3), (99.0, 0.99), (200.0, 1.0)] {
            assert!((evidence.share_below(value) - share).abs() < 1e-9, "{value}: {}", evidence.share_below(value));
        }
        assert_eq!(evidence.share_below(f64::NAN), 0.0);
        assert!(evidence.check().is_ok());
        assert_eq!(Evidence::of(&[f32::NAN]), None);
        assert_eq!(Evidence::of(&[1.5]).unwrap().share_below(1.0), 0.0);
        assert!(Evidence { shares: vec![0.0], log_prob: vec![f64::NAN] }.check().is_err());
    }
}

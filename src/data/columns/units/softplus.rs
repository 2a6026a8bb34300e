//! The inverse of softplus, for a column with one bound: logarithmic at the bound and linear far away.
//!
//! With `d` the distance from the bound in scales, `u = ln(e^d - 1)`. An exponential distribution of that scale becomes
//! a logistic one, which is nearly normal; the logarithm that bounds have otherwise leaves it with a long tail on the
//! side of the bound.

use serde::{Deserialize, Serialize};

use super::transform::{Map, is_place, is_scale};

/// Parameters of the transform. It takes what the bound's logarithm gives, `ln(x - lower)` or `-ln(upper - x)`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Softplus {
    /// Distance from the bound at which the linear part begins, in the user's units.
    pub scale: f64,
    /// Whether the bound is an upper one.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub upper: bool,
}

/// Beyond this `ln(1 + e^-x)` is nothing.
const FAR: f64 = 40.0;

impl Softplus {
    /// Logarithm of the distance from the bound in scales.
    fn log_distance(&self, v: f64) -> f64 {
        (if self.upper { -v } else { v }) - self.scale.ln()
    }

    fn signed(&self, u: f64) -> f64 {
        if self.upper { -u } else { u }
    }
}

impl Map for Softplus {
    fn map(&self, v: f64) -> f64 {
        let log = self.log_distance(v);
        let d = log.exp();
        self.signed(if log < -FAR { log } else { d + (-(-d).exp_m1()).ln() })
    }

    fn slope(&self, v: f64) -> f64 {
        let log = self.log_distance(v);
        let d = log.exp();
        if log < -FAR { 1.0 } else { d / -(-d).exp_m1() }
    }

    fn unmap(&self, u: f64) -> f64 {
        let u = self.signed(u);
        let log = if u < -FAR {
            u
        } else if u > FAR {
            u.ln()
        } else {
            u.exp().ln_1p().ln()
        };
        self.signed(log + self.scale.ln())
    }

    fn mistake(&self) -> Option<String> {
        let usable = is_scale(self.scale) && is_place(self.scale);
        (!usable).then(|| format!("softplus has scale {:e}, which no column can have", self.scale))
    }
}

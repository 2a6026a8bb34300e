//! `(x - center) / scale` by the median and quantiles, and values far out drawn in: for columns in which a few values,
//! or a code for a missing one, are so far from the others that mean and deviation speak of them alone.
//!
//! Within four scales nothing but the scale changes. Beyond, a logarithm brings the farthest value of the training to
//! within 5.5, however far out it is.

use serde::{Deserialize, Serialize};

use super::squash;
use super::transform::{Map, is_place, is_scale};

/// Scales from the centre within which the map is linear.
pub(super) const KNEE: f64 = 4.0;
/// What is left of the distance of the farthest value beyond the knee.
const REACH: f64 = 1.5;

/// Parameters of the transform, in the units of the column after its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Robust {
    /// What becomes 0: the median.
    pub center: f64,
    /// What becomes 1: the distance of the quartiles as that of a normal distribution with deviation 1.
    pub scale: f64,
    /// Scales from the centre at which the linear part ends.
    pub knee: f64,
    /// How soon what is beyond is drawn in: a distance `r` becomes `pull ln(1 + r / pull)`.
    pub pull: f64,
}

impl Robust {
    /// That of a centre and a scale, for values as far from the centre as `farthest`.
    pub(super) fn new(center: f64, scale: f64, farthest: f64) -> Self {
        let beyond = farthest / scale - KNEE;
        let left = |pull: f64| pull * (beyond / pull).ln_1p();
        let mut pull = 1.0;
        if beyond > 0.0 && left(pull) > REACH {
            // What is left grows with the pull.
            let (mut low, mut high) = (1e-6f64, 1.0f64);
            for _ in 0..100 {
                pull = (low * high).sqrt();
                *(if left(pull) > REACH { &mut high } else { &mut low }) = pull;
            }
        }
        Self { center, scale, knee: KNEE, pull }
    }
}

impl Map for Robust {
    fn map(&self, x: f64) -> f64 {
        squash::draw_in((x - self.center) / self.scale, self.knee, self.pull)
    }

    fn slope(&self, x: f64) -> f64 {
        squash::slope((x - self.center) / self.scale, self.knee, self.pull) / self.scale
    }

    fn unmap(&self, u: f64) -> f64 {
        self.center + self.scale * squash::let_out(u, self.knee, self.pull)
    }

    fn mistake(&self) -> Option<String> {
        let Self { center, scale, knee, pull } = *self;
        let usable = is_place(center) && is_scale(scale) && (0.0..=1e6).contains(&knee) && (1e-9..=1e9).contains(&pull);
        (!usable).then(|| {
            format!("robust has center {center:e}, scale {scale:e}, knee {knee:e} and pull {pull:e}, which no column can have")
        })
    }
}

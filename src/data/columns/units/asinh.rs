//! `asinh((x - center) / scale)`: linear about the centre and logarithmic far away on both sides, so that heavy tails
//! come near and small values keep their distances.
//!
//! With the centre at the edge of a column whose values span orders of magnitude, and a scale as small as its smallest
//! values, it is a logarithm that goes on beyond the edge.

use serde::{Deserialize, Serialize};

use super::transform::{Map, is_place, is_scale};

/// Parameters of the transform, in the units of the column after its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Asinh {
    /// What becomes 0.
    pub center: f64,
    /// Distance from it at which the linear part ends.
    pub scale: f64,
}

impl Map for Asinh {
    fn map(&self, x: f64) -> f64 {
        ((x - self.center) / self.scale).asinh()
    }

    fn slope(&self, x: f64) -> f64 {
        1.0 / self.scale.hypot(x - self.center)
    }

    fn unmap(&self, u: f64) -> f64 {
        self.center + self.scale * u.sinh()
    }

    fn mistake(&self) -> Option<String> {
        let usable = is_place(self.center) && is_scale(self.scale);
        (!usable)
            .then(|| format!("asinh has center {:e} and scale {:e}, which no column can have", self.center, self.scale))
    }
}

//! Bounds of a column, and the way across them to the whole line.

use serde::{Deserialize, Serialize};

/// Where the values of a column can lie: strictly between its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bounds {
    /// No value is as small as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// No value is as large as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl Bounds {
    /// Whether there is any bound.
    pub(crate) fn is_none(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// What is wrong with the bounds, of whatever numbers.
    pub(crate) fn mistake_of_numbers(&self) -> Option<String> {
        let bounds = [self.lower, self.upper];
        if let Some(bound) = bounds.into_iter().flatten().find(|bound| !bound.is_finite()) {
            return Some(format!("is {bound}; a bound is a finite number, leave it out where there is none"));
        }
        let [Some(lower), Some(upper)] = bounds else { return None };
        (lower >= upper).then(|| no_room(lower, upper))
    }

    /// What is wrong with the bounds of 32-bit floats.
    pub(crate) fn mistake(&self) -> Option<String> {
        let bounds = [self.lower, self.upper];
        if let Some(mistake) = self.mistake_of_numbers() {
            return Some(mistake);
        }
        // As 32-bit floats, the values that lie between.
        if self.least() >= self.greatest() {
            return Some(match bounds {
                [Some(lower), Some(upper)] => no_room(lower, upper),
                [bound, other] => {
                    let bound = bound.or(other).unwrap_or_default();
                    format!("no 32-bit float lies inside of the bound {bound:e}; bring the column to another unit")
                }
            });
        }
        // Where a bound bounds nothing, differences to it have no digits and may overflow.
        let beyond = bounds.into_iter().flatten().find(|bound| bound.abs() >= f64::from(f32::MAX));
        beyond.map(|bound| format!("is {bound:e}, which no 32-bit float is beyond; leave it out"))
    }

    /// Whether a value lies strictly inside. NaN does not.
    pub(crate) fn holds(&self, x: f64) -> bool {
        self.lower.is_none_or(|lower| x > lower) && self.upper.is_none_or(|upper| x < upper) && !x.is_nan()
    }

    /// Distance of a value to the nearer bound.
    pub(crate) fn room(&self, x: f64) -> f64 {
        let lower = self.lower.map_or(f64::INFINITY, |lower| x - lower);
        lower.min(self.upper.map_or(f64::INFINITY, |upper| upper - x))
    }

    /// The smallest f32 inside.
    fn least(&self) -> f32 {
        let Some(lower) = self.lower else { return f32::MIN };
        let near = lower as f32;
        if f64::from(near) > lower { near } else { near.next_up() }
    }

    /// The greatest f32 inside.
    fn greatest(&self) -> f32 {
        let Some(upper) = self.upper else { return f32::MAX };
        let near = upper as f32;
        if f64::from(near) < upper { near } else { near.next_down() }
    }

    /// What a number was rounded to; if it lies inside and that does not, the float next to it that does.
    pub(crate) fn rounded(&self, exact: f64, rounded: f32) -> f32 {
        let is_moved = !self.holds(rounded.into()) && self.holds(exact) && self.least() <= self.greatest();
        if is_moved { rounded.clamp(self.least(), self.greatest()) } else { rounded }
    }

    /// To the whole line.
    pub(crate) fn map(&self, x: f64) -> f64 {
        match (self.lower, self.upper) {
            (None, None) => x,
            (Some(lower), None) => (x - lower).ln(),
            (None, Some(upper)) => -(upper - x).ln(),
            (Some(lower), Some(upper)) => ((x - lower) / (upper - x)).ln(),
        }
    }

    /// Derivative of [`Bounds::map`].
    pub(super) fn slope(&self, x: f64) -> f64 {
        self.lower.map_or(0.0, |lower| 1.0 / (x - lower))
            + self.upper.map_or(0.0, |upper| 1.0 / (upper - x))
            + f64::from(u8::from(self.is_none()))
    }

    /// Inverse of [`Bounds::map`], as an f32 strictly inside.
    pub(super) fn unmap(&self, u: f64) -> f32 {
        let x = match (self.lower, self.upper) {
            (None, None) => u,
            (Some(lower), None) => lower + u.exp(),
            (None, Some(upper)) => upper - (-u).exp(),
            // Each half from its own end, where it has its digits.
            (Some(lower), Some(upper)) if u < 0.0 => lower + (upper - lower) * u.exp() / (1.0 + u.exp()),
            (Some(lower), Some(upper)) => upper - (upper - lower) * (-u).exp() / (1.0 + (-u).exp()),
        };
        // What is too large for an f32 becomes the largest. A NaN stays one: it must be seen.
        (x as f32).clamp(self.least(), self.greatest())
    }
}

fn no_room(lower: f64, upper: f64) -> String {
    format!("the lower bound {lower} leaves no room below the upper bound {upper}")
}

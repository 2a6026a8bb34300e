//! Empirical quantiles to those of the normal distribution, by a monotone curve through some of them.
//!
//! Between knots it is a rational quadratic (Gregory and Delbourgo, 1982), whose inverse is the root of a quadratic, so
//! that map and slope are continuous. Beyond the outermost values it goes on with a logarithm: a distance that would be
//! `r` on the straight line is `ln(1 + r)`. A value that repeats is one knot at its middle rank.

use serde::{Deserialize, Serialize};

use super::transform::{Map, is_place, is_scale};
use crate::data::columns::quantile::{middle_rank, normal_cdf, normal_quantile};

/// Most knots.
const KNOTS: usize = 64;

/// Knots of the curve, increasing in both.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Rank {
    /// Values of the column, after its bounds.
    pub x: Vec<f64>,
    /// What they become.
    pub z: Vec<f64>,
}

impl Rank {
    /// The curve of some values in order. None if they are all the same.
    pub(super) fn fit(sorted: &[f64]) -> Option<Self> {
        let n = sorted.len();
        let far = normal_quantile(0.5 / n as f64).abs();
        let mut at: Vec<usize> = (0..KNOTS)
            .map(|k| far * (2.0 * k as f64 / (KNOTS - 1) as f64 - 1.0))
            .map(|z| ((normal_cdf(z) * n as f64) as usize).min(n - 1))
            .collect();
        (at[0], at[KNOTS - 1]) = (0, n - 1);
        let mut x: Vec<f64> = at.into_iter().map(|i| sorted[i]).collect();
        x.dedup();
        let z = x.iter().map(|&x| normal_quantile(middle_rank(sorted, x))).collect();
        (x.len() > 1).then_some(Self { x, z })
    }

    /// The piece that begins at knot `k`.
    fn piece(&self, k: usize) -> Piece {
        let secant = |k: usize| (self.z[k + 1] - self.z[k]) / (self.x[k + 1] - self.x[k]);
        let last = self.x.len() - 1;
        // At the ends that of the straight line; between, the geometric mean of both sides. Any positive slope keeps the
        // curve monotone.
        let slope = |k: usize| match k {
            0 => secant(0),
            k if k == last => secant(last - 1),
            k => secant(k - 1).sqrt() * secant(k).sqrt(),
        };
        Piece {
            x: self.x[k],
            z: self.z[k],
            width: self.x[k + 1] - self.x[k],
            height: self.z[k + 1] - self.z[k],
            slopes: [slope(k), slope(k + 1)],
        }
    }

    /// The piece that holds a value, of knots `x` or `z`; and how far the value is beyond the ends.
    fn find(&self, knots: &[f64], value: f64) -> (Piece, f64) {
        let last = knots.len() - 1;
        let k = knots.partition_point(|&knot| knot <= value).clamp(1, last) - 1;
        let beyond = if value < knots[0] { value - knots[0] } else { (value - knots[last]).max(0.0) };
        (self.piece(k), beyond)
    }
}

struct Piece {
    x: f64,
    z: f64,
    width: f64,
    height: f64,
    slopes: [f64; 2],
}

impl Piece {
    /// The slope of the straight line.
    fn secant(&self) -> f64 {
        self.height / self.width
    }

    /// The part of `slopes` that makes the piece differ from a line.
    fn bend(&self) -> f64 {
        self.slopes[0] + self.slopes[1] - 2.0 * self.secant()
    }
}

impl Map for Rank {
    fn map(&self, x: f64) -> f64 {
        let (piece, beyond) = self.find(&self.x, x);
        let s = piece.secant();
        if beyond != 0.0 {
            let end = if beyond < 0.0 { piece.z } else { piece.z + piece.height };
            return end + (beyond.abs() * s).ln_1p().copysign(beyond);
        }
        let t = (x - piece.x) / piece.width;
        let both = t * (1.0 - t);
        piece.z + piece.height * (s * t * t + piece.slopes[0] * both) / (s + piece.bend() * both)
    }

    fn slope(&self, x: f64) -> f64 {
        let (piece, beyond) = self.find(&self.x, x);
        let s = piece.secant();
        if beyond != 0.0 {
            return s / (1.0 + beyond.abs() * s);
        }
        let t = (x - piece.x) / piece.width;
        let both = t * (1.0 - t);
        let [d0, d1] = piece.slopes;
        let under = s + piece.bend() * both;
        // In an order that neither overflows nor underflows.
        (s / under) * ((d1 * t * t + 2.0 * s * both + d0 * (1.0 - t).powi(2)) * (s / under))
    }

    fn unmap(&self, u: f64) -> f64 {
        let (piece, beyond) = self.find(&self.z, u);
        let s = piece.secant();
        if beyond != 0.0 {
            let end = if beyond < 0.0 { piece.x } else { piece.x + piece.width };
            return end + (beyond.abs().exp_m1() / s).copysign(beyond);
        }
        // In units of the secant, so that steep pieces do not overflow.
        let (rise, d0, bend) = ((u - piece.z) / piece.height, piece.slopes[0] / s, piece.bend() / s);
        let a = 1.0 - d0 + rise * bend;
        let b = d0 - rise * bend;
        let root = (b * b + 4.0 * a * rise).max(0.0).sqrt();
        piece.x + piece.width * (2.0 * rise / (b + root))
    }

    fn mistake(&self) -> Option<String> {
        let rises = |values: &[f64]| values.is_sorted_by(|a, b| a < b);
        let Self { x, z } = self;
        let usable = x.len() == z.len()
            && x.len() > 1
            && rises(x)
            && rises(z)
            && x.iter().chain(z).all(|&v| is_place(v))
            && x.windows(2).zip(z.windows(2)).all(|(x, z)| is_scale((z[1] - z[0]) / (x[1] - x[0])));
        (!usable).then(|| "rank must have as many numbers in `x` as in `z`, two or more, both increasing".into())
    }
}

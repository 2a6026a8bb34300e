//! A bin of a spline: what a spline has beside its parameters, the softmax of these, the search for the bin of a sample,
//! and the sample's place in it. `shaders/shared/bins.wgsl` is its twin.

use super::super::super::math::{LaneArray, exp, fma, lanes, ln, select};
use super::super::super::simd::Simd;
use super::super::super::{LANES, Shape};
use crate::plan::Spline;

/// What a spline is made of but for its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// K.
    pub(crate) bins: usize,
    /// b: the box is [-b, b].
    pub(crate) half_width: f32,
    /// Smallest width and height of a bin.
    pub(crate) least: f32,
    /// What is left of 2 b for the softmax.
    pub(crate) rest: f32,
    /// Smallest slope at a knot.
    pub(crate) min_slope: f32,
    /// Makes the slope of a parameter of 0 equal to 1.
    pub(crate) shift: f32,
}

impl Form {
    pub(crate) fn of(spline: Spline) -> Self {
        let Spline { bins, half_width, min_slope } = spline;
        let least = 2.0 * half_width * Spline::MIN_BIN;
        Self {
            bins: bins as usize,
            half_width,
            least,
            rest: 2.0 * half_width - bins as f32 * least,
            min_slope,
            shift: (1.0 - f64::from(min_slope)).exp_m1().ln() as f32,
        }
    }

    /// Whether a value lies in the box. NaN does not, and so goes through as it is.
    #[inline(always)]
    pub(super) fn holds(self, x: f32) -> bool {
        x > -self.half_width && x < self.half_width
    }
}

/// The parameters of a column for sixteen samples.
#[derive(Clone, Copy)]
pub(super) struct Parameters<'a> {
    pub(super) shape: Shape,
    pub(super) values: &'a [f32],
    /// Row of the first one.
    pub(super) first: u32,
    /// The first sample.
    pub(super) at: usize,
    pub(super) bins: usize,
}

impl<'a> Parameters<'a> {
    #[inline(always)]
    pub(super) fn row(self, i: usize) -> &'a LaneArray {
        lanes(self.values, (self.first as usize + i) * self.shape.stride + self.at)
    }

    /// Parameter of the slope at knot `i`, from 1 to K - 1.
    #[inline(always)]
    pub(super) fn slope(self, i: usize) -> &'a LaneArray {
        self.row(2 * self.bins + i - 1)
    }
}

/// Which of the two softmaxes.
#[derive(Clone, Copy)]
pub(super) enum Side {
    Widths,
    Heights,
}

/// e^(a - max a) of the parameters a of one side, and one over their sum.
pub(super) struct Softmax<const ROOM: usize> {
    pub(super) exps: [LaneArray; ROOM],
    pub(super) inverse_sum: LaneArray,
}

impl<const ROOM: usize> Softmax<ROOM> {
    #[inline(always)]
    pub(super) fn of<S: Simd>(parameters: Parameters<'_>, side: Side) -> Self {
        let first = match side {
            Side::Widths => 0,
            Side::Heights => parameters.bins,
        };
        let mut most = *parameters.row(first);
        for k in 1..parameters.bins {
            let a = parameters.row(first + k);
            for i in 0..LANES {
                // A NaN must reach the sum, which it does by its own exponential.
                most[i] = select(a[i] > most[i], a[i], most[i]);
            }
        }
        let mut exps = [[0.0; LANES]; ROOM];
        let mut sum = [0.0; LANES];
        for (k, e) in exps.iter_mut().enumerate().take(parameters.bins) {
            let a = parameters.row(first + k);
            for i in 0..LANES {
                e[i] = exp::<S>(a[i] - most[i]);
                sum[i] += e[i];
            }
        }
        let mut inverse_sum = [0.0; LANES];
        for i in 0..LANES {
            inverse_sum[i] = 1.0 / sum[i];
        }
        Self { exps, inverse_sum }
    }

    /// Size of bin `k`.
    #[inline(always)]
    pub(super) fn size<S: Simd>(&self, form: Form, k: usize) -> LaneArray {
        let mut size = [0.0; LANES];
        for (i, size) in size.iter_mut().enumerate() {
            *size = fma::<S>(form.rest, self.exps[k][i] * self.inverse_sum[i], form.least);
        }
        size
    }
}

/// One bin of each sample along one side.
pub(super) struct Edge {
    /// Where it begins.
    pub(super) start: LaneArray,
    /// Its size.
    pub(super) size: LaneArray,
}

/// Walks along the bins of one side. Of each sample: the number of its bin, and the bin. By place, `at` is a value, and its
/// bin is the last that begins before it; else `at` is the number already, found along the other side.
#[inline(always)]
pub(super) fn bin_of<S: Simd, const ROOM: usize, const BY_PLACE: bool>(
    form: Form,
    softmax: &Softmax<ROOM>,
    at: &LaneArray,
) -> (LaneArray, Edge) {
    let mut number = [0.0; LANES];
    let mut edge = Edge { start: [-form.half_width; LANES], size: softmax.size::<S>(form, 0) };
    let mut next = [0.0; LANES];
    for (i, next) in next.iter_mut().enumerate() {
        *next = edge.start[i] + edge.size[i];
    }
    for k in 1..form.bins {
        let size = softmax.size::<S>(form, k);
        for i in 0..LANES {
            let beyond = if BY_PLACE { at[i] >= next[i] } else { at[i] >= k as f32 };
            number[i] = select(beyond, k as f32, number[i]);
            edge.start[i] = select(beyond, next[i], edge.start[i]);
            edge.size[i] = select(beyond, size[i], edge.size[i]);
            next[i] += size[i];
        }
    }
    (number, edge)
}

/// Slopes at both ends of a bin, and their derivatives by the parameters; 1 and 0 at the ends of the box.
pub(super) struct Slopes {
    pub(super) slope: [LaneArray; 2],
    pub(super) derivative: [LaneArray; 2],
}

impl Slopes {
    #[inline(always)]
    pub(super) fn of<S: Simd>(form: Form, parameters: Parameters<'_>, number: &LaneArray) -> Self {
        let mut raw = [[0.0; LANES]; 2];
        for knot in 1..form.bins {
            let e = parameters.slope(knot);
            for i in 0..LANES {
                raw[0][i] = select(number[i] == knot as f32, e[i], raw[0][i]);
                raw[1][i] = select(number[i] == (knot - 1) as f32, e[i], raw[1][i]);
            }
        }
        let mut slopes = Self { slope: [[1.0; LANES]; 2], derivative: [[0.0; LANES]; 2] };
        let ends = [0.0, (form.bins - 1) as f32];
        for side in 0..2 {
            for i in 0..LANES {
                let u = raw[side][i] + form.shift;
                let e = exp::<S>(-u.abs());
                let one = 1.0 + e;
                let softplus = u.max(0.0) + ln::<S>(one);
                let sigmoid = select(u > 0.0, 1.0, e) / one;
                let at_end = number[i] == ends[side];
                slopes.slope[side][i] = select(at_end, 1.0, form.min_slope + softplus);
                slopes.derivative[side][i] = select(at_end, 0.0, sigmoid);
            }
        }
        slopes
    }
}

/// A sample in its bin.
pub(super) struct Point {
    /// Place in the bin, 0 to 1.
    pub(super) t: f32,
    /// t (1 - t).
    pub(super) tt: f32,
    /// Height over width.
    pub(super) s: f32,
    /// d0 + d1 - 2 s.
    pub(super) q: f32,
    /// s + q t (1 - t).
    pub(super) den: f32,
    /// s t^2 + d0 t (1 - t).
    pub(super) num: f32,
    /// d1 t^2 + 2 s t (1 - t) + d0 (1 - t)^2.
    pub(super) slope_num: f32,
}

impl Point {
    #[inline(always)]
    pub(super) fn new<S: Simd>(t: f32, s: f32, d0: f32, d1: f32) -> Self {
        let rest = 1.0 - t;
        let tt = t * rest;
        let q = d0 + d1 - 2.0 * s;
        Self {
            t,
            tt,
            s,
            q,
            den: fma::<S>(q, tt, s),
            num: fma::<S>(s, t * t, d0 * tt),
            slope_num: fma::<S>(d1, t * t, fma::<S>(2.0 * s, tt, d0 * rest * rest)),
        }
    }

    /// Log-derivative of the spline.
    #[inline(always)]
    pub(super) fn log_slope<S: Simd>(&self) -> f32 {
        let ratio = self.s / self.den;
        ln::<S>(ratio * ratio * self.slope_num)
    }
}

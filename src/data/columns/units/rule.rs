//! Which transform a column gets where nothing is set: a rule on its training values alone.
//!
//! The reasons, in the order in which they are looked for:
//!
//! 1. A column with both bounds keeps its `logit`. One with a single bound gets `softplus` or `log`, whichever brings
//!    its quantiles nearer to those of a normal distribution.
//! 2. A heavy tail that is smooth gets `asinh`: values far from the median that go on without a gap, or so far that no
//!    exponential tail would reach them, and quantiles that `asinh` brings nearer to normal. Few different values are
//!    no tail.
//! 3. A few values, or one that repeats, behind a gap: where they alone make the deviation more than three times that
//!    of the others, the column gets `robust`. Rows far out that are many and differ are a mode of the data, not
//!    strays, and are left alone.
//! 4. Everything else is standardised.

use std::sync::LazyLock;

use super::asinh::Asinh;
use super::choice::Choice;
use super::softplus::Softplus;
use super::transform::{Map as _, Transform};
use crate::data::columns::quantile::{normal_quantile, quantile, spread};

/// A value this many times as far from the middle as all nearer ones is behind a gap.
const GAP: f64 = 5.0;
/// Most of the values that may lie behind gaps and be strays, where they differ.
const STRAYS: f64 = 0.01;
/// The same where one value repeats.
const REPEATED: f64 = 0.25;
/// Share of the values on one side of the gaps that are the same, for one that repeats.
const SAME: f64 = 0.8;
/// How many times the deviation must be that of the values without strays.
const DISAGREE: f64 = 3.0;
/// A tail is heavy whose quantile 0.995 is so many times as far out as that of a normal distribution, ...
const HEAVY: f64 = 3.0;
/// (in tables of fewer than a thousand rows, the quantile with so many values beyond it)
const BEYOND: f64 = 5.0;
/// ... or whose farthest value is so many scales out.
const FAR: f64 = 25.0;
/// Fewer different values have no tail.
const FEW: usize = 50;
/// A value with a larger share is an atom, which says nothing of the tails of the others.
const ATOM: f64 = 0.1;
/// How much the correlation with normal quantiles must rise.
const NEARER: f64 = 0.01;

/// Values without those behind gaps, with the middle and scale of what remains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Core<'a> {
    /// The values that remain, in order.
    pub(super) values: &'a [f64],
    /// Their median.
    pub(super) center: f64,
    /// Their deviation by quantiles; 0 if nearly all are the same.
    pub(super) scale: f64,
    /// How many lie behind a gap below and above.
    far: [usize; 2],
}

impl<'a> Core<'a> {
    /// The core of some values in order, of which there is one at least.
    pub(super) fn of(sorted: &'a [f64]) -> Self {
        let n = sorted.len();
        // The shortest interval with half of the values is no wider for what is far, on either side.
        let half = n / 2;
        let first = (0..n - half)
            .min_by(|&a, &b| (sorted[a + half] - sorted[a]).total_cmp(&(sorted[b + half] - sorted[b])))
            .unwrap_or(0);
        let (mut low, mut high) = (first, first + half);
        let middle = 0.5 * (sorted[low] + sorted[high]);
        let mut reach = 0.5 * (sorted[high] - sorted[low]);
        if reach <= 0.0 {
            // Half of the values are the same: the nearest others give the scale.
            let mut distances: Vec<f64> = sorted.iter().map(|x| (x - middle).abs()).collect();
            distances.sort_by(f64::total_cmp);
            let near = [0.75, 0.9, 0.95, 0.99].map(|p| quantile(&distances, p));
            let Some(near) = near.into_iter().find(|&d| d > 0.0) else {
                return Self { values: sorted, center: middle, scale: 0.0, far: [0, 0] };
            };
            reach = near;
        }
        loop {
            let within = |x: f64| (x - middle).abs() <= GAP * reach;
            let (below, above) = (low > 0 && within(sorted[low - 1]), high + 1 < n && within(sorted[high + 1]));
            if below {
                low -= 1;
                reach = reach.max(middle - sorted[low]);
            }
            if above {
                high += 1;
                reach = reach.max(sorted[high] - middle);
            }
            if !below && !above {
                break;
            }
        }
        let values = &sorted[low..=high];
        Self { values, center: quantile(values, 0.5), scale: spread(values), far: [low, n - 1 - high] }
    }

    fn deviation(&self) -> f64 {
        let n = self.values.len() as f64;
        let mean = self.values.iter().sum::<f64>() / n;
        (self.values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt()
    }
}

/// The transform of a column without bounds, of its values in order and their deviation.
pub(super) fn unbounded(sorted: &[f64], deviation: f64) -> Choice {
    let core = Core::of(sorted);
    if core.scale <= 0.0 {
        return Choice::Standardize;
    }
    if heavy(&core).is_some() {
        return Choice::Asinh;
    }
    let n = sorted.len();
    let sides = [&sorted[..core.far[0]], &sorted[n - core.far[1]..]];
    let share = |count: usize| count as f64 / n as f64;
    let strays = sides.iter().all(|side| {
        let most = if is_one_value(side) { REPEATED } else { STRAYS };
        share(side.len()) <= most || side.len() <= 1
    });
    let disagree = deviation > DISAGREE * core.deviation();
    if strays && disagree { Choice::Robust } else { Choice::Standardize }
}

/// The way across one bound, of the distances of a column's values from it, in order.
pub(super) fn bounded(distances: &[f64]) -> Choice {
    let softplus = Softplus { scale: softplus_scale(distances), upper: false };
    let linear = normality(&quantiles(distances, |d| softplus.map(d.ln())));
    if linear > normality(&quantiles(distances, f64::ln)) { Choice::Softplus } else { Choice::Log }
}

/// The scale of an exponential distribution with the median of these distances, which are in order.
pub(super) fn softplus_scale(distances: &[f64]) -> f64 {
    quantile(distances, 0.5) / std::f64::consts::LN_2
}

/// The best `asinh` of some values in order, whether or not they need one.
pub(super) fn asinh(core: &Core<'_>) -> Option<Asinh> {
    let bulk = without_atom(core.values);
    let scale = spread(&bulk);
    if scale <= 0.0 {
        return None;
    }
    let (least, greatest) = (bulk[0], bulk[bulk.len() - 1]);
    let mut candidates = vec![Asinh { center: quantile(&bulk, 0.5), scale }];
    // A logarithm from an edge on: zero if it is one, or that of the values.
    let mut edge = |edge: f64, near: f64| {
        let scale = (near - edge).abs();
        if scale > 0.0 {
            candidates.push(Asinh { center: edge, scale });
        }
    };
    let ends = [quantile(&bulk, 0.02), quantile(&bulk, 0.98)];
    for (end, near, inside) in [(least, ends[0], 1.0), (greatest, ends[1], -1.0)] {
        edge(end, near);
        if end * inside >= 0.0 {
            edge(0.0, near);
        }
    }
    let scored = candidates.into_iter().map(|map| (normality(&quantiles(&bulk, |x| map.map(x))), map));
    // The first of equals, so that a median is preferred.
    scored.reduce(|best, next| if next.0 > best.0 + 0.5 * NEARER { next } else { best }).map(|(_, map)| map)
}

/// The `asinh` of a column with a heavy tail; None if it has none.
fn heavy(core: &Core<'_>) -> Option<Transform> {
    let bulk = without_atom(core.values);
    let (center, scale) = (quantile(&bulk, 0.5), spread(&bulk));
    if scale <= 0.0 || different(&bulk) <= FEW {
        return None;
    }
    let out = |x: f64| (x - center).abs() / scale;
    // Of few values an outer quantile is one of them: it must have a few beyond it.
    let p = (BEYOND / bulk.len() as f64).clamp(0.005, 0.05);
    let tail = out(quantile(&bulk, 1.0 - p)).max(out(quantile(&bulk, p)));
    let farthest = out(bulk[0]).max(out(bulk[bulk.len() - 1]));
    if tail <= HEAVY * normal_quantile(1.0 - p) && farthest <= FAR {
        return None;
    }
    let map = asinh(core)?;
    let gain = normality(&quantiles(&bulk, |x| map.map(x))) - normality(&quantiles(&bulk, |x| x));
    (gain > NEARER).then_some(Transform::Asinh(map))
}

/// Values in order, without the one that holds more than its share of them.
fn without_atom(sorted: &[f64]) -> Vec<f64> {
    let most = (ATOM * sorted.len() as f64).ceil() as usize;
    let group = |x: f64| sorted.partition_point(|&v| v < x)..sorted.partition_point(|&v| v <= x);
    // A value with such a share covers one of these places.
    let places = (0..sorted.len()).step_by(most.max(1));
    let largest = places.map(|i| group(sorted[i])).max_by_key(std::ops::Range::len).unwrap_or(0..0);
    if largest.len() < most || largest.len() == sorted.len() {
        return sorted.to_vec();
    }
    [&sorted[..largest.start], &sorted[largest.end..]].concat()
}

fn is_one_value(sorted: &[f64]) -> bool {
    let longest = sorted.chunk_by(|a, b| a == b).map(<[f64]>::len).max().unwrap_or(0);
    longest > 1 && longest as f64 >= SAME * sorted.len() as f64
}

fn different(sorted: &[f64]) -> usize {
    sorted.chunk_by(|a, b| a == b).count()
}

/// Number of quantiles that are looked at, from 0.005 to 0.995.
const PLACES: usize = 100;

fn share(k: usize) -> f64 {
    (k as f64 + 0.5) / PLACES as f64
}

/// Quantiles of values in order, as a map takes them.
fn quantiles(sorted: &[f64], map: impl Fn(f64) -> f64) -> Vec<f64> {
    (0..PLACES).map(|k| map(quantile(sorted, share(k)))).collect()
}

/// Correlation of quantiles with those of a normal distribution; 0 if all are the same.
fn normality(quantiles: &[f64]) -> f64 {
    static NORMAL: LazyLock<Vec<f64>> = LazyLock::new(|| (0..PLACES).map(|k| normal_quantile(share(k))).collect());
    let mean = quantiles.iter().sum::<f64>() / PLACES as f64;
    let product = |f: &dyn Fn(f64, f64) -> f64| NORMAL.iter().zip(quantiles).map(|(&z, x)| f(z, x - mean)).sum::<f64>();
    let (zz, xx, zx) = (product(&|z, _| z * z), product(&|_, x| x * x), product(&|z, x| z * x));
    if xx > 0.0 { zx / (zz * xx).sqrt() } else { 0.0 }
}

//! `Adam`: sums partial gradients in the order of [`super::tree`] and updates the weights (docs/model.md, Optimiser).
//! `Clip` before it: the square of the gradient's norm, summed in an order that depends on nothing but the number of
//! weights.

use super::simd::{self, Kernel, Simd};
use super::tree::{BLOCK, Sums};
use crate::optim::AdamStep;

/// A range of the trained weights with its moments.
pub(crate) struct Slice<'a> {
    pub(crate) weights: &'a mut [f32],
    pub(crate) first: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
}

/// Updates a range of weights. `partials` are the same range of every partial gradient; their sum times
/// `scale` is the gradient: clamped, then L2 added, then the moments.
pub(crate) fn update<'a>(
    step: &AdamStep,
    scale: f32,
    slice: Slice<'_>,
    partials: impl Iterator<Item = &'a [f32]> + Clone,
) {
    simd::run(Update { step, scale, slice, partials });
}

/// The sum of the squares of the gradient in a range of `len` weights, of the same `partials`.
pub(crate) fn square<'a>(len: usize, partials: impl Iterator<Item = &'a [f32]> + Clone) -> f64 {
    /// Sums side by side.
    const LANES: usize = 8;
    let mut lanes = [0.0f64; LANES];
    let mut sums = Sums::new();
    for from in (0..len).step_by(BLOCK) {
        let range = from..len.min(from + BLOCK);
        for g in sums.of_parts(&range, partials.clone()).chunks_exact(LANES) {
            lanes.iter_mut().zip(g).for_each(|(lane, &g)| *lane += f64::from(g) * f64::from(g));
        }
    }
    lanes.iter().sum()
}

/// The factor that makes a gradient no longer than `bound`; none where the square of its norm is no number of f32.
pub(crate) fn clip(bound: f32, square: f64) -> Option<f32> {
    if !(square as f32).is_finite() {
        return None;
    }
    let norm = square.sqrt();
    // A norm of 0 is within any bound.
    Some(if norm > f64::from(bound) { (f64::from(bound) / norm) as f32 } else { 1.0 })
}

/// Moves averages towards the weights.
pub(crate) fn follow(share: f32, averages: &mut [f32], weights: &[f32]) {
    averages.iter_mut().zip(weights).for_each(|(a, p)| *a += share * (p - *a));
}

struct Update<'a, P> {
    step: &'a AdamStep,
    scale: f32,
    slice: Slice<'a>,
    partials: P,
}

impl<'p, P: Iterator<Item = &'p [f32]> + Clone> Kernel for Update<'_, P> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { step, scale, slice: Slice { weights, first, second }, partials } = self;
        let a = step.adam;
        let blocks = weights.chunks_mut(BLOCK).zip(first.chunks_mut(BLOCK)).zip(second.chunks_mut(BLOCK));
        let mut sums = Sums::new();
        for (b, ((weights, first), second)) in blocks.enumerate() {
            let range = b * BLOCK..b * BLOCK + weights.len();
            let sum = sums.of_parts(&range, partials.clone());
            for (((p, m), v), &g) in weights.iter_mut().zip(first).zip(second).zip(sum) {
                // A NaN gradient stays NaN through clamp, so that it is seen in the loss.
                let g = (g * scale).clamp(-a.grad_clamp, a.grad_clamp) + a.l2 * *p;
                *m = a.beta1 * *m + (1.0 - a.beta1) * g;
                *v = a.beta2 * *v + (1.0 - a.beta2) * g * g;
                *p -= step.rate * *m / (v.sqrt() * step.root + a.eps);
            }
        }
    }
}

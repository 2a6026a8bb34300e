//! `Adam`: sums partial gradients in fixed order and updates the weights (spec, section 5).

use super::simd::{self, Kernel, Simd};
use crate::optim::AdamStep;

/// A range of the trained weights with its moments.
pub(crate) struct Slice<'a> {
    pub(crate) weights: &'a mut [f32],
    pub(crate) first: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
}

/// Updates a range of weights. `partials` are the same range of every partial gradient; their sum, in this order, is
/// the gradient: clamped, then L2 added, then the moments.
pub(crate) fn update<'a>(step: &AdamStep, slice: Slice<'_>, partials: impl Iterator<Item = &'a [f32]> + Clone) {
    simd::run(Update { step, slice, partials });
}

struct Update<'a, P> {
    step: &'a AdamStep,
    slice: Slice<'a>,
    partials: P,
}

/// Weights whose gradient is summed on the stack.
const BLOCK: usize = 64;

impl<'p, P: Iterator<Item = &'p [f32]> + Clone> Kernel for Update<'_, P> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { step, slice: Slice { weights, first, second }, partials } = self;
        let a = step.adam;
        let blocks = weights.chunks_mut(BLOCK).zip(first.chunks_mut(BLOCK)).zip(second.chunks_mut(BLOCK));
        for (b, ((weights, first), second)) in blocks.enumerate() {
            let range = b * BLOCK..b * BLOCK + weights.len();
            let mut sum = [0.0f32; BLOCK];
            for partial in partials.clone() {
                sum.iter_mut().zip(&partial[range.clone()]).for_each(|(s, p)| *s += p);
            }
            for (((p, m), v), g) in weights.iter_mut().zip(first).zip(second).zip(sum) {
                // A NaN gradient stays NaN through clamp, so that it is seen in the loss.
                let g = g.clamp(-a.grad_clamp, a.grad_clamp) + a.l2 * *p;
                *m = a.beta1 * *m + (1.0 - a.beta1) * g;
                *v = a.beta2 * *v + (1.0 - a.beta2) * g * g;
                *p -= step.rate * *m / (v.sqrt() * step.root + a.eps);
            }
        }
    }
}

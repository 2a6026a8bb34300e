//! `Adam`: sums partial gradients in fixed order and updates the weights (spec, section 5).

use crate::optim::AdamStep;

/// A range of the trained weights with its moments.
pub(crate) struct Slice<'a> {
    pub(crate) weights: &'a mut [f32],
    pub(crate) first: &'a mut [f32],
    pub(crate) second: &'a mut [f32],
}

/// Updates a range of weights. `partials` are the same range of every partial gradient; their sum, in this order, is
/// the gradient: clamped, then L2 added, then the moments.
pub(crate) fn update(step: &AdamStep, slice: Slice<'_>, partials: &[&[f32]]) {
    /// Weights whose gradient is summed on the stack.
    const BLOCK: usize = 64;
    let a = step.adam;
    let Slice { weights, first, second } = slice;
    let blocks = weights.chunks_mut(BLOCK).zip(first.chunks_mut(BLOCK)).zip(second.chunks_mut(BLOCK));
    for (b, ((weights, first), second)) in blocks.enumerate() {
        let range = b * BLOCK..b * BLOCK + weights.len();
        let mut sum = [0.0f32; BLOCK];
        for partial in partials {
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

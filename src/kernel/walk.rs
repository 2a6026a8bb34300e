//! `Walk`: the inverse of a stage whose networks see the block's input (docs/model.md, Recursion).

use super::dropout::Dropout;
use super::networks::{self, Inputs, SavedActivations};
use super::{Shape, couple};
use crate::plan::{Spec, Stage};

/// Visits the nodes upper half first, then the node, then the lower half; `x` goes from output to input in place.
/// With `keep`, hidden activations are left for the backward pass.
#[expect(clippy::too_many_arguments, reason = "the buffers of the operation, in the order of `Op::Walk`")]
pub(crate) fn walk(
    shape: Shape,
    stage: &Stage,
    spec: &Spec,
    weights: &[f32],
    x: &mut [f32],
    given: &[f32],
    st: &mut [f32],
    [first, second]: [&mut [f32]; 2],
    keep: bool,
    dropout: Option<&Dropout>,
) {
    let keep = SavedActivations::of(stage, keep);
    for &i in &stage.walk {
        let node = &stage.nodes[i as usize];
        networks::node_forward(shape, node, weights, Inputs { x, given }, st, [first, second], keep, dropout);
        couple::node_inverse(shape, stage, node, spec, x, st);
    }
}

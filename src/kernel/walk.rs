//! `Walk`: the inverse of a stage whose networks see the block's input (spec, section 2).

use super::networks::{self, Inputs, SavedActivations};
use super::{Shape, couple};
use crate::plan::{Link, Scale, Stage};

/// Visits the nodes upper half first, then the node, then the lower half; `x` goes from output to input in place.
/// With `keep`, hidden activations are left for the backward pass.
#[expect(clippy::too_many_arguments, reason = "the buffers of the operation, in the order of `Op::Walk`")]
pub(crate) fn walk(
    shape: Shape,
    stage: &Stage,
    scale: Scale,
    weights: &[f32],
    x: &mut [f32],
    given: &[f32],
    st: &mut [f32],
    [first, second]: [&mut [f32]; 2],
    keep: bool,
) {
    let keep = SavedActivations::of(stage, keep);
    for &i in &stage.walk {
        let node = &stage.nodes[i as usize];
        networks::node_forward(shape, node, weights, Inputs { x, given }, st, [first, second], keep);
        for j in 0..node.lower {
            let link = Link { s: node.st + j, t: node.st + node.lower + j };
            let column = shape.row_mut(x, (node.lower_first + j) as usize);
            couple::link_inverse(shape, link, scale, column, st);
        }
    }
}

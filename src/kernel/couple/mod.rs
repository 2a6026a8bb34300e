//! `Couple`: what the couplings of a stage do to its columns, their log-determinant, inverse and backward, from the
//! parameters that networks have left in `st`. Each transformation has a file of its own, with the functions that are called below.

mod affine;
mod spline;

pub(crate) use spline::Form;

use super::Shape;
use crate::plan::{Node, Spec, Stage, Transform};

/// `to` = every column of `x` through its maps; adds their log-derivatives to `log_det`.
pub(crate) fn forward(
    shape: Shape,
    stage: &Stage,
    spec: &Spec,
    x: &[f32],
    st: &[f32],
    to: &mut [f32],
    log_det: &mut [f32],
) {
    match spec.coupling {
        Transform::Affine => affine::forward(shape, stage, spec.scale, x, st, to, log_det),
        Transform::Spline(spline) => spline::forward(shape, stage, spline, x, st, to, log_det),
    }
}

/// Inverts the maps of all columns in place.
pub(crate) fn inverse(shape: Shape, stage: &Stage, spec: &Spec, x: &mut [f32], st: &[f32]) {
    match spec.coupling {
        Transform::Affine => affine::inverse(shape, stage, spec.scale, x, st),
        Transform::Spline(spline) => spline::inverse(shape, stage, spline, x, st),
    }
}

/// Inverts in place what can be inverted when, on the inverse walk, the networks of `node` have run: its own affine
/// maps, or the splines of columns that no later node has parameters for.
pub(crate) fn node_inverse(shape: Shape, stage: &Stage, node: &Node, spec: &Spec, x: &mut [f32], st: &[f32]) {
    match spec.coupling {
        Transform::Affine => affine::node_inverse(shape, node, spec.scale, x, st),
        Transform::Spline(spline) => spline::node_inverse(shape, stage, node, spline, x, st),
    }
}

/// Writes to `d_from` and `d_st` the gradients of what [`inverse`] read, from those of what it made, `d_x`. Of affine maps
/// only, one for a column at most.
pub(crate) fn inverse_backward(
    shape: Shape,
    stage: &Stage,
    spec: &Spec,
    [x, st, d_x]: [&[f32]; 3],
    [d_from, d_st]: [&mut [f32]; 2],
) {
    assert!(spec.coupling == Transform::Affine, "the inverse of a spline has no backward pass");
    affine::inverse_backward(shape, stage, spec.scale, [x, st, d_x], [d_from, d_st]);
}

/// Buffers of the backward pass.
pub(crate) struct Gradients<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) st: &'a [f32],
    pub(crate) d_to: &'a [f32],
    pub(crate) d_log_det: &'a [f32],
    pub(crate) d_x: &'a mut [f32],
    pub(crate) d_st: &'a mut [f32],
}

/// Writes the gradients of `x` and of the parameters.
pub(crate) fn backward(shape: Shape, stage: &Stage, spec: &Spec, buffers: Gradients<'_>) {
    match spec.coupling {
        Transform::Affine => affine::backward(shape, stage, spec.scale, buffers),
        Transform::Spline(spline) => spline::backward(shape, stage, spline, buffers),
    }
}

//! `Mix`: multiplication of every sample by Q or its transpose (docs/model.md, Mixing), and the gradients. Of a
//! permutation rows are copied.

use super::product::{self, End, Matrix, Start};
use super::{Gradients, Shape};
use crate::plan::Mix;

/// `to = Q from` or `to = Q^T from`.
pub(crate) fn forward(shape: Shape, mix: &Mix, transpose: bool, weights: &[f32], from: &[f32], to: &mut [f32]) {
    let n = mix.dim as usize;
    let q = &weights[mix.q as usize..mix.q as usize + n * n];
    if mix.permutes {
        for (i, row) in q.chunks_exact(n).enumerate() {
            let j = row.iter().position(|&q| q == 1.0).unwrap_or(i);
            let (from_row, to_row) = if transpose { (i, j) } else { (j, i) };
            shape.row_mut(to, to_row).copy_from_slice(shape.row(from, from_row));
        }
    } else if transpose {
        product::data_gradient(shape, Matrix::whole(n, n), q, from, to, Start::Zero, End::Linear);
    } else {
        product::forward(shape, Matrix::whole(n, n), q, from, to, Start::Zero, End::Linear);
    }
}

/// `d_from = Q^T d_to`, where it is wanted; where Q is trained, sums `d_to from^T` in its gradient.
pub(crate) fn backward(
    shape: Shape,
    mix: &Mix,
    weights: &[f32],
    from: &[f32],
    d_to: &[f32],
    d_from: Option<&mut [f32]>,
    gradients: &mut Gradients<'_>,
) {
    if let Some(d_from) = d_from {
        forward(shape, mix, true, weights, d_to, d_from);
    }
    if mix.reflections.is_some() {
        let n = mix.dim as usize;
        let d_q = &mut gradients.values[mix.q as usize..mix.q as usize + n * n];
        product::weight_gradient(shape, Matrix::whole(n, n), d_to, from, d_q, None, gradients.fresh);
    }
}

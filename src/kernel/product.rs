//! The three matrix products of a linear layer on feature-major tiles, through the `gemm` crate.
//!
//! In a tile (features, samples) the samples are contiguous; `w` is row-major `[n_out, n_in]`.

use gemm::{Parallelism, gemm};

use super::Shape;

/// A strided matrix for `gemm`: distances between rows and between columns.
#[derive(Clone, Copy)]
struct Strides {
    row: usize,
    column: usize,
}

/// `dst (+)= lhs rhs` for (m, k) x (k, n).
fn multiply(
    [m, n, k]: [usize; 3],
    (dst, dst_strides): (&mut [f32], Strides),
    (lhs, lhs_strides): (&[f32], Strides),
    (rhs, rhs_strides): (&[f32], Strides),
    add: bool,
) {
    if m == 0 || n == 0 || (k == 0 && add) {
        return;
    }
    let last = |rows: usize, columns: usize, s: Strides| {
        if rows == 0 || columns == 0 { 0 } else { (rows - 1) * s.row + (columns - 1) * s.column + 1 }
    };
    assert!(last(m, n, dst_strides) <= dst.len());
    assert!(last(m, k, lhs_strides) <= lhs.len());
    assert!(last(k, n, rhs_strides) <= rhs.len());
    // SAFETY: the three assertions above bound every element that the product touches, and `dst` is borrowed
    // exclusively.
    unsafe {
        gemm(
            m,
            n,
            k,
            dst.as_mut_ptr(),
            dst_strides.column as isize,
            dst_strides.row as isize,
            add,
            lhs.as_ptr(),
            lhs_strides.column as isize,
            lhs_strides.row as isize,
            rhs.as_ptr(),
            rhs_strides.column as isize,
            rhs_strides.row as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// Samples down, features across.
fn samples_by_features(shape: Shape) -> Strides {
    Strides { row: 1, column: shape.stride }
}

/// `out = w x`, or `out += w x`: `w` is `[n, k]`, `x` (k, samples), `out` (n, samples).
pub(crate) fn forward(shape: Shape, [n, k]: [usize; 2], w: &[f32], x: &[f32], out: &mut [f32], add: bool) {
    let tile = samples_by_features(shape);
    multiply([shape.width, n, k], (out, tile), (x, tile), (w, Strides { row: 1, column: k }), add);
}

/// `d_x = w^T d_out`, or `d_x += w^T d_out`: `d_out` (n, samples), `d_x` (k, samples).
pub(crate) fn data_gradient(shape: Shape, [n, k]: [usize; 2], w: &[f32], d_out: &[f32], d_x: &mut [f32], add: bool) {
    let tile = samples_by_features(shape);
    multiply([shape.width, k, n], (d_x, tile), (d_out, tile), (w, Strides { row: k, column: 1 }), add);
}

/// `d_w += d_out x^T`: sums over samples.
pub(crate) fn weight_gradient(shape: Shape, [n, k]: [usize; 2], d_out: &[f32], x: &[f32], d_w: &mut [f32]) {
    let features_down = Strides { row: shape.stride, column: 1 };
    let tile = samples_by_features(shape);
    multiply([n, k, shape.width], (d_w, Strides { row: k, column: 1 }), (d_out, features_down), (x, tile), true);
}

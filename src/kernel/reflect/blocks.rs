//! Reflections applied to the samples of a tile, a block at a time, and back.

use super::{BLOCK, Reflections};
use crate::kernel::Shape;
use crate::kernel::product::{self, End, Matrix, Start};

/// Where [`Reflections::backward`] sums its gradients.
pub(crate) struct Sums<'a> {
    /// Of the vectors, row-major `[n, n]`; without [`Reflections::complete`]'s part.
    pub(crate) vectors: &'a mut [f32],
    /// Of products of the vectors of a block, for [`Reflections::complete`]; fewer than `n * n` values, see
    /// [`Reflections::inner_len`].
    pub(crate) inner: &'a mut [f32],
    /// Whether they are set rather than added to.
    pub(crate) fresh: bool,
}

impl Reflections {
    /// Values of [`Sums::inner`]; no more than `n * n`.
    pub(crate) fn inner_len(&self) -> usize {
        let left = self.n % BLOCK;
        self.n / BLOCK * BLOCK * BLOCK + left * left
    }

    /// `x <- Q x`, or `x <- Q^T x`, of samples (N, samples); scratch of [`super::SCRATCH`] features.
    pub(crate) fn apply(&self, shape: Shape, transpose: bool, x: &mut [f32], scratch: &mut [f32]) {
        let (dots, terms) = scratch.split_at_mut(BLOCK * shape.stride);
        let mut each = |block| {
            self.coefficients(shape, &block, transpose, x, dots, terms);
            self.subtract(shape, &block, terms, x);
        };
        if transpose { self.blocks().for_each(&mut each) } else { self.blocks().rev().for_each(&mut each) }
    }

    /// Backward of `y = Q x`: turns `d`, the gradient of y, into that of x, and sums the gradient of the vectors. What
    /// was y is scratch afterwards; so is `d` if nobody wants it. Padding of `d` must be zero.
    pub(crate) fn backward(
        &self,
        shape: Shape,
        y: &mut [f32],
        d: &mut [f32],
        wanted: bool,
        scratch: &mut [f32],
        sums: &mut Sums<'_>,
    ) {
        let stride = shape.stride;
        let (dots, terms) = scratch.split_at_mut(BLOCK * stride);
        let (of_y, of_d) = terms.split_at_mut(BLOCK * stride);
        for block in self.blocks() {
            let m = block.count;
            self.coefficients(shape, &block, true, y, dots, of_y);
            self.coefficients(shape, &block, true, d, dots, of_d);
            // Both are negative here, so their products are not.
            let inner = &mut sums.inner[block.first * BLOCK..][..m * m];
            product::weight_gradient(shape, Matrix::whole(m, m), of_d, of_y, inner, None, sums.fresh);
            let d_vectors = &mut sums.vectors[block.first * self.n..][..m * self.n];
            let whole = Matrix::whole(m, self.n);
            scaled(shape, block.scales, -1.0, of_y, dots);
            product::weight_gradient(shape, whole, dots, d, d_vectors, None, sums.fresh);
            scaled(shape, block.scales, 1.0, of_d, dots);
            product::weight_gradient(shape, whole, dots, y, d_vectors, None, false);
            let last = block.first + m == self.n;
            if !last {
                self.subtract(shape, &block, of_y, y);
            }
            if !last || wanted {
                self.subtract(shape, &block, of_d, d);
            }
        }
    }

    /// `terms = -T U x`, or `-T^T U x`.
    fn coefficients(
        &self,
        shape: Shape,
        block: &super::Block<'_>,
        transpose: bool,
        x: &[f32],
        dots: &mut [f32],
        terms: &mut [f32],
    ) {
        product::forward(shape, self.matrix(block), block.units, x, dots, Start::Zero, End::Linear);
        let (square, factor) = (Matrix::whole(block.count, block.count), block.factor);
        if transpose {
            product::data_gradient(shape, square, factor, dots, terms, Start::Zero, End::Linear);
        } else {
            product::forward(shape, square, factor, dots, terms, Start::Zero, End::Linear);
        }
    }

    /// `x <- x + U^T terms`: the terms are negative.
    fn subtract(&self, shape: Shape, block: &super::Block<'_>, terms: &[f32], x: &mut [f32]) {
        product::data_gradient(shape, self.matrix(block), block.units, terms, x, Start::Add, End::Linear);
    }
}

/// Every feature times `sign` and a number of its own.
fn scaled(shape: Shape, by: &[f32], sign: f32, from: &[f32], to: &mut [f32]) {
    for (i, by) in by.iter().enumerate() {
        let by = sign * by;
        shape.row_mut(to, i).iter_mut().zip(shape.row(from, i)).for_each(|(to, from)| *to = by * from);
    }
}

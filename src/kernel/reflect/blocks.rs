//! Reflections applied to the samples of a tile, a block at a time, and back.

use super::{BLOCK, Reflections, pitch};
use crate::kernel::product::{self, End, Matrix, Start};
use crate::kernel::simd::{self, Kernel, Simd};
use crate::kernel::{LANES, Shape};

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

    /// `x <- Q x`, or `x <- Q^T x`, of samples (N, samples); scratch of [`super::APPLY_SCRATCH`] features.
    pub(crate) fn apply(&self, shape: Shape, transpose: bool, x: &mut [f32], scratch: &mut [f32]) {
        let (dots, terms) = scratch.split_at_mut(BLOCK * shape.stride);
        let mut each = |block| {
            self.coefficients(shape, &block, transpose, x, dots, terms);
            self.subtract(shape, &block, terms, x);
        };
        if transpose { self.blocks().for_each(&mut each) } else { self.blocks().rev().for_each(&mut each) }
    }

    /// Features of scratch that [`Reflections::backward`] needs for tiles of any width: y and d, the gradients of a
    /// block, and three kinds of coefficients.
    pub(crate) fn backward_scratch(n: usize) -> usize {
        2 * pitch(n) + (BLOCK / LANES) * pitch(n) + 6 * BLOCK
    }

    /// Backward of `y = Q x`: turns `d`, the gradient of y, into that of x if somebody wants it, and sums the gradient of
    /// the vectors. Padding of `d` must be zero. Scratch of [`Reflections::backward_scratch`] features.
    ///
    /// All samples of y and then of d are turned about, so that the columns lie side by side as they do in the vectors.
    /// So one product does for both of them, and none has to turn them about for itself.
    pub(crate) fn backward(
        &self,
        shape: Shape,
        y: &[f32],
        d: &mut [f32],
        wanted: bool,
        scratch: &mut [f32],
        sums: &mut Sums<'_>,
    ) {
        let Self { n, pitch, .. } = *self;
        let (width, columns) = (shape.width, self.columns());
        let (both, rest) = scratch.split_at_mut(2 * width * pitch);
        let (gradient, rest) = rest.split_at_mut(BLOCK * pitch);
        let (dots, rest) = rest.split_at_mut(2 * width * BLOCK);
        let (terms, rest) = rest.split_at_mut(2 * width * BLOCK);
        let swapped = &mut rest[..2 * width * BLOCK];
        let half = width * BLOCK;
        turn(y, shape.stride, [n, width], both, pitch);
        turn(d, shape.stride, [n, width], &mut both[width * pitch..], pitch);
        for block in self.blocks() {
            let m = block.count;
            let lanes = Shape { stride: BLOCK, width: m.next_multiple_of(LANES), rows: m };
            let square = Matrix { outputs: 2 * width, inputs: m, pitch: BLOCK };
            product::weight_gradient(columns, square, both, block.units, dots, None, true);
            product::forward(lanes, square, dots, block.factor, terms, Start::Zero, End::Linear);
            let (of_y, of_d) = terms.split_at(half);
            // Both are negative here, so their products are not.
            let mut inner = [0.0; BLOCK * BLOCK];
            let one = Matrix { outputs: width, ..square };
            product::data_gradient(lanes, one, of_d, of_y, &mut inner, Start::Zero, End::Linear);
            let to = &mut sums.inner[block.first * BLOCK..][..m * m];
            for (to, from) in to.chunks_exact_mut(m).zip(inner.chunks_exact(BLOCK)) {
                put(to, from, 1.0, sums.fresh);
            }

            let (with_y, with_d) = swapped.split_at_mut(half);
            with_y.copy_from_slice(of_d);
            with_d.iter_mut().zip(of_y).for_each(|(to, term)| *to = -term);
            product::data_gradient(columns, square, swapped, both, gradient, Start::Zero, End::Linear);
            let to = &mut sums.vectors[block.first * n..][..m * n];
            let each = to.chunks_exact_mut(n).zip(gradient.chunks_exact(pitch)).zip(block.scales);
            each.for_each(|((to, from), &scale)| put(to, from, scale, sums.fresh));

            if block.first + m < n {
                product::forward(columns, square, terms, block.units, both, Start::Add, End::Linear);
            } else if wanted {
                let d = &mut both[width * pitch..];
                product::forward(columns, one, of_d, block.units, d, Start::Add, End::Linear);
            }
        }
        if wanted {
            turn(&both[width * pitch..], pitch, [width, n], d, shape.stride);
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
        let square = Matrix { outputs: block.count, inputs: block.count, pitch: BLOCK };
        let factor = block.factor;
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

/// Sets values to others times a number, or adds them.
fn put(to: &mut [f32], from: &[f32], by: f32, fresh: bool) {
    if fresh {
        to.iter_mut().zip(from).for_each(|(to, from)| *to = by * from);
    } else {
        to.iter_mut().zip(from).for_each(|(to, from)| *to += by * from);
    }
}

/// Turns about some rows of values, so that value j of row i goes to value i of row j; `sizes` are the rows and the values
/// of a row. Up to whole groups of lanes there are zeros behind the values.
fn turn(from: &[f32], from_stride: usize, sizes: [usize; 2], to: &mut [f32], to_stride: usize) {
    simd::run(Turn { from, from_stride, sizes, to, to_stride });
}

struct Turn<'a> {
    from: &'a [f32],
    from_stride: usize,
    sizes: [usize; 2],
    to: &'a mut [f32],
    to_stride: usize,
}

impl Kernel for Turn<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { from, from_stride, sizes: [rows, values], to, to_stride } = self;
        let (all_rows, all_values) = (rows.next_multiple_of(LANES), values.next_multiple_of(S::WIDTH));
        assert!(all_rows <= to_stride && all_values <= from_stride);
        assert!((rows - 1) * from_stride + all_values <= from.len());
        assert!((values - 1) * to_stride + all_rows <= to.len());
        for i in (0..all_rows).step_by(S::WIDTH) {
            let rows = rows.saturating_sub(i).min(S::WIDTH);
            for j in (0..values).step_by(S::WIDTH) {
                let (here, there) = (i * from_stride + j, j * to_stride + i);
                // SAFETY: the assertions bound the last of the values that exist, and those up to whole vectors beside
                // them. Only of rows that exist values are read or written: what is left over goes by a room of its own.
                unsafe {
                    let from = from.as_ptr().wrapping_add(here);
                    if values - j >= S::WIDTH {
                        S::transpose(from, from_stride, rows, to.as_mut_ptr().add(there), to_stride);
                    } else {
                        let mut room = [0.0; LANES * LANES];
                        S::transpose(from, from_stride, rows, room.as_mut_ptr(), LANES);
                        for (k, room) in room.chunks_exact(LANES).enumerate().take(values - j) {
                            to[there + k * to_stride..][..S::WIDTH].copy_from_slice(&room[..S::WIDTH]);
                        }
                    }
                }
            }
        }
    }
}

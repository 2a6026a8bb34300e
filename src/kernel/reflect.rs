//! `Reflect`: Q as a product of Householder reflections (docs/model.md, Mixing), applied block by block with matrix
//! products, and the gradient of the vectors.
//!
//! `Q = H_1 ... H_N`, `H_r = I - 2 u_r u_r^T` with `u_r = v_r / |v_r|`. [`BLOCK`] reflections side by side are
//! `I - U^T T U` (the rows of U are their unit vectors), T upper triangular: its inverse has the `|u_r|^2 / 2` on the
//! diagonal and the `u_i . u_r` above (C. Puglisi, "Modification of the Householder method based on the compact WY
//! representation", 1992). Unit vectors, so that vectors of any size do; norms and T are worked out in f64, with the
//! length that u_r has after rounding, so that the block is orthogonal although U is not exactly the vectors'.
//!
//! With y = Q x and d the gradient of y, the vectors' gradient needs what is skew alone: if S is the sum of
//! `d y^T - y d^T` over the samples, u_1 has the gradient `2 S u_1`, and the rest of Q sees `H_1 S H_1`. For a block,
//! with `a = T^T U y` and `e = T^T U d`, all of its vectors together have the gradient
//! `a d^T - e y^T - K^T U`, K what of `e a^T - a e^T` lies above the diagonal. Then x and its gradient take the places
//! of y and d: `y <- y - U^T a`, `d <- d - U^T e`. Three products of both together ([`blocks`]); K has a few
//! values, so the last term waits until all samples are summed ([`Reflections::complete`]).
//!
//! # Two ways
//!
//! Per mixing and batch B, to the samples themselves: 4 N^2 B operations forward and 12 N^2 B backward ([`blocks`]).
//! With a matrix Q, which the same code makes of the identity: 6 N^2 B for the batch, and 16 N^3 ([`whole`]). So a
//! training step makes a matrix where the batch is large ([`by_blocks`]); everything else does, as Q stays the same
//! until the weights change.
//!
//! User time of a training step on one thread, 8 blocks of width 64, with AVX-512, on a busy machine. Batches of 90: 400
//! columns 70 ms, and 43 with fixed mixing; 100 columns 10.2 and 7.5. Where y and its gradient went their own ways
//! backward, each turned about once more for every block: 400 columns 77 ms in the same minutes. In batches of 1000, where
//! Q is a matrix, an earlier version took 252 ms for 100 columns, and 206 with fixed mixing.

pub(crate) mod blocks;
#[cfg(test)]
pub(crate) mod plain;
#[cfg(test)]
mod tests;
mod whole;

use std::alloc::{Layout, handle_alloc_error};

use rayon::prelude::*;

use super::memory::Floats;
use super::product::{self, End, Matrix, Start};
use super::{LANES, Shape};

/// Reflections of a block.
pub(crate) const BLOCK: usize = 32;

/// Features of scratch that [`Reflections::apply`] needs.
pub(crate) const APPLY_SCRATCH: usize = 2 * BLOCK;

/// Distance between two unit vectors: an odd number of lane groups, since distances of powers of two would put all of
/// them into the same cache sets.
fn pitch(n: usize) -> usize {
    LANES * (n.div_ceil(LANES) | 1)
}

/// Whether a training step of `rows` samples applies the reflections to them rather than make Q of them.
pub(crate) fn by_blocks(rows: usize, n: usize) -> bool {
    2 * rows < 3 * n
}

/// The reflections of one mixing, ready to be applied.
pub(crate) struct Reflections {
    n: usize,
    /// Distance between two unit vectors.
    pitch: usize,
    /// Unit vectors (N, pitch), zeros behind each; a zero vector stays zero.
    units: Floats,
    /// 1 / |v_r|; 0 for a zero vector.
    scales: Vec<f32>,
    /// -T of each block, row-major `[BLOCK, BLOCK]`, with zeros behind what there is.
    factors: Floats,
    /// Memory of [`whole`] and of [`Reflections::complete`].
    room: Vec<f32>,
    /// The sums K of [`whole`].
    inner: Vec<f32>,
}

/// One block of them.
#[derive(Clone, Copy)]
struct Block<'a> {
    /// How many reflections.
    count: usize,
    /// The first one's number.
    first: usize,
    /// Their unit vectors, from the first on.
    units: &'a [f32],
    /// 1 / |v_r| of each.
    scales: &'a [f32],
    /// -T, `[BLOCK, BLOCK]`.
    factor: &'a [f32],
}

impl Reflections {
    /// Room for the reflections of a mixing of `n` columns.
    pub(crate) fn new(n: usize) -> Self {
        let pitch = pitch(n);
        // As every other allocation that fails.
        let zeros = |len: usize| {
            let layout = || Layout::array::<f32>(len).unwrap_or(Layout::new::<f32>());
            Floats::zeroed(len).unwrap_or_else(|| handle_alloc_error(layout()))
        };
        Self {
            n,
            pitch,
            units: zeros(n * pitch),
            scales: vec![0.0; n],
            factors: zeros(n.div_ceil(BLOCK) * BLOCK * BLOCK),
            room: Vec::new(),
            inner: Vec::new(),
        }
    }

    /// Bytes it holds.
    pub(crate) fn bytes(&self) -> usize {
        let all = [&*self.units, &self.scales, &*self.factors, &self.room, &self.inner];
        all.iter().map(|values| size_of_val(*values)).sum()
    }

    /// Takes the reflection vectors, row-major `[n, n]` (row r is v_r). A zero vector reflects nothing.
    pub(crate) fn set(&mut self, vectors: &[f32]) {
        let Self { n, pitch, .. } = *self;
        let units = self.units.par_chunks_mut(BLOCK * pitch);
        let scales = self.scales.par_chunks_mut(BLOCK);
        let factors = self.factors.par_chunks_mut(BLOCK * BLOCK);
        vectors.par_chunks(BLOCK * n).zip(units).zip(scales.zip(factors)).for_each(
            |((vectors, units), (scales, factor))| {
                let mut betas = [0.0; BLOCK];
                let each = vectors.chunks_exact(n).zip(units.chunks_exact_mut(pitch)).zip(scales.iter_mut());
                for (((v, u), scale), beta) in each.zip(&mut betas) {
                    (*scale, *beta) = unit(v, u);
                }
                let count = scales.len();
                let shape = Shape { stride: pitch, width: n.next_multiple_of(LANES), rows: n };
                let mut dots = [0.0; BLOCK * BLOCK];
                let dots = &mut dots[..count * count];
                product::weight_gradient(shape, Matrix::whole(count, count), units, units, dots, None, true);
                triangle(dots, &betas[..count], factor);
            },
        );
    }

    fn blocks(&self) -> impl DoubleEndedIterator<Item = Block<'_>> {
        let units = self.units.chunks(BLOCK * self.pitch);
        let factors = self.factors.chunks_exact(BLOCK * BLOCK);
        units.zip(self.scales.chunks(BLOCK)).zip(factors).enumerate().map(|(b, ((units, scales), factor))| {
            let count = scales.len();
            Block { count, first: b * BLOCK, units, scales, factor }
        })
    }

    /// The unit vectors as features, whose samples are the columns.
    fn columns(&self) -> Shape {
        Shape { stride: self.pitch, width: self.n.next_multiple_of(LANES), rows: self.n }
    }

    /// The matrix of a block's unit vectors.
    fn matrix(&self, block: &Block<'_>) -> Matrix {
        Matrix { outputs: block.count, inputs: self.n, pitch: self.pitch }
    }

    /// Adds what is left of the vectors' gradient once all samples are summed: `inner(i)` is number i of the sums that
    /// [`Reflections::backward`] leaves.
    pub(crate) fn complete(&mut self, inner: impl Fn(usize) -> f32, d_vectors: &mut [f32]) {
        let mut room = self.take_room(BLOCK * self.pitch);
        let Self { n, pitch, .. } = *self;
        let shape = Shape { stride: pitch, width: n.next_multiple_of(LANES), rows: n };
        for block in self.blocks() {
            let m = block.count;
            let sum = |row: usize, column: usize| inner(block.first * BLOCK + row * m + column);
            let mut factor = [0.0; BLOCK * BLOCK];
            for r in 0..m {
                for i in 0..r {
                    factor[r * m + i] = block.scales[r] * (sum(r, i) - sum(i, r));
                }
            }
            let (whole, zero) = (Matrix::whole(m, m), Start::Zero);
            product::forward(shape, whole, &factor, block.units, &mut room, zero, End::Linear);
            let d_block = &mut d_vectors[block.first * n..][..m * n];
            for (d, term) in d_block.chunks_exact_mut(n).zip(room.chunks_exact(pitch)) {
                d.iter_mut().zip(term).for_each(|(d, term)| *d += term);
            }
        }
        self.room = room;
    }
}

/// Writes `v / |v|`; returns `1 / |v|`, and 2 over the square of what was written. Zeros for the zero vector.
fn unit(v: &[f32], u: &mut [f32]) -> (f32, f64) {
    let square = |v: &[f32]| -> f64 {
        // Eight sums, so that they need not wait for one another.
        let mut sums = [0.0f64; 8];
        for v in v.chunks(8) {
            sums.iter_mut().zip(v).for_each(|(sum, &v)| *sum += f64::from(v) * f64::from(v));
        }
        sums.iter().sum()
    };
    let length = square(v).sqrt();
    if length == 0.0 {
        u[..v.len()].fill(0.0);
        return (0.0, 0.0);
    }
    let scale = length.recip();
    u.iter_mut().zip(v).for_each(|(u, &v)| *u = (f64::from(v) * scale) as f32);
    (scale as f32, 2.0 / square(&u[..v.len()]))
}

/// -T from the products of a block's unit vectors, row-major, and `2 / |u_r|^2`: column r of T is
/// `-beta_r T (u_i . u_r)_{i < r}`, with beta_r on the diagonal.
fn triangle(dots: &[f32], betas: &[f64], factor: &mut [f32]) {
    let m = betas.len();
    // Transposed: row r has column r of T.
    let mut columns = [0.0f64; BLOCK * BLOCK];
    for (r, &beta) in betas.iter().enumerate() {
        let (done, rest) = columns.split_at_mut(r * BLOCK);
        let column = &mut rest[..BLOCK];
        for (k, earlier) in done.chunks_exact(BLOCK).enumerate() {
            let by = -beta * f64::from(dots[k * m + r]);
            column[..=k].iter_mut().zip(earlier).for_each(|(c, e)| *c += by * e);
        }
        column[r] = beta;
    }
    for i in 0..m {
        for r in 0..m {
            factor[i * BLOCK + r] = -columns[r * BLOCK + i] as f32;
        }
    }
}

//! `d_w += d_out x^T` and `d_b += sum d_out`, summed over samples.
//!
//! Wide layers: some columns of x are transposed once, so that inputs lie side by side, and the same register tile as
//! in [`super::linear`] sums over samples with the gradients broadcast. Narrow ones: dot products along the samples.
//! So, too, the few columns that are left over when whole vectors of them are done: for 65 inputs a fifth vector with
//! one column in it took a fifth of the time.

use std::mem::MaybeUninit;

use super::Matrix;
use crate::kernel::memory::fetch;
use crate::kernel::simd::{self, Kernel, Simd};
use crate::kernel::{LANES, Shape};

/// `d_w += d_out x^T` and `d_b += sum d_out`, summed over samples. With `fresh` they are set instead.
pub(crate) fn weight_gradient(
    shape: Shape,
    matrix: Matrix,
    d_out: &[f32],
    x: &[f32],
    d_w: &mut [f32],
    d_b: Option<&mut [f32]>,
    fresh: bool,
) {
    if matrix.wide() {
        simd::run(WeightGradient::<true> { shape, matrix, d_out, x, d_w, d_b, fresh });
    } else {
        simd::run(WeightGradient::<false> { shape, matrix, d_out, x, d_w, d_b, fresh });
    }
}

/// With `FETCH` a register tile of columns first asks for the gradients that it adds to.
struct WeightGradient<'a, const FETCH: bool> {
    shape: Shape,
    matrix: Matrix,
    d_out: &'a [f32],
    x: &'a [f32],
    d_w: &'a mut [f32],
    d_b: Option<&'a mut [f32]>,
    fresh: bool,
}

impl<const FETCH: bool> Kernel for WeightGradient<'_, FETCH> {
    #[inline(always)]
    fn run<S: Simd>(mut self) {
        self.bias::<S>();
        let Matrix { outputs: n, inputs: k, .. } = self.matrix;
        // Columns are paid for in whole vectors and a transposition, dot products by their sums at the end: they meet
        // at about two vectors of columns and a register tile of outputs.
        if n >= 8 && k >= 2 * S::WIDTH - S::WIDTH / 4 {
            // A column by dot products takes about a tenth of a vector of columns.
            let left = if k % S::WIDTH <= S::WIDTH * 3 / 8 { k % S::WIDTH } else { 0 };
            match S::REGISTERS {
                32 => {
                    self.transposed::<S, 3, 8>(k - left);
                    self.dots::<S, 5>(k - left);
                }
                _ => {
                    self.transposed::<S, 2, 6>(k - left);
                    self.dots::<S, 3>(k - left);
                }
            }
        } else {
            match S::REGISTERS {
                32 => self.dots::<S, 5>(0),
                _ => self.dots::<S, 3>(0),
            }
        }
    }
}

impl<const FETCH: bool> WeightGradient<'_, FETCH> {
    #[inline(always)]
    fn bias<S: Simd>(&mut self) {
        let n = self.matrix.outputs;
        let Some(d_b) = &mut self.d_b else { return };
        for (o, d_b) in (0..n).step_by(4).zip(d_b[..n].chunks_mut(4)) {
            let mut sums = [S::splat(0.0); 4];
            for (sum, o) in sums.iter_mut().zip(o..n) {
                for values in self.shape.row(self.d_out, o).chunks_exact(S::WIDTH) {
                    // SAFETY: as many values as a vector has.
                    *sum = S::mul_add(S::splat(1.0), unsafe { S::load(values.as_ptr()) }, *sum);
                }
            }
            put(d_b, S::sums(sums), self.fresh);
        }
    }
}

/// Sets or adds to no more than four values.
#[inline(always)]
fn put(to: &mut [f32], sums: [f32; 4], fresh: bool) {
    for (to, sum) in to.iter_mut().zip(sums) {
        *to = if fresh { sum } else { *to + sum };
    }
}

/// Samples of a columns; with 48 columns it fills most of a first-level cache of 48 KB.
const COLUMN_ROWS: usize = 160;

/// Floats of a columns: at most three vectors of 16 columns.
const COLUMNS: usize = COLUMN_ROWS * 3 * 16;

/// Some columns of x with the inputs side by side: value `[sample][column]`.
#[repr(C, align(64))]
struct Columns {
    _values: [MaybeUninit<f32>; COLUMNS],
}

impl<const FETCH: bool> WeightGradient<'_, FETCH> {
    /// The first `inputs` inputs, `V` vectors of them at a time.
    #[inline(always)]
    fn transposed<S: Simd, const V: usize, const O: usize>(&mut self, inputs: usize) {
        const { assert!(V * S::WIDTH * COLUMN_ROWS <= COLUMNS && LANES.is_multiple_of(S::WIDTH)) };
        let mut columns = Columns { _values: [const { MaybeUninit::uninit() }; COLUMNS] };
        let columns: *mut f32 = (&raw mut columns).cast();
        let Shape { width, .. } = self.shape;
        let mut first = 0;
        while first < width {
            let rows = (width - first).min(COLUMN_ROWS);
            let mut i = 0;
            while i < inputs {
                // SAFETY: the columns has room for `V` vectors of `rows` samples.
                unsafe {
                    match (inputs - i).div_ceil(S::WIDTH) {
                        1 => self.columns::<S, 1, O>(columns, first, rows, i),
                        2 => self.columns::<S, 2, O>(columns, first, rows, i),
                        _ => self.columns::<S, V, O>(columns, first, rows, i),
                    }
                }
                i += V * S::WIDTH;
            }
            first += rows;
        }
    }

    /// All outputs of `V` vectors of inputs from `i` on, over `rows` samples from `first` on.
    ///
    /// # Safety
    /// `columns` has room for `V` vectors of `rows` samples.
    #[inline(always)]
    unsafe fn columns<S: Simd, const V: usize, const O: usize>(
        &mut self,
        columns: *mut f32,
        first: usize,
        rows: usize,
        i: usize,
    ) {
        let Matrix { outputs: n, inputs: k, .. } = self.matrix;
        let stride = self.shape.stride;
        let used = (k - i).min(V * S::WIDTH);
        assert!((i + used - 1) * stride + first + rows <= self.x.len() && rows.is_multiple_of(S::WIDTH));
        for (v, used) in (0..used).step_by(S::WIDTH).map(|c| (c / S::WIDTH, (used - c).min(S::WIDTH))) {
            for at in (0..rows).step_by(S::WIDTH) {
                // SAFETY: the assertion bounds the `used` inputs; the caller has the room.
                unsafe {
                    let from = self.x.as_ptr().add((i + v * S::WIDTH) * stride + first + at);
                    S::transpose(from, stride, used, columns.add(at * V * S::WIDTH + v * S::WIDTH), V * S::WIDTH);
                }
            }
        }
        let mut o = 0;
        // SAFETY: the columns is filled.
        unsafe {
            while o + O <= n {
                self.column_tile::<S, V, O>(columns, first, rows, i, o);
                o += O;
            }
            match n - o {
                1 => self.column_tile::<S, V, 1>(columns, first, rows, i, o),
                2 => self.column_tile::<S, V, 2>(columns, first, rows, i, o),
                3 => self.column_tile::<S, V, 3>(columns, first, rows, i, o),
                4 => self.column_tile::<S, V, 4>(columns, first, rows, i, o),
                5 => self.column_tile::<S, V, 5>(columns, first, rows, i, o),
                6 => self.column_tile::<S, V, 6>(columns, first, rows, i, o),
                7 => self.column_tile::<S, V, 7>(columns, first, rows, i, o),
                _ => {}
            }
        }
    }

    /// `O` outputs from `o` on.
    ///
    /// # Safety
    /// `columns` holds `V` vectors of `rows` samples.
    #[inline(always)]
    unsafe fn column_tile<S: Simd, const V: usize, const O: usize>(
        &mut self,
        columns: *const f32,
        first: usize,
        rows: usize,
        i: usize,
        o: usize,
    ) {
        let Shape { stride, .. } = self.shape;
        let Matrix { inputs: k, pitch, .. } = self.matrix;
        assert!((o + O - 1) * stride + first + rows <= self.d_out.len());
        let d_out = self.d_out[o * stride + first..].as_ptr();
        if FETCH {
            for row in (o..o + O).map(|o| o * pitch + i) {
                for v in 0..V {
                    fetch(self.d_w, row + v * S::WIDTH);
                }
                // Rows of weights begin anywhere in a cache line, so there may be one more.
                fetch(self.d_w, row + V * S::WIDTH - 1);
            }
        }
        let mut sums = [[S::splat(0.0); V]; O];
        for r in 0..rows {
            // SAFETY: the assertion bounds the gradients, the caller has filled the columns.
            unsafe {
                let mut inputs = [S::splat(0.0); V];
                for (v, input) in inputs.iter_mut().enumerate() {
                    *input = S::load(columns.add((r * V + v) * S::WIDTH));
                }
                for (j, sums) in sums.iter_mut().enumerate() {
                    let gradient = S::splat(*d_out.add(j * stride + r));
                    for (sum, input) in sums.iter_mut().zip(inputs) {
                        *sum = S::mul_add(gradient, input, *sum);
                    }
                }
            }
        }
        for (j, sums) in sums.into_iter().enumerate() {
            let row = &mut self.d_w[(o + j) * pitch + i..(o + j) * pitch + k];
            for (sum, to) in sums.into_iter().zip(row.chunks_mut(S::WIDTH)) {
                if self.fresh && first == 0 {
                    S::store_first(sum, to);
                } else {
                    S::add_to(sum, to);
                }
            }
        }
    }
}

impl<const FETCH: bool> WeightGradient<'_, FETCH> {
    /// Tiles of `O` outputs and four inputs, of the inputs from `first` on.
    #[inline(always)]
    fn dots<S: Simd, const O: usize>(&mut self, first: usize) {
        let n = self.matrix.outputs;
        let mut o = 0;
        while o + O <= n {
            self.dot_row::<S, O>(o, first);
            o += O;
        }
        match n - o {
            1 => self.dot_row::<S, 1>(o, first),
            2 => self.dot_row::<S, 2>(o, first),
            3 => self.dot_row::<S, 3>(o, first),
            4 => self.dot_row::<S, 4>(o, first),
            _ => {}
        }
    }

    #[inline(always)]
    fn dot_row<S: Simd, const O: usize>(&mut self, o: usize, first: usize) {
        let k = self.matrix.inputs;
        let mut i = first;
        while i + 4 <= k {
            self.dot_tile::<S, O, 4>(o, i);
            i += 4;
        }
        match k - i {
            1 => self.dot_tile::<S, O, 1>(o, i),
            2 => self.dot_tile::<S, O, 2>(o, i),
            3 => self.dot_tile::<S, O, 3>(o, i),
            _ => {}
        }
    }

    #[inline(always)]
    fn dot_tile<S: Simd, const O: usize, const I: usize>(&mut self, o: usize, i: usize) {
        let Shape { stride, width, .. } = self.shape;
        assert!((o + O - 1) * stride + width <= self.d_out.len());
        assert!((i + I - 1) * stride + width <= self.x.len() && width.is_multiple_of(S::WIDTH));
        let d_out = self.d_out[o * stride..].as_ptr();
        let x = self.x[i * stride..].as_ptr();
        let mut sums = [[S::splat(0.0); 4]; O];
        for at in (0..width).step_by(S::WIDTH) {
            // SAFETY: the assertions bound the last feature's `width` samples.
            unsafe {
                let mut gradients = [S::splat(0.0); O];
                for (a, gradient) in gradients.iter_mut().enumerate() {
                    *gradient = S::load(d_out.add(a * stride + at));
                }
                for b in 0..I {
                    let input = S::load(x.add(b * stride + at));
                    for (sums, gradient) in sums.iter_mut().zip(gradients) {
                        sums[b] = S::mul_add(gradient, input, sums[b]);
                    }
                }
            }
        }
        let pitch = self.matrix.pitch;
        for (a, sums) in sums.into_iter().enumerate() {
            put(&mut self.d_w[(o + a) * pitch + i..][..I], S::sums(sums), self.fresh);
        }
    }
}

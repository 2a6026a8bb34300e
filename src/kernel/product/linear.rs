//! `out = w x` and `out = w^T x`: a register tile of a few vectors of samples times some outputs, weights broadcast, no
//! packing and no padding of feature counts; bias, ReLU and its mask are fused into start and end.

use super::Matrix;
use crate::kernel::Shape;
use crate::kernel::memory::fetch;
use crate::kernel::simd::{self, Kernel, Simd};

/// What an output starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Zero.
    Zero,
    /// One value per output.
    Bias(&'a [f32]),
    /// What is there already.
    Add,
    /// What is there already, and one value per output.
    AddBias(&'a [f32]),
}

/// What is done to an output before it is stored.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// Nothing.
    Linear,
    /// ReLU.
    Relu,
    /// Backward of ReLU: zero if the activation (outputs, samples) is not positive.
    Mask(&'a [f32]),
}

/// `out = w x` with start and end as given: `x` (inputs, samples), `out` (outputs, samples).
pub(crate) fn forward(
    shape: Shape,
    matrix: Matrix,
    w: &[f32],
    x: &[f32],
    out: &mut [f32],
    start: Start<'_>,
    end: End<'_>,
) {
    let Matrix { outputs, inputs, pitch } = matrix;
    let (sizes, strides) = ([outputs, inputs], [pitch, 1]);
    if matrix.wide() {
        simd::run(Linear::<true> { shape, sizes, strides, w, x, out, start, end });
    } else {
        simd::run(Linear::<false> { shape, sizes, strides, w, x, out, start, end });
    }
}

/// `d_x = w^T d_out` with start and end as given: `d_out` (outputs, samples), `d_x` (inputs, samples).
pub(crate) fn data_gradient(
    shape: Shape,
    matrix: Matrix,
    w: &[f32],
    d_out: &[f32],
    d_x: &mut [f32],
    start: Start<'_>,
    end: End<'_>,
) {
    let Matrix { outputs, inputs, pitch } = matrix;
    let (sizes, strides) = ([inputs, outputs], [1, pitch]);
    if !matrix.wide() || inputs == 0 {
        simd::run(Linear::<false> { shape, sizes, strides, w, x: d_out, out: d_x, start, end });
        return;
    }
    let parts = outputs.div_ceil(PART).max(1);
    for (at, shape) in shape.sample_blocks(WIDE_SAMPLES) {
        for part in 0..parts {
            let [first, last] = [part, part + 1].map(|part| part * outputs / parts);
            simd::run(Linear::<true> {
                shape,
                sizes: [inputs, last - first],
                strides,
                w: &w[first * pitch..],
                x: &d_out[first * shape.stride + at..],
                out: &mut d_x[at..],
                start: if part == 0 { start } else { Start::Add },
                end: match end {
                    _ if part + 1 < parts => End::Linear,
                    End::Mask(activation) => End::Mask(&activation[at..]),
                    end => end,
                },
            });
        }
    }
}

/// Samples and outputs of a wide layer whose part of its data gradient is computed at a time: a register tile reads
/// three cache lines of samples and one of weights for each output, and all of them together fit a first-level cache of
/// 32 KB.
const WIDE_SAMPLES: usize = 48;
const PART: usize = 96;

/// `out[o] = sum_i w[o * strides[0] + i * strides[1]] x[i]` for `sizes` = [outputs, inputs]. With `FETCH` a register
/// tile first asks for what it needs last; code of its own, since narrow products lose by it.
struct Linear<'a, const FETCH: bool> {
    shape: Shape,
    sizes: [usize; 2],
    strides: [usize; 2],
    w: &'a [f32],
    x: &'a [f32],
    out: &'a mut [f32],
    start: Start<'a>,
    end: End<'a>,
}

impl<const FETCH: bool> Kernel for Linear<'_, FETCH> {
    #[inline(always)]
    fn run<S: Simd>(mut self) {
        // The sums of a register tile, a vector of samples per column and a weight fill the registers with few to
        // spare.
        match S::REGISTERS {
            32 => self.samples::<S, 3, 8>(),
            _ => self.samples::<S, 2, 6>(),
        }
    }
}

impl<const FETCH: bool> Linear<'_, FETCH> {
    /// All samples, `V` vectors at a time.
    #[inline(always)]
    fn samples<S: Simd, const V: usize, const O: usize>(&mut self) {
        let vectors = self.shape.width / S::WIDTH;
        let mut v = 0;
        while v < vectors {
            let at = v * S::WIDTH;
            // One vector left over would wait for its loads in a tile of its own. Where one would be, this tile takes a
            // vector less, so that two tiles have two vectors instead of three and one. Of tiles of two none is left
            // over: registers that allow no more are at most half as wide as a lane group, and widths are whole groups.
            let now = if (vectors - v) % V == 1 && vectors - v > 1 { V - 1 } else { V.min(vectors - v) };
            match now {
                1 => self.outputs::<S, 1, O>(at),
                2 => self.outputs::<S, 2, O>(at),
                _ => self.outputs::<S, V, O>(at),
            }
            v += now;
        }
    }

    /// All outputs of `V` vectors of samples from `at` on, `O` at a time.
    #[inline(always)]
    fn outputs<S: Simd, const V: usize, const O: usize>(&mut self, at: usize) {
        let outputs = self.sizes[0];
        let mut o = 0;
        while o + O <= outputs {
            self.tile::<S, V, O>(at, o);
            o += O;
        }
        match outputs - o {
            1 => self.tile::<S, V, 1>(at, o),
            2 => self.tile::<S, V, 2>(at, o),
            3 => self.tile::<S, V, 3>(at, o),
            4 => self.tile::<S, V, 4>(at, o),
            5 => self.tile::<S, V, 5>(at, o),
            6 => self.tile::<S, V, 6>(at, o),
            7 => self.tile::<S, V, 7>(at, o),
            _ => {}
        }
    }

    /// `O` outputs from `o` on, of the samples from `at` on.
    #[inline(always)]
    fn tile<S: Simd, const V: usize, const O: usize>(&mut self, at: usize, o: usize) {
        let (inputs, stride) = (self.sizes[1], self.shape.stride);
        let place = |j: usize, v: usize| (o + j) * stride + at + v * S::WIDTH;
        // Checked once, since tiles of few inputs would spend their time on it.
        let end = place(O - 1, V);
        assert!(end <= self.out.len());
        if FETCH {
            for j in 0..O {
                for v in 0..V {
                    fetch(self.out, place(j, v));
                    if let End::Mask(activation) = self.end {
                        fetch(activation, place(j, v));
                    }
                }
            }
        }
        let out = self.out.as_mut_ptr();
        let mut sums = [[S::splat(0.0); V]; O];
        match self.start {
            Start::Zero => {}
            Start::Bias(bias) => {
                for (sums, &bias) in sums.iter_mut().zip(&bias[o..o + O]) {
                    *sums = [S::splat(bias); V];
                }
            }
            Start::Add | Start::AddBias(_) => {
                for (j, sums) in sums.iter_mut().enumerate() {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: before `end`.
                        *sum = unsafe { S::load(out.add(place(j, v))) };
                    }
                }
            }
        }
        if let Start::AddBias(bias) = self.start {
            for (sums, &bias) in sums.iter_mut().zip(&bias[o..o + O]) {
                for sum in sums {
                    *sum = S::mul_add(S::splat(1.0), S::splat(bias), *sum);
                }
            }
        }
        if inputs > 0 {
            let [output_stride, input_stride] = self.strides;
            let first_weight = o * output_stride;
            assert!((inputs - 1) * stride + at + V * S::WIDTH <= self.x.len());
            assert!(first_weight + (O - 1) * output_stride + (inputs - 1) * input_stride < self.w.len());
            let x = self.x[at..].as_ptr();
            let w = self.w[first_weight..].as_ptr();
            for i in 0..inputs {
                // SAFETY: the assertions bound the last element that the largest i, j and v reach.
                unsafe {
                    let x = x.add(i * stride);
                    let w = w.add(i * input_stride);
                    let mut samples = [S::splat(0.0); V];
                    for (v, sample) in samples.iter_mut().enumerate() {
                        *sample = S::load(x.add(v * S::WIDTH));
                    }
                    for (j, sums) in sums.iter_mut().enumerate() {
                        let weight = S::splat(*w.add(j * output_stride));
                        for (sum, x) in sums.iter_mut().zip(samples) {
                            *sum = S::mul_add(weight, x, *sum);
                        }
                    }
                }
            }
        }
        match self.end {
            End::Linear => {}
            End::Relu => {
                for sum in sums.as_flattened_mut() {
                    *sum = S::relu(*sum);
                }
            }
            End::Mask(activation) => {
                assert!(end <= activation.len());
                for (j, sums) in sums.iter_mut().enumerate() {
                    for (v, sum) in sums.iter_mut().enumerate() {
                        // SAFETY: before `end`.
                        *sum = unsafe { S::keep_positive(*sum, S::load(activation.as_ptr().add(place(j, v)))) };
                    }
                }
            }
        }
        for (j, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                // SAFETY: before `end`.
                unsafe { S::store(sum, out.add(place(j, v))) };
            }
        }
    }
}

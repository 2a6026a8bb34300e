//! The three matrix products of a linear layer on feature-major tiles.
//!
//! In a tile (features, samples) the samples are contiguous; `w` is row-major `[n_out, n_in]`. Forward and data gradient
//! are the same loop with other strides: a register tile of a few vectors of samples times [`OUTPUTS`] outputs, weights
//! broadcast, no packing and no padding of feature counts; bias, ReLU and its mask are fused into start and end. The
//! weight gradient is a register tile of dot products along the samples.
//!
//! What decided the speed: against the `gemm` crate this is faster by a third to a half on the small layers of
//! recursive couplings (no packing of operands that are used once), and about equal on layers 450 wide.

use super::simd::{self, Kernel, Simd};
use super::{LANES, Shape};

/// Outputs of a register tile.
const OUTPUTS: usize = 6;

/// Vectors of samples of a register tile. With [`OUTPUTS`] sums each, two samples and a weight this fills 16 registers
/// with one to spare; three vectors times four outputs spilled, which took a third longer.
const VECTORS: usize = 2;

/// What an output starts from.
#[derive(Clone, Copy)]
pub(crate) enum Start<'a> {
    /// Zero.
    Zero,
    /// One value per output.
    Bias(&'a [f32]),
    /// What is there already.
    Add,
}

/// What is done to an output before it is stored.
#[derive(Clone, Copy)]
pub(crate) enum End<'a> {
    /// Nothing.
    Linear,
    /// ReLU.
    Relu,
    /// Backward of ReLU: zero where the activation (outputs, samples) is not positive.
    Mask(&'a [f32]),
}

/// `out = w x` with start and end as given: `w` is `[n, k]`, `x` (k, samples), `out` (n, samples).
pub(crate) fn forward(
    shape: Shape,
    [n, k]: [usize; 2],
    w: &[f32],
    x: &[f32],
    out: &mut [f32],
    start: Start<'_>,
    end: End<'_>,
) {
    simd::run(Linear { shape, sizes: [n, k], strides: [k, 1], w, x, out, start, end });
}

/// `d_x = w^T d_out` with start and end as given: `d_out` (n, samples), `d_x` (k, samples).
pub(crate) fn data_gradient(
    shape: Shape,
    [n, k]: [usize; 2],
    w: &[f32],
    d_out: &[f32],
    d_x: &mut [f32],
    start: Start<'_>,
    end: End<'_>,
) {
    simd::run(Linear { shape, sizes: [k, n], strides: [1, k], w, x: d_out, out: d_x, start, end });
}

/// `d_w += d_out x^T` and `d_b += sum d_out`, summed over samples: `d_w` is `[n, k]`.
pub(crate) fn weight_gradient(
    shape: Shape,
    [n, k]: [usize; 2],
    d_out: &[f32],
    x: &[f32],
    d_w: &mut [f32],
    d_b: Option<&mut [f32]>,
) {
    simd::run(WeightGradient { shape, sizes: [n, k], d_out, x, d_w, d_b });
}

/// `out[o] = sum_i w[o * strides[0] + i * strides[1]] x[i]` for `sizes` = [outputs, inputs].
struct Linear<'a> {
    shape: Shape,
    sizes: [usize; 2],
    strides: [usize; 2],
    w: &'a [f32],
    x: &'a [f32],
    out: &'a mut [f32],
    start: Start<'a>,
    end: End<'a>,
}

impl Kernel for Linear<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self) {
        const { assert!(LANES.is_multiple_of(VECTORS * S::WIDTH)) };
        let outputs = self.sizes[0];
        for at in (0..self.shape.width).step_by(VECTORS * S::WIDTH) {
            let mut o = 0;
            while o + OUTPUTS <= outputs {
                self.tile::<S, OUTPUTS>(at, o);
                o += OUTPUTS;
            }
            match outputs - o {
                1 => self.tile::<S, 1>(at, o),
                2 => self.tile::<S, 2>(at, o),
                3 => self.tile::<S, 3>(at, o),
                4 => self.tile::<S, 4>(at, o),
                5 => self.tile::<S, 5>(at, o),
                _ => {}
            }
        }
    }
}

impl Linear<'_> {
    /// `O` outputs from `o` on, of the samples from `at` on.
    #[inline(always)]
    fn tile<S: Simd, const O: usize>(&mut self, at: usize, o: usize) {
        let (inputs, stride) = (self.sizes[1], self.shape.stride);
        let place = |o: usize, v: usize| o * stride + at + v * S::WIDTH;
        let mut sums = [[S::splat(0.0); VECTORS]; O];
        for (j, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = match self.start {
                    Start::Zero => S::splat(0.0),
                    Start::Bias(bias) => S::splat(bias[o + j]),
                    Start::Add => load::<S>(self.out, place(o + j, v)),
                };
            }
        }
        if inputs > 0 {
            let [output_stride, input_stride] = self.strides;
            let first_weight = o * output_stride;
            assert!((inputs - 1) * stride + at + VECTORS * S::WIDTH <= self.x.len());
            assert!(first_weight + (O - 1) * output_stride + (inputs - 1) * input_stride < self.w.len());
            let x = self.x[at..].as_ptr();
            let w = self.w[first_weight..].as_ptr();
            for i in 0..inputs {
                // SAFETY: the assertions bound the last element that the largest i, j and v reach.
                unsafe {
                    let x = x.add(i * stride);
                    let w = w.add(i * input_stride);
                    let samples: [S::Vector; VECTORS] = std::array::from_fn(|v| S::load(x.add(v * S::WIDTH)));
                    for (j, sums) in sums.iter_mut().enumerate() {
                        let weight = S::splat(*w.add(j * output_stride));
                        for (sum, x) in sums.iter_mut().zip(samples) {
                            *sum = S::mul_add(weight, x, *sum);
                        }
                    }
                }
            }
        }
        for (j, sums) in sums.into_iter().enumerate() {
            for (v, sum) in sums.into_iter().enumerate() {
                let at = place(o + j, v);
                let sum = match self.end {
                    End::Linear => sum,
                    End::Relu => S::relu(sum),
                    End::Mask(activation) => S::keep_positive(sum, load::<S>(activation, at)),
                };
                S::store(sum, &mut self.out[at..]);
            }
        }
    }
}

/// One vector from a place in a slice.
#[inline(always)]
fn load<S: Simd>(from: &[f32], at: usize) -> S::Vector {
    // SAFETY: the slice is as long as a vector.
    unsafe { S::load(from[at..at + S::WIDTH].as_ptr()) }
}

struct WeightGradient<'a> {
    shape: Shape,
    sizes: [usize; 2],
    d_out: &'a [f32],
    x: &'a [f32],
    d_w: &'a mut [f32],
    d_b: Option<&'a mut [f32]>,
}

impl Kernel for WeightGradient<'_> {
    #[inline(always)]
    fn run<S: Simd>(mut self) {
        let [n, k] = self.sizes;
        if let Some(d_b) = &mut self.d_b {
            for (o, d_b) in d_b.iter_mut().enumerate().take(n) {
                let mut sum = S::splat(0.0);
                for group in self.shape.row(self.d_out, o).chunks_exact(S::WIDTH) {
                    sum = S::mul_add(S::splat(1.0), load::<S>(group, 0), sum);
                }
                *d_b += S::sum(sum);
            }
        }
        let mut o = 0;
        while o + 4 <= n {
            self.row::<S, 4>(o, k);
            o += 4;
        }
        match n - o {
            1 => self.row::<S, 1>(o, k),
            2 => self.row::<S, 2>(o, k),
            3 => self.row::<S, 3>(o, k),
            _ => {}
        }
    }
}

impl WeightGradient<'_> {
    #[inline(always)]
    fn row<S: Simd, const O: usize>(&mut self, o: usize, k: usize) {
        let mut i = 0;
        while i + 3 <= k {
            self.tile::<S, O, 3>(o, i);
            i += 3;
        }
        match k - i {
            1 => self.tile::<S, O, 1>(o, i),
            2 => self.tile::<S, O, 2>(o, i),
            _ => {}
        }
    }

    #[inline(always)]
    fn tile<S: Simd, const O: usize, const I: usize>(&mut self, o: usize, i: usize) {
        let Shape { stride, width, .. } = self.shape;
        assert!((o + O - 1) * stride + width <= self.d_out.len());
        assert!((i + I - 1) * stride + width <= self.x.len());
        let d_out = self.d_out[o * stride..].as_ptr();
        let x = self.x[i * stride..].as_ptr();
        let mut sums = [[S::splat(0.0); I]; O];
        let mut at = 0;
        while at + S::WIDTH <= width {
            // SAFETY: the assertions bound the last feature's `width` samples.
            unsafe {
                let inputs: [S::Vector; I] = std::array::from_fn(|b| S::load(x.add(b * stride + at)));
                for (a, sums) in sums.iter_mut().enumerate() {
                    let gradient = S::load(d_out.add(a * stride + at));
                    for (sum, input) in sums.iter_mut().zip(inputs) {
                        *sum = S::mul_add(gradient, input, *sum);
                    }
                }
            }
            at += S::WIDTH;
        }
        let k = self.sizes[1];
        for (a, sums) in sums.into_iter().enumerate() {
            for (b, sum) in sums.into_iter().enumerate() {
                self.d_w[(o + a) * k + i + b] += S::sum(sum);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::abs_diff_eq;

    use super::*;
    use crate::rng::{Stream, fill_normals};

    fn numbers(seed: u64, n: usize) -> Vec<f32> {
        let mut out = vec![0.0; n];
        fill_normals(seed, Stream::Data, 0, 0, &mut out);
        out
    }

    fn assert_close(what: &str, got: f32, want: f64) {
        // False for NaN, so NaN fails.
        assert!(abs_diff_eq!(f64::from(got), want, epsilon = 1e-4), "{what}: {got} instead of {want}");
    }

    /// Every remainder of every register tile: outputs, inputs, vectors of samples.
    #[test]
    fn products_agree_with_f64_for_awkward_sizes() {
        check_products();
    }

    #[test]
    fn portable_products_agree_with_f64_for_awkward_sizes() {
        simd::portable::force(check_products);
    }

    fn check_products() {
        for (width, stride) in [(16, 48), (32, 48), (48, 48), (80, 112), (160, 176)] {
            let shape = Shape { stride, width, rows: width };
            for n in [1, 2, 3, 4, 5, 7, 13] {
                for k in [0, 1, 2, 3, 4, 5, 8] {
                    let w = numbers(1, n * k);
                    let x = numbers(2, k * stride);
                    let d = numbers(3, n * stride);
                    let bias = numbers(4, n);
                    let f = |v: f32| f64::from(v);

                    let mut out = numbers(5, n * stride);
                    let before = out.clone();
                    forward(shape, [n, k], &w, &x, &mut out, Start::Bias(&bias), End::Relu);
                    let mut sum = before.clone();
                    forward(shape, [n, k], &w, &x, &mut sum, Start::Add, End::Linear);
                    for o in 0..n {
                        for r in 0..stride {
                            let at = o * stride + r;
                            if r >= width {
                                assert_eq!((out[at], sum[at]), (before[at], before[at]), "padding was written");
                                continue;
                            }
                            let product: f64 = (0..k).map(|i| f(w[o * k + i]) * f(x[i * stride + r])).sum();
                            assert_close("relu", out[at], (product + f(bias[o])).max(0.0));
                            assert_close("add", sum[at], product + f(before[at]));
                        }
                    }

                    let mask = numbers(6, k * stride);
                    let mut d_x = vec![9.0; k * stride];
                    data_gradient(shape, [n, k], &w, &d, &mut d_x, Start::Zero, End::Mask(&mask));
                    for i in 0..k {
                        for r in 0..width {
                            let product: f64 = (0..n).map(|o| f(w[o * k + i]) * f(d[o * stride + r])).sum();
                            let want = if mask[i * stride + r] > 0.0 { product } else { 0.0 };
                            assert_close("data gradient", d_x[i * stride + r], want);
                        }
                    }

                    let mut d_w = numbers(7, n * k);
                    let mut d_b = numbers(8, n);
                    let (w_before, b_before) = (d_w.clone(), d_b.clone());
                    weight_gradient(shape, [n, k], &d, &x, &mut d_w, Some(&mut d_b));
                    for o in 0..n {
                        let row = |r: usize| f(d[o * stride + r]);
                        assert_close("bias", d_b[o], f(b_before[o]) + (0..width).map(row).sum::<f64>());
                        for i in 0..k {
                            let sum: f64 = (0..width).map(|r| row(r) * f(x[i * stride + r])).sum();
                            assert_close("weight", d_w[o * k + i], f(w_before[o * k + i]) + sum);
                        }
                    }
                }
            }
        }
    }
}

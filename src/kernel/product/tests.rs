//! Every remainder of every register tile, for every instruction set, against f64.

use approx::abs_diff_eq;

use super::*;
use crate::kernel::Shape;
use crate::kernel::simd::Level;
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

#[test]
fn products_agree_with_f64_for_awkward_sizes() {
    for level in Level::available() {
        level.force(check_products);
    }
}

fn check_products() {
    for (width, stride) in [(16, 48), (32, 48), (48, 48), (80, 112), (304, 304)] {
        let shape = Shape { stride, width, rows: width };
        // With the last the matrix is wide.
        for n in (1..=16).chain([193]) {
            // Whole matrices, and the last columns of wider ones, as those that belong to conditions.
            let sizes = [0, 1, 2, 3, 4, 5, 8, 14, 17, 29, 33, 36, 38, 47, 50, 57].map(|k| [(k, k), (k, k + 5)]);
            for (k, pitch) in sizes.into_iter().flatten() {
                let matrix = Matrix { outputs: n, inputs: k, pitch };
                let first = pitch - k;
                let w = &numbers(1, n * pitch)[first..];
                let x = numbers(2, k * stride);
                let d = numbers(3, n * stride);
                let bias = numbers(4, n);
                let f = |v: f32| f64::from(v);

                let mut out = numbers(5, n * stride);
                let before = out.clone();
                forward(shape, matrix, w, &x, &mut out, Start::Bias(&bias), End::Relu);
                let mut sum = before.clone();
                forward(shape, matrix, w, &x, &mut sum, Start::Add, End::Linear);
                for o in 0..n {
                    for r in 0..stride {
                        let at = o * stride + r;
                        if r >= width {
                            assert_eq!((out[at], sum[at]), (before[at], before[at]), "padding was written");
                            continue;
                        }
                        let product: f64 = (0..k).map(|i| f(w[o * pitch + i]) * f(x[i * stride + r])).sum();
                        assert_close("relu", out[at], (product + f(bias[o])).max(0.0));
                        assert_close("add", sum[at], product + f(before[at]));
                    }
                }

                let mask = numbers(6, k * stride);
                let mut d_x = vec![9.0; k * stride];
                data_gradient(shape, matrix, w, &d, &mut d_x, Start::Zero, End::Mask(&mask));
                for i in 0..k {
                    for r in 0..width {
                        let product: f64 = (0..n).map(|o| f(w[o * pitch + i]) * f(d[o * stride + r])).sum();
                        let want = if mask[i * stride + r] > 0.0 { product } else { 0.0 };
                        assert_close("data gradient", d_x[i * stride + r], want);
                    }
                }

                let mut d_w = numbers(7, n * pitch);
                let mut d_b = numbers(8, n);
                let (w_before, b_before) = (d_w.clone(), d_b.clone());
                let (mut alone, mut fresh_w, mut fresh_b) = (d_w.clone(), d_w.clone(), vec![f32::NAN; n]);
                weight_gradient(shape, matrix, &d, &x, &mut d_w[first..], Some(&mut d_b), false);
                weight_gradient(shape, matrix, &d, &x, &mut fresh_w[first..], Some(&mut fresh_b), true);
                weight_gradient(shape, matrix, &d, &x, &mut alone[first..], None, false);
                assert_eq!(alone, d_w, "weights do not depend on whether biases are wanted");
                for o in 0..n {
                    let row = |r: usize| f(d[o * stride + r]);
                    let sum: f64 = (0..width).map(row).sum();
                    assert_close("bias", d_b[o], f(b_before[o]) + sum);
                    assert_close("fresh bias", fresh_b[o], sum);
                    for at in o * pitch..o * pitch + first {
                        assert_eq!((d_w[at], fresh_w[at]), (w_before[at], w_before[at]), "another column was written");
                    }
                    for i in 0..k {
                        let at = o * pitch + first + i;
                        let sum: f64 = (0..width).map(|r| row(r) * f(x[i * stride + r])).sum();
                        assert_close("weight", d_w[at], f(w_before[at]) + sum);
                        assert_close("fresh weight", fresh_w[at], sum);
                    }
                }
            }
        }
    }
}

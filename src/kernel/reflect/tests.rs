use super::blocks::Sums;
use super::plain::Plain;
use super::*;
use crate::kernel::simd::Level;
use crate::rng::{Stream, fill_normals};

/// One block and several, whole and not, of one panel of columns and of several.
const SIZES: [usize; 12] = [1, 2, 5, 7, 31, 32, 33, 64, 65, 100, 150, 400];

fn numbers(n: usize, seed: u64) -> Vec<f32> {
    let mut out = vec![0.0; n];
    fill_normals(seed, Stream::Mixing, 0, 0, &mut out);
    out
}

/// Vectors of sizes from 0.005, as at first, to some 100, and among them zeros and equal ones.
fn vectors(n: usize) -> Vec<f32> {
    let mut vectors = numbers(n * n, 1);
    for (r, v) in vectors.chunks_exact_mut(n).enumerate() {
        let size = [0.005, 1.0, 100.0][r % 3];
        v.iter_mut().for_each(|v| *v *= size);
    }
    if n > 6 {
        vectors[4 * n..5 * n].fill(0.0);
        vectors.copy_within(5 * n..6 * n, 6 * n);
    }
    vectors
}

fn ready(n: usize, vectors: &[f32]) -> Reflections {
    let mut reflections = Reflections::new(n);
    reflections.set(vectors);
    reflections
}

/// The largest deviation, relative to the largest value; a NaN stays.
fn deviation(got: impl Iterator<Item = f64>, want: &[f64]) -> f64 {
    let worse = |a: f64, b: f64| if b <= a || a.is_nan() { a } else { b };
    let largest = want.iter().fold(f64::MIN_POSITIVE, |most, w| worse(most, w.abs()));
    got.zip(want).map(|(g, w)| (g - w).abs() / largest).fold(0.0, worse)
}

/// Of gradients of vectors, each times the length of its vector: gradients grow where vectors are small. Relative to
/// the largest of all vectors, since what is summed for one may cancel. A zero vector has a gradient of zeros.
fn of_gradients(n: usize, vectors: &[f32], got: &[f32], want: &[f64]) -> f64 {
    let lengths: Vec<f64> =
        vectors.chunks_exact(n).map(|v| v.iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt()).collect();
    for (r, &length) in lengths.iter().enumerate() {
        assert!(length > 0.0 || got[r * n..(r + 1) * n].iter().all(|&g| g == 0.0), "the zero vector {r}");
    }
    let want: Vec<f64> = want.iter().enumerate().map(|(i, w)| lengths[i / n] * w).collect();
    deviation(got.iter().enumerate().map(|(i, &g)| lengths[i / n] * f64::from(g)), &want)
}

/// On a thread of its own, which has the level: the reflections would go to others.
fn at_every_level(check: impl Fn(Level) + Sync) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(|| Level::available().for_each(|level| level.force(|| check(level))));
}

fn q_of(n: usize, vectors: &[f32]) -> Vec<f32> {
    let mut q = vec![f32::NAN; n * n];
    ready(n, vectors).whole(&mut q);
    q
}

#[test]
fn q_agrees_with_f64_and_is_orthogonal() {
    at_every_level(|level| {
        for n in SIZES {
            for vectors in [vectors(n), numbers(n * n, 2).iter().map(|v| 0.005 * v).collect()] {
                let q = q_of(n, &vectors);
                let mut plain = Plain::default();
                plain.product(n, &vectors);
                let mut by_blocks = vec![f32::NAN; n * n];
                ready(n, &vectors).whole_by_blocks(&mut by_blocks);
                // In f64 there is the rounding of Q, and that of the unit vectors.
                for (got, bound) in [(&q, if n <= 64 { 5e-7 } else { 2e-6 }), (&by_blocks, 2e-6)] {
                    let worst = deviation(got.iter().map(|&q| f64::from(q)), &plain.m);
                    assert!(worst < bound, "{level:?}, N = {n}: {worst}");
                }
                let mut worst: f64 = 0.0;
                for (i, a) in q.chunks_exact(n).enumerate() {
                    for (j, b) in q.chunks_exact(n).enumerate().take(i + 1) {
                        let dot: f64 = a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
                        let off = (dot - f64::from(u8::from(i == j))).abs();
                        worst = if off <= worst { worst } else { off };
                    }
                }
                let bound = if n <= 64 { 2e-7 } else { 1e-6 };
                assert!(worst < bound, "{level:?}, N = {n}: Q Q^T is {worst} from the identity");
            }
        }
    });
}

#[test]
fn the_gradient_from_that_of_q_agrees_with_f64() {
    at_every_level(|level| {
        for n in SIZES {
            let (vectors, d_q) = (vectors(n), numbers(n * n, 3));
            let mut want = vec![0.0; n * n];
            Plain::default().backward(n, &vectors, &d_q.iter().map(|&d| d.into()).collect::<Vec<_>>(), &mut want);
            let mut reflections = ready(n, &vectors);
            let mut q = vec![0.0; n * n];
            reflections.whole(&mut q);
            for _ in 0..2 {
                let mut got = vec![0.0; n * n];
                reflections.whole_backward(&q, |i| d_q[i], &mut got);
                let worst = of_gradients(n, &vectors, &got, &want);
                // N = 1 has the gradient zero, and so have zero vectors.
                assert!(if n == 1 { got[0] == 0.0 } else { worst < 5e-6 }, "{level:?}, N = {n}: {worst}");
            }
        }
    });
}

#[test]
fn samples_agree_with_f64() {
    at_every_level(|level| {
        for n in SIZES {
            for rows in [1usize, 16, 37] {
                let vectors = vectors(n);
                let reflections = ready(n, &vectors);
                let shape = Shape { stride: 48, width: rows.next_multiple_of(LANES), rows };
                let tile = |seed| {
                    let mut tile = numbers(n * 48, seed);
                    shape.clear_padding(&mut tile);
                    tile
                };
                let (x, d_y) = (tile(4), tile(5));
                let mut plain = Plain::default();
                plain.product(n, &vectors);
                let times = |transpose: bool, x: &[f32]| -> Vec<f64> {
                    let sum = |i: usize, s: usize| -> f64 {
                        let q = |j: usize| if transpose { plain.m[j * n + i] } else { plain.m[i * n + j] };
                        (0..n).map(|j| q(j) * f64::from(x[j * 48 + s])).sum()
                    };
                    (0..n).flat_map(|i| (0..rows).map(move |s| (i, s))).map(|(i, s)| sum(i, s)).collect()
                };
                let samples = |tile: &[f32]| -> Vec<f64> {
                    tile.chunks_exact(48).flat_map(|row| row[..rows].iter().map(|&v| v.into())).collect()
                };
                let (mut y, mut scratch) = (x.clone(), vec![f32::NAN; (Reflections::backward_scratch(n)) * 48]);
                reflections.apply(shape, false, &mut y, &mut scratch);
                let mut back = d_y.clone();
                reflections.apply(shape, true, &mut back, &mut scratch);
                let d_x = times(true, &d_y);
                for (got, want) in [(&y, times(false, &x)), (&back, d_x.clone())] {
                    let worst = deviation(samples(got).into_iter(), &want);
                    assert!(worst < 3e-6, "{level:?}, N = {n}, {rows} samples: {worst}");
                }

                let mut d_q = vec![0.0; n * n];
                for (i, d) in d_y.chunks_exact(48).enumerate() {
                    for (j, x) in x.chunks_exact(48).enumerate() {
                        d_q[i * n + j] = d[..rows].iter().zip(x).map(|(&d, &x)| f64::from(d) * f64::from(x)).sum();
                    }
                }
                let mut want = vec![0.0; n * n];
                Plain::default().backward(n, &vectors, &d_q, &mut want);
                // Twice, so the sums have twice the value.
                let (mut got, mut inner) = (vec![f32::NAN; n * n], vec![f32::NAN; reflections.inner_len()]);
                let mut d = vec![];
                for fresh in [true, false] {
                    d = d_y.clone();
                    let mut sums = Sums { vectors: &mut got, inner: &mut inner, fresh };
                    reflections.backward(shape, &y, &mut d, true, &mut scratch, &mut sums);
                }
                let mut reflections = reflections;
                reflections.complete(|i| inner[i], &mut got);
                got.iter_mut().for_each(|g| *g /= 2.0);
                assert!(deviation(samples(&d).into_iter(), &d_x) < 3e-6);
                let worst = of_gradients(n, &vectors, &got, &want);
                // N = 1 has the gradient zero, of which rounding is left.
                let close = if n == 1 { (got[0] * vectors[0]).abs() < 1e-5 } else { worst < 5e-6 };
                assert!(close, "{level:?}, N = {n}, {rows} samples: {worst}");
            }
        }
    });
}

#[test]
fn gradient_agrees_with_finite_differences() {
    for n in [1, 2, 5, 8] {
        let (vectors, weight) = (numbers(n * n, 1), numbers(n * n, 2));
        let value = |vectors: &[f32]| -> f64 {
            let mut plain = Plain::default();
            plain.product(n, vectors);
            plain.m.iter().zip(&weight).map(|(q, &w)| q * f64::from(w)).sum()
        };
        let mut reflections = ready(n, &vectors);
        let (mut q, mut got) = (vec![0.0; n * n], vec![0.0; n * n]);
        reflections.whole(&mut q);
        reflections.whole_backward(&q, |i| weight[i], &mut got);
        for i in 0..n * n {
            let step = 2.0f32.powi(-8);
            let moved = |by: f32| {
                let mut v = vectors.clone();
                v[i] += by;
                value(&v)
            };
            // Fourth-order differences: the step must be large to be exact in f32.
            let (h, s) = (f64::from(step), |k: f32| moved(k * step) - moved(-k * step));
            let want = (8.0 * s(1.0) - s(2.0)) / (12.0 * h);
            assert!((f64::from(got[i]) - want).abs() < 1e-5, "n = {n}, {i}: {} or {want}", got[i]);
        }
    }
}

#[test]
fn a_zero_vector_reflects_nothing() {
    let mut reflections = ready(2, &[0.0; 4]);
    let mut q = vec![9.0; 4];
    reflections.whole(&mut q);
    assert_eq!(q, [1.0, 0.0, 0.0, 1.0]);
    let mut d = vec![0.0; 4];
    reflections.whole_backward(&q, |_| 1.0, &mut d);
    assert_eq!(d, [0.0; 4]);
}

#[test]
fn vectors_of_any_size_do() {
    for size in [1e-30f32, 1e-15, 1.0, 1e15, 1e30] {
        let vectors: Vec<f32> = numbers(40 * 40, 6).iter().map(|v| size * v).collect();
        let (got, want) = (q_of(40, &vectors), q_of(40, &numbers(40 * 40, 6)));
        assert!(deviation(got.iter().map(|&q| q.into()), &want.iter().map(|&q| q.into()).collect::<Vec<_>>()) < 2e-6);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let (n, vectors) = (200, vectors(200));
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| q_of(n, &vectors))
    };
    assert!(on(1) == on(3));
}

//! Maximum mean discrepancy of two sets of rows (Gretton et al. 2012), with the kernels and the estimator of the
//! paper's authors, so that the numbers compare with their tables (paper, section 4.3).
//!
//! The kernel is the sum of three inverse multiquadrics of the distance d of two rows,
//!
//! ```text
//! k(d) = sum over (C, a) of C^a ((C + d^2) / a)^-a,    (C, a) = (1/2, 1), (1/5, 1), (1/5, 1/2)
//! ```
//!
//! and the estimate is the biased V-statistic with the diagonal: the mean of `k(x, x') + k(y, y') - 2 k(x, y)` over all
//! pairs of rows. That is the *squared* discrepancy, and it is what the tables call MMD: no root is taken, and the
//! three kernels are summed, not averaged. The paper takes 4,000 rows of each and averages over 100 pairs of batches of
//! data and model samples, for posteriors over 1,000 observations, whose data are those of [`super::abc`].
//!
//! The kernel has lengths of its own: rows are compared in the units they come in.
//!
//! Distances are in `f32`, kernels and sums in `f64`. Sums are grouped by row number: any number of threads gives the
//! same bits.

use rayon::prelude::*;

use crate::counted::counted;
use crate::error::{Error, Result};

/// `(C, a)` of the three kernels.
#[cfg(test)]
pub(crate) const KERNELS: [(f64, f64); 3] = [(0.5, 1.0), (0.2, 1.0), (0.2, 0.5)];

/// Rows of y taken at a time: as many as make the compiler use whole vector registers.
const LANES: usize = 16;
/// Rows of x that one task takes through all of y; a multiple of [`LANES`].
const CHUNK: usize = 32;

/// Discrepancy of two sets of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Mmd {
    /// The squared discrepancy, which the paper's tables report. Between equal sets 0 up to rounding, which may be
    /// negative.
    pub squared: f64,
    /// Rows of x and of y that were used.
    pub rows: [usize; 2],
    /// Rows of x and of y that were left out because they hold a NaN or an infinity.
    pub skipped: [usize; 2],
}

impl Mmd {
    /// Discrepancy of rows `x` (A, N) and `y` (B, N), row-major with `dim` = N columns.
    ///
    /// Rows that are not finite are left out and counted: look at [`Mmd::skipped`] before you trust a small number.
    ///
    /// # Errors
    /// [`Error::Shape`] if a length is not a multiple of `dim`, or a set has no finite row.
    pub(crate) fn of(x: &[f32], y: &[f32], dim: usize) -> Result<Self> {
        let (x, y) = (Rows::new("x", x, dim)?, Rows::new("y", y, dim)?);
        let [a, b] = [x.count as f64, y.count as f64];
        let squared = x.within() / (a * a) + y.within() / (b * b) - 2.0 * x.between(&y) / (a * b);
        Ok(Self { squared, rows: [x.count, y.count], skipped: [x.skipped, y.skipped] })
    }

    /// The discrepancy itself, in the unit of the kernel's feature space.
    #[cfg(test)]
    pub(crate) fn root(&self) -> f64 {
        self.squared.max(0.0).sqrt()
    }
}

/// The finite rows of a table, in two orders.
struct Rows {
    dim: usize,
    count: usize,
    skipped: usize,
    /// Row by row.
    rows: Vec<f32>,
    /// Columns of [`LANES`] rows, one after the other; block b holds rows `b * LANES ..`. Rows beyond the last are
    /// infinitely far away, where every kernel is exactly 0.
    blocks: Vec<[f32; LANES]>,
}

impl Rows {
    fn new(what: &str, table: &[f32], dim: usize) -> Result<Self> {
        if dim == 0 || !table.len().is_multiple_of(dim) {
            let expected = table.len().checked_div(dim).unwrap_or(0) * dim;
            let what = format!("length of {what}, rows of {}", counted(dim, "column"));
            return Err(Error::Shape { what, expected, got: table.len() });
        }
        let finite = table.chunks_exact(dim).filter(|row| row.iter().all(|v| v.is_finite()));
        let rows: Vec<f32> = finite.flatten().copied().collect();
        let count = rows.len() / dim;
        if count == 0 {
            return Err(Error::Shape { what: format!("finite rows of {what} (at least)"), expected: 1, got: 0 });
        }
        let mut blocks = vec![[f32::INFINITY; LANES]; count.div_ceil(LANES) * dim];
        for (i, row) in rows.chunks_exact(dim).enumerate() {
            for (column, &value) in blocks[i / LANES * dim..].iter_mut().zip(row) {
                column[i % LANES] = value;
            }
        }
        Ok(Self { dim, count, skipped: table.len() / dim - count, rows, blocks })
    }

    /// Sum of the kernel over all pairs of these rows with those of `other`.
    fn between(&self, other: &Self) -> f64 {
        self.sum_chunks(|_, rows| kernel_sum(rows, self.dim, &other.blocks))
    }

    /// The same with themselves. Pairs of different chunks are computed once and count twice.
    fn within(&self) -> f64 {
        let blocks = CHUNK / LANES * self.dim;
        self.sum_chunks(|chunk, rows| {
            let rest = &self.blocks[chunk * blocks..];
            let (own, after) = rest.split_at(blocks.min(rest.len()));
            kernel_sum(rows, self.dim, own) + 2.0 * kernel_sum(rows, self.dim, after)
        })
    }

    /// Sum over chunks of rows, in their order.
    fn sum_chunks(&self, sum: impl Fn(usize, &[f32]) -> f64 + Sync) -> f64 {
        let chunks = self.rows.par_chunks(CHUNK * self.dim).enumerate();
        let sums: Vec<f64> = chunks.map(|(chunk, rows)| sum(chunk, rows)).collect();
        sums.iter().sum()
    }
}

/// Sum of the kernel over all pairs of some rows with the rows of some blocks.
fn kernel_sum(rows: &[f32], dim: usize, blocks: &[[f32; LANES]]) -> f64 {
    let mut sums = [0.0f64; LANES];
    for block in blocks.chunks_exact(dim) {
        for row in rows.chunks_exact(dim) {
            // Differences first: |x|^2 + |y|^2 - 2 xy would lose the digits of rows that are near each other.
            let mut squares = [0.0f32; LANES];
            for (x, column) in row.iter().zip(block) {
                for (square, y) in squares.iter_mut().zip(column) {
                    let difference = x - y;
                    *square += difference * difference;
                }
            }
            for (sum, square) in sums.iter_mut().zip(squares) {
                *sum += kernel(f64::from(square));
            }
        }
    }
    sums.iter().sum()
}

/// The most that one pair of rows adds to a mean: the kernels of equal rows.
pub(crate) const AT_ZERO: f64 = 2.0 + std::f64::consts::FRAC_1_SQRT_2;

/// The sum of the three [`KERNELS`] of a squared distance, without powers: two divisions and a root.
#[inline(always)]
fn kernel(square: f64) -> f64 {
    let near = 1.0 / (0.2 + square);
    0.5 / (0.5 + square) + 0.2 * near + (0.1 * near).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, fill_normals};

    fn normals(seed: u64, count: usize) -> Vec<f32> {
        let mut values = vec![0.0; count];
        fill_normals(seed, Stream::Latent, 0, 0, &mut values);
        values
    }

    /// Fails on NaN too.
    #[track_caller]
    fn assert_near(got: f64, want: f64, tolerance: f64) {
        assert!((got - want).abs() <= tolerance, "got {got}, expected {want} within {tolerance}");
    }

    /// The definition, by logarithms.
    fn kernel_by_definition(square: f64) -> f64 {
        KERNELS.iter().map(|(c, a)| (a * (c.ln() + a.ln() - (c + square).ln())).exp()).sum()
    }

    /// The definition, pair by pair in f64.
    fn by_double_loop(x: &[f32], y: &[f32], dim: usize) -> f64 {
        let mean = |a: &[f32], b: &[f32]| {
            let (mut sum, mut pairs) = (0.0, 0.0);
            for p in a.chunks(dim) {
                for q in b.chunks(dim) {
                    let square = p.iter().zip(q).map(|(p, q)| (f64::from(*p) - f64::from(*q)).powi(2)).sum();
                    sum += kernel_by_definition(square);
                    pairs += 1.0;
                }
            }
            sum / pairs
        };
        mean(x, x) + mean(y, y) - 2.0 * mean(x, y)
    }

    #[test]
    fn kernel_follows_its_definition() {
        for square in [0.0, 1e-8, 0.3, 1.0, 7.5, 1e4, 1e12] {
            assert_near(kernel(square), kernel_by_definition(square), 1e-14 * (1.0 + kernel(0.0)));
        }
        assert_near(kernel(0.0), 2.0 + 0.5f64.sqrt(), 1e-14);
        assert_eq!(kernel(f64::INFINITY), 0.0);
    }

    #[test]
    fn agrees_with_a_double_loop_for_any_number_of_rows() {
        for (dim, a, b) in [(1, 1, 1), (1, 16, 32), (2, 33, 31), (3, 100, 17), (5, 64, 129), (20, 37, 257)] {
            let x = normals(1, a * dim);
            let y: Vec<f32> = normals(2, b * dim).iter().map(|v| 0.4 + 1.3 * v).collect();
            let got = Mmd::of(&x, &y, dim).unwrap();
            assert_near(got.squared, by_double_loop(&x, &y, dim), 1e-7);
            assert_near(Mmd::of(&y, &x, dim).unwrap().squared, got.squared, 1e-12);
            assert_eq!((got.rows, got.skipped), ([a, b], [0, 0]));
        }
    }

    #[test]
    fn rows_far_from_the_origin_keep_their_digits() {
        let near: Vec<f32> = normals(3, 200).iter().map(|v| (v * 64.0).round() / 64.0).collect();
        let other: Vec<f32> = normals(4, 100).iter().map(|v| (v * 64.0).round() / 64.0 + 0.5).collect();
        let far = |rows: &[f32]| -> Vec<f32> { rows.iter().map(|v| v + 65536.0).collect() };
        let want = Mmd::of(&near, &other, 2).unwrap().squared;
        assert!(want > 0.01);
        assert_near(Mmd::of(&far(&near), &far(&other), 2).unwrap().squared, want, 1e-9);
    }

    /// `E k(X - Y)` where `density` is that of X - Y, by the trapezoid rule on [-range, range].
    fn expectation(density: impl Fn(f64) -> f64, range: f64) -> f64 {
        let steps = 400_000;
        let h = 2.0 * range / f64::from(steps);
        let at = |i: i32| -range + h * f64::from(i);
        (0..=steps)
            .map(|i| {
                let weight = if i == 0 || i == steps { 0.5 } else { 1.0 };
                weight * h * density(at(i)) * kernel_by_definition(at(i) * at(i))
            })
            .sum()
    }

    #[test]
    fn evenly_spread_rows_give_the_integral() {
        // U(0, 1) and U(s, s + 1): differences have triangular densities; the double sum is a midpoint rule.
        let (n, shift) = (2000, 0.7);
        let x: Vec<f32> = (0..n).map(|i| (f64::from(i) + 0.5) as f32 / n as f32).collect();
        let y: Vec<f32> = x.iter().map(|v| v + shift as f32).collect();
        let within = expectation(|u| (1.0 - u.abs()).max(0.0), 2.0);
        let between = expectation(|u| (1.0 - (u - shift).abs()).max(0.0), 2.0);
        let want = 2.0 * within - 2.0 * between;
        assert!(want > 0.3, "{want}");
        assert_near(Mmd::of(&x, &y, 1).unwrap().squared, want, 2e-5);
    }

    #[test]
    fn gaussians_have_their_expected_discrepancy() {
        // X ~ N(0, 1), Y ~ N(1, 1): differences have variance 2. With the diagonal, a share 1/n of the pairs is at 0.
        let (n, runs) = (600, 12);
        let density =
            |mean: f64| move |u: f64| (-0.25 * (u - mean).powi(2)).exp() / (2.0 * std::f64::consts::PI.sqrt());
        let (within, between) = (expectation(density(0.0), 20.0), expectation(density(1.0), 20.0));
        let share = 1.0 / n as f64;
        let want = 2.0 * ((1.0 - share) * within + share * (2.0 + 0.5f64.sqrt())) - 2.0 * between;
        let batch = |run: u64| {
            let (x, y) = (normals(10 + run, n), normals(100 + run, n));
            Mmd::of(&x, &y.iter().map(|v| v + 1.0).collect::<Vec<_>>(), 1).unwrap().squared
        };
        let measured: Vec<f64> = (0..runs).map(batch).collect();
        let mean = measured.iter().sum::<f64>() / runs as f64;
        let variance = measured.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (runs - 1) as f64;
        let error = (variance / runs as f64).sqrt();
        assert!(error < 0.05 * want, "{error} {want}");
        assert_near(mean, want, 4.0 * error);
    }

    #[test]
    fn equal_sets_have_none_and_disjoint_ones_the_most() {
        assert_near(AT_ZERO, kernel(0.0), 1e-12);
        let x = normals(5, 20 * 333);
        let same = Mmd::of(&x, &x, 20).unwrap();
        assert_near(same.squared, 0.0, 1e-12);
        assert!(same.root() <= 1e-6);
        let shuffled: Vec<f32> = x.chunks(20).rev().flatten().copied().collect();
        assert_near(Mmd::of(&x, &shuffled, 20).unwrap().squared, 0.0, 1e-12);
        // Two points infinitely far from each other.
        let apart = Mmd::of(&[0.0; 8], &[1e30; 4], 2).unwrap();
        assert_near(apart.squared, 2.0 * (2.0 + 0.5f64.sqrt()), 1e-12);
    }

    #[test]
    fn threads_do_not_change_a_bit() {
        let (x, y) = (normals(6, 7 * 1001), normals(7, 7 * 499));
        let with = |threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| Mmd::of(&x, &y, 7).unwrap().squared.to_bits())
        };
        assert_eq!(with(1), with(2));
        assert_eq!(with(1), with(3));
    }

    #[test]
    fn rows_that_are_not_finite_are_counted_and_left_out() {
        let (x, y) = (normals(8, 60), normals(9, 80));
        let want = Mmd::of(&x, &y, 2).unwrap();
        let mut broken = x.clone();
        broken.splice(10..10, [f32::NAN, 1.0, 2.0, f32::NEG_INFINITY]);
        let got = Mmd::of(&broken, &y, 2).unwrap();
        assert_eq!((got.squared, got.rows, got.skipped), (want.squared, [30, 40], [2, 0]));
    }

    #[test]
    fn sets_that_cannot_be_used_are_errors() {
        assert!(matches!(Mmd::of(&[1., 2., 3.], &[1., 2.], 2), Err(Error::Shape { expected: 2, got: 3, .. })));
        assert!(Mmd::of(&[1.], &[1.], 0).is_err());
        assert!(Mmd::of(&[], &[1.], 1).is_err());
        assert!(Mmd::of(&[1.], &[f32::NAN], 1).is_err());
    }
}

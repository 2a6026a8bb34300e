//! Pearson correlation of the columns of a table, and how much two tables differ in it.

use crate::counted::counted;
use crate::error::{Error, Result};

/// A deviation this small against the largest magnitude of its column is rounding, not variation: `f32` resolves 6e-8.
const CONSTANT: f64 = 1e-6;

/// Correlation matrix of the columns of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Correlation {
    /// Number of columns.
    pub dim: usize,
    /// Rows that were used.
    pub rows: usize,
    /// Rows that were left out because they hold a NaN or an infinity.
    pub skipped: usize,
    /// Row-major, `dim * dim`. `None` where a column is constant: it has no correlation, not even with itself.
    values: Vec<Option<f64>>,
}

impl Correlation {
    /// Correlation of the columns of `table`, row-major with `dim` columns, summed in double precision.
    ///
    /// Rows that are not finite are left out and counted. Fewer than two finite rows are an error.
    pub(crate) fn of(table: &[f32], dim: usize) -> Result<Self> {
        if dim == 0 || !table.len().is_multiple_of(dim) {
            return Err(Error::Shape {
                what: format!("length of a table with {}", counted(dim, "column")),
                expected: table.len().checked_div(dim).unwrap_or(0) * dim,
                got: table.len(),
            });
        }
        let finite: Vec<&[f32]> = table.chunks_exact(dim).filter(|row| row.iter().all(|v| v.is_finite())).collect();
        let rows = finite.len();
        if rows < 2 {
            return Err(Error::Shape {
                what: "finite rows for a correlation (at least)".into(),
                expected: 2,
                got: rows,
            });
        }

        let mut mean = vec![0.0; dim];
        let mut largest = vec![0.0f64; dim];
        for row in &finite {
            for ((mean, largest), &v) in mean.iter_mut().zip(&mut largest).zip(*row) {
                *mean += f64::from(v);
                *largest = largest.max(f64::from(v).abs());
            }
        }
        for mean in &mut mean {
            *mean /= rows as f64;
        }

        // The means are subtracted first: sums of raw products would cancel for columns far from zero.
        let mut product = vec![0.0; dim * dim];
        let mut centred = vec![0.0; dim];
        for row in &finite {
            for ((c, &v), mean) in centred.iter_mut().zip(*row).zip(&mean) {
                *c = f64::from(v) - mean;
            }
            for i in 0..dim {
                let factor = centred[i];
                for (sum, c) in product[i * dim..i * dim + i + 1].iter_mut().zip(&centred) {
                    *sum += factor * c;
                }
            }
        }

        let deviation: Vec<Option<f64>> = (0..dim)
            .map(|i| {
                let deviation = (product[i * dim + i] / rows as f64).sqrt();
                (deviation > CONSTANT * largest[i]).then_some(deviation)
            })
            .collect();
        let mut values = vec![None; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                let (Some(a), Some(b)) = (deviation[i], deviation[j]) else { continue };
                let r = if i == j { 1.0 } else { (product[i * dim + j] / rows as f64 / a / b).clamp(-1.0, 1.0) };
                values[i * dim + j] = Some(r);
                values[j * dim + i] = Some(r);
            }
        }
        Ok(Self { dim, rows, skipped: table.len() / dim - rows, values })
    }

    /// Correlation of columns `i` and `j`, counted from 0; `None` if one of them is constant.
    ///
    /// # Panics
    /// If a column does not exist.
    pub(crate) fn get(&self, i: usize, j: usize) -> Option<f64> {
        assert!(i < self.dim && j < self.dim, "column {i} or {j} of {}", self.dim);
        self.values[i * self.dim + j]
    }

    /// Whether column `i` does not vary.
    #[cfg(test)]
    pub(crate) fn is_constant(&self, i: usize) -> bool {
        self.get(i, i).is_none()
    }

    /// Absolute difference from `other`, row-major; `None` where either has no correlation.
    pub(crate) fn abs_difference(&self, other: &Self) -> Result<Vec<Option<f64>>> {
        if self.dim != other.dim {
            return Err(Error::Shape {
                what: "columns of the second correlation".into(),
                expected: self.dim,
                got: other.dim,
            });
        }
        Ok(self.values.iter().zip(&other.values).map(|(a, b)| Some((a.as_ref()? - b.as_ref()?).abs())).collect())
    }

    /// Mean absolute difference over all pairs of different columns that vary in both tables: `Corr` of the paper's
    /// tables on recursion depth (appendix).
    ///
    /// The diagonal is no part of it: it is 1 in both and would only make the mean look better.
    /// `None` if there is no such pair.
    pub(crate) fn mean_abs_difference(&self, other: &Self) -> Result<Option<f64>> {
        self.mean_abs_difference_from(0, other)
    }

    /// As [`Correlation::mean_abs_difference`], without the pairs of which both columns come before column `first`:
    /// where those are the same in both tables, as conditions that samples are given, they would only make the mean
    /// look better.
    pub(crate) fn mean_abs_difference_from(&self, first: usize, other: &Self) -> Result<Option<f64>> {
        let difference = self.abs_difference(other)?;
        let (mut sum, mut pairs) = (0.0, 0u64);
        for i in first..self.dim {
            for d in difference[i * self.dim..i * self.dim + i].iter().flatten() {
                sum += d;
                pairs += 1;
            }
        }
        Ok((pairs > 0).then(|| sum / pairs as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Fails on NaN too, which `(a - b).abs() > tolerance` would let pass.
    #[track_caller]
    fn assert_near(got: Option<f64>, expected: f64) {
        let difference = (got.expect("a correlation") - expected).abs();
        assert!(difference <= 1e-12, "got {got:?}, expected {expected}");
    }

    #[test]
    fn agrees_with_a_table_worked_out_by_hand() {
        // x = 1, 2, 3; y = 1, 3, 2: covariance 1/3, variances 2/3, r = 1/2. z = -x.
        let c = Correlation::of(&[1., 1., -1., 2., 3., -2., 3., 2., -3.], 3).unwrap();
        assert_near(c.get(0, 1), 0.5);
        assert_near(c.get(1, 0), 0.5);
        assert_near(c.get(0, 2), -1.0);
        assert_near(c.get(1, 2), -0.5);
        assert_near(c.get(2, 2), 1.0);
        assert_eq!((c.rows, c.skipped), (3, 0));
    }

    #[test]
    fn columns_far_from_zero_keep_their_digits() {
        let table: Vec<f32> = (0..1000).flat_map(|k| [4096.0 + (k % 7) as f32 / 64.0, -(k % 7) as f32]).collect();
        assert_near(Correlation::of(&table, 2).unwrap().get(0, 1), -1.0);
    }

    #[test]
    fn constant_columns_have_no_correlation_and_are_left_out_of_the_mean() {
        // The last bit differs: rounding of whatever computed the column.
        let next = 0.1f32.next_up();
        let a = Correlation::of(&[0.1, 1., 1., next, 2., 3., 0.1, 3., 2.], 3).unwrap();
        let b = Correlation::of(&[7., 1., 3., 8., 2., 2., 7., 3., 1.], 3).unwrap();
        assert!(a.is_constant(0) && !a.is_constant(1));
        assert_eq!((a.get(0, 0), a.get(0, 1), a.get(2, 0)), (None, None, None));
        assert_near(a.mean_abs_difference(&b).unwrap(), 1.5);
        assert_eq!(a.abs_difference(&b).unwrap().iter().flatten().count(), 4);
    }

    #[test]
    fn pairs_of_leading_columns_can_be_left_out() {
        let a = Correlation::of(&[1., 1., -1., 2., 3., -2., 3., 2., -3.], 3).unwrap();
        let b = Correlation::of(&[1., 1., 1., 2., 3., 2., 3., 2., 3.], 3).unwrap();
        // Differences: 0 of the first two columns, 2 and 1 of the third with them.
        assert_near(a.mean_abs_difference(&b).unwrap(), 1.0);
        assert_near(a.mean_abs_difference_from(1, &b).unwrap(), 1.0);
        assert_near(a.mean_abs_difference_from(2, &b).unwrap(), 1.5);
        assert_eq!(a.mean_abs_difference_from(3, &b).unwrap(), None);
    }

    #[test]
    fn one_column_has_no_pairs() {
        let c = Correlation::of(&[1., 2., 3.], 1).unwrap();
        assert_near(c.get(0, 0), 1.0);
        assert_eq!(c.mean_abs_difference(&c).unwrap(), None);
    }

    #[test]
    fn rows_that_are_not_finite_are_counted_and_left_out() {
        let table = [1., 1., f32::NAN, 5., 2., 3., 9., f32::INFINITY, 3., 2.];
        let c = Correlation::of(&table, 2).unwrap();
        assert_near(c.get(0, 1), 0.5);
        assert_eq!((c.rows, c.skipped), (3, 2));
    }

    #[test]
    fn tables_that_cannot_be_used_are_errors() {
        assert!(matches!(Correlation::of(&[1., 2., 3.], 2), Err(Error::Shape { expected: 2, got: 3, .. })));
        assert!(Correlation::of(&[], 0).is_err());
        assert!(Correlation::of(&[], 3).is_err());
        assert!(Correlation::of(&[1., f32::NAN], 1).is_err());
        let (one, two) = (Correlation::of(&[1., 2.], 1).unwrap(), Correlation::of(&[1., 2., 3., 4.], 2).unwrap());
        assert!(one.mean_abs_difference(&two).is_err());
    }
}

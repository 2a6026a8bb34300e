//! What is remembered of the rows that a model was trained on: where they end, a Gaussian fitted to them, and which of
//! the table's rows were held out.
//!
//! It lies in the model file, so that rows of any later day can be judged by it. All values are in the user's units,
//! whatever the networks are given, and columns are those of rows [y, x], conditions first: the Cholesky factor of
//! their covariance then holds the Gaussian of y and that of x given y as well, as its first and its last columns.

use serde::{Deserialize, Serialize};

use super::holes::Hole;
use crate::error::{Error, Result};

/// Rows of more columns than these are compared with a Gaussian of independent columns: correlations grow with the
/// square of the columns, in time and in the file.
const CORRELATED: usize = 200;

/// The least noise of a column, in its deviations: without any, a copied column would have no density.
const LEAST_NOISE: f64 = 1e-3;

/// Training rows [y, x] as a model file remembers them. C + N columns, in the user's units.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct TrainingRows {
    /// Number of training rows.
    pub rows: u64,
    /// SHA-256 of training and held-out rows, as in the manifest of the run.
    #[serde(default)]
    pub fingerprint: String,
    /// Which rows of the table were held out; absent if none were, or where the rows come from no table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held_out: Option<HeldOut>,
    /// Least value of each column.
    pub least: Vec<f64>,
    /// Greatest value of each column.
    pub greatest: Vec<f64>,
    /// Mean of each column.
    pub mean: Vec<f64>,
    /// Deviation of each column, with the noise of the training.
    pub deviation: Vec<f64>,
    /// Correlations, with that noise: the lower triangle without its diagonal, row by row. Empty if there are too
    /// many columns.
    #[serde(default)]
    pub correlation: Vec<f64>,
    /// Where conditions have no values, and rows on both sides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub holes: Vec<Hole>,
}

/// Which rows of a table were held out, so that they can be found again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct HeldOut {
    /// `data.seed`.
    pub seed: u64,
    /// Rows of the table that were taken, the first ones: trained on and held out.
    pub of: u32,
    /// Number of those held out.
    pub rows: u32,
}

impl TrainingRows {
    /// Fits the Gaussian to some rows of `columns` values; there is at least one row. `noise` is the deviation of the
    /// noise that a column of this number and deviation has in training: a model cannot be narrower than that where
    /// columns are constant or copies, and the Gaussian is not to be either.
    pub(crate) fn fit(rows: &[f32], columns: usize, noise: impl Fn(usize, f64) -> f64) -> Self {
        let count = (rows.len() / columns) as f64;
        let rows_of = || rows.chunks_exact(columns);
        let mut mean = vec![0.0; columns];
        for row in rows_of() {
            mean.iter_mut().zip(row).for_each(|(m, &v)| *m += f64::from(v));
        }
        mean.iter_mut().for_each(|m| *m /= count);
        let centred = |row: &[f32]| row.iter().zip(&mean).map(|(&v, m)| f64::from(v) - m).collect::<Vec<f64>>();

        let mut variance = vec![0.0; columns];
        for row in rows_of() {
            variance.iter_mut().zip(centred(row)).for_each(|(v, d)| *v += d * d / count);
        }
        let deviation: Vec<f64> = (0..columns)
            .map(|j| {
                let own = variance[j].sqrt();
                // Rounding of the mean is no deviation.
                let own = if own > 1e-12 * mean[j].abs() { own } else { 0.0 };
                let least = if own > 0.0 { LEAST_NOISE * own } else { LEAST_NOISE };
                own.hypot(noise(j, own).max(least))
            })
            .collect();
        let mut correlation = Vec::new();
        if columns <= CORRELATED {
            correlation.resize(columns * (columns - 1) / 2, 0.0);
            for row in rows_of() {
                let scaled: Vec<f64> = centred(row).iter().zip(&deviation).map(|(d, s)| d / s).collect();
                let mut at = correlation.iter_mut();
                for (i, a) in scaled.iter().enumerate() {
                    at.by_ref().zip(&scaled[..i]).for_each(|(sum, b)| *sum += a * b);
                }
            }
            correlation.iter_mut().for_each(|sum| *sum /= count);
        }
        let mut training = Self { mean, deviation, correlation, ..Self::default() };
        training.add(rows, columns);
        training
    }

    /// Widens the range by some rows of `columns` values, and counts them.
    pub(crate) fn add(&mut self, rows: &[f32], columns: usize) {
        self.least.resize(columns, f64::INFINITY);
        self.greatest.resize(columns, f64::NEG_INFINITY);
        for row in rows.chunks_exact(columns) {
            for (j, value) in row.iter().map(|&v| f64::from(v)).enumerate() {
                self.least[j] = self.least[j].min(value);
                self.greatest[j] = self.greatest[j].max(value);
            }
        }
        self.rows += (rows.len() / columns) as u64;
    }

    /// C + N.
    pub(crate) fn columns(&self) -> usize {
        self.mean.len()
    }

    /// How far out a value is: its distance from the middle of the column's range, where the training rows end at 1.
    /// None of a column with no range but that of its noise.
    pub(crate) fn reach(&self, column: usize, value: f32) -> Option<f64> {
        let half = 0.5 * (self.greatest[column] - self.least[column]);
        let middle = self.least[column] + half;
        (half >= 0.1 * self.deviation[column]).then(|| (f64::from(value) - middle).abs() / half)
    }

    /// The Gaussian. None if the correlations are those of no Gaussian.
    pub(crate) fn gaussian(&self) -> Option<Gaussian<'_>> {
        let factor =
            if self.correlation.is_empty() { None } else { Some(cholesky(self.columns(), &self.correlation)?) };
        Some(Gaussian { mean: &self.mean, deviation: &self.deviation, factor })
    }

    /// Whether the parts belong to each other and to rows of so many columns.
    ///
    /// # Errors
    /// [`Error::Config`] with what does not.
    pub(crate) fn check(&self, columns: usize) -> Result<()> {
        let lists = [&self.least, &self.greatest, &self.mean, &self.deviation];
        let usable = lists.iter().all(|list| list.len() == columns && list.iter().all(|v| v.is_finite()))
            && self.deviation.iter().all(|&d| d > 0.0)
            && self.least.iter().zip(&self.greatest).all(|(a, b)| a <= b)
            && (self.correlation.is_empty() || self.correlation.len() == columns * columns.saturating_sub(1) / 2)
            && self.held_out.is_none_or(|h| h.rows > 0 && h.rows < h.of)
            && self.holes.iter().all(|hole| hole.column < columns && hole.between.iter().all(|v| v.is_finite()));
        if usable && self.gaussian().is_some() {
            return Ok(());
        }
        let what = format!(
            "must hold a range, a mean, a positive deviation and the correlations of {columns} columns; the file is damaged"
        );
        Err(Error::config("training", what))
    }
}

/// A Gaussian of rows [y, x], ready to score rows.
#[derive(Clone, Debug)]
pub(crate) struct Gaussian<'a> {
    mean: &'a [f64],
    deviation: &'a [f64],
    /// Lower triangle with its diagonal, row by row; none if columns are independent.
    factor: Option<Vec<f64>>,
}

impl Gaussian<'_> {
    /// Log-density in nats of the columns from `from` on of a row, given those before; the row may end before the last
    /// column.
    pub(crate) fn log_prob(&self, row: &[f32], from: usize) -> f64 {
        let mut white: Vec<f64> = Vec::with_capacity(row.len());
        let mut sum = 0.0;
        let mut at = 0;
        for (i, &value) in row.iter().enumerate() {
            let scaled = (f64::from(value) - self.mean[i]) / self.deviation[i];
            let (known, pivot) = match &self.factor {
                Some(factor) => {
                    let known: f64 = white.iter().zip(&factor[at..]).map(|(w, l)| w * l).sum();
                    at += i + 1;
                    (known, factor[at - 1])
                }
                None => (0.0, 1.0),
            };
            white.push((scaled - known) / pivot);
            if i >= from {
                let ln_scale = (pivot * self.deviation[i]).ln();
                sum -= 0.5 * white[i] * white[i] + ln_scale + 0.5 * std::f64::consts::TAU.ln();
            }
        }
        sum
    }
}

/// L of a correlation matrix `L L^T`, of which the lower triangle without its diagonal is given: row by row, with the
/// diagonal. None if it is not positive definite.
fn cholesky(n: usize, correlation: &[f64]) -> Option<Vec<f64>> {
    let start = |i: usize| i * (i + 1) / 2;
    let mut factor = vec![0.0; start(n)];
    for i in 0..n {
        for j in 0..=i {
            let dot: f64 = (0..j).map(|k| factor[start(i) + k] * factor[start(j) + k]).sum();
            factor[start(i) + j] = if i == j {
                let square = 1.0 - dot;
                // NaN is not positive.
                (square > 1e-14).then(|| square.sqrt())?
            } else {
                (correlation[i * (i - 1) / 2 + j] - dot) / factor[start(j) + j]
            };
        }
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, fill_normals};

    /// Rows of three correlated columns of very different scales.
    fn rows(count: usize) -> Vec<f32> {
        let mut z = vec![0.0; 3 * count];
        fill_normals(3, Stream::Data, 0, 0, &mut z);
        z.chunks_exact(3).flat_map(|z| [1e4 * z[0] + 7.0, z[0] + z[1], 1e-3 * (z[1] - z[2])]).collect()
    }

    #[test]
    fn the_gaussian_is_that_of_the_textbook() {
        // One column.
        let training = TrainingRows::fit(&[1.0, 3.0], 1, |_, _| 0.75);
        let variance: f64 = 1.0 + 0.75 * 0.75;
        let want = -0.5 * 1.5f64.powi(2) / variance - 0.5 * (std::f64::consts::TAU * variance).ln();
        assert!((training.gaussian().unwrap().log_prob(&[3.5], 0) - want).abs() < 1e-12);
        assert_eq!((training.rows, training.least[0], training.greatest[0]), (2, 1.0, 3.0));

        // Two columns of correlation r, without a noise that counts.
        let training = TrainingRows {
            mean: vec![1.0, 2.0],
            deviation: vec![2.0, 0.5],
            correlation: vec![0.6],
            ..Default::default()
        };
        let (a, b, r) = ((2.0f64 - 1.0) / 2.0, (1.0f64 - 2.0) / 0.5, 0.6f64);
        let square = (a * a - 2.0 * r * a * b + b * b) / (1.0 - r * r);
        let joint = -0.5 * square - (std::f64::consts::TAU * (1.0 - r * r).sqrt()).ln();
        let gaussian = training.gaussian().unwrap();
        assert!((gaussian.log_prob(&[2.0, 1.0], 0) - joint).abs() < 1e-12);
        // p(y, x) = p(y) p(x | y), where x given y is a regression.
        let first = -0.5 * a * a - 0.5 * std::f64::consts::TAU.ln() - 2f64.ln();
        assert!((gaussian.log_prob(&[2.0], 0) - first).abs() < 1e-12);
        let (middle, deviation) = (2.0 + r * 0.5 * a, 0.5 * (1.0 - r * r).sqrt());
        let given = -0.5 * ((1.0 - middle) / deviation).powi(2) - deviation.ln() - 0.5 * std::f64::consts::TAU.ln();
        assert!((gaussian.log_prob(&[2.0, 1.0], 1) - given).abs() < 1e-12);
    }

    #[test]
    fn the_fit_has_the_entropy_of_its_rows() {
        let rows = rows(4000);
        let training = TrainingRows::fit(&rows, 3, |_, _| 0.0);
        let gaussian = training.gaussian().unwrap();
        let mean = rows.chunks_exact(3).map(|row| gaussian.log_prob(row, 0)).sum::<f64>() / 4000.0;
        // ln |det| of the map from normals is ln(1e4 * 1 * 1e-3).
        let want = -1.5 * (std::f64::consts::TAU.ln() + 1.0) - 10f64.ln();
        assert!((mean - want).abs() < 0.06, "{mean} {want}");
    }

    #[test]
    fn constant_and_copied_columns_are_as_wide_as_their_noise() {
        let of = |rows: &[f32]| TrainingRows::fit(rows, 4, |_, own| 0.01 * if own > 0.0 { own } else { 1.0 });
        let copied: Vec<f32> = rows(500).chunks_exact(3).flat_map(|r| [r[1], 0.1, r[1], 3.0 * r[1]]).collect();
        let training = of(&copied);
        assert!(training.check(4).is_ok());
        assert!((training.deviation[1] - 0.01).abs() < 1e-12, "{:?}", training.deviation);
        let gaussian = training.gaussian().unwrap();
        let on = gaussian.log_prob(&copied[..4], 0);
        let off = gaussian.log_prob(&[copied[0], 0.1, copied[2] + 1.0, copied[3]], 0);
        assert!(on.is_finite() && off < on - 1000.0, "{on} {off}");
        // Without any noise, and of a single row, it still is a Gaussian.
        for rows in [&copied[..], &copied[..4]] {
            let training = TrainingRows::fit(rows, 4, |_, _| 0.0);
            training.check(4).unwrap();
            assert!(training.gaussian().unwrap().log_prob(&copied[..4], 0).is_finite());
        }
        assert_eq!((training.reach(1, 0.2), training.reach(1, f32::NAN)), (None, None));
    }

    #[test]
    fn the_range_ends_at_1() {
        let mut training = TrainingRows::fit(&[2.0, 6.0], 1, |_, _| 0.0);
        for (value, reach) in [(2.0, 1.0), (6.0, 1.0), (4.0, 0.0), (24.0, 10.0), (-16.0, 10.0)] {
            assert_eq!(training.reach(0, value), Some(reach));
        }
        training.add(&[26.0], 1);
        assert_eq!((training.reach(0, 26.0), training.rows), (Some(1.0), 3));
        assert!(training.reach(0, f32::NAN).unwrap().is_nan());
    }

    #[test]
    fn wide_rows_are_compared_with_independent_columns() {
        let rows: Vec<f32> = (0..2 * 300).map(|i| (i as f32).sin()).collect();
        let training = TrainingRows::fit(&rows, 300, |_, _| 0.1);
        assert!(training.correlation.is_empty() && training.check(300).is_ok());
        assert!(training.gaussian().unwrap().log_prob(&rows[..300], 0).is_finite());
    }

    #[test]
    fn what_no_training_writes_is_refused() {
        let good = TrainingRows::fit(&rows(50), 3, |_, _| 0.0);
        let json = serde_json::to_string(&good).unwrap();
        assert_eq!(serde_json::from_str::<TrainingRows>(&json).unwrap(), good);
        let wrong = |change: &dyn Fn(&mut TrainingRows)| {
            let mut training = good.clone();
            change(&mut training);
            training.check(3).is_err()
        };
        assert!(!wrong(&|_| {}) && good.check(2).is_err());
        assert!(wrong(&|t| t.deviation[1] = 0.0) && wrong(&|t| t.mean[2] = f64::NAN) && wrong(&|t| t.least[0] = 1e9));
        assert!(wrong(&|t| t.correlation[0] = 1.5) && wrong(&|t| t.correlation[1] = f64::NAN));
        assert!(wrong(&|t| t.correlation.push(0.0)));
        assert!(wrong(&|t| t.held_out = Some(HeldOut { seed: 1, of: 5, rows: 5 })));
    }
}

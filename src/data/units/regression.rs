//! What the conditions of a row say of its columns by least squares, taken off before the networks see them.
//!
//! Couplings learn a shift by the conditions slowly, and never quite: of a Gaussian posterior whose mean is linear in y
//! four blocks of splines were 0.3 nats short, and 0.01 with the shift taken off. That x less a linear function of y has
//! the density of x is exact. (Regression adjustment of approximate Bayesian computation, Beaumont et al. 2002, does the
//! same and has no network after it.)
//!
//! It is no gain where a column has sharp features of its own, such as few different values or the ends of a uniform
//! prior: a shift by y blurs them. So a column is regressed only if that lowers its entropy, as rows measure it that the
//! factors were not fitted to.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Units;
use crate::data::least_squares::Regressors;
use crate::error::Result;

/// Rows that are fitted to, spread over all of them.
const SAMPLE: usize = 20_000;
/// Fewer are not enough to judge by.
const FEWEST: usize = 100;
/// A column whose entropy falls by less, in nats, is left as it is.
const GAIN: f64 = 0.05;
/// Values that are nearer, in deviations, count as so far apart: what the noise of a training blurs.
const NEAR: f64 = 1e-3;

/// Factors of the conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Regression {
    /// For each column of x one factor for each condition, both in the units of the networks; none for a column that is
    /// not regressed.
    factors: Vec<Vec<f64>>,
}

/// A column that is regressed, and was not asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Regressed {
    /// Column of x, from 0.
    pub column: usize,
    /// Share of its variance that the conditions give.
    pub share: f64,
}

impl Regression {
    /// Number of columns.
    pub(super) fn columns(&self) -> usize {
        self.factors.len()
    }

    /// Number of conditions.
    pub(super) fn conditions(&self) -> usize {
        self.factors.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether column `c` is shifted.
    pub(super) fn shifts(&self, c: usize) -> bool {
        self.factors.get(c).is_some_and(|factors| !factors.is_empty())
    }

    /// What is wrong with it for so many columns and conditions.
    pub(super) fn mistake(&self, dim: usize, conditions: usize) -> Option<String> {
        if self.factors.len() != dim {
            return Some(format!("has factors of {} columns, must have those of {dim}", self.factors.len()));
        }
        if let Some(other) = self.factors.iter().find(|factors| ![0, conditions].contains(&factors.len())) {
            return Some(format!("has {} factors of a column, there are {conditions} conditions", other.len()));
        }
        if self.conditions() == 0 {
            return Some("has no factors".into());
        }
        let wrong = self.factors.iter().flatten().find(|factor| !factor.is_finite());
        wrong.map(|factor| format!("has a factor {factor}"))
    }

    /// The shifts of the columns, of conditions of one row.
    pub(super) fn of_row(&self, y: &[f32], shifts: &mut [f64]) {
        for (shift, factors) in shifts.iter_mut().zip(&self.factors) {
            *shift = factors.iter().zip(y).map(|(factor, &y)| factor * f64::from(y)).sum();
        }
    }

    /// Adds to the gradient with respect to the conditions of a row what comes through the shifts of its columns.
    pub(super) fn add_gradient(&self, of_shift: impl Fn(usize) -> f64, of_y: &mut [f32]) {
        for (i, of_y) in of_y.iter_mut().enumerate() {
            let shifted = self.factors.iter().enumerate().filter(|(_, factors)| !factors.is_empty());
            let sum: f64 = shifted.map(|(c, factors)| of_shift(c) * factors[i]).sum();
            *of_y = (f64::from(*of_y) + sum) as f32;
        }
    }
}

impl Units {
    /// These units of x with a regression on conditions of the units `y`, if rows [y, x], row-major in the user's units,
    /// gain by it. Columns without a standardisation or robust scale stay as they are.
    ///
    /// # Errors
    /// Those of [`super::Lane::inner`].
    pub fn regressed(self, y: &Self, conditions: usize, rows: &[f32]) -> Result<(Self, Vec<Regressed>)> {
        let Some(standardize) = self.standardize.as_ref().filter(|_| conditions > 0) else {
            return Ok((self, Vec::new()));
        };
        let dim = standardize.dim();
        let (of_y, of_x) = self.sample(y, [conditions, dim], rows)?;
        if of_x[0].len() < FEWEST {
            return Ok((self, Vec::new()));
        }
        // Every other row, to fit and to judge.
        let half = |columns: &[Vec<f64>], first: usize| -> Vec<Vec<f64>> {
            columns.iter().map(|column| column.iter().copied().skip(first).step_by(2).collect()).collect()
        };
        let (fitted, judged) = (half(&of_y, 0), half(&of_y, 1));
        let (on_half, on_all) = (Regressors::new(&fitted), Regressors::new(&of_y));
        let is_scaled = |c: usize| {
            let scaled = (standardize.mean[c], standardize.scale[c]) != (0.0, 1.0);
            let transformed = self.transforms.get(c).is_some_and(|transform| !transform.is_identity());
            (scaled || transformed) && !standardize.constant.contains(&c)
        };
        let found = (0..dim).into_par_iter().map(|c| {
            let alone: Vec<f64> = of_x[c].iter().copied().skip(1).step_by(2).collect();
            let fit: Vec<f64> = of_x[c].iter().copied().step_by(2).collect();
            let given = on_half.nearest(&fit).values(&judged);
            let left: Vec<f64> = alone.iter().zip(given).map(|(x, given)| x - given).collect();
            let gains = is_scaled(c) && entropy(alone) - entropy(left) > GAIN;
            gains.then(|| on_all.nearest(&of_x[c]))
        });
        let found: Vec<_> = found.collect();
        let (mut scaled, mut factors, mut told) = (standardize.clone(), vec![Vec::new(); dim], Vec::new());
        for (c, linear) in found.into_iter().enumerate() {
            let Some(linear) = linear else { continue };
            let values = linear.values(&of_y);
            let left: Vec<f64> = of_x[c].iter().zip(values).map(|(x, given)| x - given).collect();
            let deviation = deviation(&left);
            if !(deviation > 0.0) {
                continue;
            }
            told.push(Regressed { column: c, share: 1.0 - (deviation / self::deviation(&of_x[c])).powi(2) });
            scaled.mean[c] += scaled.scale[c] * linear.constant;
            scaled.scale[c] *= deviation;
            factors[c] = linear.factors.iter().map(|factor| factor / deviation).collect();
        }
        if told.is_empty() {
            return Ok((self, told));
        }
        let regression = Some(Regression { factors });
        Ok((Self { standardize: Some(scaled), regression, ..self }, told))
    }

    /// Columns of some of the rows: conditions as the networks see them, and x before the squash.
    fn sample(&self, y: &Self, [conditions, dim]: [usize; 2], rows: &[f32]) -> Result<(Vec<Vec<f64>>, Vec<Vec<f64>>)> {
        let row = conditions + dim;
        let apart = (rows.len() / row).div_ceil(SAMPLE).max(1);
        let (mut of_y, mut of_x) = (Vec::new(), Vec::new());
        for row in rows.chunks_exact(row).step_by(apart) {
            of_y.extend_from_slice(&row[..conditions]);
            of_x.extend_from_slice(&row[conditions..]);
        }
        let before = Self { squash: None, ..self.clone() };
        Ok((columns(&y.inner(&of_y)?, conditions), columns(&before.inner(&of_x)?, dim)))
    }
}

fn columns(rows: &[f32], dim: usize) -> Vec<Vec<f64>> {
    (0..dim).map(|c| rows.iter().skip(c).step_by(dim).map(|&v| f64::from(v)).collect()).collect()
}

fn deviation(values: &[f64]) -> f64 {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt()
}

/// Entropy of some values in nats, by their spacings (Vasicek 1976).
fn entropy(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let n = values.len();
    let m = ((n as f64).sqrt() / 4.0).round().max(3.0) as usize;
    let spacings = values.iter().zip(&values[2 * m..]).map(|(low, high)| (high - low).max(NEAR));
    let count = spacings.len() as f64;
    spacings.map(|spacing| (spacing * n as f64 / (2 * m) as f64).ln()).sum::<f64>() / count
}

#[cfg(test)]
#[path = "regression_tests.rs"]
mod tests;

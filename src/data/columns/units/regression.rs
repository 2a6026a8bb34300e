//! What the conditions of a row say of its columns by least squares, taken off before the networks see them.
//!
//! Couplings learn a shift by the conditions slowly, and never quite: of a Gaussian posterior whose mean is linear in y
//! four blocks of splines were 0.3 nats short, and 0.01 with the shift taken off. That x less a linear function of y has
//! the density of x is exact. (Regression adjustment of approximate Bayesian computation, Beaumont et al. 2002, does the
//! same and has no network after it.)
//!
//! The conditions are taken as the networks see them, so one that is far out moves x no further than the squash lets it.
//!
//! It is no gain where a column has sharp features of its own, such as few different values or the ends of a uniform
//! prior: a shift by y blurs them. So a column is regressed only if that lowers its entropy, as rows measure it that the
//! coefficients were not fitted to.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::Units;
use crate::counted::counted;
use crate::data::columns::least_squares::{Linear, Regressors};
use crate::error::Result;
use crate::rng::{self, Stream};

/// Rows that are fitted to, at most, spread over all of them, and values of theirs.
const SAMPLE: usize = 20_000;
const VALUES: usize = 1 << 24;
/// Fewer are not enough to judge by.
const FEWEST: usize = 100;
/// A column whose entropy falls by less, in nats, is left as it is if only a clear gain counts; of few rows it must fall by
/// more, as it is known to about one over the root of their number.
const GAIN: f64 = 0.05;
/// What is left of a column counts as so many of its deviations at least: of what its conditions give exactly only
/// rounding is left, which is no unit for the networks.
const LEAST: f64 = 0.01;
/// More coefficients are too many for the description of a model: there is no regression then.
const MOST: usize = 1_000_000;
/// Values that are nearer, in deviations, count as so far apart: what the noise of a training blurs.
const NEAR: f64 = 1e-3;

/// Coefficients of the conditions.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Regression {
    /// For each column of x one coefficient for each condition, both in the units of the networks; none for a column that is
    /// not regressed.
    coefficients: Vec<Vec<f64>>,
}

/// Which gains count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Gains {
    /// Those that are clearly one.
    #[default]
    Clear,
    /// Any. Where the errors of many models add up, as in a filter, even a weak dependence should be right: what is not
    /// taken off is learnt late.
    Any,
}

/// A column that is regressed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Regressed {
    /// Column of x, from 0.
    pub column: usize,
    /// R², the share of its variance that the conditions explain.
    pub r_squared: f64,
}

impl Regression {
    /// Number of columns.
    pub(super) fn columns(&self) -> usize {
        self.coefficients.len()
    }

    /// Number of conditions.
    pub(super) fn conditions(&self) -> usize {
        self.coefficients.iter().map(Vec::len).max().unwrap_or(0)
    }

    /// Whether column `c` is shifted.
    pub(super) fn shifts(&self, c: usize) -> bool {
        self.coefficients.get(c).is_some_and(|coefficients| !coefficients.is_empty())
    }

    /// What is wrong with it for so many columns and conditions.
    pub(super) fn mistake(&self, dim: usize, conditions: usize) -> Option<String> {
        if self.coefficients.len() != dim {
            return Some(format!(
                "has coefficients of {}, must have those of {dim}",
                counted(self.coefficients.len(), "column")
            ));
        }
        if let Some(other) =
            self.coefficients.iter().find(|coefficients| ![0, conditions].contains(&coefficients.len()))
        {
            return Some(format!(
                "has {} of a column, of {}",
                counted(other.len(), "coefficient"),
                counted(conditions, "condition")
            ));
        }
        if self.conditions() == 0 {
            return Some("has no coefficients".into());
        }
        let wrong = self.coefficients.iter().flatten().find(|coefficient| !coefficient.is_finite());
        wrong.map(|coefficient| format!("has a coefficient {coefficient}"))
    }

    /// The shifts of the columns, of conditions of one row.
    pub(super) fn of_row(&self, y: &[f32], shifts: &mut [f64]) {
        for (shift, coefficients) in shifts.iter_mut().zip(&self.coefficients) {
            *shift = coefficients.iter().zip(y).map(|(coefficient, &y)| coefficient * f64::from(y)).sum();
        }
    }

    /// Adds to the gradient with respect to the conditions of a row what comes through the shifts of its columns.
    pub(super) fn add_gradient(&self, of_shift: impl Fn(usize) -> f64, of_y: &mut [f32]) {
        for (i, of_y) in of_y.iter_mut().enumerate() {
            let shifted = self.coefficients.iter().enumerate().filter(|(_, coefficients)| !coefficients.is_empty());
            let sum: f64 = shifted.map(|(c, coefficients)| of_shift(c) * coefficients[i]).sum();
            *of_y = (f64::from(*of_y) + sum) as f32;
        }
    }
}

impl Units {
    /// These units of `dim` columns x with a regression on so many conditions of the units `y`, if rows [y, x], row-major in
    /// the user's units, gain by it; `gains` says which gains count. Columns without a scale stay as they are, and so do all where none is standardised.
    ///
    /// # Errors
    /// Those of [`super::Conditioned::inner`].
    pub(crate) fn regressed(
        self,
        dim: usize,
        y: &Self,
        conditions: usize,
        rows: &[f32],
        gains: Gains,
    ) -> Result<(Self, Vec<Regressed>)> {
        let Some(mut standardize) = self.standardize.clone() else { return Ok((self, Vec::new())) };
        let is_scaled = |c: usize| {
            let scaled = (standardize.mean[c], standardize.scale[c]) != (0.0, 1.0);
            let transformed = self.transforms.get(c).is_some_and(|transform| !transform.is_identity());
            (scaled || transformed) && !standardize.constant.contains(&c)
        };
        let is_scaled: Vec<bool> = (0..dim).map(is_scaled).collect();
        if conditions == 0 || dim.saturating_mul(conditions) > MOST || !is_scaled.contains(&true) {
            return Ok((self, Vec::new()));
        }
        let [of_y, of_x] = self.sample(y, [conditions, dim], rows)?;
        let found =
            Halves::of(of_x[0].len()).map(|halves| halves.regress(&of_y, &of_x, &is_scaled, gains)).unwrap_or_default();
        if found.is_empty() {
            return Ok((self, Vec::new()));
        }
        let (mut coefficients, mut told) = (vec![Vec::new(); dim], Vec::new());
        for Found { column: c, linear, deviation, r_squared } in found {
            told.push(Regressed { column: c, r_squared });
            standardize.mean[c] += standardize.scale[c] * linear.constant;
            standardize.scale[c] *= deviation;
            coefficients[c] = linear.coefficients.iter().map(|coefficient| coefficient / deviation).collect();
        }
        let regression = Some(Regression { coefficients });
        Ok((Self { standardize: Some(standardize), regression, ..self }, told))
    }

    /// Columns of some of the rows: conditions as the networks see them, and x before the squash.
    fn sample(&self, y: &Self, [conditions, dim]: [usize; 2], rows: &[f32]) -> Result<[Vec<Vec<f64>>; 2]> {
        let row = conditions + dim;
        let apart = (rows.len() / row).div_ceil(SAMPLE.min(VALUES / row).max(1)).max(1);
        let (mut of_y, mut of_x) = (Vec::new(), Vec::new());
        for row in rows.chunks_exact(row).step_by(apart) {
            of_y.extend_from_slice(&row[..conditions]);
            of_x.extend_from_slice(&row[conditions..]);
        }
        let before = Self { squash: None, regression: None, ..self.clone() };
        Ok([columns(&y.inner(&of_y)?, conditions), columns(&before.inner(&of_x)?, dim)])
    }
}

/// A column that gains.
struct Found {
    column: usize,
    linear: Linear,
    /// Of what is left.
    deviation: f64,
    r_squared: f64,
}

/// The rows of a sample in two parts, drawn at random since neighbours in a table may be alike: one to fit to, one to judge
/// by.
struct Halves {
    fitted: Vec<usize>,
    judged: Vec<usize>,
}

impl Halves {
    /// None of too few rows.
    fn of(rows: usize) -> Option<Self> {
        let order = rng::permutation_on(0, Stream::Split, 0, u32::try_from(rows).ok().filter(|_| rows >= FEWEST)?);
        let part = |rows: &[u32]| rows.iter().map(|&row| row as usize).collect();
        let (fitted, judged) = order.split_at(rows / 2);
        Some(Self { fitted: part(fitted), judged: part(judged) })
    }

    fn regress(&self, of_y: &[Vec<f64>], of_x: &[Vec<f64>], is_scaled: &[bool], gains: Gains) -> Vec<Found> {
        let part = |column: &[f64], rows: &[usize]| rows.iter().map(|&row| column[row]).collect::<Vec<f64>>();
        let all = |rows: &[usize]| of_y.iter().map(|column| part(column, rows)).collect::<Vec<_>>();
        let judged = all(&self.judged);
        let on_half = Regressors::new(&all(&self.fitted));
        let least = match gains {
            Gains::Clear => GAIN + 1.0 / (self.judged.len() as f64).sqrt(),
            Gains::Any => 0.0,
        };
        let gains = (0..of_x.len()).into_par_iter().map(|c| {
            let alone = part(&of_x[c], &self.judged);
            let left = less(&alone, on_half.fit(&part(&of_x[c], &self.fitted)).values(&judged));
            // Of rows that were not fitted to: of the others, less is left than of any to come.
            let deviation = deviation(&left).max(LEAST);
            (is_scaled[c] && entropy(alone) - entropy(left) > least).then_some(deviation)
        });
        let gains: Vec<Option<f64>> = gains.collect();
        if gains.iter().all(Option::is_none) {
            return Vec::new();
        }
        let on_all = Regressors::new(of_y);
        let found = gains.into_par_iter().enumerate().filter_map(|(column, deviation_left)| {
            let left = deviation_left?;
            let r_squared = (1.0 - (left / deviation(&of_x[column])).powi(2)).max(0.0);
            Some(Found { column, linear: on_all.fit(&of_x[column]), deviation: left, r_squared })
        });
        found.collect()
    }
}

fn less(values: &[f64], given: Vec<f64>) -> Vec<f64> {
    values.iter().zip(given).map(|(value, given)| value - given).collect()
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

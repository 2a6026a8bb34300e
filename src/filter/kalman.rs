//! The stochastic ensemble Kalman filter (Evensen 1994; Burgers, van Leeuwen, Evensen 1998): every member moves along
//! the line that the ensemble's covariance draws from its own simulated observation to the one made. It needs no
//! likelihood, is exact for large ensembles of linear-Gaussian systems, and knows no other posterior than that.

use super::observed::{beyond, listed};
use super::simulated::{label, shown};
use super::update::{Keeper, Moment, Step, Update, forecast};
use crate::error::{Error, Result};

/// The filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EnsembleKalman {
    pub members: usize,
}

/// A part of an observation's variance that is less than this is none: the rest of the observation tells it.
const NO_VARIANCE: f64 = 1e-10;

impl Update for EnsembleKalman {
    fn name(&self) -> &'static str {
        "enkf"
    }

    fn members(&self) -> usize {
        self.members
    }

    fn update(
        &mut self,
        at: &Moment<'_>,
        prior: &[f32],
        observed: &[f32],
        keeper: &mut dyn Keeper,
    ) -> Result<(Vec<f32>, Step)> {
        let (n, c) = (at.system.state_columns(), at.system.observation_columns());
        let (mut states, seen) = forecast(self, at, prior)?;
        let rows = states.len() / n;
        let beyond = beyond(at, observed, &seen, keeper);
        let [mean_x, mean_y] = [means(&states, n), means(&seen, c)];
        // Of [y, x] with y: the noise of observations is in those that were simulated.
        let with_y = |rows| covariance(rows, (&seen, c, &mean_y));
        let (of_y, of_x) = (with_y((&seen, c, &mean_y)), with_y((&states, n, &mean_x)));
        let factor = Factor::of(of_y, c);
        for (y, x) in seen.chunks_exact(c).zip(states.chunks_exact_mut(n)) {
            let mut residual: Vec<f64> = observed.iter().zip(y).map(|(to, y)| f64::from(*to) - f64::from(*y)).collect();
            factor.solve(&mut residual);
            for (x, row) in x.iter_mut().zip(of_x.chunks_exact(c)) {
                let moved: f64 = row.iter().zip(&residual).map(|(covariance, r)| covariance * r).sum();
                *x = (f64::from(*x) + moved) as f32;
            }
        }
        if let Some(place) = states.iter().position(|x| !x.is_finite()) {
            let what = format!(
                "the observation {} moves {} of this member to {}",
                listed(observed),
                label(&at.system.state_names(), place % n),
                shown(states[place])
            );
            return Err(Error::Simulator { step: at.step, row: Some(place / n + 1), what });
        }
        // The line does not know where states end.
        for (column, (lower, upper)) in (0..n).map(|column| at.system.bounds(column)).enumerate() {
            let (lower, upper) = (lower.map_or(f32::MIN, |v| v as f32), upper.map_or(f32::MAX, |v| v as f32));
            states.iter_mut().skip(column).step_by(n).for_each(|x| *x = x.max(lower).min(upper));
        }
        let deviation = observed.iter().zip(&mean_y).map(|(y, mean)| f64::from(*y) - mean).collect();
        let log_evidence = Some(factor.log_normal(deviation));
        Ok((
            states,
            Step { step: at.step, simulations: rows as u64, log_evidence, beyond: Some(beyond), ..Step::default() },
        ))
    }
}

fn means(values: &[f32], columns: usize) -> Vec<f64> {
    let mut sums = vec![0.0; columns];
    for row in values.chunks_exact(columns) {
        sums.iter_mut().zip(row).for_each(|(sum, v)| *sum += f64::from(*v));
    }
    let rows = (values.len() / columns) as f64;
    sums.into_iter().map(|sum| sum / rows).collect()
}

/// Rows of values, their columns and means.
type Rows<'a> = (&'a [f32], usize, &'a [f64]);

/// Covariances of the columns of two sets of as many rows, (columns of a, columns of b).
fn covariance((a, m, mean_a): Rows<'_>, (b, n, mean_b): Rows<'_>) -> Vec<f64> {
    let mut sums = vec![0.0; m * n];
    for (a, b) in a.chunks_exact(m).zip(b.chunks_exact(n)) {
        for ((a, mean), sums) in a.iter().zip(mean_a).zip(sums.chunks_exact_mut(n)) {
            let a = f64::from(*a) - mean;
            sums.iter_mut().zip(b.iter().zip(mean_b)).for_each(|(sum, (b, mean))| *sum += a * (f64::from(*b) - mean));
        }
    }
    let free = (a.len() / m - 1) as f64;
    sums.iter_mut().for_each(|sum| *sum /= free);
    sums
}

/// `A = L D L^T` of a covariance. A column that the ones before it tell has no part in D, nor in solutions.
struct Factor {
    columns: usize,
    /// L below its diagonal of ones.
    lower: Vec<f64>,
    diagonal: Vec<f64>,
}

impl Factor {
    fn of(covariance: Vec<f64>, columns: usize) -> Self {
        let (mut lower, mut diagonal) = (covariance, vec![0.0; columns]);
        for j in 0..columns {
            let row = |lower: &[f64], i: usize| lower[i * columns..][..j].to_vec();
            let own = row(&lower, j);
            let variance = lower[j * columns + j];
            let rest = variance - own.iter().zip(&diagonal).map(|(l, d)| l * l * d).sum::<f64>();
            diagonal[j] = if rest > NO_VARIANCE * variance { rest } else { 0.0 };
            for i in j + 1..columns {
                let other = row(&lower, i);
                let shared: f64 = own.iter().zip(&other).zip(&diagonal).map(|((a, b), d)| a * b * d).sum();
                let rest = lower[i * columns + j] - shared;
                lower[i * columns + j] = if diagonal[j] > 0.0 { rest / diagonal[j] } else { 0.0 };
            }
        }
        Self { columns, lower, diagonal }
    }

    /// `L^-1 r`
    fn forward(&self, r: &mut [f64]) {
        for i in 0..self.columns {
            let (before, rest) = r.split_at_mut(i);
            rest[0] -= self.lower[i * self.columns..].iter().zip(before).map(|(l, r)| l * *r).sum::<f64>();
        }
    }

    /// `A^-1 r`
    fn solve(&self, r: &mut [f64]) {
        self.forward(r);
        r.iter_mut().zip(&self.diagonal).for_each(|(r, d)| *r = if *d > 0.0 { *r / d } else { 0.0 });
        for i in (0..self.columns).rev() {
            for k in i + 1..self.columns {
                r[i] -= self.lower[k * self.columns + i] * r[k];
            }
        }
    }

    /// Log-density of a normal distribution at a distance from its mean.
    fn log_normal(&self, mut r: Vec<f64>) -> f64 {
        self.forward(&mut r);
        let parts = r.iter().zip(&self.diagonal).filter(|(_, d)| **d > 0.0);
        -0.5 * parts.map(|(r, d)| r * r / d + d.ln() + std::f64::consts::TAU.ln()).sum::<f64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn covariances_are_factored_and_solved() {
        // The third column is the sum of the others, and adds nothing.
        let a = [4.0, 1.0, 5.0, 1.0, 2.0, 3.0, 5.0, 3.0, 8.0];
        let factor = Factor::of(a.to_vec(), 3);
        assert_eq!(factor.diagonal, [4.0, 1.75, 0.0]);
        let mut r = [1.0, 2.0, 3.0];
        factor.solve(&mut r);
        let back: Vec<f64> = a.chunks_exact(3).map(|row| row.iter().zip(&r).map(|(a, r)| a * r).sum()).collect();
        assert!(back.iter().zip([1.0, 2.0, 3.0]).all(|(b, e)| (b - e).abs() < 1e-12), "{back:?}");
        // |A| = 7 of the first two; A^-1 (1, 2) = (0, 1).
        let expected = -0.5 * (2.0 + 7f64.ln() + 2.0 * std::f64::consts::TAU.ln());
        assert!((factor.log_normal(vec![1.0, 2.0, 3.0]) - expected).abs() < 1e-12);
    }

    #[test]
    fn covariances_are_those_of_the_rows() {
        let (a, b) = (vec![1.0f32, 2.0, 3.0, 4.0, 8.0, 9.0], vec![1.0f32, -1.0, 3.0]);
        let (mean_a, mean_b) = (means(&a, 2), means(&b, 1));
        assert_eq!((mean_a.as_slice(), mean_b.as_slice()), (&[4.0, 5.0][..], &[1.0][..]));
        // Sums over rows: (-3)(0) + (-1)(-2) + 4 * 2, and the same of the other column.
        assert_eq!(covariance((&a, 2, &mean_a), (&b, 1, &mean_b)), [5.0, 5.0]);
    }
}

//! Derivatives of the way to z, in the backward pass and by steps, and the scales in which errors are measured.

use crate::data::Units;
use crate::flow::Conditional;
use crate::{Flow, Result};

/// dz/dx at one row, row-major (N, N), from the backward pass.
///
/// Of `latent` columns of z the last N are those of x.
pub(super) fn jacobian(given: &Conditional<'_>, point: &[f32], latent: usize) -> Result<Vec<f64>> {
    let n = point.len();
    let x = point.repeat(n);
    let mut seeds = vec![0.0; n * latent];
    (0..n).for_each(|i| seeds[i * latent + latent - n + i] = 1.0);
    let gradients = given.vjp(&x, &seeds, &vec![0.0; n])?;
    Ok(gradients.x.into_iter().map(f64::from).collect())
}

/// dz/dx at one row, row-major (N, N), from differences; nothing in columns where no step fits between value and bound.
pub(super) fn central_differences(
    given: &Conditional<'_>,
    point: &[f32],
    scales: &Scales,
    bounds: &Units,
) -> Result<Vec<Option<f64>>> {
    let n = point.len();
    let mut around = point.repeat(2 * n);
    let mut fits = vec![true; n];
    for j in 0..n {
        let step = scales.step(j, point[j]);
        // Not beyond a bound.
        let room = bounds.bounds.get(j).map_or(f64::INFINITY, |bounds| bounds.room(point[j].into()));
        let step = step.min((0.2 * room) as f32);
        fits[j] = f64::from(step) >= 4.0 * spacing(point[j]);
        around[2 * j * n + j] += step;
        around[(2 * j + 1) * n + j] -= step;
    }
    let z = given.encode(&around)?.z;
    let mut jacobian = vec![None; n * n];
    for j in (0..n).filter(|&j| fits[j]) {
        // The step as it came out in f32.
        let width = f64::from(around[2 * j * n + j]) - f64::from(around[(2 * j + 1) * n + j]);
        for i in 0..n {
            let change = f64::from(z[2 * j * n + i]) - f64::from(z[(2 * j + 1) * n + i]);
            jacobian[i * n + j] = Some(change / width);
        }
    }
    Ok(jacobian)
}

/// In what the errors of each column are measured: columns may differ in size by any factor.
pub(super) struct Scales {
    /// The model's own scale of each column; without one the deviation of the rows.
    pub(super) scale: Vec<f64>,
    /// Smaller scales count as this in steps: the networks' own unit is 1, and z must change by more than its rounding.
    least: f64,
    /// Columns whose values 32-bit floats cannot tell apart.
    pub(super) coarse: Vec<bool>,
    /// Of a model whose scale of a column depends on the value: its units, and in each column how many of the networks'
    /// units the scale is.
    local: Option<(Units, Vec<f64>)>,
}

impl Scales {
    pub(super) fn of(flow: &Flow, x: &[f32], n: usize) -> Self {
        Self::of_units(flow.units(), x, n)
    }

    fn of_units(units: &Units, x: &[f32], n: usize) -> Self {
        let least = if units.standardize.is_some() { 0.0 } else { 0.1 };
        let scales = if !units.transforms.is_empty() || units.squash.is_some() {
            Self::local(units, x, n)
        } else {
            let scale = match &units.standardize {
                // That of a column with bounds is one of what it is mapped to.
                Some(s) if units.bounds.is_empty() => s.scale.clone(),
                _ => deviations(x, n),
            };
            Self::new(scale, x)
        };
        Self { least, ..scales }
    }

    /// Scales of columns with transforms: those at each value, and their medians.
    fn local(units: &Units, x: &[f32], n: usize) -> Self {
        // Without a standardisation a unit of the networks says nothing of how far the values are apart.
        let spread = match &units.standardize {
            None => units.inner(x).map_or_else(|_| vec![1.0; n], |inner| deviations(&inner, n)),
            Some(_) => vec![1.0; n],
        };
        let unit = |j: usize, x: f32| spread[j] * units.unit(j, x.into());
        let median = |mut values: Vec<f64>| {
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        let of_column = |f: &dyn Fn(usize, f32) -> f64| -> Vec<f64> {
            (0..n).map(|j| median(x.iter().skip(j).step_by(n).map(|&x| f(j, x)).collect())).collect()
        };
        let scale = of_column(&unit);
        let coarse = of_column(&|j, x| spacing(x) / unit(j, x));
        let coarse = coarse.into_iter().map(|share| share > COARSE).collect();
        Self { scale, least: 0.0, coarse, local: Some((units.clone(), spread)) }
    }

    /// The scale of a column about a value.
    fn at(&self, column: usize, value: f32) -> f64 {
        match &self.local {
            None => self.scale[column],
            Some((units, spread)) => spread[column] * units.unit(column, value.into()),
        }
    }

    fn new(scale: Vec<f64>, x: &[f32]) -> Self {
        let n = scale.len();
        let largest = |j: usize| x.iter().skip(j).step_by(n).fold(0.0f32, |m, v| m.max(v.abs()));
        let coarse = (0..n).map(|j| spacing(largest(j)) > COARSE * scale[j]).collect();
        Self { scale, least: 0.0, coarse, local: None }
    }

    /// A step of a column: small against curvature, and several spacings of the floats around the value.
    fn step(&self, column: usize, value: f32) -> f32 {
        // In the units of the networks, which are those of the values but where the scale is a local one.
        let least = self.local.as_ref().map_or(self.least, |(units, _)| self.least * units.unit(column, value.into()));
        (1e-3 * self.at(column, value).max(least)).max(4.0 * spacing(value)) as f32
    }

    /// The largest error of `back` beyond the rounding of the values themselves, and its column. Coarse columns are
    /// left out.
    pub(super) fn round_trip(&self, x: &[f32], back: &[f32]) -> (f64, usize) {
        let n = self.scale.len();
        let (mut worst, mut column) = (0.0, (0..n).find(|&j| !self.coarse[j]).unwrap_or(0));
        for (i, (&a, &b)) in x.iter().zip(back).enumerate() {
            let j = i % n;
            let error = (f64::from(a) - f64::from(b)).abs() - spacing(a);
            let error = error / self.at(j, a);
            // An error that is no number is the worst one.
            if !self.coarse[j] && (error > worst || error.is_nan()) {
                (worst, column) = (error, j);
                if error.is_nan() {
                    break;
                }
            }
        }
        (worst, column)
    }

    /// Norm of the difference of two Jacobians, to the norm of the second, as matrices of the scaled columns that the
    /// first has; none if it has none.
    pub(super) fn distance(&self, a: &[Option<f64>], b: &[f64]) -> Option<f64> {
        let n = self.scale.len();
        let (mut difference, mut norm, mut any) = (0.0, 0.0, false);
        for (i, (a, b)) in a.iter().zip(b).enumerate().filter(|(i, _)| !self.coarse[i % n]) {
            let (scale, Some(a)) = (self.scale[i % n], a) else { continue };
            difference += (scale * (a - b)).powi(2);
            norm += (scale * b).powi(2);
            any = true;
        }
        any.then(|| (difference / norm).sqrt())
    }
}

/// A column with floats further apart than this share of its scale is not checked by differences.
const COARSE: f64 = 2.5e-3;

/// Distance of the 32-bit floats around a value.
fn spacing(value: f32) -> f64 {
    let value = value.abs().max(f32::MIN_POSITIVE);
    f64::from(value.next_up()) - f64::from(value)
}

/// Deviation of each of n columns.
fn deviations(x: &[f32], n: usize) -> Vec<f64> {
    (0..n).map(|j| deviation(x.iter().skip(j).step_by(n).map(|&v| f64::from(v)))).collect()
}

/// Deviation of some values; of equal ones their size, or 1.
fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / count;
    let deviation = (values.map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt();
    match deviation {
        // Rounding of the mean is no deviation.
        d if d > 1e-12 * mean.abs() => d,
        _ if mean != 0.0 => mean.abs(),
        _ => 1.0,
    }
}

/// `log |det|` of a matrix (n, n) by Gaussian elimination with row exchange.
pub(super) fn log_abs_det(mut a: Vec<f64>, n: usize) -> f64 {
    let mut sum = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs())).unwrap_or(k);
        for c in 0..n {
            a.swap(k * n + c, pivot * n + c);
        }
        let value = a[k * n + k];
        sum += value.abs().ln();
        for r in k + 1..n {
            let factor = a[r * n + k] / value;
            for c in k..n {
                a[r * n + c] -= factor * a[k * n + c];
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determinants() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(log_abs_det(vec![0.0, 2.0, 3.0, 0.0], 2), 6f64.ln()));
        assert!(close(log_abs_det(vec![2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0], 3), 18f64.ln()));
        assert_eq!(log_abs_det(vec![1.0, 1.0, 1.0, 1.0], 2), f64::NEG_INFINITY);
    }

    /// What a squash draws in is measured where it lies; without a standardisation, by how far the rows are apart.
    #[test]
    fn a_squash_alone_leaves_the_scale_of_the_rows() {
        let x: Vec<f32> = (0..300).map(|i| ((i * 7919 % 101) as f32 / 101.0) * [1e-9, 1.0, 1e5][i % 3]).collect();
        let plain = Scales::of_units(&Units::default(), &x, 3);
        let squashed = Scales::of_units(&Units { squash: Some(3.0), ..Units::default() }, &x, 3);
        assert!(plain.scale[0] < 1e-9 && (squashed.scale[0] / plain.scale[0] - 1.0).abs() < 1e-6);
        assert!((squashed.scale[1] / plain.scale[1] - 1.0).abs() < 1e-6);
        for (value, column) in [(1e-9, 0), (0.5, 1)] {
            assert_eq!(squashed.step(column, value), plain.step(column, value));
        }
        let mut back = x.clone();
        back[0] += 1e-10;
        let (error, column) = squashed.round_trip(&x, &back);
        assert!(column == 0 && error > 0.1, "{error}");
    }

    #[test]
    fn errors_are_measured_in_the_scale_of_their_column() {
        let scale = vec![1e-9, 1e5, 30.0];
        let x = [2e-9, 3e5, 1.7e9, -1e-9, 2e5, 1.7e9];
        let scales = Scales::new(scale, &x);
        assert_eq!(scales.coarse, [false, false, true]);
        assert_eq!(scales.round_trip(&x, &x), (0.0, 0));
        let mut back = x;
        (back[2], back[3], back[4]) = (1.6e9, -1.1e-9, 2.01e5);
        let (error, column) = scales.round_trip(&x, &back);
        assert!(column == 0 && (error - 0.1).abs() < 1e-3, "{error}");
        back[4] = f32::NAN;
        let (error, column) = scales.round_trip(&x, &back);
        assert!(column == 1 && error.is_nan());
        // A wrong derivative by the large column, which is the small one of the Jacobian.
        let right = [1e9, 0.0, 0.0, 0.0, 1e-5, 0.0, 0.0, 0.0, 1.0];
        let mut wrong = right;
        (wrong[4], wrong[8]) = (2e-5, 7.0);
        let steps = |values: &[f64]| values.iter().copied().map(Some).collect::<Vec<_>>();
        assert!((scales.distance(&steps(&wrong), &right).unwrap() - 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(scales.distance(&steps(&right), &right), Some(0.0));
        // Where no step fits, there is nothing to compare; what is no number stays one.
        assert_eq!(scales.distance(&[None; 4], &right), None);
        assert!(scales.distance(&[Some(f64::NAN), None, None, None], &right).unwrap().is_nan());
    }
}

//! Whether rows of z have the shape that a good model gives them: every column standard normal, `|z|^2` chi-squared.
//!
//! Distances are those of Kolmogorov and Smirnov: the largest difference of the rows' distribution from the one that
//! it should be. Unlike mean and deviation they see any difference of shape.

use std::cmp::Ordering;

/// Chance that a perfect model is found wrong, in all columns and the square together.
const CHANCE: f64 = 1e-3;
/// What a column may differ beyond chance: as much as a shift by 0.13, or a deviation nearly a quarter too large, makes.
const SLIGHT: f64 = 0.05;
/// A column beyond this is none of a fitted model: a shift by 0.9, or a deviation that is 6 times what it should be.
const FAR: f64 = 0.35;
/// Of so many columns `|z|^2` is as sensitive as a single column is.
const AS_ONE: f64 = 3.0;

/// The shape of some rows of z.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Shape {
    /// The column of the largest distance, from 0.
    pub column: usize,
    /// Its distance from a standard normal.
    pub distance: f64,
    /// Its quantiles at [`SHARES`].
    pub quantiles: [f64; 3],
    /// Distance of `|z|^2` from a chi-squared distribution of as many degrees as there are columns.
    pub square: f64,
    /// `|z|^2` of these rows at [`SHARES`].
    pub squares: [f64; 3],
    /// Bounds of both distances.
    pub bounds: [Bound; 2],
}

/// Shares at which quantiles are told.
pub(crate) const SHARES: [f64; 3] = [0.01, 0.5, 0.99];

/// Up to where a distance is good, and from where on it is a failure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bound {
    /// The largest good distance.
    pub good: f64,
    /// The largest that is no failure.
    pub failure: f64,
}

/// What a distance says of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// As it should be, but for chance and what no one need care about.
    Fits,
    /// The model does not fit these rows well.
    Poor,
    /// The model has not learnt these rows, or its densities are wrong.
    Failed,
}

impl Bound {
    /// The verdict on a distance. NaN fails.
    pub(crate) fn verdict(&self, distance: f64) -> Verdict {
        let within = |limit: f64| matches!(distance.partial_cmp(&limit), Some(Ordering::Less | Ordering::Equal));
        match (within(self.good), within(self.failure)) {
            (true, _) => Verdict::Fits,
            (false, true) => Verdict::Poor,
            (false, false) => Verdict::Failed,
        }
    }
}

impl Shape {
    /// Of rows of z, row-major, of `columns` columns. None if there is no row.
    pub(crate) fn of(z: &[f32], columns: usize) -> Option<Self> {
        let rows = z.len().checked_div(columns)?;
        if rows == 0 {
            return None;
        }
        let mut worst: Option<(usize, f64, [f64; 3])> = None;
        for column in 0..columns {
            let sorted = sorted(z.iter().skip(column).step_by(columns).map(|&v| f64::from(v)));
            let distance = distance(&sorted, normal_cdf);
            // NaN is the largest distance.
            if worst.is_none_or(|(_, before, _)| !before.is_nan() && (distance > before || distance.is_nan())) {
                worst = Some((column, distance, SHARES.map(|share| at(&sorted, share))));
            }
        }
        let (column, distance_of_column, quantiles) = worst?;
        let squares = z.chunks_exact(columns).map(|row| row.iter().map(|&v| f64::from(v).powi(2)).sum());
        let squares = sorted(squares);
        let square = distance(&squares, |x| chi_squared_cdf(columns, x));
        Some(Self {
            column,
            distance: distance_of_column,
            quantiles,
            square,
            squares: SHARES.map(|share| at(&squares, share)),
            bounds: bounds(rows, columns),
        })
    }
}

/// Bounds of the distances of columns, and of the square, for so many rows.
///
/// By chance, a distance of n rows is above e in at most a share `2 exp(-2 n e^2)` of cases (Massart's constant of the
/// inequality of Dvoretzky, Kiefer and Wolfowitz), of which every test gets its part. A model that is slightly off is
/// no failure: see [`SLIGHT`] and [`FAR`]. Where all columns are off by the same factor, `|z|^2` is off by `sqrt(N / 3)`
/// times as much as a column, so that it is allowed as much more.
fn bounds(rows: usize, columns: usize) -> [Bound; 2] {
    let tests = (columns + 1) as f64;
    let chance = ((2.0 * tests / CHANCE).ln() / (2.0 * rows as f64)).sqrt();
    let wide = (columns as f64 / AS_ONE).sqrt().max(1.0);
    let bound = |slight: f64, far: f64| Bound { good: chance + slight, failure: chance + far };
    [bound(SLIGHT, FAR), bound((SLIGHT * wide).min(0.5), (FAR * wide).min(0.9))]
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values
}

/// The quantile of sorted values.
fn at(sorted: &[f64], share: f64) -> f64 {
    sorted[((share * sorted.len() as f64) as usize).min(sorted.len() - 1)]
}

/// Largest difference of the distribution of sorted values from `cdf`; NaN if a value is NaN.
fn distance(sorted: &[f64], cdf: impl Fn(f64) -> f64) -> f64 {
    let n = sorted.len() as f64;
    let mut largest: f64 = 0.0;
    for (i, &value) in sorted.iter().enumerate() {
        let below = cdf(value);
        let here = (below - i as f64 / n).max((i + 1) as f64 / n - below);
        if below.is_nan() {
            return f64::NAN;
        }
        largest = largest.max(here);
    }
    largest
}

/// Distribution function of a standard normal: the power series of its integral, whose terms are all of one sign.
fn normal_cdf(x: f64) -> f64 {
    let size = x.abs();
    if size > 8.0 {
        return if x > 0.0 { 1.0 } else { 0.0 };
    }
    let (mut term, mut sum, mut odd) = (size, size, 1.0);
    while term > 1e-17 * sum {
        odd += 2.0;
        term *= size * size / odd;
        sum += term;
    }
    let upper = sum * (-0.5 * size * size).exp() / std::f64::consts::TAU.sqrt();
    if x.is_nan() { x } else { 0.5 + upper.copysign(x) }
}

/// Distribution function of a chi-squared variable of `degrees` degrees of freedom.
fn chi_squared_cdf(degrees: usize, x: f64) -> f64 {
    let k = degrees as f64;
    if degrees > 100 {
        // Its cube root is nearly normal: exact to 1e-3 of a share from 3 degrees on, and ever better.
        let spread = 2.0 / (9.0 * k);
        return normal_cdf(((x / k).cbrt() - 1.0 + spread) / spread.sqrt());
    }
    // Integration by parts lowers the degrees by two, down to none or to one; the terms are those of a Poisson variable.
    let half = 0.5 * x;
    let (mut upper, mut term, mut next) = if degrees.is_multiple_of(2) {
        (0.0, (-half).exp(), 1.0)
    } else {
        // That of one degree, and sqrt(x / 2) e^(-x / 2) / Gamma(3 / 2).
        let of_one = 2.0 * (1.0 - normal_cdf(x.sqrt()));
        (of_one, half.sqrt() * (-half).exp() * 2.0 / std::f64::consts::PI.sqrt(), 1.5)
    };
    for _ in 0..degrees / 2 {
        upper += term;
        term *= half / next;
        next += 1.0;
    }
    (1.0 - upper).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Stream, fill_normals};

    fn normals(rows: usize, columns: usize, seed: u64) -> Vec<f32> {
        let mut z = vec![0.0; rows * columns];
        fill_normals(seed, Stream::Data, 0, 0, &mut z);
        z
    }

    fn verdicts(z: &[f32], columns: usize) -> [Verdict; 2] {
        let shape = Shape::of(z, columns).unwrap();
        [shape.bounds[0].verdict(shape.distance), shape.bounds[1].verdict(shape.square)]
    }

    /// Values of printed tables.
    #[test]
    fn distribution_functions_are_those_of_tables() {
        for (x, want) in [(0.0, 0.5), (1.0, 0.841_344_746), (-1.959_964, 0.025), (3.090_232, 0.999), (-40.0, 0.0)] {
            assert!((normal_cdf(x) - want).abs() < 1e-8, "{x}: {}", normal_cdf(x));
        }
        let quantiles =
            [(1, 3.841_459), (2, 5.991_465), (3, 7.814_728), (5, 11.070_498), (10, 18.307_038), (100, 124.342_113)];
        for (degrees, x) in quantiles {
            assert!((chi_squared_cdf(degrees, x) - 0.95).abs() < 1e-7, "{degrees}: {}", chi_squared_cdf(degrees, x));
        }
        assert!((chi_squared_cdf(200, 233.994_269) - 0.95).abs() < 1e-3);
        assert_eq!((chi_squared_cdf(3, 0.0), chi_squared_cdf(4, 1e30)), (0.0, 1.0));
        assert!(normal_cdf(f64::NAN).is_nan());
    }

    #[test]
    fn normal_rows_fit_whatever_their_number() {
        for (rows, columns) in [(1, 1), (12, 3), (100, 20), (1000, 2), (20_000, 5), (3000, 130)] {
            assert_eq!(verdicts(&normals(rows, columns, 5), columns), [Verdict::Fits; 2], "{rows} x {columns}");
        }
        assert_eq!(Shape::of(&[], 3), None);
    }

    #[test]
    fn what_is_slightly_off_is_no_failure_and_what_is_far_off_is() {
        let scaled = |factor: f32, shift: f32| -> Vec<f32> {
            normals(20_000, 3, 7).into_iter().map(|z| factor * z + shift).collect()
        };
        assert_eq!(verdicts(&scaled(1.03, 0.02), 3), [Verdict::Fits; 2]);
        assert_eq!(verdicts(&scaled(1.4, 0.0), 3), [Verdict::Poor; 2]);
        assert_eq!(verdicts(&scaled(1.0, 0.5), 3)[0], Verdict::Poor);
        assert_eq!(verdicts(&scaled(9.0, 0.0), 3), [Verdict::Failed; 2]);
        assert_eq!(verdicts(&scaled(0.0, 0.0), 3), [Verdict::Failed; 2]);
        // Mean 0 and deviation 1, and yet of another shape.
        let two: Vec<f32> = normals(20_000, 2, 7).into_iter().map(f32::signum).collect();
        assert_eq!(verdicts(&two, 2)[0], Verdict::Poor);
        // Every column by itself is normal; together they are not.
        let copied: Vec<f32> = normals(5000, 1, 7).into_iter().flat_map(|z| [z; 20]).collect();
        let [column, square] = verdicts(&copied, 20);
        assert!(column == Verdict::Fits && square != Verdict::Fits, "{square:?}");
    }

    #[test]
    fn one_column_is_named_and_what_is_no_number_fails() {
        let mut z = normals(5000, 4, 9);
        z.iter_mut().skip(2).step_by(4).for_each(|z| *z += 1.0);
        let shape = Shape::of(&z, 4).unwrap();
        assert_eq!(shape.column, 2);
        assert!((shape.distance - 0.38).abs() < 0.02, "a shift by 1: {}", shape.distance);
        assert!((shape.quantiles[1] - 1.0).abs() < 0.1 && (shape.quantiles[2] - 3.33).abs() < 0.2, "{shape:?}");
        for wrong in [f32::NAN, f32::INFINITY] {
            z[5] = wrong;
            z[6] = wrong;
            assert_eq!(verdicts(&z, 4)[1], Verdict::Failed, "{wrong}");
        }
        z[5] = f32::NAN;
        assert_eq!(Shape::of(&z, 4).unwrap().column, 1);
        assert_eq!(verdicts(&z, 4), [Verdict::Failed; 2]);
    }
}

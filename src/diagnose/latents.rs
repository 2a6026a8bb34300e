//! Latent vectors of held-out rows: standard normal and independent of the conditions, if densities are right.

use super::uniform::p_value;
use super::{BEYOND_CHANCE, Kind, Test, smallest_of, two_sided};
use crate::data::columns::quantile::normal_cdf;
use statrs::function::gamma::gamma_lr;

/// Tests of z (rows, `columns`), and of z against `conditions` (rows, names.len()) if there are any.
pub(crate) fn tests(z: &[f32], columns: usize, conditions: &[f32], names: &[String]) -> Vec<Test> {
    let of = |column: usize| -> Vec<f64> { z.iter().skip(column).step_by(columns).map(|&v| v.into()).collect() };
    let all: Vec<Vec<f64>> = (0..columns).map(of).collect();
    let mut tests: Vec<Test> = all.iter().enumerate().map(|(column, z)| of_column(column, z)).collect();
    tests.push(of_norms(z, columns));
    tests.extend(of_pairs(&all));
    tests.extend(names.iter().enumerate().map(|(c, name)| {
        let condition: Vec<f64> = conditions.iter().skip(c).step_by(names.len()).map(|&v| v.into()).collect();
        of_condition(&all, &condition, name)
    }));
    tests
}

/// The columns of z as numbers that are uniform if they are standard normal.
pub(crate) fn uniform(z: &[f32], columns: usize) -> Vec<Vec<f64>> {
    let of = |column: usize| z.iter().skip(column).step_by(columns).map(|&z| normal_cdf(z.into())).collect();
    (0..columns).map(of).collect()
}

/// The name of a column's test.
pub(super) fn name(column: usize) -> String {
    format!("latent column {}", column + 1)
}

fn of_column(column: usize, z: &[f64]) -> Test {
    let n = z.len().max(1) as f64;
    let mean = z.iter().sum::<f64>() / n;
    let deviation = (z.iter().map(|z| (z - mean).powi(2)).sum::<f64>() / n).sqrt();
    let uniform: Vec<f64> = z.iter().map(|&z| normal_cdf(z)).collect();
    let says = format!("mean {mean:.2} and standard deviation {deviation:.2}; right are 0 and 1");
    Test::new(name(column), Kind::Latent, deviation, p_value(&uniform), says)
}

/// `|z|^2` is chi-squared: the test of regions of highest density, without samples.
fn of_norms(z: &[f32], columns: usize) -> Test {
    let mean = z.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>() / z.len().max(1) as f64;
    let says = format!("|z|^2 is {mean:.2} a column in the mean; right is 1");
    Test::new(NORM, Kind::Norm, mean, norm_p_value(z, columns), says)
}

/// The name of the test of `|z|^2`.
pub(super) const NORM: &str = "norm of the latent vector";

/// The p-value of `|z|^2`, of at most some thousand rows.
pub(crate) fn norm_p_value(z: &[f32], columns: usize) -> f64 {
    p_value(&uniform_norms(z, columns))
}

/// `|z|^2` as numbers that are uniform if z is standard normal, of at most some thousand rows.
pub(super) fn uniform_norms(z: &[f32], columns: usize) -> Vec<f64> {
    let square = |row: &[f32]| row.iter().map(|&z| f64::from(z).powi(2)).sum::<f64>();
    let cdf = |square: f64| match square {
        s if s > 0.0 && s.is_finite() => gamma_lr(columns as f64 / 2.0, s / 2.0),
        0.0 => 0.0,
        _ => f64::NAN,
    };
    let rows = z.len() / columns;
    let some = z.chunks_exact(columns).step_by(rows.div_ceil(MOST_NORMS).max(1));
    some.map(|row| cdf(square(row))).collect()
}

/// The time of the test grows faster than the number of rows.
const MOST_NORMS: usize = 2_000;

/// The pair of columns that is most correlated.
fn of_pairs(z: &[Vec<f64>]) -> Option<Test> {
    let ranks: Vec<Vec<f64>> = z.iter().map(|z| ranks(z)).collect();
    let pairs = (0..z.len()).flat_map(|i| (0..i).map(move |j| (j, i)));
    let all: Vec<(usize, usize, f64)> = pairs.map(|(i, j)| (i, j, correlation(&ranks[i], &ranks[j]))).collect();
    let &(i, j, largest) = all.iter().max_by(|a, b| a.2.abs().total_cmp(&b.2.abs()))?;
    let p_value = smallest_of(of_correlation(largest, z[0].len()), all.len());
    let says = format!("columns {} and {} are the most correlated: {largest:.2}", i + 1, j + 1);
    Some(Test::new("pairs of latent columns", Kind::Pairs, largest, p_value, says))
}

/// Columns of z, and how far out they are, that depend on a condition: the posterior is then shifted, or too wide, for
/// some values of the condition and not for others.
fn of_condition(z: &[Vec<f64>], condition: &[f64], name: &str) -> Test {
    let condition = ranks(condition);
    // Far from the middle: what a shift on both sides of the condition needs.
    let squared: Vec<f64> = condition.iter().map(|c| c * c).collect();
    let of_condition = [("is larger", condition), ("is farther from its middle", ranks(&squared))];
    let of_z = z.iter().enumerate().flat_map(|(column, z)| {
        let width: Vec<f64> = z.iter().map(|z| z.abs()).collect();
        [(column, ["larger", "smaller"], ranks(z)), (column, ["wider", "narrower"], ranks(&width))]
    });
    let all: Vec<(usize, &str, &str, f64)> = of_z
        .flat_map(|(column, [more, less], z)| {
            of_condition.iter().map(move |(how, condition)| {
                let correlation = correlation(&z, condition);
                (column, if correlation > 0.0 { more } else { less }, *how, correlation)
            })
        })
        .collect();
    let largest = all.iter().max_by(|a, b| a.3.abs().total_cmp(&b.3.abs()));
    let Some(&(column, what, how, largest)) = largest else {
        return Test::new(name, Kind::Conditions, 0.0, 1.0, String::new());
    };
    let p_value = smallest_of(of_correlation(largest, z[0].len()), all.len());
    let found = format!("latent column {} is {what} if {name} {how}: correlation {largest:.2}", column + 1);
    let says = match p_value < BEYOND_CHANCE {
        true => format!("posteriors do not follow {name} as truths do: {found}"),
        false => found,
    };
    Test::new(format!("latent vectors given {name}"), Kind::Conditions, largest, p_value, says)
}

/// Centred ranks; those of equal values are their mean.
fn ranks(values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by(|&a, &b| values[a].total_cmp(&values[b]));
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let mut ranks = vec![0.0; values.len()];
    let mut first = 0;
    for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
        let rank = first as f64 + (equal.len() as f64 - 1.0) / 2.0 - middle;
        equal.iter().for_each(|&place| ranks[place] = rank);
        first += equal.len();
    }
    ranks
}

/// Correlation of centred values; 0 if one of them never varies.
fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let square = dot(a, a) * dot(b, b);
    if square > 0.0 { dot(a, b) / square.sqrt() } else { 0.0 }
}

/// Two-sided p-value of a rank correlation of n independent pairs.
fn of_correlation(correlation: f64, n: usize) -> f64 {
    two_sided(correlation * (n.max(2) as f64 - 1.0).sqrt())
}

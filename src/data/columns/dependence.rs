//! Columns that are linear functions of others, found on some of the rows: copies, scaled and shifted copies, sums, parts
//! of a whole.
//!
//! Such columns have no density of their own: rows lie in a plane, and what a model learns across it is the noise of
//! its training. The columns are taken in their order, each is compared with what those before it give by least squares
//! (a Cholesky decomposition of their covariances, row by row), and one that is left with less than a small part of its
//! deviation depends on them.
//!
//! The work is bounded by the sample of rows: at most about 2 n^2 products of vectors of a few thousand numbers.

use rayon::prelude::*;

use super::least_squares::{Basis, TOLERANCE, dot};
use super::quantile::{quantile, spread};

/// Rows that are looked at, for tables of few columns.
const ROWS: usize = 2000;
/// Values further from the median than so many deviations (by quantiles) say nothing of a relation among the others:
/// their rows are left out.
const FAR: f64 = 30.0;
/// A part of a relation that makes less of the column's deviation than this is not named.
const NAMED: f64 = 0.02;

/// A column that others give.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Dependent {
    /// The column, from 0.
    pub(crate) column: usize,
    /// The columns before it that give it, each with its factor.
    pub(crate) terms: Vec<(usize, f64)>,
    /// What is added to them.
    pub(crate) constant: f64,
    /// The share of its deviation that is left.
    pub(crate) left: f64,
}

/// The columns of row-major `values` that depend on columns before them. Constant columns are neither.
pub(crate) fn find(values: &[f32], dim: usize) -> Vec<Dependent> {
    let Some(sample) = Sample::of(values, dim) else { return Vec::new() };
    let n = sample.columns.first().map_or(0, |column| column.values.len());
    let all: Vec<&[f64]> = sample.columns.iter().map(|column| column.values.as_slice()).collect();
    // Of so few rows any column would be a function of all others.
    let most = n / 3;
    let mut found = Vec::new();
    let mut basis = Basis::default();
    for (j, column) in sample.columns.iter().enumerate() {
        let products: Vec<f64> = basis.members.par_iter().map(|&i| dot(all[i], all[j]) / n as f64).collect();
        let row = basis.solve(&products);
        let left = Basis::unexplained(&row);
        // As if of as many rows as are free.
        let free = n as f64 / (n - basis.members.len()).max(1) as f64;
        let left = (left.max(0.0) * free).sqrt();
        if left < TOLERANCE && !basis.members.is_empty() {
            let factors = basis.coefficients(row);
            let named = basis.members.iter().zip(factors).filter(|(_, f)| f.abs() > NAMED);
            let terms: Vec<(usize, f64)> = named
                .map(|(&i, f)| (sample.columns[i].number, f * column.deviation / sample.columns[i].deviation))
                .collect();
            let mean_of = |number: usize| sample.columns.iter().find(|c| c.number == number).map_or(0.0, |c| c.mean);
            let constant = column.mean - terms.iter().map(|&(i, f)| f * mean_of(i)).sum::<f64>();
            found.push(Dependent { column: column.number, terms, constant, left });
        } else if basis.members.len() < most {
            basis.push(j, row);
        }
    }
    found
}

/// How many rows are the same as one before them, of the first million, and the first two that are, from 0.
pub(crate) fn repeated_rows(values: &[f32], dim: usize) -> Option<(usize, [usize; 2])> {
    const MOST: usize = 1_000_000;
    let mut seen = std::collections::HashMap::new();
    let (mut count, mut first) = (0, None);
    for (number, row) in values.chunks_exact(dim).take(MOST).enumerate() {
        // Two sums of 64 bits each: rows that differ have the same by chance once in 2^128.
        let mut sums = [0x9E37_79B9_7F4A_7C15u64, 0xD1B5_4A32_D192_ED03];
        for &x in row {
            // Negative zero is zero.
            let bits = u64::from((x + 0.0).to_bits());
            for (sum, odd) in sums.iter_mut().zip([0xA076_1D64_78BD_642Fu64, 0xE703_7ED1_A0B4_28DB]) {
                *sum = (*sum ^ bits).wrapping_mul(odd).rotate_left(29);
            }
        }
        match seen.entry(sums) {
            std::collections::hash_map::Entry::Vacant(place) => {
                place.insert(number as u32);
            }
            std::collections::hash_map::Entry::Occupied(place) => {
                count += 1;
                first.get_or_insert([*place.get() as usize, number]);
            }
        }
    }
    first.map(|first| (count, first))
}

/// Columns that vary, on some of the rows, with mean 0 and deviation 1.
struct Sample {
    columns: Vec<Column>,
}

struct Column {
    number: usize,
    mean: f64,
    deviation: f64,
    values: Vec<f64>,
}

impl Sample {
    fn of(values: &[f32], dim: usize) -> Option<Self> {
        let rows = values.len() / dim;
        let apart = (rows / ROWS.max(3 * dim)).max(1);
        let chosen: Vec<&[f32]> = values.chunks_exact(dim).step_by(apart).collect();
        let limits: Vec<Option<[f64; 2]>> = (0..dim)
            .into_par_iter()
            .map(|c| {
                let mut sorted: Vec<f64> = chosen.iter().map(|row| row[c].into()).collect();
                sorted.sort_by(f64::total_cmp);
                let (center, spread) = (quantile(&sorted, 0.5), spread(&sorted));
                (spread > 0.0).then_some([center - FAR * spread, center + FAR * spread])
            })
            .collect();
        let varying: Vec<(usize, [f64; 2])> = limits.iter().enumerate().filter_map(|(c, l)| Some((c, (*l)?))).collect();
        let inside = |row: &&&[f32]| varying.iter().all(|&(c, [low, high])| (low..=high).contains(&f64::from(row[c])));
        let near: Vec<&&[f32]> = chosen.iter().filter(inside).collect();
        // Where far values are everywhere, they are moved to the limit instead.
        let whole = near.len() * 2 > chosen.len();
        let kept = if whole { near } else { chosen.iter().collect() };
        if kept.len() < 10 {
            return None;
        }
        let column = |&(number, [low, high]): &(usize, [f64; 2])| {
            let mut values: Vec<f64> = kept.iter().map(|row| f64::from(row[number]).clamp(low, high)).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            values.iter_mut().for_each(|x| *x -= mean);
            let deviation = (values.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
            values.iter_mut().for_each(|x| *x /= deviation);
            (deviation > 0.0).then_some(Column { number, mean, deviation, values })
        };
        Some(Self { columns: varying.iter().filter_map(column).collect() })
    }
}

#[cfg(test)]
#[path = "dependence_tests.rs"]
mod tests;

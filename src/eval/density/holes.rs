//! Holes in the values of a column: where no row is, and rows on both sides.
//!
//! A density bridges a hole with a little of its mass, and one of several columns may find rare rows elsewhere as unusual.
//! That there was nothing is known all the same.

use serde::{Deserialize, Serialize};

/// Distances between neighbours that a hole is compared with, on either side.
const NEAR: usize = 20;
/// A hole is wider than those by ln n and this much: of smooth densities few columns in 1,000 have such a gap by chance.
const WIDER: f64 = 7.0;
/// A column of so few different values has nothing between any of them.
const FEW: usize = 20;
/// The widest are kept.
const MOST: usize = 32;

/// Where a column has no values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Hole {
    /// The column, among the conditions.
    pub column: usize,
    /// The nearest values below and above.
    pub between: [f64; 2],
}

impl Hole {
    /// Whether a value of its column lies in it.
    pub(crate) fn holds(&self, value: f32) -> bool {
        let [from, to] = self.between;
        (f64::from(value) > from) & (f64::from(value) < to)
    }
}

/// The holes of each column of some rows.
pub(crate) fn holes(rows: &[f32], columns: usize) -> Vec<Hole> {
    let of = |column: usize| {
        let values = rows.iter().skip(column).step_by(columns).map(|&v| f64::from(v)).collect();
        of_column(values).into_iter().map(move |between| Hole { column, between })
    };
    (0..columns).flat_map(of).collect()
}

fn of_column(mut values: Vec<f64>) -> Vec<[f64; 2]> {
    values.sort_by(f64::total_cmp);
    values.dedup();
    let widths: Vec<f64> = values.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let times = (values.len() as f64).ln() + WIDER;
    let mean = |some: &[f64]| some.iter().sum::<f64>() / some.len() as f64;
    let is_hole = |at: usize| {
        // Beyond the last few there is no other side.
        let around = (at >= NEAR && at + NEAR < widths.len())
            .then(|| mean(&widths[at - NEAR..at]).max(mean(&widths[at + 1..=at + NEAR])));
        values.len() <= FEW || around.is_some_and(|around| widths[at] > times * around)
    };
    let mut found: Vec<usize> = (0..widths.len()).filter(|&at| is_hole(at)).collect();
    found.sort_by(|&a, &b| widths[b].total_cmp(&widths[a]));
    found.truncate(MOST);
    found.sort_unstable();
    found.into_iter().map(|at| [values[at], values[at + 1]]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    #[test]
    fn a_hole_between_two_modes_is_found() {
        let mut rng = Counter::new(1, Stream::Data, 0, 0);
        let rows: Vec<f32> = (0..2000)
            .flat_map(|i| {
                let [a, b] = rng.normal_pair();
                [b as f32, (0.3 * a + if i % 2 == 0 { 3.0 } else { -3.0 }) as f32]
            })
            .collect();
        let found = holes(&rows, 2);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].column == 1 && found[0].holds(0.0) && !found[0].holds(3.0) && !found[0].holds(f32::NAN));
    }

    #[test]
    fn smooth_columns_have_none() {
        let mut wrong = 0;
        for seed in 0..200 {
            let mut rng = Counter::new(seed, Stream::Data, 0, 0);
            let rows: Vec<f32> = (0..1500)
                .flat_map(|_| {
                    let ([a, b], u) = (rng.normal_pair(), rng.uniform(0.0, 1.0));
                    // A normal, a lognormal, a Cauchy, an exponential and a uniform column.
                    [a, b.exp(), a / b, -u.max(1e-9).ln(), u].map(|v| v as f32)
                })
                .collect();
            wrong += holes(&rows, 5).len();
        }
        assert!(wrong <= 12, "{wrong} holes in 1,000 columns");
    }

    #[test]
    fn codes_have_nothing_between_them_and_counts_are_smooth() {
        let rows: Vec<f32> = (0..300).map(|i| (i % 4) as f32).collect();
        let between: Vec<[f64; 2]> = holes(&rows, 1).into_iter().map(|hole| hole.between).collect();
        assert_eq!(between, [[0.0, 1.0], [1.0, 2.0], [2.0, 3.0]]);
        let counts: Vec<f32> = (0..3000).map(|i| (i % 100) as f32).collect();
        assert_eq!(holes(&counts, 1), []);
        assert_eq!((holes(&[], 1), holes(&[1.0], 1)), (vec![], vec![]));
    }
}

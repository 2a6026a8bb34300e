//! Whether the rows that judge a model are like those of its training. If they are not, tests tell of the difference of the
//! rows as much as of the model.

use serde::{Deserialize, Serialize};

/// A column of the rows that judge a model, beside the same column of its training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Likeness {
    /// Name of the column.
    pub column: String,
    /// Whether the model is given it, instead of modelling it.
    pub is_condition: bool,
    /// Mean and standard deviation in the training, in the column's units.
    pub trained: [f64; 2],
    /// The same of the rows that judge.
    pub judged: [f64; 2],
    /// Whether the two are distributed differently, by more than chance and enough to matter.
    pub differs: bool,
}

/// What is known of a column of the training.
#[derive(Clone, Debug)]
pub(crate) struct Trained<'a> {
    /// Name of the column.
    pub column: &'a str,
    /// Whether it is a condition.
    pub is_condition: bool,
    /// Mean and standard deviation.
    pub moments: [f64; 2],
    /// Shares, and the values below which these lie.
    pub quantiles: &'a [(f64, f64)],
    /// Rows that the quantiles were taken from.
    pub rows: usize,
}

/// How many standard errors a share has to be off, and by which part of it: many rows show differences that nobody minds.
const ERRORS: f64 = 5.0;
/// See [`ERRORS`].
const PART: f64 = 0.35;

impl Likeness {
    /// A column of the training, and `values` of the same in the rows that judge.
    pub(crate) fn of(trained: &Trained, values: &[f64]) -> Self {
        let n = values.len().max(1) as f64;
        let mean = values.iter().sum::<f64>() / n;
        let deviation = (values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        // Floats that are rounded differently are one value.
        let near = 1e-6 * trained.moments[1];
        let differs = trained.quantiles.iter().any(|&(share, at)| {
            let below = values.iter().filter(|&&v| v < at - near).count() as f64 / n;
            let to = values.iter().filter(|&&v| v <= at + near).count() as f64 / n;
            // Of values that repeat, any share from the one to the other is right.
            let off = (below - share).max(share - to).max(0.0);
            let error = (share * (1.0 - share) * (1.0 / n + 1.0 / trained.rows.max(1) as f64)).sqrt();
            off > ERRORS * error && off > PART * share.min(1.0 - share)
        });
        Self {
            column: trained.column.into(),
            is_condition: trained.is_condition,
            trained: trained.moments,
            judged: [mean, deviation],
            differs,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    fn normals(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        (0..n).map(|_| rng.normal_pair()[0]).collect()
    }

    const OF_NORMAL: [(f64, f64); 5] = [(0.01, -2.326), (0.25, -0.6745), (0.5, 0.0), (0.75, 0.6745), (0.99, 2.326)];

    fn differs(values: &[f64], quantiles: &[(f64, f64)]) -> bool {
        let trained = Trained { column: "a", is_condition: false, moments: [0.0, 1.0], quantiles, rows: 5_000 };
        Likeness::of(&trained, values).differs
    }

    #[test]
    fn rows_of_one_distribution_are_alike_and_others_are_not() {
        let wrong = (0..200).filter(|&seed| differs(&normals(500, seed), &OF_NORMAL)).count();
        assert_eq!(wrong, 0);
        let changed = |by: fn(f64) -> f64| {
            (0..50)
                .filter(|&seed| differs(&normals(500, seed).into_iter().map(by).collect::<Vec<_>>(), &OF_NORMAL))
                .count()
        };
        assert!(changed(|v| 2.0 * v) >= 49, "twice as wide: {}", changed(|v| 2.0 * v));
        assert!(changed(|v| 0.5 * v) >= 49, "half as wide: {}", changed(|v| 0.5 * v));
        assert!(changed(|v| v + 0.5) >= 49, "shifted: {}", changed(|v| v + 0.5));
        // What nobody would mind.
        assert!(changed(|v| v + 0.05) == 0, "shifted a little: {}", changed(|v| v + 0.05));
    }

    #[test]
    fn values_that_repeat_are_no_difference() {
        let ones: Vec<f64> = (0..500).map(|i| f64::from(i % 2)).collect();
        let quantiles = [(0.01, 0.0), (0.25, 0.0), (0.5, 1.0), (0.75, 1.0), (0.99, 1.0)];
        assert!(!differs(&ones, &quantiles));
        let mostly: Vec<f64> = (0..500).map(|i| f64::from(i32::from(i % 10 == 0))).collect();
        assert!(differs(&mostly, &quantiles));
        assert!(!differs(&[], &[]));
    }
}

//! Measures of an ensemble: what it says of each column, and how right that is.

use crate::error::{Error, Result};

/// Shares of the states that are below the quantiles of a [`Column`]: they bound the middle 90 % and 50 %, and the
/// median.
pub(crate) const SHARES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// What equally likely values say.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Column {
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
    /// At [`SHARES`].
    pub quantiles: [f64; 5],
    /// How right it is, if the truth is known.
    pub score: Option<Score>,
}

/// How right an ensemble is about a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Score {
    pub truth: f64,
    /// Continuous ranked probability score: `E|X - truth| - E|X - X'| / 2`, in the units of the value; 0 is best.
    pub crps: f64,
    /// Whether the truth lies in the middle 50 % of the states, and in the middle 90 %.
    pub inside: [bool; 2],
}

/// Measures of each column of states (rows, N), and of what they are worth if the truth (N) is known.
///
/// # Errors
/// [`Error::Shape`] if there are no whole rows.
pub(crate) fn columns(states: &[f32], n: usize, truth: Option<&[f32]>) -> Result<Vec<Column>> {
    if n == 0 || states.is_empty() || !states.len().is_multiple_of(n) {
        return Err(Error::Shape { what: "columns of the states".into(), expected: n, got: states.len() });
    }
    Ok((0..n).map(|column| of(states.iter().skip(column).step_by(n), truth.map(|truth| truth[column]))).collect())
}

fn of<'a>(values: impl Iterator<Item = &'a f32>, truth: Option<f32>) -> Column {
    let mut sorted: Vec<f64> = values.map(|&v| v.into()).collect();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    let mean = sorted.iter().sum::<f64>() / count;
    let deviation = (sorted.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / count).sqrt();
    let quantiles = SHARES.map(|share| quantile(&sorted, share));
    let score = truth.map(|truth| {
        let truth = f64::from(truth);
        let away = sorted.iter().map(|v| (v - truth).abs()).sum::<f64>() / count;
        // Half the mean distance of two values, by their ranks.
        let ranks = (1..).map(|rank| 2.0 * f64::from(rank) - count - 1.0);
        let apart = sorted.iter().zip(ranks).map(|(v, rank)| rank * v).sum::<f64>() / (count * count);
        let within = |low: usize, high: usize| (quantiles[low]..=quantiles[high]).contains(&truth);
        Score { truth, crps: away - apart, inside: [within(1, 3), within(0, 4)] }
    });
    Column { mean, deviation, quantiles, score }
}

/// A quantile of sorted values, between two of them where it falls there.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, part) = (place as usize, place.fract());
    sorted[low] + part * (sorted[(low + 1).min(sorted.len() - 1)] - sorted[low])
}

/// At most so many rows, spread over all of them: resampled particles lie in the order of what they came from.
pub(crate) fn some_rows(states: &[f32], n: usize, most: usize) -> Vec<f32> {
    let rows = states.len() / n;
    let taken = rows.min(most);
    (0..taken).map(|i| i * rows / taken).flat_map(|row| &states[row * n..][..n]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_normal_ensemble_has_the_moments_and_the_score_of_its_distribution() {
        // Evenly spread over a standard normal distribution, beside a column of twice the values plus 1.
        let n = 20_001;
        let mut rng = vec![0.0f32; n];
        crate::rng::fill_normals(4, crate::rng::Stream::Data, 0, 0, &mut rng);
        let states: Vec<f32> = rng.iter().flat_map(|z| [*z, 2.0 * z + 1.0]).collect();
        let [a, b] = columns(&states, 2, Some(&[0.7, 9.0])).unwrap().try_into().unwrap();
        let error = 5.0 / (n as f64).sqrt();
        assert!(a.mean.abs() < error && (a.deviation - 1.0).abs() < error, "{a:?}");
        assert!((b.mean - 1.0).abs() < 2.0 * error && (b.deviation - 2.0).abs() < 2.0 * error, "{b:?}");
        for (q, expected) in a.quantiles.iter().zip([-1.644_85, -0.674_49, 0.0, 0.674_49, 1.644_85]) {
            assert!((q - expected).abs() < 3.0 * error, "{q} {expected}");
        }
        // z (2 F(z) - 1) + 2 f(z) - 1 / sqrt(pi), at 0.7 and at 4 with twice the unit.
        let (near, far) = (a.score.unwrap(), b.score.unwrap());
        assert!((near.crps - 0.421_5).abs() < error, "{near:?}");
        assert!((far.crps - 6.871_9).abs() < 4.0 * error, "{far:?}");
        assert_eq!((near.inside, far.inside), ([false, true], [false, false]));
    }

    #[test]
    fn scores_are_those_of_their_definition() {
        let values = [3.0f32, -1.0, 0.5, 0.5, 7.0];
        let distance = |truth: f64| values.iter().map(|v| (f64::from(*v) - truth).abs()).sum::<f64>() / 5.0;
        let apart = values.iter().map(|v| distance(f64::from(*v))).sum::<f64>() / 5.0;
        for truth in [-5.0, 0.5, 1.0, 100.0] {
            let score = columns(&values, 1, Some(&[truth])).unwrap()[0].score.unwrap();
            assert!((score.crps - (distance(truth.into()) - apart / 2.0)).abs() < 1e-12, "{score:?}");
        }
        assert!(columns(&values, 2, None).is_err() && columns(&[], 1, None).is_err());
    }

    #[test]
    fn some_rows_are_spread_over_all() {
        let states: Vec<f32> = (0..14).map(|i| i as f32).collect();
        assert_eq!(some_rows(&states, 2, 3), [0.0, 1.0, 4.0, 5.0, 8.0, 9.0]);
        assert_eq!(some_rows(&states, 2, 100), states);
    }
}

//! Whether the densities of a model can be trusted: what a mean over rows hides.
//!
//! A flow can give ordinary rows an absurdly low density, and draw samples astronomically far out, while its mean loss,
//! its pictures and its correlations look fine: one row in thousands is enough to spoil whatever is computed from it.
//! So rows are counted, and the worst are named; a Gaussian fitted to the training rows is what every model should be
//! able to beat; and samples are held against where the training rows end.
//!
//! Plain vectors in, a struct out, and [`Density::in_words`] for people.

mod holes;
mod training;
mod words;

use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use holes::holes;
pub(crate) use training::{Gaussian, HeldOut, TrainingRows};

/// Rows so many nats below the Gaussian are counted.
///
/// Of rows that come from the model's own density p, the share that is further than a below any other density g is at
/// most exp(-a), since the mean of g / p is at most 1: one row in 22,000 for 10 nats, whatever the Gaussian.
pub(crate) const BELOW: f64 = 10.0;
/// A row so many nats below the Gaussian has no density of any use.
pub(crate) const BROKEN: f64 = 1000.0;
/// A larger share of rows more than [`BELOW`] is worth a warning: 20 times what chance allows.
pub(crate) const SHARE: f64 = 1e-3;
/// Samples so many times as far out as the training rows are counted.
pub(crate) const BEYOND: f64 = 10.0;
/// Samples so many times as far out as the training rows are no heavy tail.
pub(crate) const ASTRONOMICAL: f64 = 1e6;
/// Worst rows that are named.
const NAMED: usize = 3;

/// The log-densities of some rows. Nats, in the user's units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Density {
    /// Whose they are, for example "held-out rows".
    pub of: String,
    /// Number of rows.
    pub rows: usize,
    /// Rows whose log-density is NaN or infinite; all that follows is of the others.
    pub not_finite: usize,
    /// Mean, median and ends; absent where no row has a number.
    #[serde(flatten)]
    pub middle: Option<Middle>,
    /// The worst rows, worst first; those that are no numbers come before all others.
    pub worst: Vec<Row>,
    /// Where the mean is that of few rows.
    pub carried: Option<Carried>,
    /// Comparison with a Gaussian, where one is known.
    pub gaussian: Option<Below>,
    /// Samples against the training rows, where those are known.
    pub samples: Option<Samples>,
    /// Whether the couplings of the model are affine, whose stretching has a bound that is a setting.
    #[serde(default)]
    pub is_affine: bool,
}

/// Mean, median and ends of some numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Middle {
    /// The mean.
    pub mean: f64,
    /// The median.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The greatest.
    pub greatest: f64,
}

/// A row and its log-density.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Row {
    /// Its number, from 1.
    pub row: usize,
    /// Its log-density; `null` in JSON where it is no finite number.
    #[serde(deserialize_with = "nan_of_null")]
    pub log_prob: f64,
}

/// Few rows that make the mean what it is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Carried {
    /// How many.
    pub rows: usize,
    /// Whether they are the lowest, or the highest.
    pub lowest: bool,
    /// The mean without them.
    pub without: f64,
}

/// Rows against a Gaussian fitted to the training rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Below {
    /// Rows that were compared.
    pub rows: usize,
    /// Those more than [`BELOW`] nats below the Gaussian.
    pub below: usize,
    /// Those more than [`BROKEN`] nats below it.
    pub broken: usize,
    /// The row furthest below: its number, and its log-density less that of the Gaussian.
    pub furthest: Option<Row>,
    /// Median of the log-densities less those of the Gaussian.
    #[serde(deserialize_with = "nan_of_null")]
    pub median: f64,
}

/// Samples against where the training rows end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Samples {
    /// How many were drawn.
    pub drawn: usize,
    /// Those more than [`BEYOND`] times as far out as the training rows, in some column.
    pub beyond: usize,
    /// Those that hold NaN or infinity.
    pub not_finite: usize,
    /// How far out the farthest finite one is; the training rows end at 1.
    pub farthest: f64,
    /// The column in which it is, from 0 in rows [y, x].
    pub column: usize,
    /// Its name.
    pub name: String,
}

impl Density {
    /// Of log-densities; `numbers` are those of the rows, from 1, where they are not counted one by one.
    pub(crate) fn of(of: impl Into<String>, log_prob: &[f32], numbers: Option<&[usize]>) -> Self {
        let number = |i: usize| numbers.map_or(i + 1, |numbers| numbers[i]);
        let mut order: Vec<usize> = (0..log_prob.len()).collect();
        // NaN is worse than anything, and infinity as wrong.
        let rank =
            |i: usize| (log_prob[i].is_finite(), if log_prob[i].is_nan() { f32::NEG_INFINITY } else { log_prob[i] });
        order.sort_by(|&a, &b| rank(a).0.cmp(&rank(b).0).then(rank(a).1.total_cmp(&rank(b).1)));
        let named = order.iter().take(NAMED);
        let worst = named.map(|&i| Row { row: number(i), log_prob: log_prob[i].into() }).collect();
        let sorted: Vec<f64> = order.iter().map(|&i| f64::from(log_prob[i])).filter(|v| v.is_finite()).collect();
        let middle = middle(&sorted);
        Self {
            of: of.into(),
            rows: log_prob.len(),
            not_finite: log_prob.len() - sorted.len(),
            worst,
            carried: middle.and_then(|middle| carried(&sorted, middle)),
            middle,
            gaussian: None,
            samples: None,
            is_affine: false,
        }
    }

    /// Compares them with a Gaussian. `rows` are the rows [y, x], or as many of their first columns as are scored, of
    /// `columns` values; the density is that of the columns from `from` on. The other arguments are those of
    /// [`Density::of`].
    #[must_use]
    pub(crate) fn against(
        self,
        gaussian: &Gaussian<'_>,
        rows: &[f32],
        [columns, from]: [usize; 2],
        log_prob: &[f32],
        numbers: Option<&[usize]>,
    ) -> Self {
        let number = |i: usize| numbers.map_or(i + 1, |numbers| numbers[i]);
        let finite = rows.chunks_exact(columns).zip(log_prob).enumerate().filter(|(_, (_, v))| v.is_finite());
        // What compares with nothing is as far below as can be.
        let at_least = |above: f64| if above.is_nan() { f64::NEG_INFINITY } else { above };
        let above = finite.map(|(i, (row, &v))| (i, at_least(f64::from(v) - gaussian.log_prob(row, from))));
        let mut above: Vec<(usize, f64)> = above.collect();
        above.sort_by(|a, b| a.1.total_cmp(&b.1));
        let furthest = above.first().map(|&(i, log_prob)| Row { row: number(i), log_prob });
        let count = |nats: f64| above.iter().filter(|(_, above)| *above < -nats).count();
        let values: Vec<f64> = above.iter().map(|(_, above)| *above).collect();
        let below = Below {
            rows: above.len(),
            below: count(BELOW),
            broken: count(BROKEN),
            furthest,
            median: middle(&values).map_or(f64::NAN, |middle| middle.median),
        };
        Self { gaussian: Some(below), ..self }
    }
}

impl Samples {
    /// Takes some samples: rows of `columns` values that are the columns from `from` on of the training rows.
    pub(crate) fn add(&mut self, training: &TrainingRows, rows: &[f32], [columns, from]: [usize; 2]) {
        for row in rows.chunks_exact(columns) {
            self.drawn += 1;
            if row.iter().any(|v| !v.is_finite()) {
                self.not_finite += 1;
                continue;
            }
            let reaches = row.iter().enumerate().filter_map(|(j, &v)| Some((from + j, training.reach(from + j, v)?)));
            let Some((column, reach)) = reaches.max_by(|a, b| a.1.total_cmp(&b.1)) else { continue };
            self.beyond += usize::from(reach > BEYOND);
            if reach > self.farthest {
                (self.farthest, self.column) = (reach, column);
            }
        }
    }
}

/// JSON has no word for what is no number.
fn nan_of_null<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or(f64::NAN))
}

/// Of sorted numbers.
fn middle(sorted: &[f64]) -> Option<Middle> {
    let (&least, &greatest) = (sorted.first()?, sorted.last()?);
    let mean = sorted.iter().sum::<f64>() / sorted.len() as f64;
    Some(Middle { mean, median: quantile(sorted, 0.5), least, greatest })
}

/// The value that a share of sorted numbers is below; there is one.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (low, part) = (place as usize, place.fract());
    let high = (low + 1).min(sorted.len() - 1);
    sorted[low] + part * (sorted[high] - sorted[low])
}

/// Whether the mean is that of few rows: further from the median than the middle half of the rows is wide. Then as many
/// rows as it takes, at most a tenth, are left out at that end, until the mean is within half that width.
///
/// Of a normal distribution, or any whose tails are those of |z|^2, mean and median are less than a third of that width
/// apart.
fn carried(sorted: &[f64], middle: Middle) -> Option<Carried> {
    let width = quantile(sorted, 0.75) - quantile(sorted, 0.25);
    let apart = middle.mean - middle.median;
    // Rounding is no distance.
    if sorted.len() < 4 || apart.abs() <= width.max(1e-6 * middle.median.abs()) {
        return None;
    }
    let lowest = apart < 0.0;
    let most = (sorted.len() / 10).max(1);
    let without = |rows: usize| {
        let left = if lowest { &sorted[rows..] } else { &sorted[..sorted.len() - rows] };
        left.iter().sum::<f64>() / left.len() as f64
    };
    let rows = (1..=most).find(|&rows| (without(rows) - middle.median).abs() <= 0.5 * width)?;
    Some(Carried { rows, lowest, without: without(rows) })
}

#[cfg(test)]
mod tests;

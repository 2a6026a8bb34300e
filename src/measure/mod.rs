//! How good a trained model is by the paper's measures: joins a model and its data set with the metrics of
//! [`crate::eval`].
//!
//! | measure | of what |
//! |---|---|
//! | LL | held-out rows, with the noise that the data set says (docs/model.md, Metrics) |
//! | MMD | batches of samples against batches of the data; of shapes given observations, against draws that approximate Bayesian computation accepts |
//! | IoU, H-dist | sampled shapes against the true shape that fits each best |
//! | Corr | correlations of samples against those of the data, with the noise that held-out rows have |
//!
//! A [`Protocol`] says how much is drawn. Everything is a function of the model, the data set's seed and the protocol.

mod metric;
mod shapes;
mod table;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use metric::Metric;
pub(crate) use shapes::held_out;

use crate::config::Config;
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::eval::abc::{PAPER_DRAWS, PAPER_KEEP};
use crate::eval::mmd::{AT_ZERO, Mmd};
use crate::flow::{Flow, ModelFile};
use crate::train::{Dataset, folder, held_out_score};

/// Is told in words what is being done; an error ends the measurement, [`Error::Stopped`] for example.
pub(crate) type Tell<'a> = dyn FnMut(&str) -> Result<()> + 'a;

/// How much is drawn and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Protocol {
    /// Pairs of batches whose discrepancies are averaged; of conditional models, observations. 0: no MMD.
    pub batches: usize,
    /// Rows of such a batch, and draws that are accepted for an observation.
    pub batch_rows: usize,
    /// Sampled shapes to which the best true shape is fitted.
    pub fitted: usize,
    /// Rows of samples, and of data, whose correlations are compared.
    pub correlated: usize,
    /// Draws of the prior that approximate Bayesian computation chooses from.
    pub draws: u64,
}

impl Protocol {
    /// Batches of the paper's size and number, and its pool of draws; 1,000 shapes are fitted.
    ///
    /// The authors' MMD of conditional models is the mean over 1,000 observations, ours over 100. Of 10^6 rows each
    /// correlation is known to 0.001, and so is the least `Corr` that a perfect model could have.
    pub(crate) const PAPER: Self =
        Self { batches: 100, batch_rows: PAPER_KEEP, fitted: 1000, correlated: 1_000_000, draws: PAPER_DRAWS };

    /// Enough to see the course, in seconds.
    pub(crate) const QUICK: Self =
        Self { batches: 5, batch_rows: 1000, fitted: 100, correlated: 20_000, draws: 200_000 };

    /// What is left of it for a table, where there are only so many rows to compare with, and nothing to fit or accept.
    #[must_use]
    pub(crate) fn within(self, rows: usize) -> Self {
        let correlated = self.correlated.min(rows);
        let batch_rows = self.batch_rows.min(correlated).max(1);
        let batches = self.batches.min(correlated / batch_rows);
        Self { batches, batch_rows, correlated, fitted: 0, draws: 0 }
    }

    /// About the mean MMD of samples from the distribution of the data itself, at most: the estimate counts each row's
    /// likeness to itself.
    pub(crate) fn least_mmd(&self) -> f64 {
        2.0 * AT_ZERO / self.batch_rows as f64
    }

    /// About the `Corr` of samples from the distribution of the data itself, at most.
    ///
    /// Of n rows of independent normal columns a correlation has a variance of 1/n; the mean absolute difference of two
    /// such numbers is 2 / sqrt(pi n). Where columns are correlated it is less.
    pub(crate) fn least_corr(&self) -> f64 {
        2.0 / (std::f64::consts::PI * self.correlated as f64).sqrt()
    }

    /// Refuses numbers that leave nothing to measure, or that no memory can hold; `abc` says whether draws are to be
    /// accepted.
    fn check(&self, abc: bool) -> Result<()> {
        // Beyond these, memory and time of any machine end.
        let ranges = [
            ("correlated", self.correlated, 2..=100_000_000),
            ("fitted", self.fitted, 1..=100_000_000),
            ("batch_rows", self.batch_rows, 2..=1_000_000),
            ("batches", self.batches, 0..=1_000_000),
        ];
        match ranges.iter().find(|(_, value, range)| !range.contains(value)) {
            Some((key, value, range)) => {
                let (least, most) = (range.start(), range.end());
                Err(Error::config(*key, format!("is {value}, must be at least {least} and at most {most}")))
            }
            None if self.fitted > self.correlated => {
                let what =
                    format!("is {}, more than `correlated`, {}", self.fitted, counted(self.correlated, "sample"));
                Err(Error::argument("fitted", what))
            }
            None if abc && self.batches * self.batch_rows > MOST_ACCEPTED => {
                let what = format!("is {}, of {} accepted draws each; take fewer", self.batches, self.batch_rows);
                Err(Error::argument("batches", what))
            }
            None if abc && self.draws > MOST_DRAWS => {
                let what = format!("is {}, must be at most {MOST_DRAWS}", self.draws);
                Err(Error::argument("draws", what))
            }
            None if abc && self.batches > 0 && self.draws < self.batch_rows as u64 => {
                let what = format!("is {}, of which {} cannot be accepted; draw more", self.draws, self.batch_rows);
                Err(Error::argument("draws", what))
            }
            None => Ok(()),
        }
    }
}

/// Draws of the prior: days of work.
const MOST_DRAWS: u64 = 100_000_000_000;

/// Accepted draws of all observations together.
const MOST_ACCEPTED: usize = 100_000_000;

/// What was measured. A measure that does not apply to the data set, or has no number, is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scores {
    /// The paper's LL of the held-out rows, in nats per column, without the constant of the normal distribution.
    pub ll: Option<f64>,
    /// Mean log-density of a held-out row in nats, in the units of the data, with the constant.
    pub log_density: Option<f64>,
    /// Squared maximum mean discrepancy, averaged over batches.
    pub mmd: Option<f64>,
    /// Mean intersection over union of sampled shapes with the best-fitting true ones.
    pub iou: Option<f64>,
    /// Mean Hausdorff distance of their contours.
    pub hausdorff: Option<f64>,
    /// Mean absolute difference of the correlations of samples and data.
    pub corr: Option<f64>,
    /// Samples, of those for the correlations and of those given single observations, that are no finite numbers and so
    /// are no part of the measures.
    pub not_finite: usize,
}

/// The rows to measure a model on: those of its training that were held out, and of tables the training rows too.
///
/// # Errors
/// Those of [`Dataset::load`].
pub(crate) fn dataset(config: &Config, model: &ModelFile) -> Result<Dataset> {
    let mut config = config.clone();
    if !is_read(&config) {
        // Simulated rows are made when they are needed, and held-out ones do not depend on how many are trained on.
        config.data.rows = Some(1);
    }
    Dataset::load(&config, Some(model))
}

/// The rows to measure the model of a run folder on, as [`dataset`]; of rows that are read from files, those that the
/// run was trained on.
///
/// # Errors
/// Those of [`dataset`], and [`Error::Format`] if the files hold other rows by now: held-out rows of today may have
/// been trained on.
pub(crate) fn dataset_of_run(run: &Path, config: &Config, model: &ModelFile) -> Result<Dataset> {
    let data = dataset(config, model)?;
    if is_read(config) {
        folder::trained_on(run, &data)?;
    }
    Ok(data)
}

/// The rows that samples of a table are compared with: those held out, or all where none are.
pub(crate) fn rows_of(data: &Dataset) -> usize {
    if data.test.is_empty() { data.train_rows() } else { data.test_rows() }
}

/// Whether rows are read from files, and may change.
pub(crate) fn is_read(config: &Config) -> bool {
    config.data.preset.is_none_or(|preset| preset.uci().is_some())
}

/// Measures a model on the data set of its settings; `data` is that of [`dataset`]. Accepted draws are stored in the
/// folder `store`, and read where they are there already.
///
/// # Errors
/// [`Error::Config`] if the protocol leaves nothing to measure, [`Error::Shape`] if model and data do not fit,
/// [`Error::Io`] and [`Error::Format`] for stored draws, [`Error::DeviceLost`]; and those of `tell`.
pub(crate) fn measure(
    flow: &Flow,
    config: &Config,
    data: &Dataset,
    protocol: &Protocol,
    store: &Path,
    tell: &mut Tell<'_>,
) -> Result<Scores> {
    let shapes = config.data.preset.and_then(|preset| preset.shapes(config.data.outline));
    protocol.check(shapes.is_some() && data.cond_dim > 0)?;
    tell("log-likelihood of held-out rows")?;
    let ll = held_out_score(flow, data, config.train.inn_losses())?.and_then(|score| score.ll);
    let constant = 0.5 * std::f64::consts::TAU.ln();
    let scores = Scores { ll, log_density: ll.map(|ll| data.dim as f64 * (ll - constant)), ..Scores::default() };
    match shapes {
        Some(shapes) => shapes::Subject { flow, shapes, config, protocol }.measure(scores, store, tell),
        None => table::measure(flow, data, config.train.seed, &protocol.within(rows_of(data)), scores, tell),
    }
}

/// Mean squared discrepancy of pairs of batches, samples first, and the number of samples that are not finite. No mean
/// if there is no batch, or one without a finite sample: such a model is not to look better for that.
fn mean_discrepancy(
    batches: usize,
    dim: usize,
    mut batch: impl FnMut(usize) -> Result<(Vec<f32>, Vec<f32>)>,
) -> Result<(Option<f64>, usize)> {
    let (mut sum, mut broken) = (0.0, 0);
    for k in 0..batches {
        let (samples, data) = batch(k)?;
        let bad = not_finite(&samples, dim);
        broken += bad;
        if bad * dim == samples.len() {
            return Ok((None, broken));
        }
        sum += Mmd::of(&samples, &data, dim)?.squared;
    }
    Ok(((batches > 0).then(|| sum / batches as f64), broken))
}

/// Number of rows that hold a NaN or an infinity.
fn not_finite(rows: &[f32], dim: usize) -> usize {
    rows.chunks_exact(dim).filter(|row| row.iter().any(|v| !v.is_finite())).count()
}

#[cfg(test)]
mod tests;

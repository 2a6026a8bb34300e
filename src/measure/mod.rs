//! How good a trained model is by the paper's measures: joins a model and its data set with the metrics of
//! [`crate::eval`].
//!
//! | measure | of what |
//! |---|---|
//! | LL | held-out rows, with the noise that the data set says (spec, section 5) |
//! | MMD | batches of samples against batches of the data; of shapes given observations, against draws that approximate Bayesian computation accepts |
//! | IoU, H-dist | sampled shapes against the true shape that fits each best |
//! | Corr | correlations of samples against those of the data |
//!
//! A [`Protocol`] says how much is drawn. Everything is a function of the model, the data set's seed and the protocol.

mod metric;
mod shapes;
mod table;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use metric::Metric;

use crate::config::Config;
use crate::error::{Error, Result};
use crate::flow::{Flow, ModelFile};
use crate::train::{Dataset, held_out_score};

/// How much is drawn and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Protocol {
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
    /// Batches of the paper's size and number, its pool of draws; as many shapes and rows as make the means certain in
    /// the digits that its tables have.
    pub const PAPER: Self =
        Self { batches: 100, batch_rows: 4000, fitted: 1000, correlated: 1_000_000, draws: 100_000_000 };

    /// Enough to see the course, in seconds.
    pub const QUICK: Self = Self { batches: 5, batch_rows: 1000, fitted: 100, correlated: 20_000, draws: 200_000 };

    /// Refuses numbers that leave nothing to measure.
    fn check(&self) -> Result<()> {
        let least =
            [("batch_rows", self.batch_rows, 2), ("fitted", self.fitted, 1), ("correlated", self.correlated, 2)];
        match least.into_iter().find(|(_, value, least)| value < least) {
            Some((key, value, least)) => Err(Error::config(key, format!("is {value}, must be at least {least}"))),
            None if self.batches > 0 && self.draws < self.batch_rows as u64 => {
                let what = format!("is {}, of which {} cannot be accepted; draw more", self.draws, self.batch_rows);
                Err(Error::config("draws", what))
            }
            None => Ok(()),
        }
    }
}

/// What was measured. A measure that does not apply to the data set, or has no number, is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scores {
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
    /// Samples, of all that were drawn for these measures, that are no finite numbers and so are no part of them.
    pub not_finite: usize,
}

/// The rows to measure a model on: those of its training that were held out, and of tables the training rows too.
///
/// # Errors
/// Those of [`Dataset::load`].
pub fn dataset(config: &Config, model: &ModelFile) -> Result<Dataset> {
    let mut config = config.clone();
    if config.data.preset.is_some_and(|preset| preset.uci().is_none()) {
        // Simulated rows are made when they are needed, and held-out ones do not depend on how many are trained on.
        config.data.rows = Some(1);
    }
    Dataset::load(&config, Some(model))
}

/// Measures a model on the data set of its settings; `data` is that of [`dataset`]. Accepted draws are stored in the folder
/// `store`, and read where they are there already. `tell` hears in words what is being done.
///
/// # Errors
/// [`Error::Config`] where the protocol leaves nothing to measure, [`Error::Shape`] where model and data do not fit,
/// [`Error::Io`] and [`Error::Format`] for stored draws, [`Error::DeviceLost`].
pub fn measure(
    flow: &Flow,
    config: &Config,
    data: &Dataset,
    protocol: &Protocol,
    store: &Path,
    tell: &mut dyn FnMut(&str),
) -> Result<Scores> {
    protocol.check()?;
    tell("log-likelihood of held-out rows");
    let ll = held_out_score(flow, data)?.map(|score| score.ll);
    let constant = 0.5 * std::f64::consts::TAU.ln();
    let scores = Scores { ll, log_density: ll.map(|ll| data.dim as f64 * (ll - constant)), ..Scores::default() };
    match config.data.preset.and_then(|preset| preset.shapes(config.data.outline)) {
        Some(shapes) => {
            shapes::Subject { flow, shapes, data_seed: config.data.seed, seed: config.train.seed, protocol }
                .measure(scores, store, tell)
        }
        None => table::measure(flow, data, config.train.seed, protocol, scores, tell),
    }
}

/// Number of rows that hold a NaN or an infinity.
fn not_finite(rows: &[f32], dim: usize) -> usize {
    rows.chunks_exact(dim).filter(|row| row.iter().any(|v| !v.is_finite())).count()
}

#[cfg(test)]
mod tests;

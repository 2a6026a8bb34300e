//! What a diagnosis leaves: `diagnostics.json`, and whether the model can be trusted in a sentence.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::likeness::Likeness;
use super::{Diagnosis, headline};
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::report::{beside, short};

/// What `diagnostics.json` holds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnostics {
    /// The model, as it was named.
    pub model: String,
    /// SHA-256 of its file. Of an earlier version's diagnosis nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model_sha256: Option<String>,
    /// Rows that it was judged by.
    pub rows: usize,
    /// What these are.
    pub rows_of: String,
    /// SHA-256 of these rows, conditions first, as that of a table. Of an earlier version's diagnosis nothing is known, as
    /// of the two that follow.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rows_sha256: Option<String>,
    /// Their columns beside those of the training, conditions first; none of simulated data, or if the run's `data.json` is
    /// not there.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<Likeness>,
    /// The command line, word by word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    /// Samples that were drawn, of a conditional model for each row.
    pub samples: usize,
    /// Seed of all that was drawn.
    pub seed: u64,
    /// The adjusted p-value below which a test speaks against the model.
    pub level: f64,
    /// The share of the training's observations that are as unusual as the one that was named.
    #[serde(rename = "observations_as_unusual")]
    pub observation: Option<f64>,
    /// The share of the log-scales of these rows that use more than 95 % of their bound; null of couplings without one.
    #[serde(default)]
    pub saturated_log_scales: Option<f64>,
    /// The farthest that one of these rows is from itself after the way to z and back, in deviations of its column; null of a
    /// model without a density.
    #[serde(default)]
    pub round_trip_error: Option<f64>,
    /// Whether the model can be trusted, in a sentence.
    pub verdict: String,
    /// The tests.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// A larger share of saturated log-scales is spoken of.
const MANY_SATURATED: f64 = 0.01;

/// A larger error of the way to z and back is spoken of, in deviations.
const INEXACT: f64 = 1e-3;

impl Diagnostics {
    /// What was found beside the tests, in sentences.
    pub(crate) fn notes(&self) -> Vec<String> {
        let usual = self.observation.map(|share| {
            format!(
                "Of the observations of the training, {:.2} % are as unusual as the one that was named.",
                100.0 * share
            )
        });
        let saturated = self.saturated_log_scales.filter(|&share| share > MANY_SATURATED).map(|share| {
            format!(
                "Of the log-scales of these rows {:.1} % use more than 95 % of their bound: couplings would stretch further than \
                 they can. Raise model.max_log_scale, or take model.coupling=spline.",
                100.0 * share
            )
        });
        // What is no number speaks, too.
        let inexact = self.round_trip_error.filter(|error| *error > INEXACT || error.is_nan()).map(|error| {
            format!(
                "A row comes back from z by {error:.2} deviations of a column elsewhere: 32-bit arithmetic is too coarse for this \
                 model there. `hintflow check` tells more."
            )
        });
        self.unlike().into_iter().chain(usual).chain(saturated).chain(inexact).collect()
    }

    /// Whether a column of the rows is not like that of the training.
    pub(crate) fn judges_by_other_rows(&self) -> bool {
        self.columns.iter().any(|column| column.differs)
    }

    /// That the rows are not like those of the training, if they are not.
    fn unlike(&self) -> Option<String> {
        /// Columns that are told of.
        const TOLD: usize = 3;
        let all: Vec<&Likeness> = self.columns.iter().filter(|column| column.differs).collect();
        let told = |column: &&Likeness| {
            let ([mean, deviation], [mean_of_training, deviation_of_training]) = (column.judged, column.trained);
            format!(
                "{} has mean {} and deviation {}, in the training {} and {} ({:.2} times as wide)",
                column.column,
                beside(mean, deviation),
                short(deviation),
                beside(mean_of_training, deviation_of_training),
                short(deviation_of_training),
                deviation / deviation_of_training
            )
        };
        let words = all.iter().take(TOLD).map(told).collect::<Vec<_>>().join("; ");
        let more = all.len().saturating_sub(TOLD);
        let others = if more > 0 { format!("; and {} more", counted(more, "column")) } else { String::new() };
        (!all.is_empty()).then(|| {
            format!(
                "The rows that judge this model are not like those of its training: {words}{others}. If both should be alike, \
                 look first at how they were made (units?): these tests cannot tell such a difference from a fault of the model. \
                 On rows that the training held out they can: `hintflow diagnose` without a table."
            )
        })
    }
}

/// Fewer rows do not show faults of 0.3 standard deviations for certain.
const FEW: usize = 300;

/// Whether a model can be trusted, in a sentence.
pub(crate) fn verdict(diagnosis: &Diagnosis, level: f64, rows: usize) -> String {
    let rejected = diagnosis.rejected(level);
    if rejected.is_empty() && rows < FEW {
        return format!(
            "nothing speaks against this model (smallest adjusted p-value {:.4}), but {} {} only coarse faults: a shift by {:.1} standard deviations would hardly be seen; name a table of fresh rows",
            diagnosis.p_value,
            counted(rows, "row"),
            if rows == 1 { "shows" } else { "show" },
            4.0 / (rows as f64).sqrt()
        );
    }
    if rejected.is_empty() {
        return format!("nothing speaks against this model (smallest adjusted p-value {:.4})", diagnosis.p_value);
    }
    let speak = against(rejected.len(), diagnosis.tests.len());
    match headline(&rejected) {
        Some(fault) => format!("{fault}: {speak}"),
        None => format!("{speak}, first of all {}: {}", rejected[0].name, rejected[0].says),
    }
}

/// How many of the tests speak against a model.
pub(crate) fn against(rejected: usize, tests: usize) -> String {
    let speak = if rejected == 1 { "speaks" } else { "speak" };
    format!("{rejected} of {} {speak} against this model", counted(tests, "test"))
}

/// SHA-256 of a model file, so that it is seen if a diagnosis is that of another model.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub(crate) fn fingerprint(model: &Path) -> Result<String> {
    let bytes = std::fs::read(model).map_err(|e| Error::io("read", model, e))?;
    Ok(Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect())
}

/// A p-value with as many digits as matter.
pub(crate) fn p_value_text(p: f64) -> String {
    if p < 1e-4 { "< 0.0001".into() } else { format!("{p:.4}") }
}

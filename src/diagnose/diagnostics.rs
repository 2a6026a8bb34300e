//! What a diagnosis leaves: `diagnostics.json`, and whether the model can be trusted in a sentence.

use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Diagnosis;
use crate::counted::counted;
use crate::error::{Error, Result};

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
    /// Whether the model can be trusted, in a sentence.
    pub verdict: String,
    /// The tests.
    #[serde(flatten)]
    pub diagnosis: Diagnosis,
}

/// A larger share of saturated log-scales is spoken of.
const MANY_SATURATED: f64 = 0.01;

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
        usual.into_iter().chain(saturated).collect()
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
    match rejected[..] {
        [] => format!("nothing speaks against this model (smallest adjusted p-value {:.4})", diagnosis.p_value),
        [only] => format!("1 test speaks against this model: {}: {}", only.name, only.says),
        [first, ..] => {
            format!(
                "{} of {} tests speak against this model, most of all {}: {}",
                rejected.len(),
                diagnosis.tests.len(),
                first.name,
                first.says
            )
        }
    }
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

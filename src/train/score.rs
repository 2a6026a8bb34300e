//! How well a model explains the held-out rows of a data set.

use super::dataset::Dataset;
use crate::error::Result;
use crate::flow::{Flow, Losses};

/// Held-out rows scored at a time.
const ROWS: usize = 10_000;

/// Means over held-out rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HeldOutScore {
    /// The loss, in the units of the networks: `|z|^2 / 2 - log |det J|` of everything that the model has a density of.
    pub loss: f64,
    /// Log-density of x, given y where the model is conditional, per column, in the user's units, without the constant
    /// of the normal distribution: the paper's LL (docs/model.md, Metrics). None of an `inn`, which has no density.
    pub ll: Option<f64>,
}

/// Scores the held-out rows of a data set; none if no rows are held out. An `inn` has the losses `inn`.
///
/// # Errors
/// [`crate::Error::DeviceLost`].
pub(crate) fn held_out_score(flow: &Flow, data: &Dataset, inn: Losses) -> Result<Option<HeldOutScore>> {
    if data.test.is_empty() {
        return Ok(None);
    }
    if !flow.spec().kind.has_density() {
        let loss = flow.score_inn(&data.test, inn)? / data.test_rows() as f64;
        return Ok(Some(HeldOutScore { loss, ll: None }));
    }
    let (mut loss, mut ll) = (0.0, 0.0);
    for rows in data.test.chunks(ROWS * data.row_columns()) {
        let scores = flow.score_rows(rows)?;
        loss += scores.loss;
        ll += scores.ll;
    }
    let rows = data.test_rows() as f64;
    Ok(Some(HeldOutScore { loss: loss / rows, ll: Some((ll / rows + data.test_jacobian) / data.dim as f64) }))
}

//! Measures of models of tables: samples against held-out rows, or training rows where none are held out.

use super::{Protocol, Scores, Tell, mean_discrepancy, not_finite};
use crate::data::side_by_side;
use crate::error::Result;
use crate::eval::correlation::Correlation;
use crate::flow::{Flow, Lanes};
use crate::plan::Kind;
use crate::train::Dataset;

/// Adds to `scores` what can be said of any rows: discrepancy and correlations of rows [y, x], where x is sampled given
/// the y of each row. Both are in the units of the networks, in which columns are comparable. The protocol is within
/// the rows that there are.
pub(super) fn measure(
    flow: &Flow,
    data: &Dataset,
    seed: u64,
    protocol: &Protocol,
    scores: Scores,
    tell: &mut Tell<'_>,
) -> Result<Scores> {
    tell("samples of as many rows as are held out")?;
    let columns = data.row_columns();
    let reference = if data.test.is_empty() { &data.train[..] } else { &data.test[..] };
    let rows = protocol.correlated;
    let reference = &reference[..rows * columns];
    let samples = samples(flow, data, reference, rows, seed)?;
    let broken = not_finite(&samples, columns);
    if rows < 2 || rows - broken < 2 {
        return Ok(Scores { not_finite: broken, ..scores });
    }
    let correlation = |rows: &[f32]| Correlation::of(rows, columns);
    // The y of both are the same.
    let corr = correlation(reference)?.mean_abs_difference_from(data.cond_dim, &correlation(&samples)?)?;
    let Protocol { batches, batch_rows: batch, .. } = *protocol;
    let part = |rows: &[f32], k: usize| rows[k * batch * columns..][..batch * columns].to_vec();
    let (mmd, _) = mean_discrepancy(batches, columns, |k| {
        tell(&format!("MMD: batch {} of {batches}", k + 1))?;
        Ok((part(&samples, k), part(reference, k)))
    })?;
    Ok(Scores { mmd, corr, not_finite: broken, ..scores })
}

/// Rows [y, x] of the model in the units of the networks.
fn samples(flow: &Flow, data: &Dataset, reference: &[f32], rows: usize, seed: u64) -> Result<Vec<f32>> {
    let Lanes { y, .. } = flow.split_rows(reference).1;
    let x = match flow.spec().kind {
        Kind::Flow => flow.sample(rows, seed)?,
        Kind::Cinn | Kind::Hint | Kind::Inn => flow.given(&data.y.outer(y.clone()))?.sample(1, seed)?,
    };
    Ok(side_by_side(&y, &flow.units().given(&y).inner(&x)?, rows))
}

//! What a training leaves to judge densities by: facts about its rows, and how the held-out ones fare.

use super::dataset::{Dataset, fingerprint, is_held_out};
use crate::data::side_by_side;
use crate::error::Result;
use crate::eval::density::{Density, HeldOut, TrainingRows, holes};
use crate::flow::density::{Scored, Which, describe, samples_to_draw};
use crate::flow::{Evidence, Flow, Lanes};
use crate::plan::Kind;

/// Samples drawn at the end of a training, at most. A model that sends two samples in 100,000 far away is found out
/// with more chance than not.
pub(crate) const SAMPLES: usize = 50_000;

/// Rows that the Gaussian is fitted to, at most.
const FITTED: usize = 100_000;
/// Rows brought to the user's units, or scored, at a time.
const ROWS: usize = 10_000;
/// Training rows that are looked at where none are held out.
const TRAINED: usize = 10_000;

/// Observations of the training whose `log p(y)` is remembered as quantiles.
const EVIDENCE_ROWS: usize = 100_000;

/// Leaves in a model what its file is to remember of the training: its rows, and of a `hint` how usual observations are.
/// `noise` is that of [`crate::config::Train::noise`].
///
/// # Errors
/// [`crate::Error::DeviceLost`].
pub(crate) fn remember(flow: &Flow, data: &Dataset, noise: f64) -> Result<TrainingRows> {
    let training = training_rows(data, noise);
    let evidence = match flow.spec().kind {
        Kind::Hint => Evidence::of(&flow.joint()?.log_evidence(&data.some_rows(EVIDENCE_ROWS).y)?),
        Kind::Flow | Kind::Cinn | Kind::Inn => None,
    };
    flow.remember(training.clone(), evidence);
    Ok(training)
}

fn training_rows(data: &Dataset, sigma: f64) -> TrainingRows {
    let columns = data.row_columns();
    let outer = |rows: &[f32]| {
        let Lanes { y, x } = data.outer(lanes(rows, columns, data.cond_dim));
        side_by_side(&y, &x, rows.len() / columns)
    };
    let Lanes { y, x } = data.some_rows(FITTED);
    let some = side_by_side(&y, &x, x.len() / data.dim);
    let scaled = data.x.standardize.is_some() || !data.x.bounds.is_empty();
    let usual = data.x.usual(data.dim);
    let noise = |column: usize, own: f64| match (column.checked_sub(data.cond_dim), scaled) {
        // Conditions get none.
        (None, _) => 0.0,
        // It is of the networks' units; of constant columns the deviation counts as 1.
        (Some(c), true) if own > 0.0 => sigma * data.x.unit(c, usual[c].into()),
        (Some(_), _) => sigma,
    };
    let mut training = TrainingRows::fit(&some, columns, noise);
    training.holes = holes(&y, data.cond_dim);
    training.rows = 0;
    data.train.chunks(ROWS * columns).for_each(|rows| training.add(&outer(rows), columns));
    training.fingerprint.clone_from(&data.fingerprint);
    training.held_out = data.split;
    training
}

/// Describes the held-out rows of a data set, with the test noise that they have; training rows where none are held
/// out. Draws samples, at most `samples`, where something is known of the training rows. Rows of a table have their
/// numbers in it.
///
/// # Errors
/// [`crate::Error::DeviceLost`], and those of sampling.
pub(crate) fn held_out(
    flow: &Flow,
    data: &Dataset,
    training: Option<&TrainingRows>,
    samples: usize,
) -> Result<Density> {
    let columns = data.row_columns();
    let numbers: Option<Vec<usize>> = data.split.map(|split| numbers(split).map(|row| row + 1).collect());
    let place =
        data.file.as_ref().filter(|_| data.split.is_some()).map(|file| format!(" of {file}")).unwrap_or_default();
    let (of, rows) = match data.test.is_empty() {
        false => (format!("held-out rows{place}"), Lanes::default()),
        true => ("training rows (none are held out)".into(), data.some_rows(TRAINED)),
    };
    let rows = if data.test.is_empty() { rows } else { data.outer(lanes(&data.test, columns, data.cond_dim)) };
    let mut log_prob = Vec::with_capacity(rows.x.len() / data.dim);
    for (i, x) in rows.x.chunks(ROWS * data.dim).enumerate() {
        let y = match flow.spec().kind {
            Kind::Flow => &[][..],
            Kind::Cinn | Kind::Hint | Kind::Inn => {
                &rows.y[i * ROWS * data.cond_dim..][..x.len() / data.dim * data.cond_dim]
            }
        };
        log_prob.extend(flow.given(y)?.log_prob(x)?);
    }
    let Lanes { y, x } = &rows;
    let scored = Scored { of: &of, which: Which::Posterior, y, x, log_prob: &log_prob, numbers: numbers.as_deref() };
    describe(flow, training, scored, samples_to_draw(flow, samples))
}

/// The held-out rows of a data set in the user's units.
#[cfg(feature = "cli")]
pub(crate) fn held_out_lanes(data: &Dataset) -> Lanes<Vec<f32>> {
    data.outer(lanes(&data.test, data.row_columns(), data.cond_dim))
}

/// Of a table of rows [y, x] in the user's units, the rows, from 0, that a model was not trained on. None if it is
/// another table than that of the training, as far as anyone knows.
pub(crate) fn not_trained_on(training: &TrainingRows, rows: &[f32]) -> Option<Vec<usize>> {
    let columns = training.columns();
    let all = rows.len() / columns;
    let taken = training.held_out.map_or(training.rows, |split| split.of.into());
    let taken = usize::try_from(taken).ok().filter(|&taken| taken <= all)?;
    let mut is_test = match training.held_out {
        Some(split) => is_held_out(split.of, split.rows as usize, split.seed),
        None => vec![false; taken],
    };
    let (mut train, mut test) = (Vec::new(), Vec::new());
    for (row, &is_test) in rows.chunks_exact(columns).zip(&is_test) {
        if is_test { &mut test } else { &mut train }.extend_from_slice(row);
    }
    if fingerprint(columns, &train, &test) != training.fingerprint {
        return None;
    }
    // Rows after those that `data.rows` took.
    is_test.resize(all, true);
    Some((0..all).filter(|&row| is_test[row]).collect())
}

/// The rows of a table, from 0, that were held out.
fn numbers(split: HeldOut) -> impl Iterator<Item = usize> {
    is_held_out(split.of, split.rows as usize, split.seed)
        .into_iter()
        .enumerate()
        .filter(|(_, test)| *test)
        .map(|(i, _)| i)
}

/// Conditions and columns of rows [y, x].
fn lanes(rows: &[f32], columns: usize, cond_dim: usize) -> Lanes<Vec<f32>> {
    let count = rows.len() / columns;
    let (mut y, mut x) = (Vec::with_capacity(count * cond_dim), Vec::with_capacity(count * (columns - cond_dim)));
    for row in rows.chunks_exact(columns) {
        y.extend_from_slice(&row[..cond_dim]);
        x.extend_from_slice(&row[cond_dim..]);
    }
    Lanes { y, x }
}

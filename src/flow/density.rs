//! What there is to know of the densities that a model gives some rows: joins a model with [`crate::eval::density`].

use super::{Flow, Lanes};
use crate::data::side_by_side;
use crate::error::Result;
use crate::eval::density::{Density, Samples, TrainingRows};
use crate::plan::{Kind, Transform};

/// Densities that a model may know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Which {
    /// `log p(x)`, or `log p(x | y)` of a conditional model.
    Posterior,
    /// `log p(y, x)` of a `hint`.
    Joint,
    /// `log p(y)` of a `hint`.
    Evidence,
}

/// Rows with the log-densities that a model gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scored<'a> {
    /// Whose rows they are, for example "held-out rows".
    pub of: &'a str,
    /// Which density it is.
    pub which: Which,
    /// Conditions, row-major (B, C) or a single row for all; empty for an unconditional flow.
    pub y: &'a [f32],
    /// Columns of x, row-major (B, N); not looked at where the density is that of the conditions.
    pub x: &'a [f32],
    /// Log-densities in nats, (B).
    pub log_prob: &'a [f32],
    /// Numbers of the rows, from 1, where they are not counted one by one.
    pub numbers: Option<&'a [usize]>,
}

/// Samples drawn at a time.
const PIECE: usize = 10_000;
/// Seed of the samples: that of `hintflow sample`, so that what is told of them can be looked at.
const SEED: u64 = 1;

/// How many samples are drawn to see whether some lie far outside of the data, at most `most`: fewer of large models,
/// so that it takes seconds at most.
pub(crate) fn samples_to_draw(flow: &Flow, most: usize) -> usize {
    /// Multiplications that two cores do in a second or so.
    const WORK: usize = 5_000_000_000;
    most.min((WORK / flow.parameters().max(1)).max(2000))
}

/// Describes rows and draws samples to go with them: those of x given the rows' conditions, of both, or of the
/// conditions alone. `training` is what is known of the training rows ([`Flow::training`]); without it there is no
/// comparison and no sample is drawn.
///
/// # Errors
/// Those of sampling, [`crate::Error::Shape`] if the lengths do not agree.
pub(crate) fn describe(
    flow: &Flow,
    training: Option<&TrainingRows>,
    rows: Scored<'_>,
    samples: usize,
) -> Result<Density> {
    let Scored { of, which, log_prob, numbers, .. } = rows;
    let is_affine = flow.spec().coupling == Transform::Affine;
    let density = Density { is_affine, ..Density::of(of, log_prob, numbers) };
    let Some(training) = training else { return Ok(density) };
    let (c, n) = (flow.spec().cond_dim as usize, flow.spec().dim as usize);
    let count = log_prob.len();
    let y = if c > 0 && rows.y.len() == c { rows.y.repeat(count) } else { rows.y.to_vec() };
    let density = match training.gaussian() {
        Some(gaussian) => {
            let (values, columns, from) = match which {
                Which::Posterior => (side_by_side(&y, rows.x, count), c + n, c),
                Which::Joint => (side_by_side(&y, rows.x, count), c + n, 0),
                Which::Evidence => (y, c, 0),
            };
            // The Gaussian is one of packed values.
            let scales: f64 = (from..from + columns).map(|j| ln_scale(flow, j)).sum();
            let log_prob: Vec<f32> = log_prob.iter().map(|&v| (f64::from(v) + scales) as f32).collect();
            density.against(&gaussian, &values, [columns, from], &log_prob, numbers)
        }
        None => density,
    };
    let samples = if samples == 0 { None } else { Some(draw(flow, training, which, rows.y, samples)?) };
    Ok(Density { samples, ..density })
}

/// Logarithm of the scale of column `j` of rows [y, x].
fn ln_scale(flow: &Flow, j: usize) -> f64 {
    let c = flow.spec().cond_dim as usize;
    if j < c { flow.units_of_conditions().packing(j).ln_scale() } else { flow.units().packing(j - c).ln_scale() }
}

/// Draws samples, a piece at a time, and holds them against the training rows.
fn draw(flow: &Flow, training: &TrainingRows, which: Which, y: &[f32], count: usize) -> Result<Samples> {
    let (c, n) = (flow.spec().cond_dim as usize, flow.spec().dim as usize);
    let mut samples = Samples::default();
    let mut pieces = |draw: &mut dyn FnMut(usize, usize) -> Result<Vec<f32>>, columns, from| -> Result<()> {
        for first in (0..count).step_by(PIECE) {
            samples.add(training, &draw(first, PIECE.min(count - first))?, [columns, from]);
        }
        Ok(())
    };
    match (which, flow.spec().kind) {
        (Which::Posterior, Kind::Flow) => {
            pieces(&mut |first, rows| flow.sample_from(rows, SEED, first as u64), n, 0)?;
        }
        (Which::Posterior, _) => {
            // Observations spread over all of them, as tables may be sorted.
            let apart = (y.len() / c).div_ceil(count).max(1);
            let seen: Vec<f32> = y.chunks_exact(c).step_by(apart).flatten().copied().collect();
            let each = count.div_ceil((seen.len() / c).max(1));
            let given = flow.given(&seen)?;
            pieces(&mut |first, rows| given.sample_rows(each, SEED, first, rows), n, c)?;
        }
        (Which::Joint, _) => pieces(
            &mut |first, rows| {
                let Lanes { y, x } = flow.joint()?.sample_from(rows, SEED, first as u64)?;
                Ok(side_by_side(&y, &x, rows))
            },
            c + n,
            0,
        )?,
        (Which::Evidence, _) => {
            pieces(&mut |first, rows| Ok(flow.joint()?.sample_from(rows, SEED, first as u64)?.y), c, 0)?;
        }
    }
    samples.name = match samples.column.checked_sub(c) {
        Some(column) => flow.units().name(column),
        None => flow.units_of_conditions().name(samples.column),
    };
    Ok(samples)
}

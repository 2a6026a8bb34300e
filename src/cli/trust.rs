//! A warning before a posterior is trusted: are these observations like those of the training?
//!
//! The density of y, which a `hint` knows, tells. Of other models the standardisation does, of each condition by
//! itself: it sees what is far out, and not a combination that never was. Of all models it is known where a condition had
//! no values, between others.

use crate::counted::{are, counted};
use crate::data::{Table, Units};
use crate::plan::Kind;
use crate::{Flow, Result};

/// Observations rarer than this share of the training rows are warned of.
const RARE: f64 = 0.001;

/// Conditions further from their mean in the training than so many deviations are warned of.
const FAR: f32 = 6.0;

/// Says how usual the observations are among those that the model was trained on, where the model knows.
pub(super) fn tell(flow: &Flow, observations: &Table) -> Result<()> {
    tell_of_holes(flow, observations);
    let (Kind::Hint, Some(evidence)) = (flow.spec().kind, flow.evidence()) else {
        return tell_of_far(flow, observations);
    };
    let log_prob = flow.joint()?.log_evidence(observations.values())?;
    let shares: Vec<f64> = log_prob.iter().map(|&l| evidence.share_below(l.into())).collect();
    if let [share] = shares[..] {
        tracing::info!(
            "log p(y) of the observation is {:.4}: {} of those of the training are lower",
            log_prob[0],
            percent(share)
        );
    }
    let rare: Vec<String> =
        shares.iter().enumerate().filter(|(_, share)| **share < RARE).map(|(i, _)| (i + 1).to_string()).collect();
    match (rare.len(), observations.rows) {
        (0, _) => {}
        (_, 1) => tracing::warn!(
            "the observation is unlike those of the training (less than {} of them have so low a log p(y)): do not trust its \
             posterior",
            percent(RARE)
        ),
        (n, rows) => tracing::warn!(
            "{n} of {rows} observations {} unlike those of the training (less than {} of them have so low a log p(y)): do not \
             trust their posteriors. Rows {}{}",
            are(n),
            percent(RARE),
            rare[..n.min(10)].join(", "),
            if n > 10 { ", ..." } else { "" }
        ),
    }
    Ok(())
}

/// Warns of observations with a condition where no row of the training has any.
fn tell_of_holes(flow: &Flow, observations: &Table) {
    let Some(training) = flow.training() else { return };
    let of = |row: usize, column: usize| observations.row(row).get(column).copied();
    let hole = |row: usize| training.holes.iter().find(|hole| of(row, hole.column).is_some_and(|v| hole.holds(v)));
    let found: Vec<_> = (0..observations.rows).filter_map(|row| Some((row, hole(row)?))).collect();
    let Some(&(row, hole)) = found.first() else { return };
    let units = flow.units_of_conditions();
    let packing = units.packing(hole.column);
    let [from, to] = hole.between.map(|value| packing.shown(value as f32));
    tracing::warn!(
        "{} of {} observations lie where the training has none: do not trust their posteriors. Row {}: `{}` is {}, and no row \
         of the training has it between {from} and {to}",
        found.len(),
        observations.rows,
        row + 1,
        units.name(hole.column),
        packing.shown(observations.row(row)[hole.column]),
    );
}

/// Warns of observations of which a condition is far from those that the model was trained with.
fn tell_of_far(flow: &Flow, observations: &Table) -> Result<()> {
    // Drawn in, what is far out would not look it.
    let units = Units { squash: None, ..flow.units_of_conditions().clone() };
    let Some(standardize) = &units.standardize else { return Ok(()) };
    let (rows, c) = (observations.rows, observations.dim());
    let standardized = units.inner(observations.values())?;
    let distance = |row: usize, column: usize| standardized[row * c + column].abs();
    // One that never changed has no deviation; rounding on the way is none.
    let limit = |column| if standardize.constant.contains(&column) { 1e-5 } else { FAR };
    let farthest = |row: usize| {
        let far = (0..c).filter(|&column| distance(row, column) > limit(column));
        far.max_by(|&a, &b| distance(row, a).total_cmp(&distance(row, b)))
    };
    let far: Vec<(usize, usize)> = (0..rows).filter_map(|row| Some((row, farthest(row)?))).collect();
    let Some(&(row, column)) = far.first() else { return Ok(()) };
    let (name, packing) = (units.name(column), units.packing(column));
    let value = packing.shown(observations.row(row)[column]);
    let usual = packing.shown(units.usual(c)[column]);
    let how = match standardize.constant.contains(&column) {
        true => format!("it was always {usual} in the training"),
        false => format!("{:.1} deviations from {usual}, the middle of the training", distance(row, column)),
    };
    tracing::warn!(
        "{} of {} {} far from those of the training: do not trust {}. Row {}: `{name}` is {value}, {how}",
        far.len(),
        counted(rows, "observation"),
        are(far.len()),
        if far.len() == 1 { "its posterior" } else { "their posteriors" },
        row + 1
    );
    Ok(())
}

fn percent(share: f64) -> String {
    format!("{}%", (share * 1e4).round() / 100.0)
}

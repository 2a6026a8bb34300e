//! The checks of an `inn`, which has no density.

use super::super::judged_rows::JudgedRows;
use super::{Checked, Limit, Line, ROUND_TRIP, shape_of};
use crate::Result;
use crate::counted::counted;
use crate::flow::Flow;

/// The checks of some rows.
pub(super) fn lines(flow: &Flow, looked: &JudgedRows) -> Result<Checked> {
    let rows = looked.numbers.len();
    let found = flow.both_ways(&looked.y, &looked.x)?;
    let samples = flow.given(&looked.y)?.sample(1, 1)?;
    let not_finite = samples.iter().filter(|v| !v.is_finite()).count();
    let told = found.told.iter().copied().fold(0.0, |worst: f64, e| if worst < e || e.is_nan() { e } else { worst });
    let line = |what: &str, value, limit| Line { what: what.into(), value, limit };
    let mut lines = vec![
        line(
            &format!("values of samples that are not finite, of {}", counted(rows, "row")),
            not_finite as f64,
            Limit::Error(0.0),
        ),
        line("inverse(forward(x)) - x, to the deviation; the worst", found.round_trip, Limit::Error(ROUND_TRIP)),
        line("y told from x - y, to the deviation; the worst column", told, Limit::None),
    ];
    let mut words = Vec::new();
    shape_of("z", flow.spec().latent as usize, &found.z, &mut lines, &mut words);
    words.push(
        "an inn has no density: whether its samples are those of the posterior, no check of one model tells".into(),
    );
    Ok((lines, words, None))
}

//! The units of a table, from its training rows and what the user said of its columns.

use rayon::prelude::*;

use super::choice::{Choice, ColumnSetting};
use super::rank::Rank;
use super::robust::Robust;
use super::rule::{self, Core};
use super::softplus::Softplus;
use super::transform::Transform;
use super::{Bounds, Standardizer, Units};
use crate::data::columns::quantile::quantile;
use crate::error::Result;

/// Rows whose values are sorted, spread over all of them.
const SAMPLE: usize = 20_000;

/// What is asked of the units of a table.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wishes {
    /// Settings of all columns; empty if there are none.
    pub columns: Vec<ColumnSetting>,
    /// Whether columns without a transform of their own are standardised, or what [`rule`] finds.
    pub standardize: bool,
    /// Whether the rule may find something else than mean and deviation.
    pub choose: bool,
    /// Where what is standardised begins to be drawn in.
    pub squash: Option<f64>,
}

/// A column whose way the rule chose, and that is not the usual one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Chosen {
    /// Column, from 0.
    pub column: usize,
    /// Its transform.
    pub choice: Choice,
    /// Its farthest value.
    pub extreme: Extreme,
    /// Where the values lie that are not far out.
    pub usual: [f32; 2],
}

/// The value of a column that is farthest from its middle.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Extreme {
    /// The value.
    pub value: f32,
    /// The first of the rows that has it, from 0.
    pub row: usize,
    /// How many rows have it.
    pub times: usize,
}

impl Units {
    /// The units of `dim` columns that training rows ask for, beside what is said of the columns, and what was chosen
    /// without being asked for. Bounds that a transform needs and nobody gave are found so that the rows `held_out` are
    /// inside too.
    ///
    /// # Errors
    /// [`crate::Error::Config`] naming a column whose values are outside of its bounds; those of [`Standardizer::fit`].
    pub(crate) fn choose(dim: usize, wishes: &Wishes, rows: &[f32], held_out: &[f32]) -> Result<(Self, Vec<Chosen>)> {
        let setting = |c: usize| wishes.columns.get(c).copied().unwrap_or_default();
        let some = wishes.columns.iter().any(|column| *column != ColumnSetting::default());
        if !(some || wishes.standardize) {
            return Ok((Self { squash: wishes.squash, ..Self::default() }, Vec::new()));
        }
        let plain = Standardizer::fit(rows, dim)?;
        let limits = Limits::of(rows, held_out, dim);
        let apart = (rows.len() / dim).div_ceil(SAMPLE).max(1);
        let sample: Vec<f32> = rows.chunks_exact(dim).step_by(apart).flatten().copied().collect();
        let set: Vec<Bounds> = (0..dim).map(|c| setting(c).bounds()).collect();
        if let Some(outside) = (Self { bounds: set.clone(), ..Self::default() }).outside(rows) {
            return Err(outside.into());
        }
        let ways = (0..dim).into_par_iter().map(|c| {
            let mut sorted: Vec<f64> = sample.iter().skip(c).step_by(dim).map(|&x| x.into()).collect();
            sorted.extend(limits.train[c].map(f64::from));
            sorted.sort_by(f64::total_cmp);
            let choice = match setting(c).transform {
                Some(choice) => choice,
                None if wishes.choose && wishes.standardize => automatic(&set[c], &sorted, plain.scale[c]),
                // As bounds always were.
                None => Choice::Standardize,
            };
            Way::of(choice, set[c], &sorted, limits.all[c])
        });
        let ways: Vec<Way> = ways.collect();
        let mut units = Self {
            bounds: ways.iter().map(|way| way.bounds).collect(),
            transforms: ways.iter().map(|way| way.transform.clone()).collect(),
            ..Self::default()
        }
        .shortened();
        let is_scaled = |c: usize| match ways[c].choice {
            Choice::None | Choice::Robust => false,
            _ => wishes.standardize || setting(c).transform.is_some(),
        };
        if (0..dim).any(is_scaled) {
            let mut standardize = if units.bounds.is_empty() && units.transforms.is_empty() {
                plain
            } else {
                // The rows themselves are mapped and standardised in one go later, as where a training goes on: rounded
                // in between, they would have other bits.
                let mut mapped = rows.to_vec();
                units.given(&[]).apply(&mut mapped)?;
                Standardizer { constant: plain.constant, ..Standardizer::fit(&mapped, dim)? }
            };
            for c in (0..dim).filter(|&c| !is_scaled(c)) {
                (standardize.mean[c], standardize.scale[c]) = (0.0, 1.0);
            }
            units.standardize = Some(standardize);
        }
        units.squash = wishes.squash;
        let chosen = (0..dim).filter(|&c| setting(c).transform.is_none() && ways[c].is_told());
        let chosen: Vec<Chosen> = chosen.map(|c| ways[c].told(c, limits.train[c])).collect();
        Ok((units, count_extremes(chosen, rows, dim)))
    }
}

/// What the rule says of a column with these bounds.
fn automatic(bounds: &Bounds, sorted: &[f64], deviation: f64) -> Choice {
    match (bounds.lower, bounds.upper) {
        (None, None) => rule::unbounded(sorted, deviation),
        (Some(_), Some(_)) => Choice::Logit,
        _ if sorted[0] == sorted[sorted.len() - 1] => Choice::Log,
        _ => rule::bounded(&distances(bounds, sorted)),
    }
}

/// Distances of values from the one bound there is, in order.
fn distances(bounds: &Bounds, sorted: &[f64]) -> Vec<f64> {
    let mut distances: Vec<f64> = sorted.iter().map(|&x| bounds.room(x)).collect();
    distances.sort_by(f64::total_cmp);
    distances
}

/// How a column is brought to its standardisation.
struct Way {
    choice: Choice,
    bounds: Bounds,
    transform: Transform,
    /// Where its values lie that are not far out, and their middle.
    usual: [f64; 2],
    center: f64,
}

impl Way {
    /// That of a transform, for the sample of a column in order; `all` are the least and the greatest value of all rows.
    fn of(choice: Choice, set: Bounds, sorted: &[f64], all: [f32; 2]) -> Self {
        let bounds = match choice {
            Choice::Log | Choice::Softplus if set.is_none() => {
                Bounds { lower: Some(found(sorted, all, -1.0)), upper: None }
            }
            Choice::Logit => Bounds {
                lower: set.lower.or_else(|| Some(found(sorted, all, -1.0))),
                upper: set.upper.or_else(|| Some(found(sorted, all, 1.0))),
            },
            _ => set,
        };
        let mapped: Vec<f64> = sorted.iter().map(|&x| bounds.map(x)).collect();
        let core = Core::of(&mapped);
        let farthest = (mapped[mapped.len() - 1] - core.center).max(core.center - mapped[0]);
        let transform = match choice {
            Choice::None | Choice::Standardize | Choice::Log | Choice::Logit => Transform::Identity,
            Choice::Robust if core.scale > 0.0 => Transform::Robust(Robust::new(core.center, core.scale, farthest)),
            Choice::Asinh => rule::asinh(&core).map(Transform::Asinh).unwrap_or_default(),
            Choice::Softplus => {
                let scale = rule::softplus_scale(&distances(&bounds, sorted));
                Transform::Softplus(Softplus { scale, upper: bounds.lower.is_none() })
            }
            Choice::Rank => Rank::fit(&mapped).map(Transform::Rank).unwrap_or_default(),
            Choice::Robust => Transform::Identity,
        };
        let of_values = Core::of(sorted);
        let ends = [of_values.values[0], of_values.values[of_values.values.len() - 1]];
        // Nothing but the scale makes a column robust: one without is standardised.
        let choice = if choice == Choice::Robust && transform.is_identity() { Choice::Standardize } else { choice };
        Self { choice, bounds, transform, usual: ends, center: quantile(of_values.values, 0.5) }
    }

    fn is_told(&self) -> bool {
        matches!(self.choice, Choice::Robust | Choice::Asinh | Choice::Softplus)
    }

    /// What is told of it, with the limits of its training values.
    fn told(&self, column: usize, [least, greatest]: [f32; 2]) -> Chosen {
        let far = |x: f32| (f64::from(x) - self.center).abs();
        let value = if far(least) > far(greatest) { least } else { greatest };
        let usual = self.usual.map(|x| x as f32);
        Chosen { column, choice: self.choice, extreme: Extreme { value, row: 0, times: 0 }, usual }
    }
}

/// A bound that nobody gave, outside of all values on the side of `sign`: 0 or 1 if they lie near it, else a little
/// beyond them.
fn found(sorted: &[f64], [least, greatest]: [f32; 2], sign: f64) -> f64 {
    let (least, greatest) = (f64::from(least), f64::from(greatest));
    let (end, natural) = if sign < 0.0 { (least, 0.0) } else { (greatest, 1.0) };
    let width = greatest - least;
    if sign * (natural - end) > 0.0 && (natural - end).abs() <= width {
        return natural;
    }
    let median = quantile(sorted, 0.5);
    let beyond = 0.05 * (end - median).abs();
    let bound = end + sign * if beyond > 0.0 { beyond } else { width.max(end.abs()).max(1e-30) };
    // As a 32-bit float it must differ from the value.
    if sign < 0.0 {
        bound.min(f64::from((end as f32).next_down()))
    } else {
        bound.max(f64::from((end as f32).next_up()))
    }
}

/// Least and greatest value of each column.
struct Limits {
    train: Vec<[f32; 2]>,
    /// With the rows that are held out.
    all: Vec<[f32; 2]>,
}

impl Limits {
    fn of(rows: &[f32], held_out: &[f32], dim: usize) -> Self {
        let mut limits = vec![[f32::INFINITY, f32::NEG_INFINITY]; dim];
        let widen = |limits: &mut [[f32; 2]], rows: &[f32]| {
            for row in rows.chunks_exact(dim) {
                for ([least, greatest], &x) in limits.iter_mut().zip(row) {
                    (*least, *greatest) = (least.min(x), greatest.max(x));
                }
            }
        };
        widen(&mut limits, rows);
        let train = limits.clone();
        widen(&mut limits, held_out);
        Self { train, all: limits }
    }
}

/// Fills in where the extremes are.
fn count_extremes(mut chosen: Vec<Chosen>, rows: &[f32], dim: usize) -> Vec<Chosen> {
    if chosen.is_empty() {
        return chosen;
    }
    for (number, row) in rows.chunks_exact(dim).enumerate() {
        for Chosen { column, extreme, .. } in &mut chosen {
            if row[*column] == extreme.value {
                if extreme.times == 0 {
                    extreme.row = number;
                }
                extreme.times += 1;
            }
        }
    }
    chosen
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;

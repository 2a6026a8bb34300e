//! How an outline changes with a single coefficient.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{Label, Page, RED, Rect, SMALL, TEXT, TITLE, fit, save, text_width};
use crate::data::shapes::fourier::Curve;
use crate::error::{Error, Result};

/// What the paper's figure adds to the coefficient from one column to the next.
pub(crate) const PAPER_OFFSET: f64 = 0.1;

/// Width of a cell, and the least height.
const CELL: f64 = 76.0;
const LOWEST: f64 = 34.0;
const TOP: f64 = 62.0;
/// Points of a traced curve.
const POINTS: usize = 240;
/// Room for the names of the coefficients.
const NAMES: f64 = 120.0;

/// Draws what becomes of one shape when a single coefficient goes out of step, into `path`.png and `path`.svg: the
/// appendix's figure on the sensitivity of the Fourier parameterisation.
///
/// `shape` is a row of Fourier coefficients. There is a row of outlines for each of `columns` (counted from 0), and in
/// it the shape with `0, 1, ..., steps` times `offset` added to that coefficient, over the shape itself in red. All
/// outlines have one scale and one origin. `names` is empty or names all columns of `shape`. `Im a_0` is no part of a
/// curve: its rows show no change.
///
/// # Errors
/// [`Error::Shape`] if `shape` is no Fourier vector, a column does not exist or there is none, or names do not fit;
/// [`Error::Config`] if a curve is not finite; [`Error::Io`] if a file cannot be written.
pub(crate) fn sensitivity(
    path: &Path,
    shape: &[f32],
    columns: &[usize],
    offset: f64,
    steps: usize,
    names: &[String],
) -> Result<()> {
    if !names.is_empty() && names.len() != shape.len() {
        return Err(Error::Shape { what: "names of the columns".into(), expected: shape.len(), got: names.len() });
    }
    if let Some(column) = columns.iter().find(|column| **column >= shape.len()) {
        return Err(Error::Shape {
            what: "columns of the shape (more than)".into(),
            expected: *column,
            got: shape.len(),
        });
    }
    if columns.is_empty() {
        return Err(Error::Shape { what: "columns to change (at least)".into(), expected: 1, got: 0 });
    }
    let original = Curve::new(shape)?.trace(POINTS);
    let mut curves: Vec<Vec<Vec<[f64; 2]>>> = Vec::new();
    for &column in columns {
        let changed = |step: usize| {
            let mut row = shape.to_vec();
            row[column] = (f64::from(row[column]) + step as f64 * offset) as f32;
            Ok(Curve::new(&row)?.trace(POINTS))
        };
        curves.push((0..=steps).map(changed).collect::<Result<_>>()?);
    }
    let points = || curves.iter().flatten().flatten();
    if points().flatten().any(|v| !v.is_finite()) {
        return Err(Error::argument("shape", "the outline is not finite; take another row or a smaller offset"));
    }
    let range = |axis: usize| {
        let values = points().map(|p| p[axis]);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let ranges = [range(0), range(1)];
    let middle = ranges.map(|(low, high)| (low + high) / 2.0);
    let [wide, high] = ranges.map(|(low, high)| high - low);
    let scale = 0.9 * CELL / wide.max(high).max(f64::MIN_POSITIVE);
    let height = (high * scale + 0.1 * CELL).max(LOWEST);

    let name = |column: usize| names.get(column).cloned().unwrap_or_else(|| format!("column {}", column + 1));
    let labels: Vec<String> = columns.iter().map(|&column| fit(&name(column), SMALL, NAMES)).collect();
    let left = labels.iter().map(|label| text_width(label, SMALL)).fold(0.0, f64::max) * 1.1 + 20.0;
    let width = left + (steps + 1) as f64 * CELL + 12.0;

    save(path, width.max(280.0), TOP + columns.len() as f64 * height + 10.0, |page| {
        page.text(
            "One coefficient changed (black), the original (red)",
            [left, 20.0],
            Label::new(HPos::Left, VPos::Center).size(TITLE),
        );
        for step in 0..=steps {
            let at = [left + (step as f64 + 0.5) * CELL, TOP - 14.0];
            page.text(&label(step as f64 * offset), at, Label::new(HPos::Center, VPos::Center));
        }
        for (k, (row, label)) in curves.iter().zip(&labels).enumerate() {
            let y = TOP + k as f64 * height;
            page.text(label, [left - 8.0, y + height / 2.0], Label::new(HPos::Right, VPos::Center));
            for (step, curve) in row.iter().enumerate() {
                let cell = Rect::new(left + step as f64 * CELL, y, CELL, height);
                let place = |curve: &[[f64; 2]]| place(curve, cell, middle, scale);
                draw(page, &place(&original), &place(curve), step > 0);
            }
        }
    })
}

fn draw(page: &mut Page<'_>, original: &[[f64; 2]], changed: &[[f64; 2]], both: bool) {
    if both {
        page.line(original, RED.mix(0.5), 1.2);
    }
    page.line(changed, TEXT.to_rgba(), 1.2);
}

/// A closed curve on the page.
fn place(curve: &[[f64; 2]], cell: Rect, middle: [f64; 2], scale: f64) -> Vec<[f64; 2]> {
    let point = |p: &[f64; 2]| {
        let [x, y] = [0, 1].map(|axis| (p[axis] - middle[axis]) * scale);
        [cell.x + cell.w / 2.0 + x, cell.y + cell.h / 2.0 - y]
    };
    curve.iter().chain(curve.first()).map(point).collect()
}

/// `+0.3`, without the digits that multiplying leaves inexact.
fn label(value: f64) -> String {
    let rounded: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    match rounded {
        0.0 => "original".into(),
        v if v > 0.0 => format!("+{v}"),
        v => format!("−{}", -v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_short() {
        let labels = [0.0, 0.1, 3.0 * 0.1, -0.25, 7.0].map(label);
        assert_eq!(labels, ["original", "+0.1", "+0.3", "−0.25", "+7"]);
    }
}

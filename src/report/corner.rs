//! Corner plots: every column, and every pair of columns, of one or several samples.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::contour::Grid;
use super::histogram::{self, density, steps};
use super::page::{BLUE, Label, MUTED, ORANGE, Page, Rect, SMALL, TEXT, TITLE, fit, save};
use super::panel::{Axis, Panel};
use crate::counted::counted;
use crate::error::{Error, Result};

/// Rows that are drawn over others of their kind.
#[derive(Clone, Debug)]
pub(crate) struct CornerSample {
    /// What they are.
    pub name: String,
    /// The rows, row-major.
    pub rows: Vec<f32>,
    /// A weight of each; none if all are equal.
    pub weights: Option<Vec<f32>>,
}

/// Most columns of a corner plot: of more nothing can be seen.
pub(crate) const MOST_COLUMNS: usize = 12;
/// Most samples: colours that can be told apart.
pub(crate) const MOST_SAMPLES: usize = COLORS.len();

/// Colours that stay apart for colour-blind readers (Okabe and Ito).
pub(super) const COLORS: [RGBColor; 6] = [
    BLUE,
    ORANGE,
    RGBColor(0x00, 0x9e, 0x73),
    RGBColor(0xcc, 0x79, 0xa7),
    RGBColor(0x8b, 0x6b, 0x00),
    RGBColor(0x56, 0xb4, 0xe9),
];

/// Shares of the regions that are outlined, and the widths of their lines.
const REGIONS: [(f64, f64); 2] = [(0.5, 1.8), (0.9, 1.0)];
/// Share of the values that may lie beyond each side of a panel, if they are far out.
const CUT: f64 = 0.002;
/// Dots on a whole page: more make the SVG slow to open.
const DOTS: usize = 9000;
/// Names in the legend are cut at this width.
const NAME: f64 = 150.0;

/// Draws `samples` of `dim` columns into `path`.png and `path`.svg: histograms on the diagonal, below it dots and the regions
/// of highest density with 50 % and 90 % of the weight. `truth` is a row to be marked.
///
/// Values that are not finite are left out and counted in the title.
///
/// # Errors
/// [`Error::Shape`] if there is nothing to draw, too much, or sizes do not agree; [`Error::Io`] if a file cannot be written.
pub(crate) fn corner(path: &Path, samples: &[CornerSample], names: &[String], truth: Option<&[f32]>) -> Result<()> {
    let n = names.len();
    check(samples, n, truth)?;
    let tables: Vec<Weighted<'_>> = samples.iter().map(|sample| Weighted::of(sample, n)).collect();
    let axes: Vec<Axis> = (0..n).map(|k| axis(&tables, k, truth.map(|row| f64::from(row[k])))).collect();
    let broken: usize = samples.iter().map(|s| s.rows.iter().filter(|v| !v.is_finite()).count()).sum();

    let (left, gap, below) = (78.0, 12.0, 52.0);
    let cell = match n {
        0..=2 => 210.0,
        3..=6 => 128.0,
        _ => 100.0,
    };
    let lines = samples.len() + 1 + usize::from(truth.is_some());
    let legend = 16.0 + 18.0 * lines as f64;
    // Beside the first panel there is room, if there is a second column.
    let top = if n == 1 { 20.0 + legend } else { 34.0f64.max(34.0 + legend - cell) };
    let width = (left + n as f64 * (cell + gap) + 8.0).max(420.0);
    let dots = DOTS / (n * (n - 1) / 2).max(1) / samples.len();

    save(path, width, top + n as f64 * (cell + gap) - gap + below, |page| {
        key(page, samples, truth.is_some(), [width - 16.0, 20.0]);
        if broken > 0 {
            let note = format!("{} not finite", counted(broken, "value"));
            page.text(&note, [20.0, 20.0], Label::new(HPos::Left, VPos::Center).color(MUTED));
        }
        for row in 0..n {
            for column in 0..=row {
                let at = [left + column as f64 * (cell + gap), top + row as f64 * (cell + gap)];
                let frame = Rect::new(at[0], at[1], cell, cell);
                let panel = if row == column {
                    marginal(page, &tables, row, frame, axes[row])
                } else {
                    let panel = Panel { frame, x: axes[column], y: axes[row] };
                    pair(page, &tables, [column, row], &panel, dots);
                    panel
                };
                if let Some(truth) = truth {
                    mark(page, &panel, truth[column].into(), (row != column).then(|| truth[row].into()));
                }
                panel.edges(page);
                panel.x_ticks(page, 3, gap, row == n - 1);
                if row == n - 1 {
                    let at = [frame.x + cell / 2.0, frame.bottom() + 28.0];
                    page.text(&fit(&names[column], SMALL, cell), at, Label::new(HPos::Center, VPos::Top));
                }
                if column == 0 && row > 0 {
                    panel.y_ticks(page, 3, false);
                    let label = Label::new(HPos::Center, VPos::Center).upright();
                    page.text(&fit(&names[row], SMALL, cell), [20.0, frame.y + cell / 2.0], label);
                }
            }
        }
    })
}

fn check(samples: &[CornerSample], dim: usize, truth: Option<&[f32]>) -> Result<()> {
    let wrong = |what: &str, expected, got| Err(Error::Shape { what: what.into(), expected, got });
    if !(1..=MOST_COLUMNS).contains(&dim) {
        return wrong("columns of a corner plot (at least 1, at most)", MOST_COLUMNS, dim);
    }
    if !(1..=MOST_SAMPLES).contains(&samples.len()) {
        return wrong("samples of a corner plot (at least 1, at most)", MOST_SAMPLES, samples.len());
    }
    for CornerSample { rows, weights, .. } in samples {
        if rows.is_empty() || !rows.len().is_multiple_of(dim) {
            return wrong("values of a sample in whole rows", rows.len().div_ceil(dim).max(1) * dim, rows.len());
        }
        if let Some(weights) = weights.as_ref().filter(|weights| weights.len() * dim != rows.len()) {
            return wrong("weights of a sample", rows.len() / dim, weights.len());
        }
    }
    match truth {
        Some(truth) if truth.len() != dim => wrong("true values", dim, truth.len()),
        _ => Ok(()),
    }
}

/// A sample that is drawn.
struct Weighted<'a> {
    rows: &'a [f32],
    weights: Option<&'a [f32]>,
    dim: usize,
    /// As many rows of equal weight tell as much.
    effective: f64,
}

impl<'a> Weighted<'a> {
    fn of(sample: &'a CornerSample, dim: usize) -> Self {
        let weights = sample.weights.as_deref();
        let rows = sample.rows.len() / dim;
        let effective = weights.map_or(rows as f64, |weights| {
            let sum: f64 = weights.iter().map(|&w| f64::from(w)).sum();
            let squares: f64 = weights.iter().map(|&w| f64::from(w).powi(2)).sum();
            if squares > 0.0 { sum * sum / squares } else { 0.0 }
        });
        Self { rows: &sample.rows, weights, dim, effective }
    }

    /// Finite values of a column with their weights.
    fn column(&self, k: usize) -> impl Iterator<Item = (f64, f64)> {
        let values = self.rows.iter().skip(k).step_by(self.dim).map(|&v| f64::from(v));
        values.enumerate().filter(|(_, v)| v.is_finite()).map(|(row, v)| (v, self.weight(row)))
    }

    fn weight(&self, row: usize) -> f64 {
        self.weights.map_or(1.0, |weights| f64::from(weights[row]).max(0.0))
    }
}

/// The range of a column in all samples, the true value inside.
fn axis(tables: &[Weighted<'_>], k: usize, truth: Option<f64>) -> Axis {
    // What has no weight is not seen.
    let seen = |table: &Weighted<'_>| -> Vec<f64> {
        let largest = table.weights.map_or(1.0, |w| w.iter().fold(0.0, |m: f64, &v| m.max(v.into())));
        table.column(k).filter(|(_, weight)| *weight > 1e-4 * largest).map(|(value, _)| value).collect()
    };
    let ranges: Vec<Axis> = tables.iter().filter_map(|t| Axis::robust(seen(t).into_iter(), CUT, CUT)).collect();
    let low = ranges.iter().map(|a| a.low).reduce(f64::min);
    let high = ranges.iter().map(|a| a.high).reduce(f64::max);
    let Some((mut low, mut high)) = low.zip(high) else { return Axis::linear(0.0, 1.0) };
    if let Some(truth) = truth.filter(|truth| truth.abs() < 1e300) {
        let margin = 0.05 * (high - low);
        (low, high) = (low.min(truth - margin), high.max(truth + margin));
    }
    Axis::linear(low, high)
}

fn marginal(page: &mut Page<'_>, tables: &[Weighted<'_>], k: usize, frame: Rect, x: Axis) -> Panel {
    // The same bins for all: else their noise could not be compared.
    let rows = tables.iter().map(|table| table.effective).fold(f64::INFINITY, f64::min);
    let densities: Vec<Vec<f64>> = tables.iter().map(|table| density(table.column(k), x, rows)).collect();
    let panel = histogram::panel(frame, x, &densities);
    for (density, color) in densities.iter().zip(COLORS) {
        steps(page, &panel, density, color, tables.len() == 1);
    }
    panel
}

fn pair(page: &mut Page<'_>, tables: &[Weighted<'_>], [across, up]: [usize; 2], panel: &Panel, dots: usize) {
    let place = |row: &[f32]| [panel.x.place(row[across].into()), panel.y.place(row[up].into())];
    let is_inside = |at: &[f64; 2]| at.iter().all(|v| (0.0..=1.0).contains(v));
    let largest = |table: &Weighted<'_>| {
        table.weights.map_or(1.0, |weights| weights.iter().fold(0.0f64, |most, &w| most.max(w.into())))
    };
    // In turn, so that none hides the others.
    let heaviest: Vec<f64> = tables.iter().map(largest).collect();
    let most = tables.iter().map(|table| table.rows.len() / table.dim).max().unwrap_or(0).min(dots);
    for number in 0..most {
        for ((table, color), heaviest) in tables.iter().zip(COLORS).zip(&heaviest) {
            let Some(row) = table.rows.chunks_exact(table.dim).nth(number) else { continue };
            let strength = if *heaviest > 0.0 { table.weight(number) / heaviest } else { 0.0 };
            if is_inside(&place(row)) && strength > 0.02 {
                page.dot(panel.at(row[across].into(), row[up].into()), 1.2, color.mix(0.25 * strength));
            }
        }
    }
    for (table, color) in tables.iter().zip(COLORS) {
        let rows = table.rows.chunks_exact(table.dim).enumerate();
        let points = rows.map(|(number, row)| {
            let [x, y] = place(row);
            [x, y, table.weight(number)]
        });
        let grid = Grid::of(points, table.effective);
        for (share, width) in REGIONS {
            for line in grid.outlines(grid.level(share)) {
                let to_page =
                    |p: [f64; 2]| [panel.frame.x + p[0] * panel.frame.w, panel.frame.bottom() - p[1] * panel.frame.h];
                page.line(&line.into_iter().map(to_page).collect::<Vec<_>>(), color.to_rgba(), width);
            }
        }
    }
}

/// The true value: a line across, and in a pair of columns a dot, too.
fn mark(page: &mut Page<'_>, panel: &Panel, x: f64, y: Option<f64>) {
    let frame = panel.frame;
    page.line_inside(frame, &[panel.at(x, panel.y.low), panel.at(x, panel.y.high)], TEXT.mix(0.75), 1.0);
    if let Some(y) = y {
        page.line_inside(frame, &[panel.at(panel.x.low, y), panel.at(panel.x.high, y)], TEXT.mix(0.75), 1.0);
        page.dot(panel.at(x, y), 2.6, TEXT.to_rgba());
    }
}

/// What colours and lines mean, below each other, up to a right edge.
fn key(page: &mut Page<'_>, samples: &[CornerSample], has_truth: bool, [right, top]: [f64; 2]) {
    let names = samples.iter().map(|sample| sample.name.as_str()).zip(COLORS);
    let all: Vec<(&str, RGBColor)> = names.chain(has_truth.then_some(("truth", TEXT))).collect();
    let left = right - NAME - 24.0;
    for (number, (name, color)) in all.iter().enumerate() {
        let y = top + 18.0 * number as f64;
        page.line(&[[left, y], [left + 16.0, y]], color.to_rgba(), 2.5);
        page.text(&fit(name, TITLE, NAME), [left + 24.0, y], Label::new(HPos::Left, VPos::Center).size(TITLE));
    }
    let y = top + 18.0 * all.len() as f64;
    let note = Label::new(HPos::Left, VPos::Center).color(MUTED);
    page.text("lines: 50 % and 90 % regions", [left, y], note);
}

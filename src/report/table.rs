//! Distributions of the columns of a table, one by one and in pairs.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::histogram::{self, density, steps};
use super::page::{BLUE, Label, MUTED, ORANGE, Page, Rect, SMALL, TITLE, fit, save, text_width};
use super::panel::{Axis, Panel, legend};
use crate::counted::counted;
use crate::error::{Error, Result};

/// Columns shown by [`marginals`].
const MARGINALS: usize = 20;
/// Columns shown by [`pairs`].
const PAIRS: usize = 6;
/// Share of the values that may lie beyond each side of a panel, if they are far out.
const CUT: f64 = 0.005;
/// Dots of one colour on a whole page of pairs: more make the SVG slow to open.
const DOTS: usize = 6000;

/// Draws a histogram of every column (at most 20), data and samples over each other, into `path`.png and `path`.svg.
///
/// Both tables are row-major with `dim` columns; `names` is empty or has one name per column. Every histogram is a
/// density: its area is the share of the values that lie in the picture. Values that are not finite are left out and
/// counted in the title.
pub(crate) fn marginals(path: &Path, data: &[f32], samples: &[f32], dim: usize, names: &[String]) -> Result<()> {
    let tables = Tables::new(data, samples, dim, names, MARGINALS)?;
    let columns = if tables.shown <= 4 { tables.shown } else { (tables.shown as f64).sqrt().ceil() as usize };
    let columns = columns.min(5);
    let rows = tables.shown.div_ceil(columns);
    let (margin, top, gap, cell, frame) = (20.0, 52.0, 26.0, (178.0, 150.0), (178.0, 92.0));
    // The legend and the title need their room even above a single panel.
    let width = (2.0 * margin + columns as f64 * (cell.0 + gap) - gap).max(420.0);

    save(path, width, top + rows as f64 * cell.1, |page| {
        tables.head(page, "Marginal densities", margin, width - margin);
        for k in 0..tables.shown {
            let at = [margin + (k % columns) as f64 * (cell.0 + gap), top + (k / columns) as f64 * cell.1 + 18.0];
            let frame = Rect::new(at[0], at[1], frame.0, frame.1);
            let name = fit(&tables.name(k), SMALL, frame.w);
            page.text(&name, [frame.x + frame.w / 2.0, frame.y - 9.0], Label::new(HPos::Center, VPos::Center));
            let panel = tables.histogram(page, k, frame);
            panel.x_ticks(page, 4, gap, true);
        }
    })
}

/// Draws the first columns (at most 6) against each other, data and samples in two colours, and a histogram of each
/// on the diagonal, into `path`.png and `path`.svg.
///
/// Both tables are row-major with `dim` columns; `names` is empty or has one name per column. The first rows of each
/// table are drawn, up to 2,000. Values that are not finite are left out and counted in the title.
pub(crate) fn pairs(path: &Path, data: &[f32], samples: &[f32], dim: usize, names: &[String]) -> Result<()> {
    let tables = Tables::new(data, samples, dim, names, PAIRS)?;
    let n = tables.shown;
    let (left, top, gap, below) = (78.0, 52.0, 12.0, 52.0);
    let cell = if n <= 2 { 210.0 } else { 128.0 };
    let width = (left + n as f64 * (cell + gap) + 8.0).max(420.0);
    let dots = (DOTS / (n * (n - 1) / 2).max(1)).min(2000);

    save(path, width, top + n as f64 * (cell + gap) - gap + below, |page| {
        tables.head(page, "Pairs of columns", 20.0, width - 20.0);
        for row in 0..n {
            for column in 0..=row {
                let at = [left + column as f64 * (cell + gap), top + row as f64 * (cell + gap)];
                let frame = Rect::new(at[0], at[1], cell, cell);
                let panel = if row == column {
                    tables.histogram(page, row, frame)
                } else {
                    tables.scatter(page, column, row, frame, dots)
                };
                panel.x_ticks(page, 3, gap, row == n - 1);
                if row == n - 1 {
                    let name = fit(&tables.name(column), SMALL, cell);
                    page.text(
                        &name,
                        [frame.x + cell / 2.0, frame.bottom() + 28.0],
                        Label::new(HPos::Center, VPos::Top),
                    );
                }
                if column == 0 && row > 0 {
                    panel.y_ticks(page, 3, false);
                    let name = fit(&tables.name(row), SMALL, cell);
                    let label = Label::new(HPos::Center, VPos::Center).upright();
                    page.text(&name, [20.0, frame.y + cell / 2.0], label);
                }
            }
        }
    })
}

/// Data and samples, checked.
struct Tables<'a> {
    data: &'a [f32],
    samples: &'a [f32],
    dim: usize,
    names: &'a [String],
    /// Columns that are drawn.
    shown: usize,
    /// Range of each drawn column.
    axes: Vec<Axis>,
}

impl<'a> Tables<'a> {
    fn new(data: &'a [f32], samples: &'a [f32], dim: usize, names: &'a [String], most: usize) -> Result<Self> {
        for (what, table) in [("data", data), ("samples", samples)] {
            if dim == 0 || table.is_empty() || !table.len().is_multiple_of(dim) {
                let expected = table.len().div_ceil(dim.max(1)).max(1) * dim;
                return Err(Error::Shape {
                    what: format!("length of the {what} with {}", counted(dim, "column")),
                    expected,
                    got: table.len(),
                });
            }
        }
        if !names.is_empty() && names.len() != dim {
            return Err(Error::Shape { what: "names of the columns".into(), expected: dim, got: names.len() });
        }
        let shown = dim.min(most);
        let mut tables = Self { data, samples, dim, names, shown, axes: Vec::new() };
        tables.axes = (0..shown)
            .map(|k| {
                // Each table has its say, however few rows it has against the other.
                let ranges = [data, samples].map(|t| Axis::robust(column(t, dim, k), CUT, CUT));
                let low = ranges.iter().flatten().map(|a| a.low).reduce(f64::min);
                let high = ranges.iter().flatten().map(|a| a.high).reduce(f64::max);
                low.zip(high).map_or(Axis::linear(0.0, 1.0), |(low, high)| Axis::linear(low, high))
            })
            .collect();
        Ok(tables)
    }

    fn name(&self, k: usize) -> String {
        self.names.get(k).cloned().unwrap_or_else(|| format!("column {}", k + 1))
    }

    /// Title, remarks and legend in the first lines of the page.
    fn head(&self, page: &mut Page<'_>, title: &str, left: f64, right: f64) {
        let mut notes = Vec::new();
        if self.shown < self.dim {
            notes.push(format!("first {} of {} columns", self.shown, self.dim));
        }
        for (what, table) in [("data", self.data), ("samples", self.samples)] {
            let broken = table.iter().filter(|v| !v.is_finite()).count();
            if broken > 0 {
                notes.push(format!("{} of the {what} not finite", counted(broken, "value")));
            }
        }
        page.text(title, [left, 20.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
        legend(page, right, 20.0, &[("data", BLUE), ("samples", ORANGE)]);
        let start = left + text_width(title, TITLE) * 1.1 + 14.0;
        let note = notes.join(", ");
        // Beside the title if there is room before the legend, else below it.
        let (at, room) = if start + text_width(&note, SMALL) * 1.1 < right - 170.0 {
            ([start, 20.5], right - 170.0 - start)
        } else {
            ([left, 38.0], right - left)
        };
        page.text(&fit(&note, SMALL, room + 1.0), at, Label::new(HPos::Left, VPos::Center).color(MUTED));
    }

    fn histogram(&self, page: &mut Page<'_>, k: usize, frame: Rect) -> Panel {
        let x = self.axes[k];
        // The same bins for both, as many as the smaller table allows: else their noise could not be compared.
        let rows = self.data.len().min(self.samples.len()) / self.dim;
        let densities = [self.data, self.samples]
            .map(|table| density(column(table, self.dim, k).map(|value| (value, 1.0)), x, rows as f64));
        let panel = histogram::panel(frame, x, &densities);
        steps(page, &panel, &densities[0], BLUE, true);
        steps(page, &panel, &densities[1], ORANGE, false);
        panel.edges(page);
        panel
    }

    fn scatter(&self, page: &mut Page<'_>, across: usize, up: usize, frame: Rect, dots: usize) -> Panel {
        let panel = Panel { frame, x: self.axes[across], y: self.axes[up] };
        let points = |table: &'a [f32]| {
            table
                .chunks_exact(self.dim)
                .take(dots)
                .map(move |row| (f64::from(row[across]), f64::from(row[up])))
                .filter(move |(x, y)| [panel.x.place(*x), panel.y.place(*y)].iter().all(|v| (0.0..=1.0).contains(v)))
        };
        let (mut data, mut samples) = (points(self.data), points(self.samples));
        // In turn, so that neither hides the other.
        loop {
            let next = (data.next(), samples.next());
            if next == (None, None) {
                break;
            }
            for (point, color) in [(next.0, BLUE), (next.1, ORANGE)] {
                if let Some((x, y)) = point {
                    page.dot(panel.at(x, y), 1.5, color.mix(0.4));
                }
            }
        }
        panel.edges(page);
        panel
    }
}

fn column(table: &[f32], dim: usize, k: usize) -> impl Iterator<Item = f64> {
    table.iter().skip(k).step_by(dim).map(|v| f64::from(*v)).filter(|v| v.is_finite())
}

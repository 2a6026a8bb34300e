//! Galleries: for each of some models, curves in a row and a map of correlations beside them.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::correlation::diverging;
use super::heat::{self, BAR, color_bar, sequential};
use super::outlines::{GREEN, Outline, Side, draw, usual_extent};
use super::page::{BLUE, GREY, Label, MUTED, Page, RED, Rect, SMALL, TEXT, TITLE, fit, save, text_width};
use super::panel::Axis;
use crate::error::{Error, Result};
use crate::eval::correlation::Correlation;

/// Curves of one model or data set.
#[derive(Clone, Debug)]
pub(crate) struct GalleryRow {
    /// What they are of.
    pub title: String,
    /// The curves; as many are shown as have room, [`ACROSS`] times [`DOWN`].
    pub outlines: Vec<Outline>,
    /// What stands beside them.
    pub map: Option<GalleryMap>,
    /// Names of the map's columns, or none; neighbours with the same name are one block and labelled once.
    pub labels: Vec<String>,
}

/// A map beside the curves.
#[derive(Clone, Debug)]
pub(crate) enum GalleryMap {
    /// Correlations, from -1 to 1.
    Correlation(Correlation),
    /// Absolute differences of correlations, row-major; none if a column is constant. All of a gallery have one
    /// scale, that of the row in the middle; what is beyond it has the darkest colour, and the colour bar ends in a
    /// point.
    Difference {
        /// The differences.
        values: Vec<Option<f64>>,
        /// Their mean over pairs of different columns.
        mean: Option<f64>,
    },
}

impl GalleryMap {
    fn largest_difference(&self) -> Option<f64> {
        match self {
            Self::Correlation(_) => None,
            Self::Difference { values, .. } => values.iter().flatten().copied().reduce(f64::max),
        }
    }
}

/// How large curves are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GalleryScale {
    /// All rows alike, so that they can be compared: at the size of the row in the middle. Curves of another row that
    /// are larger are shrunk.
    Common,
    /// Every row at a size of its own.
    Own,
}

/// What a colour of the curves means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ink {
    /// The curves themselves.
    Curve,
    /// [`Outline::reference`].
    Red,
    /// [`Outline::observed`].
    Blue,
    /// [`Outline::measured`], dashed.
    Green,
}

/// Curves beside each other, and rows of them, for each model.
pub(crate) const ACROSS: usize = 6;
/// See [`ACROSS`].
pub(crate) const DOWN: usize = 2;

const CELL: f64 = 92.0;
const MARGIN: f64 = 14.0;
/// Height of a row's title, and the gap below its curves.
const HEAD: f64 = 30.0;
const GAP: f64 = 14.0;
/// Below a map stand the names of its columns.
const MAP: f64 = DOWN as f64 * CELL - 20.0;

/// Draws the rows below each other into `path`.png and `path`.svg. `legend` explains the colours of the curves.
///
/// Each curve is moved to the middle of its cell; one too large for it is shrunk and grey, with the factor beside it.
/// Curves that are not finite are left out and counted in the row's title.
///
/// # Errors
/// [`Error::Shape`] if there is nothing to draw, [`Error::Io`] if a file cannot be written.
pub(crate) fn gallery(path: &Path, rows: &[GalleryRow], scale: GalleryScale, legend: &[(Ink, &str)]) -> Result<()> {
    let sides: Vec<Side<'_>> = rows.iter().map(|row| Side::new(&row.outlines, ACROSS * DOWN)).collect();
    let mut sorted: Vec<f64> = sides.iter().filter_map(|side| usual_extent(&side.finite)).collect();
    sorted.sort_by(f64::total_cmp);
    let Some(&middle) = sorted.get(sorted.len().saturating_sub(1) / 2) else {
        return Err(Error::Shape { what: "finite outlines to draw (at least)".into(), expected: 1, got: 0 });
    };
    let extent_of = |side: &Side<'_>| match scale {
        GalleryScale::Common => middle,
        GalleryScale::Own => usual_extent(&side.finite).unwrap_or(middle),
    };
    let mut largest: Vec<f64> = rows.iter().filter_map(|row| row.map.as_ref()?.largest_difference()).collect();
    largest.sort_by(f64::total_cmp);
    // As small a range as shows that there is no difference; where one model is far off, the others can still be told
    // apart.
    let range = largest.get(largest.len().saturating_sub(1) / 2).copied().unwrap_or(0.0).max(1e-3);
    let curves = ACROSS as f64 * CELL;
    let has_map = rows.iter().any(|row| row.map.is_some());
    let numbers = if has_map { 24.0 + MAP + 10.0 + BAR + 52.0 } else { 0.0 };
    let step = HEAD + DOWN as f64 * CELL + GAP;
    let words = legend.iter().map(|(_, text)| 52.0 + 1.1 * text_width(text, SMALL)).sum::<f64>();
    let width = (2.0 * MARGIN + curves + numbers).max(2.0 * MARGIN + words);

    save(path, width, 6.0 + rows.len() as f64 * step + 26.0, |page| {
        for (k, (row, side)) in rows.iter().zip(&sides).enumerate() {
            let (top, extent) = (6.0 + k as f64 * step, extent_of(side));
            let centred = Label::new(HPos::Left, VPos::Center).size(TITLE);
            let room = if has_map { curves + 20.0 } else { curves };
            let notes = side.notes(extent);
            let title = if notes.is_empty() { row.title.clone() } else { format!("{} ({notes})", row.title) };
            page.text(&fit(&title, TITLE, room), [MARGIN, top + 15.0], centred);
            for (n, outline) in side.finite.iter().enumerate() {
                let at = [MARGIN + (n % ACROSS) as f64 * CELL, top + HEAD + (n / ACROSS) as f64 * CELL];
                draw(page, outline, Rect::new(at[0], at[1], CELL, CELL), extent);
            }
            if let Some(map) = &row.map {
                let frame = Rect::new(MARGIN + curves + 24.0, top + HEAD, MAP, MAP);
                draw_map(page, map, frame, range);
                draw_labels(page, &row.labels, frame);
            }
        }
        draw_legend(page, legend, 6.0 + rows.len() as f64 * step + 10.0);
    })
}

fn draw_map(page: &mut Page<'_>, map: &GalleryMap, frame: Rect, range: f64) {
    let bar = Rect::new(frame.right() + 10.0, frame.y, BAR, MAP);
    let title = match map {
        GalleryMap::Correlation(correlation) => {
            let dim = correlation.dim;
            page.cells(frame, dim, dim, |x, y| correlation.get(y, x).map_or(GREY, diverging));
            color_bar(page, bar, Axis::linear(-1.0, 1.0), |share| diverging(2.0 * share - 1.0));
            "correlation of the columns".to_owned()
        }
        GalleryMap::Difference { values, mean } => {
            let dim = values.len().isqrt();
            page.cells(frame, dim, dim, |x, y| values[y * dim + x].map_or(GREY, |d| sequential(d / range)));
            color_bar(page, bar, Axis::linear(0.0, range), sequential);
            if map.largest_difference().is_some_and(|largest| largest > range) {
                // A point, as colour bars have where values go on beyond them.
                let corners = [[bar.x, bar.y], [bar.x + bar.w / 2.0, bar.y - 8.0], [bar.right(), bar.y]];
                page.area(&corners, sequential(1.0).to_rgba());
            }
            let mean = mean.map_or(String::new(), |mean| format!(", mean {mean:.4}"));
            format!("|correlation − data's|{mean}")
        }
    };
    heat::frame(page, frame);
    let label = Label::new(HPos::Center, VPos::Center);
    page.text(&title, [frame.x + MAP / 2.0 + 4.0, frame.y - 15.0], label);
}

/// Names of the blocks below a map.
fn draw_labels(page: &mut Page<'_>, labels: &[String], frame: Rect) {
    let cell = frame.w / labels.len().max(1) as f64;
    let mut first = 0;
    for block in labels.chunk_by(|a, b| a == b) {
        let middle = frame.x + (first as f64 + block.len() as f64 / 2.0) * cell;
        let label = Label::new(HPos::Center, VPos::Top).color(MUTED);
        page.text(&block[0], [middle, frame.bottom() + 5.0], label);
        first += block.len();
    }
}

fn draw_legend(page: &mut Page<'_>, legend: &[(Ink, &str)], y: f64) {
    let mut x = MARGIN;
    for (ink, text) in legend {
        let (color, dashed) = match ink {
            Ink::Curve => (TEXT, false),
            Ink::Red => (RED, false),
            Ink::Blue => (BLUE, false),
            Ink::Green => (GREEN, true),
        };
        let pieces = if dashed { vec![[0.0, 5.0], [8.0, 13.0], [16.0, 21.0]] } else { vec![[0.0, 21.0]] };
        for [from, to] in pieces {
            page.line(&[[x + from, y], [x + to, y]], color.to_rgba(), 1.6);
        }
        page.text(text, [x + 27.0, y], Label::new(HPos::Left, VPos::Center));
        x += 27.0 + 25.0 + 1.1 * text_width(text, SMALL);
    }
}

//! Heat maps of correlations.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::heat::{self, BAR, Blocks, MAP, NAMES, TICKS, blend, color_bar, sequential};
use super::page::{GREY, Label, MUTED, Page, Rect, SMALL, TITLE, fit, save, text_width};
use super::panel::Axis;
use crate::counted::counted;
use crate::error::{Error, Result};
use crate::eval::correlation::Correlation;

const TOP: f64 = 40.0;

/// Draws the correlations of `data`, of `samples` and their absolute difference into `path`.png and `path`.svg.
///
/// Both tables are row-major with `dim` columns. `labels` names the columns; neighbours with the same name are one
/// block and labelled once. Without labels the columns are numbered from 1. Constant columns are grey and no part of
/// the mean difference in the title. Rows that are not finite are left out and counted in the title.
pub(crate) fn correlation(path: &Path, data: &[f32], samples: &[f32], dim: usize, labels: &[String]) -> Result<()> {
    correlations(path, [("data", data), ("samples", samples)], dim, labels)
}

/// The same of any two tables by their names.
pub(crate) fn correlations(
    path: &Path,
    [(first, data), (second, samples)]: [(&str, &[f32]); 2],
    dim: usize,
    labels: &[String],
) -> Result<()> {
    check_labels(labels, dim)?;
    let (data, samples) = (Correlation::of(data, dim)?, Correlation::of(samples, dim)?);
    let difference = data.abs_difference(&samples)?;
    let mean = data.mean_abs_difference(&samples)?;
    let largest = difference.iter().flatten().copied().fold(0.0, f64::max);
    // A range of its own, but not so small that rounding shows up as structure.
    let range = largest.max(1e-3);
    let blocks = Blocks::new(dim, labels);
    let constant = difference.iter().any(Option::is_none);

    let names = blocks.widest().min(NAMES) + 14.0;
    let below = if blocks.fit_across() { 22.0 } else { names };
    let (gap, bar) = (28.0, 62.0);
    let scales = [Axis::linear(-1.0, 1.0), Axis::linear(0.0, range)];
    let numbers = scales[1].ticks(TICKS).iter().map(|(_, label)| text_width(label, SMALL)).fold(0.0, f64::max);
    let lefts = [names + 6.0, names + 6.0 + MAP + gap, names + 6.0 + 2.0 * (MAP + gap) + bar];
    // A tenth more for the readers of the SVG whose font is wider.
    let width = lefts[2] + MAP + 12.0 + BAR + 7.0 + 1.1 * numbers + 8.0;
    let note = if constant { 22.0 } else { 0.0 };

    save(path, width, TOP + MAP + below + note + 6.0, |page| {
        let title = |page: &mut Page<'_>, k: usize, text: &str| {
            let label = Label::new(HPos::Center, VPos::Center).size(TITLE);
            page.text(&fit(text, TITLE, MAP + gap - 4.0), [lefts[k] + MAP / 2.0, 20.0], label);
        };
        let frames = lefts.map(|left| Rect::new(left, TOP, MAP, MAP));
        for (k, (name, c)) in [(first, &data), (second, &samples)].into_iter().enumerate() {
            title(page, k, &format!("{name}: {}", rows(c)));
            page.cells(frames[k], dim, dim, |x, y| c.get(y, x).map_or(GREY, diverging));
        }
        title(page, 2, &mean.map_or("difference".into(), |m| format!("|difference|, mean {}", short(m))));
        page.cells(frames[2], dim, dim, |x, y| difference[y * dim + x].map_or(GREY, |d| sequential(d / range)));

        for (k, frame) in frames.iter().enumerate() {
            heat::frame(page, *frame);
            blocks.draw(page, *frame, k == 0);
        }
        let bars = frames.map(|f| Rect::new(f.right() + 12.0, TOP, BAR, MAP));
        color_bar(page, bars[1], scales[0], |share| diverging(2.0 * share - 1.0));
        color_bar(page, bars[2], scales[1], sequential);
        if constant {
            let y = TOP + MAP + below + 10.0;
            page.fill(Rect::new(lefts[0], y - 5.0, 10.0, 10.0), GREY.to_rgba());
            page.text("constant column", [lefts[0] + 15.0, y], Label::new(HPos::Left, VPos::Center).color(MUTED));
        }
    })
}

/// Draws the correlations of one table under a title; the rest is as in [`correlation()`].
pub(crate) fn correlation_map(path: &Path, title: &str, table: &[f32], dim: usize, labels: &[String]) -> Result<()> {
    check_labels(labels, dim)?;
    let correlation = Correlation::of(table, dim)?;
    let blocks = Blocks::new(dim, labels);
    let left = blocks.widest().min(NAMES) + 20.0;
    let below = if blocks.fit_across() { 22.0 } else { left - 6.0 };
    let width = (left + MAP + 12.0 + BAR + 50.0).max(left + 1.1 * text_width(title, TITLE) + 12.0);
    save(path, width, TOP + MAP + below + 6.0, |page| {
        page.text(title, [left, 20.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
        let frame = Rect::new(left, TOP, MAP, MAP);
        page.cells(frame, dim, dim, |x, y| correlation.get(y, x).map_or(GREY, diverging));
        heat::frame(page, frame);
        blocks.draw(page, frame, true);
        let bar = Rect::new(frame.right() + 12.0, TOP, BAR, MAP);
        color_bar(page, bar, Axis::linear(-1.0, 1.0), |share| diverging(2.0 * share - 1.0));
    })
}

fn check_labels(labels: &[String], dim: usize) -> Result<()> {
    match labels.len() {
        0 => Ok(()),
        got if got == dim => Ok(()),
        got => Err(Error::Shape { what: "labels of the columns".into(), expected: dim, got }),
    }
}

/// Names of the blocks of a Fourier vector with coefficients `-order..=order`, for the `labels` of [`correlation()`].
pub(crate) fn fourier_blocks(order: usize) -> Vec<String> {
    ["Re x", "Re y", "Im x", "Im y"]
        .iter()
        .flat_map(|name| std::iter::repeat_n(name.to_string(), 2 * order + 1))
        .collect()
}

fn rows(c: &Correlation) -> String {
    let skipped = if c.skipped == 0 { String::new() } else { format!(" ({} not finite)", c.skipped) };
    counted(c.rows, "row") + &skipped
}

fn short(value: f64) -> String {
    if value != 0.0 && value < 1e-3 { format!("{value:.1e}") } else { format!("{value:.3}") }
}

/// Blue at -1, white at 0, red at 1.
pub(super) fn diverging(r: f64) -> RGBColor {
    let (blue, red) = (RGBColor(0x1f, 0x5a, 0xa6), RGBColor(0xb4, 0x1f, 0x2d));
    blend(WHITE, if r < 0.0 { blue } else { red }, r.abs())
}

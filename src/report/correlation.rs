//! Heat maps of correlations.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{GREY, Label, MUTED, Page, Rect, SMALL, TITLE, fit, save, text_width};
use super::panel::Axis;
use crate::error::{Error, Result};
use crate::eval::correlation::Correlation;

const MAP: f64 = 250.0;
const TOP: f64 = 40.0;
/// Width of a colour bar, and about how many numbers stand beside it.
const BAR: f64 = 12.0;
const TICKS: usize = 5;
/// Room for the names of the columns.
const NAMES: f64 = 110.0;

/// Draws the correlations of `data`, of `samples` and their absolute difference into `path`.png and `path`.svg.
///
/// Both tables are row-major with `dim` columns. `labels` names the columns; neighbours with the same name are one
/// block and labelled once. Without labels the columns are numbered from 1. Constant columns are grey and no part of
/// the mean difference in the title. Rows that are not finite are left out and counted in the title.
pub fn correlation(path: &Path, data: &[f32], samples: &[f32], dim: usize, labels: &[String]) -> Result<()> {
    if !labels.is_empty() && labels.len() != dim {
        return Err(Error::Shape { what: "labels of the columns".into(), expected: dim, got: labels.len() });
    }
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
        for (k, (name, c)) in [("data", &data), ("samples", &samples)].into_iter().enumerate() {
            title(page, k, &format!("{name}: {}", rows(c)));
            page.cells(frames[k], dim, dim, |x, y| c.get(y, x).map_or(GREY, diverging));
        }
        title(page, 2, &mean.map_or("difference".into(), |m| format!("|difference|, mean {}", short(m))));
        page.cells(frames[2], dim, dim, |x, y| difference[y * dim + x].map_or(GREY, |d| sequential(d / range)));

        for (k, frame) in frames.iter().enumerate() {
            outline(page, *frame);
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

/// Names of the blocks of a Fourier vector with coefficients `-order..=order`, for the `labels` of [`correlation()`].
pub fn fourier_blocks(order: usize) -> Vec<String> {
    ["Re x", "Re y", "Im x", "Im y"]
        .iter()
        .flat_map(|name| std::iter::repeat_n(name.to_string(), 2 * order + 1))
        .collect()
}

fn rows(c: &Correlation) -> String {
    let skipped = if c.skipped == 0 { String::new() } else { format!(" ({} not finite)", c.skipped) };
    format!("{} rows{skipped}", c.rows)
}

fn short(value: f64) -> String {
    if value != 0.0 && value < 1e-3 { format!("{value:.1e}") } else { format!("{value:.3}") }
}

fn blend(from: RGBColor, to: RGBColor, share: f64) -> RGBColor {
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share.clamp(0.0, 1.0)).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Blue at -1, white at 0, red at 1.
fn diverging(r: f64) -> RGBColor {
    let (blue, red) = (RGBColor(0x1f, 0x5a, 0xa6), RGBColor(0xb4, 0x1f, 0x2d));
    blend(WHITE, if r < 0.0 { blue } else { red }, r.abs())
}

/// White at 0, dark violet at 1.
fn sequential(share: f64) -> RGBColor {
    let (middle, dark) = (RGBColor(0xc9, 0x7b, 0x9f), RGBColor(0x3b, 0x0f, 0x5c));
    if share < 0.5 { blend(WHITE, middle, 2.0 * share) } else { blend(middle, dark, 2.0 * share - 1.0) }
}

fn outline(page: &mut Page<'_>, f: Rect) {
    let corners = [[f.x, f.y], [f.right(), f.y], [f.right(), f.bottom()], [f.x, f.bottom()], [f.x, f.y]];
    page.line(&corners, MUTED.to_rgba(), 1.0);
}

fn color_bar(page: &mut Page<'_>, frame: Rect, axis: Axis, color: impl Fn(f64) -> RGBColor) {
    page.cells(frame, 1, 250, |_, row| color(1.0 - (row as f64 + 0.5) / 250.0));
    outline(page, frame);
    for (value, label) in axis.ticks(TICKS) {
        let y = frame.bottom() - axis.place(value) * frame.h;
        page.line(&[[frame.right(), y], [frame.right() + 4.0, y]], MUTED.to_rgba(), 1.0);
        page.text(&label, [frame.right() + 7.0, y], Label::new(HPos::Left, VPos::Center));
    }
}

/// Columns with their names; neighbours of one name are a block.
struct Blocks {
    dim: usize,
    /// Name, first column, number of columns.
    blocks: Vec<(String, usize, usize)>,
    /// Every so many blocks are labelled, where there is no room for all.
    every: usize,
}

impl Blocks {
    fn new(dim: usize, labels: &[String]) -> Self {
        let mut blocks: Vec<(String, usize, usize)> = Vec::new();
        for k in 0..dim {
            let name = labels.get(k).map_or_else(|| (k + 1).to_string(), |l| fit(l, SMALL, NAMES));
            match blocks.last_mut() {
                Some((last, _, length)) if *last == name && !labels.is_empty() => *length += 1,
                _ => blocks.push((name, k, 1)),
            }
        }
        let narrowest = blocks.iter().map(|b| b.2).min().unwrap_or(1) as f64 * MAP / dim as f64;
        let needed = ((SMALL + 1.0) / narrowest).ceil() as usize;
        let every = [1, 2, 5, 10, 20, 50, 100, 200, 500].into_iter().find(|n| *n >= needed).unwrap_or(needed);
        Self { dim, blocks, every }
    }

    /// Where labels are left out, the numbers that remain are the round ones: 5, 10, 15 and not 1, 6, 11.
    fn shown(&self) -> impl Iterator<Item = &(String, usize, usize)> {
        self.blocks.iter().skip(self.every - 1).step_by(self.every)
    }

    fn widest(&self) -> f64 {
        self.shown().map(|b| text_width(&b.0, SMALL)).fold(0.0, f64::max)
    }

    /// Whether the names have room side by side.
    fn fit_across(&self) -> bool {
        let cell = MAP / self.dim as f64;
        self.shown().all(|(name, _, length)| text_width(name, SMALL) + 5.0 <= (*length).max(self.every) as f64 * cell)
    }

    fn draw(&self, page: &mut Page<'_>, frame: Rect, left: bool) {
        let cell = MAP / self.dim as f64;
        let across = self.fit_across();
        let grouped = self.blocks.iter().any(|b| b.2 > 1);
        for (name, first, length) in self.shown() {
            let middle = (*first as f64 + *length as f64 / 2.0) * cell;
            let (x, y) = (frame.x + middle, frame.bottom() + 7.0);
            if across {
                page.text(name, [x, y], Label::new(HPos::Center, VPos::Top));
            } else {
                page.text(name, [x, y], Label::new(HPos::Right, VPos::Center).upright());
            }
            if left {
                page.text(name, [frame.x - 7.0, frame.y + middle], Label::new(HPos::Right, VPos::Center));
            }
        }
        for (_, first, _) in self.blocks.iter().skip(1).filter(|_| grouped) {
            let at = (*first as f64 * cell).round();
            page.line(&[[frame.x, frame.y + at], [frame.right(), frame.y + at]], MUTED.mix(0.6), 0.5);
            page.line(&[[frame.x + at, frame.y], [frame.x + at, frame.bottom()]], MUTED.mix(0.6), 0.5);
        }
    }
}

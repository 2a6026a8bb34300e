//! Heat maps of Jacobians.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::heat::{self, BAR, Blocks, MAP, NAMES, TICKS, color_bar, sequential};
use super::page::{BLUE, GREY, Label, Page, Rect, SMALL, TITLE, fit, save, text_width};
use super::panel::Axis;
use crate::error::{Error, Result};

/// Sizes of the entries of a model's Jacobian.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JacobianMap {
    /// Name of the model.
    pub title: String,
    /// Number of columns of x, with conditions of y and x, and of z.
    pub dim: usize,
    /// How many of them, the first, are conditions y: lines part them from x.
    pub conditions: usize,
    /// Mean of |dz_i/dx_j| at `i * dim + j`, as [`crate::flow::Flow::mean_abs_jacobian`] gives it.
    pub values: Vec<f64>,
}

const TOP: f64 = 40.0;
/// Maps side by side.
const ACROSS: usize = 3;
const GAP: f64 = 28.0;
/// The scale reaches this far below the largest entry; what is smaller has the lightest colour.
const REACH: f64 = 1e-6;
/// Colour of the smallest entry: not so light that it could be taken for a zero.
const LIGHTEST: f64 = 0.14;

/// Draws the Jacobians of some models side by side into `path`.png and `path`.svg, as the paper's figure 1 sketches
/// them: rows are z, columns are x. All have one logarithmic scale of colours. Entries that are exactly zero are white
/// and their share stands in the title; entries that are not finite are grey and no part of the scale.
///
/// `labels` is empty, or names the columns of all; neighbours with the same name are one block and labelled once.
///
/// # Errors
/// [`Error::Shape`] if a map is not square, labels do not fit, or no entry is positive; [`Error::Io`] if a file
/// cannot be written.
pub(crate) fn jacobians(path: &Path, maps: &[JacobianMap], labels: &[String]) -> Result<()> {
    for map in maps {
        let agree = |what: &str, expected: usize, got: usize| match expected == got {
            true => Ok(()),
            false => Err(Error::Shape { what: format!("{what} of `{}`", map.title), expected, got }),
        };
        agree("entries of the Jacobian", map.dim * map.dim, map.values.len())?;
        agree("conditions (at most)", map.conditions.min(map.dim), map.conditions)?;
        if !labels.is_empty() {
            agree("labels of the columns", map.dim, labels.len())?;
        }
    }
    let positive = || maps.iter().flat_map(|map| &map.values).copied().filter(|v| v.is_finite() && *v > 0.0);
    let Some(largest) = positive().reduce(f64::max) else {
        return Err(Error::Shape { what: "positive entries of a Jacobian (at least)".into(), expected: 1, got: 0 });
    };
    let smallest = positive().fold(largest, f64::min).max(largest * REACH);
    let axis = Axis::log(smallest, largest);
    let broken = maps.iter().flat_map(|map| &map.values).any(|v| !v.is_finite());

    let blocks: Vec<Blocks> = maps.iter().map(|map| Blocks::new(map.dim, labels)).collect();
    let names = blocks.iter().map(Blocks::widest).fold(0.0, f64::max).min(NAMES) + 14.0;
    let below = if blocks.iter().all(Blocks::fit_across) { 22.0 } else { names };
    let numbers = axis.ticks(TICKS).iter().map(|(_, label)| text_width(label, SMALL)).fold(0.0, f64::max);
    let (across, down) = (maps.len().min(ACROSS), maps.len().div_ceil(ACROSS));
    // Room for the name of the rows; maps of other sizes have numbers of their own beside them.
    let same = maps.iter().all(|map| map.dim == maps[0].dim);
    let left = names + 22.0;
    let step = [MAP + if same { GAP } else { GAP + names }, TOP + MAP + below + 18.0];
    let bar = left + across as f64 * step[0] - (step[0] - MAP) + 14.0;
    // A tenth more for the readers of the SVG whose font is wider.
    let width = bar + BAR + 7.0 + 1.1 * numbers + 30.0;

    save(path, width, down as f64 * step[1] + 26.0, |page| {
        for (k, (map, blocks)) in maps.iter().zip(&blocks).enumerate() {
            let (column, row) = (k % ACROSS, k / ACROSS);
            let frame = Rect::new(left + column as f64 * step[0], TOP + row as f64 * step[1], MAP, MAP);
            draw(page, map, frame, axis);
            blocks.draw(page, frame, column == 0 || !same);
            let centred = Label::new(HPos::Center, VPos::Center);
            let title = fit(&title(map), TITLE, step[0] - 4.0);
            page.text(&title, [frame.x + MAP / 2.0, frame.y - 20.0], centred.size(TITLE));
            let columns = if map.conditions > 0 { "y, x" } else { "x" };
            page.text(columns, [frame.x + MAP / 2.0, frame.bottom() + below + 6.0], centred);
            if column == 0 {
                page.text("z", [10.0, frame.y + MAP / 2.0], centred);
            }
        }
        let frame = Rect::new(bar, TOP, BAR, MAP);
        color_bar(page, frame, axis, color);
        let label = Label::new(HPos::Center, VPos::Center).upright();
        page.text("mean |dz/dx|", [width - 14.0, TOP + MAP / 2.0], label);
        let mut x = left;
        let entries = [(true, WHITE, "exactly zero"), (broken, GREY, "not finite")];
        for (_, color, name) in entries.into_iter().filter(|(shown, ..)| *shown) {
            let square = Rect::new(x, down as f64 * step[1] + 6.0, 10.0, 10.0);
            page.fill(square, color.to_rgba());
            heat::frame(page, square);
            page.text(name, [x + 16.0, square.y + 5.0], Label::new(HPos::Left, VPos::Center));
            x += 30.0 + 1.1 * text_width(name, SMALL);
        }
    })
}

fn title(map: &JacobianMap) -> String {
    let zeros = map.values.iter().filter(|v| **v == 0.0).count();
    let share = 100.0 * zeros as f64 / map.values.len().max(1) as f64;
    format!("{}: {share:.0} % zero", map.title)
}

fn draw(page: &mut Page<'_>, map: &JacobianMap, frame: Rect, axis: Axis) {
    page.cells(frame, map.dim, map.dim, |x, y| match map.values[y * map.dim + x] {
        v if !v.is_finite() => GREY,
        0.0 => WHITE,
        v => color(axis.place(v)),
    });
    if map.conditions > 0 {
        let part = MAP * map.conditions as f64 / map.dim as f64;
        for line in [
            [[frame.x + part, frame.y], [frame.x + part, frame.bottom()]],
            [[frame.x, frame.y + part], [frame.right(), frame.y + part]],
        ] {
            page.line(&line, BLUE.to_rgba(), 1.0);
        }
    }
    heat::frame(page, frame);
}

fn color(share: f64) -> RGBColor {
    sequential(LIGHTEST + (1.0 - LIGHTEST) * share.clamp(0.0, 1.0))
}

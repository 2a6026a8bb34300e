//! Posteriors of one number at each step of a filter: how they move and contract, by several methods.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{BLUE, GREY, Label, Page, RED, Rect, SMALL, TITLE, save};
use super::panel::{Axis, Panel, legend};
use crate::error::{Error, Result};

/// Posteriors by one method.
#[derive(Clone, Debug)]
pub(crate) struct PosteriorRow {
    pub name: String,
    /// Values of each step.
    pub steps: Vec<Vec<f32>>,
}

const CELL: [f64; 2] = [118.0, 84.0];
const GAP: [f64; 2] = [16.0, 40.0];
const LEFT: f64 = 92.0;
const TOP: f64 = 62.0;
/// Bins of a histogram.
const BINS: usize = 48;

/// Draws a row for each method and a column for each step; behind each the posterior of `reference`, if there is one.
/// `steps` are the numbers of the steps, `truth` the true value at each.
///
/// # Errors
/// [`Error::Argument`] if there is nothing to draw, or a method has other steps.
pub(crate) fn posteriors(
    path: &Path,
    title: &str,
    steps: &[u32],
    rows: &[PosteriorRow],
    reference: Option<&PosteriorRow>,
    truth: &[f64],
) -> Result<()> {
    let is_whole = |row: &PosteriorRow| row.steps.len() == steps.len() && row.steps.iter().all(|s| !s.is_empty());
    if steps.is_empty() || rows.is_empty() || !rows.iter().chain(reference).all(is_whole) {
        return Err(Error::argument("steps", "do not have values of every method"));
    }
    let width = LEFT + steps.len() as f64 * (CELL[0] + GAP[0]) + 12.0;
    let height = TOP + rows.len() as f64 * (CELL[1] + GAP[1]) + 4.0;
    save(path, width, height, |page| {
        page.text(title, [16.0, 18.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
        let mut entries = vec![("posterior", BLUE)];
        let name = reference.map(|reference| reference.name.clone()).unwrap_or_default();
        entries.extend(reference.map(|_| (name.as_str(), GREY)));
        entries.extend((!truth.is_empty()).then_some(("truth", RED)));
        legend(page, width - 16.0, 18.0, &entries);
        for (column, number) in steps.iter().enumerate() {
            let x = LEFT + column as f64 * (CELL[0] + GAP[0]);
            let at = [x + CELL[0] / 2.0, TOP - 14.0];
            page.text(&format!("step {number}"), at, Label::new(HPos::Center, VPos::Center));
            let all = rows.iter().chain(reference).flat_map(|row| &row.steps[column]).map(|v| f64::from(*v));
            let all = all.chain(truth.get(column).copied());
            let Some(axis) = Axis::robust(all, 0.002, 0.002) else { continue };
            let curves: Vec<Vec<f64>> = rows.iter().map(|row| density(&row.steps[column], axis)).collect();
            let behind = reference.map(|reference| density(&reference.steps[column], axis));
            let highest = curves.iter().chain(&behind).flatten().copied().fold(0.0, f64::max);
            for (row, curve) in curves.iter().enumerate() {
                let frame = Rect::new(x, TOP + row as f64 * (CELL[1] + GAP[1]), CELL[0], CELL[1]);
                let panel = Panel { frame, x: axis, y: Axis::linear(0.0, 1.05 * highest) };
                if let Some(behind) = &behind {
                    fill(page, &panel, behind, GREY.mix(0.55));
                }
                let points = curve.iter().enumerate().map(|(bin, height)| (centre(axis, bin), *height));
                fill(page, &panel, curve, BLUE.mix(0.15));
                panel.curve(page, points, BLUE, 1.5);
                if let Some(truth) = truth.get(column) {
                    let ends = [panel.at(*truth, 0.0), panel.at(*truth, 1.05 * highest)];
                    page.line_inside(frame, &ends, RED.to_rgba(), 1.2);
                }
                panel.edges(page);
                panel.x_ticks(page, 3, GAP[0], true);
            }
        }
        for (row, PosteriorRow { name, .. }) in rows.iter().enumerate() {
            let y = TOP + row as f64 * (CELL[1] + GAP[1]) + CELL[1] / 2.0;
            page.text(name, [LEFT - 14.0, y], Label::new(HPos::Right, VPos::Center).size(SMALL + 1.0));
        }
    })
}

fn centre(axis: Axis, bin: usize) -> f64 {
    axis.low + (axis.high - axis.low) * (bin as f64 + 0.5) / BINS as f64
}

/// Heights of a histogram, smoothed a little; their sum times the width of a bin is the share of values inside.
fn density(values: &[f32], axis: Axis) -> Vec<f64> {
    let mut counts = [0.0; BINS];
    for value in values {
        let place = axis.place(f64::from(*value)) * BINS as f64;
        if (0.0..BINS as f64).contains(&place) {
            counts[place as usize] += 1.0;
        }
    }
    let at = |bin: isize| usize::try_from(bin).ok().and_then(|bin| counts.get(bin)).copied().unwrap_or(0.0);
    let unit = values.len() as f64 * (axis.high - axis.low) / BINS as f64;
    let smooth = |bin: isize| (at(bin - 1) + 2.0 * at(bin) + at(bin + 1)) / (4.0 * unit);
    (0..BINS as isize).map(smooth).collect()
}

fn fill(page: &mut Page<'_>, panel: &Panel, heights: &[f64], color: RGBAColor) {
    let ends = [(panel.x.low, 0.0), (panel.x.high, 0.0)].map(|(x, y)| panel.at(x, y));
    let top = heights.iter().enumerate().map(|(bin, height)| panel.at(centre(panel.x, bin), *height));
    let outline: Vec<_> = std::iter::once(ends[0]).chain(top).chain([ends[1]]).collect();
    page.area(&outline, color);
}

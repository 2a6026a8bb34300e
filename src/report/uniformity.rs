//! How numbers that should be uniform are distributed: the share that is smaller, less what it should be, with a band
//! that holds all of it.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{BLUE, GREY, Label, MUTED, Page, RED, Rect, TITLE, fit, save};
use super::panel::{Axis, Panel, legend};
use crate::error::{Error, Result};

/// Numbers from 0 to 1 and what they are.
#[derive(Clone, Debug)]
pub(crate) struct Uniform {
    /// What they are.
    pub name: String,
    /// The numbers, in any order.
    pub numbers: Vec<f64>,
    /// Whether their test speaks against them.
    pub is_rejected: bool,
}

/// Panels side by side: of few so many that a phone can show them, and of many more.
const ACROSS: [usize; 2] = [2, 4];
/// Most of what are few.
const FEW: usize = 8;
/// The width that the title needs.
const NARROWEST: f64 = 480.0;
const SIZE: [f64; 2] = [180.0, 120.0];
const GAP: [f64; 2] = [52.0, 54.0];
/// Places along the axis.
const PLACES: usize = 200;

/// Draws a panel for each, in which a right model is within the band by this chance. `band` gives the smallest and the
/// largest share of numbers that may be at most some value.
///
/// # Errors
/// [`Error::Argument`] if there is nothing to draw.
pub(crate) fn uniformity(
    path: &Path,
    title: &str,
    all: &[Uniform],
    chance: f64,
    band: impl Fn(f64) -> [f64; 2],
) -> Result<()> {
    if all.is_empty() || all.iter().any(|one| one.numbers.is_empty()) {
        return Err(Error::argument("numbers", "has nothing to draw"));
    }
    let across = all.len().min(ACROSS[usize::from(all.len() > FEW)]);
    let down = all.len().div_ceil(across);
    let (width, top) = ((across as f64 * (SIZE[0] + GAP[0]) + 24.0).max(NARROWEST), 52.0);
    let height = top + down as f64 * (SIZE[1] + GAP[1]) + 8.0;
    let bounds: Vec<(f64, [f64; 2])> = (0..=PLACES)
        .map(|place| place as f64 / PLACES as f64)
        .map(|at| (at, band(at).map(|share| share - at)))
        .collect();
    save(path, width, height, |page| {
        page.text(title, [16.0, 16.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
        let within = format!("{:.0} % of right models are within", 100.0 * chance);
        legend(page, width - 16.0, 34.0, &[(within.as_str(), GREY), ("this one", BLUE), ("rejected", RED)]);
        for (number, one) in all.iter().enumerate() {
            let x = GAP[0] + (number % across) as f64 * (SIZE[0] + GAP[0]);
            let y = top + 14.0 + (number / across) as f64 * (SIZE[1] + GAP[1]);
            draw(page, Rect::new(x, y, SIZE[0], SIZE[1]), one, &bounds);
        }
    })
}

fn draw(page: &mut Page<'_>, frame: Rect, one: &Uniform, bounds: &[(f64, [f64; 2])]) {
    let mut sorted = one.numbers.clone();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len() as f64;
    let differences: Vec<(f64, f64)> =
        bounds.iter().map(|(at, _)| (*at, sorted.partition_point(|u| u <= at) as f64 / n - at)).collect();
    let sizes = differences.iter().map(|d| d.1).chain(bounds.iter().flat_map(|b| b.1));
    let largest = 1.08 * sizes.map(f64::abs).filter(|d| d.is_finite()).fold(0.01, f64::max);
    let panel = Panel { frame, x: Axis::linear(0.0, 1.0), y: Axis::linear(-largest, largest) };
    let upper = bounds.iter().map(|(at, b)| panel.at(*at, b[1]));
    let lower = bounds.iter().rev().map(|(at, b)| panel.at(*at, b[0]));
    page.area(&upper.chain(lower).collect::<Vec<_>>(), GREY.mix(0.5));
    panel.y_ticks(page, 3, true);
    page.line(&[panel.at(0.0, 0.0), panel.at(1.0, 0.0)], MUTED.to_rgba(), 1.0);
    panel.curve(page, differences.into_iter(), if one.is_rejected { RED } else { BLUE }, 1.6);
    panel.edges(page);
    panel.x_ticks(page, 5, GAP[0], true);
    let name = fit(&one.name, TITLE, frame.w + GAP[0] / 2.0);
    page.text(&name, [frame.x, frame.y - 10.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
}

//! What a filter says of each column of a state over time: the median, and the bands that hold the middle 50 % and 90 %.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{BLUE, Label, MUTED, Page, RED, Rect, TEXT, TITLE, save};
use super::panel::{Axis, Panel, legend};
use crate::error::{Error, Result};

/// A column of a state over time. Every list has a value for each step, the first for step `first`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Track {
    pub name: String,
    /// 5, 25, 50, 75 and 95 % quantiles.
    pub bands: Vec<[f64; 5]>,
    /// The same of the filter that is right.
    pub reference: Vec<[f64; 5]>,
    /// The truth, from step 1 on; empty if it is not known.
    pub truth: Vec<f64>,
    /// Measurements of this very column, from step 1 on; empty if there are none.
    pub observed: Vec<f64>,
    /// Their standard deviation.
    pub noise: f64,
}

/// Panels in a row.
const ACROSS: usize = 2;
const WIDTH: f64 = 340.0;
const HEIGHT: f64 = 190.0;
const GAP: [f64; 2] = [62.0, 52.0];

/// Draws a panel for each column. The bands begin at step 0, or at step 1 if `first` is 1.
///
/// # Errors
/// [`Error::Argument`] if there is nothing to draw.
pub(crate) fn tracks(path: &Path, first: u32, tracks: &[Track]) -> Result<()> {
    if tracks.is_empty() || tracks.iter().any(|track| track.bands.is_empty()) {
        return Err(Error::argument("tracks", "has no step to draw"));
    }
    let across = tracks.len().min(ACROSS);
    let down = tracks.len().div_ceil(across);
    let (width, top) = (across as f64 * (WIDTH + GAP[0]) + 24.0, 40.0);
    let height = top + down as f64 * (HEIGHT + GAP[1]) + 8.0;
    save(path, width, height, |page| {
        let mut entries = vec![("median, middle 50 % and 90 %", BLUE)];
        entries.extend(tracks.iter().any(|t| !t.reference.is_empty()).then_some(("particle filter", TEXT)));
        entries.extend(tracks.iter().any(|t| !t.truth.is_empty()).then_some(("truth", RED)));
        entries.extend(tracks.iter().any(|t| !t.observed.is_empty()).then_some(("measured (crosses, noise)", MUTED)));
        legend(page, width - 20.0, 16.0, &entries);
        for (number, track) in tracks.iter().enumerate() {
            let (column, row) = ((number % across) as f64, (number / across) as f64);
            let x = GAP[0] + column * (WIDTH + GAP[0]);
            let y = top + 14.0 + row * (HEIGHT + GAP[1]);
            draw(page, Rect::new(x, y, WIDTH, HEIGHT), first, track);
        }
    })
}

fn draw(page: &mut Page<'_>, frame: Rect, first: u32, track: &Track) {
    let last = f64::from(first) + (track.bands.len() - 1) as f64;
    let ends = track.bands.iter().chain(&track.reference).flat_map(|band| [band[0], band[4]]);
    let observed = track.observed.iter().flat_map(|y| [y - track.noise, y + track.noise]);
    let values = ends.chain(track.truth.iter().copied()).chain(observed);
    let y = Axis::robust(values, 0.0, 0.0).unwrap_or(Axis::linear(0.0, 1.0));
    let panel = Panel { frame, x: Axis::linear(f64::from(first) - 0.2, last + 0.3).whole(), y };
    panel.y_ticks(page, 5, true);
    for (at, observed) in (1..).map(f64::from).zip(&track.observed) {
        let [low, high] = [observed - track.noise, observed + track.noise];
        let ends = [panel.at(at, low), panel.at(at, high)];
        page.line_inside(frame, &ends, MUTED.mix(0.45), 5.0);
        let [x, y] = panel.at(at, *observed);
        for d in [[-3.5, -3.5], [-3.5, 3.5]] {
            page.line_inside(frame, &[[x + d[0], y + d[1]], [x - d[0], y - d[1]]], TEXT.to_rgba(), 1.1);
        }
    }
    let place = |step: usize, value: f64| panel.at(f64::from(first) + step as f64, value.clamp(y.low, y.high));
    let is_drawn = |bands: &[[f64; 5]]| bands.iter().flatten().all(|v| v.is_finite());
    if is_drawn(&track.bands) {
        for (low, high, strength) in [(0, 4, 0.16), (1, 3, 0.28)] {
            let upper = track.bands.iter().enumerate().map(|(step, band)| place(step, band[high]));
            let lower = track.bands.iter().enumerate().rev().map(|(step, band)| place(step, band[low]));
            page.area(&upper.chain(lower).collect::<Vec<_>>(), BLUE.mix(strength));
        }
    }
    let steps = |bands: &[[f64; 5]], which: usize| -> Vec<(f64, f64)> {
        let values = bands.iter().enumerate();
        values.map(|(step, band)| (f64::from(first) + step as f64, band[which])).collect()
    };
    panel.curve(page, steps(&track.bands, 2).into_iter(), BLUE, 1.8);
    for which in [0, 2, 4] {
        panel.curve(page, steps(&track.reference, which).into_iter(), TEXT, 0.9);
    }
    panel.curve(page, (1..).map(f64::from).zip(track.truth.iter().copied()), RED, 1.4);
    panel.edges(page);
    panel.x_ticks(page, 6, GAP[0], true);
    page.text(&track.name, [frame.x, frame.y - 12.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
    let below = [frame.x + frame.w / 2.0, frame.bottom() + 24.0];
    page.text("step", below, Label::new(HPos::Center, VPos::Top));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_marked_by_whole_numbers() {
        let place = tempfile::tempdir().unwrap();
        for (first, bands, expected) in
            [(0, 4, &["0", "1", "2", "3"][..]), (0, 1, &["0"]), (1, 1, &["1"]), (1, 2, &["1", "2"])]
        {
            let path = place.path().join("states");
            // Values far from the numbers of the steps.
            let track =
                Track { name: "x".into(), bands: vec![[110.0, 120.0, 130.0, 140.0, 150.0]; bands], ..Track::default() };
            tracks(&path, first, &[track]).unwrap();
            let svg = std::fs::read_to_string(path.with_extension("svg")).unwrap();
            let small = svg.lines().filter(|line| line.parse::<f64>().is_ok_and(|number| number < 100.0));
            assert_eq!(small.collect::<Vec<_>>(), expected, "{bands} from {first}");
        }
    }
}

//! Closed curves: sampled ones beside true ones.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{BLUE, Label, MUTED, Page, RED, Rect, SMALL, TEXT, TITLE, fit, save};
use crate::error::{Error, Result};

/// A closed curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Outline {
    /// Points in order; the last is joined to the first.
    pub points: Vec<[f32; 2]>,
    /// Another closed curve, drawn wide and red behind this one: the polygon that a Fourier curve approximates.
    pub reference: Option<Vec<[f32; 2]>>,
    /// Lines measured at the curve itself, its largest diameter for example; drawn dashed and green.
    pub measured: Vec<Segment>,
    /// Lines that an observation asks for, drawn blue.
    pub observed: Vec<Segment>,
}

/// Both ends of a line.
pub(crate) type Segment = [[f32; 2]; 2];

impl From<Vec<[f32; 2]>> for Outline {
    fn from(points: Vec<[f32; 2]>) -> Self {
        Self { points, ..Self::default() }
    }
}

/// Curves shown on each side.
const SHOWN: usize = 36;
pub(super) const GREEN: RGBColor = RGBColor(0x22, 0x99, 0x44);
/// Length of a dash and of the gap after it.
const DASH: f64 = 3.0;

/// Draws up to 36 outlines of each kind in two grids into `path`.png and `path`.svg; `titles` stand above them.
///
/// All have the same scale, that of the true ones if there are any, and each is moved to the middle of its cell. One
/// too large for its cell is shrunk to fit and drawn in grey with the factor beside it. Outlines with points that are
/// not finite are left out and counted below the title.
pub(crate) fn outlines(path: &Path, sampled: &[Outline], truth: &[Outline], titles: [&str; 2]) -> Result<()> {
    let sides = [Side::new(sampled, SHOWN), Side::new(truth, SHOWN)];
    let scale_by = if sides[1].finite.is_empty() { &sides[0] } else { &sides[1] };
    let Some(extent) = usual_extent(&scale_by.finite) else {
        return Err(Error::Shape { what: "finite outlines to draw (at least)".into(), expected: 1, got: 0 });
    };

    let shown: Vec<(&Side<'_>, &str)> = sides.iter().zip(titles).filter(|(side, _)| side.total > 0).collect();
    let most = shown.iter().map(|(side, _)| side.finite.len()).max().unwrap_or(1).max(1);
    let columns = (most as f64).sqrt().ceil() as usize;
    let rows = most.div_ceil(columns);
    let (margin, gap, top, grid) = (16.0, 32.0, 38.0, 360.0);
    let cell = grid / columns as f64;
    let width = 2.0 * margin + shown.len() as f64 * grid + (shown.len() - 1) as f64 * gap;

    // The titles of both sides stand at one height.
    let middle = if shown.iter().all(|(side, _)| side.notes(extent).is_empty()) { 20.0 } else { 13.0 };
    save(path, width, top + rows as f64 * cell + margin, |page| {
        for (k, (side, title)) in shown.iter().enumerate() {
            let left = margin + k as f64 * (grid + gap);
            let notes = side.notes(extent);
            let label = Label::new(HPos::Center, VPos::Center);
            page.text(&fit(title, TITLE, grid), [left + grid / 2.0, middle], label.size(TITLE));
            if !notes.is_empty() {
                page.text(&fit(&notes, SMALL, grid), [left + grid / 2.0, 29.0], label.color(MUTED));
            }
            for (n, outline) in side.finite.iter().enumerate() {
                let at = [left + (n % columns) as f64 * cell, top + (n / columns) as f64 * cell];
                draw(page, outline, Rect::new(at[0], at[1], cell, cell), extent);
            }
        }
        if shown.len() == 2 {
            let x = margin + grid + gap / 2.0;
            page.line(&[[x, top], [x, top + rows as f64 * cell]], MUTED.mix(0.5), 1.0);
        }
    })
}

/// The extent that outlines are scaled by; none if there is no outline.
pub(super) fn usual_extent(outlines: &[&Outline]) -> Option<f64> {
    let mut extents: Vec<f64> = outlines.iter().map(|o| middle_and_extent(&o.points).1).collect();
    extents.sort_by(f64::total_cmp);
    let last = extents.len().checked_sub(1)?;
    let (usual, largest) = (extents[last * 9 / 10], extents[last]);
    // Of samples without true ones beside them, a single bad one may be huge.
    Some(if largest > 2.0 * usual && usual > 0.0 { usual } else { largest.max(f64::MIN_POSITIVE) })
}

/// Outlines of one kind.
pub(super) struct Side<'a> {
    /// Those that can be drawn, as many as are shown.
    pub(super) finite: Vec<&'a Outline>,
    broken: usize,
    total: usize,
}

impl<'a> Side<'a> {
    pub(super) fn new(all: &'a [Outline], shown: usize) -> Self {
        let drawable = |o: &&Outline| !o.points.is_empty() && o.points.iter().flatten().all(|v| v.is_finite());
        let finite: Vec<_> = all.iter().filter(drawable).collect();
        let broken = all.len() - finite.len();
        Self { finite: finite.into_iter().take(shown).collect(), broken, total: all.len() }
    }

    /// What to know of this side besides its title; nothing if all of it is as it should be.
    pub(super) fn notes(&self, extent: f64) -> String {
        let broken = (self.broken > 0).then(|| format!("{} not finite left out", self.broken));
        let shrunk = self.finite.iter().any(|o| shrink(middle_and_extent(&o.points).1, extent) > 1.0);
        let shrunk = shrunk.then(|| "grey ÷k: shrunk to fit".to_owned());
        broken.into_iter().chain(shrunk).collect::<Vec<_>>().join(", ")
    }
}

/// By how much an outline of extent `own` is made smaller where the others have `extent`.
fn shrink(own: f64, extent: f64) -> f64 {
    // A little beyond the extent there is still room at the edge of the cell.
    if own > 1.1 * extent { own / extent } else { 1.0 }
}

/// Draws an outline in the middle of its cell.
pub(super) fn draw(page: &mut Page<'_>, outline: &Outline, cell: Rect, extent: f64) {
    let (middle, own) = middle_and_extent(&outline.points);
    let shrink = shrink(own, extent);
    let scale = 0.88 * cell.w / 2.0 / extent / shrink;
    let point = |p: &[f32; 2]| {
        let [x, y] = [0, 1].map(|axis| (f64::from(p[axis]) - middle[axis]) * scale);
        [cell.x + cell.w / 2.0 + x, cell.y + cell.h / 2.0 - y]
    };
    let place = |points: &[[f32; 2]]| -> Vec<[f64; 2]> {
        let mut placed: Vec<_> = points.iter().filter(|p| p.iter().all(|v| v.is_finite())).map(point).collect();
        placed.extend(placed.first().copied());
        placed
    };
    let frame = Rect::new(cell.x + 1.0, cell.y + 1.0, cell.w - 2.0, cell.h - 2.0);
    if let Some(reference) = &outline.reference {
        page.line_inside(frame, &place(reference), RED.mix(0.6), 2.0);
    }
    let color = if shrink > 1.0 { MUTED } else { TEXT };
    page.line_inside(frame, &place(&outline.points), color.to_rgba(), 1.2);
    for segment in &outline.observed {
        page.line_inside(frame, &segment.each_ref().map(point), BLUE.to_rgba(), 1.4);
    }
    for segment in &outline.measured {
        for dash in dashes(segment.each_ref().map(point)) {
            page.line_inside(frame, &dash, GREEN.to_rgba(), 1.4);
        }
    }
    if shrink > 1.0 {
        let text = format!("÷{}", factor(shrink));
        let label = Label::new(HPos::Right, VPos::Bottom);
        let at = [cell.x + cell.w - 1.0, cell.y + cell.h - 1.0];
        // Outlines that fill their cells run behind the text.
        for [x, y] in [[-1.0, 0.0], [1.0, 0.0], [0.0, -1.0], [0.0, 1.0]] {
            page.text(&text, [at[0] + x, at[1] + y], label.color(WHITE));
        }
        page.text(&text, at, label.color(MUTED));
    }
}

/// The dashes of a dashed line.
fn dashes([from, to]: [[f64; 2]; 2]) -> Vec<[[f64; 2]; 2]> {
    let length = (to[0] - from[0]).hypot(to[1] - from[1]);
    let at = |along: f64| [0, 1].map(|axis| from[axis] + (to[axis] - from[axis]) * (along / length).min(1.0));
    let count = (length / (2.0 * DASH)).ceil().min(1000.0) as usize;
    (0..count).map(|i| 2.0 * DASH * i as f64).map(|start| [at(start), at(start + DASH)]).collect()
}

/// A shrinking factor in few characters.
fn factor(shrink: f64) -> String {
    match shrink {
        s if s < 9.5 => format!("{s:.1}"),
        s if s < 9999.5 => format!("{s:.0}"),
        s => format!("{s:.0e}"),
    }
}

/// Middle of the surrounding box, and half of its longer side.
fn middle_and_extent(points: &[[f32; 2]]) -> ([f64; 2], f64) {
    let range = |axis: usize| {
        let values = points.iter().map(|p| f64::from(p[axis]));
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let ranges = [range(0), range(1)];
    (
        ranges.map(|(low, high)| (low + high) / 2.0),
        ranges.iter().map(|(low, high)| (high - low) / 2.0).fold(0.0, f64::max),
    )
}

//! A polygon, its vertices, and Fourier curves of several orders through them.

use std::path::Path;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{Label, Page, RED, Rect, TEXT, TITLE, save};
use crate::error::{Error, Result};

const SIDE: f64 = 190.0;
const GAP: f64 = 18.0;
const TOP: f64 = 38.0;

/// Draws a polygon, the points that its Fourier transform sees, and the curve of each order M over the polygon, side by
/// side into `path`.png and `path`.svg: the paper's figure on Fourier shapes.
///
/// # Errors
/// [`Error::Shape`] if the polygon has fewer than three corners, [`Error::NotFinite`] if a point is no finite
/// number, [`Error::Io`] if a file cannot be written.
pub(crate) fn approximations(
    path: &Path,
    polygon: &[[f64; 2]],
    points: &[[f64; 2]],
    curves: &[(usize, Vec<[f64; 2]>)],
) -> Result<()> {
    if polygon.len() < 3 {
        return Err(Error::Shape { what: "corners of the polygon (at least)".into(), expected: 3, got: polygon.len() });
    }
    let all = || polygon.iter().chain(points).chain(curves.iter().flat_map(|(_, curve)| curve));
    if all().flatten().any(|v| !v.is_finite()) {
        return Err(Error::NotFinite { what: "a point of the figure".into() });
    }
    let range = |axis: usize| {
        let values = all().map(|p| p[axis]);
        (values.clone().fold(f64::INFINITY, f64::min), values.fold(f64::NEG_INFINITY, f64::max))
    };
    let ranges = [range(0), range(1)];
    let middle = ranges.map(|(low, high)| (low + high) / 2.0);
    let extent = ranges.iter().map(|(low, high)| high - low).fold(f64::MIN_POSITIVE, f64::max);
    let (panels, across) = (curves.len() + 2, (curves.len() + 2).min(4));
    let (width, step) = (across as f64 * (SIDE + GAP) + GAP, TOP + SIDE);
    save(path, width, panels.div_ceil(across) as f64 * step + GAP, |page| {
        let frame = |k: usize| {
            Rect::new(GAP + (k % across) as f64 * (SIDE + GAP), (k / across) as f64 * step + TOP, SIDE, SIDE)
        };
        let place = |frame: Rect, p: &[f64; 2]| {
            let [x, y] = [0, 1].map(|axis| (p[axis] - middle[axis]) / extent * 0.94 * SIDE);
            [frame.x + SIDE / 2.0 + x, frame.y + SIDE / 2.0 - y]
        };
        let closed = |frame: Rect, points: &[[f64; 2]]| -> Vec<[f64; 2]> {
            points.iter().chain(points.first()).map(|p| place(frame, p)).collect()
        };
        title(page, frame(0), "polygon");
        page.area(&closed(frame(0), polygon), TEXT.mix(0.1));
        page.line(&closed(frame(0), polygon), TEXT.to_rgba(), 1.2);
        title(page, frame(1), &format!("{} points p of its outline", points.len()));
        for p in points {
            page.dot(place(frame(1), p), 1.3, TEXT.to_rgba());
        }
        for (k, (order, curve)) in curves.iter().enumerate() {
            let frame = frame(k + 2);
            title(page, frame, &format!("curve g(t), M = {order}: {} numbers", 4 * (2 * order + 1)));
            page.line(&closed(frame, polygon), RED.mix(0.45), 1.2);
            page.line(&closed(frame, curve), TEXT.to_rgba(), 1.4);
        }
    })
}

fn title(page: &mut Page<'_>, frame: Rect, text: &str) {
    page.text(text, [frame.x + SIDE / 2.0, frame.y - 18.0], Label::new(HPos::Center, VPos::Center).size(TITLE - 1.0));
}

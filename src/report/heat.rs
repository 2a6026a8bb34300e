//! What heat maps have in common: colours, colour bars, and names of columns along the edges.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{Label, MUTED, Page, Rect, SMALL, fit, text_width};
use super::panel::Axis;

/// Side of a map.
pub(super) const MAP: f64 = 250.0;
/// Width of a colour bar, and about how many numbers stand beside it.
pub(super) const BAR: f64 = 12.0;
pub(super) const TICKS: usize = 5;
/// Room for the names of the columns.
pub(super) const NAMES: f64 = 110.0;

pub(super) fn blend(from: RGBColor, to: RGBColor, share: f64) -> RGBColor {
    let mix = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * share.clamp(0.0, 1.0)).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// White at 0, dark violet at 1.
pub(super) fn sequential(share: f64) -> RGBColor {
    let (middle, dark) = (RGBColor(0xc9, 0x7b, 0x9f), RGBColor(0x3b, 0x0f, 0x5c));
    if share < 0.5 { blend(WHITE, middle, 2.0 * share) } else { blend(middle, dark, 2.0 * share - 1.0) }
}

pub(super) fn frame(page: &mut Page<'_>, f: Rect) {
    let corners = [[f.x, f.y], [f.right(), f.y], [f.right(), f.bottom()], [f.x, f.bottom()], [f.x, f.y]];
    page.line(&corners, MUTED.to_rgba(), 1.0);
}

pub(super) fn color_bar(page: &mut Page<'_>, frame: Rect, axis: Axis, color: impl Fn(f64) -> RGBColor) {
    page.cells(frame, 1, 250, |_, row| color(1.0 - (row as f64 + 0.5) / 250.0));
    self::frame(page, frame);
    for (value, label) in axis.ticks(TICKS) {
        let y = frame.bottom() - axis.place(value) * frame.h;
        page.line(&[[frame.right(), y], [frame.right() + 4.0, y]], MUTED.to_rgba(), 1.0);
        page.text(&label, [frame.right() + 7.0, y], Label::new(HPos::Left, VPos::Center));
    }
}

/// Columns with their names; neighbours of one name are a block.
pub(super) struct Blocks {
    dim: usize,
    /// Name, first column, number of columns.
    blocks: Vec<(String, usize, usize)>,
    /// Every so many blocks are labelled, if there is no room for all.
    every: usize,
}

impl Blocks {
    pub(super) fn new(dim: usize, labels: &[String]) -> Self {
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

    pub(super) fn widest(&self) -> f64 {
        self.shown().map(|b| text_width(&b.0, SMALL)).fold(0.0, f64::max)
    }

    /// Whether the names have room side by side.
    pub(super) fn fit_across(&self) -> bool {
        let cell = MAP / self.dim as f64;
        self.shown().all(|(name, _, length)| text_width(name, SMALL) + 5.0 <= (*length).max(self.every) as f64 * cell)
    }

    pub(super) fn draw(&self, page: &mut Page<'_>, frame: Rect, left: bool) {
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

//! A page that draws every stroke, letter and heat map twice: into a PNG at twice the size, and into an SVG.
//!
//! Lengths are in pixels of a picture seen at 100 %. Lines and letters of the PNG are placed here with fractions of a
//! pixel, because the bitmap back end rounds every point and every letter to whole ones.

use std::path::Path;
use std::sync::OnceLock;

use ab_glyph::{Font, FontRef, Glyph, PxScale, ScaleFont, point};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::file::{base64, finish_svg, png, with_suffix, write};
use crate::error::Result;
use crate::printable::printable;

/// Pixels of the PNG per pixel of the page.
pub(super) const RASTER: u32 = 2;
/// Units of the SVG per pixel of the page: its back end knows whole numbers only, and an eighth of a pixel is not seen.
const SVG: u32 = 8;
/// What the back end divides a font's size by to get the size of its em.
const SIZE_PER_EM: f64 = 1.24;
/// Fonts as wide as the embedded one, so that an SVG needs no font of its own.
const FAMILY: &str = "Arimo, Arial, Liberation Sans, Helvetica, sans-serif";
/// Height of a small letter in em.
const X_HEIGHT: f64 = 0.528;

pub(super) const TEXT: RGBColor = RGBColor(0x22, 0x22, 0x22);
pub(super) const MUTED: RGBColor = RGBColor(0x77, 0x77, 0x77);
pub(super) const GRID: RGBColor = RGBColor(0xe4, 0xe4, 0xe4);
pub(super) const GREY: RGBColor = RGBColor(0xbd, 0xbd, 0xbd);
/// Data and training, and what was observed; this pair stays apart for colour-blind readers.
pub(super) const BLUE: RGBColor = RGBColor(0x00, 0x72, 0xb2);
/// Samples and test.
pub(super) const ORANGE: RGBColor = RGBColor(0xd5, 0x5e, 0x00);
/// What a curve should be, behind what it is.
pub(super) const RED: RGBColor = RGBColor(0xdd, 0x44, 0x44);

/// Size of ordinary text and of titles.
pub(super) const SMALL: f64 = 11.0;
pub(super) const TITLE: f64 = 13.0;

/// A rectangle of the page.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rect {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) w: f64,
    pub(super) h: f64,
}

impl Rect {
    pub(super) fn new(x: f64, y: f64, w: f64, h: f64) -> Self {
        Self { x, y, w, h }
    }

    pub(super) fn right(&self) -> f64 {
        self.x + self.w
    }

    pub(super) fn bottom(&self) -> f64 {
        self.y + self.h
    }

    /// The part of the segment from `a` to `b` that lies inside.
    fn clip(&self, a: [f64; 2], b: [f64; 2]) -> Option<[[f64; 2]; 2]> {
        // An end astronomically far away would leave no digits for the point where the segment enters.
        let [a, b] = [a, b].map(|p| p.map(|v| v.clamp(-1e6, 1e6)));
        let (mut from, mut to) = (0.0f64, 1.0f64);
        let bounds = [(self.x, self.right()), (self.y, self.bottom())];
        for axis in 0..2 {
            let (low, high) = bounds[axis];
            let step = b[axis] - a[axis];
            if step == 0.0 {
                if a[axis] < low || a[axis] > high {
                    return None;
                }
                continue;
            }
            let (t0, t1) = ((low - a[axis]) / step, (high - a[axis]) / step);
            from = from.max(t0.min(t1));
            to = to.min(t0.max(t1));
        }
        let at = |t: f64| [a[0] + t * (b[0] - a[0]), a[1] + t * (b[1] - a[1])];
        (from <= to).then(|| [at(from), at(to)])
    }
}

/// Where text stands relative to its point, and how it looks.
#[derive(Clone, Copy)]
pub(super) struct Label {
    pub(super) size: f64,
    pub(super) color: RGBColor,
    pub(super) h: HPos,
    pub(super) v: VPos,
    /// Reads from bottom to top.
    pub(super) upright: bool,
}

impl Label {
    pub(super) fn new(h: HPos, v: VPos) -> Self {
        Self { size: SMALL, color: TEXT, h, v, upright: false }
    }

    pub(super) fn size(self, size: f64) -> Self {
        Self { size, ..self }
    }

    pub(super) fn color(self, color: RGBColor) -> Self {
        Self { color, ..self }
    }

    pub(super) fn upright(self) -> Self {
        Self { upright: true, ..self }
    }
}

/// The page being drawn.
pub(super) struct Page<'a> {
    raster: BitMapBackend<'a>,
    svg: SVGBackend<'a>,
    /// `<image>` elements: the back end for SVG cannot write them.
    images: String,
}

/// Draws a page of `width` by `height` and writes it to `path` with `.png` and with `.svg` appended.
pub(super) fn save(path: &Path, width: f64, height: f64, draw: impl FnOnce(&mut Page<'_>)) -> Result<()> {
    let size = (width.ceil() as u32, height.ceil() as u32);
    let (w, h) = (size.0 * RASTER, size.1 * RASTER);
    let mut pixels = vec![255; (w * h * 3) as usize];
    let mut svg = String::new();
    let images = {
        let mut page = Page {
            raster: BitMapBackend::with_buffer(&mut pixels, (w, h)),
            svg: SVGBackend::with_string(&mut svg, (size.0 * SVG, size.1 * SVG)),
            images: String::new(),
        };
        page.fill(Rect::new(0.0, 0.0, size.0.into(), size.1.into()), WHITE.to_rgba());
        draw(&mut page);
        page.raster.present().expect(IN_MEMORY);
        page.svg.present().expect(IN_MEMORY);
        page.images
    };
    write(&with_suffix(path, ".png"), &png(w, h, &pixels))?;
    write(&with_suffix(path, ".svg"), finish_svg(&svg, size, SVG, &images).as_bytes())
}

/// Drawing into memory fails only if this file is wrong.
const IN_MEMORY: &str = "drawing into memory";

impl Page<'_> {
    /// Fills a rectangle.
    pub(super) fn fill(&mut self, rect: Rect, color: RGBAColor) {
        let corners = |scale| (whole([rect.x, rect.y], scale), whole([rect.right(), rect.bottom()], scale));
        let (a, b) = corners(RASTER);
        self.raster.draw_rect(a, b, &color.filled(), true).expect(IN_MEMORY);
        let (a, b) = corners(SVG);
        self.svg.draw_rect(a, b, &color.filled(), true).expect(IN_MEMORY);
    }

    /// Fills the polygon of the points.
    pub(super) fn area(&mut self, points: &[[f64; 2]], color: RGBAColor) {
        self.raster.fill_polygon(points.iter().map(|p| whole(*p, RASTER)), &color).expect(IN_MEMORY);
        self.svg.fill_polygon(points.iter().map(|p| whole(*p, SVG)), &color).expect(IN_MEMORY);
    }

    /// A line through the points, with round joints.
    pub(super) fn line(&mut self, points: &[[f64; 2]], color: RGBAColor, width: f64) {
        if points.is_empty() || !points.iter().flatten().all(|v| v.is_finite()) {
            return;
        }
        let style = color.stroke_width((width * f64::from(SVG)).round().max(1.0) as u32);
        self.svg.draw_path(points.iter().map(|p| whole(*p, SVG)), &style).expect(IN_MEMORY);
        self.stroke(points, color, width);
    }

    /// A line through the points, as far as it lies in `frame`.
    pub(super) fn line_inside(&mut self, frame: Rect, points: &[[f64; 2]], color: RGBAColor, width: f64) {
        let mut run: Vec<[f64; 2]> = Vec::new();
        for pair in points.windows(2) {
            let Some([a, b]) = frame.clip(pair[0], pair[1]) else { continue };
            if run.last() != Some(&a) {
                self.line(&run, color, width);
                run = vec![a];
            }
            run.push(b);
        }
        self.line(&run, color, width);
    }

    /// A dot.
    pub(super) fn dot(&mut self, at: [f64; 2], radius: f64, color: RGBAColor) {
        let units = (radius * f64::from(SVG)).round() as u32;
        self.svg.draw_circle(whole(at, SVG), units, &color, true).expect(IN_MEMORY);
        self.stroke(&[at, at], color, 2.0 * radius);
    }

    /// Coverage of a stroke is the largest of its segments' coverages, so that a translucent line that crosses itself
    /// is no darker there.
    fn stroke(&mut self, points: &[[f64; 2]], color: RGBAColor, width: f64) {
        let scale = f64::from(RASTER);
        let (w, h) = self.raster.get_size();
        let half = (width * scale).max(1.0) / 2.0;
        let alpha = color.alpha() * (width * scale).min(1.0);
        let bounds = |axis: usize, limit: u32| {
            let values = points.iter().map(|p| p[axis] * scale);
            let low = values.clone().fold(f64::INFINITY, f64::min) - half - 1.0;
            let high = values.fold(f64::NEG_INFINITY, f64::max) + half + 2.0;
            (low.clamp(0.0, limit.into()) as usize, high.clamp(0.0, limit.into()) as usize)
        };
        let ((x0, x1), (y0, y1)) = (bounds(0, w), bounds(1, h));
        if x0 >= x1 || y0 >= y1 {
            return;
        }
        let columns = x1 - x0;
        let mut mask = vec![0.0f32; columns * (y1 - y0)];
        for pair in points.windows(2) {
            let (a, b) = (pair[0].map(|v| v * scale), pair[1].map(|v| v * scale));
            let d = [b[0] - a[0], b[1] - a[1]];
            let length = d[0] * d[0] + d[1] * d[1];
            let span = |axis: usize, low: usize, high: usize| {
                let from = (a[axis].min(b[axis]) - half - 1.0).clamp(low as f64, high as f64) as usize;
                let to = (a[axis].max(b[axis]) + half + 2.0).clamp(low as f64, high as f64) as usize;
                from..to
            };
            for y in span(1, y0, y1) {
                for x in span(0, x0, x1) {
                    let p = [x as f64 + 0.5 - a[0], y as f64 + 0.5 - a[1]];
                    let t = if length > 0.0 { ((p[0] * d[0] + p[1] * d[1]) / length).clamp(0.0, 1.0) } else { 0.0 };
                    let distance = (p[0] - t * d[0]).hypot(p[1] - t * d[1]);
                    let cell = &mut mask[(y - y0) * columns + x - x0];
                    *cell = cell.max((half + 0.5 - distance).clamp(0.0, 1.0) as f32);
                }
            }
        }
        for (k, &coverage) in mask.iter().enumerate().filter(|(_, c)| **c > 0.0) {
            self.blend((x0 + k % columns) as i32, (y0 + k / columns) as i32, color, alpha * f64::from(coverage));
        }
    }

    fn blend(&mut self, x: i32, y: i32, color: RGBAColor, alpha: f64) {
        let (w, h) = self.raster.get_size();
        if (0..w as i32).contains(&x) && (0..h as i32).contains(&y) {
            let RGBAColor(r, g, b, _) = color;
            self.raster.draw_pixel((x, y), RGBAColor(r, g, b, alpha).to_backend_color()).expect(IN_MEMORY);
        }
    }

    /// Writes text at a point.
    pub(super) fn text(&mut self, text: &str, at: [f64; 2], label: Label) {
        let text = &one_line(text);
        let font_size = label.size * f64::from(SVG) * SIZE_PER_EM;
        let mut style =
            TextStyle::from((FAMILY, font_size).into_font()).color(&label.color).pos(Pos::new(label.h, label.v));
        if label.upright {
            style = style.transform(FontTransform::Rotate270);
        }
        self.svg.draw_text(text, &style, whole(at, SVG)).expect(IN_MEMORY);

        let em = label.size * f64::from(RASTER);
        let start = match label.h {
            HPos::Left => 0.0,
            HPos::Center => -0.5,
            HPos::Right => -1.0,
        } * text_width(text, em);
        // The same offsets of the base line as in the SVG.
        let base = match label.v {
            VPos::Top => 0.76,
            VPos::Center => X_HEIGHT / 2.0,
            VPos::Bottom => -X_HEIGHT / 2.0,
        } * em;
        let [x, y] = at.map(|v| v * f64::from(RASTER));
        let (along, across) = if label.upright { (-y, x) } else { (x, y) };
        let mut cursor = (along + start) as f32;
        let line = (across + base).round() as f32;
        let scale = glyph_scale(em);
        for c in text.chars() {
            let id = font().glyph_id(c);
            let glyph = Glyph { id, scale, position: point(cursor, line) };
            cursor += font().as_scaled(scale).h_advance(id);
            let Some(outline) = font().outline_glyph(glyph) else { continue };
            let corner = outline.px_bounds().min;
            let mut covered = Vec::new();
            outline.draw(|x, y, coverage| {
                covered.push((corner.x as i32 + x as i32, corner.y as i32 + y as i32, coverage))
            });
            for (u, v, coverage) in covered {
                let (x, y) = if label.upright { (v, -u - 1) } else { (u, v) };
                self.blend(x, y, label.color.to_rgba(), f64::from(coverage.min(1.0)));
            }
        }
    }

    /// A grid of coloured cells, `columns` by `rows`, the first at the upper left.
    pub(super) fn cells(&mut self, frame: Rect, columns: usize, rows: usize, color: impl Fn(usize, usize) -> RGBColor) {
        let scale = f64::from(RASTER);
        let (w, h) = ((frame.w * scale).round() as u32, (frame.h * scale).round() as u32);
        let paint = |w: u32, h: u32| -> Vec<u8> {
            let cell = |k: u32, of: u32, count: usize| (k as usize * count) / of as usize;
            let at = |x, y| color(cell(x, w, columns), cell(y, h, rows));
            (0..h)
                .flat_map(|y| (0..w).map(move |x| (x, y)))
                .map(|(x, y)| at(x, y))
                .flat_map(|c| [c.0, c.1, c.2])
                .collect()
        };
        let at = whole([frame.x, frame.y], RASTER);
        self.raster.blit_bitmap(at, (w, h), &paint(w, h)).expect(IN_MEMORY);

        // Whole pixels for every cell, and many of them: viewers that smooth an image cannot blur the cells.
        let (w, h) = (columns as u32 * 500u32.div_ceil(columns as u32), rows as u32 * 500u32.div_ceil(rows as u32));
        let [x, y, width, height] = [frame.x, frame.y, frame.w, frame.h].map(|v| (v * f64::from(SVG)).round());
        self.images += &format!(
            "<image x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" preserveAspectRatio=\"none\" \
             image-rendering=\"pixelated\" href=\"data:image/png;base64,{}\"/>\n",
            base64(&png(w, h, &paint(w, h)))
        );
    }
}

fn whole(at: [f64; 2], scale: u32) -> (i32, i32) {
    let [x, y] = at.map(|v| (v * f64::from(scale)).round() as i32);
    (x, y)
}

fn font() -> &'static FontRef<'static> {
    static FONT: OnceLock<FontRef<'static>> = OnceLock::new();
    FONT.get_or_init(|| FontRef::try_from_slice(include_bytes!("font/Arimo-subset.ttf")).expect("the embedded font"))
}

/// `ab_glyph` measures a font by its height, everything else by its em.
fn glyph_scale(em: f64) -> PxScale {
    let units = font().units_per_em().expect("the embedded font has an em");
    PxScale::from(em as f32 * font().height_unscaled() / units)
}

/// Width of a line of text.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    let scaled = font().as_scaled(glyph_scale(size));
    text.chars().map(|c| f64::from(scaled.h_advance(font().glyph_id(c)))).sum()
}

/// A text without what is no character of XML, or would end a line.
fn one_line(text: &str) -> String {
    printable(text).replace('\n', " ")
}

/// `text`, or as much of its beginning as fits in `width`, with an ellipsis.
pub(super) fn fit(text: &str, size: f64, width: f64) -> String {
    let text = &one_line(text);
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut left = width - text_width("…", size);
    let fits = text.char_indices().take_while(|(_, c)| {
        left -= text_width(c.encode_utf8(&mut [0; 4]), size);
        left >= 0.0
    });
    let end = fits.last().map_or(0, |(at, c)| at + c.len_utf8());
    match &text[..end] {
        "" => String::new(),
        short => format!("{}…", short.trim_end()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_cut_at_the_frame() {
        let frame = Rect::new(0.0, 0.0, 10.0, 10.0);
        assert_eq!(frame.clip([-5.0, 5.0], [15.0, 5.0]), Some([[0.0, 5.0], [10.0, 5.0]]));
        assert_eq!(frame.clip([1.0, 1.0], [2.0, 3.0]), Some([[1.0, 1.0], [2.0, 3.0]]));
        assert_eq!(frame.clip([-5.0, -1.0], [15.0, -1.0]), None);
        assert_eq!(frame.clip([-3.0, 4.0], [4.0, -12.0]), None);
        let [a, b] = frame.clip([5.0, -1e30], [5.0, 7.0]).unwrap();
        assert!(a[1].abs() <= 1e-6 && (b[1] - 7.0).abs() <= 1e-6, "{a:?} {b:?}");
    }

    #[test]
    fn long_text_is_cut_to_its_width() {
        let short = fit("a rather long name of a column", SMALL, 60.0);
        assert!(short.starts_with("a rat") && short.ends_with('…') && text_width(&short, SMALL) <= 60.0);
        assert_eq!(fit("x", SMALL, 60.0), "x");
        assert_eq!(fit("x", SMALL, 0.1), "");
        // In one pass.
        let long = fit(&"long ".repeat(200_000), SMALL, 60.0);
        assert!(long.starts_with("long") && text_width(&long, SMALL) <= 60.0);
        assert_eq!(fit("a\u{1b}b\nc", SMALL, 600.0), "a\\u{1b}b c");
    }

    #[test]
    fn a_failed_write_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        let error = save(&folder.path().join("missing/plot"), 10.0, 10.0, |_| {}).unwrap_err();
        assert!(error.to_string().contains("plot.png"), "{error}");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}

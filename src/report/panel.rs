//! One pair of axes: from values to the page, with ticks at round numbers.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::page::{GRID, Label, MUTED, Page, Rect, SMALL, text_width};

/// Values shown along one direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Axis {
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) log: bool,
    /// Only whole numbers are marked.
    pub(super) whole: bool,
}

impl Axis {
    /// From `low` to `high`; an empty range is widened so that every value has a place.
    pub(super) fn linear(low: f64, high: f64) -> Self {
        if high - low > 1e-12 * low.abs().max(high.abs()) {
            return Self { low, high, log: false, whole: false };
        }
        let half = if low == 0.0 { 1.0 } else { low.abs() * 0.1 };
        Self { low: low - half, high: low + half, log: false, whole: false }
    }

    /// The same of what is counted: steps, epochs.
    pub(super) fn whole(self) -> Self {
        Self { whole: true, ..self }
    }

    /// Logarithmic, for positive values; wide enough for at least three ticks.
    pub(super) fn log(low: f64, high: f64) -> Self {
        let (mut low, mut high) = (low / 1.3, high * 1.3);
        if high / low < 8.0 {
            let grow = (8.0 * low / high).sqrt();
            (low, high) = (low / grow, high * grow);
        }
        Self { low, high, log: true, whole: false }
    }

    /// The range of `values` without the far ends, with a margin.
    ///
    /// `below` and `above` are the shares of values that may be cut off. They are cut off only where that makes the
    /// rest at least twice as large. Values whose differences might overflow have no say, as if they were infinite.
    pub(super) fn robust(values: impl Iterator<Item = f64>, below: f64, above: f64) -> Option<Self> {
        let mut sorted: Vec<f64> = values.filter(|v| v.abs() < 1e300).collect();
        sorted.sort_by(f64::total_cmp);
        let last = sorted.len().checked_sub(1)?;
        let at = |share: f64| sorted[(share * last as f64).round() as usize];
        let (core_low, core_high) = (at(below), at(1.0 - above));
        let margin = 0.15 * (core_high - core_low);
        let (mut low, mut high) = (sorted[0], sorted[last]);
        if high - low > 2.0 * (core_high - core_low) && core_high > core_low {
            low = low.max(core_low - margin);
            high = high.min(core_high + margin);
        }
        let margin = 0.05 * (high - low);
        Some(Self::linear(low - margin, high + margin))
    }

    /// Place of `value` between 0 and 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        if self.log {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            (value - self.low) / (self.high - self.low)
        }
    }

    /// Round numbers to mark, `count` or one less if the numbers allow it, with their labels.
    pub(super) fn ticks(&self, count: usize) -> Vec<(f64, String)> {
        if self.log { self.log_ticks(count) } else { self.linear_ticks(count) }
    }

    fn linear_ticks(&self, count: usize) -> Vec<(f64, String)> {
        // The largest round step that still gives enough ticks: a lone tick says nothing about the scale.
        let power = 10f64.powf((self.high - self.low).log10().floor());
        let least = if self.whole { 1.0 } else { 0.0 };
        let steps = [5.0, 2.0, 1.0, 0.5, 0.2, 0.1, 0.05].map(|m| (m * power).max(least));
        let first = |step: f64| (self.low / step - 1e-9).ceil();
        let number = |step: f64| ((self.high / step + 1e-9).floor() - first(step) + 1.0).max(0.0) as usize;
        let step = steps.into_iter().find(|s| number(*s) >= count.saturating_sub(1).max(2)).unwrap_or(steps[6]);
        let largest = self.low.abs().max(self.high.abs());
        (0..number(step).min(100))
            .map(|k| (first(step) + k as f64) * step)
            .map(|value| {
                let label = if value == 0.0 {
                    "0".to_owned()
                } else if !(1e-3..1e5).contains(&largest) {
                    power_label(value, (largest.log10().floor() - step.log10().floor()).max(0.0) as usize)
                } else {
                    format!("{value:.*}", (-step.log10().floor()).max(0.0) as usize).replace('-', "−")
                };
                (value, label)
            })
            .collect()
    }

    fn log_ticks(&self, count: usize) -> Vec<(f64, String)> {
        let (first, last) = (self.low.log10().floor() as i32, self.high.log10().ceil() as i32);
        let decades = (self.high / self.low).log10();
        let every = (decades / count.max(1) as f64).ceil().max(1.0) as i32;
        let within: &[f64] = if decades < 2.0 { &[1.0, 2.0, 5.0] } else { &[1.0] };
        let values = || {
            let all = (first..=last)
                .filter(|power| power.rem_euclid(every) == 0)
                .flat_map(|power| within.iter().map(move |m| m * 10f64.powi(power)));
            all.filter(|v| (self.low..=self.high).contains(v))
        };
        let plain = values().all(|v| (0.9e-3..1.1e4).contains(&v));
        values().map(|v| (v, if plain { round(v).to_string() } else { power_label(v, 0) })).collect()
    }
}

/// Removes the last digits, which `powi` leaves inexact.
fn round(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

/// `2.5×10⁻⁴`
fn power_label(value: f64, digits: usize) -> String {
    let text = format!("{value:.digits$e}");
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let power: String = power
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32(0x2070 + digit as u32 - '0' as u32).unwrap_or(digit),
        })
        .collect();
    let mantissa = mantissa.replace('-', "−");
    if mantissa == "1" { format!("10{power}") } else { format!("{mantissa}×10{power}") }
}

/// A frame on the page with an axis in each direction.
#[derive(Clone, Copy, Debug)]
pub(super) struct Panel {
    pub(super) frame: Rect,
    pub(super) x: Axis,
    pub(super) y: Axis,
}

impl Panel {
    /// Where a pair of values is on the page.
    pub(super) fn at(&self, x: f64, y: f64) -> [f64; 2] {
        [self.frame.x + self.x.place(x) * self.frame.w, self.frame.bottom() - self.y.place(y) * self.frame.h]
    }

    /// The left and the lower edge.
    pub(super) fn edges(&self, page: &mut Page<'_>) {
        let Rect { x, y, .. } = self.frame;
        let (right, bottom) = (self.frame.right(), self.frame.bottom());
        page.line(&[[x, y], [x, bottom], [right, bottom]], MUTED.to_rgba(), 1.0);
    }

    /// Ticks below the frame, at most about `count`; labelled if `labels`. No labels touch: none of them ends more than
    /// half of `gap`, the space between this panel and the next, beyond the frame.
    pub(super) fn x_ticks(&self, page: &mut Page<'_>, count: usize, gap: f64, labels: bool) {
        let bottom = self.frame.bottom();
        for (value, label) in self.labelled(count, gap) {
            let x = self.at(value, self.y.low)[0];
            page.line(&[[x, bottom], [x, bottom + 4.0]], MUTED.to_rgba(), 1.0);
            if labels {
                page.text(&label, [x, bottom + 7.0], Label::new(HPos::Center, VPos::Top));
            }
        }
    }

    /// Ticks below the frame whose labels have room.
    fn labelled(&self, count: usize, gap: f64) -> Vec<(f64, String)> {
        /// Between two labels.
        const APART: f64 = 8.0;
        /// Ticks that are tried, if fewer have no room: of more the first and the last may.
        const MOST: usize = 10;
        let ends = |(value, label): &(f64, String)| {
            let (at, half) = (self.x.place(*value) * self.frame.w, text_width(label, SMALL) / 2.0);
            [at - half, at + half]
        };
        let beyond = ((gap - APART) / 2.0).max(0.0);
        let inside = |n: usize| -> Vec<(f64, String)> {
            let has_room = |tick: &(f64, String)| {
                let [left, right] = ends(tick);
                left >= -beyond && right <= self.frame.w + beyond
            };
            self.x.ticks(n).into_iter().filter(has_room).collect()
        };
        let apart =
            |ticks: &Vec<(f64, String)>| ticks.windows(2).all(|pair| ends(&pair[1])[0] - ends(&pair[0])[1] >= APART);
        let outer = |ticks: Vec<(f64, String)>| match &ticks[..] {
            [first, .., last] => vec![first.clone(), last.clone()],
            _ => ticks,
        };
        let usual = (2..=count).rev().map(inside);
        let finer = (count + 1..=MOST).map(inside);
        let pairs = (2..=MOST).map(|n| outer(inside(n)));
        let two = usual.chain(finer).chain(pairs).find(|ticks| ticks.len() > 1 && apart(ticks));
        let one = || (2..=MOST).flat_map(inside).next().into_iter().collect();
        two.unwrap_or_else(one)
    }

    /// Ticks left of the frame, with thin lines across it if `grid`. Returns the width of the widest label.
    pub(super) fn y_ticks(&self, page: &mut Page<'_>, count: usize, grid: bool) -> f64 {
        let mut widest = 0.0f64;
        for (value, label) in self.y.ticks(count) {
            let y = self.at(self.x.low, value)[1];
            if grid {
                page.line(&[[self.frame.x, y], [self.frame.right(), y]], GRID.to_rgba(), 1.0);
            }
            page.line(&[[self.frame.x - 4.0, y], [self.frame.x, y]], MUTED.to_rgba(), 1.0);
            page.text(&label, [self.frame.x - 7.0, y], Label::new(HPos::Right, VPos::Center));
            widest = widest.max(text_width(&label, SMALL));
        }
        widest
    }

    /// A curve, with gaps where a value is not finite.
    pub(super) fn curve(
        &self,
        page: &mut Page<'_>,
        points: impl Iterator<Item = (f64, f64)>,
        color: RGBColor,
        width: f64,
    ) {
        let mut run: Vec<[f64; 2]> = Vec::new();
        let mut draw = |run: &mut Vec<[f64; 2]>| {
            if let [only] = run[..] {
                page.line_inside(self.frame, &[only, only], color.to_rgba(), 2.0 * width);
            }
            page.line_inside(self.frame, run, color.to_rgba(), width);
            run.clear();
        };
        for (x, y) in points {
            let at = self.at(x, y);
            if at.iter().all(|v| v.is_finite()) {
                run.push(at);
            } else {
                draw(&mut run);
            }
        }
        draw(&mut run);
    }
}

/// Colours and their names, in a row that ends at `right`.
pub(super) fn legend(page: &mut Page<'_>, right: f64, y: f64, entries: &[(&str, RGBColor)]) {
    let mut x = right;
    for (name, color) in entries.iter().rev() {
        // From its left end, with some room: the reader of an SVG may have a wider font.
        x -= text_width(name, SMALL) * 1.1;
        page.text(name, [x, y], Label::new(HPos::Left, VPos::Center));
        page.line(&[[x - 22.0, y], [x - 7.0, y]], color.to_rgba(), 2.5);
        x -= 22.0 + 14.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: Axis, count: usize) -> Vec<String> {
        axis.ticks(count).into_iter().map(|(_, label)| label).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(labels(Axis::linear(-0.31, 0.33), 4), ["−0.2", "0", "0.2"]);
        assert_eq!(labels(Axis::linear(-4.6, 4.7), 3), ["−4", "−2", "0", "2", "4"]);
        assert_eq!(labels(Axis::linear(0.0, 50.0), 5), ["0", "10", "20", "30", "40", "50"]);
        assert_eq!(labels(Axis::linear(0.0, 3e6), 4), ["0", "10⁶", "2×10⁶", "3×10⁶"]);
        assert_eq!(
            labels(Axis { low: 1e-5, high: 1e-2, log: true, whole: false }, 4),
            ["10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]
        );
        assert_eq!(labels(Axis { low: 0.004, high: 0.03, log: true, whole: false }, 4), ["0.005", "0.01", "0.02"]);
    }

    #[test]
    fn whole_axes_have_whole_ticks() {
        for (low, high, count, expected) in [
            (-0.2, 3.3, 6, &["0", "1", "2", "3"][..]),
            (0.8, 1.3, 6, &["1"]),
            (-0.2, 1.3, 6, &["0", "1"]),
            (-0.2, 10.3, 6, &["0", "2", "4", "6", "8", "10"]),
        ] {
            assert_eq!(labels(Axis::linear(low, high).whole(), count), expected, "{low} {high}");
        }
    }

    /// Panels beside each other have wide labels, which touch neither each other nor those of the next.
    #[test]
    fn labels_of_neighbours_do_not_touch() {
        let (width, gap) = (118.0, 12.0);
        for (low, high) in [
            (0.0007, 0.0038),
            (0.0195, 0.0755),
            (12345.17, 12345.42),
            (-0.001_234, -0.001_229),
            (1.234e-7, 1.239e-7),
            (0.0, 1.0),
            (1e7, 1.00001e7),
        ] {
            let panel = Panel {
                frame: Rect::new(50.0, 0.0, width, 84.0),
                x: Axis::linear(low, high),
                y: Axis::linear(0.0, 1.0),
            };
            let ticks = panel.labelled(3, gap);
            assert!(!ticks.is_empty(), "{low} to {high}");
            let mut last = -gap / 2.0;
            for (value, label) in &ticks {
                let (at, half) = (panel.x.place(*value) * width, text_width(label, SMALL) / 2.0);
                assert!(at - half >= last + 4.0, "{low} to {high}: {ticks:?}");
                last = at + half;
            }
            assert!(last <= width + gap / 2.0 - 4.0, "{low} to {high}: {ticks:?}");
        }
    }

    #[test]
    fn a_few_large_values_do_not_set_the_range() {
        let axis =
            Axis::robust((0..50).map(|k| if k < 2 { 1e6 } else { -20.0 - f64::from(k) / 10.0 }), 0.0, 0.1).unwrap();
        assert!(axis.low < -24.9 && axis.high > -20.2 && axis.high < -15.0, "{axis:?}");
        let all = Axis::robust([1.0, 2.0, 3.0].into_iter(), 0.0, 0.1).unwrap();
        assert!(all.low < 1.0 && all.high > 3.0, "{all:?}");
        assert_eq!(Axis::robust([f64::NAN].into_iter(), 0.0, 0.1), None);
        let one = Axis::robust([7.0].into_iter(), 0.0, 0.1).unwrap();
        assert!(one.low < 7.0 && one.high > 7.0, "{one:?}");
    }
}

//! Loss and learning rate of a training.

use std::path::Path;

use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

use super::corner::COLORS;
use super::page::{BLUE, Label, MUTED, ORANGE, Rect, SMALL, TEXT, TITLE, fit, save, text_width};
use super::panel::{Axis, Panel, legend};
use crate::counted::counted;
use crate::error::{Error, Result};

/// What a training reports at the end of an epoch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LossPoint {
    /// The epoch, as it is shown: counted from 1, or with a fraction.
    pub epoch: f64,
    /// Mean loss on the training rows, in nats.
    pub train: f64,
    /// Mean loss on the test rows, in nats, where it was measured.
    pub test: Option<f64>,
    /// Learning rate.
    pub learning_rate: f64,
}

/// The course of a training, in the order of time.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LossHistory {
    /// One point per epoch.
    pub points: Vec<LossPoint>,
    /// The epoch whose model was kept, to be marked.
    pub kept: Option<f64>,
}

/// Losses of the held-out rows of one of several trainings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Course {
    /// Its name.
    pub name: String,
    /// Epochs and losses, in the order of time.
    pub points: Vec<(f64, f64)>,
}

/// Most courses of a picture: colours that can be told apart.
pub(crate) const MOST_COURSES: usize = COLORS.len();

/// Share of the values that may lie above the picture: the first epochs start high and would flatten the rest.
const CUT: f64 = 0.1;

/// Draws loss and learning rate over the epochs into `path`.png and `path`.svg.
///
/// Values that are not finite leave a gap and are counted in the title; so are values too far out for a picture
/// in which the rest can be read.
pub(crate) fn loss_curves(path: &Path, history: &LossHistory) -> Result<()> {
    let points = &history.points;
    if !points.iter().any(|p| p.epoch.is_finite()) {
        return Err(Error::Shape { what: "finite epochs of a loss curve (at least)".into(), expected: 1, got: 0 });
    }
    let losses = || points.iter().flat_map(|p| [Some(p.train), p.test]).flatten();
    let y = Axis::robust(losses(), 0.0, CUT).unwrap_or(Axis::linear(0.0, 1.0));
    let outside = losses().filter(|v| v.is_finite() && !(y.low..=y.high).contains(v)).count();
    let broken = losses().filter(|v| !v.is_finite()).count();
    let values = |count: usize| counted(count, "value");
    let is_out = |p: &LossPoint| [Some(p.train), p.test].into_iter().flatten().any(|v| !(y.low..=y.high).contains(&v));
    let first_out = points.iter().take_while(|p| is_out(p)).count();
    let at_start = first_out > 0 && !points[first_out..].iter().any(is_out);
    let cut = match outside {
        0 => None,
        _ if at_start => Some(format!("first epochs cut off: {}", values(outside))),
        _ => Some(format!("{} outside the range", values(outside))),
    };
    let gaps = (broken > 0).then(|| format!("{} not finite", values(broken)));
    let note = cut.into_iter().chain(gaps).collect::<Vec<_>>().join(", ");

    let epochs = || points.iter().map(|p| p.epoch).filter(|v| v.is_finite());
    let (first, last) = (epochs().fold(f64::INFINITY, f64::min), epochs().fold(f64::NEG_INFINITY, f64::max));
    let x = if first < last { Axis::linear(first, last) } else { Axis::linear(first - 1.0, first + 1.0) };
    // Not so many that a short training has ticks at half epochs.
    let ticks = ((x.high - x.low) as usize).saturating_add(2).min(8);
    let rates = || points.iter().map(|p| p.learning_rate).filter(|v| v.is_finite() && *v > 0.0);
    let rate = rates().next().map(|first| Axis::log(rates().fold(first, f64::min), rates().fold(first, f64::max)));

    let (width, left, right) = (640.0, 78.0, 18.0);
    let upper = Panel { frame: Rect::new(left, 40.0, width - left - right, 250.0), x, y };
    let lower = rate.map(|y| Panel { frame: Rect::new(left, 312.0, width - left - right, 80.0), x, y });
    let bottom = lower.unwrap_or(upper).frame.bottom();

    save(path, width, bottom + 48.0, |page| {
        page.text("Training", [left, 20.0], Label::new(HPos::Left, VPos::Center).size(TITLE));
        page.text(
            &note,
            [left + text_width("Training", TITLE) * 1.1 + 14.0, 20.5],
            Label::new(HPos::Left, VPos::Center).color(MUTED),
        );
        let both = [("train", BLUE), ("test", ORANGE)];
        let tested = points.iter().any(|p| p.test.is_some());
        legend(page, width - right, 20.0, if tested { &both } else { &both[..1] });

        upper.y_ticks(page, 5, true);
        if let Some(kept) = history.kept.filter(|kept| (x.low..=x.high).contains(kept)) {
            let at = upper.at(kept, y.low)[0];
            upper.curve(page, [(kept, y.low), (kept, y.high)].into_iter(), MUTED, 1.0);
            // On the side where there is room.
            let (side, shift) = if at > left + 0.5 * upper.frame.w { (HPos::Right, -5.0) } else { (HPos::Left, 5.0) };
            page.text("model kept", [at + shift, upper.frame.y + 10.0], Label::new(side, VPos::Center).color(MUTED));
        }
        upper.curve(page, points.iter().map(|p| (p.epoch, p.train)), BLUE, 1.6);
        // Epochs without a test are no gap: the curve goes on at the next one.
        upper.curve(page, points.iter().filter_map(|p| Some((p.epoch, p.test?))), ORANGE, 1.6);
        upper.edges(page);
        upper.x_ticks(page, ticks, 2.0 * right, lower.is_none());
        let label = Label::new(HPos::Center, VPos::Center).upright();
        page.text("loss (nats per row)", [20.0, upper.frame.y + upper.frame.h / 2.0], label);

        if let Some(lower) = lower {
            lower.y_ticks(page, 3, true);
            lower.curve(page, points.iter().map(|p| (p.epoch, p.learning_rate)), TEXT, 1.6);
            lower.edges(page);
            lower.x_ticks(page, ticks, 2.0 * right, true);
            page.text("learning rate", [20.0, lower.frame.y + lower.frame.h / 2.0], label);
        }
        page.text("epoch", [left + upper.frame.w / 2.0, bottom + 28.0], Label::new(HPos::Center, VPos::Top));
    })
}

/// Draws the losses of several trainings over their epochs into `path`.png and `path`.svg, beside each other.
///
/// # Errors
/// [`Error::Shape`] if there is nothing to draw, or too much; [`Error::Io`] if a file cannot be written.
pub(crate) fn compared_losses(path: &Path, courses: &[Course]) -> Result<()> {
    let all = || {
        courses.iter().flat_map(|course| &course.points).filter(|(epoch, loss)| epoch.is_finite() && loss.is_finite())
    };
    if courses.len() > MOST_COURSES || all().next().is_none() {
        let what = "trainings with losses in a picture (at least 1, at most)".into();
        return Err(Error::Shape { what, expected: MOST_COURSES, got: courses.len() });
    }
    let y = Axis::robust(all().map(|(_, loss)| *loss), 0.0, CUT).unwrap_or(Axis::linear(0.0, 1.0));
    let epochs = || all().map(|(epoch, _)| *epoch);
    let (first, last) = (epochs().fold(f64::INFINITY, f64::min), epochs().fold(f64::NEG_INFINITY, f64::max));
    let x = if first < last { Axis::linear(first, last) } else { Axis::linear(first - 1.0, first + 1.0) };
    let ticks = ((x.high - x.low) as usize).saturating_add(2).min(8);
    // The names stand to the right, where they may be long.
    let (width, left, right) = (760.0, 78.0, 200.0);
    let panel = Panel { frame: Rect::new(left, 40.0, width - left - right, 280.0), x, y };
    save(path, width, panel.frame.bottom() + 48.0, |page| {
        let title = Label::new(HPos::Left, VPos::Center).size(TITLE);
        page.text("Loss of the held-out rows", [left, 20.0], title);
        panel.y_ticks(page, 5, true);
        for (number, (course, color)) in courses.iter().zip(COLORS).enumerate() {
            panel.curve(page, course.points.iter().copied(), color, 1.6);
            let (x, y) = (panel.frame.right() + 16.0, 48.0 + 34.0 * number as f64);
            page.line(&[[x, y], [x + 15.0, y]], color.to_rgba(), 2.5);
            let label = Label::new(HPos::Left, VPos::Center);
            page.text(&fit(&course.name, SMALL, right - 46.0), [x + 22.0, y], label);
            let best = course.points.iter().copied().filter(|p| p.1.is_finite()).min_by(|a, b| a.1.total_cmp(&b.1));
            if let Some((epoch, loss)) = best {
                let text = format!("least {loss:.4} in epoch {epoch}");
                page.text(&text, [x + 22.0, y + 14.0], label.color(MUTED));
            }
        }
        panel.edges(page);
        panel.x_ticks(page, ticks, 2.0 * right, true);
        let label = Label::new(HPos::Center, VPos::Center).upright();
        page.text("loss (nats per row)", [20.0, panel.frame.y + panel.frame.h / 2.0], label);
        let at = [left + panel.frame.w / 2.0, panel.frame.bottom() + 28.0];
        page.text("epoch", at, Label::new(HPos::Center, VPos::Top));
    })
}

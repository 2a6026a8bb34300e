//! `hintflow check`

use std::cmp::Ordering;
use std::io::Write;
use std::path::PathBuf;

use crate::counted::counted;
use crate::eval::density::{ASTRONOMICAL, BEYOND, Density};
use crate::eval::normal::{Bound, Shape, Verdict};
use crate::flow::density::{Scored, Which, describe, samples_to_draw};
use crate::plan::Kind;
use crate::printable::printable;
use crate::{Flow, Result};
use clap::Args;

mod derivatives;
mod inn;

use derivatives::{Scales, central_differences, jacobian, log_abs_det};

use super::density::{SAMPLES, warn};
use super::device::DeviceArgs;
use super::judged_rows::JudgedRows;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Prints a table of what was checked and exits with 5 where a check fails. The lines that say `fits`, `poor` or
FAILED tell how well the model fits these rows: whether z is standard normal in every column, and |z|^2
chi-squared, but for chance; whether any row is more than 1,000 nats below a Gaussian fitted to the training rows;
and how far out the farthest of up to 10,000 samples is. A poor fit is no failure.

Of the table that the model was trained on, the rows that were held out are taken.

Example:
  hintflow check runs/first table.csv";

/// Exit code if a check fails.
const FAILED: u8 = 5;
/// The largest good error of the way to z and back, in deviations of a column.
const ROUND_TRIP: f64 = 1e-3;
/// Rows that are looked at.
const ROWS: usize = 100_000;
/// Rows whose whole Jacobian is looked at.
const JACOBIANS: usize = 5;

/// Check a model on some rows: is it invertible, are its densities right?
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Check {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    #[command(flatten)]
    data: model::Data,
    /// All rows of the table, those that the model was trained on too
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

/// One line of the table.
struct Line {
    what: String,
    value: f64,
    limit: Limit,
}

/// What a value is held to.
#[derive(Clone, Copy)]
enum Limit {
    /// Nothing: the line only informs.
    None,
    /// What the arithmetic must keep to.
    Error(f64),
    /// What a model that fits keeps to, and where it is no model of these rows any more.
    Fit(Bound),
}

impl Line {
    fn fails(&self) -> bool {
        self.verdict() == "FAILED"
    }

    fn verdict(&self) -> &'static str {
        match self.limit {
            Limit::None => "",
            // A value that is no number compares with nothing, and fails.
            Limit::Error(limit) if self.value.partial_cmp(&limit).is_none_or(Ordering::is_gt) => "FAILED",
            Limit::Error(_) => "ok",
            Limit::Fit(bound) => match bound.verdict(self.value) {
                Verdict::Fits => "fits",
                Verdict::Poor => "poor",
                Verdict::Failed => "FAILED",
            },
        }
    }
}

impl Check {
    pub(super) fn run(self) -> Done {
        let flow = model::load(&self.run, &self.device)?;
        let rows = JudgedRows::of_table(&flow, &self.data, self.all, ROWS)?;
        let (lines, words, density) = lines(&flow, &rows)?;
        let mut out = output::stdout();
        writeln!(out, "{:58} {:>11} {:>9}  verdict", "check", "value", "limit")?;
        for line in &lines {
            let limit = match line.limit {
                Limit::None => String::new(),
                Limit::Error(limit) | Limit::Fit(Bound { good: limit, .. }) => format!("{limit:.1e}"),
            };
            let verdict = line.verdict();
            let what = printable(&line.what);
            writeln!(out, "{}", format!("{what:58} {:>11.3e} {limit:>9}  {verdict}", line.value).trim_end())?;
        }
        writeln!(out)?;
        let of_density = density.as_ref().map(Density::in_words).unwrap_or_default();
        for line in words.iter().chain(&of_density) {
            writeln!(out, "{}", printable(line))?;
        }
        output::finish(out)?;
        density.iter().for_each(warn);
        warn_of_shape(&lines);
        Ok(if lines.iter().any(Line::fails) { FAILED } else { 0 })
    }
}

/// Says which lines do not fit, and what that means.
fn warn_of_shape(lines: &[Line]) {
    for line in lines.iter().filter(|line| line.what.starts_with(DISTANCE)) {
        let what = line.what.trim_start_matches(DISTANCE).trim();
        match line.verdict() {
            "poor" => tracing::warn!(
                "the distribution of {what} is {:.2} off: the model fits these rows, but not closely; more epochs, blocks or \
                 rows may help",
                line.value
            ),
            "FAILED" => tracing::warn!(
                "the distribution of {what} is {:.2} off: the model has not learnt such rows; its densities are not theirs",
                line.value
            ),
            _ => {}
        }
    }
}

/// How lines about the shape of z begin.
const DISTANCE: &str = "distance of";

/// What checks of some rows give: lines, the shape of z in words, and densities if the model has any.
type Checked = (Vec<Line>, Vec<String>, Option<Density>);

fn lines(flow: &Flow, looked: &JudgedRows) -> Result<Checked> {
    if !flow.spec().kind.has_density() {
        return inn::lines(flow, looked);
    }
    let JudgedRows { of, x, y, numbers } = looked;
    let (n, c) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
    let given = flow.given(y)?;
    let encoded = given.encode(x)?;
    let back = given.decode(&encoded.z)?;
    let densities = given.log_prob(x)?;
    let rows = densities.len();
    let infinite = densities.iter().filter(|d| !d.is_finite()).count();

    let scales = Scales::of(flow, x, n);
    let (worst, worst_column) = scales.round_trip(x, &back);
    // The Jacobian is by packed values, the log-determinant by the numbers that they stand for.
    let scale_of_packing: f64 = (0..n).map(|j| flow.units().packing(j).ln_scale()).sum();
    let mut log_det_error: f64 = 0.0;
    let mut differences = Vec::new();
    let looked_at = rows.min(JACOBIANS);
    for i in 0..looked_at {
        // Evenly spread over the file.
        let row = i * rows / looked_at;
        let point = &x[row * n..][..n];
        let given = flow.given(&y[row * c..][..c])?;
        let jacobian = jacobian(&given, point, flow.spec().latent_dim() as usize)?;
        let error = (log_abs_det(jacobian.clone(), n) - scale_of_packing - f64::from(encoded.log_det[row])).abs();
        log_det_error = if error.is_nan() { error } else { log_det_error.max(error) };
        let stepped = central_differences(&given, point, &scales, flow.units())?;
        differences.extend(scales.distance(&stepped, &jacobian));
    }
    differences.sort_by(f64::total_cmp);

    let log_det_size = encoded.log_det.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let name = |j: usize| flow.columns().get(j).map_or_else(|| format!("column {}", j + 1), |name| format!("`{name}`"));
    let coarse: Vec<_> = (0..n).filter(|&j| scales.coarse[j]).map(name).collect();
    if !coarse.is_empty() {
        tracing::warn!(
            "not checked by steps or by the way there and back: {}; 32-bit floats cannot tell its neighbouring values apart",
            coarse.join(", ")
        );
    }
    let checkable = coarse.len() < n && !differences.is_empty();
    if coarse.len() < n && differences.is_empty() {
        tracing::warn!("not checked by steps: every row is too close to a bound for 32-bit floats");
    }
    let line = |what: String, value, limit| Line { what, value, limit };
    let mut lines = vec![line(format!("densities that are not finite, of {rows}"), infinite as f64, Limit::Error(0.0))];
    if checkable {
        let what = format!("decode(encode(x)) - x, to the deviation; worst {}", name(worst_column));
        lines.push(line(what, worst, Limit::Error(ROUND_TRIP)));
        if flow.units().standardize.is_none() && scales.scale[worst_column] < 1e-3 && worst > ROUND_TRIP {
            tracing::warn!(
                "the model does not standardise its columns, and {} varies less than the model rounds; train with \
                 data.standardize=true",
                name(worst_column)
            );
        }
    }
    lines.push(line(
        format!("log-det - log|det of the Jacobian|, {}", counted(looked_at, "row")),
        log_det_error,
        Limit::Error(1e-3 * n as f64 + 1e-4 * f64::from(log_det_size)),
    ));
    if checkable {
        lines.push(line(
            format!("Jacobian - finite differences, to its norm, {}", counted(looked_at, "row")),
            // The median: a difference across a kink of a ReLU says nothing.
            differences[differences.len() / 2],
            Limit::Error(2e-2),
        ));
    }
    let of_lanes = match flow.spec().kind {
        Kind::Flow | Kind::Cinn | Kind::Inn => vec![("z", n, encoded.z)],
        Kind::Hint => vec![("z_y", c, flow.joint()?.encode(y, x)?.y.z), ("z_x", n, encoded.z)],
    };
    let mut words = Vec::new();
    for (name, columns, z) in of_lanes {
        shape_of(name, columns, &z, &mut lines, &mut words);
    }
    let scored = Scored { of, which: Which::Posterior, y, x, log_prob: &densities, numbers: Some(numbers) };
    let density = describe(flow, flow.training().as_ref(), scored, samples_to_draw(flow, SAMPLES))?;
    if let Some(below) = &density.gaussian {
        let none = Limit::Fit(Bound { good: 0.0, failure: 0.0 });
        lines.push(line("rows more than 1,000 nats below a Gaussian".into(), below.broken as f64, none));
    }
    if let Some(samples) = &density.samples {
        let bound = Limit::Fit(Bound { good: BEYOND, failure: ASTRONOMICAL });
        let farthest = if samples.not_finite > 0 { f64::NAN } else { samples.farthest };
        lines.push(line("how far out the farthest sample is (training rows: 1)".into(), farthest, bound));
    }
    Ok((lines, words, Some(density)))
}

/// Lines and words about the distribution of latent rows `z` of so many columns.
fn shape_of(name: &str, columns: usize, z: &[f32], lines: &mut Vec<Line>, words: &mut Vec<String>) {
    let line = |what: String, value, limit| Line { what, value, limit };
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / z.len() as f64;
    let latent_mean = mean(&mut z.iter().map(|&z| f64::from(z)));
    let deviation = mean(&mut z.iter().map(|&z| (f64::from(z) - latent_mean).powi(2))).sqrt();
    lines.push(line(format!("mean of {name} (a good fit: 0)"), latent_mean, Limit::None));
    lines.push(line(format!("deviation of {name} (a good fit: 1)"), deviation, Limit::None));
    if let Some(shape) = Shape::of(z, columns) {
        let [of_column, of_square] = shape.bounds.map(Limit::Fit);
        let worst = format!("column {} of {name}", shape.column + 1);
        lines.push(line(format!("{DISTANCE} {worst} (the worst) from a normal"), shape.distance, of_column));
        lines.push(line(format!("{DISTANCE} |{name}|^2 from chi-squared"), shape.square, of_square));
        let [low, middle, high] = shape.quantiles;
        words.push(format!(
            "{worst}: 1%, 50% and 99% quantiles {low:.2}, {middle:.2}, {high:.2} (normal: -2.33, 0, 2.33)"
        ));
        let [low, middle, high] = shape.squares;
        words.push(format!(
            "|{name}|^2: 1%, 50% and 99% quantiles {low:.2}, {middle:.2}, {high:.2} (mean of a good fit: {columns})"
        ));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_is_no_number_fails() {
        let bound = Bound { good: 1.0, failure: 2.0 };
        for limit in [Limit::Error(1.0), Limit::Fit(bound)] {
            let line = |value| Line { what: String::new(), value, limit };
            assert!(line(f64::NAN).fails() && line(2.5).fails() && !line(1.0).fails());
        }
        let verdict = |value| Line { what: String::new(), value, limit: Limit::Fit(bound) }.verdict();
        assert_eq!([1.0, 2.0, 3.0].map(verdict), ["fits", "poor", "FAILED"]);
    }
}

//! `hintflow check`

use std::cmp::Ordering;
use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hintflow::{Flow, Result};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Prints a table of what was checked and exits with 5 where a check fails.
The last two lines tell how well the model fits these rows and never fail.

Example:
  hintflow check runs/first table.csv";

/// Exit code where a check fails.
const FAILED: u8 = 5;
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
    #[command(flatten)]
    device: DeviceArgs,
}

/// One line of the table.
struct Line {
    what: String,
    value: f64,
    /// The largest good value; None for a line that only informs.
    limit: Option<f64>,
}

impl Line {
    fn fails(&self) -> bool {
        // A value that is no number compares with nothing, and fails.
        self.limit.is_some_and(|limit| self.value.partial_cmp(&limit).is_none_or(Ordering::is_gt))
    }
}

impl Check {
    pub(super) fn run(self) -> Done {
        let flow = model::load(&self.run, &self.device)?;
        let mut rows = self.data.rows_for(&flow)?;
        let dim = flow.spec().dim as usize;
        if rows.len() / dim > ROWS {
            tracing::info!("checking the first {ROWS} of {} rows", rows.len() / dim);
            rows.truncate(ROWS * dim);
        }
        let lines = lines(&flow, &rows)?;
        let mut out = output::stdout();
        writeln!(out, "{:58} {:>11} {:>9}  verdict", "check", "value", "limit")?;
        for line in &lines {
            let limit = line.limit.map_or(String::new(), |limit| format!("{limit:.1e}"));
            let verdict = match line.limit {
                Some(_) if line.fails() => "FAILED",
                Some(_) => "ok",
                None => "",
            };
            writeln!(out, "{}", format!("{:58} {:>11.3e} {limit:>9}  {verdict}", line.what, line.value).trim_end())?;
        }
        output::finish(out)?;
        Ok(if lines.iter().any(Line::fails) { FAILED } else { 0 })
    }
}

fn lines(flow: &Flow, x: &[f32]) -> Result<Vec<Line>> {
    let n = flow.spec().dim as usize;
    let encoded = flow.encode(x)?;
    let back = flow.decode(&encoded.z)?;
    let densities = flow.log_prob(x)?;
    let rows = densities.len();

    let largest = x.iter().fold(0.0f32, |m, v| m.max(v.abs())).max(f32::MIN_POSITIVE);
    let worst = x.iter().zip(&back).map(|(a, b)| f64::from((a - b).abs())).fold(0.0, |m: f64, d| {
        // `max` would drop a difference that is no number.
        if d.is_nan() { d } else { m.max(d) }
    });
    let infinite = densities.iter().filter(|d| !d.is_finite()).count();

    let mut log_det_error: f64 = 0.0;
    let mut differences = Vec::new();
    let steps = steps(flow, x, n);
    let looked_at = rows.min(JACOBIANS);
    for i in 0..looked_at {
        // Evenly spread over the file.
        let row = i * rows / looked_at;
        let point = &x[row * n..][..n];
        let jacobian = jacobian(flow, point)?;
        let error = (log_abs_det(jacobian.clone(), n) - f64::from(encoded.log_det[row])).abs();
        log_det_error = if error.is_nan() { error } else { log_det_error.max(error) };
        differences.push(distance(&central_differences(flow, point, &steps)?, &jacobian));
    }
    differences.sort_by(f64::total_cmp);

    let log_det_size = encoded.log_det.iter().fold(0.0f32, |m, v| m.max(v.abs()));
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / encoded.z.len() as f64;
    let latent_mean = mean(&mut encoded.z.iter().map(|&z| f64::from(z)));
    let latent_deviation = mean(&mut encoded.z.iter().map(|&z| (f64::from(z) - latent_mean).powi(2))).sqrt();

    let line = |what: String, value, limit| Line { what, value, limit };
    Ok(vec![
        line(format!("densities that are not finite, of {rows}"), infinite as f64, Some(0.0)),
        line("decode(encode(x)) - x, to the largest x".into(), worst / f64::from(largest), Some(1e-3)),
        line(
            format!("log-det - log|det of the Jacobian|, {looked_at} rows"),
            log_det_error,
            Some(1e-3 * n as f64 + 1e-4 * f64::from(log_det_size)),
        ),
        line(
            format!("Jacobian - finite differences, to its norm, {looked_at} rows"),
            // The median: a difference across a kink of a ReLU says nothing.
            differences[differences.len() / 2],
            Some(2e-2),
        ),
        line("mean of z (a good fit: 0)".into(), latent_mean, None),
        line("deviation of z (a good fit: 1)".into(), latent_deviation, None),
    ])
}

/// dz/dx at one row, row-major (N, N), from the backward pass.
fn jacobian(flow: &Flow, point: &[f32]) -> Result<Vec<f64>> {
    let n = point.len();
    let x = point.repeat(n);
    let mut seeds = vec![0.0; n * n];
    seeds.iter_mut().step_by(n + 1).for_each(|s| *s = 1.0);
    let gradients = flow.vjp(&x, &seeds, &vec![0.0; n])?;
    Ok(gradients.x.into_iter().map(f64::from).collect())
}

/// dz/dx at one row, row-major (N, N), from differences.
fn central_differences(flow: &Flow, point: &[f32], steps: &[f32]) -> Result<Vec<f64>> {
    let n = point.len();
    let mut around = point.repeat(2 * n);
    for j in 0..n {
        around[2 * j * n + j] += steps[j];
        around[(2 * j + 1) * n + j] -= steps[j];
    }
    let z = flow.encode(&around)?.z;
    let mut jacobian = vec![0.0; n * n];
    for j in 0..n {
        // The step as it came out in f32.
        let width = f64::from(around[2 * j * n + j]) - f64::from(around[(2 * j + 1) * n + j]);
        for i in 0..n {
            let change = f64::from(z[2 * j * n + i]) - f64::from(z[(2 * j + 1) * n + i]);
            jacobian[i * n + j] = change / width;
        }
    }
    Ok(jacobian)
}

/// Steps of the differences: a thousandth of each column's deviation, so that neither rounding nor curvature dominates.
fn steps(flow: &Flow, x: &[f32], n: usize) -> Vec<f32> {
    let rows = (x.len() / n) as f64;
    let column = |j: usize| x.iter().skip(j).step_by(n).map(|&v| f64::from(v));
    let step = |j: usize| {
        let mean = column(j).sum::<f64>() / rows;
        let deviation = (column(j).map(|v| (v - mean).powi(2)).sum::<f64>() / rows).sqrt();
        let scale = flow.standardization().map_or(1.0, |s| s.scale[j]);
        // A constant column, or a single row, has no deviation; a large value needs a step that changes it.
        let smallest = 1e-5 * mean.abs();
        (1e-3 * if deviation > 1e-6 * scale { deviation } else { scale }).max(smallest) as f32
    };
    (0..n).map(step).collect()
}

/// Norm of the difference of two matrices, to the norm of the second.
fn distance(a: &[f64], b: &[f64]) -> f64 {
    let difference = a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
    (difference / b.iter().map(|b| b * b).sum::<f64>()).sqrt()
}

/// `log |det|` of a matrix (n, n) by Gaussian elimination with row exchange.
fn log_abs_det(mut a: Vec<f64>, n: usize) -> f64 {
    let mut sum = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&i, &j| a[i * n + k].abs().total_cmp(&a[j * n + k].abs())).unwrap_or(k);
        for c in 0..n {
            a.swap(k * n + c, pivot * n + c);
        }
        let value = a[k * n + k];
        sum += value.abs().ln();
        for r in k + 1..n {
            let factor = a[r * n + k] / value;
            for c in k..n {
                a[r * n + c] -= factor * a[k * n + c];
            }
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn determinants() {
        let close = |a: f64, b: f64| (a - b).abs() < 1e-12;
        assert!(close(log_abs_det(vec![0.0, 2.0, 3.0, 0.0], 2), 6f64.ln()));
        assert!(close(log_abs_det(vec![2.0, 1.0, 0.0, 1.0, 3.0, 1.0, 0.0, 1.0, 4.0], 3), 18f64.ln()));
        assert_eq!(log_abs_det(vec![1.0, 1.0, 1.0, 1.0], 2), f64::NEG_INFINITY);
    }

    #[test]
    fn a_value_that_is_no_number_fails() {
        let line = |value| Line { what: String::new(), value, limit: Some(1.0) };
        assert!(line(f64::NAN).fails() && line(2.0).fails() && !line(1.0).fails());
    }
}

//! What `correct` weights: samples of a file with their true densities in another, or samples that are drawn here and a
//! command that knows their densities.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::counted::counted;
use crate::data::{Table, read_npy_numbers};
use crate::diagnose::latents::norm_p_value;
use crate::filter::external::Command;
use crate::filter::run::timeout;
use crate::plan::Kind;
use crate::printable::printable;
use crate::{Error, Flow, Result};

use super::filter::Arrays;
use super::layout::LayoutArgs;
use super::{interrupt, model};

/// A chance so small is none.
const OTHER: f64 = 1e-6;
/// Log-densities are rounded by no more nats than this.
const ROUNDING: f64 = 1e-3;
/// Most samples that are drawn.
const MOST: usize = 10_000_000;
/// Other observations whose posteriors take part.
const OTHERS: usize = 16;
const HEADING: &str = "Samples that are drawn here";

#[derive(Args)]
pub(super) struct ProposalArgs {
    /// Samples that the model drew
    #[arg(value_name = "SAMPLES", required_unless_present = "density", conflicts_with = "density")]
    pub(super) samples: Option<PathBuf>,
    /// The logarithm of the true density of each sample, up to a common term: a .npy array or a text, one number for each
    /// sample, -inf where it has none
    #[arg(long, value_name = "FILE", required_unless_present = "density", conflicts_with = "density")]
    pub(super) log_density: Option<PathBuf>,
    /// Command that reads samples and writes the logarithm of the true density of each
    #[arg(long, value_name = "COMMAND", help_heading = HEADING)]
    density: Option<String>,
    /// Samples that are drawn
    #[arg(short, long, value_name = "N", default_value_t = 10_000, requires = "density", help_heading = HEADING)]
    n: usize,
    /// The share of them that is drawn from posteriors of other observations, as the model has them, in case that the
    /// right one is narrower than the truth; of a `hint`
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, requires = "density", help_heading = HEADING)]
    defensive: f64,
    /// Arrays that the command reads and writes
    #[arg(long, value_enum, default_value_t = Arrays::Npy, requires = "density", help_heading = HEADING)]
    format: Arrays,
    /// Seconds that the command may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "density", help_heading = HEADING)]
    timeout: f64,
}

/// Samples with what they are weighted by.
pub(super) struct Proposal {
    pub(super) samples: Table,
    /// The true log-density of each, up to a common term.
    pub(super) target: Vec<f64>,
    /// That which they were drawn from.
    pub(super) own: Vec<f64>,
}

impl ProposalArgs {
    /// The samples for an observation y, which is empty of a `flow`.
    pub(super) fn of(&self, flow: &Flow, y: &[f32], layout: &LayoutArgs, seed: u64) -> Result<Proposal> {
        match (&self.density, &self.samples, &self.log_density) {
            (Some(command), ..) => self.drawn(command, flow, y, seed),
            (None, Some(samples), Some(log_density)) => read(flow, y, samples, log_density, layout),
            (None, ..) => Err(Error::config("SAMPLES", "and --log-density are missing")),
        }
    }

    fn drawn(&self, command: &str, flow: &Flow, y: &[f32], seed: u64) -> Result<Proposal> {
        if !(1..=MOST).contains(&self.n) {
            return Err(Error::config("-n", format!("is {}, must be from 1 to {MOST}", self.n)));
        }
        if !(0.0..1.0).contains(&self.defensive) {
            return Err(Error::config("--defensive", format!("is {}, must be from 0 to less than 1", self.defensive)));
        }
        if flow.units().is_packed() {
            let what = "reads 32-bit numbers, which do not hold the columns of this model; name files: SAMPLES and \
                        --log-density FILE";
            return Err(Error::config("--density", what));
        }
        let (rows, own) = self.mixture(flow, y, seed)?;
        let dim = flow.spec().dim as usize;
        let density = Command {
            text: command.into(),
            format: self.format.into(),
            timeout: timeout(self.timeout)?,
            stop: &interrupt::STOP,
        };
        let target = density.log_density(seed, &rows, dim)?;
        usable(&target).map_err(|what| Error::config("--density", what))?;
        Ok(Proposal { samples: Table::new(flow.columns().to_vec(), dim, rows)?, target, own })
    }

    /// Samples of the posterior and, if asked for, of others; and the density of the mixture that they are of.
    fn mixture(&self, flow: &Flow, y: &[f32], seed: u64) -> Result<(Vec<f32>, Vec<f64>)> {
        let each = (self.defensive * self.n as f64 / OTHERS as f64).round() as usize;
        let (mut rows, own) = flow.given(y)?.sample_and_log_prob(self.n - (OTHERS * each).min(self.n - 1), seed)?;
        if each == 0 {
            return Ok((rows, own.into_iter().map(f64::from).collect()));
        }
        if flow.spec().kind != Kind::Hint {
            let what =
                format!("needs a `hint`, which knows other observations; the model is a `{}`", flow.spec().kind.name());
            return Err(Error::config("--defensive", what));
        }
        let (dim, c) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
        let others = flow.joint()?.sample(OTHERS, seed)?.y;
        let first = rows.len() / dim;
        rows.extend(flow.given(&others)?.numbered_from(1).sample(each, seed)?);
        let count = rows.len() / dim;
        let parts = std::iter::once((y, first)).chain(others.chunks_exact(c).map(|y| (y, each)));
        let mut all = vec![f64::NEG_INFINITY; count];
        for (y, part) in parts {
            let share = (part as f64 / count as f64).ln();
            for (sum, density) in all.iter_mut().zip(flow.given(y)?.log_prob(&rows)?) {
                *sum = log_sum(*sum, share + f64::from(density));
            }
        }
        Ok((rows, all))
    }
}

/// `ln(e^a + e^b)`
fn log_sum(a: f64, b: f64) -> f64 {
    let (high, low) = if a > b { (a, b) } else { (b, a) };
    if low == f64::NEG_INFINITY { high } else { high + (low - high).exp().ln_1p() }
}

fn read(flow: &Flow, y: &[f32], path: &Path, log_density: &Path, layout: &LayoutArgs) -> Result<Proposal> {
    let samples = model::samples(flow, path, layout)?;
    // Not as a table, whose values are float32: differences of large numbers matter.
    let target = numbers(log_density)?;
    if target.len() != samples.rows {
        let what = format!(
            "holds {}; one log-density is needed for each of {}",
            counted(target.len(), "number"),
            counted(samples.rows, "sample")
        );
        return Err(Error::format(log_density, what));
    }
    usable(&target).map_err(|what| Error::format(log_density, what))?;
    let own = flow.given(y)?.log_prob(samples.values())?;
    if let Some(row) = own.iter().position(|d| !d.is_finite()) {
        let what = format!("the model has no density for row {}: it did not draw these samples", row + 1);
        return Err(Error::format(path, what));
    }
    let z = flow.given(y)?.encode(samples.values())?.z;
    if norm_p_value(&z, samples.dim()) < OTHER {
        tracing::warn!(
            "{} does not look like samples that this model drew for this observation: z of its rows is not normal",
            path.display()
        );
    }
    Ok(Proposal { samples, target, own: own.into_iter().map(f64::from).collect() })
}

/// Whether log-densities can weight samples, or what is wrong with them.
fn usable(values: &[f64]) -> Result<(), String> {
    if let Some(row) = values.iter().position(|v| v.is_nan() || *v == f64::INFINITY) {
        return Err(format!("row {} is {}, which is no log-density", row + 1, values[row]));
    }
    let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if greatest == f64::NEG_INFINITY {
        return Err("no sample has a density: every log-density is -inf".into());
    }
    if greatest.abs() * f64::EPSILON > ROUNDING {
        return Err(format!(
            "the greatest log-density is {greatest:e}, and numbers of this size have no digits for differences of a few nats, \
             which weights are made of; leave out a common term, or subtract the greatest, before they are written"
        ));
    }
    Ok(())
}

/// The numbers of a .npy array of one row or column, or of a text with one in each line, after a line of names or none.
fn numbers(path: &Path) -> Result<Vec<f64>> {
    if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("npy")) {
        return read_npy_numbers(path);
    }
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    let mut numbers = Vec::new();
    for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        match line.trim().parse() {
            Ok(value) => numbers.push(value),
            Err(_) if number == 1 => {}
            Err(_) => {
                return Err(Error::format(
                    path,
                    format!("line {number} is `{}`, which is no number", printable(line.trim())),
                ));
            }
        }
    }
    Ok(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logarithms_of_sums_keep_their_digits() {
        approx::assert_abs_diff_eq!(log_sum(-1000.0, -1000.0), -1000.0 + 2f64.ln(), epsilon = 1e-12);
        assert_eq!(log_sum(f64::NEG_INFINITY, -3.0), -3.0);
        assert_eq!(log_sum(5.0, f64::NEG_INFINITY), 5.0);
        assert_eq!(log_sum(f64::NEG_INFINITY, f64::NEG_INFINITY), f64::NEG_INFINITY);
    }
}

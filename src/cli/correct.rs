//! `hintflow correct`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::counted::counted;
use crate::data::{Table, check_table_output, read_npy_numbers, write_table};
use crate::diagnose::importance::{EVEN, Tail, Weighted};
use crate::diagnose::latents::norm_p_value;
use crate::plan::Kind;
use crate::printable::printable;
use crate::rng::{Counter, Stream};
use crate::{Error, Flow, Overwrite, Result};

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::{Done, model, output, trust};

const AFTER_HELP: &str = "\
If the true density is known up to a factor (a likelihood times a prior), weighted samples of a model stand for it, the more exactly
the more they are: each gets the weight p(x) / q(x), q the model's own density. The largest weights are smoothed (Pareto-smoothed importance
sampling); the shape k of their tail says whether they can be trusted, and the command ends with 5 if they cannot.

The integral of the density, of likelihood times prior the evidence, comes with its standard error.

Example:
  hintflow sample runs/posterior --given observed.csv -n 10000 -o drawn.npy
  python3 my_density.py drawn.npy log_density.npy          # log p(observed | x) + log p(x) of each row
  hintflow correct runs/posterior drawn.npy --given observed.csv --log-density log_density.npy -o corrected.csv";

/// Exit code where weights cannot be trusted.
const FAILED: u8 = 5;
/// A chance so small is none.
const OTHER: f64 = 1e-6;
/// Log-densities are rounded by no more nats than this.
const ROUNDING: f64 = 1e-3;
/// Most samples that are drawn from weighted ones.
const MOST: usize = 1_000_000_000;
/// The last column of what is written.
const WEIGHT: &str = "weight";

/// Weight samples of a model so that they stand for a density that is known up to a factor
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Correct {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Samples that the model drew
    #[arg(value_name = "SAMPLES")]
    samples: PathBuf,
    /// The observation that they were drawn for, of a conditional model: a table of one row
    #[arg(long, value_name = "FILE")]
    given: Option<PathBuf>,
    /// The logarithm of the true density of each sample, up to a common term: a .npy array or a text, one number for each
    /// sample, -inf where it has none
    #[arg(long, value_name = "FILE")]
    log_density: PathBuf,
    /// Draw so many samples of equal weights from the weighted ones
    #[arg(long, value_name = "N", requires = "output")]
    resample: Option<usize>,
    /// Seed of this
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Table to write, .npy or .csv: samples, and their weights as a last column unless they are resampled
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Correct {
    pub(super) fn run(self) -> Done {
        if let Some(path) = &self.output {
            check_table_output(path, Overwrite::allowed_if(self.force))?;
            let inputs = [Some(&self.samples), Some(&self.log_density), self.given.as_ref()];
            output::distinct(&[("-o", path)], &inputs.into_iter().flatten().map(PathBuf::as_path).collect::<Vec<_>>())?;
        }
        if let Some(count) = self.resample.filter(|count| !(1..=MOST).contains(count)) {
            return Err(Error::config("--resample", format!("is {count}, must be from 1 to {MOST}")).into());
        }
        let flow = model::load(&self.run, &self.device)?;
        let y = self.observation(&flow)?;
        let samples = model::samples(&flow, &self.samples, &self.layout)?;
        let target = self.target(samples.rows)?;
        let own = flow.given(&y)?.log_prob(samples.values())?;
        if let Some(row) = own.iter().position(|d| !d.is_finite()) {
            let what = format!("the model has no density for row {}: it did not draw these samples", row + 1);
            return Err(Error::format(&self.samples, what).into());
        }
        let z = flow.given(&y)?.encode(samples.values())?.z;
        if norm_p_value(&z, samples.dim()) < OTHER {
            tracing::warn!(
                "{} does not look like samples that this model drew for this observation: z of its rows is not normal",
                self.samples.display()
            );
        }
        let weighted = Weighted::of(&target, &own.iter().map(|&d| d.into()).collect::<Vec<f64>>());
        if let Some(path) = &self.output {
            self.write(path, &flow, &samples, &weighted)?;
        }
        let share = 100.0 * weighted.effective_samples / samples.rows as f64;
        let tail = match weighted.tail {
            Tail::Even => format!("no weight is more than {EVEN} times the mean"),
            Tail::Pareto(k) => {
                format!("shape k of the largest weights {k:.2}, good up to {:.2}", weighted.largest_good_k)
            }
            Tail::Unknown => "too few samples to tell whether the weights are good".into(),
        };
        output::line(&format!(
            "{}, as good as {:.0} of equal weights ({share:.1} %)\nlog-evidence {:.4} +- {:.4}\n{tail}",
            counted(samples.rows, "sample"),
            weighted.effective_samples,
            weighted.log_evidence,
            weighted.log_evidence_error
        ))?;
        if !weighted.is_good() {
            tracing::warn!(
                "these weights are not to be trusted, nor is the log-evidence: a few samples have most of the weight, or there \
                 are too few to tell. Draw more samples, or train the model longer or on more rows"
            );
            return Ok(FAILED);
        }
        Ok(0)
    }

    fn observation(&self, flow: &Flow) -> Result<Vec<f32>> {
        match &self.given {
            None if flow.spec().kind == Kind::Flow => Ok(Vec::new()),
            None => Err(model::needs_conditions(flow)),
            Some(path) => {
                let table = model::observations(flow, path, &self.layout)?;
                if table.rows != 1 {
                    let rows = counted(table.rows, "row");
                    let what = format!("has {rows}; samples of one observation are corrected at a time");
                    return Err(Error::config(model::GIVEN, what));
                }
                trust::tell(flow, &table)?;
                Ok(table.into_values())
            }
        }
    }

    /// The log-density of each of so many samples.
    fn target(&self, rows: usize) -> Result<Vec<f64>> {
        // Not as a table, whose values are float32: differences of large numbers matter.
        let values = numbers(&self.log_density)?;
        let fails = |what: String| Err(Error::format(&self.log_density, what));
        if values.len() != rows {
            return fails(format!(
                "holds {}; one log-density is needed for each of {}",
                counted(values.len(), "number"),
                counted(rows, "sample")
            ));
        }
        if let Some(row) = values.iter().position(|v| v.is_nan() || *v == f64::INFINITY) {
            return fails(format!("row {} is {}, which is no log-density", row + 1, values[row]));
        }
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        if greatest == f64::NEG_INFINITY {
            return fails("no sample has a density: every log-density is -inf".into());
        }
        if greatest.abs() * f64::EPSILON > ROUNDING {
            return fails(format!(
                "the greatest log-density is {greatest:e}, and numbers of this size have no digits for differences of a few \
                 nats, which weights are made of; leave out a common term, or subtract the greatest, before they are written"
            ));
        }
        Ok(values)
    }

    fn write(&self, path: &Path, flow: &Flow, samples: &Table, weighted: &Weighted) -> Result<()> {
        let overwrite = Overwrite::allowed_if(self.force);
        let dim = samples.dim();
        match self.resample {
            Some(count) => {
                let at = Counter::new(self.seed, Stream::Resampling, 0, 0).uniform(0.0, 1.0);
                let rows = weighted.resample(count, at);
                let values: Vec<f32> = rows.into_iter().flat_map(|row| samples.row(row)).copied().collect();
                write_table(path, &output::columns(flow), count, dim, &values, overwrite)
            }
            None => {
                let rows = samples.iter_rows().zip(&weighted.weights);
                let values: Vec<f32> = rows.flat_map(|(row, w)| row.iter().copied().chain([*w as f32])).collect();
                let columns = output::columns(flow).before(WEIGHT, dim);
                write_table(path, &columns, samples.rows, dim + 1, &values, overwrite)
            }
        }
    }
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

//! `hintflow correct`

use std::path::PathBuf;

use clap::Args;

use crate::data::{Table, check_table_output, write_table};
use crate::diagnose::importance::{EVEN, Tail, Weighted};
use crate::plan::Kind;
use crate::rng::{Counter, Stream};
use crate::{Error, Flow, Overwrite, Result};

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
If the true density is known up to a factor (a likelihood times a prior), samples of a model can stand for it exactly: each
gets the weight p(x) / q(x), q the model's own density. The largest weights are smoothed (Pareto-smoothed importance
sampling); the shape k of their tail says whether they can be trusted, and the command ends with 5 if they cannot.

The integral of the density, of likelihood times prior the evidence, comes with its standard error.

Example:
  hintflow sample runs/posterior --given observed.csv -n 10000 -o drawn.npy
  python3 my_density.py drawn.npy log_density.npy          # log p(observed | x) + log p(x) of each row
  hintflow correct runs/posterior drawn.npy --given observed.csv --log-density log_density.npy -o corrected.csv";

/// Exit code where weights cannot be trusted.
const FAILED: u8 = 5;
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
    /// The logarithm of the true density of each sample, up to a common term: a table of one column (-1e30 where there is
    /// none)
    #[arg(long, value_name = "FILE")]
    log_density: PathBuf,
    /// Draw so many samples of equal weights from the weighted ones
    #[arg(long, value_name = "N")]
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
        if self.resample == Some(0) {
            return Err(Error::config("--resample", "0 samples were asked for; take at least 1").into());
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
            "{} samples, as good as {:.0} of equal weights ({share:.1} %)\nlog-evidence {:.4} +- {:.4}\n{tail}",
            samples.rows, weighted.effective_samples, weighted.log_evidence, weighted.log_evidence_error
        ))?;
        if !weighted.is_good() {
            tracing::warn!(
                "these weights are not to be trusted, nor is the log-evidence: a few samples have most of the weight. The \
                 model is too far from the density; draw more samples, or train it longer or on more rows"
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
                    let what = format!("has {} rows; samples of one observation are corrected at a time", table.rows);
                    return Err(Error::config(model::GIVEN, what));
                }
                Ok(table.into_values())
            }
        }
    }

    /// The log-density of each of so many samples.
    fn target(&self, rows: usize) -> Result<Vec<f64>> {
        let table = Table::read_with(&self.log_density, &self.layout.settings())?;
        // An array of one dimension is one row or one column.
        if table.values().len() != rows || (table.dim() != 1 && table.rows != 1) {
            let what = format!(
                "{} x {} values; one log-density is needed for each of {rows} samples",
                table.rows,
                table.dim()
            );
            return Err(Error::format(&self.log_density, what));
        }
        Ok(table.values().iter().map(|&v| v.into()).collect())
    }

    fn write(&self, path: &std::path::Path, flow: &Flow, samples: &Table, weighted: &Weighted) -> Result<()> {
        let overwrite = Overwrite::allowed_if(self.force);
        let dim = samples.dim();
        match self.resample {
            Some(count) => {
                let at = Counter::new(self.seed, Stream::Resampling, 0, 0).uniform(0.0, 1.0);
                let rows = weighted.resample(count, at);
                let values: Vec<f32> = rows.into_iter().flat_map(|row| samples.row(row)).copied().collect();
                write_table(path, flow.columns(), count, dim, &values, overwrite)
            }
            None => {
                let rows = samples.iter_rows().zip(&weighted.weights);
                let values: Vec<f32> = rows.flat_map(|(row, w)| row.iter().copied().chain([*w as f32])).collect();
                let unnamed = || (1..=dim).map(|i| format!("x{i}")).collect();
                let mut names = if flow.columns().is_empty() { unnamed() } else { flow.columns().to_vec() };
                names.push(WEIGHT.into());
                write_table(path, &names, samples.rows, dim + 1, &values, overwrite)
            }
        }
    }
}

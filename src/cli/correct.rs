//! `hintflow correct`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::counted::counted;
use crate::data::{Table, check_table_output, write_table};
use crate::diagnose::importance::{EVEN, Tail, Weighted};
use crate::plan::Kind;
use crate::rng::{Counter, Stream};
use crate::{Error, Flow, Overwrite, Result};

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::proposal::{Proposal, ProposalArgs};
use super::{Done, model, output, trust};

const AFTER_HELP: &str = "\
If the true density is known up to a factor (a likelihood times a prior), weighted samples of a model stand for it, the more exactly
the more they are: each gets the weight p(x) / q(x), q the model's own density. The largest weights are smoothed (Pareto-smoothed importance
sampling); the shape k of their tail says whether they can be trusted, and the command ends with 5 if they cannot.

The integral of the density, of likelihood times prior the evidence, comes with its standard error.

With --density, samples are drawn here. The command reads them (rows, N) from standard input as a .npy array of float32, and
writes one log-density for each to standard output, as an array of float64.

Examples:
  hintflow correct runs/posterior --given observed.csv --density \"python3 my_density.py\" -o corrected.csv
  hintflow sample runs/posterior --given observed.csv -n 10000 -o drawn.npy
  python3 my_density.py drawn.npy log_density.npy          # log p(observed | x) + log p(x) of each row
  hintflow correct runs/posterior drawn.npy --given observed.csv --log-density log_density.npy -o corrected.csv";

/// Exit code if weights cannot be trusted.
const FAILED: u8 = 5;
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
    #[command(flatten)]
    proposal: ProposalArgs,
    /// The observation that samples are drawn for, of a conditional model: a table of one row
    #[arg(long, value_name = "FILE")]
    given: Option<PathBuf>,
    /// Draw so many samples of equal weights from the weighted ones
    #[arg(long, value_name = "N", requires = "output")]
    resample: Option<usize>,
    /// Seed of all that is drawn
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
            let inputs = [&self.proposal.samples, &self.proposal.log_density, &self.given];
            output::distinct(&[("-o", path)], &inputs.into_iter().flatten().map(PathBuf::as_path).collect::<Vec<_>>())?;
        }
        if let Some(count) = self.resample.filter(|count| !(1..=MOST).contains(count)) {
            return Err(Error::config("--resample", format!("is {count}, must be from 1 to {MOST}")).into());
        }
        let flow = model::load(&self.run, &self.device)?;
        let y = self.observation(&flow)?;
        let Proposal { samples, target, own } = self.proposal.of(&flow, &y, &self.layout, self.seed)?;
        let weighted = Weighted::of(&target, &own);
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

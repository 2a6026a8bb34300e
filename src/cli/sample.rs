//! `hintflow sample`

use std::path::PathBuf;

use crate::Overwrite;
use crate::data::files::{Columns, with_group};
use crate::data::{Table, check_table_output, side_by_side, write_groups, write_table};
use crate::memory;
use crate::plan::Kind;
use crate::{Error, Flow, Result};
use clap::Args;

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::{Done, model, output, trust};

const AFTER_HELP: &str = "\
Examples:
  hintflow sample runs/first -n 1000 -o samples.npy
  hintflow sample model.safetensors -n 5 --seed 7       CSV on stdout
  hintflow sample runs/posterior --given seen.csv -n 1000 -o theta.csv

With --given, -n samples are drawn for each row of the file, those of a row together. Where it has several rows, a CSV
says in its first column `observation` which one, from 1, and a .npy is an array (observations, samples, columns).
A `hint` without --given draws conditions and columns together.

Sample number i of a seed (of the k-th observation) is the same whatever -n is.";

/// Samples drawn at a time.
const PIECE: usize = 100_000;

/// Draw samples from a model
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Sample {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Number of samples
    #[arg(short, value_name = "N", default_value_t = 1000)]
    n: usize,
    /// Observations: a table of conditions, for a conditional model
    #[arg(long, value_name = "FILE")]
    given: Option<PathBuf>,
    /// Seed of the latent vectors
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Table to write: .npy or .csv [default: CSV on stdout]
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

impl Sample {
    pub(super) fn run(self) -> Done {
        if self.n == 0 {
            return Err(Error::config("-n", "0 samples were asked for; take at least 1").into());
        }
        if let Some(path) = &self.output {
            check_table_output(path, Overwrite::allowed_if(self.force))?;
            output::distinct(&[("-o", path)], &self.given.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        }
        let flow = model::load(&self.run, &self.device)?;
        match (&self.given, flow.spec().kind) {
            (Some(path), _) => self.posterior(&flow, &model::observations(&flow, path, &self.layout)?),
            (None, Kind::Cinn | Kind::Inn) => Err(model::needs_conditions(&flow).into()),
            (None, Kind::Flow) => {
                let draw = |n, first| flow.sample_from(n, self.seed, first as u64);
                self.write(&output::columns(&flow), &self.draw(self.n, flow.spec().dim, draw)?, flow.spec().dim)
            }
            (None, Kind::Hint) => {
                let draw = |n, first| {
                    let lanes = flow.joint()?.sample_from(n, self.seed, first as u64)?;
                    Ok(side_by_side(&lanes.y, &lanes.x, n))
                };
                let dim = flow.spec().latent_dim();
                self.write(&output::joint_columns(&flow), &self.draw(self.n, dim, draw)?, dim)
            }
        }
    }

    /// Samples of x for each observation.
    fn posterior(&self, flow: &Flow, observations: &Table) -> Done {
        trust::tell(flow, observations)?;
        let given = flow.given(observations.values())?;
        let Some(rows) = self.n.checked_mul(observations.rows) else { return Err(self.too_many().into()) };
        let dim = flow.spec().dim;
        let samples = self.draw(rows, dim, |n, first| given.sample_rows(self.n, self.seed, first, n))?;
        if observations.rows == 1 {
            return self.write(&output::columns(flow), &samples, dim);
        }
        output::warn_not_finite("samples", dim as usize, &samples);
        let (dim, columns) = (dim as usize, output::columns(flow));
        let shape = [observations.rows, self.n, dim];
        match &self.output {
            Some(path) => write_groups(path, GROUP, &columns, shape, &samples, Overwrite::allowed_if(self.force))?,
            None => output::csv(&columns.behind(GROUP, dim), dim + 1, &with_group(self.n, dim, &samples))?,
        }
        Ok(0)
    }

    /// Draws `rows` rows of `dim` columns in pieces: `draw` is told how many, and which is the first.
    fn draw(&self, rows: usize, dim: u32, draw: impl Fn(usize, usize) -> Result<Vec<f32>>) -> Result<Vec<f32>> {
        let count = rows.saturating_mul(dim as usize);
        let mut samples: Vec<f32> = memory::reserved(count, String::new).map_err(|_| self.too_many())?;
        for first in (0..rows).step_by(PIECE) {
            samples.extend(draw(PIECE.min(rows - first), first)?);
        }
        Ok(samples)
    }

    fn too_many(&self) -> Error {
        Error::config("-n", format!("is {}: so many samples do not fit in memory; ask for fewer", self.n))
    }

    fn write(&self, columns: &Columns, samples: &[f32], dim: u32) -> Done {
        let dim = dim as usize;
        output::warn_not_finite("samples", dim, samples);
        match &self.output {
            Some(path) => {
                write_table(path, columns, samples.len() / dim, dim, samples, Overwrite::allowed_if(self.force))?
            }
            None => output::csv(columns, dim, samples)?,
        }
        Ok(0)
    }
}

/// Name of the column that says which observation a sample belongs to.
const GROUP: &str = "observation";

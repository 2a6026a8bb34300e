//! `hintflow sample`

use std::path::PathBuf;

use clap::Args;
use hintflow::Error;
use hintflow::data::{check_table_output, write_table};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Examples:
  hintflow sample runs/first -n 1000 -o samples.npy
  hintflow sample model.safetensors -n 5 --seed 7       CSV on stdout

Sample number i of a seed is the same whatever -n is.";

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
    device: DeviceArgs,
}

impl Sample {
    pub(super) fn run(self) -> Done {
        if self.n == 0 {
            return Err(Error::config("-n", "0 samples were asked for; take at least 1").into());
        }
        if let Some(path) = &self.output {
            check_table_output(path, self.force)?;
        }
        let flow = model::load(&self.run, &self.device)?;
        let dim = flow.spec().dim as usize;
        let mut samples: Vec<f32> = Vec::new();
        let reserved = self.n.checked_mul(dim).map(|count| samples.try_reserve_exact(count));
        if !matches!(reserved, Some(Ok(()))) {
            return Err(Error::config("-n", format!("{} samples do not fit in memory; ask for fewer", self.n)).into());
        }
        for first in (0..self.n).step_by(PIECE) {
            samples.extend(flow.sample_from(PIECE.min(self.n - first), self.seed, first as u64)?);
        }
        output::warn_not_finite("samples", dim, &samples);
        match &self.output {
            Some(path) => write_table(path, flow.columns(), self.n, dim, &samples, self.force)?,
            None => output::csv(flow.columns(), dim, &samples)?,
        }
        Ok(0)
    }
}

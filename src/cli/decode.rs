//! `hintflow decode`

use std::path::PathBuf;

use clap::Args;
use hintflow::data::{check_table_output, write_table};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Example:
  hintflow decode runs/first latent.npy -o rows.csv";

/// Map latent vectors to rows: z to x
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Decode {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Latent vectors, as `encode` writes them: .npy or .csv
    latent: PathBuf,
    /// Rows: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Decode {
    pub(super) fn run(self) -> Done {
        check_table_output(&self.output, self.force)?;
        output::distinct(&[("-o", &self.output)], &[&self.latent])?;
        let flow = model::load(&self.run, &self.device)?;
        let rows = flow.decode(&model::latent_rows_for(&flow, &self.latent)?)?;
        let dim = flow.spec().dim as usize;
        output::warn_not_finite("rows", dim, &rows);
        write_table(&self.output, flow.columns(), rows.len() / dim, dim, &rows, self.force)?;
        Ok(0)
    }
}

//! `hintflow encode`

use std::path::PathBuf;

use clap::Args;
use hintflow::data::{check_table_output, write_table, write_vector};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Example:
  hintflow encode runs/first table.csv -o latent.npy --log-det logdet.npy";

/// Map rows to latent vectors: x to z
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Encode {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    #[command(flatten)]
    data: model::Data,
    /// Latent vectors: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write log |det dz/dx| of each row, in nats and the units of the data
    #[arg(long, value_name = "FILE")]
    log_det: Option<PathBuf>,
    /// Overwrite the files
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Encode {
    pub(super) fn run(self) -> Done {
        check_table_output(&self.output, self.force)?;
        if let Some(path) = &self.log_det {
            check_table_output(path, self.force)?;
        }
        let log_det = self.log_det.as_deref().map(|path| ("--log-det", path));
        let outputs: Vec<_> = std::iter::once(("-o", self.output.as_path())).chain(log_det).collect();
        output::distinct(&outputs, &[&self.data.path])?;
        let flow = model::load(&self.run, &self.device)?;
        let encoded = flow.encode(&self.data.rows_for(&flow)?)?;
        let (rows, dim) = (encoded.log_det.len(), flow.spec().dim as usize);
        output::warn_not_finite("latent vectors", dim, &encoded.z);
        if self.log_det.is_some() {
            output::warn_not_finite("log-determinants", 1, &encoded.log_det);
        }
        let names: Vec<_> = (1..=dim).map(|i| format!("z{i}")).collect();
        write_table(&self.output, &names, rows, dim, &encoded.z, self.force)?;
        if let Some(path) = &self.log_det {
            write_vector(path, "log_det", &encoded.log_det, self.force)?;
        }
        Ok(0)
    }
}

//! `hintflow log-prob`

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use hintflow::data::{check_table_output, write_table};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Without -o, stdout carries one log-density per row. With -o, the file does, and stdout carries a summary.
Log-densities are in nats, in the units of the data.

Examples:
  hintflow log-prob runs/first table.csv
  hintflow log-prob runs/first table.csv -o scores.csv";

/// Log-density of each row of a table
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct LogProb {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Table: .csv or .npy
    data: PathBuf,
    /// Table to write: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Overwrite the file
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl LogProb {
    pub(super) fn run(self) -> Done {
        if let Some(path) = &self.output {
            check_table_output(path, self.force)?;
            output::distinct(&[("-o", path)], &[&self.data])?;
        }
        let flow = model::load(&self.run, &self.device)?;
        let densities = flow.log_prob(&model::rows_for(&flow, &self.data)?)?;
        let summary = summary(&densities);
        match &self.output {
            Some(path) => {
                write_table(path, &["log_prob".into()], densities.len(), 1, &densities, self.force)?;
                output::line(&summary)?;
            }
            None => {
                let mut out = output::stdout();
                for density in &densities {
                    writeln!(out, "{density}")?;
                }
                output::finish(out)?;
                tracing::info!("{summary}");
            }
        }
        Ok(0)
    }
}

fn summary(densities: &[f32]) -> String {
    let mean = densities.iter().map(|&d| f64::from(d)).sum::<f64>() / densities.len() as f64;
    let low = densities.iter().copied().fold(f32::INFINITY, f32::min);
    let high = densities.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    format!("rows {}  mean {mean:.6}  min {low:.6}  max {high:.6}", densities.len())
}

//! `hintflow log-prob`

use std::io::Write;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use hintflow::data::{check_table_output, write_vector};
use hintflow::plan::Kind;
use hintflow::{Error, Flow, Result};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Without -o, stdout carries one log-density per row. With -o, the file does, and stdout carries a summary.
Log-densities are in nats, in the units of the data.

Examples:
  hintflow log-prob runs/first table.csv
  hintflow log-prob runs/first table.csv -o scores.csv
  hintflow log-prob runs/posterior theta.npy --given x.npy
  hintflow log-prob runs/posterior x.npy --of evidence";

/// Densities that a `hint` knows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Of {
    /// log p(x | y)
    Posterior,
    /// log p(y, x)
    Joint,
    /// log p(y)
    Evidence,
}

/// Log-density of each row of a table
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct LogProb {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    #[command(flatten)]
    data: model::Data,
    /// Of a `hint`, which density: that of the columns given the conditions, of both, or of the conditions alone (then DATA
    /// holds conditions) [default: posterior]
    #[arg(long, value_name = "WHICH")]
    of: Option<Of>,
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
            output::distinct(&[("-o", path)], &self.data.inputs())?;
        }
        let flow = model::load(&self.run, &self.device)?;
        let densities = self.densities(&flow)?;
        let summary = summary(&densities);
        output::warn_not_finite("log-densities", 1, &densities);
        match &self.output {
            Some(path) => {
                write_vector(path, "log_prob", &densities, self.force)?;
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

impl LogProb {
    fn densities(&self, flow: &Flow) -> Result<Vec<f32>> {
        let kind = flow.spec().kind;
        if let (Some(of @ (Of::Joint | Of::Evidence)), Kind::Flow | Kind::Cinn) = (self.of, kind) {
            let what = format!("is {of:?}, but the model is a `{}`; only a `hint` knows it", kind.name());
            return Err(Error::config("--of", what.to_lowercase()));
        }
        match self.of.unwrap_or(Of::Posterior) {
            Of::Posterior => {
                let rows = self.data.rows_for(flow)?;
                flow.given(&rows.y)?.log_prob(&rows.x)
            }
            Of::Joint => {
                let rows = self.data.rows_for(flow)?;
                let count = rows.x.len() / flow.spec().dim as usize;
                flow.log_prob_joint(&rows.y_for(count, flow.spec().cond_dim as usize), &rows.x)
            }
            Of::Evidence => flow.log_evidence(self.data.conditions_for(flow)?.values()),
        }
    }
}

/// Mean and range, of the rows whose density is a number.
fn summary(densities: &[f32]) -> String {
    let finite: Vec<f32> = densities.iter().copied().filter(|d| d.is_finite()).collect();
    let rows = match densities.len() {
        rows if rows == finite.len() => format!("rows {rows}"),
        rows => format!("rows {rows}  finite {}", finite.len()),
    };
    if finite.is_empty() {
        return rows;
    }
    let mean = finite.iter().map(|&d| f64::from(d)).sum::<f64>() / finite.len() as f64;
    let low = finite.iter().copied().fold(f32::INFINITY, f32::min);
    let high = finite.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    format!("{rows}  mean {mean:.6}  min {low:.6}  max {high:.6}")
}

#[cfg(test)]
mod tests {
    use super::summary;

    #[test]
    fn only_finite_densities_are_summed_up() {
        assert_eq!(summary(&[1.0, 3.0]), "rows 2  mean 2.000000  min 1.000000  max 3.000000");
        let some = summary(&[1.0, f32::NEG_INFINITY, f32::NAN]);
        assert_eq!(some, "rows 3  finite 1  mean 1.000000  min 1.000000  max 1.000000");
        assert_eq!(summary(&[f32::NAN]), "rows 1  finite 0");
    }
}

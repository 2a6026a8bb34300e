//! `hintflow log-prob`

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use hintflow::data::{Table, Units, check_table_output, write_vector};
use hintflow::plan::Kind;
use hintflow::{Error, Flow, Result};

use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Without -o, stdout carries one log-density per row. With -o, the file does, and stdout carries a summary.
Log-densities are in nats, in the units of the data; outside of the bounds of a column they are -inf.

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
    /// Of a `hint`, which density: that of the columns given the conditions, of both, or of the conditions alone (then
    /// DATA holds conditions) [default: posterior]
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
        let (mut densities, outside) = self.densities(&flow)?;
        output::warn_not_finite("log-densities", 1, &densities);
        outside.into_iter().for_each(|row| densities[row] = f32::NEG_INFINITY);
        let summary = summary(&densities);
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
    /// Log-densities of the rows, and the numbers, from 0, of those outside of the bounds that the model knows: theirs
    /// mean nothing.
    fn densities(&self, flow: &Flow) -> Result<(Vec<f32>, Vec<usize>)> {
        let kind = flow.spec().kind;
        if let (Some(of @ (Of::Joint | Of::Evidence)), Kind::Flow | Kind::Cinn) = (self.of, kind) {
            let what = format!("is {of:?}, but the model is a `{}`; only a `hint` knows it", kind.name());
            return Err(Error::config("--of", what.to_lowercase()));
        }
        let of_y = flow.units_of_conditions();
        if let Some(Of::Evidence) = self.of {
            let (y, outside) = moved_inside(of_y, self.data.conditions_for(flow)?, &self.data.path);
            return Ok((flow.log_evidence(&y)?, outside));
        }
        let model::Tables { x, y } = self.data.tables_for(flow)?;
        let rows = x.rows;
        let (x, mut outside) = moved_inside(flow.units(), x, &self.data.path);
        match (self.of, y) {
            (Some(Of::Joint), Some(y)) => {
                let (y, also) = moved_inside(of_y, y, self.data.path_of_y());
                let c = flow.spec().cond_dim as usize;
                outside.extend(if y.len() == c && !also.is_empty() { (0..rows).collect() } else { also });
                Ok((flow.log_prob_joint(&model::one_each(&y, rows, c), &x)?, outside))
            }
            (_, y) => {
                // Given what cannot be, there is no density.
                self.data.possible(flow, y.as_ref())?;
                let y = y.map(Table::into_values).unwrap_or_default();
                Ok((flow.given(&y)?.log_prob(&x)?, outside))
            }
        }
    }
}

/// The values of a table, with usual ones in the rows that are outside of the bounds, and the numbers of these rows
/// from 0. Warns of them.
fn moved_inside(units: &Units, table: Table, path: &Path) -> (Vec<f32>, Vec<usize>) {
    let numbers = table.file_numbers().to_vec();
    let (rows, dim) = (table.rows, table.dim());
    let mut values = table.into_values();
    let (mut outside, mut first) = (Vec::new(), None);
    let usual = units.outer(vec![0.0; dim]);
    for (i, row) in values.chunks_exact_mut(dim).enumerate() {
        if let Some(mut what) = units.outside(row) {
            what.row = i + 1;
            first.get_or_insert(what);
            outside.push(i);
            row.copy_from_slice(&usual);
        }
    }
    if let Some(first) = first {
        tracing::warn!(
            "{} of {rows} rows are outside of the bounds that the model knows: their density is 0, its logarithm -inf. The \
             first: {}",
            outside.len(),
            first.in_file(path, &numbers)
        );
    }
    (values, outside)
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

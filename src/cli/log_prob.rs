//! `hintflow log-prob`

use std::io::Write;
use std::path::{Path, PathBuf};

use crate::Overwrite;
use crate::counted::{are, counted, have};
use crate::data::files::Far;
use crate::data::{Table, Units, check_table_output, write_vector};
use crate::flow::density::{Scored, Which, describe, samples_to_draw};
use crate::plan::Kind;
use crate::{Error, Flow, Result};
use clap::{Args, ValueEnum};

use super::density::SAMPLES;
use super::device::DeviceArgs;
use super::{Done, model, output};

const AFTER_HELP: &str = "\
Without -o, stdout carries one log-density per row. With -o, the file does, and stdout carries a summary: mean and
median, the lowest rows by number, and, where the model remembers its training rows, how many rows are more than 10 nats
below a Gaussian fitted to those, and how many of up to 10,000 samples lie far outside of them.
Log-densities are in nats, in the units of the data; outside of the bounds of a column they are -inf.

Examples:
  hintflow log-prob runs/first table.csv
  hintflow log-prob runs/first table.csv -o scores.csv
  hintflow log-prob runs/posterior parameters.npy --given observations.npy
  hintflow log-prob runs/posterior observations.npy --of evidence";

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
            check_table_output(path, Overwrite::allowed_if(self.force))?;
            output::distinct(&[("-o", path)], &self.data.inputs())?;
        }
        let flow = model::load(&self.run, &self.device)?;
        let Scores { which, x, y, log_prob, outside } = self.scores(&flow)?;
        // Those outside of the bounds are told already.
        let mut inside = log_prob.clone();
        outside.into_iter().for_each(|row| inside[row] = 0.0);
        output::warn_not_finite("log-densities", 1, &inside);
        let of = format!("rows of {}", self.data.path.display());
        let scored = Scored { of: &of, which, y: &y, x: &x, log_prob: &log_prob, numbers: None };
        let density = describe(&flow, flow.training().as_ref(), scored, samples_to_draw(&flow, SAMPLES))?;
        let words = std::iter::once(density.summary()).chain(density.details());
        match &self.output {
            Some(path) => {
                write_vector(path, "log_prob", &log_prob, Overwrite::allowed_if(self.force))?;
                output::line(&words.collect::<Vec<_>>().join("\n"))?;
            }
            None => {
                let mut out = output::stdout();
                for density in &log_prob {
                    writeln!(out, "{density}")?;
                }
                output::finish(out)?;
                words.for_each(|line| tracing::info!("{line}"));
            }
        }
        // Those that are no numbers are told above.
        density.warnings().iter().for_each(|text| tracing::warn!("{text}"));
        Ok(0)
    }
}

/// Rows and their log-densities.
struct Scores {
    which: Which,
    x: Vec<f32>,
    y: Vec<f32>,
    log_prob: Vec<f32>,
    /// The numbers, from 0, of rows outside of the bounds that the model knows.
    outside: Vec<usize>,
}

impl LogProb {
    fn scores(&self, flow: &Flow) -> Result<Scores> {
        let kind = flow.spec().kind;
        if let (Some(of @ (Of::Joint | Of::Evidence)), Kind::Flow | Kind::Cinn | Kind::Inn) = (self.of, kind) {
            let what = format!("is {of:?}, but the model is a `{}`; only a `hint` knows it", kind.name());
            return Err(Error::config("--of", what.to_lowercase()));
        }
        let of_y = flow.units_of_conditions();
        if let Some(Of::Evidence) = self.of {
            let y = self.data.conditions_for(flow, Far::Nearest)?;
            let mut outside = warn_of_outside(of_y, &y, &self.data.path);
            let mut log_prob = flow.joint()?.log_evidence(y.values())?;
            outside.extend(without_density([Some((&y, &self.data.path)), None], &mut log_prob));
            return Ok(Scores { which: Which::Evidence, x: Vec::new(), y: y.into_values(), log_prob, outside });
        }
        let model::Tables { x, y } = self.data.tables_for(flow, Far::Nearest)?;
        let rows = x.rows;
        let mut outside = warn_of_outside(flow.units(), &x, &self.data.path);
        let own = Some((&x, self.data.path.as_path()));
        let (which, y, log_prob) = match (self.of, y) {
            (Some(Of::Joint), Some(y)) => {
                let also = warn_of_outside(of_y, &y, self.data.path_of_y());
                let c = flow.spec().cond_dim as usize;
                let is_one = y.rows == 1 && rows > 1;
                outside.extend(if is_one && !also.is_empty() { (0..rows).collect() } else { also });
                let mut log_prob = flow.joint()?.log_prob(&model::one_each(y.values(), rows, c), x.values())?;
                let of_each = if is_one {
                    self.data.possible_numbers(&y)?;
                    None
                } else {
                    Some((&y, self.data.path_of_y()))
                };
                outside.extend(without_density([own, of_each], &mut log_prob));
                (Which::Joint, y.into_values(), log_prob)
            }
            (_, y) => {
                // Given what cannot be, there is no density.
                self.data.possible(flow, y.as_ref())?;
                let y = y.map(Table::into_values).unwrap_or_default();
                let mut log_prob = flow.given(&y)?.log_prob(x.values())?;
                outside.extend(without_density([own, None], &mut log_prob));
                (Which::Posterior, y, log_prob)
            }
        };
        Ok(Scores { which, x: x.into_values(), y, log_prob, outside })
    }
}

/// Gives rows with a number that no float holds a density of 0, and warns of them. Their numbers, from 0.
fn without_density(tables: [Option<(&Table, &Path)>; 2], log_prob: &mut [f32]) -> Vec<usize> {
    let (far, first) = model::far_rows(tables);
    far.iter().for_each(|&row| log_prob[row] = f32::NEG_INFINITY);
    if let Some(first) = first {
        tracing::warn!(
            "{} of {} {} a number that no 32-bit float holds: the density there is 0, its logarithm -inf. The first: {first}",
            far.len(),
            counted(log_prob.len(), "row"),
            have(far.len())
        );
    }
    far
}

/// The numbers, from 0, of rows outside of the bounds. Warns of them.
fn warn_of_outside(units: &Units, table: &Table, path: &Path) -> Vec<usize> {
    let outside = units.moved_inside(table.values()).1;
    if let Some(first) = units.outside(table.values()) {
        tracing::warn!(
            "{} of {} {} outside of the bounds that the model knows: the density there is 0, its logarithm -inf. The \
             first: {}",
            outside.len(),
            counted(table.rows, "row"),
            are(outside.len()),
            first.in_file(path, table.file_numbers())
        );
    }
    outside
}

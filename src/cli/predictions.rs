//! What a posterior predicts, for `diagnose`: simulated from samples of it, or a table.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::diagnose::Test;
use crate::diagnose::predictive::{self, Checked};
use crate::filter::external::Command;
use crate::filter::run::timeout;
use crate::report::{CornerSample, MOST_COLUMNS, corner};
use crate::{Error, Flow, Result};

use super::filter::Arrays;
use super::layout::LayoutArgs;
use super::{interrupt, model};

const HEADING: &str = "Predictions of the observation";

/// Most predictions.
const MOST: usize = 1_000_000;

#[derive(Args)]
pub(super) struct PredictionArgs {
    /// Command that simulates an observation for each of many samples of the posterior
    #[arg(long, value_name = "COMMAND", requires = "observed", conflicts_with = "predicted", help_heading = HEADING)]
    simulator: Option<String>,
    /// Table of observations that were simulated from samples of the posterior
    #[arg(long, value_name = "FILE", requires = "observed", help_heading = HEADING)]
    predicted: Option<PathBuf>,
    /// Samples that are simulated
    #[arg(long, value_name = "N", default_value_t = 10_000, requires = "simulator", help_heading = HEADING)]
    predictions: usize,
    /// Arrays that the simulator reads and writes
    #[arg(long, value_enum, default_value_t = Arrays::Npy, requires = "simulator", help_heading = HEADING)]
    format: Arrays,
    /// Seconds that the simulator may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, requires = "simulator", help_heading = HEADING)]
    timeout: f64,
}

/// An observation beside what its posterior predicts.
pub(super) struct Predictions {
    names: Vec<String>,
    rows: Vec<f32>,
    observed: Vec<f32>,
}

impl PredictionArgs {
    /// The predictions of an observation of the model, if they are asked for.
    pub(super) fn of(
        &self,
        flow: &Flow,
        observed: &[f32],
        layout: &LayoutArgs,
        seed: u64,
    ) -> Result<Option<Predictions>> {
        let c = flow.spec().cond_dim as usize;
        let (rows, source) = match (&self.simulator, &self.predicted) {
            (Some(command), _) => (self.simulate(command, flow, observed, seed)?, "--predictions".to_owned()),
            (_, Some(path)) => (model::predictions(flow, path, layout)?.into_values(), path.display().to_string()),
            (None, None) => return Ok(None),
        };
        if observed.len() != c {
            let what = format!("has {} rows; predictions are of one", observed.len() / c);
            return Err(Error::config("--observed", what));
        }
        let count = rows.len() / c;
        if count < predictive::FEWEST {
            let what = format!("{count} predictions tell nothing: at least {} are needed", predictive::FEWEST);
            return Err(Error::config(source, what));
        }
        let named = flow.conditions();
        let names = if named.is_empty() { (1..=c).map(|i| format!("y{i}")).collect() } else { named.to_vec() };
        Ok(Some(Predictions { names, rows, observed: observed.to_vec() }))
    }

    fn simulate(&self, command: &str, flow: &Flow, observed: &[f32], seed: u64) -> Result<Vec<f32>> {
        if !(1..=MOST).contains(&self.predictions) {
            return Err(Error::config("--predictions", format!("is {}, must be from 1 to {MOST}", self.predictions)));
        }
        if flow.units().is_packed() || flow.units_of_conditions().is_packed() {
            let what = "reads and writes 32-bit numbers, which do not hold the columns of this model; simulate from \
                        `hintflow sample`, and name the table: --predicted FILE";
            return Err(Error::config("--simulator", what));
        }
        let samples = flow.given(observed)?.sample(self.predictions, seed)?;
        let counts = [flow.spec().dim, flow.spec().cond_dim].map(|columns| columns as usize);
        let command = Command {
            text: command.into(),
            format: self.format.into(),
            timeout: timeout(self.timeout)?,
            stop: &interrupt::STOP,
        };
        command.predict(seed, &samples, counts, flow.conditions())
    }
}

impl Predictions {
    /// Tests of whether the observation is among them.
    pub(super) fn tests(&self) -> Vec<Test> {
        Checked { names: &self.names, rows: &self.rows, observed: &self.observed }.tests()
    }

    /// A corner plot of the first columns, with the observation.
    pub(super) fn draw(&self, path: &Path) -> Result<()> {
        let (c, shown) = (self.names.len(), self.names.len().min(MOST_COLUMNS));
        let rows = self.rows.chunks_exact(c).flat_map(|row| &row[..shown]).copied().collect();
        let sample = CornerSample { name: "predictions".into(), rows, weights: None };
        corner(path, &[sample], &self.names[..shown], Some(&self.observed[..shown]))
    }
}

//! A step of a filter, whatever its method: prior states in, posterior states out.

use super::simulated::{all_finite, all_inside};
use super::system::{Draws, System};
use crate::engine::Engine;
use crate::error::Result;
use crate::rng::Stream;
use crate::train::{EpochReport, Progress, State};

/// What one step found out besides the posterior.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Step {
    /// Number of the step, counted from 1.
    pub step: u32,
    /// Rows that were simulated.
    pub simulations: u64,
    /// `log p(y_t | y_1 .. y_{t-1})` of the observation in nats: that of the particles, of the Gaussian of the ensemble,
    /// or of the flow.
    pub log_evidence: Option<f64>,
    /// Particles that the weights were worth, before they were resampled.
    pub effective: Option<f64>,
    /// Share of simulated observations that are less likely than the one made, by the flow: if it is tiny, the
    /// simulator hardly gives such observations, and the posterior is worth little.
    pub usual: Option<f64>,
    /// How far the observation is outside of all simulated ones, in ranges of these, in the column in which it is
    /// furthest; 0 if it is inside. Far outside the posterior is worth little.
    pub beyond: Option<f64>,
    /// Epochs that the flow was trained, and mean loss of its validation rows at the end, in nats.
    pub epochs: Option<u64>,
    /// The loss of the validation rows, in the units of the networks.
    pub validation_loss: Option<f64>,
}

/// A way to filter. One file has one.
pub(crate) trait Update {
    /// Name on the command line and in files.
    fn name(&self) -> &'static str;

    /// Rows of its ensemble.
    fn members(&self) -> usize;

    /// The stream of its random states.
    fn stream(&self) -> Stream {
        Stream::Ensemble
    }

    /// Whether a state may lie on a bound of its column, and not only inside.
    fn takes_bounds(&self) -> bool {
        true
    }

    /// From states after the step before (rows, N) to states after this one, given what was observed (C).
    ///
    /// # Errors
    /// [`Error::Simulator`] and those of the method; [`Error::Stopped`] if the keeper says so.
    fn update(
        &mut self,
        at: &Moment<'_>,
        prior: &[f32],
        observed: &[f32],
        keeper: &mut dyn Keeper,
    ) -> Result<(Vec<f32>, Step)>;

    /// Takes the weights of the flow of the step before, if there is one and the filter was resumed.
    fn begin_from(&mut self, weights: Vec<f32>) {
        let _ = weights;
    }
}

/// Where and when a step happens.
#[derive(Clone, Copy)]
pub(crate) struct Moment<'a> {
    pub system: &'a dyn System,
    pub engine: &'a Engine,
    /// Counted from 1.
    pub step: u32,
    pub seed: u64,
    /// Names of the columns of an observation; empty if they have none.
    pub names: &'a [String],
}

/// Whoever keeps what a long step goes on from, and is told how it goes. All methods do nothing unless they are written.
pub(crate) trait Keeper {
    /// Rows [y, x], so many of so many columns, that were simulated before the step was interrupted.
    fn rows(&mut self, _shape: (usize, usize)) -> Result<Option<Vec<f32>>> {
        Ok(None)
    }
    /// Keeps them.
    fn keep_rows(&mut self, _rows: &[f32], _columns: usize) -> Result<()> {
        Ok(())
    }
    /// Where the training goes on, if it was interrupted.
    fn state(&mut self, _flow: &crate::Flow, _data: &crate::Dataset) -> Result<Option<State>> {
        Ok(None)
    }
    /// Whether the training's state is wanted now: at the end of an epoch, or within one.
    fn wants_state(&mut self, _epoch_ended: bool, _step: u64) -> bool {
        false
    }
    /// Keeps it.
    fn keep_state(&mut self, _flow: &crate::Flow, _data: &crate::Dataset, _state: State) -> Result<()> {
        Ok(())
    }
    /// A flow is trained: keeps it.
    fn keep_flow(&mut self, _flow: &crate::Flow) -> Result<()> {
        Ok(())
    }
    /// A loss was read.
    fn progress(&mut self, _progress: &Progress) {}
    /// An epoch ended.
    fn epoch(&mut self, _report: &EpochReport, _progress: &Progress) {}
    /// Something that may not be as the user wants it.
    fn warning(&mut self, _text: &str) {}
    /// Whether to stop here.
    fn stopped(&self) -> bool {
        false
    }
}

/// A keeper that keeps nothing.
impl Keeper for () {}

/// States at time 0 for a method.
///
/// # Errors
/// Those of the system, and [`Error::Simulator`] if it gives what is no number, or outside of its bounds.
pub(crate) fn start(system: &dyn System, of: &dyn Update, seed: u64) -> Result<Vec<f32>> {
    const WHAT: &str = "states at the beginning";
    let n = system.state_columns();
    let mut states = vec![0.0; of.members() * n];
    system.start(Draws::new(seed, of.stream(), 0), &mut states)?;
    all_finite(0, WHAT, &states, n, &system.state_names())?;
    all_inside(0, WHAT, &states, system, of.takes_bounds())?;
    Ok(states)
}

/// States a step later, and what is observed of them.
///
/// # Errors
/// As [`start`].
pub(crate) fn forecast(of: &dyn Update, at: &Moment<'_>, states: &[f32]) -> Result<(Vec<f32>, Vec<f32>)> {
    const WHAT: &str = "next states";
    let (n, c) = (at.system.state_columns(), at.system.observation_columns());
    let rows = states.len() / n;
    let (mut next, mut seen) = (vec![0.0; rows * n], vec![0.0; rows * c]);
    at.system.advance(at.step, Draws::new(at.seed, of.stream(), at.step), states, &mut next, &mut seen)?;
    all_finite(at.step, WHAT, &next, n, &at.system.state_names())?;
    all_finite(at.step, "observations", &seen, c, at.names)?;
    all_inside(at.step, WHAT, &next, at.system, of.takes_bounds())?;
    Ok((next, seen))
}

//! A filter in memory.

use super::method::Method;
use super::simulated::{bounds_of, label};
use super::system::System;
use super::update::{Moment, Step, Update, start};
use crate::engine::Engine;
use crate::error::{Error, Result};

/// Filters a [`System`], step by step.
///
/// With the same seed, method and engine its states have the same bits, for any number of threads.
pub struct Filter<'a> {
    system: &'a dyn System,
    update: Box<dyn Update>,
    engine: Engine,
    seed: u64,
    step: u32,
    states: Vec<f32>,
}

impl std::fmt::Debug for Filter<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("Filter");
        debug.field("method", &self.update.name()).field("step", &self.step).finish_non_exhaustive()
    }
}

impl<'a> Filter<'a> {
    /// Draws the states at time 0.
    ///
    /// # Errors
    /// [`Error::Argument`], [`Error::Config`] or [`Error::UnknownKey`] if a setting of the method or a bound is out of
    /// range, [`Error::Simulator`] if the system gives what is no number, or outside of its bounds, and its own errors.
    pub fn new(system: &'a dyn System, method: Method, engine: &Engine, seed: u64) -> Result<Self> {
        let update = method.update()?;
        check(system)?;
        let states = start(system, &*update, seed)?;
        Ok(Self { system, update, engine: engine.clone(), seed, step: 0, states })
    }

    /// A step: the states move on, and become those of the posterior given what was observed (C).
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::NotFinite`] if the observation is none of this system, [`Error::Simulator`] naming
    /// step and row if the system gives what is no number, or outside of its bounds, and if no particle can have given
    /// the observation, [`Error::Argument`] if the method needs a likelihood that the system does not know,
    /// [`Error::StepDiverged`] if a flow cannot be trained. The filter is then where it was before.
    pub fn step(&mut self, observed: &[f32]) -> Result<Step> {
        check_observed(self.system, observed)?;
        let (system, engine, step) = (self.system, &self.engine, self.step + 1);
        let at = Moment { system, engine, step, seed: self.seed, names: &[] };
        let (states, report) = self.update.update(&at, &self.states, observed, &mut ())?;
        (self.states, self.step) = (states, step);
        Ok(report)
    }

    /// Samples of the posterior after the last step, row-major (rows, N); before the first those of time 0.
    pub fn states(&self) -> &[f32] {
        &self.states
    }
}

/// Whether a system can be filtered.
pub(crate) fn check(system: &dyn System) -> Result<()> {
    for (of, columns) in [("state", system.state_columns()), ("observation", system.observation_columns())] {
        if columns == 0 {
            return Err(Error::argument("system", format!("has no column of the {of}")));
        }
    }
    let names = system.state_names();
    let mistakes = bounds_of(system).into_iter().enumerate();
    match mistakes.map(|(column, bounds)| (column, bounds.mistake())).find(|(_, mistake)| mistake.is_some()) {
        Some((column, Some(mistake))) => {
            Err(Error::argument("bounds", format!("{}: {mistake}", label(&names, column))))
        }
        _ => Ok(()),
    }
}

/// Whether an observation is one of a system.
pub(crate) fn check_observed(system: &dyn System, observed: &[f32]) -> Result<()> {
    let (expected, got) = (system.observation_columns(), observed.len());
    if expected != got {
        return Err(Error::Shape { what: "columns of the observation".into(), expected, got });
    }
    match observed.iter().position(|v| !v.is_finite()) {
        None => Ok(()),
        Some(column) => Err(Error::NotFinite { what: format!("column {column} (from 0) of the observation") }),
    }
}

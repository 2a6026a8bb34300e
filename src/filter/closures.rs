//! A system from closures that know single rows.

use rayon::prelude::*;

use super::system::{Draws, RowRng, System, no_likelihood};
use crate::error::Result;

/// A [`System`] from closures for single rows, which are called in parallel.
///
/// ```
/// use hintflow::filter::{RowRng, StateSpace, System};
///
/// // A random walk that is observed with noise.
/// let walk = StateSpace::new(
///     (1, 1),
///     |rng: &mut RowRng, x: &mut [f32]| x[0] = rng.normal() as f32,
///     |_step, x: &[f32], rng: &mut RowRng, next: &mut [f32]| next[0] = x[0] + 0.5 * rng.normal() as f32,
///     |_step, x: &[f32], rng: &mut RowRng, y: &mut [f32]| y[0] = x[0] + 0.1 * rng.normal() as f32,
/// )
/// .likelihood(|_step, x, y| -0.5 * f64::from((y[0] - x[0]) / 0.1).powi(2)); // only for particle filters
/// assert_eq!((walk.state_columns(), walk.observation_columns()), (1, 1));
/// ```
#[must_use = "a system does nothing until it is filtered"]
pub struct StateSpace<B, M, O> {
    states: usize,
    observations: usize,
    names: Vec<String>,
    bounds: Vec<(Option<f64>, Option<f64>)>,
    begin: B,
    advance: M,
    observe: O,
    likelihood: Option<Box<Likelihood>>,
}

/// `log p(y | x)` at a step, of a row of the state and an observation.
type Likelihood = dyn Fn(u32, &[f32], &[f32]) -> f64 + Sync;

impl<B, M, O> std::fmt::Debug for StateSpace<B, M, O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("StateSpace");
        debug.field("states", &self.states).field("observations", &self.observations).finish_non_exhaustive()
    }
}

impl<B, M, O> StateSpace<B, M, O>
where
    B: Fn(&mut RowRng, &mut [f32]) + Sync,
    M: Fn(u32, &[f32], &mut RowRng, &mut [f32]) + Sync,
    O: Fn(u32, &[f32], &mut RowRng, &mut [f32]) + Sync,
{
    /// A system of N columns of the state and C of an observation. `begin` draws a state at time 0, `advance` moves one
    /// on by a step (counted from 1), `observe` observes one.
    pub fn new((states, observations): (usize, usize), begin: B, advance: M, observe: O) -> Self {
        let bounds = vec![(None, None); states];
        Self { states, observations, names: Vec::new(), bounds, begin, advance, observe, likelihood: None }
    }

    /// `log p(y | x)` in nats, at a step, of a state and an observation, in this order.
    pub fn likelihood(self, likelihood: impl Fn(u32, &[f32], &[f32]) -> f64 + Sync + 'static) -> Self {
        Self { likelihood: Some(Box::new(likelihood)), ..self }
    }

    /// Names of the columns of the state.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Where the values of a column of the state (from 0) lie: strictly between these bounds.
    pub fn bounds(mut self, column: usize, lower: Option<f64>, upper: Option<f64>) -> Self {
        if let Some(bounds) = self.bounds.get_mut(column) {
            *bounds = (lower, upper);
        }
        self
    }
}

impl<B, M, O> System for StateSpace<B, M, O>
where
    B: Fn(&mut RowRng, &mut [f32]) + Sync,
    M: Fn(u32, &[f32], &mut RowRng, &mut [f32]) + Sync,
    O: Fn(u32, &[f32], &mut RowRng, &mut [f32]) + Sync,
{
    fn state_columns(&self) -> usize {
        self.states
    }

    fn observation_columns(&self) -> usize {
        self.observations
    }

    fn state_names(&self) -> Vec<String> {
        self.names.clone()
    }

    fn bounds(&self, column: usize) -> (Option<f64>, Option<f64>) {
        self.bounds[column]
    }

    fn start(&self, draws: Draws, states: &mut [f32]) -> Result<()> {
        let rows = states.par_chunks_exact_mut(self.states).enumerate();
        rows.for_each(|(row, state)| (self.begin)(&mut draws.row(row as u32), state));
        Ok(())
    }

    fn advance(&self, step: u32, draws: Draws, states: &[f32], next: &mut [f32], seen: &mut [f32]) -> Result<()> {
        for_rows([self.states, self.observations], states, next, seen, |row, x, next, y| {
            let rng = &mut draws.row(row);
            (self.advance)(step, x, rng, next);
            if !y.is_empty() {
                (self.observe)(step, next, rng, y);
            }
        });
        Ok(())
    }

    fn log_likelihood(&self, step: u32, observed: &[f32], states: &[f32], log_likelihood: &mut [f64]) -> Result<()> {
        let Some(of) = &self.likelihood else { return Err(no_likelihood()) };
        let rows = states.par_chunks_exact(self.states).zip(log_likelihood);
        rows.for_each(|(x, density)| *density = of(step, x, observed));
        Ok(())
    }
}

/// Calls `f` for every row in parallel: with its number, its state, the next state, and its observation, which is empty
/// if nobody looks.
pub(super) fn for_rows(
    [n, c]: [usize; 2],
    states: &[f32],
    next: &mut [f32],
    seen: &mut [f32],
    f: impl Fn(u32, &[f32], &mut [f32], &mut [f32]) + Sync,
) {
    /// Rows of a task.
    const ROWS: usize = 256;
    let tasks = states.par_chunks(ROWS * n).zip(next.par_chunks_mut(ROWS * n)).enumerate();
    let task = |number: usize, states: &[f32], next: &mut [f32], seen: &mut [f32]| {
        let mut seen = seen.chunks_exact_mut(c);
        for (row, (x, next)) in states.chunks_exact(n).zip(next.chunks_exact_mut(n)).enumerate() {
            f((number * ROWS + row) as u32, x, next, seen.next().unwrap_or_default());
        }
    };
    if seen.is_empty() {
        tasks.for_each(|(number, (states, next))| task(number, states, next, &mut []));
    } else {
        let tasks = tasks.zip(seen.par_chunks_mut(ROWS * c));
        tasks.for_each(|((number, (states, next)), seen)| task(number, states, next, seen));
    }
}

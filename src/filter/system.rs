//! What is filtered: a state that moves in steps and is observed with noise, as a simulator knows it.

use std::convert::Infallible;

use rand::TryRng;

use crate::error::{Error, Result};
use crate::rng::{Counter, Stream};

/// A state-space model by its simulator: what states may be at the beginning, how they move in a step, and what is
/// observed of them.
///
/// All arrays are row-major, one row a state. N is the number of columns of a state, C that of an observation. Whoever
/// has closures for single rows takes [`super::StateSpace`].
pub trait System: Sync {
    /// N, the number of columns of a state.
    fn state_columns(&self) -> usize;

    /// C, the number of columns of an observation.
    fn observation_columns(&self) -> usize;

    /// Names of the columns of a state; empty if they have none.
    fn state_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Values between which a column of the state (from 0) always lies, strictly: no posterior leaves them.
    fn bounds(&self, column: usize) -> (Option<f64>, Option<f64>) {
        let _ = column;
        (None, None)
    }

    /// Draws states at time 0, before anything is observed, into `states` (rows, N).
    ///
    /// # Errors
    /// Whatever may go wrong in a simulator.
    fn start(&self, draws: Draws, states: &mut [f32]) -> Result<()>;

    /// Moves `states` (rows, N) on by a step into `next` (rows, N), and observes these into `seen` (rows, C), which is
    /// empty if nobody looks. `step` counts from 1.
    ///
    /// # Errors
    /// Whatever may go wrong in a simulator.
    fn advance(&self, step: u32, draws: Draws, states: &[f32], next: &mut [f32], seen: &mut [f32]) -> Result<()>;

    /// `log p(y | x)` in nats of an observation (C) for each of `states` (rows, N), at `step`. Only the particle filter
    /// asks.
    ///
    /// # Errors
    /// [`Error::Argument`] if the system knows no likelihood, which is so unless this is written.
    fn log_likelihood(&self, step: u32, observed: &[f32], states: &[f32], log_likelihood: &mut [f64]) -> Result<()> {
        let _ = (step, observed, states, log_likelihood);
        Err(no_likelihood())
    }
}

/// What a particle filter says of a system that can only be simulated.
pub(super) fn no_likelihood() -> Error {
    Error::argument(
        "method",
        "a particle filter weighs states by the likelihood of what was observed, which this system does not know; \
         `hint` and `enkf` need only simulations",
    )
}

/// Random numbers for the rows of one call: those of a row depend on the seed, the step and the row's number alone, so
/// not on how rows are shared out to threads.
#[derive(Clone, Copy, Debug)]
pub struct Draws {
    seed: u64,
    stream: Stream,
    step: u32,
}

impl Draws {
    pub(super) fn new(seed: u64, stream: Stream, step: u32) -> Self {
        Self { seed, stream, step }
    }

    /// Those of an ensemble at a step.
    #[cfg(feature = "cli")]
    pub(crate) fn of_ensemble(seed: u64, step: u32) -> Self {
        Self::new(seed, Stream::Ensemble, step)
    }

    /// The generator of a row.
    pub fn row(&self, row: u32) -> RowRng {
        RowRng { counter: Counter::new(self.seed, self.stream, self.step, row), second: None }
    }

    /// A seed for a simulator that has random numbers of its own, less than 2^53. It differs from step to step.
    pub fn seed(&self) -> u64 {
        // The end of a row number that no ensemble reaches.
        let mut counter = Counter::new(self.seed, self.stream, self.step, u32::MAX);
        (counter.uniform01() * (1u64 << 53) as f64) as u64
    }
}

/// Random numbers of a row: uniform and normal ones, and all that [`rand`] makes of a generator.
#[derive(Clone, Debug)]
pub struct RowRng {
    counter: Counter,
    /// The second of a pair of normals.
    second: Option<f64>,
}

impl RowRng {
    /// Uniform in [0, 1).
    pub fn uniform(&mut self) -> f64 {
        self.counter.uniform01()
    }

    /// Standard normal.
    pub fn normal(&mut self) -> f64 {
        match self.second.take() {
            Some(z) => z,
            None => {
                let [first, second] = self.counter.normal_pair();
                self.second = Some(second);
                first
            }
        }
    }

    /// The generator itself.
    pub(super) fn counter(&mut self) -> &mut Counter {
        &mut self.counter
    }
}

impl TryRng for RowRng {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.counter.try_next_u32()
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.counter.try_next_u64()
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        self.counter.try_fill_bytes(out)
    }
}

//! A system that is a command: it reads states and writes how they move on and what is seen of them.
//!
//! # Protocol
//!
//! The command is run by the shell, once a step. Its environment says what is asked for:
//!
//! | variable | meaning |
//! |---|---|
//! | `HINTFLOW_STEP` | number of the step, from 1; 0 asks for states at the beginning |
//! | `HINTFLOW_ROWS` | number of rows |
//! | `HINTFLOW_SEED` | a seed below 2^53, another one for each step; the same seed must give the same rows if a filter that is resumed is to come to the same bits |
//!
//! Standard input is the states (rows, N) after the step before, as a `.npy` array of float32; at step 0 it has no
//! columns. Standard output is one array of as many rows: at step 0 the states at the beginning (rows, N); else each
//! row's next state and then its observation, (rows, N + C). It may be a `.npy` array of any common type, and must hold
//! nothing else. Texts instead are lines of numbers with commas between them, in both directions, without a header. What
//! the command says on its standard error is shown where it fails. It must end with status 0 within the timeout.

mod frame;
mod process;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

pub(crate) use frame::Format;

use super::system::{Draws, System};
use crate::error::{Error, Result};
use process::{Call, Failure, Output};

/// The command.
#[derive(Clone, Debug)]
pub(crate) struct Command<'s> {
    /// For the shell.
    pub text: String,
    pub format: Format,
    /// Longest time of a step.
    pub timeout: Duration,
    /// Set from elsewhere: end the command, and stop.
    pub stop: &'s AtomicBool,
}

/// What is known of the columns of the system.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Columns {
    /// Names of the columns of a state; empty if they have none.
    pub names: Vec<String>,
    /// Bounds of each column of a state.
    pub bounds: Vec<(Option<f64>, Option<f64>)>,
    /// N and C.
    pub counts: [usize; 2],
}

/// The system.
#[derive(Debug)]
pub(crate) struct External<'s> {
    command: Command<'s>,
    columns: Columns,
    /// States at time 0; none of a filter that has begun already.
    start: Vec<f32>,
}

impl<'s> External<'s> {
    /// The system with its columns, and states at the beginning (any number of rows), which are taken in turn.
    pub(crate) fn new(command: Command<'s>, columns: Columns, start: Vec<f32>) -> Self {
        Self { command, columns, start }
    }
}

impl System for External<'_> {
    fn state_columns(&self) -> usize {
        self.columns.counts[0]
    }

    fn observation_columns(&self) -> usize {
        self.columns.counts[1]
    }

    fn state_names(&self) -> Vec<String> {
        self.columns.names.clone()
    }

    fn bounds(&self, column: usize) -> (Option<f64>, Option<f64>) {
        self.columns.bounds.get(column).copied().unwrap_or_default()
    }

    fn start(&self, _: Draws, states: &mut [f32]) -> Result<()> {
        let rows = self.start.chunks_exact(self.state_columns()).cycle();
        states.chunks_exact_mut(self.state_columns()).zip(rows).for_each(|(to, from)| to.copy_from_slice(from));
        Ok(())
    }

    fn advance(&self, step: u32, draws: Draws, states: &[f32], next: &mut [f32], seen: &mut [f32]) -> Result<()> {
        let [n, c] = self.columns.counts;
        let names = self.columns.names.as_slice();
        let (values, _) =
            self.command.simulate(step, draws.seed(), states, (states.len() / n, n), Some([n, c]), names)?;
        for (row, next) in values.chunks_exact(n + c).zip(next.chunks_exact_mut(n)) {
            next.copy_from_slice(&row[..n]);
        }
        for (row, seen) in values.chunks_exact(n + c).zip(seen.chunks_exact_mut(c)) {
            seen.copy_from_slice(&row[n..]);
        }
        Ok(())
    }
}

impl Command<'_> {
    /// Asks for states at the beginning: their values and the number of their columns.
    ///
    /// # Errors
    /// [`Error::Simulator`] if the command fails or writes something else, [`Error::Stopped`].
    pub(crate) fn start(&self, draws: Draws, rows: usize) -> Result<(Vec<f32>, usize)> {
        self.simulate(0, draws.seed(), &[], (rows, 0), None, &[])
    }

    /// An observation of `c` columns for each row of `n` parameters, by a system that stands still. A command that serves a
    /// filter does, too: what it writes of the next state is left out.
    ///
    /// # Errors
    /// [`Error::Command`] if the command fails or writes something else, [`Error::Stopped`].
    pub(crate) fn predict(
        &self,
        seed: u64,
        parameters: &[f32],
        [n, c]: [usize; 2],
        names: &[String],
    ) -> Result<Vec<f32>> {
        let rows = parameters.len() / n;
        let (mut values, got) = self.simulate(ONCE, seed, parameters, (rows, n), None, names).map_err(without_step)?;
        if got == n + c {
            values = values.chunks_exact(got).flat_map(|row| &row[n..]).copied().collect();
        } else if got != c {
            let what = format!(
                "`{}` wrote {got} columns, must be {c}: the observation of each row (or {}: the row's next state before it)",
                self.text,
                n + c
            );
            return Err(Error::Command { row: None, what });
        }
        Ok(values)
    }

    /// The log-density of each row of `n` parameters, not rounded. It may be minus infinity.
    ///
    /// # Errors
    /// As those of [`Command::predict`].
    pub(crate) fn log_density(&self, seed: u64, parameters: &[f32], n: usize) -> Result<Vec<f64>> {
        let rows = parameters.len() / n;
        let output = self.call(ONCE, seed, parameters, (rows, n), rows).map_err(without_step)?;
        let wrong = |what| without_step(self.fails(ONCE, None, what, &output.said));
        match self.format.decode_numbers(&output.bytes, Path::new("standard output")) {
            Ok(numbers) if numbers.len() == rows => Ok(numbers),
            Ok(numbers) => Err(wrong(format!("wrote {} numbers, must be one for each of {rows} rows", numbers.len()))),
            Err(Error::Format { what, .. }) => Err(wrong(format!("wrote no {}: {what}", self.format.name()))),
            Err(other) => Err(other),
        }
    }

    /// Rows of values in, as many rows out, with their number of columns.
    fn simulate(
        &self,
        step: u32,
        seed: u64,
        states: &[f32],
        (rows, columns): (usize, usize),
        expected: Option<[usize; 2]>,
        names: &[String],
    ) -> Result<(Vec<f32>, usize)> {
        /// Of arrays with an unknown number of columns.
        const MOST_COLUMNS: usize = 10_000;
        let most = rows.saturating_mul(expected.map_or(MOST_COLUMNS, |[n, c]| n + c));
        let output = self.call(step, seed, states, (rows, columns), most)?;
        let wrong = |row, what| self.fails(step, row, what, &output.said);
        let (values, got) = match self.format.decode(&output.bytes, Path::new("standard output")) {
            Ok(decoded) => decoded,
            Err(Error::Cell { row, column, what, .. }) => {
                let name = names.get(column - 1).map(|name| format!(" (`{name}`)")).unwrap_or_default();
                return Err(wrong(Some(row), format!("wrote no number in column {column}{name}: {what}")));
            }
            Err(Error::Format { what, .. }) => {
                return Err(wrong(None, format!("wrote no {}: {what}", self.format.name())));
            }
            Err(other) => return Err(other),
        };
        if let Some([n, c]) = expected.filter(|[n, c]| n + c != got) {
            let what = format!(
                "wrote {got} columns, must be {}: {n} of the next state, and then {c} of its observation, as there are \
                 columns of the observations",
                n + c
            );
            return Err(wrong(None, what));
        }
        match values.len() / got {
            count if count < rows => {
                Err(wrong(Some(count + 1), format!("wrote {count} rows and not this one: it was given {rows}")))
            }
            count if count > rows => {
                Err(wrong(Some(rows + 1), format!("wrote this row and more, {count} in all: it was given {rows}")))
            }
            _ => Ok((values, got)),
        }
    }

    /// A call: rows of values in, at most `most` values out.
    fn call(
        &self,
        step: u32,
        seed: u64,
        values: &[f32],
        (rows, columns): (usize, usize),
        most: usize,
    ) -> Result<Output> {
        let call = Call {
            command: &self.text,
            variables: [("HINTFLOW_STEP", step.into()), ("HINTFLOW_ROWS", rows as u64), ("HINTFLOW_SEED", seed)],
            input: self.format.encode(values, rows, columns),
            longest: self.format.longest(most),
            timeout: self.timeout,
            stop: self.stop,
        };
        call.run().map_err(|failure| match failure {
            Failure::Stopped => Error::Stopped,
            Failure::Failed { what, said } => self.fails(step, None, what, &said),
        })
    }

    /// What is wrong with what the command wrote, with what it `said`.
    fn fails(&self, step: u32, row: Option<usize>, what: String, said: &str) -> Error {
        let said = said.trim();
        let said = if said.is_empty() { String::new() } else { format!("; it said:\n{said}") };
        Error::Simulator { step, row, what: format!("`{}` {what}{said}", self.text) }
    }
}

/// The step of a command that knows of none.
const ONCE: u32 = 1;

fn without_step(error: Error) -> Error {
    match error {
        Error::Simulator { row, what, .. } => Error::Command { row, what },
        other => other,
    }
}

#[cfg(test)]
mod tests;

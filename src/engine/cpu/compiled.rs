//! What is known of a program when it runs, and where its samples come from.

use std::sync::{Mutex, PoisonError};

use super::mixing::Applied;
use crate::engine::{Job, StepJob};
use crate::kernel::Tile;
use crate::program::Program;

/// A program that is ready to run.
pub(super) struct Compiled {
    pub(super) program: Program,
    /// Whether the first tile of a group writes its gradients. Where not every gradient is written, or one twice, they
    /// are cleared and added to.
    pub(super) first_writes: bool,
    /// The operations that are shortened.
    pub(super) short: Vec<bool>,
    pub(super) applied: Applied,
    /// Arenas that no thread uses at the moment.
    pub(super) idle: Mutex<Vec<Tile>>,
}

/// Where the samples of a batch come from.
pub(super) enum Source<'a> {
    /// The caller's inputs.
    Job(&'a Job<'a>),
    /// Rows of the resident data.
    Batch(&'a StepJob),
}

impl Compiled {
    /// Lends an arena for `rows` samples. Arenas are made on first use and kept.
    pub(super) fn with_tile<R>(&self, capacity: usize, rows: usize, f: impl FnOnce(&mut Tile) -> R) -> R {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = idle().pop().filter(|tile| tile.capacity() >= capacity);
        let mut tile = kept.unwrap_or_else(|| Tile::new(self.program.arena_rows, capacity));
        tile.set_rows(rows);
        let result = f(&mut tile);
        idle().push(tile);
        result
    }
}

//! Times of operations, while a session profiles.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

use crate::engine::KernelTime;
use crate::program::{Program, StepOp};

/// Adds up the times of each operation of one run over tiles and threads.
pub(super) struct Clock {
    /// Nanoseconds and tiles of each operation.
    times: Vec<(AtomicU64, AtomicU32)>,
}

impl Clock {
    pub(super) fn new(program: &Program) -> Self {
        Self { times: program.rows.iter().map(|_| Default::default()).collect() }
    }

    /// Runs operation number `op` on a tile.
    pub(super) fn time<R>(&self, op: usize, work: impl FnOnce() -> R) -> R {
        let start = Instant::now();
        let result = work();
        let (nanoseconds, tiles) = &self.times[op];
        nanoseconds.fetch_add(start.elapsed().as_nanos() as u64, Ordering::Relaxed);
        tiles.fetch_add(1, Ordering::Relaxed);
        result
    }

    /// The operations in order.
    pub(super) fn read(self, program: &Program) -> impl Iterator<Item = KernelTime> {
        program.rows.iter().zip(self.times).map(|(op, (nanoseconds, tiles))| KernelTime {
            name: op.name(),
            nanoseconds: nanoseconds.into_inner() as f64,
            grid: [tiles.into_inner(), 1],
        })
    }
}

/// Time of an operation of a whole step that began at `start`.
pub(super) fn since(start: Instant, op: StepOp) -> KernelTime {
    KernelTime { name: op.name(), nanoseconds: start.elapsed().as_nanos() as f64, grid: [1, 1] }
}

/// Time of the sum over ranks that began at `start`.
pub(super) fn of_ranks(start: Instant) -> KernelTime {
    KernelTime { name: "sum over ranks", nanoseconds: start.elapsed().as_nanos() as f64, grid: [1, 1] }
}

//! Trained mixings of a program: which are applied to the samples block by block, and the work on the others before and
//! after the tiles.

use std::ops::Range;

use crate::buffer::Buffer;
use crate::kernel::reflect::{APPLY_SCRATCH, Reflections, by_blocks};
use crate::plan::Mix;
use crate::program::{Op, Program, StepOp};

/// Where the reflection vectors of a mixing lie.
pub(super) fn vectors(mix: &Mix) -> Option<Range<usize>> {
    let len = (mix.dim * mix.dim) as usize;
    mix.reflections.map(|at| at as usize..at as usize + len)
}

/// The mixings of a program whose reflections are applied to the samples. They need no Q.
pub(super) struct Applied {
    /// By mixing.
    mixes: Vec<bool>,
    /// By operation, if it belongs to one of them: what the mixing put out, for its backward.
    operations: Vec<Option<Buffer>>,
    scratch: Buffer,
}

impl Applied {
    /// Of a program that gets so many rows at once; adds scratch to its arena. In training steps alone: everything else
    /// finds a Q that stays, and computes the same whatever the number of its rows.
    pub(super) fn new(program: &mut Program, rows: usize) -> Self {
        let trains = program.finish.contains(&StepOp::Adam);
        let small = |mix: &Mix| trains && mix.reflections.is_some() && by_blocks(rows, mix.dim as usize);
        let mixes: Vec<bool> = program.plan.mixes().map(small).collect();
        // What each mixing put out the last time, or was inverted from.
        let mut results = vec![Buffer::EMPTY; mixes.len()];
        let operation = |op: &Op| match *op {
            Op::Mix { mix, transpose, from, to } if mixes[mix] => {
                results[mix] = if transpose { from } else { to };
                Some(Buffer::EMPTY)
            }
            // Nobody reads it after its gradient is known.
            Op::MixBackward { mix, .. } if mixes[mix] => Some(results[mix]),
            _ => None,
        };
        let operations = program.rows.iter().map(operation).collect();
        let needed = |mix: &Mix| APPLY_SCRATCH.max(Reflections::backward_scratch(mix.dim as usize)) as u32;
        let most = program.plan.mixes().zip(&mixes).filter(|(_, small)| **small).map(|(mix, _)| needed(mix)).max();
        let scratch = Buffer { first: program.arena_rows, rows: most.unwrap_or(0) };
        program.arena_rows += scratch.rows;
        Self { mixes, operations, scratch }
    }

    /// Whether a mixing is applied block by block.
    pub(super) fn by_blocks(&self, mix: usize) -> bool {
        self.mixes[mix]
    }

    /// If operation `i` belongs to such a mixing: what the mixing put out, if it is its backward.
    pub(super) fn at(&self, i: usize) -> Option<Buffer> {
        self.operations[i]
    }

    /// Scratch of these mixings.
    pub(super) fn scratch(&self) -> Buffer {
        self.scratch
    }
}

/// Runs `work` on each item and its part of the values, on as many threads as there are; the parts lie one after the
/// other. Nothing is allocated.
pub(super) fn each_part<T: Send>(
    items: &mut [T],
    values: &mut [f32],
    part: &(impl Fn(usize) -> Range<usize> + Sync),
    work: &(impl Fn(usize, &mut T, &mut [f32]) + Sync),
) {
    split(0, items, 0, values, part, work);
}

fn split<T: Send>(
    first: usize,
    items: &mut [T],
    begin: usize,
    values: &mut [f32],
    part: &(impl Fn(usize) -> Range<usize> + Sync),
    work: &(impl Fn(usize, &mut T, &mut [f32]) + Sync),
) {
    let middle = items.len() / 2;
    match items {
        [] => {}
        [item] => {
            let Range { start, end } = part(first);
            work(first, item, &mut values[start - begin..end - begin]);
        }
        _ => {
            let (left, right) = items.split_at_mut(middle);
            let at = part(first + middle).start;
            let (low, high) = values.split_at_mut(at - begin);
            rayon::join(
                || split(first, left, begin, low, part, work),
                || split(first + middle, right, at, high, part, work),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::flow::programs::{Name, record};
    use crate::plan::{Mixing, Plan, Spec};
    use crate::tape::Memory;

    /// Multiplications of a step's mixings per column and sample, relative to those of fixed ones: 2 N forward and
    /// backward. See [`crate::kernel::reflect`] for the two ways.
    fn cost(dim: u32, rows: usize) -> f64 {
        let plan =
            Arc::new(Plan::new(&Spec { dim, width: 8, mixing: Mixing::Householder, ..Spec::default() }).unwrap());
        let mut program = record(Name::Step(Memory::Stored), &plan);
        let applied = Applied::new(&mut program, rows);
        let (n, rows) = (f64::from(dim), rows as f64);
        let [blocks, whole] = [8.0 * n * n * rows, 3.0 * n * n * rows + 8.0 * n * n * n];
        (if applied.by_blocks(0) { blocks } else { whole }) / (2.0 * n * n * rows)
    }

    /// Whatever the number of columns, trained mixings take a small multiple of the time of fixed ones.
    #[test]
    fn the_cost_of_a_step_has_no_cube_of_the_columns() {
        for dim in [2, 20, 100, 400, 1000] {
            for rows in [1, 32, 100, 500, 10_000] {
                assert!(cost(dim, rows) <= 4.2, "{dim} columns, {rows} rows: {}", cost(dim, rows));
            }
        }
        assert!(cost(20, 10_000) < 1.6, "large batches: {}", cost(20, 10_000));
    }

    #[test]
    fn only_training_steps_go_by_blocks() {
        let spec = Spec { dim: 40, width: 8, mixing: Mixing::Householder, ..Spec::default() };
        let plan = Arc::new(Plan::new(&spec).unwrap());
        for name in [Name::Encode, Name::Decode, Name::LossGradients(Memory::Stored)] {
            let mut program = record(name, &plan);
            let before = program.arena_rows;
            let applied = Applied::new(&mut program, 1);
            assert!(!applied.by_blocks(0) && program.arena_rows == before, "{name:?}");
        }
    }
}

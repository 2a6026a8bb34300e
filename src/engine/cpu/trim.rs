//! Hidden activations that no operation reads again, in rows that all stages share: they stay in cache, and an arena is smaller.

use crate::kernel::networks::SavedActivations;
use crate::program::{Op, Program, compact};

/// The program on an arena that has rows for one network's first hidden layer, and of second ones for those that are kept.
pub(super) fn trim(program: &Program) -> Program {
    let stages = &program.plan.stages;
    let first = |op: &Op| match op {
        Op::Networks { hidden, .. } | Op::NetworksBackward { hidden, .. } | Op::Walk { hidden, .. } => Some(hidden[0]),
        _ => None,
    };
    let Some(shared) = program.rows.iter().filter_map(first).max_by_key(|buffer| buffer.rows) else {
        return program.clone();
    };
    compact(program, |op| match op {
        Op::Networks { stage, hidden: [first, second], keep, .. }
        | Op::Walk { stage, hidden: [first, second], keep, .. } => {
            let stage = &stages[*stage];
            *first = shared.part(0, stage.widest());
            *second = second.part(0, SavedActivations::of(stage, *keep).rows(stage));
        }
        Op::NetworksBackward { stage, hidden: [first, second], d_hidden, .. } => {
            let stage = &stages[*stage];
            *first = shared.part(0, stage.widest());
            *second = second.part(0, SavedActivations::of(stage, true).rows(stage));
            d_hidden.iter_mut().for_each(|buffer| *buffer = buffer.part(0, stage.widest()));
        }
        _ => {}
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::flow::programs::{Name, record};
    use crate::plan::{ConditionOn, Plan, Spec};
    use crate::program::uses;
    use crate::tape::Memory;

    #[test]
    fn buffers_of_an_operation_stay_apart_and_the_arena_shrinks() {
        for condition_on in [ConditionOn::Input, ConditionOn::Output] {
            for width in [12, 41, 90] {
                let plan =
                    Arc::new(Plan::new(&Spec { dim: 9, blocks: 3, width, condition_on, ..Spec::default() }).unwrap());
                for name in [Name::Encode, Name::Sample, Name::Step(Memory::Stored), Name::Step(Memory::Reversible)] {
                    let before = record(name, &plan);
                    let after = trim(&before);
                    assert!(after.arena_rows < before.arena_rows, "{name:?}, {condition_on:?}, width {width}");
                    for op in &after.rows {
                        let [reads, writes] = uses(op);
                        for (i, written) in writes.iter().enumerate() {
                            assert!(written.first + written.rows <= after.arena_rows);
                            let apart = |b: &crate::buffer::Buffer| b == written || !b.overlaps(*written);
                            assert!(reads.iter().chain(&writes[..i]).all(apart), "{op:?}");
                        }
                    }
                }
            }
        }
    }
}

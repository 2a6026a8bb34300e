//! Hidden activations that no operation reads again, in rows that all stages share, and parameters summed where they are
//! made: they stay in cache, and an arena is smaller.

use crate::buffer::Buffer;
use crate::kernel::networks::SavedActivations;
use crate::plan::Stage;
use crate::program::{Op, Program, compact};

/// The program on an arena that has rows for one network's hidden activations and their gradients, and for those of
/// second layers that are kept.
pub(super) fn trim(program: &Program) -> Program {
    let stages = &program.plan.stages;
    let widest =
        |of: fn(&Op) -> Option<[Buffer; 2]>| program.rows.iter().filter_map(of).max_by_key(|[buffer, _]| buffer.rows);
    let hidden = widest(|op| match *op {
        Op::Networks { hidden, .. } | Op::NetworksBackward { hidden, .. } | Op::Walk { hidden, .. } => Some(hidden),
        _ => None,
    });
    let d_hidden = widest(|op| match *op {
        Op::NetworksBackward { d_hidden, .. } => Some(d_hidden),
        _ => None,
    });
    let saved = |stage: &Stage, keep| SavedActivations::of(stage, keep).end(stage);
    compact(program, |op| match op {
        Op::Networks { stage, hidden: [first, second], keep, st, .. }
        | Op::Walk { stage, hidden: [first, second], keep, st, .. } => {
            let stage = &stages[*stage];
            *st = st.part(0, stage.sum_rows);
            *first = hidden.map_or(*first, |[shared, _]| shared.part(0, stage.widest()));
            *second = second.part(0, saved(stage, *keep));
        }
        Op::NetworksBackward { stage, hidden: [first, second], d_hidden: [d_first, d_second], slots, .. } => {
            let stage = &stages[*stage];
            *first = hidden.map_or(*first, |[shared, _]| shared.part(0, stage.widest()));
            *second = second.part(0, saved(stage, true));
            let d_shared = d_hidden.unwrap_or([*d_first, *d_second]);
            [*d_first, *d_second] = d_shared.map(|shared| shared.part(0, stage.widest()));
            // Gradients are added to those of the columns at once.
            *slots = slots.part(0, 0);
        }
        Op::Couple { stage, st, .. }
        | Op::Uncouple { stage, st, .. }
        | Op::CoupleBackward { stage, st, .. }
        | Op::UncoupleBackward { stage, st, .. } => {
            *st = st.part(0, stages[*stage].sum_rows);
        }
        _ => {}
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::flow::programs::{Name, record};
    use crate::kernel::networks::RECOMPUTED;
    use crate::plan::{ConditionOn, Kind, Plan, Spec};
    use crate::program::uses;
    use crate::tape::Memory;

    fn plans() -> impl Iterator<Item = Arc<Plan>> {
        let kinds = [(Kind::Flow, 0), (Kind::Cinn, 3), (Kind::Hint, 4)];
        let modes = [ConditionOn::Input, ConditionOn::Output];
        kinds.into_iter().flat_map(move |kind| modes.map(|mode| (kind, mode))).flat_map(
            |((kind, cond_dim), condition_on)| {
                [12, 41, 90].map(|width| {
                    let spec = Spec { kind, cond_dim, dim: 9, blocks: 3, width, condition_on, ..Spec::default() };
                    Arc::new(Plan::new(&spec).unwrap())
                })
            },
        )
    }

    /// Whether two buffers are the same or have no row in common.
    fn apart(a: Buffer, b: Buffer) -> bool {
        a == b || !a.overlaps(b)
    }

    #[test]
    fn buffers_of_an_operation_stay_apart_and_the_arena_shrinks() {
        for plan in plans() {
            let step = [Name::Step(Memory::Stored), Name::Step(Memory::Reversible)];
            for name in [Name::Encode, Name::Decode, Name::Sample].into_iter().chain(step) {
                let before = record(name, &plan);
                let after = trim(&before);
                assert!(after.arena_rows < before.arena_rows, "{name:?}, {:?}", plan.spec);
                for op in &after.rows {
                    let [reads, writes] = uses(op);
                    for (i, &written) in writes.iter().enumerate() {
                        assert!(written.first + written.rows <= after.arena_rows);
                        assert!(reads.iter().chain(&writes[..i]).all(|&b| apart(b, written)), "{op:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_kept_has_rows_of_its_own_until_it_is_read() {
        for plan in plans() {
            let program = trim(&record(Name::Step(Memory::Stored), &plan));
            for (i, op) in program.rows.iter().enumerate() {
                let Op::Networks { stage: id, hidden: [_, kept], keep: true, .. } = *op else { continue };
                let nodes = &plan.stages[id].nodes;
                let wide: u32 = nodes.iter().map(|n| n.hidden).filter(|&h| h > RECOMPUTED).map(|h| 2 * h).sum();
                let narrow = nodes.iter().map(|n| n.hidden).filter(|&h| h <= RECOMPUTED).max().unwrap_or(0);
                assert_eq!(kept.rows, wide + narrow);
                let later = program.rows[i + 1..].iter().take_while(|op| match op {
                    Op::NetworksBackward { stage, .. } => *stage != id,
                    _ => true,
                });
                for op in later {
                    assert!(uses(op)[1].iter().all(|b| !b.overlaps(kept)), "{op:?} overwrites {kept:?}");
                }
            }
        }
    }
}

//! Hidden activations of narrow nodes that are computed again instead of kept, which is most of them in a deep
//! recursion, left out of the arena. So more samples fit on the device at a time.

use crate::program::{Op, Program, compact};

/// The program on an arena without the rows that no operation touches. `rows` says of a stage how many rows of its
/// hidden buffers are in use, where not all are.
pub(crate) fn trim(program: &Program, rows: impl Fn(usize) -> Option<u32>) -> Program {
    compact(program, |op| match op {
        Op::Networks { stage, hidden, .. } => {
            if let Some(rows) = rows(*stage) {
                hidden.iter_mut().for_each(|b| b.rows = rows);
            }
        }
        Op::NetworksBackward { stage, hidden, d_hidden, .. } => {
            if let Some(rows) = rows(*stage) {
                hidden.iter_mut().chain(d_hidden).for_each(|b| b.rows = rows);
            }
        }
        _ => {}
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::engine::gpu::compile::bounds::KernelVariants;
    use crate::engine::gpu::compile::recompute::{recomputed, wide_rows};
    use crate::engine::gpu::layout::panels::Panels;
    use crate::engine::gpu::layout::tables::Tables;
    use crate::engine::gpu::layout::workgroup::Workgroup;
    use crate::flow::programs::{Name, record};
    use crate::plan::{Plan, Spec};
    use crate::tape::Memory;

    /// NVIDIA's limit of an array; more tiles would be more dispatches.
    #[test]
    fn a_large_batch_of_a_deep_recursion_is_one_tile() {
        let plan = Arc::new(Plan::new(&Spec { dim: 100, width: 263, blocks: 4, ..Spec::default() }).unwrap());
        let tables = Tables::new(&plan, &Panels::new(&plan), Workgroup::MOST);
        let program = record(Name::Step(Memory::Stored), &plan);
        let recomputed = recomputed(&tables, &program, KernelVariants::default(), 10_000, None);
        assert_eq!(recomputed.len(), 4);
        let less = trim(&program, |id| Some(wide_rows(&plan.stages[id], &tables.stages[id])));
        let bytes = |program: &Program| u64::from(program.arena_rows) * 10_016 * 4;
        assert!(bytes(&program) > 1 << 31 && bytes(&less) < 1 << 30, "{} {}", bytes(&program), bytes(&less));
    }
}

//! Which hidden activations of narrow nodes are computed again in the backward pass instead of kept; see
//! [`crate::engine::gpu::layout::narrow`].

use super::bounds::KernelVariants;
use super::cost::{NarrowNodes, narrow_backward};
use super::tiling::{TILE_SAMPLES, TILE_STEP};
use crate::buffer::Buffer;
use crate::engine::gpu::layout::tables::{StageTables, Tables};
use crate::plan::Stage;
use crate::program::{Op, Program, StageId};

/// Stages of a program whose narrow nodes need not keep their hidden activations: nothing but the backward pass of the
/// same program reads them, and that computes them again. `iterations`: loop iterations that the device allows.
pub(crate) fn recomputed(
    tables: &Tables,
    program: &Program,
    variants: KernelVariants,
    rows: usize,
    iterations: Option<u64>,
) -> Vec<StageId> {
    let wanted = |id: StageId| {
        let tables = &tables.stages[id];
        let narrow = tables.narrow.as_ref()?;
        let chosen = variants.recompute.unwrap_or_else(|| narrow.is_much(rows));
        let samples = rows.clamp(1, TILE_SAMPLES as usize) + TILE_STEP;
        let needed = narrow_backward(NarrowNodes::of(&program.plan.stages[id], tables.wide, samples));
        let possible = iterations.is_none_or(|iterations| needed <= iterations);
        (chosen && possible).then_some(id)
    };
    let backward = program.rows.iter().filter_map(|op| match op {
        Op::NetworksBackward { stage, x, given, hidden, .. } => Some((*stage, [*x, *given], *hidden)),
        _ => None,
    });
    let backward: Vec<_> = backward.collect();
    let kept = |&(id, inputs, hidden): &(StageId, [Buffer; 2], [Buffer; 2])| {
        let made = program.rows.iter().any(|op| match op {
            Op::Networks { stage, x, given, hidden: to, keep: true, .. } => {
                (*stage, [*x, *given], *to) == (id, inputs, hidden)
            }
            _ => false,
        });
        made && !program.outputs.iter().any(|output| hidden.iter().any(|b| b.overlaps(*output)))
    };
    // Of a stage all or none.
    let whole = |id: StageId| backward.iter().filter(|other| other.0 == id).all(kept);
    backward.iter().map(|one| one.0).filter(|&id| whole(id)).filter_map(wanted).collect()
}

/// Hidden rows of the nodes that are not narrow, which come first.
pub(crate) fn wide_rows(stage: &Stage, tables: &StageTables) -> u32 {
    stage.nodes[..tables.wide as usize].iter().map(|node| node.nets.len() as u32 * node.hidden).sum()
}

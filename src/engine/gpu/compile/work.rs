//! What the kernels of a program have to do, counted without a device: for predictions of times.
//!
//! Operations are those that the lanes of a GPU go through, padding and idle lanes included; bytes are those of every
//! operation on its own, from and to the device's memory, so they are too many if a dispatch runs several of them or a cache helps.

use super::bounds::{Bounds, KernelVariants};
use super::dispatch::Dispatch;
use super::recompute::recomputed;
use super::record::Recorder;
use super::tiling::Fit;
use crate::engine::Work;
use crate::engine::gpu::kernels::shader::PackShape;
use crate::engine::gpu::layout::jobs::JOB_SIZE;
use crate::engine::gpu::layout::packs::Packs;
use crate::engine::gpu::layout::panels::{PANEL, Panels};
use crate::engine::gpu::layout::tables::{StageTables, Tables};
use crate::engine::gpu::layout::workgroup::Workgroup;
use crate::error::Result;
use crate::plan::{Node, Plan, Stage};
use crate::program::{Op, Program, StepOp, shortcuts};

/// Work of a program for a batch of `rows`, by kernel, and its number of dispatches on one tile. Networks run in the
/// shapes that come first, with groups of `step` threads in step.
pub(crate) fn work(program: &Program, rows: usize, step: u32) -> Result<(Vec<Work>, usize)> {
    let plan = &program.plan;
    let tables = Tables::new(plan, &Panels::new(plan), Workgroup { step, ..Workgroup::MOST });
    let variants = KernelVariants::default();
    let again = recomputed(&tables, program, variants, rows, None);
    let fit = Fit::of_whole(program, rows)?;
    let bounds = Bounds { workgroups: 65_535, iterations: None, reflection_work: u64::MAX, variants, fuse: true };
    let recorder = || Recorder::new(plan, &tables, fit, bounds, &again);
    let mut dispatches: Vec<Dispatch> = recorder().rows(program)?;
    for steps in [&program.prepare, &program.finish] {
        dispatches.extend(recorder().steps(steps, program.has_gradients())?);
    }
    let mut counted = Counted { plan, tables: &tables, again: &again, fit, rows: rows as f64, step, work: Vec::new() };
    for (op, short) in program.rows.iter().zip(shortcuts(program)) {
        counted.op(op, short);
    }
    if program.finish.contains(&StepOp::Adam) {
        // Copies of the gradient are read; weight and moments are read and written.
        let weights = plan.layout.trained as f64;
        counted.add("adam", 0.0, 4.0 * weights * (fit.slices as f64 + 6.0));
    }
    Ok((counted.work, dispatches.len()))
}

struct Counted<'a> {
    plan: &'a Plan,
    tables: &'a Tables,
    /// Stages whose narrow nodes keep nothing.
    again: &'a [usize],
    fit: Fit,
    rows: f64,
    step: u32,
    work: Vec<Work>,
}

/// Multiply-adds of a node's networks per sample, as lanes do them: outputs are padded to whole panels or their halves.
fn forward(node: &Node, panel: u32) -> u32 {
    let hidden = node.hidden.next_multiple_of(panel);
    node.nets.len() as u32 * (hidden * (node.inputs() + node.hidden) + node.outputs.next_multiple_of(4) * node.hidden)
}

/// The same of the gradients of activations.
fn backward(node: &Node, panel: u32, short: bool) -> u32 {
    let hidden = node.hidden.next_multiple_of(panel);
    let upper = if short { 0 } else { node.upper.next_multiple_of(panel) };
    node.nets.len() as u32 * (hidden * (node.outputs + node.hidden) + upper * node.hidden)
}

impl Counted<'_> {
    /// `bytes`: of the whole batch.
    fn add(&mut self, kernel: &'static str, flops: f64, bytes: f64) {
        match self.work.iter_mut().find(|work| work.kernel == kernel) {
            Some(work) => (work.flops, work.bytes) = (work.flops + flops, work.bytes + bytes),
            None => self.work.push(Work { kernel, flops, bytes }),
        }
    }

    /// Multiply-adds and numbers of every sample.
    fn each(&mut self, kernel: &'static str, products: f64, floats: u32) {
        self.add(kernel, 2.0 * products * self.rows, 4.0 * f64::from(floats) * self.rows);
    }

    fn op(&mut self, op: &Op, short: bool) {
        let n = self.plan.spec.dim;
        match *op {
            Op::NetworksBackward { stage, .. } => self.networks_backward(stage, short),
            Op::Networks { stage: id, keep, .. } => {
                let (stage, tables) = self.stage(id);
                let kept = if keep { 2 * self.kept_rows(id) } else { 0 };
                let products: u32 = stage.nodes.iter().map(|node| forward(node, PANEL)).sum();
                let idle = self.idle(stage, tables.packs.first(), stage.nodes.len());
                self.each("networks_packed", f64::from(products) * idle, n + stage.st_rows + kept);
            }
            Op::Walk { stage: id, keep, .. } => {
                let (stage, _) = self.stage(id);
                let kept = if keep { stage.st_rows + 2 * stage.hidden_rows } else { 0 };
                let products: u32 = stage.nodes.iter().map(|node| forward(node, PANEL)).sum();
                // Without workgroup memory: hidden activations go through the arena and the caches.
                self.each("walk", products.into(), 2 * n + kept);
            }
            Op::Mix { from, .. } => self.each("mix", f64::from(from.rows).powi(2), 2 * from.rows),
            Op::MixBackward { from, .. } if short => self.each("mix", 0.0, from.rows),
            Op::MixBackward { from, .. } => self.each("mix", f64::from(from.rows).powi(2), 2 * from.rows),
            Op::Gather { .. } => self.each("gather", 0.0, 2 * n),
            Op::Normal { .. } => self.each("normal", 0.0, n),
            Op::Couple { stage, .. } => self.each("couple", 0.0, 2 * n + self.stage(stage).0.st_rows),
            Op::Uncouple { stage, .. } => self.each("uncouple", 0.0, 2 * n + self.stage(stage).0.st_rows),
            Op::CoupleBackward { stage, .. } | Op::UncoupleBackward { stage, .. } => {
                self.each("couple_backward", 0.0, 3 * n + 2 * self.stage(stage).0.st_rows);
            }
            Op::Loss { .. } => self.each("loss", 0.0, 2 * n),
            _ => {}
        }
    }

    fn stage(&self, id: usize) -> (&Stage, &StageTables) {
        (&self.plan.stages[id], &self.tables.stages[id])
    }

    /// Hidden rows of either layer that are kept.
    fn kept_rows(&self, id: usize) -> u32 {
        let (stage, tables) = self.stage(id);
        let nodes = if self.again.contains(&id) { tables.wide as usize } else { stage.nodes.len() };
        stage.nodes[..nodes].iter().map(|node| node.nets.len() as u32 * node.hidden).sum()
    }

    /// Lanes over those of them that have a hidden output of the first `nodes` nodes.
    fn idle(&self, stage: &Stage, packs: Option<&Packs>, nodes: usize) -> f64 {
        let Some(packs) = packs else { return 1.0 };
        let PackShape { quads, threads, .. } = packs.shape;
        let groups: u32 = stage.nodes[..nodes].iter().map(|node| node.hidden.div_ceil(PANEL)).sum();
        let count = if nodes == stage.nodes.len() { packs.count } else { packs.wide };
        let lanes = count * threads.next_multiple_of(self.step);
        f64::from(lanes) / f64::from((groups * quads).max(1))
    }

    fn networks_backward(&mut self, id: usize, short: bool) {
        let again = self.again.contains(&id);
        let (stage, tables) = self.stage(id);
        let nodes = if again { tables.wide as usize } else { stage.nodes.len() };
        let (wide, narrow) = stage.nodes.split_at(nodes);
        let products: u32 = wide.iter().map(|node| backward(node, PANEL, short)).sum();
        let idle = self.idle(stage, tables.packs.first(), nodes);
        let tiles = if again { tables.wide_jobs } else { tables.job_count };
        let (st, kept) = (stage.st_rows, self.kept_rows(id));
        let slots = if short { 0 } else { stage.slot_rows };
        let inputs: u32 = narrow.iter().map(|node| node.inputs() + node.outputs + node.upper).sum();
        let narrow_products = tables.narrow.filter(|_| again).map(|narrow_packs| {
            let of_node = |node: &Node| f64::from(forward(node, 4) + backward(node, 4, short));
            // A thread has 16 weights of the middle layer, and of the outer ones once for either.
            let threads = f64::from(narrow_packs.count * narrow_packs.shape.threads.next_multiple_of(self.step));
            let weights = threads * 3.0 * 16.0 * f64::from(stage.networks());
            narrow.iter().map(of_node).sum::<f64>() + weights
        });
        self.each("networks_packed_backward", f64::from(products) * idle, st + 4 * kept + 2 * slots);
        self.each("weight_gradient", f64::from(tiles * JOB_SIZE * JOB_SIZE), st + 4 * kept + self.plan.spec.dim);
        // Its copies of the gradient.
        let copies = self.fit.slices as f64 * f64::from(tiles * JOB_SIZE * JOB_SIZE);
        self.add("weight_gradient", 0.0, 4.0 * copies);
        if let Some(products) = narrow_products {
            self.each("narrow_backward", products, inputs);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::bench::Case;
    use crate::flow::programs::{Name, record};
    use crate::plan::ConditionOn;
    use crate::tape::Memory;

    fn of(case: &str) -> (Vec<Work>, usize, f64) {
        let case = Case::named(case).unwrap();
        let plan = Arc::new(Plan::new(&case.spec(ConditionOn::Input)).unwrap());
        let program = record(Name::Step(Memory::Stored), &plan);
        let (work, dispatches) = work(&program, case.batch, 32).unwrap();
        (work, dispatches, 6.0 * plan.layout.trained as f64 * case.batch as f64)
    }

    #[test]
    fn lanes_do_more_than_the_model_needs_but_not_much_more() {
        for (case, most) in [("lens2", 1.6), ("cross4", 1.7), ("cross4d0", 1.3), ("small", 1.6)] {
            let (work, _, needed) = of(case);
            let flops: f64 = work.iter().map(|work| work.flops).sum();
            assert!(flops > needed && flops < most * needed, "{case}: {} of {needed}", flops / needed);
        }
    }

    #[test]
    fn dispatches_are_those_that_are_recorded() {
        // Narrow networks of cross4 are computed again in each block.
        assert_eq!(["lens2", "cross4"].map(|case| of(case).1), [12, 26]);
    }
}

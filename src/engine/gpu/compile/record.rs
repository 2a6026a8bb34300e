//! Program to dispatches: decided once when a program is compiled, replayed for every tile.

mod clip;
mod fused;
mod inn;
mod networks;
pub(crate) mod reflect;

use super::bounds::Bounds;
use super::cost::Cost;
use super::dispatch::{Dispatch, Extent, Head};
use super::tiling::Fit;
use crate::buffer::Buffer;
use crate::engine::gpu::kernels::launch::{self, TileJob};
use crate::engine::gpu::kernels::shader::{Kernel, Variant};
use crate::engine::gpu::kernels::transform::ColumnMaps;
use crate::engine::gpu::layout::jobs::JOBS_TOGETHER;
use crate::engine::gpu::layout::tables::{StageTables, Tables};
use crate::error::{Error, Result};
use crate::plan::{Plan, Stage};
use crate::program::{MixId, Op, Program, StepOp, shortcuts};

/// Records the operations of one program.
pub(crate) struct Recorder<'a> {
    plan: &'a Plan,
    tables: &'a Tables,
    maps: ColumnMaps,
    fit: Fit,
    bounds: Bounds,
    dispatches: Vec<Dispatch>,
    /// Stages whose narrow nodes keep no hidden activations.
    recomputed: &'a [usize],
    /// Weight tiles, by where they begin in the tables, that have had gradients already.
    written: Vec<u32>,
}

fn tile() -> TileJob {
    bytemuck::Zeroable::zeroed()
}

impl<'a> Recorder<'a> {
    pub(crate) fn new(plan: &'a Plan, tables: &'a Tables, fit: Fit, bounds: Bounds, recomputed: &'a [usize]) -> Self {
        let maps = ColumnMaps::of(&plan.spec);
        Self { plan, tables, maps, fit, bounds, dispatches: Vec::new(), recomputed, written: Vec::new() }
    }

    /// The dispatches of one tile.
    pub(crate) fn rows(mut self, program: &Program) -> Result<Vec<Dispatch>> {
        let short = shortcuts(program);
        let (mut ops, mut short) = (program.rows.as_slice(), short.as_slice());
        while let (Some(op), Some(&first)) = (ops.first(), short.first()) {
            let mut taken = if self.bounds.fuse { self.fused(ops, short)? } else { 0 };
            if taken == 0 {
                self.op(op, first)?;
                taken = 1;
            }
            (ops, short) = (&ops[taken..], &short[taken..]);
        }
        Ok(self.dispatches)
    }

    /// The dispatches of the operations before or after the tiles; `trains`: whether the backward of the reflections
    /// among them follows.
    pub(crate) fn steps(mut self, ops: &[StepOp], trains: bool) -> Result<Vec<Dispatch>> {
        let mut rest = ops;
        while let Some(&op) = rest.first() {
            // Mixings of neighbouring operations share their dispatches where they are numbered in order.
            let mut run = 1;
            match op {
                StepOp::Reflect { mix } => {
                    run = rest.iter().zip(mix..).take_while(|&(&op, mix)| op == StepOp::Reflect { mix }).count();
                    self.reflect(mix, run, trains)?;
                }
                StepOp::ReflectBackward { mix } => {
                    run =
                        rest.iter().zip(mix..).take_while(|&(&op, mix)| op == StepOp::ReflectBackward { mix }).count();
                    self.reflect_backward(mix, run)?;
                }
                StepOp::Clip => self.clip()?,
                StepOp::Adam => self.adam(ops.contains(&StepOp::Clip))?,
            }
            rest = &rest[run..];
        }
        Ok(self.dispatches)
    }

    /// Records a dispatch; `sizes`: what its cost depends on besides the launch.
    fn push<L: Cost>(
        &mut self,
        variant: impl Into<Variant>,
        head: Head,
        grid: [Extent; 2],
        launch: L,
        sizes: L::Sizes<'_>,
    ) -> Result<()> {
        let iterations = launch.iterations(self.maps, sizes);
        let variant = variant.into().of_model(self.maps, self.plan.spec.coupling.networks().len() as u32);
        let refused = |name: &'static str, needed: u64, available: u64| Error::UnsupportedLimit {
            name,
            what: format!("kernel `{}` of this model", variant.kernel.name()),
            needed,
            available,
        };
        for extent in grid {
            let workgroups = extent.workgroups(self.fit.stride() as u32, self.fit.slices as u32);
            if workgroups > self.bounds.workgroups {
                return Err(refused("workgroups", workgroups.into(), self.bounds.workgroups.into()));
            }
            if workgroups == 0 {
                return Ok(());
            }
        }
        if let Some(possible) = self.bounds.iterations.filter(|&possible| iterations > possible) {
            return Err(refused("loop iterations", iterations, possible));
        }
        self.dispatches.push(Dispatch::new(variant, head, grid, launch));
        Ok(())
    }

    /// Cuts a count of workgroups into dispatches that a grid can hold: calls `push` with the first and the number.
    fn split(&mut self, count: u32, mut push: impl FnMut(&mut Self, u32, u32) -> Result<()>) -> Result<()> {
        let most = self.bounds.workgroups.max(1);
        let mut first = 0;
        while first < count {
            let now = (count - first).min(most);
            push(self, first, now)?;
            first += now;
        }
        Ok(())
    }

    fn stage(&self, id: usize) -> (&'a Stage, &'a StageTables) {
        (&self.plan.stages[id], &self.tables.stages[id])
    }

    /// Records an operation, or its short form.
    fn op(&mut self, op: &Op, short: bool) -> Result<()> {
        use Extent::{Fixed, Quads};
        let tile = tile();
        match *op {
            Op::Gather { to, conditions } => {
                let launch = launch::Gather { tile, to: to.first, columns: to.rows, conditions };
                // Fours of conditions, then fours of columns with noise.
                let fours = conditions.div_ceil(4) + (to.rows - conditions).div_ceil(4);
                self.push(Kernel::Gather, Head::Tile, [Quads(64), Fixed(fours)], launch, ())
            }
            Op::Normal { to, stream, deviation } => {
                let launch = launch::Normal { tile, to: to.first, columns: to.rows, stream: stream as u32, deviation };
                self.push(Kernel::Normal, Head::Tile, [Quads(64), Fixed(to.rows.div_ceil(4))], launch, ())
            }
            Op::Fill { .. } if short => Ok(()),
            Op::Fill { to, value } => {
                let launch = launch::Fill { tile, to: to.first, value };
                self.push(Kernel::Fill, Head::Tile, [Quads(64), Fixed(to.rows)], launch, ())
            }
            Op::Mix { mix, transpose, from, to } => self.mix(mix, transpose, from, to),
            Op::Networks { .. } => self.networks(op),
            Op::Couple { stage: id, x, st, to, log_det } => {
                let (stage, tables) = self.stage(id);
                let launch = launch::Couple {
                    tile,
                    x: x.first,
                    st: st.first,
                    to: to.first,
                    log_det: log_det.first,
                    columns: stage.dim,
                    chains: tables.chains,
                    add: u32::from(!short),
                };
                self.push(Kernel::Couple, Head::Tile, [Quads(8), Fixed(1)], launch, stage)
            }
            Op::Uncouple { stage: id, from, x, st } => {
                let (stage, tables) = self.stage(id);
                let launch =
                    launch::Uncouple { tile, input: from.first, x: x.first, st: st.first, chains: tables.chains };
                self.push(Kernel::Uncouple, Head::Tile, [Quads(64), Fixed(stage.dim)], launch, stage)
            }
            Op::Walk { stage: id, x, given, st, hidden, keep: _ } => {
                let (stage, tables) = self.stage(id);
                let launch = launch::Walk {
                    tile,
                    x: x.first,
                    given: given.first,
                    st: st.first,
                    hidden0: hidden[0].first,
                    hidden1: hidden[1].first,
                    nodes: tables.nodes,
                    walk: tables.walk,
                    count: tables.node_count,
                    chains: tables.chains,
                };
                self.push(Kernel::Walk, Head::Tile, [Quads(8), Fixed(1)], launch, stage)
            }
            Op::Loss { z, log_det, loss, d_z, d_log_det } => {
                let launch = launch::Loss {
                    tile,
                    z: z.first,
                    log_det: log_det.first,
                    loss: loss.first,
                    d_z: d_z.first,
                    d_log_det: d_log_det.first,
                    columns: z.rows,
                };
                self.push(Kernel::Loss, Head::Tile, [Quads(8), Fixed(1)], launch, ())
            }
            Op::SquaredError { .. } | Op::Discrepancy { .. } | Op::TotalLoss { .. } | Op::UncoupleBackward { .. } => {
                self.of_inn(op)
            }
            Op::CoupleBackward { stage: id, x, st, d_to, d_log_det, d_x, d_st } => {
                let (stage, tables) = self.stage(id);
                let launch = launch::CoupleBackward {
                    tile,
                    x: x.first,
                    st: st.first,
                    d_to: d_to.first,
                    d_log_det: d_log_det.first,
                    d_x: d_x.first,
                    d_st: d_st.first,
                    chains: tables.chains,
                };
                self.push(Kernel::CoupleBackward, Head::Tile, [Quads(64), Fixed(stage.dim)], launch, stage)
            }
            Op::NetworksBackward { .. } => {
                self.networks_backward(op, short)?;
                if short { Ok(()) } else { self.slot_sum(op) }
            }
            Op::MixBackward { mix, from, d_to, d_from } => {
                if !short {
                    self.mix(mix, true, d_to, d_from)?;
                }
                self.mix_gradient(mix, from, d_to)
            }
        }
    }

    fn mix(&mut self, mix: MixId, transpose: bool, from: Buffer, to: Buffer) -> Result<()> {
        let panel = self.tables.mixes[mix].panels[usize::from(transpose)];
        let n = from.rows;
        let launch = launch::Mix { tile: tile(), input: from.first, to: to.first, columns: n, panel };
        let grid = [Extent::Quads(16), Extent::Fixed(n.div_ceil(32))];
        self.push(Kernel::Mix, Head::Tile, grid, launch, ())
    }

    /// The gradient of Q, where Q is made of trained reflections.
    fn mix_gradient(&mut self, mix: MixId, from: Buffer, d_to: Buffer) -> Result<()> {
        let tables = self.tables.mixes[mix];
        self.weight_gradient([d_to.first; 3], [from.first; 3], Buffer::EMPTY, tables.jobs, tables.job_count)
    }

    /// `left` and `right`: rows of the gradients of the outputs and of the inputs, by layer; `given`: inputs of the
    /// first layer after those.
    fn weight_gradient(&mut self, left: [u32; 3], right: [u32; 3], given: Buffer, jobs: u32, count: u32) -> Result<()> {
        let stride = self.fit.stride();
        let length = self.plan.layout.gradient_len() as u32;
        let add = u32::from(self.written.contains(&jobs));
        if count > 0 {
            self.written.push(jobs);
        }
        self.split(count.div_ceil(JOBS_TOGETHER), |this, first, workgroups| {
            let launch = launch::WeightGradient {
                tile: tile(),
                left0: left[0],
                left1: left[1],
                left2: left[2],
                right0: right[0],
                right1: right[1],
                right2: right[2],
                given: given.first,
                jobs,
                count,
                first,
                length,
                add,
            };
            let grid = [Extent::Fixed(workgroups), Extent::Slices];
            this.push(Kernel::WeightGradient, Head::Tile, grid, launch, stride)
        })
    }

    fn adam(&mut self, clipped: bool) -> Result<()> {
        let trained = self.plan.layout.trained as u32;
        let (grid, pitch) = per_weight(self.plan.layout.trained, self.bounds.workgroups);
        let launch = launch::Adam {
            update: bytemuck::Zeroable::zeroed(),
            trained,
            slices: self.fit.slices as u32,
            length: self.plan.layout.gradient_len() as u32,
            pitch,
            clipped: u32::from(clipped),
        };
        self.push(Kernel::Adam, Head::Update, grid, launch, ())
    }
}

/// The dispatch that copies all weights to the panels, for when the host has written them; none without any weights. It
/// depends on the plan alone. `workgroups`: see [`Bounds::workgroups`].
pub(crate) fn pack_weights(plan: &Plan, workgroups: u32) -> Option<Dispatch> {
    let count = plan.layout.len();
    let (grid, pitch) = per_weight(count, workgroups);
    let launch = launch::PackWeights { count: count as u32, pitch };
    (count > 0).then(|| Dispatch::new(Kernel::PackWeights.into(), Head::None, grid, launch))
}

/// Grid of a thread per weight, and the threads of one of its rows.
fn per_weight(weights: usize, most: u32) -> ([Extent; 2], u32) {
    let workgroups = (weights as u32).div_ceil(256);
    let across = workgroups.min(most.max(1));
    ([Extent::Fixed(across), Extent::Fixed(workgroups.div_ceil(across.max(1)))], across * 256)
}

//! The dispatches of a stage's networks: in packs where the nodes fit into a workgroup, else one by one.

use super::{Extent, Head, Recorder, tile};
use crate::buffer::Buffer;
use crate::engine::gpu::compile::cost::{NarrowNodes, Packed};
use crate::engine::gpu::kernels::launch::{self, NONE};
use crate::engine::gpu::kernels::shader::{Kernel, Variant};
use crate::engine::gpu::layout::packs::Packs;
use crate::error::Result;
use crate::program::Op;

/// The packs of the shape with that number, or of the last shape; none: the arena.
fn pick(packs: &[Packs], number: Option<usize>) -> Option<Packs> {
    let last = packs.len().checked_sub(1)?;
    Some(packs[number?.min(last)])
}

impl Recorder<'_> {
    pub(super) fn networks(&mut self, op: &Op) -> Result<()> {
        let &Op::Networks { stage: id, x, given, st, hidden, keep } = op else {
            unreachable!("called for one operation only")
        };
        let (stage, tables) = self.stage(id);
        if let Some(packs) = pick(&tables.packs, self.bounds.variants.forward) {
            let variant = Variant::packed(Kernel::NetworksPacked, packs.shape);
            let sizes = Packed { stage, shape: packs.shape };
            let kept = match (keep, self.recomputed.contains(&id)) {
                (false, _) => 0,
                (true, true) => packs.wide,
                (true, false) => packs.count,
            };
            return self.split(stage.networks() * packs.count, |this, first, count| {
                let launch = launch::NetworksPacked {
                    tile: tile(),
                    x: x.first,
                    given: given.first,
                    st: st.first,
                    hidden0: hidden[0].first,
                    hidden1: hidden[1].first,
                    packs: packs.at,
                    first,
                    kept,
                };
                let grid = [Extent::Quads(packs.shape.quads), Extent::Fixed(count)];
                this.push(variant, Head::Tile, grid, launch, sizes)
            });
        }
        self.split(stage.networks() * tables.node_count, |this, first, count| {
            let launch = launch::Networks {
                tile: tile(),
                x: x.first,
                given: given.first,
                st: st.first,
                hidden0: hidden[0].first,
                hidden1: hidden[1].first,
                nodes: tables.nodes,
                first,
            };
            this.push(Kernel::Networks, Head::Tile, [Extent::Quads(16), Extent::Fixed(count)], launch, stage)
        })
    }

    pub(super) fn networks_backward(&mut self, op: &Op, short: bool) -> Result<()> {
        let &Op::NetworksBackward { stage: id, x, given, hidden, d_st, d_hidden, slots, .. } = op else {
            unreachable!("called for one operation only")
        };
        let (stage, tables) = self.stage(id);
        let to = if short { NONE } else { slots.first };
        let recomputed = self.recomputed.contains(&id);
        if let Some(packs) = pick(&tables.packs, self.bounds.variants.backward) {
            let variant = Variant::packed(Kernel::NetworksPackedBackward, packs.shape);
            let sizes = Packed { stage, shape: packs.shape };
            self.split(if recomputed { packs.wide } else { packs.count }, |this, first, count| {
                let launch = launch::NetworksPackedBackward {
                    tile: tile(),
                    hidden0: hidden[0].first,
                    hidden1: hidden[1].first,
                    d_st: d_st.first,
                    d_hidden0: d_hidden[0].first,
                    d_hidden1: d_hidden[1].first,
                    slots: to,
                    packs: packs.at,
                    first,
                };
                let grid = [Extent::Quads(packs.shape.quads), Extent::Fixed(count)];
                this.push(variant, Head::Tile, grid, launch, sizes)
            })?;
        } else {
            self.split(if recomputed { tables.wide } else { tables.node_count }, |this, first, count| {
                let launch = launch::NetworksBackward {
                    tile: tile(),
                    hidden0: hidden[0].first,
                    hidden1: hidden[1].first,
                    d_st: d_st.first,
                    d_hidden0: d_hidden[0].first,
                    d_hidden1: d_hidden[1].first,
                    slots: to,
                    nodes: tables.nodes,
                    first,
                };
                let grid = [Extent::Quads(16), Extent::Fixed(count)];
                this.push(Kernel::NetworksBackward, Head::Tile, grid, launch, stage)
            })?;
        }
        let left = [d_hidden[0].first, d_hidden[1].first, d_st.first];
        let right = [x.first, hidden[0].first, hidden[1].first];
        let jobs = if recomputed { tables.wide_jobs } else { tables.job_count };
        self.weight_gradient(left, right, given, tables.jobs, jobs)?;
        if recomputed { self.narrow_backward(id, [x, given], d_st, to) } else { Ok(()) }
    }

    /// Backward and gradients of weights of the narrow nodes of a stage.
    fn narrow_backward(&mut self, id: usize, [x, given]: [Buffer; 2], d_st: Buffer, slots: u32) -> Result<()> {
        let (stage, tables) = self.stage(id);
        let Some(narrow) = tables.narrow else { return Ok(()) };
        let variant = Variant::packed(Kernel::NarrowBackward, narrow.shape);
        let length = self.plan.layout.gradient_len() as u32;
        let add = u32::from(self.written.contains(&narrow.at));
        self.written.push(narrow.at);
        let sizes = NarrowNodes::of(stage, tables.wide, self.fit.capacity);
        self.split(narrow.count, |this, first, count| {
            let launch = launch::NarrowBackward {
                tile: tile(),
                x: x.first,
                given: given.first,
                d_st: d_st.first,
                slots,
                packs: narrow.at,
                first,
                length,
                add,
            };
            this.push(variant, Head::Tile, [Extent::Fixed(count), Extent::Slices], launch, sizes)
        })
    }

    /// Adds what the networks sent to the columns to the columns' gradients.
    pub(super) fn slot_sum(&mut self, op: &Op) -> Result<()> {
        let &Op::NetworksBackward { stage: id, slots, d_x, .. } = op else {
            unreachable!("called for one operation only")
        };
        let (stage, tables) = self.stage(id);
        if stage.slot_rows == 0 {
            return Ok(());
        }
        let launch = launch::SlotSum { tile: tile(), slots: slots.first, d_x: d_x.first, lists: tables.slots };
        let grid = [Extent::Quads(64), Extent::Fixed(stage.dim)];
        self.push(Kernel::SlotSum, Head::Tile, grid, launch, stage)
    }
}

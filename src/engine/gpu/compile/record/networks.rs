//! The dispatches of a stage's networks: in packs where the nodes fit into a workgroup, else one by one.

use super::{Extent, Head, Recorder, dense_iterations, input_iterations, layer_iterations, network_iterations, tile};
use crate::buffer::Buffer;
use crate::engine::gpu::kernels::launch::{self, NONE};
use crate::engine::gpu::kernels::shader::{Kernel, Variant};
use crate::engine::gpu::layout::packs::Packs;
use crate::error::Result;
use crate::plan::{Node, Stage};
use crate::program::Op;

/// Loop iterations of a thread of a pack. `ends` says of a node how many there are over the inputs of the layer that
/// comes first, and how many outputs the last layer has, whose items are shared out among the groups.
fn pack_iterations(stage: &Stage, packs: Packs, ends: impl Fn(&Node) -> (u64, u32)) -> u64 {
    let groups = packs.shape.threads / packs.shape.quads;
    let per_node = stage.nodes.iter().map(|node| {
        let (first, last) = ends(node);
        let items = u64::from(last.div_ceil(4).div_ceil(groups)) + 1;
        first + dense_iterations(node.hidden) + items * (1 + dense_iterations(node.hidden))
    });
    // The items of the last layer of several nodes may be one group's.
    per_node.sum()
}

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
            let iterations = pack_iterations(stage, packs, |node| (input_iterations(node), node.outputs));
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
                this.push(variant, Head::Tile, grid, iterations, launch)
            });
        }
        let iterations = stage.nodes.iter().map(|node| network_iterations(node, 8)).max().unwrap_or(0);
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
            this.push(Kernel::Networks, Head::Tile, [Extent::Quads(16), Extent::Fixed(count)], iterations, launch)
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
            let iterations = u64::from(stage.networks())
                * pack_iterations(stage, packs, |node| (dense_iterations(node.outputs), node.upper));
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
                this.push(variant, Head::Tile, grid, iterations, launch)
            })?;
        } else {
            let iterations = stage.nodes.iter().map(|n| {
                let groups = 16 / stage.networks().max(1);
                let [outputs, hidden] = [n.outputs, n.hidden].map(dense_iterations);
                let layers = layer_iterations(outputs, n.hidden, groups) + layer_iterations(hidden, n.hidden, groups);
                layers + 2 * layer_iterations(hidden, n.upper, 16)
            });
            let iterations = iterations.max().unwrap_or(0);
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
                this.push(Kernel::NetworksBackward, Head::Tile, grid, iterations, launch)
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
        let Some(narrow) = self.tables.stages[id].narrow else { return Ok(()) };
        let variant = Variant::packed(Kernel::NarrowBackward, narrow.shape);
        let length = self.plan.layout.gradient_len() as u32;
        let add = u32::from(self.written.contains(&narrow.at));
        self.written.push(narrow.at);
        let iterations = narrow.iterations(self.fit.capacity);
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
            this.push(variant, Head::Tile, [Extent::Fixed(count), Extent::Slices], iterations, launch)
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
        self.push(Kernel::SlotSum, Head::Tile, grid, longest(&stage.slots), launch)
    }
}

/// Length of the longest list.
pub(super) fn longest<T>(lists: &[Vec<T>]) -> u64 {
    lists.iter().map(Vec::len).max().unwrap_or(0) as u64
}

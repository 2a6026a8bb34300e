//! Narrow nodes: those whose hidden activations are cheaper to compute again in the backward pass than to keep, and the
//! packs in which `shaders/narrow_backward.wgsl` works on them.
//!
//! A hidden activation that is kept travels five times: written, read for the mask, and as a factor of two gradients;
//! its gradient is written and read. For h hidden units and few inputs and outputs that are 40 h bytes per network and
//! sample for 6 h^2 operations: with h = 32 some 5 operations per byte, where a H100 does 20 at its peak and 8 at a
//! realistic rate; with h = 64 about 10. So up to [`WIDEST`] they are computed again, where they would take more than
//! [`MOST_KEPT`].
//!
//! Left out, estimated: wider nodes. Their middle layer has more than 256 blocks of 4 x 4 weights, so a thread would
//! hold several of them in registers and fewer workgroups would run at a time, where there is less to gain.

use std::ops::Range;

use super::panels::{NetPanels, PANEL};
use super::workgroup::Workgroup;
use crate::engine::gpu::kernels::records::{
    self, NarrowPack, Part, Place, Record, Source, Upper, WeightBlock, push_list,
};
use crate::engine::gpu::kernels::shader::PackShape;
use crate::plan::{Node, Stage};

/// Largest hidden width that counts as narrow; estimated (see above), no GPU measured yet.
const WIDEST: u32 = 64;
/// Quads that a workgroup takes along at a time.
pub(crate) const QUADS: u32 = 8;
/// Bytes of a row in workgroup memory: one quad more than it holds.
const ROW_BYTES: u32 = 16 * (QUADS + 1);
/// Rows past the last that a block of weights may read and not use.
const SLACK: u32 = 3;
/// Of what a row to fetch is; see `shaders/shared/narrow.wgsl`.
const OF_X: u32 = 0;
pub(crate) const OF_D_ST: u32 = 1;
pub(crate) const OF_GIVEN: u32 = 2;
/// Most bytes of hidden activations that the narrow nodes of a stage keep from the forward to the backward pass, where
/// it was not measured which is faster. Bounds memory; estimated, no GPU measured yet: to and fro they take 0.2 ms on a
/// H100.
const MOST_KEPT: u64 = 128 << 20;

/// The narrow nodes of a stage in packs, in the tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Narrow {
    pub(crate) shape: PackShape,
    /// Where they begin, as [`NarrowPack`].
    pub(crate) at: u32,
    /// Number of packs.
    pub(crate) count: u32,
    /// Hidden rows of all their nodes in both layers.
    hidden_rows: u32,
}

impl Narrow {
    /// Whether the hidden activations of that many samples are more than [`MOST_KEPT`].
    pub(crate) fn is_much(&self, samples: usize) -> bool {
        u64::from(self.hidden_rows) * 4 * samples as u64 > MOST_KEPT
    }
}

/// What nodes need of a workgroup.
#[derive(Clone, Copy, Default)]
struct Need {
    threads: u32,
    rows: u32,
    hidden: u32,
    middle: u32,
    outer: u32,
    biases: u32,
}

impl Need {
    fn of(node: &Node) -> Self {
        let four = |n: u32| n.div_ceil(4);
        Self {
            rows: 2 * node.hidden + node.inputs() + node.outputs,
            hidden: four(node.hidden),
            middle: four(node.hidden).pow(2),
            outer: four(node.hidden) * (four(node.inputs()) + four(node.outputs)),
            biases: node.hidden.max(node.outputs),
            threads: 0,
        }
    }

    fn with(self, more: Self) -> Self {
        let hidden = self.hidden + more.hidden;
        let (middle, outer, biases) = (self.middle + more.middle, self.outer + more.outer, self.biases + more.biases);
        let threads = (hidden * QUADS).max(middle).max(outer).max(biases);
        Self { threads, rows: self.rows + more.rows, hidden, middle, outer, biases }
    }

    /// Whether a workgroup has room for them and leaves room for others: 256 threads are 16 x 16 blocks of 4 x 4 weights,
    /// with 128 registers each, of which a multiprocessor of an H100 has two. With 48 KiB instead of 32 AMD's compiler
    /// took 152 registers, since no more than three waves were possible anyway, and GCN had one.
    fn fits(self, workgroup: Workgroup) -> bool {
        let Workgroup { bytes, threads, .. } = Workgroup::HALF;
        self.threads <= workgroup.threads.min(threads) && (self.rows + SLACK) * ROW_BYTES <= workgroup.bytes.min(bytes)
    }
}

/// Number of nodes before the narrow ones, which are those at the end of the list.
pub(crate) fn wide_nodes(stage: &Stage, workgroup: Workgroup) -> usize {
    let narrow = |node: &&Node| node.hidden <= WIDEST && Need::default().with(Need::of(node)).fits(workgroup);
    stage.nodes.len() - stage.nodes.iter().rev().take_while(narrow).count()
}

/// Writes the packs of the narrow nodes of a stage whose node table begins at `nodes`.
pub(crate) fn push_narrow(
    words: &mut Vec<u32>,
    stage: &Stage,
    nets: &[Vec<NetPanels>],
    nodes: u32,
    workgroup: Workgroup,
) -> Option<Narrow> {
    let first = wide_nodes(stage, workgroup);
    let mut packs: Vec<Range<usize>> = Vec::new();
    let mut need = Need::default();
    let mut most = Need::default();
    for (i, node) in stage.nodes.iter().enumerate().skip(first) {
        let more = need.with(Need::of(node));
        match packs.last_mut() {
            Some(pack) if more.fits(workgroup) => {
                pack.end = i + 1;
                need = more;
            }
            _ => {
                packs.push(i..i + 1);
                need = Need::default().with(Need::of(node));
            }
        }
        most = Need { threads: most.threads.max(need.threads), rows: most.rows.max(need.rows), ..most };
    }
    if packs.is_empty() {
        return None;
    }
    let heads: Vec<NarrowPack> = packs.iter().map(|pack| push_pack(words, stage, nets, nodes, pack.clone())).collect();
    let at = push_list(words, heads).begin;
    let threads = most.threads.next_multiple_of(workgroup.step).min(workgroup.threads / QUADS * QUADS);
    let hidden_rows = stage.nodes[first..].iter().map(|node| 2 * node.nets.len() as u32 * node.hidden).sum();
    let shape = PackShape { quads: QUADS, threads, rows: most.rows + SLACK };
    Some(Narrow { shape, at, count: packs.len() as u32, hidden_rows })
}

/// Writes the lists of a pack; returns where they are.
fn push_pack(
    words: &mut Vec<u32>,
    stage: &Stage,
    nets: &[Vec<NetPanels>],
    nodes: u32,
    pack: Range<usize>,
) -> NarrowPack {
    let of_pack = &stage.nodes[pack.clone()];
    let sum = |f: fn(&Node) -> u32| of_pack.iter().map(f).sum::<u32>();
    let (all_hidden, all_inputs) = (sum(|n| n.hidden), sum(Node::inputs));
    // Rows in workgroup memory: fronts, rears, inputs, outputs.
    let (mut front, mut inputs, mut outs) = (0, 2 * all_hidden, 2 * all_hidden + all_inputs);
    let [mut hidden, mut biases] = <[Vec<Part>; 2]>::default();
    let mut upper = Vec::new();
    let [mut middle, mut outer] = <[Vec<WeightBlock>; 2]>::default();
    let mut sources = Vec::new();
    for (node, i) in of_pack.iter().zip(pack) {
        let at = nodes + (i * records::Node::WORDS) as u32;
        let place = Place { node: at, front, rear: all_hidden + front, inputs, outs }.push(words);
        let parts = |count: u32| (0..count).step_by(4).map(move |first| Part { place, first });
        hidden.extend(parts(node.hidden));
        upper.extend((0..node.upper).step_by(4).map(|first| {
            let mut panels = [0; 2];
            for (panel, net) in panels.iter_mut().zip(&nets[i]) {
                *panel = half_panel(net.back[0], first, 2 * node.hidden);
            }
            Upper { slot: node.slot + first, count: node.upper - first, front, hidden: node.hidden, panels }
        }));
        biases.extend((0..node.hidden.max(node.outputs)).map(|first| Part { place, first }));
        // Blocks of one layer: those side by side have the same outputs.
        let blocks = |layer: u32, n_out: u32, n_in: u32| {
            let n = n_in.div_ceil(4);
            (0..n_out.div_ceil(4) * n).map(move |i| WeightBlock { place, layer, output: i / n, input: i % n })
        };
        middle.extend(blocks(1, node.hidden, node.hidden));
        outer.extend(blocks(0, node.hidden, node.inputs()));
        outer.extend(blocks(2, node.outputs, node.hidden));
        let given = inputs + node.upper;
        let source = |to: u32, kind: u32, row: u32, step: u32| Source { to, kind, row, step };
        sources.extend((0..node.upper).map(|c| source(inputs + c, OF_X, node.upper_first + c, 0)));
        sources.extend((0..node.given).map(|c| source(given + c, OF_GIVEN, c, 0)));
        sources.extend((0..node.outputs).map(|c| source(outs + c, OF_D_ST, node.sum + c, node.outputs)));
        front += node.hidden;
        inputs += node.inputs();
        outs += node.outputs;
    }
    NarrowPack {
        hidden: push_list(words, hidden),
        middle: push_list(words, middle),
        outer: push_list(words, outer),
        biases: push_list(words, biases),
        sources: push_list(words, sources),
        upper: push_list(words, upper),
    }
}

/// The half panel of four outputs from `first` on, of panels with that many vec4 each; as in the shader.
fn half_panel(at: u32, first: u32, length: u32) -> u32 {
    at + first / PANEL * length + first / 4 % 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gpu::layout::panels::Panels;
    use crate::plan::{Kind, Plan, Spec};

    fn narrow(dim: u32, width: u32, workgroup: Workgroup) -> (usize, Option<Narrow>) {
        narrow_given(0, dim, width, workgroup)
    }

    fn narrow_given(cond_dim: u32, dim: u32, width: u32, workgroup: Workgroup) -> (usize, Option<Narrow>) {
        let kind = if cond_dim == 0 { Kind::Flow } else { Kind::Cinn };
        let plan = Plan::new(&Spec { kind, cond_dim, dim, width, blocks: 1, ..Spec::default() }).unwrap();
        let (stage, nets) = (&plan.stages[0], Panels::new(&plan).nets);
        (wide_nodes(stage, workgroup), push_narrow(&mut vec![], stage, &nets[0], 0, workgroup))
    }

    #[test]
    fn narrow_nodes_fit_into_a_workgroup() {
        let workgroups = [(16_384, 256), (32_768, 1024), (49_152, 512)];
        for workgroup in workgroups.map(|(bytes, threads)| Workgroup { bytes, threads, step: 32 }) {
            let flows = [(1, 1), (2, 64), (3, 1), (7, 21), (20, 104), (100, 263), (33, 600), (200, 9)];
            let given = [(1, 1, 1), (5, 7, 21), (50, 20, 104), (300, 2, 8)];
            for (cond_dim, dim, width) in flows.map(|(dim, width)| (0, dim, width)).into_iter().chain(given) {
                let (_, Some(narrow)) = narrow_given(cond_dim, dim, width, workgroup) else { continue };
                let PackShape { quads, threads, rows } = narrow.shape;
                assert!(threads <= workgroup.threads && threads % quads == 0 && rows * ROW_BYTES <= workgroup.bytes);
            }
        }
    }

    #[test]
    fn the_narrow_nodes_of_known_models() {
        let nvidia = Workgroup { step: 32, ..Workgroup::MOST };
        assert_eq!(narrow(20, 104, nvidia).0, 1);
        // h = 263, 2 x 131, 4 x 65; 32 is narrow.
        assert_eq!(narrow(100, 263, nvidia).0, 7);
        // Conditions take room in a workgroup.
        assert_eq!((narrow_given(200, 2, 8, nvidia).0, narrow_given(300, 2, 8, nvidia).0), (0, 1));
        let (wide, none) = narrow(20, 2000, nvidia);
        assert!(none.is_none() && wide == 15);
    }
}

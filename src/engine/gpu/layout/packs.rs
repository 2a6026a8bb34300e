//! Packs: nodes of a stage whose networks share a workgroup, so that narrow networks keep as many threads busy as wide
//! ones, and the shapes of the workgroups that run them.
//!
//! Hidden activations of a pack stay in workgroup memory. Per input of a layer a thread reads one vec4 of activations
//! there and two of weights through the cache, for 32 multiply-adds: 3 loads, and about 6 instructions for addresses
//! and the driver's bounds checks, so some 75 % of the instructions are multiply-adds (38 % with 4 outputs and scalar
//! weights). A pack of 128 rows and 16 quads takes 32 KiB and 256 threads of about 80 registers: three per
//! multiprocessor of an H100 (65,536 registers, 227 KiB), 24 warps.
//!
//! Estimated to be of no help: an odd stride of the rows. Threads side by side read quads side by side, so 8 of them
//! meet all 32 banks once whatever the stride. Nor weights in workgroup memory: a layer of 104 inputs has 43 KiB of
//! them, and the threads of a warp read at most four different vec4 at once.

use super::narrow::wide_nodes;
use super::panels::PANEL;
use super::workgroup::Workgroup;
use crate::engine::gpu::kernels::records::{self, Item, Pack, Record, push_list};
use crate::engine::gpu::kernels::shader::PackShape;
use crate::plan::Stage;

/// Outputs of the last layer that an item has.
const OUTPUTS: u32 = 4;
/// Hidden rows to which narrow nodes are packed.
const ROWS: u32 = 128;
/// Most quads that a workgroup has.
const MOST_QUADS: u32 = 16;
/// Numbers of quads that a workgroup may have besides [`full`], best first.
const QUADS: [u32; 3] = [MOST_QUADS, 8, 4];

/// The packs of a stage for one shape of workgroups, in the tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packs {
    pub(crate) shape: PackShape,
    /// Where they begin, as [`Pack`].
    pub(crate) at: u32,
    /// Number of packs.
    pub(crate) count: u32,
    /// Number of those of wide nodes, which come first.
    pub(crate) wide: u32,
}

/// Most rows and groups of eight that a pack may have.
#[derive(Clone, Copy, Debug)]
struct Room {
    rows: u32,
    groups: u32,
}

/// Quads with which the widest node comes closest to the threads of [`Workgroup::HALF`]: 16 bytes for each of the eight
/// outputs that a thread has are 32 KiB, and multiprocessors of AMD's keep 2 or 4 waves at a time. 16 quads of a node of
/// 152 would be 38 KiB, of which they keep one or three.
fn full(widest: u32) -> u32 {
    (Workgroup::HALF.threads / widest.max(ROWS).div_ceil(PANEL)).clamp(QUADS[2], MOST_QUADS)
}

/// Room of packs of `quads` quads, where the widest node finds any.
fn room(widest: u32, quads: u32, workgroup: Workgroup) -> Option<Room> {
    let (rows, groups) = (workgroup.bytes / 16 / quads, workgroup.threads / quads);
    if widest > rows || widest.div_ceil(PANEL) > groups {
        return None;
    }
    let rows = widest.max(ROWS).min(rows);
    let groups = (rows.div_ceil(PANEL) * quads).next_multiple_of(workgroup.step).min(workgroup.threads) / quads;
    Some(Room { rows, groups })
}

/// Cuts the nodes, of these widths, into packs: nodes in order, as many as there is room for, and a new one at `split`.
fn cut(widths: &[u32], split: usize, room: Room) -> Vec<std::ops::Range<usize>> {
    let mut packs: Vec<std::ops::Range<usize>> = Vec::new();
    let (mut rows, mut groups) = (0, 0);
    for (i, &width) in widths.iter().enumerate() {
        rows += width;
        groups += width.div_ceil(PANEL);
        match packs.last_mut() {
            Some(pack) if i != split && rows <= room.rows && groups <= room.groups => pack.end = i + 1,
            _ => {
                packs.push(i..i + 1);
                (rows, groups) = (width, width.div_ceil(PANEL));
            }
        }
    }
    packs
}

/// Writes the packs of a stage whose node table begins at `nodes`, for every shape that its widest node allows, best
/// first. None: it is too wide for any.
pub(crate) fn push_packs(words: &mut Vec<u32>, stage: &Stage, nodes: u32, workgroup: Workgroup) -> Vec<Packs> {
    let widths: Vec<u32> = stage.nodes.iter().map(|node| node.hidden).collect();
    let widest = widths.iter().copied().max().unwrap_or(0);
    let split = wide_nodes(stage, workgroup);
    let first = full(widest);
    let all = [first].into_iter().chain(QUADS.into_iter().filter(|&quads| quads != first));
    let shapes = all.filter_map(|quads| Some((quads, room(widest, quads, workgroup)?)));
    let packs = shapes.map(|(quads, room)| {
        let cut = cut(&widths, split, room);
        let wide = cut.iter().filter(|pack| pack.start < split).count() as u32;
        Packs { wide, ..push_shape(words, stage, nodes, &cut, quads, workgroup) }
    });
    packs.collect()
}

fn push_shape(
    words: &mut Vec<u32>,
    stage: &Stage,
    nodes: u32,
    packs: &[std::ops::Range<usize>],
    quads: u32,
    workgroup: Workgroup,
) -> Packs {
    let (mut most_rows, mut most_groups) = (0, 0);
    let mut heads = Vec::with_capacity(packs.len());
    for pack in packs {
        let mut items: [Vec<Item>; 3] = Default::default();
        let mut row = 0;
        for (node, i) in stage.nodes[pack.clone()].iter().zip(pack.clone()) {
            let at = nodes + (i * records::Node::WORDS) as u32;
            for (list, (count, step)) in
                items.iter_mut().zip([(node.hidden, PANEL), (node.outputs, OUTPUTS), (node.upper, PANEL)])
            {
                list.extend((0..count).step_by(step as usize).map(|first| Item { node: at, first, row }));
            }
            row += node.hidden;
        }
        most_rows = most_rows.max(row);
        most_groups = most_groups.max(items[0].len() as u32);
        let [hidden, outs, upper] = items.map(|list| push_list(words, list));
        heads.push(Pack {
            hidden: hidden.begin,
            hidden_count: hidden.count,
            outs: outs.begin,
            outs_count: outs.count,
            upper: upper.begin,
            upper_count: upper.count,
        });
    }
    let at = push_list(words, heads).begin;
    // Whole groups.
    let threads = (most_groups * quads).next_multiple_of(workgroup.step).min(workgroup.threads) / quads * quads;
    Packs { shape: PackShape { quads, threads, rows: most_rows }, at, count: packs.len() as u32, wide: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gpu::kernels::records::read;
    use crate::plan::{Plan, Spec};

    /// WebGPU's defaults, llvmpipe, NVIDIA, AMD.
    const WORKGROUPS: [Workgroup; 4] = [
        Workgroup { bytes: 16_384, threads: 256, step: 32 },
        Workgroup { bytes: 32_768, threads: 1024, step: 32 },
        Workgroup { bytes: 49_152, threads: 512, step: 32 },
        Workgroup::MOST,
    ];

    #[test]
    fn every_output_has_one_group_of_threads_and_fits() {
        for workgroup in WORKGROUPS {
            for (dim, width) in [(1, 1), (2, 64), (7, 21), (20, 104), (100, 263), (33, 600)] {
                let plan = Plan::new(&Spec { dim, width, blocks: 1, ..Spec::default() }).unwrap();
                let stage = &plan.stages[0];
                let mut words = vec![];
                for packs in push_packs(&mut words, stage, 0, workgroup) {
                    let PackShape { quads, threads, rows } = packs.shape;
                    assert!(
                        threads <= workgroup.threads && threads % quads == 0 && rows * quads * 16 <= workgroup.bytes
                    );
                    let mut seen = vec![0; stage.hidden_rows as usize];
                    for pack in read::<Pack>(&words, packs.at, packs.count) {
                        assert!(pack.hidden_count * quads <= threads);
                        let mut taken = vec![0; rows as usize];
                        for item in read::<Item>(&words, pack.hidden, pack.hidden_count) {
                            let node = &stage.nodes[item.node as usize / records::Node::WORDS];
                            for i in item.first..(item.first + PANEL).min(node.hidden) {
                                seen[(node.hidden_first + i) as usize] += 1;
                                taken[(item.row + i) as usize] += 1;
                            }
                        }
                        assert!(taken.iter().all(|&owners| owners <= 1), "N = {dim}");
                    }
                    // s of every node; t is at the same places.
                    assert_eq!(seen.iter().sum::<u32>() * 2, stage.hidden_rows, "N = {dim}");
                    assert!(seen.iter().all(|&n| n <= 1));
                }
            }
        }
    }

    #[test]
    fn shapes_of_known_models() {
        let shape = |dim, width, workgroup| {
            let plan = Plan::new(&Spec { dim, width, blocks: 1, ..Spec::default() }).unwrap();
            let all = push_packs(&mut vec![], &plan.stages[0], 0, workgroup);
            all.first().map(|packs| ([packs.shape.quads, packs.shape.threads, packs.shape.rows], packs.count))
        };
        // One level per pack.
        assert_eq!(shape(20, 104, WORKGROUPS[2]), Some(([16, 256, 104], 4)));
        assert_eq!(shape(20, 104, WORKGROUPS[0]).unwrap().0, [8, 128, 104]);
        for workgroup in &WORKGROUPS[2..] {
            assert_eq!(shape(20, 152, *workgroup).unwrap().0, [13, 247, 152]);
            assert_eq!(shape(100, 263, *workgroup).unwrap().0, [7, 252, 263]);
        }
        assert_eq!(shape(33, 2000, WORKGROUPS[2]), None);
    }
}

//! Plan to u32 tables: what the kernels know of a model.

use super::jobs::{Product, push_jobs, push_node_jobs};
use super::narrow::{Narrow, push_narrow, wide_nodes};
use super::nodes::push_nodes;
use super::packs::{Packs, push_packs};
use super::panels::{NetPanels, Panels};
use super::workgroup::Workgroup;
use crate::engine::gpu::kernels::launch::NONE;
use crate::engine::gpu::kernels::records::{Chain, Link, List, Mixing, Record, Slot, Visit, push_list};
use crate::plan::{Plan, Stage};

/// Where the tables of a stage begin.
#[derive(Clone, Debug)]
pub(crate) struct StageTables {
    /// As [`Node`](crate::engine::gpu::kernels::records::Node).
    pub(crate) nodes: u32,
    /// Number of nodes.
    pub(crate) node_count: u32,
    /// Packs of nodes by shape of the workgroups, the best first; none where the nodes are too wide for any.
    pub(crate) packs: Vec<Packs>,
    /// The narrow nodes, if there are any.
    pub(crate) narrow: Option<Narrow>,
    /// Number of nodes before them.
    pub(crate) wide: u32,
    /// Order of the inverse walk, as [`Visit`].
    pub(crate) walk: u32,
    /// As [`Chain`], one for each column.
    pub(crate) chains: u32,
    /// As [`List`] of [`Slot`], one for each column.
    pub(crate) slots: u32,
    /// As [`WeightTile`](crate::engine::gpu::kernels::records::WeightTile).
    pub(crate) jobs: u32,
    /// Number of weight tiles.
    pub(crate) job_count: u32,
    /// Number of weight tiles of the nodes that are not narrow, which come first.
    pub(crate) wide_jobs: u32,
}

/// Where the tables of a mixing begin.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MixTables {
    /// Weight tiles of the gradient of Q.
    pub(crate) jobs: u32,
    /// Number of weight tiles.
    pub(crate) job_count: u32,
    /// Where the panels of Q begin, and the transposed ones.
    pub(crate) panels: [u32; 2],
}

/// All tables of a plan in one array.
#[derive(Debug)]
pub(crate) struct Tables {
    /// The array.
    pub(crate) words: Vec<u32>,
    /// By stage.
    pub(crate) stages: Vec<StageTables>,
    /// By mixing.
    pub(crate) mixes: Vec<MixTables>,
    /// As [`Mixing`].
    pub(crate) mix_list: u32,
}

impl Tables {
    pub(crate) fn new(plan: &Plan, panels: &Panels, workgroup: Workgroup) -> Self {
        let mut words = Vec::new();
        let stages = plan.stages.iter().zip(&panels.nets).enumerate();
        // Two counters, one for each layer, for every hidden row.
        let stages = stages
            .map(|(id, (stage, nets))| stage_tables(stage, nets, 2 * plan.hidden_before(id), workgroup, &mut words))
            .collect();
        let mixes = plan
            .mixes()
            .zip(&panels.mixes)
            .map(|(mix, &panels)| {
                let jobs = words.len() as u32;
                let job_count = if mix.reflections.is_some() {
                    push_jobs(
                        &mut words,
                        &Product { layer: 0, left: 0, right: 0, n_out: mix.dim, n_in: mix.dim, columns: mix.dim },
                        mix.q,
                        NONE,
                    )
                } else {
                    0
                };
                MixTables { jobs, job_count, panels }
            })
            .collect();
        let mix_list = words.len() as u32;
        for mix in plan.mixes() {
            Mixing { dim: mix.dim, q: mix.q, vectors: mix.reflections.unwrap_or(0) }.push(&mut words);
        }
        // A binding must not be empty.
        words.push(0);
        Self { words, stages, mixes, mix_list }
    }
}

/// `counters`: number of the stage's first counter of dropout.
fn stage_tables(
    stage: &Stage,
    nets: &[Vec<NetPanels>],
    counters: u32,
    workgroup: Workgroup,
    words: &mut Vec<u32>,
) -> StageTables {
    let nodes = push_nodes(words, stage, nets, counters);
    let walk = push_list(words, stage.walk.iter().map(|&node| Visit { node }).collect()).begin;
    let chains = push_chains(words, stage);
    let slots = push_slots(words, stage);
    let jobs = words.len() as u32;
    let jobs_of: Vec<u32> = stage.nodes.iter().map(|node| push_node_jobs(words, node)).collect();
    let wide = wide_nodes(stage, workgroup);
    let (job_count, wide_jobs) = (jobs_of.iter().sum(), jobs_of[..wide].iter().sum());
    let packs = push_packs(words, stage, nodes, workgroup);
    let narrow = push_narrow(words, stage, nets, nodes, workgroup);
    let wide = wide as u32;
    StageTables {
        nodes,
        node_count: stage.nodes.len() as u32,
        packs,
        narrow,
        wide,
        walk,
        chains,
        slots,
        jobs,
        job_count,
        wide_jobs,
    }
}

/// Writes the links of every column, and after them the chains; returns where these begin.
fn push_chains(words: &mut Vec<u32>, stage: &Stage) -> u32 {
    let mut chains = Vec::with_capacity(stage.chains.len());
    for (column, links) in stage.chains.iter().enumerate() {
        let links = links.iter().map(|link| Link { first: link.first, step: link.step }).collect();
        let List { begin, count } = push_list(words, links);
        let sum = stage.sums.get(column).copied().flatten().unwrap_or_default();
        chains.push(Chain { links: begin, count, sum });
    }
    push_list(words, chains).begin
}

/// Writes the slots of every column, and after them where they are; returns where this begins.
fn push_slots(words: &mut Vec<u32>, stage: &Stage) -> u32 {
    let slots = |rows: &Vec<u32>| rows.iter().map(|&row| Slot { row }).collect();
    let lists = stage.slots.iter().map(|rows| push_list(words, slots(rows))).collect();
    push_list(words, lists).begin
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gpu::kernels::records::{WeightTile, read};
    use crate::engine::gpu::layout::jobs::JOB_SIZE;
    use crate::plan::{Kind, Mixing, Spec};

    fn specs() -> Vec<Spec> {
        let base = Spec { width: 70, mixing: Mixing::Householder, ..Spec::default() };
        let flows = [1, 2, 3, 7, 20, 33].map(|dim| Spec { dim, ..base.clone() });
        let sizes = [(1, 1), (2, 20), (7, 3), (33, 5)];
        let given = sizes
            .map(|(dim, cond_dim)| [Kind::Cinn, Kind::Hint].map(|kind| Spec { kind, dim, cond_dim, ..base.clone() }));
        flows.into_iter().chain(given.concat()).collect()
    }

    #[test]
    fn every_gradient_belongs_to_exactly_one_weight_tile() {
        for spec in specs() {
            let plan = Plan::new(&spec).unwrap();
            let workgroup = Workgroup { bytes: 16_384, threads: 256, step: 32 };
            let tables = Tables::new(&plan, &Panels::new(&plan), workgroup);
            let mut writers = vec![0; plan.layout.gradient_len()];
            // Those of lanes are the same weights again.
            let stages = plan.blocks.iter().flat_map(|block| &tables.stages[block.stages.clone()]);
            let lists = stages.map(|s| (s.jobs, s.job_count));
            for (jobs, count) in lists.chain(tables.mixes.iter().map(|m| (m.jobs, m.job_count))) {
                for tile in read::<WeightTile>(&tables.words, jobs, count) {
                    let WeightTile { n_out, n_in, weight, bias, output: o0, input: k0, columns: split, .. } = tile;
                    assert!(split == n_in || split + spec.given() == n_in, "{split} of {n_in}");
                    for o in o0..n_out.min(o0 + JOB_SIZE) {
                        for k in k0..n_in.min(k0 + JOB_SIZE) {
                            writers[(weight + o * n_in + k) as usize] += 1;
                        }
                        if k0 == 0 && bias != NONE {
                            writers[(bias + o) as usize] += 1;
                        }
                    }
                }
            }
            for t in plan.layout.tensors.iter().filter(|t| t.name.ends_with("reflections")) {
                // Written by the backward of the reflections.
                writers[t.range()].iter_mut().for_each(|w| *w += 1);
            }
            assert!(writers.iter().all(|&w| w == 1), "{spec:?}");
        }
    }
}

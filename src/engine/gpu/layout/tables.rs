//! Plan to u32 tables: what the kernels know of a model.

use super::jobs::{Product, push_jobs, push_node_jobs};
use super::narrow::{Narrow, push_narrow, wide_nodes};
use super::nodes::push_nodes;
use super::packs::{Packs, push_packs};
use super::panels::{NetPanels, Panels};
use super::workgroup::Workgroup;
use crate::engine::gpu::kernels::launch::NONE;
use crate::plan::{Plan, Stage};

/// Where the tables of a stage begin.
#[derive(Clone, Debug)]
pub(crate) struct StageTables {
    /// [`NODE`](super::nodes::NODE) words per node.
    pub(crate) nodes: u32,
    /// Number of nodes.
    pub(crate) node_count: u32,
    /// Packs of nodes by shape of the workgroups, the best first; none where the nodes are too wide for any.
    pub(crate) packs: Vec<Packs>,
    /// The narrow nodes, if there are any.
    pub(crate) narrow: Option<Narrow>,
    /// Number of nodes before them.
    pub(crate) wide: u32,
    /// Order of the inverse walk, one word per node.
    pub(crate) walk: u32,
    /// Three words per column: where its links begin, their number, the first row of the sums of parameters, if there
    /// are any. A link is two words: the row of the first parameter, and rows to the next.
    pub(crate) chains: u32,
    /// Two words per column: where its list of slot rows begins, and its length.
    pub(crate) slots: u32,
    /// [`JOB`](super::jobs::JOB) words per weight tile.
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
    /// Three words per mixing: dimension, offset of Q, offset of the reflections (0 where there are none).
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
            words.extend([mix.dim, mix.q, mix.reflections.unwrap_or(0)]);
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
    let walk = words.len() as u32;
    words.extend(&stage.walk);
    let chains = push_chains(words, stage);
    let slots = push_lists(words, &stage.slots, |&row| vec![row]);
    let jobs = words.len() as u32;
    let jobs_of: Vec<u32> = stage.nodes.iter().map(|node| push_node_jobs(words, node)).collect();
    let wide = wide_nodes(stage, workgroup);
    let (job_count, wide_jobs) = (jobs_of.iter().sum(), jobs_of[..wide].iter().sum());
    let packs = push_packs(words, stage, nodes, workgroup);
    let narrow = push_narrow(words, stage, nodes, workgroup);
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

/// Writes a heading of (begin, length, row of the first sum) per column, then the links; returns where the heading
/// begins.
fn push_chains(words: &mut Vec<u32>, stage: &Stage) -> u32 {
    let heading = words.len();
    words.resize(heading + 3 * stage.chains.len(), 0);
    for (column, links) in stage.chains.iter().enumerate() {
        let sum = stage.sums.get(column).copied().flatten().unwrap_or_default();
        let head = [words.len() as u32, links.len() as u32, sum];
        words[heading + 3 * column..][..3].copy_from_slice(&head);
        words.extend(links.iter().flat_map(|link| [link.first, link.step]));
    }
    heading as u32
}

/// Writes a heading of (begin, length) per list, then the lists; returns where the heading begins.
fn push_lists<T>(words: &mut Vec<u32>, lists: &[Vec<T>], item: impl Fn(&T) -> Vec<u32>) -> u32 {
    let heading = words.len();
    words.resize(heading + 2 * lists.len(), 0);
    for (column, list) in lists.iter().enumerate() {
        words[heading + 2 * column] = words.len() as u32;
        words[heading + 2 * column + 1] = list.len() as u32;
        words.extend(list.iter().flat_map(&item));
    }
    heading as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::gpu::layout::jobs::{JOB, JOB_SIZE};
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
            let workgroup = Workgroup { bytes: 16_384, threads: 256 };
            let tables = Tables::new(&plan, &Panels::new(&plan), workgroup);
            let mut writers = vec![0; plan.layout.gradient_len()];
            // Those of lanes are the same weights again.
            let stages = plan.blocks.iter().flat_map(|block| &tables.stages[block.stages.clone()]);
            let lists = stages.map(|s| (s.jobs, s.job_count));
            for (jobs, count) in lists.chain(tables.mixes.iter().map(|m| (m.jobs, m.job_count))) {
                for job in tables.words[jobs as usize..].chunks(JOB).take(count as usize) {
                    let &[_, _, _, n_out, n_in, weight, bias, o0, k0, split] = job else { unreachable!() };
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

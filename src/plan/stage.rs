//! Nodes to stages: groups of nodes whose networks depend on nothing in the group, so that one dispatch runs them all.

use std::ops::Deref;

use super::lane::{Coupling, Part};
use super::spec::{ConditionOn, Spec};

/// Offsets of one network Linear, ReLU, Linear, ReLU, Linear in the weight arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Net {
    /// Weights of the three layers, each row-major `[n_out, n_in]`.
    pub weight: [u32; 3],
    /// Biases of the three layers.
    pub bias: [u32; 3],
}

/// The networks of a coupling node: s and t of an affine map, or the one that gives the parameters of a spline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nets {
    /// One network.
    One([Net; 1]),
    /// Two of the same shape.
    Two([Net; 2]),
}

impl Nets {
    pub(super) fn new(mut nets: impl Iterator<Item = Net>) -> Self {
        match (nets.next(), nets.next(), nets.next()) {
            (Some(one), None, None) => Self::One([one]),
            (Some(first), Some(second), None) => Self::Two([first, second]),
            _ => unreachable!("a node has one network or two"),
        }
    }
}

impl Deref for Nets {
    type Target = [Net];

    fn deref(&self) -> &[Net] {
        match self {
            Self::One(one) => one,
            Self::Two(two) => two,
        }
    }
}

/// A coupling node as the kernels see it: which columns it reads, which it transforms, where its weights are.
///
/// Row numbers (`st`, `hidden_first`, `slot`) count within the stage's buffers, where one row holds one feature of all
/// samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    /// First column read.
    pub upper_first: u32,
    /// Number of columns read (may be 0).
    pub upper: u32,
    /// Number of conditions that its networks read after the columns: 0, or all that the stage is given.
    pub given: u32,
    /// First column transformed.
    pub lower_first: u32,
    /// Number of columns transformed.
    pub lower: u32,
    /// Hidden width of its networks.
    pub hidden: u32,
    /// n_out of each of its networks: for every lower column as many as the map takes from a network, side by side.
    pub outputs: u32,
    /// Its networks.
    pub nets: Nets,
    /// First row in the stage's `st` buffer: the outputs of its networks one after the other.
    pub st: u32,
    /// The same in a buffer in which the outputs of all nodes for a column are added up; where nothing is summed, `st`.
    pub sum: u32,
    /// Whether nodes before it, in the list and in the walk, have outputs for its lower columns that its own are added
    /// to. All of these columns or none are theirs.
    pub adds: bool,
    /// First row in each of the stage's two hidden buffers: `hidden` rows of each network.
    pub hidden_first: u32,
    /// First row in the stage's slot buffer: `upper` rows, the gradient that this node sends to its upper columns.
    pub slot: u32,
}

/// Shape of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Layer {
    /// n_in.
    pub inputs: u32,
    /// n_out.
    pub outputs: u32,
}

impl Node {
    /// The three layers of its networks, the first that runs first.
    pub(crate) fn layers(&self) -> [Layer; 3] {
        let &Self { hidden, outputs, .. } = self;
        [(self.inputs(), hidden), (hidden, hidden), (hidden, outputs)]
            .map(|(inputs, outputs)| Layer { inputs, outputs })
    }

    /// n_in of its networks: upper columns, then conditions (may be 0).
    pub(crate) fn inputs(&self) -> u32 {
        self.upper + self.given
    }
}

/// The parameters that a node has for one of its lower columns, as rows of the stage's `st` buffer: `first`, `first +
/// step` and so on. Of an affine map these are s and t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Link {
    /// Row of the first parameter.
    pub first: u32,
    /// Rows from one parameter to the next.
    pub step: u32,
}

impl Link {
    /// Row of a parameter.
    pub(crate) fn row(self, parameter: u32) -> u32 {
        self.first + parameter * self.step
    }
}

/// Nodes whose networks can all run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stage {
    /// Number of columns that it transforms or passes on.
    pub dim: u32,
    /// Number of conditions that it is given beside them.
    pub given: u32,
    /// The nodes, level by level from the root, so none is wider than one before it.
    pub nodes: Vec<Node>,
    /// Positions in `nodes` in the order of the inverse walk: upper half, node, lower half.
    pub walk: Vec<u32>,
    /// For every column the parameters of all nodes that transform it, deepest node first: affine maps in forward order,
    /// or parameters to be summed.
    pub chains: Vec<Vec<Link>>,
    /// Where parameters are summed: for every column the row of the first sum, if any node transforms it.
    pub sums: Vec<Option<u32>>,
    /// For every column the slot rows whose sum is the networks' share of its gradient, in fixed order.
    pub slots: Vec<Vec<u32>>,
    /// Rows of the `st` buffer.
    pub st_rows: u32,
    /// Rows of the buffer in which parameters are summed, at most `st_rows`; where nothing is summed, `st_rows`.
    pub sum_rows: u32,
    /// Rows of each of the two hidden buffers.
    pub hidden_rows: u32,
    /// Rows of the slot buffer.
    pub slot_rows: u32,
}

impl Stage {
    /// The largest hidden width.
    pub(crate) fn widest(&self) -> u32 {
        self.nodes.iter().map(|node| node.hidden).max().unwrap_or(0)
    }

    /// Networks of each node.
    pub(crate) fn networks(&self) -> u32 {
        self.nodes.first().map_or(0, |node| node.nets.len() as u32)
    }
}

impl Node {
    /// First row in the stage's `st` buffer of the outputs of a network.
    pub(crate) fn st_of(&self, network: u32) -> u32 {
        self.st + network * self.outputs
    }

    /// The same in the buffer of sums.
    pub(crate) fn sum_of(&self, network: u32) -> u32 {
        self.sum + network * self.outputs
    }

    /// First row in each hidden buffer of a network.
    pub(crate) fn hidden_of(&self, network: u32) -> u32 {
        self.hidden_first + network * self.hidden
    }
}

/// Cuts coupling nodes of one block over `dim` columns into stages, in forward order.
pub(super) fn stages(spec: &Spec, dim: u32, couplings: &[(Coupling, Nets)]) -> Vec<Stage> {
    let mut couplings: Vec<_> = couplings.iter().collect();
    // A stable sort: nodes of a level stay in the order of their columns.
    couplings.sort_by_key(|(c, _)| c.level());
    let stage = |couplings: &[_]| stage(spec, dim, couplings);
    match spec.condition_on {
        ConditionOn::Input => vec![stage(&couplings)],
        ConditionOn::Output => {
            let mut parts: Vec<Part> = couplings.iter().map(|(c, _)| c.part).collect();
            parts.sort_by_key(|part| part.forward_key());
            parts.dedup();
            let of_part = |part| couplings.iter().filter(|(c, _)| c.part == part).copied().collect::<Vec<_>>();
            parts.into_iter().map(|part| stage(&of_part(part))).collect()
        }
    }
}

fn stage(spec: &Spec, dim: u32, couplings: &[&(Coupling, Nets)]) -> Stage {
    let (sums, per_column) = if spec.coupling.sums() {
        let mut next = 0;
        let sums = (0..dim).map(|c| {
            let lower = |(n, _): &&(Coupling, Nets)| (n.lower_first..n.lower_first + n.lower).contains(&c);
            let is_transformed = couplings.iter().any(lower);
            is_transformed.then(|| {
                next += spec.coupling.outputs();
                next - spec.coupling.outputs()
            })
        });
        (sums.collect(), spec.coupling.outputs())
    } else {
        (Vec::new(), 1)
    };
    let mut nodes: Vec<Node> = Vec::with_capacity(couplings.len());
    let (mut st_rows, mut hidden_rows, mut slot_rows) = (0, 0, 0);
    let mut has_outputs = vec![false; dim as usize];
    for (c, nets) in couplings {
        let lower = c.lower_first as usize..(c.lower_first + c.lower) as usize;
        nodes.push(Node {
            upper_first: c.upper_first,
            upper: c.upper,
            given: c.given,
            lower_first: c.lower_first,
            lower: c.lower,
            hidden: c.hidden,
            outputs: c.outputs,
            nets: *nets,
            st: st_rows,
            sum: sums.get(lower.start).map_or(st_rows, |sum| sum.unwrap_or_default()),
            adds: spec.coupling.sums() && has_outputs[lower.start],
            hidden_first: hidden_rows,
            slot: slot_rows,
        });
        has_outputs[lower].fill(true);
        let networks = nets.len() as u32;
        st_rows += networks * c.outputs;
        hidden_rows += networks * c.hidden;
        slot_rows += c.upper;
    }
    let mut chains = vec![Vec::new(); dim as usize];
    let mut slots = vec![Vec::new(); dim as usize];
    // Level by level, so the reverse begins with the deepest nodes.
    for node in nodes.iter().rev() {
        for j in 0..node.lower {
            // Those of one network lie side by side, of several in rows of their own.
            let step = if node.nets.len() > 1 { node.outputs } else { 1 };
            chains[(node.lower_first + j) as usize].push(Link { first: node.st + j * per_column, step });
        }
        for j in 0..node.upper {
            slots[(node.upper_first + j) as usize].push(node.slot + j);
        }
    }
    let mut walk: Vec<u32> = (0..nodes.len() as u32).collect();
    walk.sort_by_key(|&i| couplings[i as usize].0.walk_key());
    let given = nodes.iter().map(|node| node.given).max().unwrap_or(0);
    let sum_rows = match sums.is_empty() {
        true => st_rows,
        false => sums.iter().flatten().count() as u32 * per_column,
    };
    Stage { dim, given, nodes, walk, chains, sums, slots, st_rows, sum_rows, hidden_rows, slot_rows }
}

#[cfg(test)]
mod tests {
    use super::super::Plan;
    use super::super::spec::{Kind, Spline, Transform};
    use super::super::tree::{self, TreeNode};
    use super::*;

    fn plan(dim: u32, condition_on: ConditionOn) -> Plan {
        Plan::new(&Spec { dim, blocks: 1, condition_on, ..Spec::default() }).unwrap()
    }

    #[test]
    fn input_conditioning_is_one_stage_and_output_one_per_level() {
        assert_eq!(plan(20, ConditionOn::Input).stages.len(), 1);
        let output = plan(20, ConditionOn::Output);
        assert_eq!(output.stages.iter().map(|s| s.nodes.len()).collect::<Vec<_>>(), [8, 4, 2, 1]);
    }

    #[test]
    fn within_a_stage_no_row_has_two_owners() {
        for dim in 1..=33 {
            for stage in plan(dim, ConditionOn::Input).stages {
                let mut st = vec![0; stage.st_rows as usize];
                let mut hidden = vec![0; stage.hidden_rows as usize];
                for n in &stage.nodes {
                    (n.st..n.st + 2 * n.lower).for_each(|r| st[r as usize] += 1);
                    (n.hidden_first..n.hidden_first + 2 * n.hidden).for_each(|r| hidden[r as usize] += 1);
                }
                assert!(st.iter().chain(&hidden).all(|&owners| owners == 1), "N = {dim}");
                let links: usize = stage.chains.iter().map(Vec::len).sum();
                assert_eq!(2 * links, stage.st_rows as usize);
                assert_eq!(stage.slots.iter().map(Vec::len).sum::<usize>(), stage.slot_rows as usize);
            }
        }
    }

    #[test]
    fn a_column_meets_its_deepest_node_first() {
        let stage = &plan(8, ConditionOn::Input).stages[0];
        // Column 7 is in the lower part of node 7 (columns 6..8 of level 2), 3 (4..8) and 1 (0..8).
        let levels: Vec<u32> = stage.chains[7]
            .iter()
            .map(|link| stage.nodes.iter().position(|n| (n.st..n.st + n.lower).contains(&link.first)).unwrap() as u32)
            .collect();
        assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        assert_eq!(levels.len(), 3);
    }

    /// Splines: of all lower columns of a node the sums lie side by side, every column has the outputs of all its nodes in
    /// them, and the first node of a column in the list is its first one in the walk.
    #[test]
    fn sums_have_the_outputs_of_every_node_once() {
        for (kind, cond_dim) in [(Kind::Flow, 0), (Kind::Hint, 1), (Kind::Hint, 6)] {
            for (dim, condition_on) in (1..=33).flat_map(|n| [(n, ConditionOn::Input), (n, ConditionOn::Output)]) {
                let coupling = Transform::Spline(Spline { bins: 3, ..Spline::default() });
                let spec = Spec { kind, cond_dim, dim, coupling, condition_on, blocks: 1, width: 8, ..Spec::default() };
                for stage in Plan::new(&spec).unwrap().stages {
                    assert!(stage.sum_rows <= stage.st_rows);
                    let mut links = vec![0; stage.dim as usize];
                    for node in &stage.nodes {
                        for j in 0..node.lower {
                            let c = (node.lower_first + j) as usize;
                            assert_eq!(stage.sums[c], Some(node.sum + 8 * j), "{spec:?}");
                            assert_eq!(node.adds, links[c] > 0, "{spec:?}");
                            links[c] += 1;
                        }
                    }
                    let lengths = stage.chains.iter().map(Vec::len);
                    assert!(lengths.eq(links.iter().copied()));
                    let rows: u32 = stage.sums.iter().flatten().map(|_| 8).sum();
                    assert_eq!(rows, stage.sum_rows);
                    let mut seen = vec![false; stage.dim as usize];
                    for &i in &stage.walk {
                        let node = &stage.nodes[i as usize];
                        let lower = node.lower_first as usize..(node.lower_first + node.lower) as usize;
                        assert!(seen[lower.clone()].iter().all(|&s| s == node.adds), "{spec:?}");
                        seen[lower].fill(true);
                    }
                }
            }
        }
    }

    /// The recursion as the paper writes it, for comparison with the sort.
    fn in_order(nodes: &[TreeNode], heap: u64, out: &mut Vec<u64>) {
        let exists = |h| nodes.iter().any(|n| n.heap == h);
        if exists(heap * 2) {
            in_order(nodes, heap * 2, out);
        }
        out.push(heap);
        if exists(heap * 2 + 1) {
            in_order(nodes, heap * 2 + 1, out);
        }
    }

    #[test]
    fn walk_order_is_upper_self_lower() {
        for dim in 1..=65 {
            for depth in [0, 1, 2, 3, 99].map(crate::plan::Depth::from) {
                let nodes = tree::nodes(dim, depth);
                let mut want = Vec::new();
                in_order(&nodes, 1, &mut want);
                let spec = Spec { dim, depth, blocks: 1, width: 4, ..Spec::default() };
                let walk = &Plan::new(&spec).unwrap().stages[0].walk;
                let got: Vec<u64> = walk.iter().map(|&i| nodes[i as usize].heap).collect();
                assert_eq!(got, want, "N = {dim}, depth {depth}");
            }
        }
    }

    fn hint(dim: u32, cond_dim: u32, condition_on: ConditionOn) -> Plan {
        Plan::new(&Spec { kind: Kind::Hint, dim, cond_dim, blocks: 1, condition_on, ..Spec::default() }).unwrap()
    }

    /// Both lanes and the cross coupling are independent given the block's input: one stage for all networks of a
    /// block.
    #[test]
    fn two_lanes_are_one_stage_and_x_is_inverted_after_y() {
        for (dim, cond_dim) in [(1, 1), (5, 1), (1, 4), (20, 7)] {
            let plan = hint(dim, cond_dim, ConditionOn::Input);
            let joint = &plan.stages[plan.blocks[0].stages.clone()];
            assert_eq!((joint.len(), joint[0].dim, joint[0].given), (1, dim + cond_dim, 0));
            let cross = &joint[0].nodes[0];
            assert_eq!((cross.upper, cross.lower_first, cross.lower), (cond_dim, cond_dim, dim));
            // y nodes, the cross coupling, x nodes.
            let splits: Vec<u32> = joint[0].walk.iter().map(|&i| joint[0].nodes[i as usize].lower_first).collect();
            assert!(splits.is_sorted(), "{splits:?}");
            let at = joint[0].walk.iter().position(|&i| i == 0).unwrap();
            assert!(splits[..at].iter().all(|&s| s < cond_dim) && splits[at..].iter().all(|&s| s >= cond_dim));
            // Forward, the cross coupling comes last to a column of x.
            assert!(joint[0].chains[cond_dim as usize..].iter().all(|chain| chain.last().unwrap().first < 2 * dim));
            assert!(joint[0].nodes.is_sorted_by(|a, b| a.hidden >= b.hidden));
        }
    }

    /// In this mode networks see columns that others have changed: x level by level, the cross coupling while y is as
    /// it was, y level by level.
    #[test]
    fn by_levels_the_cross_coupling_comes_between_x_and_y() {
        let plan = hint(20, 4, ConditionOn::Output);
        let joint = &plan.stages[plan.blocks[0].stages.clone()];
        assert_eq!(joint.iter().map(|s| s.nodes.len()).collect::<Vec<_>>(), [8, 4, 2, 1, 1, 2, 1]);
        assert_eq!((joint[4].nodes[0].upper, joint[4].nodes[0].lower), (4, 20));
    }

    /// What is sampled from a posterior is one lane of what is trained.
    #[test]
    fn lanes_have_the_weights_of_the_whole() {
        for condition_on in [ConditionOn::Input, ConditionOn::Output] {
            let plan = hint(6, 3, condition_on);
            let nets = |range: std::ops::Range<usize>| {
                let nodes = plan.stages[range].iter().flat_map(|stage| &stage.nodes);
                let mut nets: Vec<_> = nodes.map(|n| (n.nets[0].weight[1], n.inputs(), n.lower, n.hidden)).collect();
                nets.sort();
                nets
            };
            let lanes = plan.blocks[0].lanes.clone().unwrap();
            let mut apart = [nets(lanes.y.clone()), nets(lanes.x.clone())].concat();
            apart.sort();
            assert_eq!(apart, nets(plan.blocks[0].stages.clone()));
            assert!(plan.stages[lanes.y].iter().all(|s| (s.dim, s.given) == (3, 0)));
            let x = &plan.stages[lanes.x];
            assert!(x.iter().all(|s| s.dim == 6) && x.iter().any(|s| s.given == 3));
        }
    }
}

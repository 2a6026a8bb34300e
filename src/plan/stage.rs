//! Nodes to stages: groups of nodes whose networks depend on nothing in the group, so that one dispatch runs them all.

use super::params::Builder;
use super::spec::{ConditionOn, Spec};
use super::tree::{self, TreeNode};

/// Offsets of one network Linear, ReLU, Linear, ReLU, Linear in the weight arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Net {
    /// Weights of the three layers, each row-major `[n_out, n_in]`.
    pub weight: [u32; 3],
    /// Biases of the three layers.
    pub bias: [u32; 3],
}

/// A coupling node as the kernels see it: which columns it reads, which it transforms, where its weights are.
///
/// Row numbers (`st`, `hidden_first`, `slot`) count within the stage's buffers, where one row holds one feature of all
/// samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Node {
    /// First column read.
    pub upper_first: u32,
    /// Number of columns read, n_in of both networks (may be 0).
    pub upper: u32,
    /// First column transformed.
    pub lower_first: u32,
    /// Number of columns transformed, n_out of both networks.
    pub lower: u32,
    /// Hidden width of both networks.
    pub hidden: u32,
    /// Network of the log-scale.
    pub s: Net,
    /// Network of the shift.
    pub t: Net,
    /// First row in the stage's `st` buffer: `lower` rows of s, then `lower` rows of t.
    pub st: u32,
    /// First row in each of the stage's two hidden buffers: `hidden` rows of s, then `hidden` rows of t.
    pub hidden_first: u32,
    /// First row in the stage's slot buffer: `upper` rows, the gradient that this node sends to its upper columns.
    pub slot: u32,
}

/// Shape of a linear layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Layer {
    /// n_in.
    pub inputs: u32,
    /// n_out.
    pub outputs: u32,
}

impl Node {
    /// The three layers of both networks, the first that runs first.
    pub fn layers(&self) -> [Layer; 3] {
        let &Self { upper, hidden, lower, .. } = self;
        [(upper, hidden), (hidden, hidden), (hidden, lower)].map(|(inputs, outputs)| Layer { inputs, outputs })
    }
}

/// One affine map of a column: the rows of the stage's `st` buffer that hold its s and its t.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Row of s.
    pub s: u32,
    /// Row of t.
    pub t: u32,
}

/// Nodes whose networks can all run at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Number of columns of x.
    pub dim: u32,
    /// The nodes, level by level from the root.
    pub nodes: Vec<Node>,
    /// Positions in `nodes` in the order of the inverse walk (see [`tree::walk_order`]).
    pub walk: Vec<u32>,
    /// For every column the affine maps it goes through in forward order, deepest node first.
    pub chains: Vec<Vec<Link>>,
    /// For every column the slot rows whose sum is the networks' share of its gradient, in fixed order.
    pub slots: Vec<Vec<u32>>,
    /// Rows of the `st` buffer.
    pub st_rows: u32,
    /// Rows of each of the two hidden buffers.
    pub hidden_rows: u32,
    /// Rows of the slot buffer.
    pub slot_rows: u32,
}

/// Cuts the nodes of one block into stages in forward order and lays out the weights under `prefix`.
pub(super) fn stages(spec: &Spec, tree: &[TreeNode], prefix: &str, layout: &mut Builder) -> Vec<Stage> {
    let nets: Vec<(Net, Net)> = tree
        .iter()
        .map(|n| {
            let mut net = |which| {
                layout.net(&format!("{prefix}.{}.{which}", n.heap), n.upper(), spec.width_at(n.level), n.lower())
            };
            (net("s"), net("t"))
        })
        .collect();
    let pick = |wanted: &dyn Fn(&TreeNode) -> bool| {
        let members: Vec<usize> = (0..tree.len()).filter(|&i| wanted(&tree[i])).collect();
        stage(spec, tree, &nets, &members)
    };
    match spec.condition_on {
        ConditionOn::Input => vec![pick(&|_| true)],
        ConditionOn::Output => {
            let deepest = tree.iter().map(|n| n.level).max().unwrap_or(0);
            (0..=deepest).rev().map(|level| pick(&|n| n.level == level)).collect()
        }
    }
}

fn stage(spec: &Spec, tree: &[TreeNode], nets: &[(Net, Net)], members: &[usize]) -> Stage {
    let mut nodes: Vec<Node> = Vec::with_capacity(members.len());
    let (mut st_rows, mut hidden_rows, mut slot_rows) = (0, 0, 0);
    for &i in members {
        let n = &tree[i];
        let hidden = spec.width_at(n.level);
        nodes.push(Node {
            upper_first: n.first,
            upper: n.upper(),
            lower_first: n.first + n.upper(),
            lower: n.lower(),
            hidden,
            s: nets[i].0,
            t: nets[i].1,
            st: st_rows,
            hidden_first: hidden_rows,
            slot: slot_rows,
        });
        st_rows += 2 * n.lower();
        hidden_rows += 2 * hidden;
        slot_rows += n.upper();
    }
    let mut chains = vec![Vec::new(); spec.dim as usize];
    let mut slots = vec![Vec::new(); spec.dim as usize];
    // Heap order is level by level, so the reverse begins with the deepest nodes.
    for node in nodes.iter().rev() {
        for j in 0..node.lower {
            chains[(node.lower_first + j) as usize].push(Link { s: node.st + j, t: node.st + node.lower + j });
        }
        for j in 0..node.upper {
            slots[(node.upper_first + j) as usize].push(node.slot + j);
        }
    }
    let members: Vec<TreeNode> = members.iter().map(|&i| tree[i]).collect();
    let walk = tree::walk_order(&members).into_iter().map(|i| i as u32).collect();
    Stage { dim: spec.dim, nodes, walk, chains, slots, st_rows, hidden_rows, slot_rows }
}

#[cfg(test)]
mod tests {
    use super::super::{Plan, spec::Spec};
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
            .map(|link| stage.nodes.iter().position(|n| (n.st..n.st + n.lower).contains(&link.s)).unwrap() as u32)
            .collect();
        assert!(levels.is_sorted_by(|a, b| a > b), "{levels:?}");
        assert_eq!(levels.len(), 3);
    }
}

//! Lanes to nodes: which coupling nodes a block has, over which columns, by which names (docs/model.md, Lanes).
//!
//! A `flow` and a `cinn` have one lane, x. A `hint` has two side by side, [y, x]: a tree of nodes over each, and a
//! cross coupling whose upper columns are all of y and whose lower columns are all of x. That is one more level of the
//! recursion, with a split at C instead of the middle and the x side transformed first: kernels see no difference.

use super::spec::{Kind, Spec};
use super::tree;

/// A coupling node, before it is laid out in a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Coupling {
    /// Its name in the model file: `blocks.{b}.tree.{i}` or `blocks.{b}.cross`.
    pub(super) name: String,
    /// Which part of the block it is.
    pub(super) part: Part,
    /// First column read.
    pub(super) upper_first: u32,
    /// Number of columns read.
    pub(super) upper: u32,
    /// First column transformed.
    pub(super) lower_first: u32,
    /// Number of columns transformed.
    pub(super) lower: u32,
    /// Number of conditions read after the columns.
    pub(super) given: u32,
    /// Hidden width of its networks.
    pub(super) hidden: u32,
    /// n_out of each of its networks.
    pub(super) outputs: u32,
}

/// A part of a block whose networks depend on nothing in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// A level of the recursion over x.
    X { level: u32 },
    /// The coupling of x given y.
    Cross,
    /// A level of the recursion over y.
    Y { level: u32 },
}

impl Part {
    /// Its place in the forward pass when networks see columns that other parts have changed: x deepest level first,
    /// the cross coupling while y is still as it came, then y.
    pub(super) fn forward_key(self) -> (u32, std::cmp::Reverse<u32>) {
        let (lane, level) = match self {
            Self::X { level } => (0, level),
            Self::Cross => (1, 0),
            Self::Y { level } => (2, level),
        };
        (lane, std::cmp::Reverse(level))
    }
}

/// A recursive coupling over some columns: its nodes level by level from the root.
pub(super) struct Lane {
    /// First column.
    pub(super) first: u32,
    /// Number of columns.
    pub(super) dim: u32,
    /// What comes before `tree` and `mix` in the names of its tensors.
    pub(super) prefix: String,
}

/// The lanes of block `b` in the order of their columns.
pub(super) fn lanes(spec: &Spec, b: u32) -> Vec<Lane> {
    match spec.kind {
        Kind::Flow | Kind::Cinn | Kind::Inn => {
            vec![Lane { first: 0, dim: spec.latent_dim(), prefix: format!("blocks.{b}") }]
        }
        Kind::Hint => vec![
            Lane { first: 0, dim: spec.cond_dim, prefix: format!("blocks.{b}.y") },
            Lane { first: spec.cond_dim, dim: spec.dim, prefix: format!("blocks.{b}.x") },
        ],
    }
}

/// The coupling nodes of block `b` over the columns that the model transforms, in the order of the model file: of two
/// lanes first the cross coupling, then y, then x.
pub(super) fn couplings(spec: &Spec, b: u32) -> Vec<Coupling> {
    let mut couplings = Vec::new();
    if spec.kind == Kind::Hint {
        couplings.push(Coupling {
            name: format!("blocks.{b}.cross"),
            part: Part::Cross,
            upper_first: 0,
            upper: spec.cond_dim,
            lower_first: spec.cond_dim,
            lower: spec.dim,
            given: 0,
            hidden: spec.width,
            outputs: spec.dim * spec.coupling.outputs(),
        });
    }
    for lane in lanes(spec, b) {
        let is_y = spec.kind == Kind::Hint && lane.first == 0;
        couplings.extend(tree::nodes(lane.dim, spec.depth).into_iter().map(|node| {
            let level = node.level;
            Coupling {
                name: format!("{}.tree.{}", lane.prefix, node.heap),
                part: if is_y { Part::Y { level } } else { Part::X { level } },
                upper_first: lane.first + node.first,
                upper: node.upper(),
                lower_first: lane.first + node.first + node.upper(),
                lower: node.lower(),
                given: spec.given(),
                hidden: spec.width_at(level),
                outputs: node.lower() * spec.coupling.outputs(),
            }
        }));
    }
    couplings
}

impl Coupling {
    /// The same node where only the x lane is transformed and y is given: columns count from x on.
    pub(super) fn given_y(&self, conditions: u32) -> Self {
        match self.part {
            Part::Cross => Self { upper_first: 0, upper: 0, lower_first: 0, given: self.upper, ..self.clone() },
            _ => Self {
                upper_first: self.upper_first - conditions,
                lower_first: self.lower_first - conditions,
                ..self.clone()
            },
        }
    }

    /// Whether it belongs to the y lane.
    pub(super) fn is_y(&self) -> bool {
        matches!(self.part, Part::Y { .. })
    }

    /// Recursion level, counted from the split between the lanes: nodes of a level have one width.
    pub(super) fn level(&self) -> u32 {
        match self.part {
            Part::Cross => 0,
            Part::X { level } | Part::Y { level } => level + 1,
        }
    }

    /// Position in the inverse walk when networks see the block's input: a node comes after all nodes within the
    /// columns before its lower ones, and before the nodes within these. That is the order of the splits, outer nodes
    /// first.
    pub(super) fn walk_key(&self) -> (u32, u32) {
        (self.lower_first, self.level())
    }
}

//! How often one invocation of a kernel goes round its loops, all of them added up: at most, and by hand. Mesa's
//! llvmpipe leaves loops early without a word, so what is more than a device bears must be known beforehand.
//!
//! The estimates follow the shaders' loops, one implementation of [`Cost`] for each launch struct: whoever changes a
//! loop changes its estimate here. What they leave out, [`SOFTWARE_ITERATIONS`](super::bounds::SOFTWARE_ITERATIONS)
//! makes up for.

use crate::engine::gpu::kernels::launch::{self, Launch, NONE};
use crate::engine::gpu::kernels::shader::{Kernel, PackShape};
use crate::engine::gpu::kernels::transform::ColumnMaps;
use crate::engine::gpu::layout::narrow::QUADS;
use crate::engine::gpu::layout::panels::PANEL;
use crate::plan::{Node, Stage};

/// Rows and columns of a tile of a product of `shaders/shared/product_tile.wgsl`.
pub(crate) const TILE: u32 = 32;

/// A launch whose loops can be counted.
pub(crate) trait Cost: Launch {
    /// What decides on them besides the launch itself.
    type Sizes<'a>: Copy;

    /// Loop iterations of an invocation, for a model whose columns go through these maps.
    fn iterations(&self, maps: ColumnMaps, sizes: Self::Sizes<'_>) -> u64;
}

/// Nodes in workgroups of one shape.
#[derive(Clone, Copy)]
pub(crate) struct Packed<'a> {
    pub(crate) stage: &'a Stage,
    pub(crate) shape: PackShape,
}

/// Narrow nodes and the samples of a tile.
#[derive(Clone, Copy)]
pub(crate) struct NarrowNodes<'a> {
    nodes: &'a [Node],
    /// Networks of a node.
    networks: u32,
    samples: usize,
}

impl<'a> NarrowNodes<'a> {
    /// Those of a stage after the first `wide` nodes.
    pub(crate) fn of(stage: &'a Stage, wide: u32, samples: usize) -> Self {
        Self { nodes: &stage.nodes[wide as usize..], networks: stage.networks(), samples }
    }
}

/// The stage whose networks send gradients to columns, and the one before it, whose coupling they reach.
#[derive(Clone, Copy)]
pub(crate) struct Between<'a> {
    pub(crate) later: &'a Stage,
    pub(crate) earlier: &'a Stage,
}

/// Mixings of so many columns, under a kernel of `shaders/shared/reflections.wgsl`.
#[derive(Clone, Copy)]
pub(crate) struct Reflecting {
    pub(crate) kernel: Kernel,
    pub(crate) columns: u32,
}

/// Philox: round keys, four samples.
const PHILOX: u64 = 40;

impl Cost for launch::Gather {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        PHILOX
    }
}

impl Cost for launch::Normal {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        PHILOX
    }
}

impl Cost for launch::Fill {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        0
    }
}

impl Cost for launch::Mix {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        dense(self.columns)
    }
}

impl Cost for launch::NetworksPacked {
    type Sizes<'a> = Packed<'a>;

    fn iterations(&self, _: ColumnMaps, packed: Packed<'_>) -> u64 {
        pack(packed, |node| (inputs(node), node.outputs))
    }
}

impl Cost for launch::Networks {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, _: ColumnMaps, stage: &Stage) -> u64 {
        stage.nodes.iter().map(|node| network(node, 8)).max().unwrap_or(0)
    }
}

impl Cost for launch::Couple {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        couple(maps, stage)
    }
}

impl Cost for launch::CoupleMix {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        couple(maps, stage) + mixings(self.split, self.columns, 16)
    }
}

impl Cost for launch::CoupleLoss {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        let backward = 1 + maps_backward(maps, longest(&stage.chains));
        // The loss has two loops over the columns' groups.
        3 * couple(maps, stage) + u64::from(stage.dim.div_ceil(16)) * backward
    }
}

impl Cost for launch::Uncouple {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        maps_either_way(maps, longest(&stage.chains))
    }
}

impl Cost for launch::Walk {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        let groups = 32 / stage.networks().max(1);
        let of_node = |node: &Node| {
            let own = node.st..node.st + node.outputs;
            let columns = &stage.chains[node.lower_first as usize..][..node.lower as usize];
            let deepest = columns.iter().filter(|chain| own.contains(&chain[0].first));
            let inverse = deepest.map(|chain| maps_either_way(maps, chain.len() as u64)).max().unwrap_or(0);
            network(node, groups) + u64::from(node.lower.div_ceil(32)) * (1 + inverse) + 1
        };
        stage.nodes.iter().map(of_node).sum()
    }
}

impl Cost for launch::Loss {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        u64::from(self.columns / 16) + 24
    }
}

impl Cost for launch::SquaredError {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        self.columns.into()
    }
}

impl Cost for launch::Discrepancy {
    /// Quads from one row of the arena to the next.
    type Sizes<'a> = usize;

    fn iterations(&self, _: ColumnMaps, stride: usize) -> u64 {
        4 * stride as u64 * (1 + 3 * u64::from(self.columns))
    }
}

impl Cost for launch::TotalLoss {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        8
    }
}

impl Cost for launch::UncoupleBackward {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        1
    }
}

impl Cost for launch::CoupleBackward {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, maps: ColumnMaps, stage: &Stage) -> u64 {
        maps_backward(maps, longest(&stage.chains))
    }
}

impl Cost for launch::BetweenBackward {
    type Sizes<'a> = Between<'a>;

    fn iterations(&self, maps: ColumnMaps, Between { later, earlier }: Between<'_>) -> u64 {
        let lists = longest(&later.slots) + maps_backward(maps, longest(&earlier.chains)) + 3;
        let mixed = if self.panel0 == NONE { 0 } else { mixings(self.split, self.columns, 32) };
        u64::from(self.columns.div_ceil(32)) * lists + mixed
    }
}

impl Cost for launch::NetworksPackedBackward {
    type Sizes<'a> = Packed<'a>;

    fn iterations(&self, _: ColumnMaps, packed: Packed<'_>) -> u64 {
        u64::from(packed.stage.networks()) * pack(packed, |node| (dense(node.outputs), node.upper))
    }
}

impl Cost for launch::NetworksBackward {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, _: ColumnMaps, stage: &Stage) -> u64 {
        let groups = 16 / stage.networks().max(1);
        let of_node = |node: &Node| {
            let [outputs, hidden] = [node.outputs, node.hidden].map(dense);
            let layers = layer(outputs, node.hidden, groups) + layer(hidden, node.hidden, groups);
            layers + 2 * layer(hidden, node.upper, 16)
        };
        stage.nodes.iter().map(of_node).max().unwrap_or(0)
    }
}

impl Cost for launch::NarrowBackward {
    type Sizes<'a> = NarrowNodes<'a>;

    fn iterations(&self, _: ColumnMaps, nodes: NarrowNodes<'_>) -> u64 {
        narrow_backward(nodes)
    }
}

impl Cost for launch::WeightGradient {
    /// Quads from one row of the arena to the next.
    type Sizes<'a> = usize;

    fn iterations(&self, _: ColumnMaps, stride: usize) -> u64 {
        // One for 4 quads.
        stride as u64 / 4 + 1
    }
}

impl Cost for launch::SlotSum {
    type Sizes<'a> = &'a Stage;

    fn iterations(&self, _: ColumnMaps, stage: &Stage) -> u64 {
        longest(&stage.slots)
    }
}

impl Cost for launch::Reflections {
    type Sizes<'a> = Reflecting;

    fn iterations(&self, _: ColumnMaps, Reflecting { kernel, columns }: Reflecting) -> u64 {
        let product = u64::from(columns.div_ceil(TILE)) * (1 + u64::from(TILE / 4));
        match kernel {
            Kernel::ReflectSolve => {
                let one_block = u64::from(TILE * (1 + TILE / 8));
                u64::from(self.rows) * (product + one_block)
            }
            Kernel::ReflectSides => 2 * product,
            Kernel::ReflectFew => {
                let quads = u64::from(columns.div_ceil(4));
                quads + u64::from(columns) * (2 + 2 * quads)
            }
            _ => product,
        }
    }
}

impl Cost for launch::ReflectReduce {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        copies(self.slices)
    }
}

impl Cost for launch::GradientNorm {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        u64::from(self.trained.div_ceil(self.sums * 256)) * (1 + copies(self.slices)) + 8
    }
}

impl Cost for launch::Clip {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        8
    }
}

impl Cost for launch::Adam {
    type Sizes<'a> = ();

    fn iterations(&self, _: ColumnMaps, (): ()) -> u64 {
        copies(self.slices)
    }
}

/// An element of that many copies of the gradient.
fn copies(slices: u32) -> u64 {
    u64::from(slices / 8 + slices % 8)
}

/// `dense` over so many inputs.
fn dense(inputs: u32) -> u64 {
    u64::from(inputs / 4 + inputs % 4)
}

/// What the networks of a node read: columns, then conditions.
fn inputs(node: &Node) -> u64 {
    dense(node.upper) + dense(node.given)
}

/// A layer whose outputs are shared out among `groups`, with so many iterations over the inputs.
fn layer(inputs: u64, n_out: u32, groups: u32) -> u64 {
    u64::from(n_out.div_ceil(PANEL * groups)) * (1 + inputs)
}

/// A network whose outputs are shared out among `groups`.
fn network(node: &Node, groups: u32) -> u64 {
    let hidden = dense(node.hidden);
    layer(inputs(node), node.hidden, groups) + layer(hidden, node.hidden, groups) + layer(hidden, node.outputs, groups)
}

/// A thread of a pack. `ends` says of a node how many iterations there are over the inputs of the layer that comes
/// first, and how many outputs the last layer has, whose items are shared out among the groups.
fn pack(Packed { stage, shape }: Packed<'_>, ends: impl Fn(&Node) -> (u64, u32)) -> u64 {
    let groups = shape.threads / shape.quads;
    let per_node = stage.nodes.iter().map(|node| {
        let (first, last) = ends(node);
        let items = u64::from(last.div_ceil(4).div_ceil(groups)) + 1;
        first + dense(node.hidden) + items * (1 + dense(node.hidden))
    });
    // The items of the last layer of several nodes may be one group's.
    per_node.sum()
}

/// The backward of narrow nodes, all samples of one slice.
pub(crate) fn narrow_backward(NarrowNodes { nodes, networks, samples }: NarrowNodes<'_>) -> u64 {
    let dense = |n: u32| n / 4 + n % 4;
    let of_node = |node: &Node| 2 * dense(node.inputs()) + 3 * dense(node.hidden) + dense(node.outputs);
    // Products of 5 lists of 8 quads, rows to fetch.
    let of_quads = nodes.iter().map(of_node).max().unwrap_or(0) + 5 * QUADS + 16;
    u64::from(networks * of_quads) * (samples as u64).div_ceil(4).div_ceil(QUADS.into())
}

/// A coupling whose columns 16 groups of threads share out.
fn couple(maps: ColumnMaps, stage: &Stage) -> u64 {
    u64::from(stage.dim.div_ceil(16)) * (1 + maps_either_way(maps, longest(&stage.chains))) + 16
}

/// One or two mixings, of `split` columns and of the rest, whose outputs are shared out among `groups`.
fn mixings(split: u32, columns: u32, groups: u32) -> u64 {
    // Four outputs at a time.
    let one = |columns: u32| u64::from(columns.div_ceil(4 * groups)) * (1 + dense(columns));
    one(split) + one(columns - split)
}

/// The maps of a column that so many nodes transform, forward or inverse.
fn maps_either_way(maps: ColumnMaps, nodes: u64) -> u64 {
    match maps {
        ColumnMaps::Affine { .. } => nodes,
        // Two passes over the widths, two over the heights, one over the slopes, each of which sums over the nodes.
        ColumnMaps::Spline { bins, .. } => 5 * u64::from(bins) * (1 + nodes),
    }
}

/// Their backward pass.
fn maps_backward(maps: ColumnMaps, nodes: u64) -> u64 {
    match maps {
        ColumnMaps::Affine { .. } => 2 * nodes,
        // One pass more over either side, and one over the slopes that sums nothing.
        ColumnMaps::Spline { bins, .. } => 7 * u64::from(bins) * (1 + nodes) + u64::from(bins),
    }
}

/// Length of the longest list.
fn longest<T>(lists: &[Vec<T>]) -> u64 {
    lists.iter().map(Vec::len).max().unwrap_or(0) as u64
}

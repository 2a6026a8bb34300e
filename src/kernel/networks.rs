//! `Networks`: the networks of every node of a stage, three layers each (docs/model.md, Networks), and their backward.
//! Where parameters are summed, a network adds its outputs to those of the nodes before it, so that the buffer has the
//! rows of one spline for every column and not of one for every node.
//!
//! Measured on two cores with AVX-512: networks up to 40 wide computed again in the backward pass take cross4 (100
//! columns) from 835 to 680 ms, and change nothing for 20 columns, whose activations fit the cache; a limit of 70 was
//! not better, nor, since arenas lie in large pages, one of 66 or 132. The first hidden layer of every network computed
//! again takes cross4 from 752 to 717 ms (of a slower day) and leaves the other cases as they are: it has few inputs.
//! Blocks of samples that pass all three layers together, with bounds checked once per register tile: sampling of
//! lens2d0 from 7.5 to 6.4 ms, lens1 from 26.6 to 25.6 ms; with wide networks (452) they cost 5 %, because weights are
//! read more often than activations are saved, and with narrow ones as small as with others 5 %, in calls. Blocks of
//! 112, 160 or 320 samples instead of 240 for narrow ones make no difference.

use super::dropout::Dropout;
use super::product::{self, End, Matrix, Start};
use super::{Gradients, Shape};
use crate::plan::{Net, Node, Stage};

/// What the networks of a stage read.
#[derive(Clone, Copy)]
pub(crate) struct Inputs<'a> {
    /// Columns (N, samples).
    pub(crate) x: &'a [f32],
    /// Conditions (C, samples), empty if no node reads any.
    pub(crate) given: &'a [f32],
}

impl<'a> Inputs<'a> {
    /// What one node reads: its upper columns, and the conditions.
    fn of(self, shape: Shape, node: &Node) -> Self {
        let given = if node.given > 0 { self.given } else { &[] };
        Self { x: shape.rows_of(self.x, node.upper_first, node.upper), given }
    }

    /// The samples from a place on.
    fn from(self, at: usize) -> Self {
        // That of a node without upper columns, of a table with one column, is empty.
        let from = |buffer: &'a [f32]| buffer.get(at..).unwrap_or_default();
        Self { x: from(self.x), given: from(self.given) }
    }
}

/// Buffers of one network: its hidden activations and its output.
struct NetBuffers<'a> {
    hidden: [&'a mut [f32]; 2],
    out: &'a mut [f32],
}

/// Networks no wider than this are computed again in the backward pass, up to their output; wider ones up to their
/// first hidden layer. To write the activations to memory and read them again takes longer.
pub(crate) const RECOMPUTED: u32 = 40;

/// The samples that go through all layers of a network together, at most so many that the next layer finds the
/// activations in the first-level cache: multiples of three of the widest registers, where the samples do not end
/// before. Wide networks have no room there, and should not read their weights so often.
fn sample_blocks(shape: Shape, node: &Node) -> impl Iterator<Item = (usize, Shape)> {
    let samples = match node.hidden {
        0..=40 => 240,
        41..=80 => 96,
        81..=200 => 48,
        _ => usize::MAX,
    };
    shape.sample_blocks(samples)
}

/// Where networks leave the activations of their second hidden layer. Those of the first are always left in the first
/// rows, which stay in cache: nobody reads them again.
#[derive(Clone, Copy)]
pub(crate) enum SavedActivations {
    /// In the first rows, too.
    Nothing,
    /// Every network in rows of its own, for the backward pass; those that are computed again share rows.
    ForBackward {
        /// The first of the shared rows.
        shared: u32,
    },
}

impl SavedActivations {
    pub(crate) fn of(stage: &Stage, keep: bool) -> Self {
        if !keep {
            return Self::Nothing;
        }
        // The first is the widest, so the shared rows lie right behind those that are kept.
        let recomputed = stage.nodes.iter().find(|node| node.hidden <= RECOMPUTED);
        Self::ForBackward { shared: recomputed.map_or(0, |node| node.hidden_first) }
    }

    /// One past the last row that the networks of a stage leave something in.
    pub(crate) fn end(self, stage: &Stage) -> u32 {
        let last = |node: &Node| self.row(node, node.nets.len() as u32 - 1) + node.hidden;
        stage.nodes.iter().map(last).max().unwrap_or(0)
    }

    /// The first row of network `which` of a node.
    fn row(self, node: &Node, which: u32) -> u32 {
        match self {
            Self::Nothing => 0,
            Self::ForBackward { shared } if node.hidden <= RECOMPUTED => shared,
            Self::ForBackward { .. } => node.hidden_of(which),
        }
    }
}

/// Runs all networks of a stage.
#[expect(clippy::too_many_arguments, reason = "the buffers of the operation, in the order of `Op::Networks`")]
pub(crate) fn forward(
    shape: Shape,
    stage: &Stage,
    weights: &[f32],
    inputs: Inputs<'_>,
    st: &mut [f32],
    [first, second]: [&mut [f32]; 2],
    keep: SavedActivations,
    dropout: Option<&Dropout>,
) {
    for node in &stage.nodes {
        node_forward(shape, node, weights, inputs, st, [first, second], keep, dropout);
    }
}

/// The networks of one node.
#[expect(clippy::too_many_arguments, reason = "the buffers of the operation, in the order of `Op::Networks`")]
pub(crate) fn node_forward(
    shape: Shape,
    node: &Node,
    weights: &[f32],
    inputs: Inputs<'_>,
    st: &mut [f32],
    [first, second]: [&mut [f32]; 2],
    keep: SavedActivations,
    dropout: Option<&Dropout>,
) {
    let inputs = inputs.of(shape, node);
    for (which, net) in node.nets.iter().enumerate() {
        let which = which as u32;
        let buffers = NetBuffers {
            hidden: [
                shape.rows_of_mut(first, 0, node.hidden),
                shape.rows_of_mut(second, keep.row(node, which), node.hidden),
            ],
            out: shape.rows_of_mut(st, node.sum_of(which), node.outputs),
        };
        net_forward(shape, node, net, weights, inputs, buffers, dropout.map(|d| d.of(node, which)));
    }
}

/// The weights of the three layers.
fn layers(node: &Node) -> [Matrix; 3] {
    node.layers().map(|layer| Matrix::whole(layer.outputs as usize, layer.inputs as usize))
}

/// A layer's weights and biases.
fn layer<'a>(weights: &'a [f32], net: &Net, index: usize, matrix: Matrix) -> (&'a [f32], &'a [f32]) {
    let (w, b) = (net.weight[index] as usize, net.bias[index] as usize);
    (&weights[w..w + matrix.outputs * matrix.inputs], &weights[b..b + matrix.outputs])
}

/// The columns of the first layer's weights that belong to the upper columns, and those for the conditions after them.
fn first_matrices(node: &Node) -> [Matrix; 2] {
    let [first, ..] = layers(node);
    [node.upper, node.given].map(|inputs| Matrix { inputs: inputs as usize, ..first })
}

fn net_forward(
    shape: Shape,
    node: &Node,
    net: &Net,
    weights: &[f32],
    inputs: Inputs<'_>,
    buffers: NetBuffers<'_>,
    dropout: Option<Dropout>,
) {
    let NetBuffers { hidden: [h1, h2], out } = buffers;
    let [_, _, last] = layers(node);
    for (at, block) in sample_blocks(shape, node) {
        let dropout = dropout.map(|dropout| dropout.from(at));
        first_layer(block, node, net, weights, inputs.from(at), &mut h1[at..], dropout);
        second_layer(block, node, net, weights, &h1[at..], &mut h2[at..], dropout);
        let (w, b) = layer(weights, net, 2, last);
        let start = if node.adds { Start::AddBias(b) } else { Start::Bias(b) };
        product::forward(block, last, w, &h2[at..], &mut out[at..], start, End::Linear);
    }
}

fn first_layer(
    block: Shape,
    node: &Node,
    net: &Net,
    weights: &[f32],
    inputs: Inputs<'_>,
    h1: &mut [f32],
    dropout: Option<Dropout>,
) {
    let [first, ..] = layers(node);
    let [of_x, of_given] = first_matrices(node);
    let (w, b) = layer(weights, net, 0, first);
    if node.given == 0 {
        product::forward(block, first, w, inputs.x, h1, Start::Bias(b), End::Relu);
    } else {
        product::forward(block, of_x, w, inputs.x, h1, Start::Bias(b), End::Linear);
        let w = &w[node.upper as usize..];
        product::forward(block, of_given, w, inputs.given, h1, Start::Add, End::Relu);
    }
    if let Some(dropout) = dropout {
        dropout.layer(0).apply(block, node.hidden, h1);
    }
}

fn second_layer(
    block: Shape,
    node: &Node,
    net: &Net,
    weights: &[f32],
    h1: &[f32],
    h2: &mut [f32],
    dropout: Option<Dropout>,
) {
    let [_, second, _] = layers(node);
    let (w, b) = layer(weights, net, 1, second);
    product::forward(block, second, w, h1, h2, Start::Bias(b), End::Relu);
    if let Some(dropout) = dropout {
        dropout.layer(1).apply(block, node.hidden, h2);
    }
}

/// Gradients of all networks of a stage: sums those of the weights over tiles and adds to `d_x`, where it is wanted.
/// `second` is as the forward pass left it; what is computed again takes its rows once more. Conditions get no
/// gradient.
#[expect(clippy::too_many_arguments, reason = "the buffers of the operation, in the order of `Op::NetworksBackward`")]
pub(crate) fn backward(
    shape: Shape,
    stage: &Stage,
    weights: &[f32],
    inputs: Inputs<'_>,
    [first, second]: [&mut [f32]; 2],
    d_st: &[f32],
    [d_first, d_second]: [&mut [f32]; 2],
    mut d_x: Option<&mut [f32]>,
    gradients: &mut Gradients<'_>,
    dropout: Option<&Dropout>,
) {
    let keep = SavedActivations::of(stage, true);
    for node in &stage.nodes {
        let matrices = layers(node);
        let [of_x, of_given] = first_matrices(node);
        let inputs = inputs.of(shape, node);
        let mut d_upper = d_x.as_deref_mut().map(|d_x| shape.rows_of_mut(d_x, node.upper_first, node.upper));
        for (which, net) in node.nets.iter().enumerate() {
            let which = which as u32;
            let dropout = dropout.map(|dropout| dropout.of(node, which));
            let d_out = shape.rows_of(d_st, node.sum_of(which), node.outputs);
            let h1 = shape.rows_of_mut(first, 0, node.hidden);
            let h2 = shape.rows_of_mut(second, keep.row(node, which), node.hidden);
            let d_h1 = shape.rows_of_mut(d_first, 0, node.hidden);
            let d_h2 = shape.rows_of_mut(d_second, 0, node.hidden);

            let w = |index: usize| layer(weights, net, index, matrices[index]).0;
            for (at, block) in sample_blocks(shape, node) {
                let [h1, h2] = [&mut h1[at..], &mut h2[at..]];
                let dropout = dropout.map(|dropout| dropout.from(at));
                first_layer(block, node, net, weights, inputs.from(at), h1, dropout);
                if node.hidden <= RECOMPUTED {
                    second_layer(block, node, net, weights, h1, h2, dropout);
                }
                let (d_h1, d_h2) = (&mut d_h1[at..], &mut d_h2[at..]);
                product::data_gradient(block, matrices[2], w(2), &d_out[at..], d_h2, Start::Zero, End::Mask(h2));
                // What was dropped is zero, as what ReLU cut off; what was not dropped was scaled up.
                if let Some(dropout) = dropout {
                    dropout.scale(block, node.hidden, d_h2);
                }
                product::data_gradient(block, matrices[1], w(1), d_h2, d_h1, Start::Zero, End::Mask(h1));
                if let Some(dropout) = dropout {
                    dropout.scale(block, node.hidden, d_h1);
                }
                // That of a node without upper columns is empty.
                if let Some(d_upper) = d_upper.as_deref_mut().and_then(|d| d.get_mut(at..)) {
                    product::data_gradient(block, of_x, w(0), d_h1, d_upper, Start::Add, End::Linear);
                }
            }
            let mut add = |index: usize, matrix, first, d_out: &[f32], x: &[f32], bias| {
                layer_gradient(shape, WeightColumns { net, index, matrix, first, bias }, d_out, x, gradients);
            };
            add(2, matrices[2], 0, d_out, h2, true);
            add(1, matrices[1], 0, d_h2, h1, true);
            add(0, of_x, 0, d_h1, inputs.x, true);
            if node.given > 0 {
                add(0, of_given, node.upper as usize, d_h1, inputs.given, false);
            }
        }
    }
}

/// Some columns of the weights of a layer.
struct WeightColumns<'a> {
    net: &'a Net,
    index: usize,
    matrix: Matrix,
    /// The first column.
    first: usize,
    /// Whether the biases go with them.
    bias: bool,
}

/// Gradients of some of one layer's weights and of its biases, summed over tiles.
fn layer_gradient(shape: Shape, columns: WeightColumns<'_>, d_out: &[f32], x: &[f32], gradients: &mut Gradients<'_>) {
    let WeightColumns { net, index, matrix, first, bias } = columns;
    let Matrix { outputs, pitch, .. } = matrix;
    let (w, b) = (net.weight[index] as usize, net.bias[index] as usize);
    // A layer's biases follow its weights in the arena (`plan::params`).
    let (d_w, d_b) = gradients.values[w..b + outputs].split_at_mut(outputs * pitch);
    let d_b = if bias { Some(d_b) } else { None };
    product::weight_gradient(shape, matrix, d_out, x, &mut d_w[first..], d_b, gradients.fresh);
}

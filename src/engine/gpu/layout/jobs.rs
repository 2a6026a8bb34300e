//! Weight tiles: the jobs of `shaders/weight_gradient.wgsl`.

use crate::engine::gpu::kernels::launch::NONE;
use crate::engine::gpu::kernels::records::{Record, WeightTile};
use crate::plan::Node;

/// Outputs and inputs of one weight tile.
pub(crate) const JOB_SIZE: u32 = 16;
/// Weight tiles of one workgroup.
pub(crate) const JOBS_TOGETHER: u32 = 4;

/// The sum over samples of gradients of outputs times inputs.
pub(crate) struct Product {
    /// Which pair of buffers.
    pub(crate) layer: u32,
    /// First row of the outputs' gradients within its buffer.
    pub(crate) left: u32,
    /// First row of the inputs within its buffer.
    pub(crate) right: u32,
    pub(crate) n_out: u32,
    pub(crate) n_in: u32,
    /// Inputs from there on; the others are conditions.
    pub(crate) columns: u32,
}

/// Writes the weight tiles of a node; returns their number.
pub(crate) fn push_node_jobs(words: &mut Vec<u32>, node: &Node) -> u32 {
    let mut count = 0;
    for (which, net) in (0..).zip(node.nets.iter()) {
        let (hidden, out) = (node.hidden_of(which), node.sum_of(which));
        let sizes = [node.inputs(), node.hidden, node.hidden, node.outputs];
        let rows = [node.upper_first, hidden, hidden, out];
        for layer in 0..3 {
            let product = Product {
                layer: layer as u32,
                left: rows[layer + 1],
                right: rows[layer],
                n_out: sizes[layer + 1],
                n_in: sizes[layer],
                columns: if layer == 0 { node.upper } else { sizes[layer] },
            };
            count += push_jobs(words, &product, net.weight[layer], net.bias[layer]);
        }
    }
    count
}

/// Writes the weight tiles of a matrix and its biases, if it has any; returns their number.
pub(crate) fn push_jobs(words: &mut Vec<u32>, product: &Product, weight: u32, bias: u32) -> u32 {
    // Without inputs there is still the bias.
    let inputs = product.n_in.max(u32::from(bias != NONE));
    let Product { layer, left, right, n_out, n_in, columns } = *product;
    let steps = |end: u32, by: u32| (0..end).step_by(by as usize);
    let mut count = 0;
    // Two by two, so that the tiles of a workgroup share their rows.
    for (o0, k0) in steps(n_out, 2 * JOB_SIZE).flat_map(|o| steps(inputs, 2 * JOB_SIZE).map(move |k| (o, k))) {
        for (o, k) in [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| (o0 + i * JOB_SIZE, k0 + j * JOB_SIZE)) {
            if o < n_out && k < inputs {
                WeightTile { layer, left, right, n_out, n_in, weight, bias, output: o, input: k, columns }.push(words);
                count += 1;
            }
        }
    }
    count
}

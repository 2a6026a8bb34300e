//! The nodes of a stage as kernels know them.

use super::panels::NetPanels;
use crate::plan::Stage;

/// Words of a node: columns and conditions read, columns transformed, hidden width, outputs of a network, rows in the
/// stage's buffers, number of the first counter of dropout; for each of up to two networks where the panels of the
/// three layers begin and the transposed ones; for each six offsets of weights and biases. Read by
/// `shaders/shared/net.wgsl`.
pub(crate) const NODE: usize = 36;
/// Writes the nodes of a stage; returns where they begin. `counters`: number of the stage's first counter of dropout.
pub(crate) fn push_nodes(words: &mut Vec<u32>, stage: &Stage, nets: &[Vec<NetPanels>], counters: u32) -> u32 {
    let nodes = words.len() as u32;
    for (node, nets) in stage.nodes.iter().zip(nets) {
        words.extend([node.upper_first, node.upper, node.given, node.lower_first, node.lower]);
        words.extend([node.hidden, node.outputs, node.st, node.sum, node.hidden_first, node.slot]);
        words.push(counters + 2 * node.hidden_first);
        let panels = nets.iter().flat_map(|net| [net.forward, net.back]).flatten();
        let offsets = node.nets.iter().flat_map(|net| [net.weight, net.bias]).flatten();
        // Zeros where there is no second network.
        words.extend(panels.chain(std::iter::repeat(0)).take(2 * 6));
        words.extend(offsets.chain(std::iter::repeat(0)).take(2 * 6));
    }
    debug_assert_eq!(words.len() - nodes as usize, NODE * stage.nodes.len());
    nodes
}

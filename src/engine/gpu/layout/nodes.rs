//! The nodes of a stage as kernels know them.

use super::panels::NetPanels;
use crate::engine::gpu::kernels::records::{self, Offsets, Panels, Record};
use crate::plan::Stage;

/// Writes the nodes of a stage; returns where they begin. `counters`: number of the stage's first counter of dropout.
pub(crate) fn push_nodes(words: &mut Vec<u32>, stage: &Stage, nets: &[Vec<NetPanels>], counters: u32) -> u32 {
    let at = words.len() as u32;
    for (node, nets) in stage.nodes.iter().zip(nets) {
        // Zeros if there is no second network.
        let (mut panels, mut offsets) = <([Panels; 2], [Offsets; 2])>::default();
        for (panels, net) in panels.iter_mut().zip(nets) {
            *panels = Panels { forward: net.forward, back: net.back };
        }
        for (offsets, net) in offsets.iter_mut().zip(node.nets.iter()) {
            *offsets = Offsets { weight: net.weight, bias: net.bias };
        }
        let record = records::Node {
            upper_first: node.upper_first,
            upper: node.upper,
            given: node.given,
            lower_first: node.lower_first,
            lower: node.lower,
            hidden: node.hidden,
            outputs: node.outputs,
            st: node.st,
            sum: node.sum,
            hidden_first: node.hidden_first,
            slot: node.slot,
            dropout: counters + 2 * node.hidden_first,
            panels,
            offsets,
        };
        record.push(words);
    }
    at
}

//! Panels: copies of the trained weights as the networks' kernels read them. They live on the device alone; Adam and
//! `shaders/panels.wgsl` write them.
//!
//! A thread computes eight outputs of a layer, so a panel has the weights of eight outputs, input by input, as two vec4
//! per input; its head are the eight biases. The backward pass computes eight inputs from all outputs: the transposed
//! panels, without a head. Where there are fewer than eight the rest stays zero: it is never written.

use crate::plan::Plan;

/// Outputs of a panel.
pub(super) const PANEL: u32 = 8;
/// In place of a place: the weight has no such copy.
pub(super) const NO_PLACE: u32 = u32::MAX;

/// Where the panels of one network begin, in vec4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct NetPanels {
    /// By layer.
    pub(super) forward: [u32; 3],
    /// Transposed, by layer.
    pub(super) back: [u32; 3],
}

/// Panels of all networks of a plan.
#[derive(Debug)]
pub(super) struct Panels {
    /// By stage and node: s and t.
    pub(super) nets: Vec<Vec<[NetPanels; 2]>>,
    /// Per trained weight the floats that are its copies: in a panel and in a transposed one.
    pub(super) places: Vec<[u32; 2]>,
    /// Floats of all panels.
    pub(super) len: u64,
}

/// Number of inputs and outputs of the layers of a node's networks.
fn layers(node: &crate::plan::Node) -> [[u32; 2]; 3] {
    [[node.upper, node.hidden], [node.hidden, node.hidden], [node.hidden, node.lower]]
}

/// Floats of the panels of one layer, and of the transposed ones.
fn sizes([n_in, n_out]: [u32; 2]) -> [u64; 2] {
    let groups = |n: u32| u64::from(n.div_ceil(PANEL)) * u64::from(PANEL);
    [groups(n_out) * (1 + u64::from(n_in)), groups(n_in) * u64::from(n_out)]
}

/// Floats of the panels of a plan.
pub(super) fn panels_len(plan: &Plan) -> u64 {
    let nodes = plan.stages.iter().flat_map(|stage| &stage.nodes);
    nodes.flat_map(layers).map(|layer| 2 * sizes(layer).iter().sum::<u64>()).sum()
}

impl Panels {
    /// The panels must have fewer than 2^32 floats.
    pub(super) fn new(plan: &Plan) -> Self {
        let mut places = vec![[NO_PLACE; 2]; plan.layout.trained];
        let mut len = 0u64;
        let mut nets = Vec::with_capacity(plan.stages.len());
        for stage in &plan.stages {
            let of_node = |node: &crate::plan::Node| {
                [node.s, node.t].map(|net| {
                    let mut panels = NetPanels::default();
                    for (layer, shape) in layers(node).into_iter().enumerate() {
                        let [forward, back] = sizes(shape);
                        panels.forward[layer] = (len / 4) as u32;
                        panels.back[layer] = ((len + forward) / 4) as u32;
                        let (weight, bias) = (net.weight[layer] as usize, net.bias[layer] as usize);
                        place(&mut places, shape, weight, bias, [len as u32, (len + forward) as u32]);
                        len += forward + back;
                    }
                    panels
                })
            };
            nets.push(stage.nodes.iter().map(of_node).collect());
        }
        debug_assert_eq!(len, panels_len(plan));
        Self { nets, places, len }
    }
}

/// Places of the weights of one layer whose panels begin at floats `at`.
fn place(places: &mut [[u32; 2]], [n_in, n_out]: [u32; 2], weight: usize, bias: usize, at: [u32; 2]) {
    for o in 0..n_out {
        let panel = at[0] + o / PANEL * PANEL * (1 + n_in) + o % PANEL;
        places[bias + o as usize][0] = panel;
        for k in 0..n_in {
            let back = at[1] + k / PANEL * PANEL * n_out + o * PANEL + k % PANEL;
            places[weight + (o * n_in + k) as usize] = [panel + PANEL * (1 + k), back];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Mixing, Spec};

    #[test]
    fn every_weight_of_a_network_has_places_of_its_own() {
        for (dim, width) in [(1, 3), (2, 8), (7, 13), (20, 139)] {
            let plan = Plan::new(&Spec { dim, width, mixing: Mixing::Householder, ..Spec::default() }).unwrap();
            let panels = Panels::new(&plan);
            let mut taken = vec![false; panels.len as usize];
            for tensor in &plan.layout.tensors {
                for i in tensor.range() {
                    let expected = match tensor.name.rsplit('.').next() {
                        Some("weight") => [true, true],
                        Some("bias") => [true, false],
                        _ => [false, false],
                    };
                    assert_eq!(panels.places[i].map(|place| place != NO_PLACE), expected, "{}", tensor.name);
                    for place in panels.places[i].into_iter().filter(|&place| place != NO_PLACE) {
                        assert!(!std::mem::replace(&mut taken[place as usize], true), "{}", tensor.name);
                    }
                }
            }
        }
    }
}

//! Panels: copies of the weights as the kernels of networks and mixings read them. They live on the device alone; Adam,
//! `shaders/reflect.wgsl` and `shaders/pack_weights.wgsl` write them.
//!
//! A thread computes eight outputs of a layer, so a panel has the weights of eight outputs, input by input, as two vec4
//! per input; its head are the eight biases. The backward pass computes eight inputs from all outputs: the transposed
//! panels, without a head. A mixing has both kinds without a head. Where there are fewer than eight the rest stays
//! zero: it is never written.

use std::collections::HashMap;

use crate::engine::gpu::kernels::launch::NONE;
use crate::plan::{Net, Node, Plan};

/// Outputs of a panel.
pub(crate) const PANEL: u32 = 8;

/// Where the panels of one network begin, in vec4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NetPanels {
    /// By layer.
    pub(crate) forward: [u32; 3],
    /// Transposed, by layer.
    pub(crate) back: [u32; 3],
}

/// Panels of all networks of a plan.
#[derive(Debug)]
pub(crate) struct Panels {
    /// By stage and node: s and t.
    pub(crate) nets: Vec<Vec<Vec<NetPanels>>>,
    /// By mixing: where the panels of Q begin, and the transposed ones, in vec4.
    pub(crate) mixes: Vec<[u32; 2]>,
    /// Per weight the floats that are its copies: in a panel and in a transposed one.
    pub(crate) packed_offsets: Vec<[u32; 2]>,
    /// Floats of all panels.
    pub(crate) len: u64,
}

/// Number of inputs and outputs of the layers of a node's networks.
fn layers(node: &Node) -> [[u32; 2]; 3] {
    node.layers().map(|layer| [layer.inputs, layer.outputs])
}

/// Floats of the panels of one layer, and of the transposed ones.
fn sizes([n_in, n_out]: [u32; 2]) -> [u64; 2] {
    let groups = |n: u32| u64::from(n.div_ceil(PANEL)) * u64::from(PANEL);
    [groups(n_out) * (1 + u64::from(n_in)), groups(n_in) * u64::from(n_out)]
}

/// Floats of the panels of a matrix of that many rows and columns, without a head.
fn square(n: u32) -> u64 {
    sizes([n, n])[1]
}

/// Floats of the panels of a plan.
pub(crate) fn panels_len(plan: &Plan) -> u64 {
    // Stages of single lanes have the same networks once more.
    let stages = plan.blocks.iter().flat_map(|block| block.stages.clone());
    let nodes = stages.flat_map(|stage| &plan.stages[stage].nodes);
    let of_node = |node: &Node| {
        let layers = layers(node).into_iter().map(|layer| sizes(layer).iter().sum::<u64>());
        node.nets.len() as u64 * layers.sum::<u64>()
    };
    let nets: u64 = nodes.map(of_node).sum();
    nets + plan.mixes().map(|mix| 2 * square(mix.dim)).sum::<u64>()
}

impl Panels {
    /// The panels must have fewer than 2^32 floats.
    pub(crate) fn new(plan: &Plan) -> Self {
        let mut packed_offsets = vec![[NONE; 2]; plan.layout.len()];
        let mut len = 0u64;
        let mut nets = Vec::with_capacity(plan.stages.len());
        let mut known = HashMap::new();
        for stage in &plan.stages {
            let mut of_net = |node: &Node, net: &Net| {
                // A network may be in several stages.
                *known.entry(net.weight[1]).or_insert_with(|| {
                    let mut panels = NetPanels::default();
                    for (layer, shape) in layers(node).into_iter().enumerate() {
                        let [forward, back] = sizes(shape);
                        panels.forward[layer] = (len / 4) as u32;
                        panels.back[layer] = ((len + forward) / 4) as u32;
                        let (weight, bias) = (net.weight[layer] as usize, net.bias[layer] as usize);
                        let head = len as u32 + PANEL;
                        put_offsets(&mut packed_offsets, shape, weight, [head, (len + forward) as u32], 1);
                        for o in 0..shape[1] {
                            packed_offsets[bias + o as usize][0] =
                                len as u32 + o / PANEL * PANEL * (1 + shape[0]) + o % PANEL;
                        }
                        len += forward + back;
                    }
                    panels
                })
            };
            nets.push(stage.nodes.iter().map(|node| node.nets.iter().map(|net| of_net(node, net)).collect()).collect());
        }
        let mut mixes = Vec::new();
        for mix in plan.mixes() {
            let [forward, back] = [len, len + square(mix.dim)];
            put_offsets(&mut packed_offsets, [mix.dim, mix.dim], mix.q as usize, [forward as u32, back as u32], 0);
            mixes.push([(forward / 4) as u32, (back / 4) as u32]);
            len += 2 * square(mix.dim);
        }
        debug_assert_eq!(len, panels_len(plan));
        Self { nets, mixes, packed_offsets, len }
    }
}

/// The offsets of a matrix of weights: its first panel's weights begin at float `at[0]`, the transposed ones at
/// `at[1]`. A panel has `heads` times eight floats more than weights.
fn put_offsets(packed_offsets: &mut [[u32; 2]], [n_in, n_out]: [u32; 2], weight: usize, at: [u32; 2], heads: u32) {
    for o in 0..n_out {
        let panel = at[0] + o / PANEL * PANEL * (heads + n_in) + o % PANEL;
        for k in 0..n_in {
            let back = at[1] + k / PANEL * PANEL * n_out + o * PANEL + k % PANEL;
            packed_offsets[weight + (o * n_in + k) as usize] = [panel + PANEL * k, back];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Kind, Mixing, Spec};

    #[test]
    fn every_weight_has_offsets_of_its_own() {
        for (kind, dim, cond_dim, width) in [
            (Kind::Flow, 1, 0, 3),
            (Kind::Flow, 2, 0, 8),
            (Kind::Flow, 7, 0, 13),
            (Kind::Flow, 20, 0, 139),
            (Kind::Cinn, 1, 1, 5),
            (Kind::Cinn, 7, 3, 13),
            (Kind::Hint, 1, 1, 5),
            (Kind::Hint, 7, 5, 13),
        ] {
            let spec = Spec { kind, dim, cond_dim, width, mixing: Mixing::Householder, ..Spec::default() };
            let plan = Plan::new(&spec).unwrap();
            let panels = Panels::new(&plan);
            let mut taken = vec![false; panels.len as usize];
            let mut expected = vec![[false; 2]; plan.layout.len()];
            for tensor in &plan.layout.tensors {
                let copies = match tensor.name.rsplit('.').next() {
                    Some("weight") => [true, true],
                    Some("bias") => [true, false],
                    _ => [false, false],
                };
                expected[tensor.range()].fill(copies);
            }
            // Q of trained reflections has no name.
            expected[plan.layout.trained..].fill([true, true]);
            for (i, packed_offsets) in panels.packed_offsets.iter().enumerate() {
                assert_eq!(packed_offsets.map(|offset| offset != NONE), expected[i], "weight {i}, N = {dim}");
                for &offset in packed_offsets.iter().filter(|&&offset| offset != NONE) {
                    assert!(!std::mem::replace(&mut taken[offset as usize], true), "weight {i}, N = {dim}");
                }
            }
        }
    }

    /// What is trained in one stage is sampled from in another.
    #[test]
    fn a_network_has_the_same_panels_in_every_stage() {
        let plan = Plan::new(&Spec { kind: Kind::Hint, dim: 5, cond_dim: 3, width: 9, ..Spec::default() }).unwrap();
        let panels = Panels::new(&plan);
        let mut known = HashMap::new();
        for (stage, nets) in plan.stages.iter().zip(&panels.nets) {
            for (node, nets) in stage.nodes.iter().zip(nets) {
                for (net, &panels) in node.nets.iter().zip(nets) {
                    known.entry(net.weight).or_insert_with(Vec::new).push(panels);
                }
            }
        }
        assert!(known.values().all(|panels| panels.len() == 2 && panels[0] == panels[1]));
        let mut firsts: Vec<u32> = known.values().map(|panels| panels[0].forward[0]).collect();
        firsts.sort_unstable();
        firsts.dedup();
        assert_eq!(firsts.len(), known.len());
    }
}

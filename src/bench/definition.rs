//! The forward map of a model in f64 (spec, sections 1 to 3), in plain loops over nodes: slow, and with nothing in common
//! with any engine but the plan.

use crate::plan::{Net, Node, Plan, Scale, Stage};

/// z, row-major (B, N), and the log-determinants of rows x.
pub(super) fn forward(plan: &Plan, weights: &[f32], x: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let (mut z, mut log_dets) = (Vec::with_capacity(x.len()), Vec::new());
    for row in x.chunks_exact(plan.spec.dim as usize) {
        let mut v: Vec<f64> = row.iter().map(|&x| x.into()).collect();
        let mut log_det = 0.0;
        for block in &plan.blocks {
            if let Some(mix) = &block.mix {
                v = linear(&weights[mix.q as usize..], None, &v, v.len());
            }
            for stage in &plan.stages[block.stages.clone()] {
                log_det += couple(plan, stage, weights, &mut v);
            }
        }
        z.extend(v.iter().map(|&v| v as f32));
        log_dets.push(log_det as f32);
    }
    (z, log_dets)
}

/// The affine maps of a stage, in place; returns the log-determinant.
fn couple(plan: &Plan, stage: &Stage, weights: &[f32], v: &mut [f64]) -> f64 {
    let mut st = vec![0.0; stage.st_rows as usize];
    for node in &stage.nodes {
        for (net, first) in [(&node.s, node.st), (&node.t, node.st + node.lower)] {
            let out = network(node, net, weights, v);
            st[first as usize..][..out.len()].copy_from_slice(&out);
        }
    }
    let mut log_det = 0.0;
    for (value, chain) in v.iter_mut().zip(&stage.chains) {
        for link in chain {
            let s = st[link.s as usize];
            let s = match plan.spec.scale {
                Scale::Atan { slope } => f64::from(slope) * s.atan(),
                Scale::Exp => s,
            };
            *value = *value * s.exp() + st[link.t as usize];
            log_det += s;
        }
    }
    log_det
}

/// Linear, ReLU, Linear, ReLU, Linear on the upper columns of a node.
fn network(node: &Node, net: &Net, weights: &[f32], v: &[f64]) -> Vec<f64> {
    let mut values = v[node.upper_first as usize..][..node.upper as usize].to_vec();
    for (layer, outputs) in [node.hidden, node.hidden, node.lower].into_iter().enumerate() {
        let [w, b] = [net.weight[layer], net.bias[layer]].map(|at| &weights[at as usize..]);
        values = linear(w, Some(b), &values, outputs as usize);
        if layer < 2 {
            values.iter_mut().for_each(|v| *v = v.max(0.0));
        }
    }
    values
}

/// `w x + b`, w row-major.
fn linear(w: &[f32], b: Option<&[f32]>, x: &[f64], outputs: usize) -> Vec<f64> {
    let dot = |row: &[f32]| row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>();
    let bias = |o: usize| b.map_or(0.0, |b| f64::from(b[o]));
    (0..outputs).map(|o| dot(&w[o * x.len()..][..x.len()]) + bias(o)).collect()
}

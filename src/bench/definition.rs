//! A model in f64 (docs/model.md, Recursion and Couplings), in plain loops over nodes: the forward map, and the gradient
//! of the loss by the chain rule. Slow, and with nothing in common with any engine but the plan.

pub(crate) mod spline;

use crate::plan::{Link, Net, Node, Plan, Scale, Stage, Transform};

/// The definition of a model of fixed mixings with these weights.
pub(super) struct Definition<'a> {
    pub(super) plan: &'a Plan,
    pub(super) weights: &'a [f32],
}

/// What the forward map makes of one row.
pub(super) struct Forward {
    /// z, N values.
    pub(super) z: Vec<f64>,
    pub(super) log_det: f64,
    /// The smallest magnitude before a ReLU, among networks that see any column: how far the row is from a kink.
    pub(super) margin: f64,
    /// The columns that each stage got.
    stages: Vec<Vec<f64>>,
}

/// The mean loss of rows, and its gradient.
pub(super) struct Slope {
    /// Mean of `|z|^2 / 2 - log |det dz/dx|`.
    pub(super) loss: f64,
    /// Its gradient, one value per trained weight.
    pub(super) gradients: Vec<f64>,
}

/// What goes through a network: its input, both hidden activations, its output.
type Activations = [Vec<f64>; 4];

impl Definition<'_> {
    /// z and log-determinant of a row.
    pub(super) fn forward(&self, row: &[f32]) -> Forward {
        let v = row.iter().map(|&x| x.into()).collect();
        let mut done = Forward { z: v, log_det: 0.0, margin: f64::INFINITY, stages: Vec::new() };
        for block in &self.plan.blocks {
            // Bench cases have one lane.
            for mix in &block.mixes {
                done.z = linear(self.at(mix.q), None, &done.z, done.z.len());
            }
            for stage in &self.plan.stages[block.stages.clone()] {
                done.stages.push(done.z.clone());
                let (st, margin) = self.networks(stage, &done.z);
                done.margin = done.margin.min(margin);
                for (value, chain) in done.z.iter_mut().zip(&stage.chains) {
                    done.log_det += match self.plan.spec.coupling {
                        Transform::Affine => self.chain(chain, &st, value),
                        Transform::Spline(spline) => match spline::summed(spline, chain, &st) {
                            Some(parameters) => spline::forward(spline, &parameters, value),
                            None => 0.0,
                        },
                    };
                }
            }
        }
        done
    }

    /// The loss of rows, row-major (B, N), and its gradient; `shares`, which sum to 1, say how much each row counts.
    pub(super) fn slope(&self, x: &[f32], shares: &[f64]) -> Slope {
        let mut slope = Slope { loss: 0.0, gradients: vec![0.0; self.plan.layout.trained] };
        for (row, &share) in x.chunks_exact(self.plan.spec.dim as usize).zip(shares) {
            let done = self.forward(row);
            slope.loss += share * (0.5 * done.z.iter().map(|z| z * z).sum::<f64>() - done.log_det);
            let mut d_v: Vec<f64> = done.z.iter().map(|z| share * z).collect();
            for block in self.plan.blocks.iter().rev() {
                for stage in block.stages.clone().rev() {
                    let (v, stage) = (&done.stages[stage], &self.plan.stages[stage]);
                    self.stage_backward(stage, v, -share, &mut d_v, &mut slope.gradients);
                }
                for mix in &block.mixes {
                    d_v = transposed(self.at(mix.q), &d_v, d_v.len());
                }
            }
        }
        slope
    }

    /// Gradients of a stage that got the columns `v`: `d_v` is that of what it gave and becomes that of `v`.
    fn stage_backward(&self, stage: &Stage, v: &[f64], d_log_det: f64, d_v: &mut [f64], gradients: &mut [f64]) {
        let (st, _) = self.networks(stage, v);
        let mut d_st = vec![0.0; st.len()];
        for ((&value, d), chain) in v.iter().zip(d_v.iter_mut()).zip(&stage.chains) {
            match self.plan.spec.coupling {
                Transform::Affine => self.chain_backward(chain, &st, value, d_log_det, d, &mut d_st),
                Transform::Spline(spline) => {
                    let Some(parameters) = spline::summed(spline, chain, &st) else { continue };
                    let of_parameters = spline::backward(spline, &parameters, value, d, d_log_det);
                    for link in chain {
                        for (p, &gradient) in of_parameters.iter().enumerate() {
                            d_st[link.row(p as u32) as usize] = gradient;
                        }
                    }
                }
            }
        }
        for node in &stage.nodes {
            for (net, first) in outputs(node) {
                let (activations, _) = self.network(node, net, v);
                let mut d = d_st[first as usize..][..node.outputs as usize].to_vec();
                for layer in (0..3).rev() {
                    let input = &activations[layer];
                    let [w, b] = [net.weight[layer], net.bias[layer]].map(|at| at as usize);
                    for (o, &d) in d.iter().enumerate() {
                        gradients[b + o] += d;
                        let row = &mut gradients[w + o * input.len()..][..input.len()];
                        row.iter_mut().zip(input).for_each(|(gradient, x)| *gradient += d * x);
                    }
                    d = transposed(self.at(net.weight[layer]), &d, input.len());
                    if layer > 0 {
                        d.iter_mut().zip(input).filter(|(_, x)| **x <= 0.0).for_each(|(d, _)| *d = 0.0);
                    }
                }
                let upper = &mut d_v[node.upper_first as usize..][..node.upper as usize];
                upper.iter_mut().zip(d).for_each(|(sum, d)| *sum += d);
            }
        }
    }

    /// A column through its affine maps; returns the sum of their log-scales.
    fn chain(&self, chain: &[Link], st: &[f64], value: &mut f64) -> f64 {
        let mut log_det = 0.0;
        for link in chain {
            let [raw, t] = [0, 1].map(|parameter| st[link.row(parameter) as usize]);
            let s = self.scale(raw);
            *value = *value * s.exp() + t;
            log_det += s;
        }
        log_det
    }

    fn chain_backward(&self, chain: &[Link], st: &[f64], value: f64, d_log_det: f64, d: &mut f64, d_st: &mut [f64]) {
        let mut values = vec![value];
        for link in chain {
            let mut value = values[values.len() - 1];
            self.chain(&[*link], st, &mut value);
            values.push(value);
        }
        for (link, value) in chain.iter().zip(&values).rev() {
            let [s, t] = [0, 1].map(|parameter| link.row(parameter) as usize);
            let factor = self.scale(st[s]).exp();
            d_st[t] += *d;
            d_st[s] += (*d * value * factor + d_log_det) * self.scale_slope(st[s]);
            *d *= factor;
        }
    }

    /// The `st` rows of a stage, and how far its networks are from a kink.
    fn networks(&self, stage: &Stage, v: &[f64]) -> (Vec<f64>, f64) {
        let mut st = vec![0.0; stage.st_rows as usize];
        let mut margin = f64::INFINITY;
        for node in &stage.nodes {
            for (net, first) in outputs(node) {
                let (activations, least) = self.network(node, net, v);
                st[first as usize..][..node.outputs as usize].copy_from_slice(&activations[3]);
                if node.upper > 0 {
                    margin = margin.min(least);
                }
            }
        }
        (st, margin)
    }

    /// Linear, ReLU, Linear, ReLU, Linear on the upper columns of a node; and the smallest magnitude before a ReLU.
    fn network(&self, node: &Node, net: &Net, v: &[f64]) -> (Activations, f64) {
        let mut margin = f64::INFINITY;
        let mut all = [v[node.upper_first as usize..][..node.upper as usize].to_vec(), vec![], vec![], vec![]];
        for (layer, shape) in node.layers().into_iter().enumerate() {
            let [w, b] = [net.weight[layer], net.bias[layer]].map(|at| self.at(at));
            all[layer + 1] = linear(w, Some(b), &all[layer], shape.outputs as usize);
            if layer < 2 {
                margin = all[layer + 1].iter().fold(margin, |least, v| least.min(v.abs()));
                all[layer + 1].iter_mut().for_each(|v| *v = v.max(0.0));
            }
        }
        (all, margin)
    }

    fn scale(&self, s: f64) -> f64 {
        match self.plan.spec.scale {
            Scale::Atan { slope } => f64::from(slope) * s.atan(),
            Scale::Exp => s,
        }
    }

    fn scale_slope(&self, s: f64) -> f64 {
        match self.plan.spec.scale {
            Scale::Atan { slope } => f64::from(slope) / (1.0 + s * s),
            Scale::Exp => 1.0,
        }
    }

    fn at(&self, offset: u32) -> &[f32] {
        &self.weights[offset as usize..]
    }
}

/// The networks of a node, and where their outputs begin among the `st` rows.
fn outputs(node: &Node) -> impl Iterator<Item = (&Net, u32)> {
    node.nets.iter().zip(0..).map(|(net, which)| (net, node.st_of(which)))
}

/// `w x + b`, w row-major.
fn linear(w: &[f32], b: Option<&[f32]>, x: &[f64], outputs: usize) -> Vec<f64> {
    let dot = |row: &[f32]| row.iter().zip(x).map(|(&w, x)| f64::from(w) * x).sum::<f64>();
    let bias = |o: usize| b.map_or(0.0, |b| f64::from(b[o]));
    (0..outputs).map(|o| dot(&w[o * x.len()..][..x.len()]) + bias(o)).collect()
}

/// `w^T d`, w row-major.
fn transposed(w: &[f32], d: &[f64], inputs: usize) -> Vec<f64> {
    let mut sums = vec![0.0; inputs];
    for (o, d) in d.iter().enumerate() {
        sums.iter_mut().zip(&w[o * inputs..][..inputs]).for_each(|(sum, &w)| *sum += f64::from(w) * d);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{ConditionOn, Mixing, Spec};
    use crate::rng::{self, Stream};

    /// The chain rule against central differences of the forward map, for weights of every tensor.
    #[test]
    fn gradients_are_the_slopes_of_the_loss() {
        for condition_on in [ConditionOn::Input, ConditionOn::Output] {
            for scale in [Scale::default(), Scale::Exp] {
                let spec =
                    Spec { dim: 5, width: 8, blocks: 2, condition_on, scale, mixing: Mixing::Fixed, ..Spec::default() };
                let plan = Plan::new(&spec).unwrap();
                let mut weights = vec![0.0; plan.layout.len()];
                rng::fill_normals(1, Stream::InitParameters, 0, 0, &mut weights);
                weights.iter_mut().for_each(|w| *w *= 0.3);
                let mut x = vec![0.0; 3 * 5];
                rng::fill_normals(2, Stream::Data, 0, 0, &mut x);
                let shares = [0.5, 0.2, 0.3];
                let slope = |weights: &[f32]| Definition { plan: &plan, weights }.slope(&x, &shares);
                let of = slope(&weights);
                for tensor in plan.layout.tensors.iter().filter(|t| t.range().end <= plan.layout.trained) {
                    for at in tensor.range().step_by(7) {
                        let mut moved = weights.clone();
                        moved[at] = weights[at] + 1e-3;
                        let (more, above) = (f64::from(moved[at]), slope(&moved).loss);
                        moved[at] = weights[at] - 1e-3;
                        let (less, below) = (f64::from(moved[at]), slope(&moved).loss);
                        let (got, want) = (of.gradients[at], (above - below) / (more - less));
                        assert!((got - want).abs() <= 1e-4 * (1.0 + want.abs()), "{}: {got} {want}", tensor.name);
                    }
                }
                assert!(of.gradients.iter().any(|g| g.abs() > 0.1));
            }
        }
    }
}

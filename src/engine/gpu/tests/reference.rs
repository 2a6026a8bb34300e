//! What every operation means, in f64 and one sample at a time: written from the definitions in `program.rs`.

use std::sync::Arc;

use crate::bench::definition::spline;
use crate::buffer::Buffer;
use crate::plan::{Link, Net, Node, Plan, Scale, Spline, Stage, Transform};
use crate::program::{Op, Program, StepOp};

pub(super) struct Reference {
    plan: Arc<Plan>,
    pub(super) weights: Vec<f64>,
    pub(super) gradients: Vec<f64>,
    /// One sample's arena.
    arena: Vec<f64>,
    batch: f64,
    pub(super) loss: f64,
}

impl Reference {
    pub(super) fn new(plan: &Arc<Plan>, weights: &[f32]) -> Self {
        Self {
            plan: plan.clone(),
            weights: weights.iter().map(|&w| w.into()).collect(),
            gradients: vec![0.0; plan.layout.gradient_len()],
            arena: vec![],
            batch: 0.0,
            loss: 0.0,
        }
    }

    /// Runs a program on row-major inputs; returns row-major outputs.
    pub(super) fn run(&mut self, program: &Program, rows: usize, inputs: &[Vec<f32>]) -> Vec<Vec<f64>> {
        self.batch = rows as f64;
        self.gradients.fill(0.0);
        self.loss = 0.0;
        self.steps(&program.prepare);
        let mut outputs = vec![Vec::new(); program.outputs.len()];
        for r in 0..rows {
            self.arena = vec![0.0; program.arena_rows as usize];
            for (buffer, values) in program.inputs.iter().zip(inputs) {
                let n = buffer.rows as usize;
                let sample = values[r * n..(r + 1) * n].iter().map(|&v| f64::from(v));
                self.arena.splice(range(*buffer), sample);
            }
            program.rows.iter().for_each(|op| self.op(op));
            for (buffer, output) in program.outputs.iter().zip(&mut outputs) {
                output.extend_from_slice(&self.arena[range(*buffer)]);
            }
        }
        self.steps(&program.finish);
        outputs
    }

    fn sigma(&self, a: f64) -> f64 {
        match self.plan.spec.scale {
            Scale::Atan { slope } => f64::from(slope) * a.atan(),
            Scale::Exp => a,
        }
    }

    fn sigma_derivative(&self, a: f64) -> f64 {
        match self.plan.spec.scale {
            Scale::Atan { slope } => f64::from(slope) / (1.0 + a * a),
            Scale::Exp => 1.0,
        }
    }

    /// `W v + b` of one layer.
    fn layer(&self, net: &Net, layer: usize, input: &[f64], n_out: usize) -> Vec<f64> {
        let (w, b) = (net.weight[layer] as usize, net.bias[layer] as usize);
        let product = |o: usize| -> f64 {
            let row = &self.weights[w + o * input.len()..][..input.len()];
            row.iter().zip(input).map(|(w, v)| w * v).sum()
        };
        (0..n_out).map(|o| self.weights[b + o] + product(o)).collect()
    }

    /// Rows of the arena that a node reads: its upper columns, then the conditions.
    fn inputs(node: &Node, x: Buffer, given: Buffer) -> Vec<usize> {
        let upper = x.first + node.upper_first..x.first + node.upper_first + node.upper;
        upper.chain(given.first..given.first + node.given).map(|row| row as usize).collect()
    }

    fn node(&mut self, node: &Node, x: Buffer, given: Buffer, st: Buffer, hidden: [Buffer; 2]) {
        for (which, net) in (0..).zip(node.nets.iter()) {
            let relu = |v: Vec<f64>| v.into_iter().map(|a| a.max(0.0)).collect::<Vec<_>>();
            let h = node.hidden as usize;
            let v: Vec<f64> = Self::inputs(node, x, given).into_iter().map(|row| self.arena[row]).collect();
            let first = relu(self.layer(net, 0, &v, h));
            let second = relu(self.layer(net, 1, &first, h));
            let out = self.layer(net, 2, &second, node.outputs as usize);
            let row = node.hidden_of(which) as usize;
            put(&mut self.arena, hidden[0].first as usize + row, &first);
            put(&mut self.arena, hidden[1].first as usize + row, &second);
            put(&mut self.arena, (st.first + node.st_of(which)) as usize, &out);
        }
    }

    fn op(&mut self, op: &Op) {
        let plan = self.plan.clone();
        match *op {
            Op::Gather { .. } | Op::Normal { .. } => unreachable!("tested apart"),
            // Those of an `inn`, in `tests/rooms/inn.rs`.
            Op::SquaredError { .. } | Op::Discrepancy { .. } | Op::TotalLoss { .. } | Op::UncoupleBackward { .. } => {
                unreachable!("tested as a whole")
            }
            Op::Fill { to, value } => self.arena[range(to)].fill(value.into()),
            Op::Mix { mix, transpose, from, to } => self.mix(mix, transpose, from, to),
            Op::Networks { stage, x, given, st, hidden, .. } => {
                plan.stages[stage].nodes.iter().for_each(|node| self.node(node, x, given, st, hidden));
            }
            Op::Couple { stage, x, st, to, log_det } => {
                for (c, chain) in plan.stages[stage].chains.iter().enumerate() {
                    let mut v = self.arena[x.first as usize + c];
                    if let Transform::Spline(form) = plan.spec.coupling {
                        if let Some(parameters) = self.parameters(form, chain, st) {
                            self.arena[log_det.first as usize] += spline::forward(form, &parameters, &mut v);
                        }
                        self.arena[to.first as usize + c] = v;
                        continue;
                    }
                    for link in chain {
                        let sigma = self.sigma(self.arena[(st.first + link.row(0)) as usize]);
                        v = v * sigma.exp() + self.arena[(st.first + link.row(1)) as usize];
                        self.arena[log_det.first as usize] += sigma;
                    }
                    self.arena[to.first as usize + c] = v;
                }
            }
            Op::Uncouple { stage, from, x, st } => {
                let values = self.arena[range(from)].to_vec();
                put(&mut self.arena, x.first as usize, &values);
                for (c, chain) in plan.stages[stage].chains.iter().enumerate() {
                    if let Transform::Spline(form) = plan.spec.coupling {
                        self.spline_inverse(form, chain, x.first as usize + c, st);
                        continue;
                    }
                    for link in chain.iter().rev() {
                        self.uncouple(
                            x.first as usize + c,
                            (st.first + link.row(0)) as usize,
                            (st.first + link.row(1)) as usize,
                        );
                    }
                }
            }
            Op::Walk { stage, x, given, st, hidden, .. } => {
                let stage = &plan.stages[stage];
                for &i in &stage.walk {
                    let node = &stage.nodes[i as usize];
                    self.node(node, x, given, st, hidden);
                    for c in 0..node.lower {
                        let s = st.first + node.st + c;
                        let at = x.first + node.lower_first + c;
                        if let Transform::Spline(form) = plan.spec.coupling {
                            // Once all nodes have run that the column's parameters are sums over.
                            let chain = &stage.chains[(node.lower_first + c) as usize];
                            if chain[0].first == node.st + c * form.parameters() {
                                self.spline_inverse(form, chain, at as usize, st);
                            }
                            continue;
                        }
                        self.uncouple(at as usize, s as usize, (s + node.lower) as usize);
                    }
                }
            }
            Op::Loss { z, log_det, loss, d_z, d_log_det } => {
                let values = self.arena[range(z)].to_vec();
                let value = values.iter().map(|v| v * v).sum::<f64>() / 2.0 - self.arena[log_det.first as usize];
                self.arena[loss.first as usize] = value;
                self.loss += value;
                let seeds: Vec<f64> = values.iter().map(|v| v / self.batch).collect();
                put(&mut self.arena, d_z.first as usize, &seeds);
                self.arena[d_log_det.first as usize] = -1.0 / self.batch;
            }
            Op::CoupleBackward { stage, x, st, d_to, d_log_det, d_x, d_st } => {
                for (c, chain) in plan.stages[stage].chains.iter().enumerate() {
                    if let Transform::Spline(form) = plan.spec.coupling {
                        let mut g = self.arena[d_to.first as usize + c];
                        if let Some(parameters) = self.parameters(form, chain, st) {
                            let (v, d_log) = (self.arena[x.first as usize + c], self.arena[d_log_det.first as usize]);
                            let gradients = spline::backward(form, &parameters, v, &mut g, d_log);
                            let sum = plan.stages[stage].sums[c].unwrap();
                            put(&mut self.arena, (d_st.first + sum) as usize, &gradients);
                        }
                        self.arena[d_x.first as usize + c] = g;
                        continue;
                    }
                    let mut values = vec![self.arena[x.first as usize + c]];
                    for link in chain {
                        let e = self.sigma(self.arena[(st.first + link.row(0)) as usize]).exp();
                        values.push(values[values.len() - 1] * e + self.arena[(st.first + link.row(1)) as usize]);
                    }
                    let mut g = self.arena[d_to.first as usize + c];
                    for (link, v) in chain.iter().zip(values).rev() {
                        let a = self.arena[(st.first + link.row(0)) as usize];
                        let e = self.sigma(a).exp();
                        let d_sigma = g * v * e + self.arena[d_log_det.first as usize];
                        self.arena[(d_st.first + link.row(0)) as usize] = d_sigma * self.sigma_derivative(a);
                        self.arena[(d_st.first + link.row(1)) as usize] = g;
                        g *= e;
                    }
                    self.arena[d_x.first as usize + c] = g;
                }
            }
            Op::NetworksBackward { stage, x, given, hidden, d_st, d_x, .. } => {
                self.networks_backward(&plan.stages[stage], [x, given], hidden, d_st, d_x);
            }
            Op::MixBackward { mix, from, d_to, d_from } => {
                self.mix(mix, true, d_to, d_from);
                let mix = plan.mixes().nth(mix).unwrap();
                if mix.reflections.is_some() {
                    for i in 0..mix.dim {
                        for j in 0..mix.dim {
                            let product = self.arena[(d_to.first + i) as usize] * self.arena[(from.first + j) as usize];
                            self.gradients[(mix.q + i * mix.dim + j) as usize] += product;
                        }
                    }
                }
            }
        }
    }

    /// Sums of the parameters of a column, if any node transforms it.
    fn parameters(&self, form: Spline, chain: &[Link], st: Buffer) -> Option<Vec<f64>> {
        spline::summed(form, chain, &self.arena[range(st)])
    }

    /// By bisection.
    fn spline_inverse(&mut self, form: Spline, chain: &[Link], at: usize, st: Buffer) {
        let (Some(parameters), y) = (self.parameters(form, chain, st), self.arena[at]) else { return };
        let (mut low, mut high) = (-f64::from(form.half_width), f64::from(form.half_width));
        if y <= low || y >= high {
            return;
        }
        for _ in 0..60 {
            let middle = (low + high) / 2.0;
            let mut value = middle;
            spline::forward(form, &parameters, &mut value);
            if value < y { low = middle } else { high = middle }
        }
        self.arena[at] = (low + high) / 2.0;
    }

    fn uncouple(&mut self, at: usize, s: usize, t: usize) {
        self.arena[at] = (self.arena[at] - self.arena[t]) * (-self.sigma(self.arena[s])).exp();
    }

    fn mix(&mut self, mix: usize, transpose: bool, from: Buffer, to: Buffer) {
        let (q, n) = (self.plan.mixes().nth(mix).unwrap().q as usize, from.rows as usize);
        let element = |i: usize, j: usize| self.weights[q + if transpose { j * n + i } else { i * n + j }];
        let product = |i: usize| (0..n).map(|j| element(i, j) * self.arena[from.first as usize + j]).sum();
        let result: Vec<f64> = (0..n).map(product).collect();
        put(&mut self.arena, to.first as usize, &result);
    }

    fn networks_backward(
        &mut self,
        stage: &Stage,
        [x, given]: [Buffer; 2],
        hidden: [Buffer; 2],
        d_st: Buffer,
        d_x: Buffer,
    ) {
        for node in &stage.nodes {
            for (which, net) in (0..).zip(node.nets.iter()) {
                let (h, outputs) = (node.hidden as usize, node.outputs as usize);
                let row = node.hidden_of(which);
                let inputs = [
                    Self::inputs(node, x, given),
                    ((hidden[0].first + row) as usize..).take(h).collect(),
                    ((hidden[1].first + row) as usize..).take(h).collect(),
                ];
                let out = (d_st.first + node.sum_of(which)) as usize;
                let mut d = self.arena[out..out + outputs].to_vec();
                for layer in (0..3).rev() {
                    let input: Vec<f64> = inputs[layer].iter().map(|&row| self.arena[row]).collect();
                    let (w, b) = (net.weight[layer] as usize, net.bias[layer] as usize);
                    let mut d_input = vec![0.0; input.len()];
                    for (o, d_out) in d.iter().enumerate() {
                        self.gradients[b + o] += d_out;
                        for (k, v) in input.iter().enumerate() {
                            self.gradients[w + o * input.len() + k] += d_out * v;
                            d_input[k] += d_out * self.weights[w + o * input.len() + k];
                        }
                    }
                    if layer > 0 {
                        d_input.iter_mut().zip(&input).filter(|(_, v)| **v <= 0.0).for_each(|(d, _)| *d = 0.0);
                    }
                    d = d_input;
                }
                for (k, d) in d.iter().take(node.upper as usize).enumerate() {
                    self.arena[(d_x.first + node.upper_first) as usize + k] += d;
                }
            }
        }
    }

    fn steps(&mut self, ops: &[StepOp]) {
        let plan = self.plan.clone();
        for op in ops {
            match *op {
                StepOp::Reflect { mix } => {
                    let mix = plan.mixes().nth(mix).unwrap();
                    let q = product_of_reflections(&self.reflections(mix.reflections.unwrap(), mix.dim));
                    put(&mut self.weights, mix.q as usize, &q.concat());
                }
                // By finite differences: the gradient of sum dQ . Q(v).
                StepOp::ReflectBackward { mix } => {
                    let mix = plan.mixes().nth(mix).unwrap();
                    let (at, n) = (mix.reflections.unwrap() as usize, mix.dim as usize);
                    let d_q = self.gradients[mix.q as usize..][..n * n].to_vec();
                    let vectors = self.reflections(at as u32, mix.dim);
                    let value = |vectors: &[Vec<f64>]| -> f64 {
                        product_of_reflections(vectors).concat().iter().zip(&d_q).map(|(q, d)| q * d).sum()
                    };
                    for r in 0..n {
                        for k in 0..n {
                            let mut moved = vectors.clone();
                            let mut at_offset = |offset: f64| {
                                moved[r][k] = vectors[r][k] + offset;
                                value(&moved)
                            };
                            let step = 1e-4;
                            let near = at_offset(step) - at_offset(-step);
                            let far = at_offset(2.0 * step) - at_offset(-2.0 * step);
                            self.gradients[at + r * n + k] = (8.0 * near - far) / (12.0 * step);
                        }
                    }
                }
                StepOp::Clip | StepOp::Adam => unreachable!("tested apart"),
            }
        }
    }

    fn reflections(&self, at: u32, n: u32) -> Vec<Vec<f64>> {
        self.weights[at as usize..][..(n * n) as usize].chunks(n as usize).map(<[f64]>::to_vec).collect()
    }
}

/// `H_1 H_2 ... H_N` by rows.
pub(super) fn product_of_reflections(vectors: &[Vec<f64>]) -> Vec<Vec<f64>> {
    let n = vectors.len();
    let mut q: Vec<Vec<f64>> = (0..n).map(|i| (0..n).map(|j| f64::from(u8::from(i == j))).collect()).collect();
    for v in vectors {
        let norm: f64 = v.iter().map(|a| a * a).sum();
        if norm == 0.0 {
            continue;
        }
        for row in &mut q {
            let dot: f64 = row.iter().zip(v).map(|(a, b)| a * b).sum();
            row.iter_mut().zip(v).for_each(|(a, b)| *a -= 2.0 * dot * b / norm);
        }
    }
    q
}

fn range(buffer: Buffer) -> std::ops::Range<usize> {
    buffer.first as usize..(buffer.first + buffer.rows) as usize
}

fn put(arena: &mut [f64], at: usize, values: &[f64]) {
    arena[at..at + values.len()].copy_from_slice(values);
}

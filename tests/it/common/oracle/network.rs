//! The networks s and t: Linear, ReLU, Linear, ReLU, Linear, on one row.

use super::spec::{Tensor, Tensors};

/// One network by its name in the model file, as `blocks.0.tree.1.s`.
pub(super) struct Network<'a> {
    params: &'a Tensors,
    name: String,
}

/// What a forward pass leaves for the backward pass.
pub(super) struct Trace {
    /// What each layer sees.
    inputs: [Vec<f64>; 3],
    /// What the first two layers hand to their ReLU.
    activations: [Vec<f64>; 2],
    /// What the last layer gives.
    pub(super) output: Vec<f64>,
}

impl Trace {
    /// How near the nearest ReLU is to its kink.
    pub(super) fn relu_margin(&self) -> f64 {
        self.activations.iter().flatten().fold(f64::INFINITY, |margin, a| margin.min(a.abs()))
    }
}

impl<'a> Network<'a> {
    pub(super) fn new(params: &'a Tensors, name: String) -> Self {
        Self { params, name }
    }

    /// The network at v.
    pub(super) fn forward(&self, v: &[f64]) -> Trace {
        let first = self.linear(0, v);
        let hidden = relu(&first);
        let second = self.linear(1, &hidden);
        let last = relu(&second);
        let output = self.linear(2, &last);
        Trace { inputs: [v.to_vec(), hidden, last], activations: [first, second], output }
    }

    /// Adds the gradients of the weights to `grads` and returns the gradient of v, for the gradient of the output.
    pub(super) fn backward(&self, trace: &Trace, d_output: &[f64], grads: &mut Tensors) -> Vec<f64> {
        let mut d = self.linear_backward(2, &trace.inputs[2], d_output, grads);
        for layer in [1, 0] {
            for (d, a) in d.iter_mut().zip(&trace.activations[layer]) {
                if *a <= 0.0 {
                    *d = 0.0;
                }
            }
            d = self.linear_backward(layer, &trace.inputs[layer], &d, grads);
        }
        d
    }

    /// W v + b.
    fn linear(&self, layer: usize, v: &[f64]) -> Vec<f64> {
        let bias = &self.params[&self.tensor(layer, "bias")].data;
        let weight = &self.params[&self.tensor(layer, "weight")];
        assert_eq!(weight.shape, [bias.len(), v.len()], "{}.{layer}", self.name);
        let row = |o: usize| &weight.data[o * v.len()..(o + 1) * v.len()];
        (0..bias.len()).map(|o| bias[o] + dot(row(o), v)).collect()
    }

    /// dW += d v^T, db += d; returns W^T d.
    fn linear_backward(&self, layer: usize, v: &[f64], d: &[f64], grads: &mut Tensors) -> Vec<f64> {
        let (weight_name, bias_name) = (self.tensor(layer, "weight"), self.tensor(layer, "bias"));
        add(&mut gradient(grads, &bias_name).data, d);
        let d_weight = &mut gradient(grads, &weight_name).data;
        let weight = &self.params[&weight_name].data;
        let mut d_v = vec![0.0; v.len()];
        for o in 0..d.len() {
            for i in 0..v.len() {
                d_weight[o * v.len() + i] += d[o] * v[i];
                d_v[i] += weight[o * v.len() + i] * d[o];
            }
        }
        d_v
    }

    fn tensor(&self, layer: usize, what: &str) -> String {
        format!("{}.{layer}.{what}", self.name)
    }
}

fn relu(a: &[f64]) -> Vec<f64> {
    a.iter().map(|a| a.max(0.0)).collect()
}

/// The gradient of the tensor of this name, to be added to.
pub(super) fn gradient<'a>(grads: &'a mut Tensors, name: &str) -> &'a mut Tensor {
    grads.get_mut(name).unwrap_or_else(|| panic!("no gradient called {name}"))
}

/// a . b
pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// a += b
pub(super) fn add(a: &mut [f64], b: &[f64]) {
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

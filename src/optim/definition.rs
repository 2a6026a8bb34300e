//! An update in plain f64, for the tests of both engines.

use super::AdamStep;
use crate::plan::Layout;

/// Weights and what the optimiser keeps of them.
pub(crate) struct Definition {
    pub(crate) weights: Vec<f64>,
    pub(crate) first: Vec<f64>,
    pub(crate) second: Vec<f64>,
    pub(crate) averages: Vec<f64>,
    /// Whether a weight is one of a matrix.
    decays: Vec<bool>,
}

impl Definition {
    pub(crate) fn new(layout: &Layout, weights: &[f32]) -> Self {
        let weights: Vec<f64> = weights[..layout.trained].iter().map(|&w| w.into()).collect();
        let mut decays = vec![false; layout.trained];
        for tensor in layout.tensors.iter().filter(|t| t.name.contains(".tree.") || t.name.contains(".cross.")) {
            decays[tensor.range()].fill(tensor.name.ends_with("weight"));
        }
        let zeros = vec![0.0; layout.trained];
        Self { averages: weights.clone(), weights, first: zeros.clone(), second: zeros, decays }
    }

    /// One update; returns what the gradient was multiplied with.
    pub(crate) fn step(&mut self, step: &AdamStep, gradient: &[f64]) -> f64 {
        let f = |v: f32| f64::from(v);
        let a = step.adam;
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let scale = if a.clip_norm > 0.0 { (f(a.clip_norm) / norm).min(1.0) } else { 1.0 };
        for (i, gradient) in gradient.iter().enumerate() {
            let p = self.weights[i] * if self.decays[i] { 1.0 - f(step.shrink) } else { 1.0 };
            let g = (gradient * scale).clamp(-f(a.grad_clamp), f(a.grad_clamp)) + f(a.l2) * p;
            self.first[i] = f(a.beta1) * self.first[i] + (1.0 - f(a.beta1)) * g;
            self.second[i] = f(a.beta2) * self.second[i] + (1.0 - f(a.beta2)) * g * g;
            self.weights[i] = p - f(step.rate) * self.first[i] / (self.second[i].sqrt() * f(step.root) + f(a.eps));
            if a.average > 0.0 {
                self.averages[i] += f(step.follow) * (self.weights[i] - self.averages[i]);
            }
        }
        scale
    }
}

//! One training step: clamp the gradient, add L2, then Adam.

use super::spec::{Tensor, Tensors};

/// The optimizer's constants; the defaults are those of the paper, at the learning rate of the fixtures.
#[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
pub(crate) struct AdamSettings {
    pub(crate) lr: f64,
    pub(crate) betas: (f64, f64),
    pub(crate) eps: f64,
    pub(crate) l2: f64,
    /// Largest absolute value of a gradient's element.
    pub(crate) clamp: f64,
}

impl Default for AdamSettings {
    fn default() -> Self {
        Self { lr: 1e-3, betas: (0.9, 0.95), eps: 1e-4, l2: 1.86e-5, clamp: 5.0 }
    }
}

/// Settings and moments; the moments are by the names of the gradients.
#[derive(Debug, Clone)]
pub(crate) struct Adam {
    pub(crate) settings: AdamSettings,
    steps: i32,
    first: Tensors,
    second: Tensors,
}

impl Adam {
    /// An optimizer that has seen nothing.
    pub(crate) fn new(settings: AdamSettings) -> Self {
        Self { settings, steps: 0, first: Tensors::new(), second: Tensors::new() }
    }

    /// Moves every tensor that has a gradient.
    pub(crate) fn step(&mut self, params: &mut Tensors, grads: &Tensors) {
        let AdamSettings { lr, betas: (beta1, beta2), eps, l2, clamp } = self.settings;
        self.steps += 1;
        let unbias1 = 1.0 - beta1.powi(self.steps);
        let unbias2 = 1.0 - beta2.powi(self.steps);
        for (name, grad) in grads {
            let param = params.get_mut(name).unwrap_or_else(|| panic!("a gradient but no parameter called {name}"));
            let zeros = Tensor::zeros(&grad.shape);
            let first = self.first.entry(name.clone()).or_insert_with(|| zeros.clone());
            let second = self.second.entry(name.clone()).or_insert(zeros);
            for i in 0..grad.data.len() {
                let p = &mut param.data[i];
                let (m, v) = (&mut first.data[i], &mut second.data[i]);
                let g = grad.data[i].clamp(-clamp, clamp) + l2 * *p;
                *m = beta1 * *m + (1.0 - beta1) * g;
                *v = beta2 * *v + (1.0 - beta2) * g * g;
                *p -= lr * (*m / unbias1) / ((*v / unbias2).sqrt() + eps);
            }
        }
    }
}

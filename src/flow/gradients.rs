//! Gradients of a model on rows of the caller, for what is trained outside of [`crate::train`].

use super::Conditional;
use super::programs::Name;
use crate::data::side_by_side;
use crate::engine::Job;
use crate::error::{Error, Result};
use crate::plan::Kind;

/// Gradient of a scalar with respect to every trained tensor, and to what the model has a density of.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradients {
    /// Name of the tensor as in the model file, and its gradient, row-major in the tensor's shape.
    pub tensors: Vec<(String, Vec<f32>)>,
    /// Gradient with respect to x in the user's units, row-major (B, N).
    pub x: Vec<f32>,
    /// Of a `hint` the gradient with respect to y in the user's units, row-major (B, C); empty for other models.
    pub y: Vec<f32>,
}

impl Conditional<'_> {
    /// Mean loss of rows x and its gradients (docs/model.md, Loss): mean of `|z|^2 / 2 - log |det J|`, not clamped,
    /// without L2; of a `hint` over both lanes. With a standardised model the loss is that of the standardised rows, as
    /// in training.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` has no rows or does not fit the model and the observations.
    pub fn loss_gradients(&self, x: &[f32]) -> Result<(f32, Gradients)> {
        let rows = self.rows("x", self.flow.plan.spec.dim, x)?;
        if rows == 0 {
            return Err(Error::Shape { what: "rows of x".into(), expected: 1, got: 0 });
        }
        let y = self.inner_for(rows);
        let (mut outputs, gradients) = self.backward(Name::LossGradients(self.flow.memory), [&y, x], &[], rows)?;
        let d_x = outputs.swap_remove(1);
        let loss = outputs.swap_remove(0).iter().map(|&l| f64::from(l)).sum::<f64>() / rows as f64;
        Ok((loss as f32, self.name_gradients(&gradients, [&y, x], d_x, rows)))
    }

    /// Vector-Jacobian product: gradients of `sum(d_z * z) + sum(d_log_det * log_det)` over rows x, for any seeds `d_z`
    /// (B, N) and `d_log_det` (B). Of a `hint` z is [z_y, z_x], (B, C + N), and log_det the sum over both lanes.
    ///
    /// # Errors
    /// [`Error::Shape`] if the lengths do not agree.
    pub fn vjp(&self, x: &[f32], d_z: &[f32], d_log_det: &[f32]) -> Result<Gradients> {
        let rows = self.rows("x", self.flow.plan.spec.dim, x)?;
        let agree = |what: &str, expected, got| match expected == got {
            true => Ok(()),
            false => Err(Error::Shape { what: what.into(), expected, got }),
        };
        agree("d_z", rows * self.flow.plan.spec.latent_dim() as usize, d_z.len())?;
        agree("d_log_det", rows, d_log_det.len())?;
        let y = self.inner_for(rows);
        let (mut outputs, gradients) = self.backward(Name::Vjp(self.flow.memory), [&y, x], &[d_z, d_log_det], rows)?;
        Ok(self.name_gradients(&gradients, [&y, x], outputs.swap_remove(0), rows))
    }

    /// Runs a program with backward operations on rows x, given y in the units of the networks, with what the caller gives
    /// beside them.
    fn backward(
        &self,
        name: Name,
        [y, x]: [&[f32]; 2],
        seeds: &[&[f32]],
        rows: usize,
    ) -> Result<(Vec<Vec<f32>>, Vec<f32>)> {
        self.has_density()?;
        let x = self.flow.x.given(y).inner(x)?;
        let joined;
        let mut inputs: Vec<&[f32]> = match self.flow.plan.spec.kind {
            Kind::Flow => vec![&x],
            Kind::Cinn | Kind::Inn => vec![&x, y],
            Kind::Hint => {
                joined = side_by_side(y, &x, rows);
                vec![&joined]
            }
        };
        inputs.extend(seeds);
        self.flow.run_backward(name, &Job { rows, inputs: &inputs, ..Job::default() })
    }

    /// Gradients in the user's units, from those with respect to all weights and to what the program had as x; y is in the
    /// units of the networks, x in the user's.
    fn name_gradients(&self, all: &[f32], [y, x]: [&[f32]; 2], d_x: Vec<f32>, rows: usize) -> Gradients {
        let layout = &self.flow.plan.layout;
        let trained = layout.tensors.iter().filter(|t| t.range().end <= layout.trained);
        let tensors = trained.map(|t| (t.name.clone(), all[t.range()].to_vec())).collect();
        let (mut d_y, mut d_x) = match self.flow.plan.spec.kind {
            Kind::Flow | Kind::Cinn | Kind::Inn => (Vec::new(), d_x),
            Kind::Hint => {
                let lanes = self.flow.split_rows(&d_x).1;
                (lanes.y, lanes.x)
            }
        };
        self.flow.x.given(y).outer_gradient(x, &mut d_x, &mut d_y);
        if !d_y.is_empty() {
            self.flow.y.given(&[]).outer_gradient(&self.user_for(rows), &mut d_y, &mut []);
        }
        Gradients { tensors, x: d_x, y: d_y }
    }
}

//! Jacobians of a model on rows of the caller: which columns of the latent depend on which of the data, and how much
//! (paper, figure 1).

use super::{Conditional, Flow};
use crate::error::{Error, Result};
use crate::plan::Kind;

impl Flow {
    /// Jacobian dz/dx of each row x of an unconditional flow, row-major (B, N, N): entry (i, j) is dz_i/dx_j, x in the
    /// user's units. Of other models see [`Conditional::jacobian`].
    ///
    /// Takes one backward pass over all rows for each column of z.
    ///
    /// # Errors
    /// [`Error::Shape`] if the length of `x` is not a multiple of N, [`Error::WrongKind`] if the model has
    /// conditions.
    pub fn jacobian(&self, x: &[f32]) -> Result<Vec<f32>> {
        self.unconditional()?.jacobian(x)
    }

    /// Mean of |dz/dx| over rows x of an unconditional flow, row-major (N, N); of others see
    /// [`Conditional::mean_abs_jacobian`].
    ///
    /// # Errors
    /// As those of [`Flow::jacobian`], and [`Error::Shape`] if there is no row.
    pub fn mean_abs_jacobian(&self, x: &[f32]) -> Result<Vec<f64>> {
        self.unconditional()?.mean_abs_jacobian(x)
    }
}

impl Conditional<'_> {
    /// Jacobian dz/dx of each row x given its observation, row-major (B, N, N). Of a `hint` it is that of both lanes,
    /// of [z_y, z_x] by [y, x], (B, C + N, C + N). x and y are in the user's units.
    ///
    /// Takes one backward pass over all rows for each column of z.
    ///
    /// # Errors
    /// [`Error::Shape`] if `x` does not fit the model and the observations.
    pub fn jacobian(&self, x: &[f32]) -> Result<Vec<f32>> {
        let rows = self.rows("x", self.flow.plan.spec.dim, x)?;
        let n = self.flow.plan.spec.latent_dim() as usize;
        let mut all = vec![0.0; rows * n * n];
        self.each_output(x, rows, |i, row, j, slope| all[(row * n + i) * n + j] = slope)?;
        Ok(all)
    }

    /// Mean of the absolute values of [`Conditional::jacobian`] over the rows, row-major (N, N), of a `hint` (C + N, C + N).
    /// Entries that the architecture keeps at zero are exactly 0. An entry is NaN if it is NaN for a row.
    ///
    /// # Errors
    /// As those of [`Conditional::jacobian`], and [`Error::Shape`] if there is no row.
    pub fn mean_abs_jacobian(&self, x: &[f32]) -> Result<Vec<f64>> {
        let rows = self.rows("x", self.flow.plan.spec.dim, x)?;
        if rows == 0 {
            return Err(Error::Shape { what: "rows of x".into(), expected: 1, got: 0 });
        }
        let n = self.flow.plan.spec.latent_dim() as usize;
        let mut mean = vec![0.0; n * n];
        self.each_output(x, rows, |i, _, j, slope| mean[i * n + j] += f64::from(slope.abs()))?;
        mean.iter_mut().for_each(|sum| *sum /= rows as f64);
        Ok(mean)
    }

    /// Hands out every dz_i/dx_j of every row as (i, row, j, slope); of a `hint` x_j counts through [y, x].
    fn each_output(&self, x: &[f32], rows: usize, mut take: impl FnMut(usize, usize, usize, f32)) -> Result<()> {
        let spec = &self.flow.plan.spec;
        let (n, dim) = (spec.latent_dim() as usize, spec.dim as usize);
        let conditions = if spec.kind == Kind::Hint { n - dim } else { 0 };
        let (mut d_z, no_log_det) = (vec![0.0; rows * n], vec![0.0; rows]);
        for i in 0..n {
            for (k, seed) in d_z.iter_mut().enumerate() {
                *seed = if k % n == i { 1.0 } else { 0.0 };
            }
            let gradients = self.vjp(x, &d_z, &no_log_det)?;
            for (values, first, columns) in [(&gradients.y, 0, conditions), (&gradients.x, conditions, dim)] {
                for (at, &slope) in values.iter().enumerate() {
                    take(i, at / columns, first + at % columns, slope);
                }
            }
        }
        Ok(())
    }
}

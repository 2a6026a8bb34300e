//! From the user's units to those of the networks, and back.

use std::borrow::Cow;

use super::Flow;
use crate::error::Result;

impl Flow {
    /// Rows of x in the units of the networks.
    pub(super) fn inner_x<'a>(&self, x: &'a [f32]) -> Result<Cow<'a, [f32]>> {
        let Some(s) = &self.standardize else { return Ok(x.into()) };
        let mut inner = x.to_vec();
        s.apply(&mut inner)?;
        Ok(inner.into())
    }

    /// Rows of y in the units of the networks.
    pub(super) fn inner_y<'a>(&self, y: &'a [f32]) -> Result<Cow<'a, [f32]>> {
        Ok(y.into())
    }

    /// Rows of x in the user's units.
    pub(super) fn undo(&self, mut x: Vec<f32>) -> Result<Vec<f32>> {
        if let Some(s) = &self.standardize {
            s.undo(&mut x)?;
        }
        Ok(x)
    }

    /// Rows of y in the user's units.
    pub(super) fn undo_y(&self, y: Vec<f32>) -> Result<Vec<f32>> {
        Ok(y)
    }

    /// Adds the log-determinant of [`Flow::inner_x`] to that of rows x.
    pub(super) fn add_jacobian_x(&self, _x: &[f32], log_det: &mut [f32]) {
        if let Some(s) = &self.standardize {
            let jacobian = -s.ln_scale_sum();
            log_det.iter_mut().for_each(|l| *l = (f64::from(*l) + jacobian) as f32);
        }
    }

    /// Adds the log-determinant of [`Flow::inner_y`] to that of rows y.
    pub(super) fn add_jacobian_y(&self, _y: &[f32], _log_det: &mut [f32]) {}

    /// Turns gradients with respect to rows in the units of the networks into those with respect to x.
    pub(super) fn outer_gradient_x(&self, _x: &[f32], d_x: &mut [f32]) {
        if let Some(s) = &self.standardize {
            let scales = s.scale.iter().cycle();
            d_x.iter_mut().zip(scales).for_each(|(d, scale)| *d = (f64::from(*d) / scale) as f32);
        }
    }

    /// The same for y.
    pub(super) fn outer_gradient_y(&self, _y: &[f32], _d_y: &mut [f32]) {}
}

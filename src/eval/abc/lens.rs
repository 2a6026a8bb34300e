//! The Lens data set as a pool of prior draws.

use std::ops::Range;

use super::Simulator;
use crate::data::lens::{self, Lens, Outline};
use crate::error::Result;

/// Rows of the Lens data set from `first_row` on as a pool. Take [`crate::data::POOL_FIRST_ROW`], or another seed, so that the
/// pool shares no row with the training data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LensPool {
    /// Seed of the data set.
    pub seed: u64,
    /// Points that the Fourier transform sees.
    pub outline: Outline,
    /// The row that is draw 0.
    pub first_row: u64,
}

impl Simulator for LensPool {
    fn name(&self) -> String {
        format!("lens-{}-seed{}-row{}", self.outline, self.seed, self.first_row)
    }

    fn dim(&self) -> usize {
        lens::DIM
    }

    fn observed_dim(&self) -> usize {
        lens::OBSERVATIONS.len()
    }

    fn observe(&self, draws: Range<u64>, y: &mut [f32]) -> Result<()> {
        lens::fill_observations(y, self.seed, self.outline, self.first_row.wrapping_add(draws.start))
    }

    fn fill(&self, draw: u64, x: &mut [f32]) -> Result<()> {
        let shape = Lens::of_row(self.seed, self.first_row.wrapping_add(draw));
        x.copy_from_slice(&shape.coefficients(self.outline));
        Ok(())
    }
}

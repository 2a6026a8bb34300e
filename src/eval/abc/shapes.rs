//! The pools of the paper's conditional experiments.

use std::ops::Range;

use super::Simulator;
use crate::data::Shapes;
use crate::error::Result;

/// Shapes and their observations as the data set has them, from a row on ([`crate::data::POOL_FIRST_ROW`] keeps clear
/// of training and test rows).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ShapePool {
    /// The family.
    pub shapes: Shapes,
    /// Seed of the data set.
    pub seed: u64,
    /// The row that is draw 0.
    pub first_row: u64,
}

impl Simulator for ShapePool {
    fn name(&self) -> String {
        let family = match self.shapes {
            Shapes::Lens(outline) => format!("lens-{outline}"),
            Shapes::Cross => "cross".into(),
        };
        format!("{family}-seed{}-row{}", self.seed, self.first_row)
    }

    fn dim(&self) -> usize {
        self.shapes.dim()
    }

    fn observed_dim(&self) -> usize {
        self.shapes.observations().len()
    }

    fn observe(&self, draws: Range<u64>, y: &mut [f32]) -> Result<()> {
        self.shapes.fill_observations(y, self.seed, self.first_row.wrapping_add(draws.start));
        Ok(())
    }

    fn fill(&self, draw: u64, x: &mut [f32]) -> Result<()> {
        self.shapes.fill_shape(x, self.seed, self.first_row.wrapping_add(draw));
        Ok(())
    }
}

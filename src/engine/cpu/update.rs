//! The update of the CPU engine: what the optimiser keeps, and one step of it over all trained weights.

use std::ops::Range;

use rayon::prelude::*;

use crate::engine::Skips;
use crate::error::Result;
use crate::kernel::adam;
use crate::kernel::memory::Floats;
use crate::optim::AdamStep;
use crate::plan::Layout;

use super::session::zeros;

/// Weights of one task of the parallel update. The order of the norm's sum depends on it.
const SLICE: usize = 1 << 13;

/// What the optimiser keeps from step to step.
pub(super) struct Optimizer {
    pub(super) first_moments: Floats,
    pub(super) second_moments: Floats,
    /// Moving averages of the weights; empty until they are written.
    pub(super) averages: Floats,
    /// Where the weights that decay lie.
    decayed: Vec<Range<usize>>,
    /// Squares of the gradient's norm in each slice of the weights.
    squares: Vec<f64>,
    /// What the gradient of this step is multiplied with; none: the update is left out.
    scale: Option<f32>,
    pub(super) skips: Skips,
}

impl Optimizer {
    pub(super) fn new(layout: &Layout) -> Result<Self> {
        Ok(Self {
            first_moments: zeros(layout.trained, "moments of the weights")?,
            second_moments: zeros(layout.trained, "moments of the weights")?,
            averages: Floats::default(),
            decayed: layout.matrices().collect(),
            squares: vec![0.0; layout.trained.div_ceil(SLICE)],
            scale: Some(1.0),
            skips: Skips::default(),
        })
    }

    /// Makes room for the averages.
    pub(super) fn average(&mut self) -> Result<()> {
        if self.averages.is_empty() {
            self.averages = zeros(self.first_moments.len(), "averages of the weights")?;
        }
        Ok(())
    }

    /// Bytes of all that it keeps.
    pub(super) fn bytes(&self) -> usize {
        let arrays = [&self.first_moments, &self.second_moments, &self.averages];
        arrays.map(|array| size_of_val(&**array)).iter().sum()
    }

    /// Decides on the next update by the norm of the gradient.
    pub(super) fn clip<'a>(&mut self, step: &AdamStep, partials: impl Iterator<Item = &'a [f32]> + Clone + Sync) {
        let trained = self.first_moments.len();
        self.squares.par_iter_mut().enumerate().for_each(|(i, square)| {
            let range = i * SLICE..trained.min((i + 1) * SLICE);
            *square = adam::square(range.len(), partials.clone().map(|p| &p[range.clone()]));
        });
        self.scale = adam::clip(step.adam.clip_norm, self.squares.iter().sum());
        let Skips { total, in_a_row } = &mut self.skips;
        match self.scale {
            Some(_) => *in_a_row = 0,
            None => (*total, *in_a_row) = (total.saturating_add(1), in_a_row.saturating_add(1)),
        }
    }

    /// Updates the trained weights.
    pub(super) fn update<'a>(
        &mut self,
        step: &AdamStep,
        weights: &mut [f32],
        partials: impl Iterator<Item = &'a [f32]> + Clone + Sync,
    ) {
        // The next step may not clip.
        let Some(scale) = self.scale.replace(1.0) else { return };
        let decayed = &self.decayed;
        let weights = weights.par_chunks_mut(SLICE);
        let first = self.first_moments.par_chunks_mut(SLICE);
        let second = self.second_moments.par_chunks_mut(SLICE);
        let one = |i: usize, weights: &mut [f32], first: &mut [f32], second: &mut [f32]| {
            let range = i * SLICE..i * SLICE + weights.len();
            if step.shrink > 0.0 {
                for part in within(decayed, &range) {
                    weights[part].iter_mut().for_each(|p| *p -= step.shrink * *p);
                }
            }
            let partials = partials.clone().map(|p| &p[range.clone()]);
            adam::update(step, scale, adam::Slice { weights, first, second }, partials);
        };
        if step.follow > 0.0 {
            let averages = self.averages.par_chunks_mut(SLICE);
            weights.zip(first.zip(second)).zip(averages).enumerate().for_each(
                |(i, ((weights, (first, second)), averages))| {
                    one(i, weights, first, second);
                    adam::follow(step.follow, averages, weights);
                },
            );
        } else {
            weights.zip(first.zip(second)).enumerate().for_each(|(i, (weights, (first, second)))| {
                one(i, weights, first, second);
            });
        }
    }
}

/// The parts of sorted ranges that lie in one, counted from its beginning.
fn within<'a>(sorted: &'a [Range<usize>], range: &'a Range<usize>) -> impl Iterator<Item = Range<usize>> + use<'a> {
    let first = sorted.partition_point(|r| r.end <= range.start);
    sorted[first..]
        .iter()
        .take_while(|r| r.start < range.end)
        .map(|r| r.start.max(range.start) - range.start..r.end.min(range.end) - range.start)
}

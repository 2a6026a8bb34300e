//! Clipping by the norm of the gradient, and the array that it shares with the averages of the weights.
//!
//! One array for both, since the update binds seven and a device need not allow more than eight: the factor of the
//! gradient, two counters of updates left out, one float unused; sums of squares; the averages.

use super::{Extent, Head, Kernel, Recorder, launch};
use crate::engine::Skips;
use crate::error::Result;

/// Where the counters of updates left out lie, all and in a row.
pub(in crate::engine::gpu) const SKIPPED: u64 = 1;
/// Most sums of squares: what one workgroup adds up.
pub(in crate::engine::gpu) const MOST_SUMS: u32 = 256;
/// Where the averages begin.
pub(in crate::engine::gpu) const AVERAGES: u64 = 4 + MOST_SUMS as u64;

/// The counters as the device keeps them: exact up to 2^24.
pub(in crate::engine::gpu) fn to_floats(skips: Skips) -> [f32; 2] {
    [skips.total as f32, skips.in_a_row as f32]
}

/// The counters of the device.
pub(in crate::engine::gpu) fn from_floats(floats: &[f32]) -> Skips {
    let count = |at: usize| floats.get(at).map_or(0, |&count| count as u32);
    Skips { total: count(0), in_a_row: count(1) }
}

impl Recorder<'_> {
    /// The factor of the gradient.
    pub(super) fn clip(&mut self) -> Result<()> {
        let trained = self.plan.layout.trained as u32;
        let sums = trained.div_ceil(256).clamp(1, MOST_SUMS.min(self.bounds.workgroups));
        let (slices, length) = (self.fit.slices as u32, self.plan.layout.gradient_len() as u32);
        let launch = launch::GradientNorm { trained, slices, length, sums };
        let iterations = u64::from(trained.div_ceil(sums * 256)) * u64::from(1 + slices) + 8;
        let one = Extent::Fixed(1);
        self.push(Kernel::GradientNorm, Head::None, [Extent::Fixed(sums), one], iterations, launch)?;
        let launch = launch::Clip { update: bytemuck::Zeroable::zeroed(), sums };
        self.push(Kernel::Clip, Head::Update, [one, one], 8, launch)
    }
}

//! Clipping by the norm of the gradient; see [`crate::engine::gpu::kernels::extras`].

use super::{Extent, Head, Kernel, Recorder, launch};
use crate::engine::gpu::kernels::extras::MOST_SUMS;
use crate::error::Result;

impl Recorder<'_> {
    /// The factor of the gradient.
    pub(super) fn clip(&mut self) -> Result<()> {
        let trained = self.plan.layout.trained as u32;
        let sums = trained.div_ceil(256).clamp(1, MOST_SUMS.min(self.bounds.workgroups));
        let (slices, length) = (self.fit.slices as u32, self.plan.layout.gradient_len() as u32);
        let launch = launch::GradientNorm { trained, slices, length, sums };
        let one = Extent::Fixed(1);
        self.push(Kernel::GradientNorm, Head::None, [Extent::Fixed(sums), one], launch, ())?;
        let launch = launch::Clip { update: bytemuck::Zeroable::zeroed(), sums };
        self.push(Kernel::Clip, Head::Update, [one, one], launch, ())
    }
}

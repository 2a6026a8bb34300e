//! What tests set and see of a session.

use super::GpuSession;
use crate::engine::ProgramId;
use crate::engine::gpu::compile::bounds::KernelVariants;
use crate::engine::gpu::device::timer::Timer;
use crate::engine::gpu::kernels::shader::Kernel;

impl GpuSession {
    /// Kernels of a program, in order.
    pub(crate) fn kernels(&self, program: ProgramId) -> Vec<Kernel> {
        self.programs[program.0].recorded.all().map(|dispatch| dispatch.variant.kernel).collect()
    }

    /// Limits the samples of a tile of programs compiled from now on.
    pub(crate) fn limit_tiles(&mut self, samples: usize) {
        self.most_samples = samples;
    }

    /// Cuts the reflections of programs compiled from now on into dispatches of that many multiply-adds.
    pub(crate) fn cut_reflections(&mut self, work: u64) {
        self.reflection_work = work;
    }

    /// Refuses programs compiled from now on whose loops have more iterations.
    pub(crate) fn limit_iterations(&mut self, iterations: u64) {
        self.iterations = Some(iterations);
    }

    /// Whether neighbouring operations of programs compiled from now on may share a dispatch.
    pub(crate) fn fuse(&mut self, fuse: bool) {
        self.fuse = fuse;
    }

    /// Takes these variants in programs compiled from now on.
    pub(crate) fn choose(&mut self, variants: KernelVariants) {
        self.variants = variants;
    }

    /// Streams data sets given from now on, whatever their size.
    pub(crate) fn stream_data(&mut self, streamed: bool) {
        self.most_data = if streamed { 0 } else { u64::MAX };
    }

    /// Gives every timed dispatch a pass, as on devices whose timestamps are at the ends of passes.
    pub(crate) fn time_by_pass(&mut self) {
        self.arrays.commands.timer.iter_mut().for_each(Timer::by_pass);
    }
}

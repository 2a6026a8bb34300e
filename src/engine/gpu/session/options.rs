//! What a session is made with.

use std::sync::Arc;

use super::tuner::Tuner;
use crate::engine::gpu::compile::bounds::KernelVariants;

/// Settings of a session. No result depends on them; tests set what models of their size would never reach.
#[derive(Clone)]
pub(crate) struct Options {
    /// Measures which variants of kernels are the fastest; none: `variants` are taken.
    pub(crate) tuner: Option<Arc<Tuner>>,
    /// Variants of programs that are not measured.
    pub(crate) variants: KernelVariants,
    /// Whether neighbouring operations share a dispatch if there is a kernel for them.
    pub(crate) fuse: bool,
    /// Samples of the largest tile.
    pub(crate) most_samples: usize,
    /// Bytes of the largest data set that stays on the device.
    pub(crate) most_data: u64,
    /// Multiply-adds of the largest dispatch over reflections; none: as the device bears.
    pub(crate) reflection_work: Option<u64>,
    /// Loop iterations that an invocation may have; none: as the device bears.
    pub(crate) iterations: Option<u64>,
    /// Whether every dispatch that is timed has a pass of its own, as on devices whose timestamps are at the ends of
    /// passes.
    pub(crate) time_by_pass: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            tuner: None,
            variants: KernelVariants::default(),
            fuse: true,
            most_samples: usize::MAX,
            most_data: u64::MAX,
            reflection_work: None,
            iterations: None,
            time_by_pass: false,
        }
    }
}

//! What a program is recorded for: the bounds of the device, and which variants of kernels to use.

/// Bounds of the device a program is recorded for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// Workgroups along one dimension of a grid.
    pub(crate) workgroups: u32,
    /// Loop iterations of one invocation, all loops added up. Beyond it Mesa's llvmpipe leaves loops early without a
    /// word.
    pub(crate) iterations: Option<u64>,
    /// Multiply-adds after which a dispatch over reflections is cut in two, so that none blocks the device for long.
    pub(crate) reflection_work: u64,
    /// Which variants to use.
    pub(crate) variants: KernelVariants,
    /// Whether neighbouring operations share a dispatch if there is a kernel for them.
    pub(crate) fuse: bool,
}

/// Which of the variants that a device allows are used. No result depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub(crate) struct KernelVariants {
    /// Number of the shape of packs in `StageTables::packs`, or of the last one; none: activations go through the arena,
    /// as they do if there is no shape.
    pub(crate) forward: Option<usize>,
    /// The same for the backward pass.
    pub(crate) backward: Option<usize>,
    /// Whether hidden activations of narrow nodes are computed again in the backward pass; none: where they would take
    /// much memory.
    pub(crate) recompute: Option<bool>,
}

impl Default for KernelVariants {
    fn default() -> Self {
        Self { forward: Some(0), backward: Some(0), recompute: None }
    }
}

/// Iterations that llvmpipe allows (65,535), with some room for what the estimates leave out.
pub(crate) const SOFTWARE_ITERATIONS: u64 = 60_000;

//! What a device lets a workgroup have.

/// Threads that run in step on most devices; workgroups have multiples of them.
pub(crate) const WARP: u32 = 32;

/// What a device lets a workgroup have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workgroup {
    /// Bytes of memory.
    pub(crate) bytes: u32,
    /// Threads.
    pub(crate) threads: u32,
}

impl Workgroup {
    /// The most that is taken even where there is more: a larger one would leave a multiprocessor with too few
    /// workgroups to hide waiting.
    pub(crate) const MOST: Self = Self { bytes: 49_152, threads: 512 };
}

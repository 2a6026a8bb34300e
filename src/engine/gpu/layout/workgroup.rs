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

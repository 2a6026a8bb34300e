//! What a device lets a workgroup have.

/// What a device lets a workgroup have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workgroup {
    /// Bytes of memory.
    pub(crate) bytes: u32,
    /// Threads.
    pub(crate) threads: u32,
    /// Threads that run in step: 32 on most devices, 64 on AMD's. Those that fill the last such group of a workgroup come
    /// for free.
    pub(crate) step: u32,
}

impl Workgroup {
    /// The most that is taken even where there is more: a larger one would leave a multiprocessor with too few
    /// workgroups to hide waiting.
    pub(crate) const MOST: Self = Self { bytes: 49_152, threads: 512, step: 64 };
    /// Bytes and threads of a workgroup of which multiprocessors with 64 KiB for 4 x 64 lanes have two at a time (AMD's
    /// GCN and CDNA), and those with 128 KiB four (RDNA): two and four waves for each of the units that compute.
    pub(crate) const HALF: Self = Self { bytes: 32_768, threads: 256, ..Self::MOST };

    /// The step of a device with these largest groups of threads in step.
    pub(crate) fn step(largest: u32) -> u32 {
        if largest >= 64 { 64 } else { 32 }
    }
}

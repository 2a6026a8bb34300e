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
    /// The most that is taken even if there is more: a larger one would leave a multiprocessor with too few
    /// workgroups to hide waiting.
    pub(crate) const MOST: Self = Self { bytes: 49_152, threads: 512, step: 64 };
    /// Bytes and threads of a workgroup of which multiprocessors with 64 KiB for 4 x 64 lanes have two at a time (AMD's
    /// GCN and CDNA), and those with 128 KiB four (RDNA): two and four waves for each of the units that compute.
    pub(crate) const HALF: Self = Self { bytes: 32_768, threads: 256, ..Self::MOST };

    /// The step of a device whose groups of threads in step have between `least` and `most` of them. Metal says 4 to 64
    /// of every device, and Apple's have 32.
    pub(crate) fn step(least: u32, most: u32) -> u32 {
        if least >= 32 && most >= 64 { 64 } else { 32 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_of_known_devices() {
        // NVIDIA, RDNA, GCN, Intel, Metal, llvmpipe.
        let known = [(32, 32, 32), (32, 64, 64), (64, 64, 64), (8, 32, 32), (4, 64, 32), (8, 8, 32)];
        for (least, most, step) in known {
            assert_eq!(Workgroup::step(least, most), step, "{least} to {most}");
        }
    }
}

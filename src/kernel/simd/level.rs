//! Which instruction set kernels run with.

use std::sync::OnceLock;

use crate::error::{Error, Result};

/// An instruction set that kernels are compiled for, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Level {
    /// What the compiler may assume: SSE2 on x86-64, NEON on AArch64.
    Portable,
    /// 256-bit vectors with fused multiply-add.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// 512-bit vectors, 32 registers.
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

/// Whether the processor has 256-bit vectors and fused multiply-add. A virtual machine may hide any of the features.
#[cfg(target_arch = "x86_64")]
fn has_avx2() -> bool {
    std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
}

/// Asks for a lower instruction set than the best of the processor: so that results of another machine can be had bit
/// for bit, or to see what wider vectors are worth.
const VARIABLE: &str = "HINTFLOW_SIMD";

static OF_PROCESS: OnceLock<std::result::Result<Level, String>> = OnceLock::new();

impl Level {
    /// All of them, worst first.
    const ALL: &'static [Self] = &[
        Self::Portable,
        #[cfg(target_arch = "x86_64")]
        Self::Avx2,
        #[cfg(target_arch = "x86_64")]
        Self::Avx512,
    ];

    /// Those that this processor has, worst first.
    pub(crate) fn available() -> impl DoubleEndedIterator<Item = Self> {
        Self::ALL.iter().copied().filter(|level| match level {
            Self::Portable => true,
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => has_avx2(),
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => has_avx2() && std::is_x86_feature_detected!("avx512f"),
        })
    }

    /// The level of this process, found once: the best available, or what `HINTFLOW_SIMD` asks for.
    ///
    /// # Errors
    /// [`Error::Config`] if that is not available.
    pub(crate) fn of_process() -> Result<Self> {
        match OF_PROCESS.get_or_init(Self::find) {
            Ok(level) => Ok(*level),
            Err(what) => Err(Error::config(VARIABLE, what)),
        }
    }

    fn find() -> std::result::Result<Self, String> {
        let wanted = std::env::var_os(VARIABLE).unwrap_or_default().to_string_lossy().trim().to_lowercase();
        if wanted.is_empty() {
            return Ok(Self::available().next_back().unwrap_or(Self::Portable));
        }
        Self::available().find(|level| level.key() == wanted).ok_or_else(|| {
            let possible: Vec<&str> = Self::available().map(Self::key).collect();
            format!("asks for `{wanted}`; this processor can run {}", possible.join(", "))
        })
    }

    /// The level of this thread. Engines check [`Level::of_process`] when they are made.
    #[inline]
    pub(crate) fn current() -> Self {
        #[cfg(test)]
        if let Some(level) = tests::FORCED.get() {
            return level;
        }
        match OF_PROCESS.get_or_init(Self::find) {
            Ok(level) => *level,
            Err(_) => Self::Portable,
        }
    }

    /// Name in the environment.
    fn key(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "avx512",
        }
    }

    /// Name for people and run folders.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Portable if cfg!(target_arch = "aarch64") => "NEON",
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => "AVX-512",
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local! {
        pub(super) static FORCED: Cell<Option<Level>> = const { Cell::new(None) };
    }

    impl Level {
        /// Runs `f` with this level on this thread.
        pub(crate) fn force(self, f: impl FnOnce()) {
            FORCED.set(Some(self));
            f();
            FORCED.set(None);
        }
    }
}

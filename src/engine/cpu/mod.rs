//! The native CPU engine: samples are cut into tiles that stay in cache, and tiles are shared out over threads.
//!
//! How a batch is cut depends on the model and the batch size, never on the number of threads, and partial gradients
//! are grouped by row: the same bits come out of 1 thread and of 64.

mod arrays;
mod compiled;
mod execute;
mod mixing;
mod phases;
mod profile;
mod session;
mod tiling;
mod trim;
mod update;

use std::sync::Arc;

use super::{Backend, DeviceInfo, Engine, Session};
use crate::error::{Error, Result};
use crate::kernel::simd::Level;
use crate::plan::Plan;

/// Most threads. Far more than cores are of no use, and the system may not start them.
pub(crate) const MOST_THREADS: usize = 1024;

impl Engine {
    /// The native CPU engine with one thread per core.
    ///
    /// # Errors
    /// [`Error::Device`] if threads cannot be started.
    pub fn cpu() -> Result<Self> {
        Self::cpu_with_threads(0)
    }

    /// The native CPU engine with a number of threads; 0 means one per core.
    ///
    /// # Errors
    /// [`Error::Argument`] if they are more than 1024, [`Error::Device`] if they cannot be started, [`Error::Config`] if `HINTFLOW_SIMD` asks for an
    /// instruction set that the processor has not.
    pub fn cpu_with_threads(threads: usize) -> Result<Self> {
        if threads > MOST_THREADS {
            let what = format!("must be at most {MOST_THREADS}, is {threads}; 0 takes one per core");
            return Err(Error::argument("threads", what));
        }
        let level = Level::of_process()?;
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("hintflow-{i}"))
            .start_handler(|_| flush_subnormals())
            .build()
            .map_err(|e| Error::Device { what: format!("cannot start the threads of the CPU engine: {e}") })?;
        Ok(Self::of(Arc::new(Cpu { pool: Arc::new(pool), level })))
    }
}

/// Samples of a tile of a training step on a batch.
pub(crate) fn tile_rows(plan: &Plan, batch: usize) -> usize {
    tiling::Tiling::step(plan, batch).capacity()
}

/// The device behind [`Engine::cpu`].
struct Cpu {
    pool: Arc<rayon::ThreadPool>,
    level: Level,
}

impl Backend for Cpu {
    fn info(&self) -> DeviceInfo {
        DeviceInfo {
            engine: "cpu",
            name: match self.pool.current_num_threads() {
                1 => format!("native CPU engine, 1 thread, {}", self.level.name()),
                threads => format!("native CPU engine, {threads} threads, {}", self.level.name()),
            },
            backend: "native".into(),
            driver: format!("hintflow {}", env!("CARGO_PKG_VERSION")),
            // Not the number of threads: the bits are the same for any.
            arithmetic: self.level.name().into(),
            kind: "native",
        }
    }

    fn load(&self, plan: Arc<Plan>) -> Result<Box<dyn Session>> {
        Ok(Box::new(session::CpuSession::new(plan, self.pool.clone())?))
    }
}

/// Makes this thread treat subnormal numbers as zero. Dying ReLUs and decaying moments produce them, and arithmetic on
/// them is up to 200 times slower. Only threads of our own pool are changed.
fn flush_subnormals() {
    #[cfg(target_arch = "x86_64")]
    {
        const FLUSH_TO_ZERO: u32 = 1 << 15;
        const DENORMALS_ARE_ZERO: u32 = 1 << 6;
        let mut control: u32 = 0;
        // SAFETY: reads and writes the control register of the SSE unit through a valid stack slot; both bits only
        // change how subnormal numbers are treated.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut control, options(nostack));
            control |= FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const control, options(nostack));
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        const FLUSH_TO_ZERO: u64 = 1 << 24;
        let mut control: u64;
        // SAFETY: sets the flush-to-zero bit of the floating-point control register, which only changes how subnormal
        // numbers are treated.
        unsafe {
            std::arch::asm!("mrs {}, fpcr", out(reg) control, options(nomem, nostack));
            control |= FLUSH_TO_ZERO;
            std::arch::asm!("msr fpcr, {}", in(reg) control, options(nomem, nostack));
        }
    }
}

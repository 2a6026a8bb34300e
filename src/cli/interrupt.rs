//! Ctrl-C: the first asks a training to stop after its step, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

/// Set by the first Ctrl-C.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Exit code of a process that Ctrl-C stopped.
pub(super) const EXIT_CODE: u8 = 130;

/// Begins to listen for Ctrl-C, and for the system's request to end.
pub(super) fn listen() -> anyhow::Result<()> {
    ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(EXIT_CODE.into());
        }
        tracing::info!("stopping after this step; Ctrl-C again stops at once, without saving");
    })?;
    Ok(())
}

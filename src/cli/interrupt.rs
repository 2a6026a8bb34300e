//! Ctrl-C: the first asks a training to stop after its step, the second ends the process. So do the system's request to
//! end, and a terminal that is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Set by the first Ctrl-C.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Exit code of a process that Ctrl-C stopped.
pub(super) const EXIT_CODE: u8 = 130;

/// Requests so close together are one: a shell and its terminal may both tell that they go.
const TOGETHER: Duration = Duration::from_millis(300);

/// Begins to listen for Ctrl-C, for the system's request to end, and for the end of the terminal.
pub(super) fn listen() -> anyhow::Result<()> {
    let first = Mutex::new(None);
    ctrlc::set_handler(move || {
        // The handler runs in one thread, and nothing in it panics.
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        match *first {
            None => {
                *first = Some(Instant::now());
                STOP.store(true, Ordering::Relaxed);
                tracing::info!(
                    "stopping after this step, or this part of a measurement; Ctrl-C again stops at once, without saving"
                );
            }
            Some(then) if then.elapsed() < TOGETHER => {}
            Some(_) => std::process::exit(EXIT_CODE.into()),
        }
    })?;
    Ok(())
}

//! Ctrl-C: of a training the first asks to stop after its step, the second ends the process; of other commands the first
//! does. So do the system's request to end, and a terminal that is closed.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::atomic::remove_unfinished;

/// Set by the first Ctrl-C.
pub(super) static STOP: AtomicBool = AtomicBool::new(false);

/// Exit code of a process that Ctrl-C stopped.
pub(super) const EXIT_CODE: u8 = 130;

/// Requests so close together are one: a shell and its terminal may both tell that they go.
const TOGETHER: Duration = Duration::from_millis(300);

/// Whether the first request asks; otherwise it ends the process.
static ASKS: AtomicBool = AtomicBool::new(false);

/// Begins to listen for Ctrl-C, for the system's request to end, and for the end of the terminal; for the last unless
/// whoever began this process has it ignored, as `nohup` does. Until [`listen`] is called, each of them ends the process,
/// which leaves no half-written file behind.
pub(super) fn begin() {
    let first = Mutex::new(None);
    let ignored = hangup::is_ignored();
    let set = ctrlc::set_handler(move || {
        // The handler runs in one thread, and nothing in it panics.
        let mut first = first.lock().unwrap_or_else(PoisonError::into_inner);
        match *first {
            None if ASKS.load(Ordering::Relaxed) => {
                *first = Some(Instant::now());
                STOP.store(true, Ordering::Relaxed);
                tracing::info!(
                    "stopping after this step, or this part of a measurement; Ctrl-C again stops at once, without saving"
                );
            }
            Some(then) if then.elapsed() < TOGETHER => {}
            _ => end(),
        }
    });
    if let Err(error) = set {
        // The system's own way to end a process is left.
        tracing::debug!("cannot listen for signals: {error}");
    }
    if ignored {
        hangup::ignore();
    }
}

/// From now on the first request asks, see [`STOP`].
pub(super) fn listen() {
    ASKS.store(true, Ordering::Relaxed);
}

/// From now on the first request ends the process, as there is nothing to save.
pub(super) fn nothing_to_save() {
    ASKS.store(false, Ordering::Relaxed);
}

fn end() -> ! {
    remove_unfinished();
    std::process::exit(EXIT_CODE.into())
}

/// The signal of a terminal that is closed.
#[cfg(unix)]
mod hangup {
    /// Whether it is ignored.
    pub(super) fn is_ignored() -> bool {
        // SAFETY: a struct of numbers and a pointer that may be null, as which all bytes zero are valid.
        let mut now: libc::sigaction = unsafe { std::mem::zeroed() };
        // SAFETY: nothing is set, and what is set now is written to a struct of the right type.
        let known = unsafe { libc::sigaction(libc::SIGHUP, std::ptr::null(), &mut now) } == 0;
        known && now.sa_sigaction == libc::SIG_IGN
    }

    /// Ignores it again.
    pub(super) fn ignore() {
        // SAFETY: to ignore a signal takes no handler.
        unsafe { libc::signal(libc::SIGHUP, libc::SIG_IGN) };
    }
}

#[cfg(not(unix))]
mod hangup {
    pub(super) fn is_ignored() -> bool {
        false
    }

    pub(super) fn ignore() {}
}

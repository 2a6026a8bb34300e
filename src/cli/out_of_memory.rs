//! The end of a process that has no memory left: a message and the exit code of its kind, instead of an abort.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::atomic::try_remove_unfinished;
use crate::memory;

/// The exit code: that of [`crate::Error::OutOfMemory`].
const EXIT_CODE: i32 = 4;

/// The system's allocator, which ends the process where memory is refused that nobody is ready to do without.
pub struct Allocator;

impl Allocator {
    #[inline]
    fn check(at: *mut u8, bytes: usize) -> *mut u8 {
        if at.is_null() && !memory::may_be_refused() {
            end(bytes);
        }
        at
    }
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Allocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::check(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::check(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, bytes: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        Self::check(unsafe { System.realloc(at, layout, bytes) }, bytes)
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

/// Says what happened and ends the process. Takes no memory.
#[cold]
fn end(bytes: usize) -> ! {
    static ENDS: AtomicBool = AtomicBool::new(false);
    thread_local! {
        static IS_THIS: Cell<bool> = const { Cell::new(false) };
    }
    let again = IS_THIS.replace(true);
    if !again && ENDS.swap(true, Ordering::Relaxed) {
        // Another thread has been refused memory first, and ends the process when it has said so.
        loop {
            std::thread::sleep(Duration::from_secs(1));
        }
    }
    if !again {
        let mut text = [0; 240];
        let mut rest = &mut text[..];
        // What does not fit is left out.
        let _ = write!(
            rest,
            "\nerror: out of memory: {bytes} more bytes were refused; take fewer rows or a smaller batch, or raise the \
             limit (`ulimit -v`), or take a machine with more memory. Files are as they were last saved\n"
        );
        let left = rest.len();
        let _ = std::io::stderr().write_all(&text[..text.len() - left]);
        try_remove_unfinished();
    }
    leave()
}

/// Ends the process without running anything else, which might take memory.
#[cfg(unix)]
fn leave() -> ! {
    // SAFETY: it takes no pointers, and nothing has to be left in order.
    unsafe { libc::_exit(EXIT_CODE) }
}

#[cfg(not(unix))]
fn leave() -> ! {
    std::process::exit(EXIT_CODE)
}

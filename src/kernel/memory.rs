//! Memory of the large arenas: zeros in pages of two megabytes, where the system lends them, and lines asked for ahead
//! of their use.
//!
//! A tile's features lie more than a kilobyte apart, so every few of them begin another page of four kilobytes, and an
//! arena of 20 MB has more of these than a processor keeps addresses of. In turns on two cores, step of cross4 from 648
//! to 614 ms, of cross4d0 from 530 to 485 ms; small models, whose arenas are smaller than one large page, are as
//! before.

use std::ops::{Deref, DerefMut};

use crate::memory::ask;

/// A large page, and the alignment of an arena that is no smaller.
const LARGE_PAGE: usize = 1 << 21;

/// A cache line: every row of a tile begins with one, so that no vector load crosses a line.
const LINE: usize = 64;

/// Floats that begin with a cache line.
#[derive(Default)]
pub(crate) struct Floats {
    /// What was allocated: up to an alignment more than asked for.
    memory: Vec<f32>,
    first: usize,
    len: usize,
}

impl Floats {
    /// Zeros; nothing if the memory cannot be had. The system clears pages at their first use, so that whole pages
    /// that nobody touches cost no memory.
    pub(crate) fn zeroed(len: usize) -> Option<Self> {
        let bytes = len.checked_mul(size_of::<f32>())?;
        let large = bytes >= LARGE_PAGE;
        let alignment = if large { LARGE_PAGE } else { LINE };
        // Whole pages, so that the end lies in a large one, too, and an alignment more, since allocators begin
        // anywhere.
        let room = bytes.checked_next_multiple_of(alignment)?;
        let room_and_more = room.checked_add(alignment)? / size_of::<f32>();
        let memory = ask(|| bytemuck::allocation::try_zeroed_vec::<f32>(room_and_more)).ok()?;
        let first = memory.as_ptr().align_offset(alignment);
        if large {
            ask_for_large_pages(&memory[first..first + room / size_of::<f32>()]);
        }
        Some(Self { memory, first, len })
    }
}

/// Asks the system to keep some memory in large pages. Where it does not, nothing changes but the time.
#[cfg(target_os = "linux")]
fn ask_for_large_pages(memory: &[f32]) {
    // SAFETY: whole pages of our own allocation; their contents stay as they are.
    unsafe { libc::madvise(memory.as_ptr().cast_mut().cast(), size_of_val(memory), libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn ask_for_large_pages(_: &[f32]) {}

impl Deref for Floats {
    type Target = [f32];

    fn deref(&self) -> &[f32] {
        &self.memory[self.first..self.first + self.len]
    }
}

impl DerefMut for Floats {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.memory[self.first..self.first + self.len]
    }
}

/// Asks for the cache line of `floats[at]`, which is needed soon. Nothing happens if there is none.
#[inline(always)]
pub(crate) fn fetch(floats: &[f32], at: usize) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: part of the base instruction set, and a hint: it never faults, whatever the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(floats.as_ptr().wrapping_add(at).cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (floats, at);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_of_any_length_begin_with_a_line_and_large_ones_with_a_page() {
        for len in [0, 1, 17, LARGE_PAGE / 4 - 1, LARGE_PAGE / 4, LARGE_PAGE / 4 + 1, 3 * LARGE_PAGE / 4 + 5] {
            let mut floats = Floats::zeroed(len).expect("memory");
            assert_eq!(floats.len(), len);
            let alignment = if len >= LARGE_PAGE / 4 { LARGE_PAGE } else { LINE };
            assert_eq!(floats.as_ptr().align_offset(alignment), 0, "{len} floats");
            assert!(floats.iter().all(|&value| value == 0.0));
            floats.fill(1.0);
        }
        assert!(Floats::default().is_empty());
    }

    #[test]
    fn more_than_there_is_is_refused() {
        assert!(Floats::zeroed(usize::MAX / 2).is_none());
        assert!(Floats::zeroed(usize::MAX / 8).is_none());
        assert!(Floats::zeroed(usize::MAX / LARGE_PAGE * (LARGE_PAGE / 4)).is_none());
    }
}

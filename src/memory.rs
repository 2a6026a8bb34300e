//! Memory that grows with what a user asks for is asked for first, so that too little of it is an error with a name.
//!
//! All else (a list of columns, a message) is small, and its failure the allocator's: embedding programs decide what then
//! happens, and the `hintflow` program ends with a message (`cli::out_of_memory`).

use std::cell::Cell;

use crate::error::{Error, Result};

thread_local! {
    /// See [`may_be_refused`].
    static ASKS: Cell<bool> = const { Cell::new(false) };
}

/// Takes memory with somebody there who sees to its being refused.
pub(crate) fn ask<R>(take: impl FnOnce() -> R) -> R {
    let before = ASKS.replace(true);
    let taken = take();
    ASKS.set(before);
    taken
}

/// Whether the memory that this thread takes just now may be refused.
#[cfg(feature = "cli")]
pub(crate) fn may_be_refused() -> bool {
    // A thread that ends has no such variable any more, and asks for nothing.
    ASKS.try_with(Cell::get).unwrap_or(false)
}

/// An empty vector with room for `count` values.
///
/// # Errors
/// [`Error::OutOfMemory`] with `what` does not fit.
pub(crate) fn reserved<T>(count: usize, what: impl FnOnce() -> String) -> Result<Vec<T>> {
    let mut values = Vec::new();
    reserve(&mut values, count, what)?;
    Ok(values)
}

/// Room for `more` values behind those of a vector, which may double it, so that adding values one by one costs little.
///
/// # Errors
/// Those of [`reserved`].
pub(crate) fn reserve<T>(values: &mut Vec<T>, more: usize, what: impl FnOnce() -> String) -> Result<()> {
    // Twice as much is too much sooner than what is needed.
    let taken = ask(|| values.try_reserve(more).or_else(|_| values.try_reserve_exact(more)));
    taken.map_err(|_| {
        let needed = values.len().checked_add(more).and_then(|count| count.checked_mul(size_of::<T>()));
        let needed = needed.map(|bytes| bytes as u64);
        Error::OutOfMemory { what: what() + " do not fit", needed, available: None }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error_that_says_what_and_how_much() {
        let what = || "all rows".to_owned();
        let error = reserved::<f32>(usize::MAX / 8, what).unwrap_err();
        assert!(
            matches!(&error, Error::OutOfMemory { needed: Some(bytes), .. } if *bytes == usize::MAX as u64 / 8 * 4)
        );
        assert!(error.to_string().contains("all rows do not fit"), "{error}");
        assert!(matches!(reserved::<f32>(usize::MAX, what), Err(Error::OutOfMemory { needed: None, .. })));
        let asked = std::panic::catch_unwind(|| ask(may_be_refused)).unwrap();
        assert_eq!((asked, may_be_refused()), (true, false));
    }
}

//! Arrays of a session.

use crate::error::{Error, Result};
use crate::kernel::memory::Floats;

/// Zeros, or an error if memory does not suffice.
pub(super) fn zeros(len: usize, what: &str) -> Result<Floats> {
    Floats::zeroed(len).ok_or_else(|| {
        let needed = Some((len * size_of::<f32>()) as u64);
        Error::OutOfMemory { what: format!("no room for {what}"), needed, available: None }
    })
}

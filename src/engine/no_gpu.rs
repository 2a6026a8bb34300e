//! What there is of GPUs in a build without the feature `gpu`: none.

use super::{AdapterInfo, Engine, Work};
use crate::error::{Error, Result};
use crate::program::Program;

/// Every adapter of this machine that this build can use: none.
pub fn adapters() -> Vec<AdapterInfo> {
    Vec::new()
}

/// Work of a program on a GPU: this build cannot count it.
pub(crate) fn work(_program: &Program, _rows: usize, _step: u32) -> Result<(Vec<Work>, usize)> {
    Err(no_gpu())
}

fn no_gpu() -> Error {
    Error::Device {
        what: "this hintflow was built without its feature `gpu`, so it has the native CPU engine alone".into(),
    }
}

impl Engine {
    /// The native CPU engine: this build has no other.
    ///
    /// # Errors
    /// Those of [`Engine::cpu`].
    pub fn auto() -> Result<Self> {
        Self::cpu()
    }

    /// The best GPU of this machine, if it has one: this build knows of none.
    ///
    /// # Errors
    /// None in this build.
    pub fn real_gpu() -> Result<Option<Self>> {
        Ok(None)
    }

    /// The best GPU of this machine.
    ///
    /// # Errors
    /// [`Error::Device`]: this build has no GPU engine.
    pub fn gpu() -> Result<Self> {
        Err(no_gpu())
    }

    /// An adapter by its number or a part of its name.
    ///
    /// # Errors
    /// [`Error::Device`]: this build has no GPU engine.
    pub fn named(_selector: &str) -> Result<Self> {
        Err(no_gpu())
    }
}

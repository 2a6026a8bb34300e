//! Which variants of kernels are the fastest on a device: measured once for a model and a batch, then remembered in the
//! user's cache folder. No result depends on it, so a cache that is lost or wrong costs time and nothing else.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::engine::gpu::compile::bounds::KernelVariants;
use crate::error::Result;

/// What the cache file holds.
#[derive(Default, Serialize, Deserialize)]
struct Cache {
    /// By device, version, model and batch.
    fastest: BTreeMap<String, KernelVariants>,
}

/// Measures and remembers.
pub(crate) struct Tuner {
    /// Whether it measures where it does not pay, too; tests do.
    pub(crate) always: bool,
    file: Option<PathBuf>,
    known: Mutex<BTreeMap<String, KernelVariants>>,
}

impl Tuner {
    /// One that remembers in the user's cache folder, if there is such a folder.
    pub(crate) fn new() -> Self {
        let folder = cache_folder(|name| std::env::var_os(name));
        Self::with_file(folder.map(|folder| folder.join("hintflow/tuning.json")), false)
    }

    /// One that remembers in that file; `always`: measures where it does not pay, too.
    pub(crate) fn with_file(file: Option<PathBuf>, always: bool) -> Self {
        Self { always, file, known: Mutex::default() }
    }

    /// The variants for `key`: a known one that is `possible`, else what `measure` finds.
    pub(crate) fn variants(
        &self,
        key: &str,
        possible: impl Fn(KernelVariants) -> bool,
        measure: impl FnOnce() -> Result<KernelVariants>,
    ) -> Result<KernelVariants> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let remembered = known.get(key).copied().or_else(|| self.file.as_deref().and_then(|file| load(file, key)));
        if let Some(variants) = remembered.filter(|&variants| possible(variants)) {
            known.insert(key.to_owned(), variants);
            return Ok(variants);
        }
        let variants = measure()?;
        known.insert(key.to_owned(), variants);
        if let Some(file) = &self.file
            && let Err(error) = save(file, key, variants)
        {
            tracing::debug!("{}: the fastest variants cannot be remembered: {error}", file.display());
        }
        Ok(variants)
    }
}

/// What the file holds; nothing if there is no file, or one that cannot be understood.
fn read(file: &Path) -> Cache {
    std::fs::read(file).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default()
}

fn load(file: &Path, key: &str) -> Option<KernelVariants> {
    read(file).fastest.get(key).copied()
}

/// Adds variants to the file. Whoever reads at the same time sees the old file or the new one; of two who write at the
/// same time one is forgotten, and measures again another day.
fn save(file: &Path, key: &str, variants: KernelVariants) -> std::io::Result<()> {
    let mut cache = read(file);
    cache.fastest.insert(key.to_owned(), variants);
    if let Some(folder) = file.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let written = file.with_extension(format!("{}.new", std::process::id()));
    std::fs::write(&written, serde_json::to_vec_pretty(&cache)?)?;
    std::fs::rename(&written, file).inspect_err(|_| {
        let _ = std::fs::remove_file(&written);
    })
}

/// The folder in which programs of this user keep what they can do without.
fn cache_folder(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).map(PathBuf::from).filter(|path| path.is_absolute());
    if cfg!(windows) {
        path("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        path("HOME").map(|home| home.join("Library/Caches"))
    } else {
        path("XDG_CACHE_HOME").or_else(|| path("HOME").map(|home| home.join(".cache")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FOUND: KernelVariants = KernelVariants { forward: Some(1), backward: None, recompute: Some(true) };

    fn never() -> Result<KernelVariants> {
        panic!("it is known already")
    }

    #[test]
    fn variants_are_measured_once() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("deep/er/tuning.json");
        let tuner = Tuner::with_file(Some(file.clone()), false);
        assert_eq!(tuner.variants("a", |_| true, || Ok(FOUND)).unwrap(), FOUND);
        assert_eq!(tuner.variants("a", |_| true, never).unwrap(), FOUND);
        // Another process.
        let again = Tuner::with_file(Some(file.clone()), false);
        assert_eq!(again.variants("a", |_| true, never).unwrap(), FOUND);
        assert_eq!(again.variants("b", |_| true, || Ok(KernelVariants::default())).unwrap(), KernelVariants::default());
        assert_eq!(Tuner::with_file(Some(file), false).variants("a", |_| true, never).unwrap(), FOUND);
        let files: Vec<_> = std::fs::read_dir(folder.path().join("deep/er")).unwrap().collect();
        assert_eq!(files.len(), 1, "{files:?}");
    }

    #[test]
    fn what_cannot_be_used_is_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tuning.json");
        for broken in ["", "{\"fastest\":{\"a\":{\"forw", "[1]", "{\"fastest\":{\"a\":{\"forward\":9,\"backward\":0}}}"]
        {
            std::fs::write(&file, broken).unwrap();
            let possible = |variants: KernelVariants| variants.forward != Some(9);
            assert_eq!(
                Tuner::with_file(Some(file.clone()), false).variants("a", possible, || Ok(FOUND)).unwrap(),
                FOUND
            );
            assert_eq!(Tuner::with_file(Some(file.clone()), false).variants("a", possible, never).unwrap(), FOUND);
        }
    }

    #[test]
    fn without_a_place_for_the_file_it_works_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        for file in [None, Some(folder.path().join("file/tuning.json"))] {
            let tuner = Tuner::with_file(file, false);
            assert_eq!(tuner.variants("a", |_| true, || Ok(FOUND)).unwrap(), FOUND);
            assert_eq!(tuner.variants("a", |_| true, never).unwrap(), FOUND);
        }
    }

    #[test]
    #[cfg(all(unix, not(target_os = "macos")))]
    fn the_cache_folder_is_the_desktops() {
        let folder = |set: &[(&str, &str)]| {
            cache_folder(|name| set.iter().find(|(n, _)| *n == name).map(|(_, value)| value.into()))
        };
        assert_eq!(folder(&[("HOME", "/h"), ("XDG_CACHE_HOME", "/c")]), Some("/c".into()));
        // A relative path is to be ignored (XDG base directory specification).
        assert_eq!(folder(&[("HOME", "/h"), ("XDG_CACHE_HOME", "c")]), Some("/h/.cache".into()));
        assert_eq!(folder(&[]), None);
    }
}

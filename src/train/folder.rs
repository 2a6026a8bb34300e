//! The run folder: where the files of a training lie, and that only one process writes them.
//!
//! ```text
//! runs/2026-11-27_lens_s1/
//!   config.toml      all settings; `hintflow train --config` runs them again
//!   manifest.json    version, command line, device, data, times
//!   metrics.csv      one line per epoch
//!   checkpoints/     the last two
//!   model.safetensors
//!   plots/           PNG and SVG
//! ```

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::checkpoint::Store;
use super::clock;
use crate::error::{Error, Result};

/// The folder of a run. Holding one keeps other processes from training into it.
#[derive(Debug)]
pub struct RunFolder {
    path: PathBuf,
    _lock: File,
}

/// Files that a run writes at the top of its folder.
const FILES: [&str; 4] = [CONFIG, "manifest.json", "metrics.csv", MODEL];
const CONFIG: &str = "config.toml";
const MODEL: &str = "model.safetensors";

impl RunFolder {
    /// A free name below `runs`: `<date>_<name>_s<seed>`, with a number where that exists already.
    pub fn default_path(name: &str, seed: u64) -> PathBuf {
        let base = format!("{}_{name}_s{seed}", clock::today());
        let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}_{n}")));
        let mut paths = names.map(|name| Path::new("runs").join(name));
        // The sequence does not end, and some name is free.
        paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_default()
    }

    /// Fails as [`RunFolder::create`] would, before any work is spent.
    ///
    /// # Errors
    /// [`Error::Exists`] where the folder is not empty and `force` is not set, or where it is a file.
    pub fn check(path: &Path, force: bool) -> Result<()> {
        match std::fs::read_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => Err(Error::Exists { path: path.into() }),
            Err(e) => Err(Error::io("read", path, e)),
            Ok(mut entries) => match entries.next() {
                Some(_) if !force => Err(Error::Exists { path: path.into() }),
                _ => Ok(()),
            },
        }
    }

    /// Makes a folder for a new run. With `force` a folder may hold something: files of an earlier run are removed,
    /// others stay.
    ///
    /// # Errors
    /// [`Error::Exists`] where the folder is not empty and `force` is not set, [`Error::Io`] where it cannot be made or
    /// another process trains into it.
    pub fn create(path: &Path, force: bool) -> Result<Self> {
        Self::check(path, force)?;
        let folder = Self::lock(path)?;
        for name in FILES {
            let file = path.join(name);
            match std::fs::remove_file(&file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", file, e)),
                _ => {}
            }
        }
        folder.checkpoints().clear()?;
        Ok(folder)
    }

    /// Takes the folder of an earlier run.
    ///
    /// # Errors
    /// [`Error::Format`] where it is no run folder, [`Error::Io`] where another process trains into it.
    pub fn open(path: &Path) -> Result<Self> {
        Self::is_run(path)?;
        Self::lock(path)
    }

    /// Whether a folder holds a run.
    ///
    /// # Errors
    /// [`Error::Io`] where there is no such folder, [`Error::Format`] where it is no run folder.
    pub fn is_run(path: &Path) -> Result<()> {
        std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?;
        if path.join(CONFIG).is_file() {
            return Ok(());
        }
        Err(Error::format(path, format!("is not a run folder: it holds no {CONFIG}")))
    }

    fn lock(path: &Path) -> Result<Self> {
        let checkpoints = path.join("checkpoints");
        std::fs::create_dir_all(&checkpoints).map_err(|e| Error::io("create", &checkpoints, e))?;
        let name = checkpoints.join("lock");
        let file = File::options().create(true).append(true).open(&name);
        let file = file.map_err(|e| Error::io("create", &name, e))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::format(path, "another process is training in this folder; wait for it or stop it"));
            }
            // A file system without locks: two trainings in one folder are then the user's to avoid.
            Err(TryLockError::Error(_)) => {}
        }
        Ok(Self { path: path.into(), _lock: file })
    }

    /// The folder itself.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All settings.
    pub fn config(&self) -> PathBuf {
        config_of(&self.path)
    }

    /// Facts about the run.
    pub fn manifest(&self) -> PathBuf {
        self.path.join("manifest.json")
    }

    /// One line per epoch.
    pub fn metrics(&self) -> PathBuf {
        self.path.join("metrics.csv")
    }

    /// The trained model.
    pub fn model(&self) -> PathBuf {
        self.path.join(MODEL)
    }

    /// The checkpoints.
    pub fn checkpoints(&self) -> Store {
        Store::new(self.path.join("checkpoints"))
    }

    /// The folder of the pictures.
    pub fn plots(&self) -> PathBuf {
        self.path.join("plots")
    }
}

/// The settings of a run folder.
pub fn config_of(run: &Path) -> PathBuf {
    run.join(CONFIG)
}

/// The model file that RUN on the command line means: a model file, or a run folder with one.
///
/// # Errors
/// [`Error::Io`] where there is neither, [`Error::Format`] where a run has no model yet.
pub fn model_of(run: &Path) -> Result<PathBuf> {
    let metadata = std::fs::metadata(run).map_err(|e| Error::io("read", run, e))?;
    if !metadata.is_dir() {
        return Ok(run.into());
    }
    let model = run.join(MODEL);
    if model.is_file() {
        return Ok(model);
    }
    let what = match run.join(CONFIG).is_file() {
        true => format!(
            "holds no {MODEL}: the training is not finished; go on with `hintflow train --resume {}`",
            run.display()
        ),
        false => format!("holds no {MODEL}; give a run folder or a model file"),
    };
    Err(Error::format(run, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_folders_need_force_and_keep_foreign_files() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a/b");
        drop(RunFolder::create(&path, false).unwrap());
        assert!(matches!(RunFolder::create(&path, false), Err(Error::Exists { .. })));
        for name in ["model.safetensors", "notes.txt", "checkpoints/step-00000007.safetensors"] {
            std::fs::write(path.join(name), "x").unwrap();
        }
        drop(RunFolder::create(&path, true).unwrap());
        assert!(path.join("notes.txt").exists() && !path.join("model.safetensors").exists());
        assert!(!path.join("checkpoints/step-00000007.safetensors").exists());
        let file = top.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(RunFolder::create(&file, true), Err(Error::Exists { .. })));
    }

    #[test]
    fn one_process_at_a_time() {
        let top = tempfile::tempdir().unwrap();
        let held = RunFolder::create(top.path(), true).unwrap();
        std::fs::write(held.config(), "").unwrap();
        assert!(RunFolder::open(top.path()).unwrap_err().to_string().contains("another process"));
        drop(held);
        RunFolder::open(top.path()).unwrap();
    }

    #[test]
    fn models_are_found_in_runs() {
        let top = tempfile::tempdir().unwrap();
        assert!(model_of(&top.path().join("missing")).is_err());
        assert!(model_of(top.path()).unwrap_err().to_string().contains("give a run folder"));
        std::fs::write(config_of(top.path()), "").unwrap();
        assert!(model_of(top.path()).unwrap_err().to_string().contains("--resume"));
        std::fs::write(top.path().join(MODEL), "").unwrap();
        assert_eq!(model_of(top.path()).unwrap(), top.path().join(MODEL));
        assert_eq!(model_of(&config_of(top.path())).unwrap(), config_of(top.path()));
    }
}

//! The folder of a run's checkpoints.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::Checkpoint;
use crate::error::{Error, Result};

/// How many checkpoints are kept.
const KEPT: usize = 2;

/// The checkpoints of a run: the last two, one file each.
#[derive(Clone, Debug)]
pub(crate) struct Store {
    folder: PathBuf,
}

/// The file name of the checkpoint after that many steps.
pub(in crate::train) fn name_of(step: u64) -> String {
    format!("step-{step:08}.safetensors")
}

impl Store {
    /// The checkpoints in a folder, which need not exist.
    pub(crate) fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Writes a checkpoint and removes those before the last two, and any of later steps: the training has gone back from
    /// there. Returns its file.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written.
    pub(crate) fn write(&self, checkpoint: &Checkpoint) -> Result<PathBuf> {
        self.create()?;
        let now = checkpoint.state.position.step;
        let path = self.folder.join(name_of(now));
        checkpoint.write(&path)?;
        let (files, later): (Vec<_>, Vec<_>) = self.files()?.into_iter().partition(|(step, _)| *step <= now);
        for (_, old) in files.into_iter().rev().skip(KEPT).chain(later) {
            // One too many does no harm.
            let _ = std::fs::remove_file(old);
        }
        Ok(path)
    }

    /// Makes the folder, but none that it is to lie in: that of a run may have been moved away.
    fn create(&self) -> Result<()> {
        match std::fs::create_dir(&self.folder) {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => Ok(()),
            Err(e) if e.kind() == ErrorKind::NotFound => {
                let run = self.folder.parent().unwrap_or(&self.folder);
                let what = "is gone: the run folder was removed or moved while it was trained, and nothing more can be saved; \
                            one that was moved goes on from where it is now (hintflow train --resume)";
                Err(Error::format(run, what))
            }
            result => result.map_err(|e| Error::io("create", &self.folder, e)),
        }
    }

    /// The files by step, oldest first.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read.
    pub(crate) fn files(&self) -> Result<Vec<(u64, PathBuf)>> {
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(Error::io("read", &self.folder, e)),
        };
        let step = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse::<u64>().ok()
        };
        let paths = entries.filter_map(|entry| entry.ok().map(|e| e.path()));
        let mut files: Vec<_> = paths.filter_map(|path| step(&path).map(|step| (step, path))).collect();
        files.sort();
        Ok(files)
    }

    /// The newest checkpoint that is whole, its file, and why newer ones were passed over. None if there are none.
    ///
    /// # Errors
    /// [`Error::Format`] with all files where none is whole.
    pub(crate) fn latest(&self) -> Result<Option<(Checkpoint, PathBuf, Vec<Error>)>> {
        let mut passed_over = Vec::new();
        for (_, path) in self.files()?.into_iter().rev() {
            match Checkpoint::read(&path) {
                Ok(checkpoint) => return Ok(Some((checkpoint, path, passed_over))),
                Err(error) => passed_over.push(error),
            }
        }
        if passed_over.is_empty() {
            return Ok(None);
        }
        let list: Vec<_> = passed_over.iter().map(Error::to_string).collect();
        let what = format!(
            "no checkpoint is whole, so the run cannot go on; start it again: hintflow train --config {} ({})",
            self.folder.with_file_name("config.toml").display(),
            list.join("; ")
        );
        Err(Error::format(&self.folder, what))
    }

    /// Removes all checkpoints.
    ///
    /// # Errors
    /// [`Error::Io`] if a file cannot be removed.
    pub(crate) fn clear(&self) -> Result<()> {
        for (_, path) in self.files()? {
            std::fs::remove_file(&path).map_err(|e| Error::io("remove", &path, e))?;
        }
        Ok(())
    }
}

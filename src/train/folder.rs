//! The run folder: where the files of a training lie, and that only one process writes them.
//!
//! ```text
//! runs/2026-11-27_lens_s1/
//!   config.toml      all settings; `hintflow train --config` runs them again
//!   manifest.json    version, command line, device, data, times, warnings
//!   data.json        what the table is like, and what is wrong with it
//!   metrics.csv      one line per epoch
//!   metrics.jsonl    the same, and tensorboard/ too, if train.log asks for it
//!   checkpoints/     the last two
//!   model.safetensors
//!   plots/           PNG and SVG
//!   diagnosis/       what `hintflow diagnose` found
//!   report.html      all of it on one page
//! ```

use std::fs::{File, TryLockError};
use std::path::{Path, PathBuf};

use super::checkpoint::{self, Checkpoint, Store};
use super::{Dataset, clock, logs, manifest};
use crate::atomic::Overwrite;
use crate::atomic::{is_temporary, remove_temporaries};
use crate::config::KnownRows;
use crate::data::files::is_table_file;
use crate::error::{Error, Result};
use crate::flow::{ModelFile, open_tensors};

/// The folder of a run. Holding one keeps other processes from training into it.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    _lock: File,
}

/// Files that a run writes at the top of its folder.
const FILES: [&str; 6] = [CONFIG, MANIFEST, DATA, METRICS, MODEL, REPORT];
const DATA: &str = "data.json";
const REPORT: &str = "report.html";
const DIAGNOSIS: &str = "diagnosis";
/// What a diagnosis writes there, and pictures of it.
const DIAGNOSTICS: &str = "diagnostics.json";
const MANIFEST: &str = "manifest.json";
const CONFIG: &str = "config.toml";
pub(crate) const MODEL: &str = "model.safetensors";
const CHECKPOINTS: &str = "checkpoints";
const METRICS: &str = "metrics.csv";
const LOCK: &str = "lock";
const PLOTS: &str = "plots";

/// Pictures of a run, each as `.png` and `.svg` in [`RunFolder::plots`].
pub(crate) mod picture {
    /// Losses of every epoch.
    pub(crate) const LOSS: &str = "loss";
    /// Correlations of samples and data.
    pub(crate) const CORRELATION: &str = "correlation";
    /// Sampled shapes beside true ones.
    pub(crate) const OUTLINES: &str = "outlines";
    /// Shapes that fit one observation.
    pub(crate) const POSTERIOR: &str = "posterior";
    /// Histograms of single columns.
    pub(crate) const MARGINALS: &str = "marginals";
    /// Scatter plots of two columns.
    pub(crate) const PAIRS: &str = "pairs";
    /// Every picture.
    pub(crate) const ALL: [&str; 6] = [LOSS, CORRELATION, OUTLINES, POSTERIOR, MARGINALS, PAIRS];
    /// Ranks of truths among samples of their posteriors.
    pub(crate) const CALIBRATION: &str = "calibration";
    /// The distribution of latent columns.
    pub(crate) const LATENTS: &str = "latents";
    /// Correlations of latent columns, among each other and with conditions.
    pub(crate) const LATENT_CORRELATION: &str = "latent_correlation";
    /// Predictions of an observation.
    pub(crate) const PREDICTIONS: &str = "predictions";
    /// Every picture of a diagnosis, in [`diagnosis_of`] a run.
    pub(crate) const OF_DIAGNOSIS: [&str; 4] = [CALIBRATION, LATENTS, LATENT_CORRELATION, PREDICTIONS];
}

impl RunFolder {
    /// A free name below `runs`: `<date>_<name>_s<seed>`, with a number where that exists already.
    pub(crate) fn default_path(name: &str, seed: u64) -> PathBuf {
        let base = format!("{}_{name}_s{seed}", clock::today());
        let names = std::iter::once(base.clone()).chain((2..).map(|n| format!("{base}_{n}")));
        let mut paths = names.map(|name| Path::new("runs").join(name));
        // The sequence does not end, and some name is free.
        paths.find(|path| path.symlink_metadata().is_err()).unwrap_or_default()
    }

    /// Fails as [`RunFolder::create`] would, before any work is spent.
    ///
    /// # Errors
    /// [`Error::Exists`] if the folder is not empty and `overwrite` is [`Overwrite::No`], [`Error::Format`] if it is a file.
    pub(crate) fn check(path: &Path, overwrite: Overwrite) -> Result<()> {
        match std::fs::read_dir(path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
            Err(e) if e.kind() == std::io::ErrorKind::NotADirectory => {
                let what = "is, or lies below, a file and not a folder; choose another name for the run folder";
                Err(Error::format(path, what))
            }
            Err(e) => Err(Error::io("read", path, e)),
            Ok(mut entries) => match entries.next() {
                Some(_) if !overwrite.is_allowed() && !is_unbegun(path) => Err(Error::Exists { path: path.into() }),
                _ => Ok(()),
            },
        }
    }

    /// Makes a folder for a new run. With [`Overwrite::Yes`] a folder may hold something: files of an earlier run, pictures too,
    /// are removed, others stay.
    ///
    /// # Errors
    /// [`Error::Exists`] if the folder is not empty and `overwrite` is [`Overwrite::No`], [`Error::Io`] if it cannot be made or
    /// another process trains into it.
    pub(crate) fn create(path: &Path, overwrite: Overwrite) -> Result<Self> {
        Self::check(path, overwrite)?;
        let folder = Self::lock(path)?;
        if !overwrite.is_allowed() && !is_unbegun(path) {
            // Another process was faster, and is done already.
            return Err(Error::Exists { path: path.into() });
        }
        for file in files_of(path) {
            match std::fs::remove_file(&file) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(Error::io("remove", file, e)),
                _ => {}
            }
        }
        // Folders that hold something else stay.
        for name in [logs::FOLDER, DIAGNOSIS, PLOTS] {
            let _ = std::fs::remove_dir(path.join(name));
        }
        folder.checkpoints().clear()?;
        Ok(folder)
    }

    /// Whether [`RunFolder::create`] with `overwrite` would remove this file, so that it must not be an input of the new run.
    pub(crate) fn replaces(path: &Path, file: &Path) -> bool {
        let (Ok(file), Ok(path)) = (file.canonicalize(), path.canonicalize()) else { return false };
        // What is there counts, and not how it is spelled: the files may be links.
        let same = |own: PathBuf| own.canonicalize().is_ok_and(|own| own == file);
        file.starts_with(path.join(CHECKPOINTS)) || files_of(&path).any(same)
    }

    /// Makes the folder of [`RunFolder::default_path`]: another one where another process takes it first.
    ///
    /// # Errors
    /// As [`RunFolder::create`].
    pub(crate) fn create_default(name: &str, seed: u64) -> Result<Self> {
        const ATTEMPTS: usize = 100;
        let mut last = Self::create(&Self::default_path(name, seed), Overwrite::No);
        for _ in 1..ATTEMPTS {
            match last {
                // Taken, or locked: it exists now, and the next name is another.
                Err(Error::Exists { .. } | Error::Format { .. }) => {
                    last = Self::create(&Self::default_path(name, seed), Overwrite::No);
                }
                done => return done,
            }
        }
        last
    }

    /// Takes the folder of an earlier run.
    ///
    /// # Errors
    /// [`Error::Format`] if it is no run folder, [`Error::Io`] if another process trains into it.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        Self::is_run(path)?;
        Self::lock(path)
    }

    /// Whether a folder holds a run.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no such folder, [`Error::Format`] if it is no run folder.
    pub(crate) fn is_run(path: &Path) -> Result<()> {
        std::fs::metadata(path).map_err(|e| Error::io("read", path, e))?;
        if path.join(CONFIG).is_file() {
            return Ok(());
        }
        let below = path.join("runs");
        let hint = if below.is_dir() { format!("; runs are in {}", below.display()) } else { String::new() };
        Err(Error::format(path, format!("is not a run folder: it holds no {CONFIG}{hint}")))
    }

    /// Takes a folder, which is made if need be.
    ///
    /// # Errors
    /// [`Error::Format`] if another process has it, [`Error::Io`] if it cannot be made.
    pub(crate) fn lock(path: &Path) -> Result<Self> {
        let checkpoints = path.join(CHECKPOINTS);
        std::fs::create_dir_all(&checkpoints).map_err(|e| Error::io("create", &checkpoints, e))?;
        let name = checkpoints.join(LOCK);
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
        // Whoever wrote these is gone, or the lock would be his.
        [path.to_owned(), checkpoints, path.join(PLOTS)].iter().for_each(|folder| remove_temporaries(folder));
        Ok(Self { path: path.into(), _lock: file })
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// All settings.
    pub(crate) fn config(&self) -> PathBuf {
        config_of(&self.path)
    }

    /// Facts about the run.
    pub(crate) fn manifest(&self) -> PathBuf {
        manifest_of(&self.path)
    }

    /// What the rows are like.
    pub(crate) fn data(&self) -> PathBuf {
        data_of(&self.path)
    }

    /// One line per epoch.
    pub(crate) fn metrics(&self) -> PathBuf {
        metrics_of(&self.path)
    }

    /// The trained model.
    pub(crate) fn model(&self) -> PathBuf {
        self.path.join(MODEL)
    }

    /// The checkpoints.
    pub(crate) fn checkpoints(&self) -> Store {
        Store::new(self.path.join(CHECKPOINTS))
    }

    /// The folder of the pictures.
    pub(crate) fn plots(&self) -> PathBuf {
        self.path.join(PLOTS)
    }
}

/// Every file that a run writes, but for its checkpoints, and what a diagnosis of its model wrote.
fn files_of(run: &Path) -> impl Iterator<Item = PathBuf> {
    let plots = picture::ALL.into_iter().map(|name| format!("{PLOTS}/{name}"));
    let pictures = plots.chain(picture::OF_DIAGNOSIS.into_iter().map(|name| format!("{DIAGNOSIS}/{name}")));
    let pictures = pictures.flat_map(|name| ["png", "svg"].map(|end| format!("{name}.{end}")));
    let files = FILES.into_iter().map(str::to_owned).chain([format!("{DIAGNOSIS}/{DIAGNOSTICS}")]);
    files.chain(pictures).chain(logs::FILES.map(str::to_owned)).map(move |name| run.join(name))
}

/// Whether a folder holds nothing, or nothing but what a start leaves that failed before its settings were written.
fn is_unbegun(run: &Path) -> bool {
    let names = |folder: &Path| -> Vec<String> {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        let names = entries.map(|entry| entry.map(|e| e.file_name().to_string_lossy().into_owned()));
        // What cannot be read is something.
        names.map(Result::unwrap_or_default).filter(|name| !is_temporary(name)).collect()
    };
    let checkpoints = run.join(CHECKPOINTS);
    let of_logs = |name: &str| logs::FILES.iter().any(|file| file.split('/').next() == Some(name));
    names(run).iter().all(|name| [METRICS, CHECKPOINTS].contains(&name.as_str()) || of_logs(name))
        && names(&checkpoints).iter().all(|name| [LOCK, &checkpoint::name_of(0)].contains(&name.as_str()))
}

/// The settings of a run folder.
pub(crate) fn config_of(run: &Path) -> PathBuf {
    run.join(CONFIG)
}

/// Its facts.
pub(crate) fn manifest_of(run: &Path) -> PathBuf {
    run.join(MANIFEST)
}

/// What is to be known of its rows.
pub(crate) fn data_of(run: &Path) -> PathBuf {
    run.join(DATA)
}

/// Its losses.
pub(crate) fn metrics_of(run: &Path) -> PathBuf {
    run.join(METRICS)
}

/// Its pictures.
pub(crate) fn plots_of(run: &Path) -> PathBuf {
    run.join(PLOTS)
}

/// Its report.
pub(crate) fn report_of(run: &Path) -> PathBuf {
    run.join(REPORT)
}

/// The folder of what a diagnosis of its model found.
pub(crate) fn diagnosis_of(run: &Path) -> PathBuf {
    run.join(DIAGNOSIS)
}

/// What a diagnosis found, in its folder.
pub(crate) fn diagnostics_in(folder: &Path) -> PathBuf {
    folder.join(DIAGNOSTICS)
}

/// Reads the model that RUN on the command line means: that of a model file, of a run folder or of a checkpoint.
///
/// # Errors
/// Those of [`model_of`], [`ModelFile::read`] and [`Checkpoint::read`].
pub(crate) fn read_model(run: &Path) -> Result<ModelFile> {
    let path = model_of(run)?;
    if is_table(&path) {
        let what =
            "is a table, and no model: give a run folder, a model file (.safetensors) or a checkpoint in its place";
        return Err(Error::format(path, what));
    }
    open_tensors(&path)?;
    if !Checkpoint::is_one(&path) {
        return ModelFile::read(&path);
    }
    Checkpoint::read(&path)?.model().map_err(|e| Error::format(path, e.to_string()))
}

/// Whether a file that is given as a model is a table: by its name, and as it does not begin as models do.
pub(crate) fn is_table(path: &Path) -> bool {
    path.is_file() && is_table_file(path) && open_tensors(path).is_err()
}

/// The file that RUN on the command line means: a model file or a checkpoint itself, or the model of a run folder.
///
/// # Errors
/// [`Error::Io`] if there is neither, [`Error::Format`] if a run has no model yet.
pub(crate) fn model_of(run: &Path) -> Result<PathBuf> {
    let metadata = std::fs::metadata(run).map_err(|e| Error::io("read", run, e))?;
    if metadata.is_file() {
        return Ok(run.into());
    }
    if !metadata.is_dir() {
        return Err(Error::format(run, "is not a regular file"));
    }
    let model = run.join(MODEL);
    if model.is_file() {
        return Ok(model);
    }
    let checkpoint = || Store::new(run.join(CHECKPOINTS)).files().unwrap_or_default().pop().map(|(_, path)| path);
    let what = if !run.join(CONFIG).is_file() {
        format!("holds no {MODEL}; give a run folder, a model file or a checkpoint")
    } else if is_training(run) {
        format!("holds no {MODEL} yet: the training is still running; wait for it, or take its newest checkpoint")
    } else if has_diverged(run) {
        // To resume would come to the same end.
        let good = checkpoint().map_or(String::new(), |path| {
            let path = path.display();
            format!("; its last good checkpoint {path} can be used in its place, or be trained on with --init {path} and a smaller train.lr")
        });
        format!("holds no {MODEL}: the training diverged{good}")
    } else {
        let run = run.display();
        format!("holds no {MODEL}: the training is not finished; go on with `hintflow train --resume {run}`")
    };
    Err(Error::format(run, what))
}

/// Refuses rows that are not those that a run was trained on. A run without a readable manifest is taken at its word.
///
/// # Errors
/// [`Error::Format`] naming the run.
pub(crate) fn trained_on(run: &Path, data: &Dataset) -> Result<()> {
    match manifest::rows(&manifest_of(run)) {
        Some(rows) if rows.fingerprint != data.fingerprint => {
            let what = format!(
                "was trained on other rows than {} has now: restore them, or train anew; `hintflow log-prob` scores any rows",
                data.name
            );
            Err(Error::format(run, what))
        }
        _ => Ok(()),
    }
}

/// The rows by which a run chose settings when it began; none where there is no manifest that can be read.
pub(crate) fn known_rows(run: &Path) -> Option<KnownRows> {
    let rows = manifest::rows(&manifest_of(run))?;
    Some(KnownRows { training: rows.train_rows, validates: rows.test_rows > 0 })
}

/// Whether the training of a run ended as its loss became no number.
pub(crate) fn has_diverged(run: &Path) -> bool {
    manifest::says(&manifest_of(run), manifest::DIVERGED)
}

/// Whether a process trains into a folder now.
pub(crate) fn is_training(run: &Path) -> bool {
    let file = File::options().append(true).open(run.join(CHECKPOINTS).join(LOCK));
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn full_folders_need_force_and_keep_foreign_files() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a/b");
        drop(RunFolder::create(&path, Overwrite::No).unwrap());
        // A start that failed before its settings were written is no run.
        for left in ["metrics.csv", "checkpoints/step-00000000.safetensors", "checkpoints/.hintflow-1-1.tmp"] {
            std::fs::write(path.join(left), "x").unwrap();
        }
        drop(RunFolder::create(&path, Overwrite::No).unwrap());
        std::fs::write(path.join("config.toml"), "x").unwrap();
        assert!(matches!(RunFolder::create(&path, Overwrite::No), Err(Error::Exists { .. })));
        std::fs::create_dir(path.join("plots")).unwrap();
        let own = [
            "model.safetensors",
            "checkpoints/step-00000007.safetensors",
            "plots/pairs.svg",
            "plots/loss.png",
            ".hintflow-1-0.tmp",
            "checkpoints/.hintflow-1-1.tmp",
            "plots/.hintflow-1-2.tmp",
        ];
        let foreign = ["notes.txt", "plots/mine.png"];
        for name in own.into_iter().chain(foreign) {
            std::fs::write(path.join(name), "x").unwrap();
        }
        assert!(RunFolder::replaces(&path, &path.join("plots/../model.safetensors")));
        assert!(RunFolder::replaces(&path, &path.join("checkpoints/step-00000007.safetensors")));
        assert!(!RunFolder::replaces(&path, &path.join("notes.txt")));
        assert!(!RunFolder::replaces(&path, &path.join("missing")));
        drop(RunFolder::create(&path, Overwrite::Yes).unwrap());
        for name in own {
            assert!(!path.join(name).exists(), "{name}");
        }
        assert!(foreign.iter().all(|name| path.join(name).exists()));
        let file = top.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert!(matches!(RunFolder::create(&file, Overwrite::Yes), Err(Error::Format { .. })));
    }

    #[test]
    fn a_folder_that_was_filled_meanwhile_is_seen_under_the_lock() {
        let top = tempfile::tempdir().unwrap();
        let held = RunFolder::create(top.path(), Overwrite::No).unwrap();
        assert!(is_unbegun(top.path()));
        std::fs::write(held.model(), "").unwrap();
        assert!(!is_unbegun(top.path()));
        std::fs::remove_file(held.model()).unwrap();
        std::fs::write(top.path().join("checkpoints/step-00000007.safetensors"), "").unwrap();
        assert!(!is_unbegun(top.path()));
    }

    #[test]
    fn opening_removes_what_killed_processes_left() {
        let top = tempfile::tempdir().unwrap();
        std::fs::write(config_of(top.path()), "").unwrap();
        std::fs::create_dir(top.path().join("checkpoints")).unwrap();
        let left = top.path().join("checkpoints/.hintflow-12-3.tmp");
        std::fs::write(&left, "").unwrap();
        drop(RunFolder::open(top.path()).unwrap());
        assert!(!left.exists());
    }

    #[test]
    fn one_process_at_a_time() {
        let top = tempfile::tempdir().unwrap();
        let held = RunFolder::create(top.path(), Overwrite::Yes).unwrap();
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
        let held = RunFolder::open(top.path()).unwrap();
        assert!(model_of(top.path()).unwrap_err().to_string().contains("still running"));
        drop(held);
        std::fs::write(top.path().join(MODEL), "").unwrap();
        assert_eq!(model_of(top.path()).unwrap(), top.path().join(MODEL));
        assert_eq!(model_of(&config_of(top.path())).unwrap(), config_of(top.path()));
    }
}

//! What `metrics.csv` says, once more for other programs, if `train.log` asks for it: one line of JSON for each epoch, and
//! events for TensorBoard.
//!
//! Files only grow. A run that goes on after step n first cuts its files back to the records of its first n steps, as it
//! cuts `metrics.csv`, so that no epoch is there twice.

mod jsonl;
mod tensorboard;

use std::fs::File;
use std::io::{ErrorKind, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::epoch_report::EpochReport;
use crate::config::{Log, Logs};
use crate::error::{Error, Result};

/// Every file that there may be, from the run folder.
pub(super) const FILES: [&str; 2] = [jsonl::FILE, tensorboard::FILE];

/// The folder of those that are in one.
pub(super) const FOLDER: &str = tensorboard::FOLDER;

/// The files of a run, open for appending.
pub(super) struct LogFiles(Vec<LogFile>);

struct LogFile {
    log: Log,
    path: PathBuf,
    file: File,
}

impl LogFiles {
    /// Those of a run that goes on after `step`, or begins with 0.
    pub(super) fn open(run: &Path, logs: &Logs, step: u64) -> Result<Self> {
        logs.0.iter().map(|&log| LogFile::open(run, log, step)).collect::<Result<_>>().map(Self)
    }

    /// Adds what is to be told of an epoch.
    pub(super) fn append(&mut self, report: &EpochReport) -> Result<()> {
        self.0.iter_mut().try_for_each(|log| log.write(&record(log.log, report)))
    }

    /// Waits until all is on the disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.0.iter().try_for_each(|log| log.file.sync_data().map_err(|e| Error::io("write", &log.path, e)))
    }
}

impl LogFile {
    fn open(run: &Path, log: Log, step: u64) -> Result<Self> {
        let path = run.join(match log {
            Log::Jsonl => jsonl::FILE,
            Log::Tensorboard => tensorboard::FILE,
        });
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
        }
        let earlier = match std::fs::read(&path) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(Error::io("read", &path, e)),
        };
        let kept = match (log, step) {
            (_, 0) => 0,
            (Log::Jsonl, _) => jsonl::kept(&earlier, step),
            (Log::Tensorboard, _) => tensorboard::kept(&earlier, step),
        };
        let failed = |e| Error::io("write", &path, e);
        let mut file = File::options().create(true).write(true).truncate(false).open(&path).map_err(failed)?;
        file.set_len(kept as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        let mut log = Self { log, path, file };
        if kept == 0 && log.log == Log::Tensorboard {
            log.write(&tensorboard::head())?;
        }
        Ok(log)
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|e| Error::io("write", &self.path, e))
    }
}

fn record(log: Log, report: &EpochReport) -> Vec<u8> {
    match log {
        Log::Jsonl => jsonl::record(report),
        Log::Tensorboard => tensorboard::record(report),
    }
}

/// Seconds since 1970.
fn now() -> f64 {
    // A clock before 1970 is not worth an error.
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn report(epoch: u64) -> EpochReport {
        EpochReport {
            epoch,
            step: 10 * epoch,
            train_loss: 1.5 - epoch as f64,
            validation_loss: (epoch != 2).then_some(0.25),
            ll: None,
            learning_rate: 0.01,
            rows_per_s: 1234.0,
        }
    }

    #[test]
    fn resumed_runs_have_each_epoch_once() {
        let folder = tempfile::tempdir().unwrap();
        let all = Logs(vec![Log::Jsonl, Log::Tensorboard]);
        let sizes = || FILES.map(|name| std::fs::metadata(folder.path().join(name)).unwrap().len());
        let mut logs = LogFiles::open(folder.path(), &all, 0).unwrap();
        (1..=2).for_each(|epoch| logs.append(&report(epoch)).unwrap());
        let two = sizes();
        (3..=4).for_each(|epoch| logs.append(&report(epoch)).unwrap());
        logs.sync().unwrap();
        // Stopped within epoch 3, whose record and the next are not of these steps.
        drop(LogFiles::open(folder.path(), &all, 25).unwrap());
        assert_eq!(sizes(), two);
        let mut logs = LogFiles::open(folder.path(), &all, 25).unwrap();
        logs.append(&report(3)).unwrap();
        let lines = std::fs::read_to_string(folder.path().join(jsonl::FILE)).unwrap();
        let epochs: Vec<u64> = lines
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["epoch"].as_u64().unwrap())
            .collect();
        assert_eq!(epochs, [1, 2, 3]);
        // What a killed process left half written is cut off, too.
        for name in FILES {
            let path = folder.path().join(name);
            let bytes = std::fs::read(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        }
        drop(LogFiles::open(folder.path(), &all, 30).unwrap());
        assert_eq!(sizes(), two);
        // A run that begins has nothing of an earlier one.
        drop(LogFiles::open(folder.path(), &all, 0).unwrap());
        assert!(sizes()[0] == 0 && sizes()[1] < two[1]);
    }
}

//! `metrics.csv`: one line per epoch. And the logs for other programs that say the same.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::epoch_report::EpochReport;
use super::logs::LogFiles;
use crate::error::{Error, Result};

const HEADER: &str = "epoch,step,train_loss,test_loss,ll,lr,rows_per_s";

impl EpochReport {
    fn line(&self) -> String {
        let optional = |value: Option<f64>| value.map(|v| v.to_string()).unwrap_or_default();
        let (test, ll) = (optional(self.validation_loss), optional(self.ll));
        let Self { epoch, step, train_loss, learning_rate: lr, rows_per_s, .. } = self;
        format!("{epoch},{step},{train_loss},{test},{ll},{lr},{rows_per_s:.0}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split(',').collect();
        let [epoch, step, train_loss, test_loss, ll, lr, rows_per_s] = fields[..] else { return None };
        let optional = |text: &str| if text.is_empty() { Some(None) } else { text.parse().ok().map(Some) };
        Some(Self {
            epoch: epoch.parse().ok()?,
            step: step.parse().ok()?,
            train_loss: train_loss.parse().ok()?,
            validation_loss: optional(test_loss)?,
            ll: optional(ll)?,
            learning_rate: lr.parse().ok()?,
            rows_per_s: rows_per_s.parse().ok()?,
        })
    }
}

/// The files, open for appending.
pub(super) struct Metrics {
    file: File,
    path: PathBuf,
    logs: Option<LogFiles>,
}

impl Metrics {
    /// A new file with a header.
    pub(super) fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).map_err(|e| Error::io("create", path, e))?;
        let mut metrics = Self { file, path: path.into(), logs: None };
        metrics.write(&format!("{HEADER}\n"))?;
        Ok(metrics)
    }

    /// The file of an earlier run, cut back to its first `epochs` epochs. Returns their reports, too: fewer where lines
    /// are missing.
    pub(super) fn reopen(path: &Path, epochs: u64) -> Result<(Self, Vec<EpochReport>)> {
        let text = match std::fs::read(path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(Error::io("read", path, e)),
        };
        let (kept, reports) = parse(&text, epochs);
        if kept == 0 {
            return Ok((Self::create(path)?, Vec::new()));
        }
        let failed = |e| Error::io("write", path, e);
        let mut file = OpenOptions::new().write(true).open(path).map_err(failed)?;
        file.set_len(kept as u64).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        Ok((Self { file, path: path.into(), logs: None }, reports))
    }

    /// With logs, which get the same epochs.
    pub(super) fn with(self, logs: LogFiles) -> Self {
        Self { logs: Some(logs), ..self }
    }

    /// Appends a line.
    pub(super) fn append(&mut self, report: &EpochReport) -> Result<()> {
        self.write(&report.line())?;
        self.logs.as_mut().map_or(Ok(()), |logs| logs.append(report))
    }

    /// Waits until the lines are on the disk.
    pub(super) fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|e| Error::io("write", &self.path, e))?;
        self.logs.as_ref().map_or(Ok(()), LogFiles::sync)
    }

    fn write(&mut self, text: &str) -> Result<()> {
        self.file.write_all(text.as_bytes()).map_err(|e| Error::io("write", &self.path, e))
    }
}

/// The epochs recorded in a `metrics.csv`, up to the first line that cannot be read.
///
/// # Errors
/// [`Error::Io`] if the file cannot be read.
pub(crate) fn read(path: &Path) -> Result<Vec<EpochReport>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    Ok(parse(&text, u64::MAX).1)
}

/// The epochs as [`read`] finds them, none if there is no file; and what is wrong with it, if anything is.
pub(crate) fn read_or_damage(path: &Path) -> (Vec<EpochReport>, Option<String>) {
    let text = match std::fs::read(path) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return (Vec::new(), None),
        Err(e) => return (Vec::new(), Some(e.to_string())),
    };
    let (kept, reports) = parse(&text, u64::MAX);
    let damage = match kept {
        0 => Some(format!("it does not begin with the line {HEADER}")),
        kept if kept < text.len() => {
            Some(format!("line {} is not that of a later epoch", text[..kept].lines().count() + 1))
        }
        _ => None,
    };
    (reports, damage)
}

/// Length of the part of the file that holds whole lines of the first `epochs` epochs in their order, and these lines.
/// Epochs may be missing: where lines were lost, later ones follow the gap.
fn parse(text: &str, epochs: u64) -> (usize, Vec<EpochReport>) {
    let mut reports: Vec<EpochReport> = Vec::new();
    let mut kept = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let Some(content) = line.strip_suffix('\n') else { break };
        if number == 0 {
            if content != HEADER {
                break;
            }
        } else {
            let last = reports.last().map_or(0, |report| report.epoch);
            match EpochReport::parse(content) {
                Some(report) if report.epoch > last && report.epoch <= epochs => reports.push(report),
                _ => break,
            }
        }
        kept += line.len();
    }
    (kept, reports)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(epoch: u64) -> EpochReport {
        let test_loss = (epoch != 2).then_some(-1.5e-7);
        EpochReport {
            epoch,
            step: 10 * epoch,
            train_loss: 1.0 / 3.0,
            validation_loss: test_loss,
            ll: None,
            learning_rate: 0.01,
            rows_per_s: 1234.0,
        }
    }

    #[test]
    fn lines_come_back_and_are_cut_to_the_checkpoint() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        let mut metrics = Metrics::create(&path).unwrap();
        (1..=4).for_each(|e| metrics.append(&report(e)).unwrap());
        assert_eq!(read(&path).unwrap(), (1..=4).map(report).collect::<Vec<_>>());
        let (mut metrics, kept) = Metrics::reopen(&path, 2).unwrap();
        assert_eq!(kept, [report(1), report(2)]);
        metrics.append(&report(3)).unwrap();
        assert_eq!(read(&path).unwrap(), (1..=3).map(report).collect::<Vec<_>>());
    }

    #[test]
    fn lines_after_a_gap_are_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        let mut metrics = Metrics::create(&path).unwrap();
        // Lines 2 to 4 were lost before the run went on after epoch 4.
        [1, 5, 6].into_iter().for_each(|e| metrics.append(&report(e)).unwrap());
        assert_eq!(read(&path).unwrap(), [1, 5, 6].map(report));
        let (mut metrics, kept) = Metrics::reopen(&path, 5).unwrap();
        assert_eq!(kept, [1, 5].map(report));
        metrics.append(&report(6)).unwrap();
        assert_eq!(read(&path).unwrap(), [1, 5, 6].map(report));
    }

    #[test]
    fn damaged_files_are_cut_before_the_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        let good = format!("{HEADER}\n{}", report(1).line());
        for bad in ["2,1\n", "2,20,0.5", "1,1,1,1,1,1,1\n", "0,1,1,1,1,1,1\n", "\u{fffd}\n"] {
            std::fs::write(&path, format!("{good}{bad}")).unwrap();
            let (before, damage) = read_or_damage(&path);
            assert_eq!(before, [report(1)]);
            assert!(damage.as_ref().unwrap().contains("line 3"), "{damage:?}");
            let (_, kept) = Metrics::reopen(&path, 9).unwrap();
            assert_eq!(kept, [report(1)]);
            assert_eq!(read_or_damage(&path), (kept, None));
            assert_eq!(std::fs::read_to_string(&path).unwrap(), good);
        }
        for text in ["", "nonsense\n"] {
            std::fs::write(&path, text).unwrap();
            assert!(Metrics::reopen(&path, 9).unwrap().1.is_empty());
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{HEADER}\n"));
        }
    }
}

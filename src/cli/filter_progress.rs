//! The course of a filter on stderr: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::filter::run::{Row, Watcher};
use crate::train::{EpochReport, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use super::logging::BARS;
use super::progress::duration;

/// Plain lines within a step are at least this far apart.
const BETWEEN_LINES: Duration = Duration::from_secs(30);

/// Shows a filter.
pub(super) struct Shown {
    quiet: bool,
    bar: Option<ProgressBar>,
    folder: Option<PathBuf>,
    /// Number of the step, of so many.
    step: [u32; 2],
    /// Steps done since the beginning, and when that was.
    done: u32,
    begun: Instant,
    last_line: Instant,
}

impl Shown {
    pub(super) fn new(quiet: bool) -> Self {
        let now = Instant::now();
        Self { quiet, bar: None, folder: None, step: [0, 0], done: 0, begun: now, last_line: now }
    }

    /// The folder of the run, once it began.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    /// Takes the bar away.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }

    /// Seconds until the last step is done, if the others take as long as this one, or those before.
    fn left(&self, progress: &Progress) -> f64 {
        let [step, of] = self.step;
        let batch_rows = progress.rows_per_s * progress.eta_s;
        let whole = match self.done {
            0 if progress.steps > progress.step => {
                let rows = batch_rows / (progress.steps - progress.step) as f64 * progress.steps as f64;
                rows / progress.rows_per_s
            }
            0 => self.begun.elapsed().as_secs_f64(),
            done => self.begun.elapsed().as_secs_f64() / f64::from(done + 1),
        };
        progress.eta_s + whole * f64::from(of.saturating_sub(step))
    }
}

impl Watcher for Shown {
    fn started(&mut self, folder: &Path, step: u32, of: u32) {
        self.folder = Some(folder.into());
        tracing::info!("folder: {}", folder.display());
        if step > 0 {
            tracing::info!("going on after step {step} of {of}");
        }
        self.begun = Instant::now();
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = BARS.add(ProgressBar::new(1));
        let style = ProgressStyle::with_template("{prefix} {wide_bar:.cyan/blue} {msg}");
        // The template is a constant; if it were wrong, the plain bar would do.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar = Some(bar);
    }

    fn step(&mut self, step: u32, of: u32) {
        self.step = [step, of];
        if let Some(bar) = &self.bar {
            bar.set_prefix(format!("step {step}/{of}"));
            bar.set_message("simulating");
            bar.set_position(0);
        }
    }

    fn progress(&mut self, progress: &Progress) {
        let Some(bar) = &self.bar else { return };
        bar.set_length(progress.steps);
        bar.set_position(progress.step);
        let loss = progress.loss.map_or(String::new(), |loss| format!("loss {loss:.4}  "));
        let (epoch, epochs) = (progress.epoch, progress.epochs);
        bar.set_message(format!("epoch {epoch}/{epochs}  {loss}{} left", duration(self.left(progress))));
    }

    fn epoch(&mut self, report: &EpochReport, progress: &Progress) {
        self.progress(progress);
        if self.bar.is_some() || self.last_line.elapsed() < BETWEEN_LINES {
            return;
        }
        self.last_line = Instant::now();
        let [step, of] = self.step;
        let loss = report.validation_loss.unwrap_or(report.train_loss);
        tracing::info!(
            "step {step}/{of}  epoch {}/{}  loss {loss:.4}  {} left",
            report.epoch,
            progress.epochs,
            duration(self.left(progress))
        );
    }

    fn done(&mut self, row: &Row, names: &[String]) {
        /// Columns that a line has room for.
        const COLUMNS: usize = 6;
        self.done += 1;
        self.last_line = Instant::now();
        let [step, of] = self.step;
        let columns = row.columns.iter().zip(names).take(COLUMNS);
        let columns: Vec<_> = columns
            .map(|(column, name)| format!("{name} {} ± {}", brief(column.mean), brief(column.deviation)))
            .collect();
        let more = if row.columns.len() > COLUMNS { "  ..." } else { "" };
        tracing::info!("step {step}/{of}  {}{more}  {}", columns.join("  "), duration(row.seconds));
    }

    fn warning(&mut self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// A number in few characters.
fn brief(value: f64) -> String {
    let is_plain = value == 0.0 || !value.is_finite() || (1e-3..1e6).contains(&value.abs());
    if is_plain { format!("{value:.4}") } else { format!("{value:.2e}") }
}

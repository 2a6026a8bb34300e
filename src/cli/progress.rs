//! The course of a training on stderr: a bar on a terminal, plain lines otherwise.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::counted::counted;
use crate::train::run::{Observer, Start};
use crate::train::{EpochReport, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use super::interrupt;
use super::logging::BARS;

/// Plain lines are at least this far apart, so that a training of many short epochs stays readable.
const BETWEEN_LINES: Duration = Duration::from_secs(1);

/// Shows a training.
pub(super) struct Shown {
    quiet: bool,
    bar: Option<ProgressBar>,
    last_line: Option<Instant>,
    ll: Option<f64>,
    /// The columns of a table, or of a UCI data set, of whose rows the whole density is of interest.
    columns: Option<usize>,
    /// The run folder, when it is known.
    pub(super) folder: Option<PathBuf>,
}

impl Shown {
    pub(super) fn new(quiet: bool) -> Self {
        Self { quiet, bar: None, last_line: None, ll: None, columns: None, folder: None }
    }

    /// What is told of the last LL.
    pub(super) fn score(&self, ll: f64) -> String {
        match self.columns {
            Some(columns) => {
                let density = columns as f64 * (ll - 0.5 * std::f64::consts::TAU.ln());
                format!("mean log-density {density:.4} nats per row (LL {ll:.4} per column without its constant)")
            }
            None => format!("LL {ll:.4} nats per column without its constant"),
        }
    }

    /// Puts up the bar, on a terminal.
    pub(super) fn show_bar(&mut self, start: &Start<'_>) {
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let steps = start.config.train.epochs * start.config.training().batches();
        let bar = BARS.add(ProgressBar::new(steps).with_position(start.position.step));
        let style = ProgressStyle::with_template("{prefix} {wide_bar:.cyan/blue} {pos}/{len}  {msg}");
        // The template is a constant; if it were wrong, the plain bar would do.
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        self.bar = Some(bar);
    }

    /// Takes the bar away.
    pub(super) fn finish(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

impl Observer for Shown {
    fn saved(&mut self) {
        interrupt::nothing_to_save();
    }

    fn started(&mut self, start: &Start<'_>) {
        self.folder = Some(start.folder.into());
        let (spec, train) = (start.flow.spec(), start.config.training());
        let info = start.flow.engine().info();
        let depth = spec.depth;
        let is_simulated = start.config.data.preset.is_some_and(|preset| preset.uci().is_none());
        self.columns = (!is_simulated).then_some(start.data.dim);
        match info.backend.as_str() {
            "native" => tracing::info!("device: {}", info.name),
            backend => tracing::info!("device: {} ({backend}, {})", info.name, info.kind),
        }
        tracing::info!(
            "data:   {}, {}{}, {}, {} held out{}",
            start.data.name,
            counted(start.data.dim, "column"),
            match start.data.cond_dim {
                0 => String::new(),
                c => format!(" given {}", counted(c, "condition")),
            },
            counted(start.data.train_rows(), "training row"),
            start.data.test_rows(),
            if self.columns.is_some() && start.data.found.is_empty() { "; no problem found in them" } else { "" }
        );
        tracing::info!(
            "model:  {}: {} of width {}, recursion depth {depth}",
            counted(start.flow.parameters(), "parameter"),
            counted(spec.blocks, "block"),
            spec.width
        );
        tracing::info!(
            "train:  {} of {} of {}, seed {}",
            counted(train.epochs, "epoch"),
            counted(train.batches(), "batch"),
            counted(train.batch(), "row"),
            train.seed
        );
        tracing::info!("folder: {}", start.folder.display());
        if start.position.step > 0 {
            tracing::info!("going on after step {} (epoch {})", start.position.step, start.position.epoch + 1);
        }
        self.show_bar(start);
    }

    fn progress(&mut self, p: &Progress) {
        let Some(bar) = &self.bar else { return };
        // A training that stops early has fewer steps than it began with.
        bar.set_length(p.steps);
        bar.set_position(p.step);
        bar.set_prefix(format!("epoch {}/{}", p.epoch, p.epochs));
        let loss = p.loss.map_or(String::new(), |loss| format!("loss {loss:.4}  "));
        let ll = self.ll.map_or(String::new(), |ll| format!("LL {ll:.4}  "));
        bar.set_message(format!("{loss}{ll}{}  {} left", rate(p.rows_per_s), duration(p.eta_s)));
    }

    fn epoch(&mut self, r: &EpochReport, p: &Progress) {
        self.ll = r.ll;
        self.progress(p);
        let due = self.last_line.is_none_or(|last| last.elapsed() >= BETWEEN_LINES) || p.step == p.steps;
        if self.bar.is_some() || !due {
            return;
        }
        self.last_line = Some(Instant::now());
        let held_out = match (r.validation_loss, r.ll) {
            (Some(test), Some(ll)) => format!("  test {test:.4}  LL {ll:.4}"),
            _ => String::new(),
        };
        tracing::info!(
            "epoch {}/{}  step {}/{}  train {:.4}{held_out}  lr {:.2e}  {}  {} left",
            r.epoch,
            p.epochs,
            p.step,
            p.steps,
            r.train_loss,
            r.learning_rate,
            rate(r.rows_per_s),
            duration(p.eta_s)
        );
    }

    fn note(&mut self, text: &str) {
        tracing::info!("{text}");
    }

    fn warning(&mut self, text: &str) {
        tracing::warn!("{text}");
    }
}

fn rate(rows_per_s: f64) -> String {
    match rows_per_s {
        r if r >= 1e6 => format!("{:.2}M rows/s", r / 1e6),
        r if r >= 1e4 => format!("{:.0}k rows/s", r / 1e3),
        r => format!("{r:.0} rows/s"),
    }
}

/// `1:02:03`, `2:03`.
pub(super) fn duration(seconds: f64) -> String {
    if !seconds.is_finite() {
        return "?".into();
    }
    let s = seconds.round() as u64;
    let (h, m, s) = (s / 3600, s / 60 % 60, s % 60);
    if h > 0 { format!("{h}:{m:02}:{s:02}") } else { format!("{m}:{s:02}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([0.4, 61.0, 3723.0, f64::NAN].map(duration), ["0:00", "1:01", "1:02:03", "?"]);
        assert_eq!([12.3, 23_456.0, 1.5e6].map(rate), ["12 rows/s", "23k rows/s", "1.50M rows/s"]);
    }
}

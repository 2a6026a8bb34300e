//! `hintflow reproduce`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use crate::Result;
use crate::paper::{self, Item, Request, Watcher};
use crate::train::run::{Observer, Start};
use crate::train::{EpochReport, Progress};
use clap::{Args, ValueEnum};
use indicatif::ProgressBar;

use super::device::DeviceArgs;
use super::logging::BARS;
use super::progress::Shown;
use super::{Done, interrupt, output};

/// Size of trainings and measurements.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Scale {
    /// Everything in small: short trainings, few draws
    Quick,
    /// The paper's settings
    Paper,
}

impl From<Scale> for paper::Scale {
    fn from(scale: Scale) -> Self {
        match scale {
            Scale::Quick => Self::Quick,
            Scale::Paper => Self::Paper,
        }
    }
}

const EXAMPLES: &str = "\
Tables are written as .md and .csv, the paper's numbers beside ours, figures as
.png and .svg, and README.md in the folder shows all; stdout carries its path.
Given again, the command goes on where it was stopped: what is trained is not
trained again.

Examples:
  hintflow reproduce all
      everything in small
  hintflow reproduce lens_unconditional --scale paper
      four models, three trainings of each
  hintflow reproduce cross_unconditional --scale paper --only rnvp-4,recursive-4
      some models of a table
  hintflow reproduce uci --scale paper --uci ~/maf/data
      from the unpacked archive of the MAF paper";

/// Train, measure and write the tables and figures of the paper
#[derive(Args)]
#[command(after_help = EXAMPLES, after_long_help = long_help())]
pub(super) struct Reproduce {
    /// Tables and figures, or `all`; --help lists them
    #[arg(value_name = "NAME", required = true)]
    names: Vec<String>,
    /// Size of trainings and measurements
    #[arg(long, value_enum, default_value_t = Scale::Quick)]
    scale: Scale,
    /// Trainings of each model of a table, with seeds 1, 2, ... [default: 3; quick: 1]
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// Folder [default: reproduction; quick: reproduction-quick]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder with the files of POWER, GAS and MINIBOONE, for the table `uci`
    #[arg(long, value_name = "DIR")]
    uci: Option<PathBuf>,
    /// Train only models with one of these parts in their names: rnvp-4,hint
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// A setting of every training, on top of the experiments' own; may be repeated. Settings in the environment have no effect
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    #[command(flatten)]
    device: DeviceArgs,
}

fn long_help() -> String {
    let list = |tables: bool| -> Vec<String> {
        let items = Item::all().into_iter().filter(|item| item.is_table() == tables);
        items.map(|item| format!("  {:<20} {}", item.name(), item.title())).collect()
    };
    format!("{EXAMPLES}\n\nTables:\n{}\n\nFigures:\n{}", list(true).join("\n"), list(false).join("\n"))
}

impl Reproduce {
    pub(super) fn run(self, quiet: bool) -> Done {
        let items = self.items()?;
        let scale = paper::Scale::from(self.scale);
        let out = self.out.clone().unwrap_or_else(|| scale.folder().into());
        let runs = self.runs.unwrap_or(scale.runs());
        let engine = self.device.open()?;
        interrupt::listen();
        let command: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let only: Vec<String> = self.only.iter().map(|part| part.trim().to_owned()).collect();
        let request = Request {
            items: &items,
            scale,
            runs,
            out: &out,
            uci: self.uci.as_deref(),
            only: &only,
            set: &self.set,
            command: &command,
            stop: &interrupt::STOP,
        };
        let mut watcher = Shower::new(quiet);
        let report = paper::reproduce(&request, &engine, &mut watcher);
        watcher.clear();
        let report = report?;
        if !report.finished {
            tracing::warn!("stopped; the same command goes on");
            return Ok(interrupt::EXIT_CODE);
        }
        if let Some(page) = report.written.last() {
            output::line(&page.display().to_string())?;
        }
        // They were warned of as they were met.
        Ok(if report.unreadable.is_empty() { 0 } else { 1 })
    }

    fn items(&self) -> Result<Vec<Item>> {
        let (all, names): (Vec<_>, Vec<_>) = self.names.iter().partition(|name| *name == "all");
        let named = names.into_iter().map(|name| Item::named(name)).collect::<Result<Vec<_>>>()?;
        Ok(if all.is_empty() { named } else { Item::all() })
    }
}

/// Shows how it goes: of trainings their bars, warnings and ends.
struct Shower {
    training: Quiet,
    measuring: Option<ProgressBar>,
    model: String,
    quiet: bool,
}

impl Shower {
    fn new(quiet: bool) -> Self {
        Self { training: Quiet::new("", quiet), measuring: None, model: String::new(), quiet }
    }

    fn clear(&mut self) {
        self.training.shown.finish();
        if let Some(bar) = self.measuring.take() {
            bar.finish_and_clear();
        }
    }
}

impl Watcher for Shower {
    fn table(&mut self, name: &str, done: usize, of: usize) {
        match (done, of) {
            (_, 0) => {}
            _ => tracing::info!("{name}: {done} of {of} runs measured already"),
        }
    }

    fn model(&mut self, name: &str, place: Option<(usize, usize)>) {
        self.clear();
        self.model = name.to_owned();
        match place {
            Some((number, of)) => tracing::info!("{name} ({number} of {of})"),
            None => tracing::info!("{name}"),
        }
    }

    fn observer(&mut self) -> &mut dyn Observer {
        self.clear();
        self.training = Quiet::new(&self.model, self.quiet);
        &mut self.training
    }

    fn measuring(&mut self, what: &str) {
        self.training.shown.finish();
        tracing::debug!("{}: {what}", self.model);
        if self.quiet || !std::io::stderr().is_terminal() {
            return;
        }
        let bar = self.measuring.get_or_insert_with(|| BARS.add(ProgressBar::new_spinner()));
        bar.set_message(format!("{}: {what}", self.model));
        bar.tick();
    }

    fn wrote(&mut self, path: &Path) {
        self.clear();
        tracing::info!("wrote {}", path.display());
    }

    fn warning(&mut self, text: &str) {
        tracing::warn!("{text}");
    }
}

/// A training among many: its bar, its warnings, and how it ended.
struct Quiet {
    shown: Shown,
    model: String,
}

impl Quiet {
    fn new(model: &str, quiet: bool) -> Self {
        Self { shown: Shown::new(quiet), model: model.to_owned() }
    }
}

impl Observer for Quiet {
    fn started(&mut self, start: &Start<'_>) {
        if start.position.step > 0 {
            tracing::info!("{} goes on after step {}", self.model, start.position.step);
        }
        self.shown.show_bar(start);
    }

    fn progress(&mut self, progress: &Progress) {
        self.shown.progress(progress);
    }

    fn epoch(&mut self, report: &EpochReport, progress: &Progress) {
        if progress.step == progress.steps || interrupt::STOP.load(Ordering::Relaxed) {
            self.shown.epoch(report, progress);
        }
    }

    fn note(&mut self, text: &str) {
        tracing::debug!("{text}");
    }

    fn warning(&mut self, text: &str) {
        tracing::warn!("{}: {text}", self.model);
    }
}

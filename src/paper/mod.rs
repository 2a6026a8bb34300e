//! The paper's experiments as rows of one table: every table and figure by its name, trained, measured and written
//! beside the paper's numbers.
//!
//! `model` says which models there are and with which settings each is trained, `table` which tables they make,
//! `figure` which figures, `published` what the paper reports. [`reproduce`] trains what is not trained, measures what
//! is not measured, and writes:
//!
//! ```text
//! OUT/README.md             all tables and figures
//! OUT/tables/NAME.md .csv
//! OUT/figures/NAME.md .png .svg
//! OUT/results/MODEL-sRUN.json   what was measured; small, worth keeping
//! OUT/runs/MODEL-sRUN/          run folders, as `hintflow train` leaves them
//! OUT/abc/                      accepted draws of approximate Bayesian computation
//! ```
//!
//! What is there already is not made again: a result needs no run folder, a finished run folder no training, an
//! interrupted one goes on. So the same command, given again, finishes what was stopped.

mod figure;
mod filtering;
mod lab;
mod model;
mod page;
mod published;
mod result;
mod scale;
mod table;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

pub(crate) use model::{Family, Model, Size};
pub(crate) use scale::Scale;

use crate::atomic::{Overwrite, write_atomic};
use crate::config::Preset;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::train::run::Observer;
use lab::Lab;

/// A table or a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item(Place);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In `table::all`.
    Table(usize),
    /// In `figure::ALL`.
    Figure(usize),
    /// The experiment of `filtering`.
    Filtering,
}

impl Item {
    /// Every table, every figure, and the filter.
    pub(crate) fn all() -> Vec<Self> {
        let figures = (0..figure::ALL.len()).map(Place::Figure);
        (0..table::all().len()).map(Place::Table).chain(figures).chain([Place::Filtering]).map(Self).collect()
    }

    /// The item of that name.
    ///
    /// # Errors
    /// [`Error::Config`] naming those alike, or all there are.
    pub(crate) fn named(name: &str) -> Result<Self> {
        Self::all().into_iter().find(|item| item.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::all().into_iter().map(Self::name).collect();
            let wanted = name.to_lowercase().replace('-', "_");
            let alike: Vec<_> = names.iter().copied().filter(|own| own.contains(&wanted)).collect();
            let there = match alike.is_empty() {
                true => format!("there are: all, {}", names.join(", ")),
                false => format!("is one of these meant: {}? --help lists all", alike.join(", ")),
            };
            Error::config("NAME", format!("`{name}` is no table or figure of the paper; {there}"))
        })
    }

    /// Its name on the command line and of its files.
    pub(crate) fn name(self) -> &'static str {
        match self.0 {
            Place::Table(index) => table::all()[index].name,
            Place::Figure(index) => figure::ALL[index].name,
            Place::Filtering => filtering::NAME,
        }
    }

    /// What it is.
    pub(crate) fn title(self) -> &'static str {
        match self.0 {
            Place::Table(index) => table::all()[index].title,
            Place::Figure(index) => figure::ALL[index].title,
            Place::Filtering => filtering::TITLE,
        }
    }

    /// Whether it is a table.
    pub(crate) fn is_table(self) -> bool {
        matches!(self.0, Place::Table(_))
    }
}

/// What is to be reproduced, and how.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Request<'a> {
    /// Tables and figures.
    pub items: &'a [Item],
    /// Size of trainings and of measurements.
    pub scale: Scale,
    /// Training runs of each model of a table, with seeds 1, 2, ...
    pub runs: u64,
    /// The folder OUT.
    pub out: &'a Path,
    /// The folder that holds the files of the UCI data sets; their rows are left out without it.
    pub uci: Option<&'a Path>,
    /// Only models whose name has one of these parts, whole words between dashes, are trained; none: all. Rows of
    /// others show what was measured before.
    pub only: &'a [String],
    /// Settings of every training besides those of the experiments, as `key=value`. What tells models and runs apart
    /// cannot be set.
    pub set: &'a [String],
    /// The command line, for the manifests of the runs.
    pub command: &'a [String],
    /// Set from elsewhere: finish the step, save, and stop.
    pub stop: &'a AtomicBool,
}

/// Is told how it goes.
pub(crate) trait Watcher {
    /// Work on a table begins: its name, how many of its runs are measured already, and how many are asked for and have
    /// their data.
    fn table(&mut self, name: &str, done: usize, of: usize);
    /// Work on a model begins: its name with the run; for a table, its number and how many there are.
    fn model(&mut self, name: &str, place: Option<(usize, usize)>);
    /// Hears of a training.
    fn observer(&mut self) -> &mut dyn Observer;
    /// A part of a measurement begins or goes on.
    fn measuring(&mut self, what: &str);
    /// A table, figure or page was written.
    fn wrote(&mut self, path: &Path);
    /// Something that the user should know.
    fn warning(&mut self, text: &str);
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Report {
    /// Whether it came to its end; otherwise it was stopped, and goes on when it is asked for again.
    pub finished: bool,
    /// UCI data sets whose files cannot be read, of which nothing more was measured.
    pub unreadable: Vec<&'static str>,
    /// Tables, figures and the page that were written, without their extensions where there are several.
    pub written: Vec<PathBuf>,
}

/// Trains, measures and writes what is asked for.
///
/// # Errors
/// [`Error::Config`] if `uci` or `out` is no folder or `out` is a run folder, where no run is asked for or more than
/// 1,000, where no model has a part of a name that is asked for, and where `set` has a key that tells models or runs
/// apart; [`Error::Format`] if the folder holds runs or results with other settings, those of training and
/// measuring. A training that diverges is no error but a result.
pub(crate) fn reproduce(request: &Request<'_>, engine: &Engine, watcher: &mut dyn Watcher) -> Result<Report> {
    const MOST_RUNS: u64 = 1000;
    if !(1..=MOST_RUNS).contains(&request.runs) {
        return Err(Error::config("--runs", format!("is {}, must be from 1 to {MOST_RUNS}", request.runs)));
    }
    let tables = table::all();
    check_folders(request)?;
    check_only(request, &tables)?;
    check_set(request, &tables)?;
    let mut lab = Lab::new(request, engine, watcher)?;
    let mut written = Vec::new();
    for &item in request.items {
        let path = match item.0 {
            Place::Table(index) => Some(table_of(&mut lab, &tables[index])?),
            Place::Figure(index) => figure_of(&mut lab, &figure::ALL[index])?,
            Place::Filtering => filtering::make(&mut lab)?,
        };
        if let Some(path) = path {
            lab.watcher.wrote(&path);
            written.push(path);
        }
        if lab.stopped() {
            break;
        }
    }
    if !written.is_empty() {
        let path = page::write(request.out)?;
        lab.watcher.wrote(&path);
        written.push(path);
    }
    Ok(Report { finished: !lab.stopped(), unreadable: lab.unreadable().collect(), written })
}

/// The models of everything that is asked for.
fn models(request: &Request<'_>, tables: &[table::Table]) -> Vec<Model> {
    let of = |item: &Item| match item.0 {
        Place::Table(index) => tables[index].rows.iter().map(|row| row.model).collect(),
        Place::Figure(index) => (figure::ALL[index].models)(),
        Place::Filtering => Vec::new(),
    };
    request.items.iter().flat_map(of).collect()
}

/// Every part of `--only` is one of the name of some model that is asked for.
fn check_only(request: &Request<'_>, tables: &[table::Table]) -> Result<()> {
    let mut known: Vec<String> = models(request, tables).iter().map(Model::name).collect();
    known.sort();
    known.dedup();
    match request.only.iter().find(|part| !known.iter().any(|name| lab::has_part(name, part))) {
        None => Ok(()),
        Some(part) => {
            let there = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            let what = format!("`{part}` is no part of the name of a model here; there are {there}");
            Err(Error::config("--only", what))
        }
    }
}

/// Folders are folders, and that of the results no training's own.
fn check_folders(request: &Request<'_>) -> Result<()> {
    let Request { uci, out, .. } = request;
    if let Some(uci) = uci.filter(|uci| !uci.is_dir()) {
        return Err(Error::config("--uci", format!("{} is no folder", uci.display())));
    }
    if out.exists() && !out.is_dir() {
        return Err(Error::config("--out", format!("{} is a file, must be a folder", out.display())));
    }
    if out.join("config.toml").is_file() {
        let what = format!("{} is the run folder of a training; choose a folder of its own", out.display());
        return Err(Error::config("--out", what));
    }
    Ok(())
}

/// Settings are right, and those that tell models and runs apart are the experiment's.
fn check_set(request: &Request<'_>, tables: &[table::Table]) -> Result<()> {
    const FIXED: [&str; 10] = [
        "data.preset",
        "data.path",
        "model.kind",
        "model.blocks",
        "model.depth",
        "model.width",
        "model.budget",
        "model.mix_first",
        "model.init",
        "train.seed",
    ];
    let key = |assignment: &String| assignment.split('=').next().unwrap_or_default().trim().to_owned();
    match request.set.iter().map(key).find(|key| key.starts_with("run.") || FIXED.contains(&key.as_str())) {
        None => {
            // Of every model, before one is trained; figures of shapes alone have the outlines of Lens models.
            let lens = Model::new(Preset::Lens, Family::RealNvp, 1);
            let all = models(request, tables);
            let all = if all.is_empty() { vec![lens] } else { all };
            all.iter().try_for_each(|model| {
                let path = model.data.uci().map(|_| Path::new("."));
                model.settings(request.scale, 1, path, request.set).map(|_| ())
            })
        }
        Some(key) if key.starts_with("run.") => {
            let what = format!("`{key}` has no effect here; --out and --device say where and on what");
            Err(Error::config("--set", what))
        }
        Some(key) => Err(Error::config("--set", format!("`{key}` is the experiment's own; leave it out"))),
    }
}

/// Measures the models of a table, and writes it as it stands after each.
fn table_of(lab: &mut Lab<'_>, table: &table::Table) -> Result<PathBuf> {
    let models = || table.rows.iter().map(|row| &row.model);
    let (left, asked) = lab.left(models())?;
    lab.watcher.table(table.name, asked - left.len(), asked);
    lab.warn_of_missing(models());
    let mut path = table::write(lab, table)?;
    for (number, (model, run)) in left.iter().enumerate() {
        if lab.stopped() {
            break;
        }
        if lab.why_unreadable(model).is_some() {
            continue;
        }
        lab.watcher.model(&lab::run_name(model, *run), Some((number + 1, left.len())));
        lab.measure_if_readable(model, *run)?;
        path = table::write(lab, table)?;
        page::write(lab.request.out)?;
    }
    Ok(path)
}

/// Draws a figure with its text beside it, where its models are there.
fn figure_of(lab: &mut Lab<'_>, figure: &figure::Figure) -> Result<Option<PathBuf>> {
    let folder = lab.request.out.join("figures");
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    let path = folder.join(figure.name);
    let models = (figure.models)();
    if !(figure.draw)(lab, &models, &path)? {
        return Ok(None);
    }
    let figure::Figure { name, title, caption, note, .. } = figure;
    let mut text = format!("# {title}\n\n![{name}]({name}.png)\n\n{caption}\n");
    if !note.is_empty() {
        let _ = write!(text, "\n{note}\n");
    }
    match settings_in_words(lab.request) {
        settings if !models.is_empty() => text += &format!("\n{settings}\n"),
        // Their shapes may be others.
        _ if !lab.request.set.is_empty() => text += &format!("\nSet: {}.\n", lab.request.set.join(", ")),
        _ => {}
    }
    write_atomic(&path.with_extension("md"), Overwrite::Yes, |file| file.write_all(text.as_bytes()))?;
    Ok(Some(path))
}

/// Scale and other settings of a request.
fn settings_in_words(request: &Request<'_>) -> String {
    let set = match request.set {
        [] => String::new(),
        set => format!(" Set besides: {}.", set.join(", ")),
    };
    format!("Scale `{}`: {}.{set}", request.scale.name(), request.scale.in_words())
}

#[cfg(test)]
mod tests;

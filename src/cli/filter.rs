//! `hintflow filter`

use std::path::{Path, PathBuf};

use crate::data::Table;
use crate::data::columns::units::Bounds;
use crate::data::lotka_volterra::{LotkaVolterra, STEPS};
use crate::engine::Engine;
use crate::filter::external::{Command, Format};
use crate::filter::run::{
    self, ColumnSettings, MethodSettings, Options, Outcome, Series, Settings, SystemSettings, timeout,
};
use crate::filter::simulated::{outside, shown};
use crate::filter::update::Update;
use crate::filter::{Draws, HintSettings, Method};
use crate::train::folder::RunFolder;
use crate::{Error, Overwrite, Result};
use clap::{Args, ValueEnum};

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::model::note;
use super::simulate::{Begin, Noises};
use super::{Done, filter_progress::Shown, interrupt, output};

const AFTER_HELP: &str = "\
Examples:
  hintflow filter lotka-volterra                      the paper's experiment: HINT, ten steps (25 minutes on two cores)
  hintflow filter lotka-volterra --quick              the same in small (a minute)
  hintflow filter lotka-volterra --method particle    the truth to compare with: 10^6 particles
  hintflow filter --simulator \"python3 my_system.py\" --observations observations.csv
  hintflow filter --resume runs/RUN                   go on after Ctrl-C, a crash, or a simulator that failed

A simulator is run once a step. HINTFLOW_STEP in its environment is the number of the step, HINTFLOW_ROWS that of the
rows, HINTFLOW_SEED a seed. It reads a .npy array of states (rows, N) from standard input and writes one of next states
and their observations (rows, N + C) to standard output; at step 0 it writes states at the beginning (rows, N) alone.
docs/filtering.md has the protocol and an example.

The run folder has one line for each step in steps.csv, samples of each posterior in samples, pictures in plots; stdout
carries its name.";

/// Systems that the program knows.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum System {
    /// The paper's four competing species, three of them observed
    LotkaVolterra,
}

/// Ways to filter.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Name {
    /// A flow learns simulated states and observations, and its posterior is sampled
    Hint,
    /// The same with an INN (Ardizzone et al. 2018), the paper's baseline
    Inn,
    /// The ensemble Kalman filter
    Enkf,
    /// A particle filter, of systems whose likelihood is known
    Particle,
}

/// Arrays of a simulator.
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(super) enum Arrays {
    /// NumPy's binary format
    #[default]
    Npy,
    /// Lines of numbers with commas
    Csv,
}

impl From<Arrays> for Format {
    fn from(arrays: Arrays) -> Self {
        match arrays {
            Arrays::Npy => Self::Npy,
            Arrays::Csv => Self::Csv,
        }
    }
}

/// Filter observations over time: samples of the posterior of the state after each
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Filter {
    /// A system that is built in
    #[arg(value_name = "SYSTEM", required_unless_present_any = ["simulator", "resume"])]
    system: Option<System>,
    /// Go on with the filter in this folder
    #[arg(long, value_name = "DIR", conflicts_with_all = ["system", "simulator", "observations", "truth", "method", "samples", "quick", "cold", "set", "steps", "start", "initial", "names", "lower", "upper", "format", "out", "seed", "force"])]
    resume: Option<PathBuf>,

    /// What was observed, a row for each step [default of a built-in system: simulated]
    #[arg(long, value_name = "FILE")]
    observations: Option<PathBuf>,
    /// The true states, a row for each step, to be compared with
    #[arg(long, value_name = "FILE", requires = "observations")]
    truth: Option<PathBuf>,
    /// How to filter
    #[arg(long, value_enum, default_value_t = Name::Hint)]
    method: Name,
    /// Simulations of a step to train on, members of an ensemble, or particles [default: 64000; particles: 1000000]
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,

    /// A tenth of the weights, fewer simulations and epochs
    #[arg(long, help_heading = "HINT and INN")]
    quick: bool,
    /// Begin every step with new weights, not with those of the step before
    #[arg(long, help_heading = "HINT and INN")]
    cold: bool,
    /// A setting of the model or its training, as of `train`; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "HINT and INN")]
    set: Vec<String>,

    /// Steps of the simulated series
    #[arg(long, value_name = "N", default_value_t = STEPS, conflicts_with = "observations", help_heading = "Built-in system")]
    steps: usize,
    /// Where the simulated series begins
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Begin::Paper, conflicts_with = "observations", help_heading = "Built-in system")]
    start: Begin,
    #[command(flatten, next_help_heading = "Built-in system")]
    noises: Noises,

    /// A command that moves states on and observes them, for the shell
    #[arg(
        long,
        value_name = "COMMAND",
        conflicts_with = "system",
        requires = "observations",
        help_heading = "Your own system"
    )]
    simulator: Option<String>,
    /// States at the beginning, a row each [default: the simulator writes them]
    #[arg(long, value_name = "FILE", requires = "simulator", help_heading = "Your own system")]
    initial: Option<PathBuf>,
    /// Names of the columns of a state [default: those of --initial, else x1, x2, ...]
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "simulator", help_heading = "Your own system")]
    names: Vec<String>,
    /// All values of a column of the state are greater than this: x1=0; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "simulator", help_heading = "Your own system")]
    lower: Vec<String>,
    /// All values of a column of the state are less than this; may be repeated
    #[arg(long, value_name = "NAME=VALUE", requires = "simulator", help_heading = "Your own system")]
    upper: Vec<String>,
    /// Arrays that the simulator reads and writes
    #[arg(long, value_enum, default_value_t = Arrays::Npy, requires = "simulator", help_heading = "Your own system")]
    format: Arrays,
    /// Seconds that a call of the simulator may take
    #[arg(long, value_name = "SECONDS", default_value_t = 600.0, help_heading = "Your own system")]
    timeout: f64,

    /// Run folder [default: a new one, runs/DATE_NAME_sSEED]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Use a run folder that is not empty; an earlier run in it is replaced, other files stay
    #[arg(long, help_heading = "Output")]
    force: bool,
    /// Batches between checkpoints of a training [default: at the end of an epoch, at most one in ten seconds]
    #[arg(long, value_name = "N", help_heading = "Output")]
    checkpoint_every: Option<u64>,

    #[command(flatten)]
    layout: LayoutArgs,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Filter {
    pub(super) fn run(self, quiet: bool) -> Done {
        let engine = self.device.open()?;
        interrupt::listen();
        let mut shown = Shown::new(quiet);
        let options = Options {
            out: self.out.as_deref(),
            overwrite: Overwrite::allowed_if(self.force),
            stop: &interrupt::STOP,
            checkpoint_every: self.checkpoint_every.filter(|&every| every > 0),
        };
        let outcome = match &self.resume {
            Some(folder) => {
                let settings = self.settings_of(folder)?;
                run::resume(folder, &settings, &engine, options, &mut shown)
            }
            None => self.begin(&engine, options, &mut shown),
        };
        shown.finish();
        let Outcome { folder, finished, rows } = match outcome {
            Err(Error::Stopped) => return Ok(interrupt::EXIT_CODE),
            // A step that failed leaves what can be gone on with. The settings of a flow stay as they are.
            Err(error @ (Error::Simulator { .. } | Error::Io { .. })) => {
                if let Some(folder) = shown.folder() {
                    tracing::warn!("go on, after that is mended, with: hintflow filter --resume {}", folder.display());
                }
                return Err(error.into());
            }
            outcome => outcome?,
        };
        if !finished {
            let done = rows.len();
            tracing::warn!("stopped after step {done}; go on with: hintflow filter --resume {}", folder.display());
            return Ok(interrupt::EXIT_CODE);
        }
        output::line(&folder.display().to_string())?;
        Ok(0)
    }

    fn begin(&self, engine: &Engine, options: Options<'_>, shown: &mut Shown) -> Result<Outcome> {
        let method = MethodSettings::from(&self.method()?);
        if let Some(out) = options.out {
            RunFolder::check(out, options.overwrite)?;
        }
        // Before anything is simulated.
        let update = method.method().update()?;
        let (system, start, series) = match &self.simulator {
            Some(command) => self.own(command, &*update)?,
            None => self.built_in()?,
        };
        let (version, observations_sha256) = (env!("CARGO_PKG_VERSION").into(), None);
        let settings = Settings { version, seed: self.seed, observations_sha256, method, system };
        run::start(&settings, start, series, engine, options, shown)
    }

    /// The settings of a run that is resumed: the command's timeout may be another one.
    fn settings_of(&self, folder: &Path) -> Result<Settings> {
        let mut settings = run::settings_of(folder)?;
        if let SystemSettings::Command { timeout_s, .. } = &mut settings.system {
            *timeout_s = timeout_s.max(self.timeout);
        }
        Ok(settings)
    }

    fn method(&self) -> Result<Method> {
        let of_hint = [("--quick", self.quick), ("--cold", self.cold), ("--set", !self.set.is_empty())];
        if !matches!(self.method, Name::Hint | Name::Inn)
            && let Some((option, _)) = of_hint.iter().find(|(_, given)| *given)
        {
            return Err(Error::config(*option, "is of --method hint and inn; leave it out"));
        }
        let method = match self.method {
            name @ (Name::Hint | Name::Inn) => {
                let mut settings = if self.quick { HintSettings::quick() } else { HintSettings::default() };
                if let Some(rows) = self.samples {
                    settings = settings.rows(rows);
                }
                settings.set.extend(self.set.iter().cloned());
                let settings = settings.warm(!self.cold);
                if matches!(name, Name::Inn) { Method::Inn(settings) } else { Method::Hint(settings) }
            }
            Name::Enkf => Method::ensemble_kalman(self.samples.unwrap_or(64_000)),
            Name::Particle => Method::particle(self.samples.unwrap_or(1_000_000)),
        };
        let name = self.method.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        method.update().map(|_| method).map_err(|error| match error {
            // Of the number of rows, by whatever name.
            Error::Argument { what, .. } => Error::config("--samples", format!("{what}, with --method {name}")),
            other => other,
        })
    }

    fn built_in(&self) -> Result<(SystemSettings, Vec<f32>, Series)> {
        let system = self.noises.system()?;
        let LotkaVolterra { process_noise, observation_noise } = system;
        let series = match &self.observations {
            Some(path) => {
                let observations = self.steps_of(path, "an observation", &LotkaVolterra::observation_names(), true)?;
                self.with_truth(observations, path, &LotkaVolterra::names(), true)?
            }
            None => {
                let (truth, observations) =
                    system.series(self.steps, self.seed, self.start.into()).map_err(|error| match error {
                        Error::Argument { what, .. } => Error::config("--steps", what),
                        other => other,
                    })?;
                Series::new(observations, Some(truth))
            }
        };
        Ok((SystemSettings::LotkaVolterra { process_noise, observation_noise }, Vec::new(), series))
    }

    /// A table with a row for each step, and columns of these names: by name if it has all of them, else in their order,
    /// which is told if its names are others and these are not our own.
    fn steps_of(&self, path: &Path, of: &str, names: &[String], are_known: bool) -> Result<Table> {
        let (table, in_file) = Table::read_named(path, names, &self.layout.reading_steps())?;
        note(&table, path);
        let list = |names: &[String]| names.join(", ");
        if table.dim() != names.len() {
            let own = if in_file.is_empty() { String::new() } else { format!(" ({})", list(&in_file)) };
            let (count, plural) = (table.dim(), if table.dim() == 1 { "" } else { "s" });
            let what = format!("has {count} column{plural}{own}; {of} has {} ({})", names.len(), list(names));
            return Err(Error::format(path, what));
        }
        if in_file.is_empty() || in_file == names {
            return Ok(table);
        }
        let path = path.display();
        if table.columns() == names {
            tracing::info!("{path}: of its columns ({}), {} are taken by name", list(&in_file), list(names));
        } else if are_known {
            tracing::warn!(
                "{path}: its columns ({}) are taken for {}, in this order, as not all names are these",
                list(&in_file),
                list(names)
            );
        }
        Ok(table)
    }

    /// A series, with the truth if it was given.
    fn with_truth(&self, observations: Table, path: &Path, names: &[String], are_known: bool) -> Result<Series> {
        let truth = self.truth.as_deref().map(|truth| self.steps_of(truth, "a state", names, are_known)).transpose()?;
        Ok(Series::new(observations, truth).of_files(path, self.truth.as_deref().unwrap_or(path)))
    }

    /// A system behind a command, with states at the beginning.
    fn own(&self, command: &str, update: &dyn Update) -> Result<(SystemSettings, Vec<f32>, Series)> {
        // `clap` asks for both.
        let path = self.observations.as_deref().unwrap_or(Path::new(""));
        let observations = Table::read_with(path, &self.layout.reading_steps())?;
        note(&observations, path);
        let format = Format::from(self.format);
        if matches!(self.method, Name::Particle) {
            let what = "weighs states by their likelihood, which a simulator does not know; take hint or enkf";
            return Err(Error::config("--method particle", what));
        }
        let (start, columns, are_known) = match &self.initial {
            Some(path) => {
                let (table, columns) = self.begin_with(path)?;
                inside(&table, path, &columns, update.takes_bounds())?;
                let are_known = !self.names.is_empty() || !table.columns().is_empty();
                (table.into_values(), columns, are_known)
            }
            None => {
                let timeout = timeout(self.timeout)?;
                let command = Command { text: command.into(), format, timeout, stop: &interrupt::STOP };
                let (start, count) = command.start(Draws::of_ensemble(self.seed, 0), update.members())?;
                (start, self.columns(count, Vec::new())?, !self.names.is_empty())
            }
        };
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        let series = self.with_truth(observations, path, &names, are_known)?;
        let (command, timeout_s) = (command.to_owned(), self.timeout);
        let observations = series.observations.dim();
        Ok((SystemSettings::Command { command, format, timeout_s, columns, observations }, start, series))
    }

    /// States at the beginning from a file, in the order of `--names` if it has all of these.
    fn begin_with(&self, path: &Path) -> Result<(Table, Vec<ColumnSettings>)> {
        let table = Table::read_with(path, &self.layout.reading())?;
        note(&table, path);
        let columns = self.columns(table.dim(), table.columns().to_vec())?;
        let names: Vec<String> = columns.iter().map(|column| column.name.clone()).collect();
        if table.columns().is_empty() || table.columns() == names {
            return Ok((table, columns));
        }
        if names.iter().all(|name| table.columns().contains(name)) {
            return Ok((table.select(&names)?, columns));
        }
        let (path, own) = (path.display(), table.columns().join(", "));
        tracing::warn!(
            "{path}: its columns ({own}) are taken for those of --names, {}, in this order",
            names.join(", ")
        );
        Ok((table, columns))
    }

    /// Names and bounds of the columns of the state.
    fn columns(&self, count: usize, names: Vec<String>) -> Result<Vec<ColumnSettings>> {
        let names = match (self.names.as_slice(), names) {
            ([], names) if names.is_empty() => (1..=count).map(|i| format!("x{i}")).collect(),
            ([], names) => names,
            (given, _) => given.iter().map(|name| name.trim().to_owned()).collect::<Vec<_>>(),
        };
        if names.len() != count {
            let what = format!("has {} names, but a state has {count} columns", names.len());
            return Err(Error::config("--names", what));
        }
        // They stand in names of columns of files.
        let is_bad = |name: &&String| name.is_empty() || name.contains([',', '"']) || name.contains(char::is_control);
        if let Some(name) = names.iter().find(is_bad) {
            let what = format!(
                "`{name}` is no name for a column of the state: it must not be empty, nor hold commas or quotes"
            );
            return Err(Error::config("--names", what));
        }
        if let Some((place, name)) = names.iter().enumerate().find(|(place, name)| names[..*place].contains(name)) {
            return Err(Error::config("--names", format!("`{name}` is the name of column {} too", place + 1)));
        }
        let mut columns: Vec<_> =
            names.iter().map(|name| ColumnSettings { name: name.clone(), ..ColumnSettings::default() }).collect();
        for (option, bounds) in [("--lower", &self.lower), ("--upper", &self.upper)] {
            for bound in bounds {
                let known = bound.rsplit_once('=').and_then(|(name, value)| {
                    let value = value.trim().parse::<f64>().ok().filter(|value| value.is_finite())?;
                    Some((names.iter().position(|own| own == name.trim())?, value))
                });
                let Some((column, value)) = known else {
                    let names = names.join(", ");
                    let what =
                        format!("must be the name of a column of the state ({names}), `=` and a number, is `{bound}`");
                    return Err(Error::config(option, what));
                };
                let place = if option == "--lower" { &mut columns[column].lower } else { &mut columns[column].upper };
                *place = Some(value);
            }
        }
        for ColumnSettings { name, lower, upper } in &columns {
            if let Some(mistake) = (Bounds { lower: *lower, upper: *upper }).mistake() {
                let option = if upper.is_some() { "--upper" } else { "--lower" };
                return Err(Error::config(option, format!("{name}: {mistake}")));
            }
        }
        Ok(columns)
    }
}

/// Whether states at the beginning are inside of the bounds of their columns, or on them if they may be.
fn inside(table: &Table, path: &Path, columns: &[ColumnSettings], on_bounds: bool) -> Result<()> {
    let bounds: Vec<_> = columns.iter().map(|c| Bounds { lower: c.lower, upper: c.upper }).collect();
    let Some((place, must_be)) = outside(table.values(), &bounds, on_bounds) else { return Ok(()) };
    let (row, column) = (place / columns.len(), place % columns.len());
    Err(Error::Cell {
        path: path.into(),
        row: row + 1,
        column: table.file_numbers()[column],
        name: Some(columns[column].name.clone()),
        what: format!("{} must be {must_be}, as --lower and --upper say", shown(table.values()[place])),
    })
}

//! `hintflow train`

use std::path::{Path, PathBuf};

use crate::Overwrite;
use crate::config::{Config, Given, Layers, Preset, Run, keys};
use crate::counted::counted;
use crate::data::files::text::usually_missing;
use crate::data::uci::Uci;
use crate::train::folder::RunFolder;
use crate::train::run::{self, Options};
use crate::{Error, Result};
use clap::{Args, ValueEnum};

use super::device::{self, DeviceArgs};
use super::progress::Shown;
use super::{Done, density, interrupt, output, report};

const AFTER_HELP: &str = "\
Examples:
  hintflow train lens                            the paper's setting: 10^6 rows, 2 blocks, 50 epochs
  hintflow train lens --set data.rows=100000     the same on fewer rows
  hintflow train power --set data.path=FILE      UCI POWER from its file or folder; so with gas, miniboone
  hintflow train cross --set model.kind=hint     the paper's Cross shapes, given observations of each
  hintflow train table.csv --out runs/first      any table of numbers
  hintflow train table.csv --set model.width=128 --set train.epochs=400
  hintflow train --config runs/first/config.toml the same run again
  hintflow train --resume runs/first             go on after Ctrl-C or a crash, to the same bits

Settings: defaults < --config < environment (HINTFLOW_TRAIN__LR=0.001) < flags < --set.
--resume takes them from the run folder. stdout carries one line, the run folder.
`--help` lists all settings, `--dry-run` shows their values.";

const OF_LL: &str = "\
LL in messages and metrics.csv is the mean log-density of the held-out rows in nats, divided by
the number of columns and without the constant -log(2 pi)/2 of each, as in the paper. `log-prob`
reports log-densities of whole rows; their mean is columns * (LL - 0.919). The last words give the median
beside it, the lowest rows by number (of a table, that in the file), how many rows are more than 10 nats below
a Gaussian fitted to the training rows, and how many samples lie far outside of those.";

/// Train a model on a data set of the paper or a table
#[derive(Args)]
#[command(after_help = AFTER_HELP, after_long_help = long_help())]
pub(super) struct Train {
    /// Data set of the paper (lens, cross; power, gas, miniboone with --set data.path=FILE), or a table: .csv, .npy or
    /// text (.txt, .tsv, .dat), one row per sample
    #[arg(value_name = "PRESET|DATA")]
    source: Option<String>,
    /// Go on with the run in this folder; data that has moved: with --set data.path=FILE or data.given=FILE
    #[arg(long, value_name = "DIR", conflicts_with_all = ["source", "given", "on_invalid", "config", "init", "out", "seed", "force", "epochs", "batch", "lr", "memory", "dry_run"])]
    resume: Option<PathBuf>,

    /// Conditions, for --set model.kind=hint or cinn: a table with as many rows, or columns of DATA by name or number
    #[arg(long, value_name = "FILE|LIST")]
    given: Option<String>,
    /// Rows with a value that is missing, NaN or infinite: `drop` leaves them out and counts them (data.missing, with all that
    /// usually stands for one), `stop` names the first [default: stop]
    #[arg(long, value_name = "drop|stop")]
    on_invalid: Option<OnInvalid>,
    /// Settings as TOML, for example the config.toml of an earlier run
    #[arg(long, value_name = "FILE", help_heading = "Settings")]
    config: Option<PathBuf>,
    /// One setting; may be repeated
    #[arg(long, value_name = "KEY=VALUE", help_heading = "Settings")]
    set: Vec<String>,
    /// Start from the weights of this model file, run folder or checkpoint
    #[arg(long, value_name = "MODEL", help_heading = "Settings")]
    init: Option<PathBuf>,
    /// Seed of initial weights, order and noise [default: 1]
    #[arg(long, value_name = "N", help_heading = "Settings")]
    seed: Option<u64>,
    /// Epochs [default: 60; with affine couplings 400, data sets of the paper 50]
    #[arg(long, value_name = "N", help_heading = "Settings")]
    epochs: Option<u64>,
    /// Rows of a batch [default: rows / 64, within 64 to 4096; with affine couplings rows / 100, within 32 to 10000; data sets of the paper: theirs]
    #[arg(long, value_name = "N", help_heading = "Settings")]
    batch: Option<u64>,
    /// Learning rate at the start
    #[arg(long, value_name = "RATE", help_heading = "Settings")]
    lr: Option<f64>,
    /// Activations for the backward pass: stored, or computed again (reversible), which takes longer but
    /// less memory where there are many blocks [default: stored]
    #[arg(long, value_name = "stored|reversible", help_heading = "Settings")]
    memory: Option<String>,

    /// Run folder [default: a new one, runs/DATE_NAME_sSEED]
    #[arg(long, value_name = "DIR", help_heading = "Output")]
    out: Option<PathBuf>,
    /// Use a run folder that is not empty; an earlier run in it is replaced, other files stay
    #[arg(long, help_heading = "Output")]
    force: bool,
    /// Write no report.html at the end
    #[arg(long, help_heading = "Output")]
    no_report: bool,
    /// Read data and settings, print all settings, train nothing
    #[arg(long, help_heading = "Output")]
    dry_run: bool,

    #[command(flatten)]
    device: DeviceArgs,
}

/// What to do with rows that are no numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OnInvalid {
    /// Leave them out
    Drop,
    /// Name the first
    Stop,
}

fn long_help() -> String {
    let width = keys::KEYS.iter().map(|key| key.name.len()).max().unwrap_or(0);
    let shown = keys::KEYS.iter();
    let lines: Vec<_> = shown.map(|key| format!("  {:width$}  {}", key.name, key.help)).collect();
    format!("{AFTER_HELP}\n\n{OF_LL}\n\nAll settings (for --set, and as tables in --config):\n{}", lines.join("\n"))
}

impl Train {
    pub(super) fn run(self, quiet: bool) -> Done {
        let config = match &self.resume {
            Some(dir) => self.here(moved(run::settings_of(dir)?, &self.set)?)?,
            None => run::settings(&self.layers()?)?,
        };
        if let (Some(file), Some(out)) = (&self.config, &config.run.out)
            && self.force
            && RunFolder::replaces(out, file)
        {
            let (file, out) = (file.display(), out.display());
            let what = format!(
                "{file} is a file of the earlier run in {out}, which the new run replaces; choose another --out, or copy the file"
            );
            return Err(Error::config("--config", what).into());
        }
        if self.dry_run {
            device::check(&config.run.device)?;
            return dry_run(config);
        }
        let threads = usize::try_from(config.run.threads).unwrap_or(0);
        let engine = device::open(&config.run.device, threads, config.run.tune)?;
        interrupt::listen();
        let command: Vec<String> = std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect();
        let options =
            Options { command: &command, overwrite: Overwrite::allowed_if(self.force), stop: &interrupt::STOP };
        let mut shown = Shown::new(quiet);
        let outcome = match &self.resume {
            Some(dir) => run::resume(dir, config, &engine, options, &mut shown),
            None => run::start(config, &engine, options, &mut shown),
        };
        shown.finish();
        // A run that failed, or had nothing left to do, has a report, too.
        let folder = shown.folder.clone().or(outcome.as_ref().ok().map(|outcome| outcome.folder.clone()));
        if let Some(folder) = folder.filter(|_| !self.no_report) {
            report::write_beside(&folder);
        }
        let outcome = outcome?;
        let folder = outcome.folder.display();
        if !outcome.finished {
            tracing::warn!("stopped after step {}; go on with: hintflow train --resume {folder}", outcome.step);
            return Ok(interrupt::EXIT_CODE);
        }
        let ll = outcome.kept.map_or(outcome.last.and_then(|report| report.ll), |kept| kept.ll);
        let loss = outcome.kept.map_or(outcome.last.and_then(|report| report.validation_loss), |kept| kept.test_loss);
        match (ll.filter(|ll| !ll.is_nan()), loss) {
            (Some(ll), _) => tracing::info!("finished: held-out rows: {}", shown.score(ll)),
            // A model without a density.
            (None, Some(loss)) => tracing::info!("finished: held-out rows: loss {loss:.4}"),
            (None, None) => {}
        }
        if let Some(found) = &outcome.density {
            density::tell(found);
        }
        output::line(&folder.to_string())?;
        Ok(0)
    }

    /// The settings of a run that goes on, on the device that is asked for.
    fn here(&self, config: Config) -> Result<Config> {
        let run = Run {
            device: self.device.device.clone().unwrap_or(config.run.device),
            threads: self.device.threads.map_or(config.run.threads, |n| n as u64),
            tune: config.run.tune && !self.device.no_tune,
            ..config.run
        };
        let config = Config { run, ..config };
        config.validate()?;
        Ok(config)
    }

    /// What `--on-invalid` says of `data.missing`.
    fn missing(&self, layers: &Layers) -> Result<Option<String>> {
        match (self.on_invalid, layers.given("data.missing")) {
            (None | Some(OnInvalid::Stop), None) | (None, Some(_)) => Ok(None),
            (Some(OnInvalid::Drop), None) => Ok(Some(usually_missing().join(","))),
            (Some(OnInvalid::Drop), Some(missing)) => {
                let also = missing.trim_matches(['[', ']']).replace(['"', '\''], "");
                Ok(Some(format!("{},{also}", usually_missing().join(","))))
            }
            (Some(OnInvalid::Stop), Some(missing)) => {
                let what =
                    format!("is `stop`, but data.missing is {missing}, which leaves out rows; give only one of them");
                Err(Error::config("--on-invalid", what))
            }
        }
    }

    /// All settings that were given, by source.
    fn layers(&self) -> Result<Layers> {
        let mut layers = Layers::new();
        if let Some(path) = &self.config {
            layers.file(path)?;
        }
        let mut variables = Vec::new();
        for (name, value) in std::env::vars_os() {
            // Of others there is nothing to know.
            if !name.as_encoded_bytes().starts_with(b"HINTFLOW_") {
                continue;
            }
            match (name.into_string(), value.into_string()) {
                (Ok(name), Ok(value)) => variables.push((name, value)),
                (Ok(name), Err(_)) => return Err(Error::config(name, "is not Unicode, which settings must be")),
                (Err(name), _) => {
                    return Err(Error::config(
                        name.display().to_string(),
                        "is no name of a setting: it is not Unicode",
                    ));
                }
            }
        }
        for name in layers.environment(variables)? {
            tracing::warn!(
                "the environment variable {name} is no setting; those have a table and two underscores, as HINTFLOW_TRAIN__LR"
            );
        }
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let mut flags = Vec::new();
        if let Some(source) = &self.source {
            flags.push((source_key(source)?, source.clone(), "the command line"));
        }
        let options = [
            ("data.given", self.given.clone(), "--given"),
            ("model.init", self.init.as_deref().map(text), "--init"),
            ("train.seed", self.seed.map(|v| v.to_string()), "--seed"),
            ("train.epochs", self.epochs.map(|v| v.to_string()), "--epochs"),
            ("train.batch", self.batch.map(|v| v.to_string()), "--batch"),
            ("train.lr", self.lr.map(|v| format!("{v:?}")), "--lr"),
            ("train.memory", self.memory.clone(), "--memory"),
            ("run.out", self.out.as_deref().map(text), "--out"),
            ("run.device", self.device.device.clone(), "--device"),
            ("run.threads", self.device.threads.map(|v| v.to_string()), "--threads"),
            ("run.tune", self.device.no_tune.then(|| "false".into()), "--no-tune"),
        ];
        flags.extend(options.into_iter().filter_map(|(key, value, flag)| value.map(|value| (key, value, flag))));
        layers.flags(flags)?;
        layers.assignments(&self.set)?;
        // After all that may say something of the same.
        let missing = self.missing(&layers)?;
        layers.flags(missing.map(|missing| ("data.missing", missing, "--on-invalid")))?;
        if let Some(source) = &self.source {
            let key = source_key(source)?;
            if key == "data.path"
                && let Some(preset) = layers.given("data.preset")
                && Preset::named(&preset).is_some_and(|preset| preset.uci().is_some())
            {
                let what = format!(
                    "is {preset}, but `{source}` on the command line is a table; to read it as {preset}, take: hintflow train \
                     {preset} --set data.path={source}"
                );
                return Err(Error::config("data.preset", what));
            }
            // --set wins over other options, but the data is named once.
            if layers.given(key).as_ref() != Some(source) {
                let other = ["data.preset", "data.path"].into_iter().find(|key| layers.given(key).is_some());
                let what =
                    format!("contradicts `{key}`, which `{source}` on the command line sets; give only one of them");
                return Err(Error::config(other.unwrap_or(key), what));
            }
        }
        Ok(layers)
    }
}

/// Whether the first argument is a preset or a file.
fn source_key(source: &str) -> Result<&'static str> {
    if Preset::named(source).is_some() {
        return Ok("data.preset");
    }
    let path = Path::new(source);
    if let Some(set) = Uci::of_text(path) {
        let name = set.name();
        let what = format!(
            "{source} is the file of {name}, not a plain table: `hintflow train {name} --set data.path={source}`"
        );
        return Err(Error::config("data.path", what));
    }
    if path.extension().is_some() || path.components().count() > 1 || path.exists() {
        return Ok("data.path");
    }
    let presets = Preset::ALL.map(Preset::name).join(", ");
    let what = format!(
        "`{source}` is neither a data set of the paper ({presets}, in small letters) nor a table (.npy, .csv, .txt, .tsv, .dat)"
    );
    Err(Error::config("data.path", what))
}

/// The settings of a run that goes on, with its files where they are now. Whether they hold the same rows is seen when
/// they are read.
fn moved(config: Config, assignments: &[String]) -> Result<Config> {
    const FILES: [&str; 2] = ["data.path", "data.given"];
    let mut layers = Layers::new();
    layers.assignments(assignments)?;
    let mut config = config;
    for assignment in assignments {
        let key = assignment.split('=').next().unwrap_or_default().trim();
        let was = match key {
            "data.path" => config.data.path.is_some(),
            "data.given" => matches!(config.data.given, Some(Given::File(_))),
            _ => {
                let what = format!("with --resume only {} may change; {key} stays as it was", FILES.join(" and "));
                return Err(Error::config("--set", what));
            }
        };
        if !was {
            return Err(Error::config(key, "is no file of this run; leave it out"));
        }
    }
    if let Some(path) = layers.given(FILES[0]) {
        config.data.path = Some(path.into());
    }
    if let Some(given) = layers.given(FILES[1]) {
        config.data.given = Some(Given::File(given.into()));
    }
    Ok(config)
}

fn dry_run(config: Config) -> Done {
    let (data, settings) = run::plan(config)?;
    let (train, spec) = (settings.training(), settings.spec());
    let steps = train.epochs * train.batches();
    tracing::info!(
        "data:  {}, {}, {}, {} held out",
        data.name,
        counted(data.dim, "column"),
        counted(data.train_rows(), "training row"),
        data.test_rows()
    );
    let parameters = counted(crate::plan::budget::parameters(spec), "parameter");
    tracing::info!("model: {parameters}, width {}", spec.width);
    tracing::info!("train: {} of {}", counted(steps, "step"), counted(train.batch(), "row"));
    output::line(settings.to_toml()?.trim_end())?;
    Ok(0)
}

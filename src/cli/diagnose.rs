//! `hintflow diagnose`

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;

use crate::atomic::{Overwrite, write_atomic};
use crate::counted::{self, are, counted};
use crate::data::{side_by_side, table};
use crate::diagnose::likeness::{Likeness, Trained};
use crate::diagnose::model::{Effort, Numbers, Uniformly, against, diagnose};
use crate::diagnose::uniform::Bands;
use crate::diagnose::{Diagnosis, Diagnostics, LEVEL, fingerprint, p_value_text, verdict};
use crate::plan::Kind;
use crate::printable::printable;
use crate::report::{Uniform, correlation_map, grouped, uniformity};
use crate::train::data_report::{Column, DataReport, SAMPLED, SHARES};
use crate::train::folder::{self, picture};
use crate::train::{manifest, run};
use crate::{Error, Flow, Result};

use super::device::DeviceArgs;
use super::judged_rows::JudgedRows;
use super::logging::BARS;
use super::predictions::PredictionArgs;
use super::{Done, model, output, report, trust};

const AFTER_HELP: &str = "\
Every test holds for a model that is right; its p-value is the chance of a deviation as large. Of a model with
conditions: where the truth is among samples of its posterior, of each column (simulation-based calibration), by density
(expected coverage) and by the distance from random points (TARP). Of every model: whether z of held-out rows is standard
normal, in each column, in pairs, by its norm and whatever the conditions are. Of a `flow`: whether samples and held-out
rows can be told apart. Several tests at once are corrected for (Holm).

With --simulator, samples of the observation's posterior are simulated: the observation must lie among them. The command
reads samples (rows, N) from standard input and writes as many observations (rows, C) to standard output, both .npy arrays;
HINTFLOW_ROWS and HINTFLOW_SEED are in its environment. A simulator of `hintflow filter` will do.

Of many rows every model is found wrong: no model is exact. What was found tells whether it matters.

RUN/diagnosis (or --out) gets diagnostics.json and pictures: calibration of ranks, latents of columns of z, and
latent_correlation of these with each other and with conditions. RUN/report.html is written anew (not with --out).

Examples:
  hintflow diagnose runs/posterior
  hintflow diagnose runs/posterior fresh.csv --given x1,x2
  hintflow diagnose runs/posterior --observed today.csv --reference mcmc.npy
  hintflow diagnose runs/posterior --observed today.csv --simulator \"python3 simulate.py\"
  hintflow diagnose runs/posterior --fail-below 0.001     exit code 5 if it fails";

/// Exit code below `--fail-below`.
const FAILED: u8 = 5;
/// The chance of the bands in pictures.
const BAND: f64 = 1.0 - LEVEL;
/// Most panels of a picture.
const PANELS: usize = 24;
/// Most columns of a map of correlations; of more nothing can be seen.
const MOST_CORRELATED: usize = 60;

/// Test whether posteriors and densities can be trusted, on rows that the model was not trained on
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Diagnose {
    /// Run folder, model file or checkpoint
    run: PathBuf,
    /// Table: .csv, .npy or text [default: the rows that RUN held out]
    #[arg(value_name = "DATA")]
    data: Option<PathBuf>,
    #[command(flatten)]
    parts: model::Parts,
    /// All rows of the table, those that the model was trained on too
    #[arg(long)]
    all: bool,
    /// Rows that are looked at, at most
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Numbers of draws")]
    rows: usize,
    /// Samples of each posterior
    #[arg(long, value_name = "N", default_value_t = 1000, help_heading = "Numbers of draws")]
    samples: usize,
    /// Seed of all that is drawn
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Numbers of draws")]
    seed: u64,
    /// An observation: says how usual it is among those of the training
    #[arg(long, value_name = "FILE")]
    observed: Option<PathBuf>,
    /// Independent samples of the true posterior of that observation, or for a `flow` of the true distribution
    #[arg(long, value_name = "FILE")]
    reference: Option<PathBuf>,
    #[command(flatten)]
    predictions: PredictionArgs,
    /// Exit with 5 if the smallest adjusted p-value is below this
    #[arg(long, value_name = "P")]
    fail_below: Option<f64>,
    /// Folder for diagnostics.json and pictures [default: RUN/diagnosis]
    #[arg(short, long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Write into a folder of --out that exists
    #[arg(long)]
    force: bool,
    /// Print diagnostics.json
    #[arg(long)]
    json: bool,
    /// Leave RUN/report.html as it is
    #[arg(long)]
    no_report: bool,
    #[command(flatten)]
    device: DeviceArgs,
}

impl Diagnose {
    pub(super) fn run(self, quiet: bool) -> Done {
        self.check()?;
        let flow = model::load(&self.run, &self.device)?;
        let compared = self.compared(&flow)?;
        let rows = match &self.data {
            Some(path) => {
                let data = model::Data { path: path.clone(), parts: self.parts.clone() };
                JudgedRows::of_table(&flow, &data, self.all, self.rows)?
            }
            None if self.run.is_dir() => {
                JudgedRows::of_run(&flow, &self.run, &run::settings_of(&self.run)?, self.rows)?
            }
            None => {
                return Err(
                    Error::config("DATA", "is needed: a model file does not tell which rows were held out").into()
                );
            }
        };
        let count = rows.count(&flow);
        if count < FEWEST {
            let what =
                format!("{} are {count}; tests need at least {FEWEST} rows that the model was not trained on", rows.of);
            return Err(Error::config("DATA", what).into());
        }
        let bar = (!quiet && std::io::stderr().is_terminal()).then(|| BARS.add(ProgressBar::new(count as u64)));
        let mut tell = |done: usize| bar.iter().for_each(|bar| bar.set_position(done as u64));
        let effort = Effort { samples: self.samples, seed: self.seed };
        let (mut diagnosis, numbers) = diagnose(&flow, &rows.x, &rows.y, effort, &mut tell)?;
        if let Some(bar) = bar {
            bar.finish_and_clear();
        }
        if let Some(Compared { observed, reference: Some(reference), .. }) = &compared {
            let test = against(&flow, observed, reference, self.seed)?;
            diagnosis = Diagnosis::of(diagnosis.tests.into_iter().chain([test]).collect());
        }
        let predictions = match &compared {
            Some(compared) => self.predictions.of(&flow, &compared.observed, &self.parts.layout, self.seed)?,
            None => None,
        };
        if let Some(predictions) = &predictions {
            diagnosis = Diagnosis::of(diagnosis.tests.into_iter().chain(predictions.tests()).collect());
        }
        let is_conditional = flow.spec().kind != Kind::Flow;
        let row_columns = (flow.spec().dim + flow.spec().cond_dim) as usize;
        let found = Diagnostics {
            model: self.run.display().to_string(),
            model_sha256: Some(fingerprint(&folder::model_of(&self.run)?)?),
            rows: count,
            rows_sha256: Some(table::fingerprint(row_columns, &side_by_side(&rows.y, &rows.x, count))),
            columns: self.likeness(&flow, &rows),
            command: std::env::args_os().map(|word| word.to_string_lossy().into_owned()).collect(),
            rows_of: rows.of,
            samples: if is_conditional { self.samples } else { count },
            seed: self.seed,
            level: LEVEL,
            observation: compared.as_ref().and_then(|compared| compared.usual),
            saturated_log_scales: flow.saturated_log_scales(&rows.y, &rows.x)?,
            round_trip_error: numbers.round_trip_error,
            verdict: verdict(&diagnosis, LEVEL, count),
            diagnosis,
        };
        let json = serde_json::to_string_pretty(&found).map_err(std::io::Error::from)?;
        let of_run = self.run.is_dir().then(|| folder::diagnosis_of(&self.run));
        let folder = self.out.clone().or(of_run);
        if let Some(folder) = &folder {
            write(folder, &found, &json, &numbers)?;
            if let Some(predictions) = &predictions {
                predictions.draw(&folder.join(picture::PREDICTIONS))?;
            }
        }
        match self.json {
            true => output::line(&json)?,
            false => table(&found, is_conditional, folder.as_deref())?,
        }
        if self.out.is_none() && self.run.is_dir() && !self.no_report {
            report::write_beside(&self.run);
        }
        Ok(if self.fail_below.is_some_and(|below| found.diagnosis.p_value < below) { FAILED } else { 0 })
    }

    fn check(&self) -> Result<()> {
        if self.data.is_none() && (self.all || self.parts.is_said()) {
            let what = "is missing; --given, --columns and --all are about a table";
            return Err(Error::config("DATA", what));
        }
        if let Some(folder) = self.out.as_ref().filter(|folder| folder.exists() && !self.force) {
            return Err(Error::Exists { path: folder.clone() });
        }
        for (name, value) in [("--rows", self.rows), ("--samples", self.samples)] {
            if value == 0 || value > 100_000 {
                return Err(Error::config(name, format!("is {value}, must be from 1 to 100000")));
            }
        }
        if let Some(below) = self.fail_below.filter(|below| !(0.0..=1.0).contains(below)) {
            return Err(Error::config("--fail-below", format!("is {below}, must be from 0 to 1")));
        }
        Ok(())
    }

    /// The columns of the rows that judge beside those of the training, if the run tells of these.
    fn likeness(&self, flow: &Flow, rows: &JudgedRows) -> Vec<Likeness> {
        let data: Option<DataReport> =
            self.run.is_dir().then(|| manifest::json_or_damage(&folder::data_of(&self.run)).ok().flatten()).flatten();
        let Some(data) = data else { return Vec::new() };
        let (dim, c) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
        if data.columns.len() != dim + c {
            return Vec::new();
        }
        let trained_rows = (data.training_rows + data.held_out_rows).min(SAMPLED);
        let of = |(place, column): (usize, &Column)| {
            let (values, columns, place, units) = match place.checked_sub(c) {
                None => (&rows.y, c, place, flow.units_of_conditions()),
                Some(place) => (&rows.x, dim, place, flow.units()),
            };
            let packing = units.packing(place);
            let values: Vec<f64> = values.iter().skip(place).step_by(columns).map(|&v| packing.unpack(v)).collect();
            let quantiles: Vec<(f64, f64)> = SHARES.into_iter().zip(column.quantiles).collect();
            let trained = Trained {
                column: &column.name,
                is_condition: column.is_condition,
                moments: [column.mean, column.deviation],
                quantiles: &quantiles,
                rows: trained_rows,
            };
            Likeness::of(&trained, &values)
        };
        data.columns.iter().enumerate().map(of).collect()
    }

    /// The observation and its reference sample. Says how usual the observation is.
    fn compared(&self, flow: &Flow) -> Result<Option<Compared>> {
        let observed = match &self.observed {
            None if self.reference.is_some() && flow.spec().kind != Kind::Flow => {
                return Err(Error::config(OBSERVED, "is missing: --reference is of the posterior of an observation"));
            }
            None => Vec::new(),
            Some(_) if flow.spec().kind == Kind::Flow => {
                return Err(Error::config(OBSERVED, "is of no use: the model is an unconditional `flow`"));
            }
            Some(path) => {
                let table = model::observations(flow, path, &self.parts.layout)?;
                if table.rows != 1 && self.reference.is_some() {
                    let rows = counted(table.rows, "row");
                    let what = format!("has {rows}; --reference is of the posterior of one");
                    return Err(Error::config(OBSERVED, what));
                }
                trust::tell(flow, &table)?;
                table.into_values()
            }
        };
        let usual = match (flow.spec().kind, flow.evidence()) {
            (Kind::Hint, Some(evidence)) if !observed.is_empty() => {
                // The most unusual of several.
                let all = flow.joint()?.log_evidence(&observed)?;
                all.iter().map(|&l| evidence.share_below(l.into())).min_by(f64::total_cmp)
            }
            _ => None,
        };
        let Some(path) = &self.reference else {
            return Ok(Some(Compared { observed, usual, reference: None }));
        };
        let reference = model::samples(flow, path, &self.parts.layout)?;
        let mut rows: Vec<Vec<u32>> =
            reference.iter_rows().map(|row| row.iter().map(|v| v.to_bits()).collect()).collect();
        rows.sort_unstable();
        let repeated = rows.windows(2).filter(|pair| pair[0] == pair[1]).count();
        if repeated * 100 > reference.rows {
            tracing::warn!(
                "{}: {repeated} of {} {} repeated, as those of a Markov chain are; a test of independent samples takes them \
                 for another distribution. Thin the chain",
                path.display(),
                counted(reference.rows, "row"),
                are(repeated)
            );
        }
        Ok(Some(Compared { observed, usual, reference: Some(reference.into_values()) }))
    }
}

const OBSERVED: &str = "--observed";

/// An observation, and what its posterior is compared with.
struct Compared {
    observed: Vec<f32>,
    /// The share of the training's observations that are as unusual, if the model knows.
    usual: Option<f64>,
    reference: Option<Vec<f32>>,
}

/// Rows of which tests say anything.
const FEWEST: usize = 20;

fn write(folder: &Path, found: &Diagnostics, json: &str, numbers: &Numbers) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))?;
    write_atomic(&folder::diagnostics_in(folder), Overwrite::Yes, |file| writeln!(file, "{json}"))?;
    let bands = Bands::simultaneous(found.rows, BAND);
    let rows = format!("{} {}", grouped(found.rows as u64), counted::of(&found.rows, "row"));
    let parts = [
        (picture::CALIBRATION, &numbers.ranks, format!("Ranks of {rows}")),
        (picture::LATENTS, &numbers.latents, format!("Latent vectors of {rows}")),
    ];
    for (name, part, of) in parts.into_iter().filter(|(_, part, _)| !part.is_empty()) {
        let panel = |numbers: &Uniformly| Uniform {
            name: numbers.name.clone(),
            numbers: numbers.numbers.clone(),
            is_rejected: found.diagnosis.tests[numbers.test].adjusted_p_value < found.level,
        };
        let all: Vec<Uniform> = part.iter().take(PANELS).map(panel).collect();
        let title = format!("{of}: share that is smaller, less what it should be");
        uniformity(&folder.join(name), &title, &all, BAND, |at| bands.shares(at))?;
    }
    match &numbers.joint {
        Some(joint) if joint.names.len() <= MOST_CORRELATED => {
            let title = "Correlations of conditions and latent columns (z)";
            let path = folder.join(picture::LATENT_CORRELATION);
            correlation_map(&path, title, &joint.rows, joint.names.len(), &joint.names)
        }
        _ => Ok(()),
    }
}

fn table(report: &Diagnostics, is_conditional: bool, folder: Option<&Path>) -> std::io::Result<()> {
    let mut out = output::stdout();
    let each = if is_conditional { " each" } else { "" };
    let of =
        format!("{} {}; {} samples{each}", grouped(report.rows as u64), report.rows_of, grouped(report.samples as u64));
    writeln!(out, "{}\n", printable(&of))?;
    let tests = &report.diagnosis.tests;
    let width = tests.iter().map(|test| test.name.chars().count()).max().unwrap_or(0).clamp(10, 48);
    writeln!(out, "{:width$}  {:>9}  {:>9}  found", "test", "p-value", "adjusted")?;
    for test in tests {
        let mark = if test.adjusted_p_value < report.level { " REJECTED" } else { "" };
        let line = format!(
            "{:width$}  {:>9}  {:>9}  {}{mark}",
            test.name,
            p_value_text(test.p_value),
            p_value_text(test.adjusted_p_value),
            test.says
        );
        writeln!(out, "{}", printable(&line))?;
    }
    writeln!(out)?;
    for note in report.notes() {
        writeln!(out, "{}", printable(&note))?;
    }
    writeln!(out, "{}", printable(&report.verdict))?;
    if let Some(folder) = folder {
        writeln!(out, "{}", printable(&format!("written to {}", folder.display())))?;
    }
    output::finish(out)
}

//! The paper's last experiment: four competing species are followed over ten steps, three of them measured (appendix,
//! "Bayesian filtering using HINT"). HINT, an INN and an ensemble Kalman filter are held against a filter of many particles, and
//! their bands against the truth of many series.

mod compare;
mod page;

use std::path::{Path, PathBuf};

use super::Scale;
use super::lab::Lab;
use super::result::other_settings;
use crate::atomic::Overwrite;
use crate::data::lotka_volterra::{LotkaVolterra, STEPS, Start};
use crate::error::{Error, Result};
use crate::filter::run::{self, MethodSettings, Options, Series, Settings, SystemSettings, Watcher};
use crate::filter::{HintSettings, Method};
use crate::train::run::Observer;
use crate::train::{EpochReport, Progress};
use compare::{Compared, Covered};

pub(super) const NAME: &str = "lotka_volterra";
pub(super) const TITLE: &str = "Filtering: four competing species over time";

/// The first seed of the series that coverages are counted over; those before are the paper's series.
const FIRST_SERIES: u64 = 1001;

/// Methods that are held against the particle filter, which comes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Filter {
    Particle,
    Hint,
    Inn,
    Enkf,
}

impl Filter {
    const ALL: [Self; 4] = [Self::Particle, Self::Hint, Self::Inn, Self::Enkf];

    fn name(self) -> &'static str {
        match self {
            Self::Particle => "particle",
            Self::Hint => "hint",
            Self::Inn => "inn",
            Self::Enkf => "enkf",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Self::Particle => "particle filter",
            Self::Hint => "HINT",
            Self::Inn => "INN",
            Self::Enkf => "EnKF",
        }
    }

    /// Its settings at a scale; `set` are those of every training besides.
    fn method(self, scale: Scale, set: &[String]) -> Method {
        match (self, scale) {
            (Self::Particle, Scale::Paper) => Method::particle(1_000_000),
            (Self::Particle, Scale::Quick) => Method::particle(200_000),
            (Self::Enkf, Scale::Paper) => Method::ensemble_kalman(64_000),
            (Self::Enkf, Scale::Quick) => Method::ensemble_kalman(16_000),
            (Self::Hint | Self::Inn, scale) => {
                let mut settings = match scale {
                    Scale::Paper => HintSettings::default(),
                    Scale::Quick => HintSettings::quick(),
                };
                let of_filters = |set: &&String| set.starts_with("train.") || set.starts_with("model.");
                settings.set.extend(set.iter().filter(of_filters).cloned());
                if self == Self::Inn { Method::Inn(settings) } else { Method::Hint(settings) }
            }
        }
    }
}

/// Series that coverages are counted over. They are filtered with the quick settings.
fn series_count(scale: Scale) -> u64 {
    match scale {
        Scale::Quick => 2,
        Scale::Paper => 20,
    }
}

/// Filters what is not filtered yet, and writes pictures, tables and their page. None if it was stopped before the
/// first was done.
pub(super) fn make(lab: &mut Lab<'_>) -> Result<Option<PathBuf>> {
    let folder = lab.request.out.join("figures");
    std::fs::create_dir_all(&folder).map_err(|e| Error::io("create", &folder, e))?;
    let (scale, runs) = (lab.request.scale, lab.request.runs);
    let path = folder.join(NAME);
    let mut compared: Vec<Compared> = Vec::new();
    for seed in 1..=runs {
        let Some(folders) = filtered(lab, scale, seed, Start::Paper)? else { return Ok(None) };
        compared.extend(compare::with_particles(&folders)?);
        if seed == 1 {
            page::draw(&folders, &path)?;
        }
    }
    page::write(lab.request, &path, &compared, &[])?;
    let mut covered: Vec<Covered> = Vec::new();
    for number in 0..series_count(scale) {
        let seed = FIRST_SERIES + number;
        let Some(folders) = filtered(lab, Scale::Quick, seed, Start::Guess)? else { return Ok(Some(path)) };
        covered.extend(compare::with_truth(&folders)?);
    }
    page::write(lab.request, &path, &compared, &covered)?;
    Ok(Some(path))
}

/// The folders of a series filtered by every method; none if it was stopped.
fn filtered(lab: &mut Lab<'_>, scale: Scale, seed: u64, start: Start) -> Result<Option<Vec<(Filter, PathBuf)>>> {
    let mut folders = Vec::new();
    for filter in Filter::ALL {
        let folder = lab.request.out.join("runs").join(format!("lotka-volterra-{}-s{seed}", filter.name()));
        if !is_filtered(lab, filter, scale, seed, start, &folder)? {
            return Ok(None);
        }
        folders.push((filter, folder));
    }
    Ok(Some(folders))
}

/// Filters a series, or goes on with it, or finds that it is done. False if it was stopped.
fn is_filtered(
    lab: &mut Lab<'_>,
    filter: Filter,
    scale: Scale,
    seed: u64,
    start: Start,
    folder: &Path,
) -> Result<bool> {
    let system = LotkaVolterra::default();
    let LotkaVolterra { process_noise, observation_noise } = system;
    let settings = Settings {
        version: env!("CARGO_PKG_VERSION").into(),
        seed,
        observations_sha256: None,
        method: MethodSettings::from(&filter.method(scale, lab.request.set)),
        system: SystemSettings::LotkaVolterra { process_noise, observation_noise },
    };
    let begun = folder.join("filter.toml").is_file();
    if begun {
        let found = run::settings_of(folder)?;
        if (found.seed, &found.method, &found.system) != (seed, &settings.method, &settings.system) {
            return Err(Error::format(folder, other_settings("method")));
        }
        if run::read_steps(&folder.join("steps.csv"), system_columns())?.len() == STEPS {
            return Ok(true);
        }
    }
    if lab.stopped() {
        return Ok(false);
    }
    let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    lab.watcher.model(&name, None);
    let options =
        Options { out: Some(folder), overwrite: Overwrite::Yes, stop: lab.request.stop, checkpoint_every: None };
    let mut watcher = Told(lab.watcher.observer());
    let outcome = if begun {
        run::resume(folder, &settings, lab.engine, options, &mut watcher)
    } else {
        let (truth, observations) = system.series(STEPS, seed, start)?;
        let series = Series::new(observations, Some(truth));
        run::start(&settings, Vec::new(), series, lab.engine, options, &mut watcher)
    };
    match outcome {
        Err(Error::Stopped) => Ok(false),
        outcome => Ok(outcome?.finished),
    }
}

fn system_columns() -> usize {
    crate::data::lotka_volterra::SPECIES
}

/// Tells an observer of trainings how those of a filter go.
struct Told<'a>(&'a mut dyn Observer);

impl Watcher for Told<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.0.progress(progress);
    }

    fn epoch(&mut self, report: &EpochReport, progress: &Progress) {
        // Not the end of every step: there are many.
        if progress.step < progress.steps {
            self.0.epoch(report, progress);
        }
    }

    fn warning(&mut self, text: &str) {
        self.0.warning(text);
    }
}

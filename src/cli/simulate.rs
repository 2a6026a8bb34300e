//! `hintflow simulate`

use std::path::PathBuf;

use crate::data::lotka_volterra::{LotkaVolterra, NOISE, Start};
use crate::data::shapes::lens::Outline;
use crate::data::{Shapes, Table, check_table_output};
use crate::{Error, Overwrite, Result};
use clap::{Args, Subcommand, ValueEnum};

use super::{Done, output};

/// Simulate a data set of the paper
#[derive(Args)]
pub(super) struct Simulate {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    Lens(Lens),
    Cross(Cross),
    LotkaVolterra(Series),
}

const LENS_HELP: &str = "\
With seed 1 and the same outline these are the training rows of `hintflow train lens`. Observations are the horizontal
and the vertical distance of the tips, d_h and d_v.

Example:
  hintflow simulate lens -n 10000 -o lens.npy --observations seen.npy";

const CROSS_HELP: &str = "\
With seed 1 these are the training rows of `hintflow train cross`. Observations are where the bars cross (centre_x,
centre_y), the angle of bar 1 (rotation, 0 to pi/2), and its width by that of bar 2 (thickness_ratio).

Example:
  hintflow simulate cross -n 10000 -o cross.npy --observations seen.npy";

const SERIES_HELP: &str = "\
A row is a unit of time: four competing species, whose populations begin near 1, by the paper's equations. Each is
multiplied by exp(process noise * z) after a step. Observations are the first three with their noise added.
`hintflow filter lotka-volterra` follows such a series.

Example:
  hintflow simulate lotka-volterra -o truth.csv --observations seen.csv";

/// Lens shapes: intersections of two circles, as 20 Fourier coefficients
#[derive(Args)]
#[command(after_help = LENS_HELP)]
struct Lens {
    #[command(flatten)]
    rows: Rows,
    /// Points that are transformed: vertices (of polygons) or arc (equally spaced)
    #[arg(long, value_name = "OUTLINE", default_value = "vertices")]
    outline: Outline,
}

/// Cross shapes: unions of two bars at a right angle, as 100 Fourier coefficients
#[derive(Args)]
#[command(after_help = CROSS_HELP)]
struct Cross {
    #[command(flatten)]
    rows: Rows,
}

/// Where a series begins.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Begin {
    /// The paper's true populations
    Paper,
    /// A draw of the initial guess, N(1, 0.1) for each species
    Guess,
}

impl From<Begin> for Start {
    fn from(begin: Begin) -> Self {
        match begin {
            Begin::Paper => Self::Paper,
            Begin::Guess => Self::Guess,
        }
    }
}

/// The noises of the system of species.
#[derive(Args, Clone, Copy, Debug)]
pub(super) struct Noises {
    /// Deviation of the logarithm of a population after each step
    #[arg(long, value_name = "SIGMA", default_value_t = NOISE)]
    process_noise: f64,
    /// Deviation of an observation
    #[arg(long, value_name = "SIGMA", default_value_t = NOISE)]
    observation_noise: f64,
}

impl Noises {
    pub(super) fn system(self) -> Result<LotkaVolterra> {
        LotkaVolterra::new(self.process_noise, self.observation_noise).map_err(|error| match error {
            Error::Argument { name, what } => Error::argument(format!("--{}", name.replace('_', "-")), what),
            other => other,
        })
    }
}

/// A series of four competing species (Lotka-Volterra), and noisy observations of three
#[derive(Args)]
#[command(after_help = SERIES_HELP)]
struct Series {
    /// Number of steps
    #[arg(short, value_name = "N", default_value_t = crate::data::lotka_volterra::STEPS)]
    n: usize,
    #[command(flatten)]
    files: Files,
    #[command(flatten)]
    noises: Noises,
    /// Populations at time 0
    #[arg(long, value_enum, value_name = "WHERE", default_value_t = Begin::Paper)]
    start: Begin,
}

/// Options of every data set.
#[derive(Args)]
struct Rows {
    /// Number of shapes
    #[arg(short, value_name = "N")]
    n: usize,
    #[command(flatten)]
    files: Files,
}

/// Where rows are written.
#[derive(Args)]
struct Files {
    /// Table to write: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write noisy observations of each row
    #[arg(long, value_name = "FILE")]
    observations: Option<PathBuf>,
    /// Seed of the rows
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Overwrite the files
    #[arg(long)]
    force: bool,
}

impl Simulate {
    pub(super) fn run(self) -> Done {
        match self.what {
            What::Lens(lens) => lens.rows.write(Shapes::Lens(lens.outline)),
            What::Cross(cross) => cross.rows.write(Shapes::Cross),
            What::LotkaVolterra(Series { n, files, noises, start }) => {
                let system = noises.system()?;
                let seed = files.seed;
                files.write(|_| system.series(n, seed, start.into()).map(|(truth, seen)| (truth, Some(seen))))
            }
        }
    }
}

impl Rows {
    fn write(self, shapes: Shapes) -> Done {
        let Self { n, files } = self;
        let seed = files.seed;
        files.write(|observed| match observed {
            true => shapes.generate_with_observations(n, seed, 0).map(|(rows, seen)| (rows, Some(seen))),
            false => shapes.generate(n, seed, 0).map(|rows| (rows, None)),
        })
    }
}

impl Files {
    /// Writes what `make` makes: rows, and observations if it is told that they are asked for.
    fn write(self, make: impl FnOnce(bool) -> Result<(Table, Option<Table>)>) -> Done {
        let overwrite = Overwrite::allowed_if(self.force);
        check_table_output(&self.output, overwrite)?;
        if let Some(path) = &self.observations {
            check_table_output(path, overwrite)?;
            output::distinct(&[("-o", &self.output), ("--observations", path)], &[])?;
        }
        // The library knows no option of that name.
        let (rows, seen) = make(self.observations.is_some()).map_err(|error| match error {
            Error::Argument { name, what } if name == "n" => Error::argument("-n", what),
            other => other,
        })?;
        rows.write(&self.output, overwrite)?;
        if let (Some(path), Some(seen)) = (&self.observations, seen) {
            seen.write(path, overwrite)?;
        }
        Ok(0)
    }
}

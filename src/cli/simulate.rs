//! `hintflow simulate`

use std::path::PathBuf;

use crate::Error;
use crate::Overwrite;
use crate::data::shapes::lens::Outline;
use crate::data::{Shapes, check_table_output};
use clap::{Args, Subcommand};

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

/// Options of every data set.
#[derive(Args)]
struct Rows {
    /// Number of shapes
    #[arg(short, value_name = "N")]
    n: usize,
    /// Table to write: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write noisy observations of each shape
    #[arg(long, value_name = "FILE")]
    observations: Option<PathBuf>,
    /// Seed of the shapes
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
        }
    }
}

impl Rows {
    fn write(self, shapes: Shapes) -> Done {
        check_table_output(&self.output, Overwrite::allowed_if(self.force))?;
        // The library knows no option of that name.
        let named = |error| match error {
            Error::Argument { name, what } if name == "n" => Error::argument("-n", what),
            other => other,
        };
        match &self.observations {
            Some(path) => {
                check_table_output(path, Overwrite::allowed_if(self.force))?;
                output::distinct(&[("-o", &self.output), ("--observations", path)], &[])?;
                let (rows, seen) = shapes.generate_with_observations(self.n, self.seed, 0).map_err(named)?;
                rows.write(&self.output, Overwrite::allowed_if(self.force))?;
                seen.write(path, Overwrite::allowed_if(self.force))?;
            }
            None => {
                let rows = shapes.generate(self.n, self.seed, 0).map_err(named)?;
                rows.write(&self.output, Overwrite::allowed_if(self.force))?;
            }
        }
        Ok(0)
    }
}

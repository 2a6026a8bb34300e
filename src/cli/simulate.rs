//! `hintflow simulate`

use std::path::PathBuf;

use clap::{Args, Subcommand};
use hintflow::Error;
use hintflow::data::check_table_output;
use hintflow::data::lens::{self, Outline};

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
}

const LENS_HELP: &str = "\
With seed 1 and the same outline these are the training rows of `hintflow train lens`.

Example:
  hintflow simulate lens -n 10000 -o lens.npy --observations seen.npy";

/// Lens shapes: intersections of two circles, as 20 Fourier coefficients
#[derive(Args)]
#[command(after_help = LENS_HELP)]
struct Lens {
    /// Number of shapes
    #[arg(short, value_name = "N")]
    n: usize,
    /// Table to write: .npy or .csv
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    /// Also write noisy observations of each shape: horizontal and vertical distance of its tips
    #[arg(long, value_name = "FILE")]
    observations: Option<PathBuf>,
    /// Points that are transformed: vertices (of polygons) or arc (equally spaced)
    #[arg(long, value_name = "OUTLINE", default_value = "vertices")]
    outline: Outline,
    /// Seed of the shapes
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Overwrite the files
    #[arg(long)]
    force: bool,
}

impl Simulate {
    pub(super) fn run(self) -> Done {
        let What::Lens(lens) = self.what;
        lens.run()
    }
}

impl Lens {
    fn run(self) -> Done {
        check_table_output(&self.output, self.force)?;
        // The library knows no option of that name.
        let named = |error| match error {
            Error::Config { key, what } if key == "n" => Error::config("-n", what),
            other => other,
        };
        match &self.observations {
            Some(path) => {
                check_table_output(path, self.force)?;
                output::distinct(&[("-o", &self.output), ("--observations", path)], &[])?;
                let (shapes, seen) =
                    lens::generate_with_observations(self.n, self.seed, self.outline, 0).map_err(named)?;
                shapes.write(&self.output, self.force)?;
                seen.write(path, self.force)?;
            }
            None => {
                let shapes = lens::generate(self.n, self.seed, self.outline, 0).map_err(named)?;
                shapes.write(&self.output, self.force)?;
            }
        }
        Ok(0)
    }
}

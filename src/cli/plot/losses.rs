//! `hintflow plot losses`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::report::{Course, MOST_COURSES, compared_losses};
use crate::train::folder::{RunFolder, metrics_of};
use crate::train::metrics;
use crate::{Error, Result};

use super::{Picture, titles};

/// Losses of the held-out rows of one run, or of several beside each other
#[derive(Args)]
pub(super) struct Losses {
    /// Run folders
    #[arg(required = true, value_name = "RUN")]
    runs: Vec<PathBuf>,
    #[command(flatten)]
    picture: Picture,
}

impl Losses {
    pub(super) fn draw(&self) -> Result<PathBuf> {
        let path = self.picture.path(&[])?;
        if self.runs.len() > MOST_COURSES {
            let what = format!("{} are named; at most {MOST_COURSES} can be told apart in a picture", self.runs.len());
            return Err(Error::config("RUN", what));
        }
        let courses = self.runs.iter().zip(titles(&self.runs)).map(|(run, name)| course(run, name));
        compared_losses(&path, &courses.collect::<Result<Vec<_>>>()?)?;
        Ok(path)
    }
}

fn course(run: &Path, name: String) -> Result<Course> {
    RunFolder::is_run(run)?;
    let reports = metrics::read(&metrics_of(run))?;
    let point = |report: &crate::train::EpochReport| Some((report.epoch as f64, report.validation_loss?));
    let points: Vec<(f64, f64)> = reports.iter().filter_map(point).collect();
    if points.iter().all(|(_, loss)| !loss.is_finite()) {
        let what = match reports.len() {
            0 => "has trained no epoch yet",
            _ => "has no losses of held-out rows: none were held out (data.validation)",
        };
        return Err(Error::format(run, what));
    }
    Ok(Course { name, points })
}

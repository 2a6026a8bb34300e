//! The pictures of a run.

use super::folder::Folder;
use super::settings::SystemSettings;
use super::{Row, Series, Settings};
use crate::data::Table;
use crate::data::lotka_volterra::OBSERVED;
use crate::error::{Error, Result};
use crate::filter::measure;
use crate::report::{PosteriorRow, Track, posteriors, tracks};

/// Steps of a picture of posteriors, at most.
const STEPS: usize = 10;
/// Columns of a state that are drawn, at most.
const COLUMNS: usize = 12;

/// Draws what there is: the bands of each column over time, and the posterior of each at some steps.
pub(super) fn draw(
    folder: &Folder,
    settings: &Settings,
    names: &[String],
    rows: &[Row],
    series: &Series,
) -> Result<()> {
    if rows.is_empty() {
        return Ok(());
    }
    let plots = folder.plots();
    std::fs::create_dir_all(&plots).map_err(|e| Error::io("create", &plots, e))?;
    let n = names.len();
    let begin = folder.sampled(0)?;
    let begin = measure::columns(begin.values(), n, None)?;
    let all: Vec<Track> =
        (0..n.min(COLUMNS)).map(|column| track(settings, names, &begin, rows, series, column)).collect();
    tracks(&plots.join("states"), 0, &all)?;
    let apart = rows.len().div_ceil(STEPS);
    let steps: Vec<u32> =
        rows.iter().map(|row| row.step.step).filter(|step| (*step as usize).is_multiple_of(apart)).collect();
    let samples = steps.iter().map(|step| folder.sampled(*step)).collect::<Result<Vec<_>>>()?;
    for (column, name) in names.iter().enumerate().take(COLUMNS) {
        let of = |table: &Table| table.iter_rows().map(|row| row[column]).collect::<Vec<_>>();
        let row = PosteriorRow { name: settings.method.label().into(), steps: samples.iter().map(of).collect() };
        let truth = |table: &Table| steps.iter().map(|step| f64::from(table.row(*step as usize - 1)[column])).collect();
        let truth: Vec<f64> = series.truth.as_ref().map(truth).unwrap_or_default();
        let title = format!("Posterior of {name}");
        posteriors(&plots.join(format!("posterior_{}", column + 1)), &title, &steps, &[row], None, &truth)?;
    }
    Ok(())
}

fn track(
    settings: &Settings,
    names: &[String],
    begin: &[measure::Column],
    rows: &[Row],
    series: &Series,
    column: usize,
) -> Track {
    let bands = std::iter::once(begin[column].quantiles).chain(rows.iter().map(|row| row.columns[column].quantiles));
    let (observed, noise) = match settings.system {
        SystemSettings::LotkaVolterra { observation_noise, .. } if column < OBSERVED => (true, observation_noise),
        _ => (false, 0.0),
    };
    let of = |table: &Table| table.iter_rows().take(rows.len()).map(|row| f64::from(row[column])).collect::<Vec<_>>();
    Track {
        name: names[column].clone(),
        bands: bands.collect(),
        reference: Vec::new(),
        truth: series.truth.as_ref().map(of).unwrap_or_default(),
        observed: if observed { of(&series.observations) } else { Vec::new() },
        noise,
    }
}

//! The pictures and tables of the experiment, and the page that has them.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::compare::{Compared, Covered};
use super::{Filter, NAME, TITLE, series_count, system_columns};
use crate::atomic::{Overwrite, write_atomic};
use crate::data::Table;
use crate::data::lotka_volterra::{LotkaVolterra, OBSERVED, SPECIES};
use crate::error::Result;
use crate::filter::measure;
use crate::filter::run::{read_steps, samples_of, series_of};
use crate::paper::Request;
use crate::report::{PosteriorRow, Track, posteriors, tracks};

/// The picture of the posteriors, beside the one that has the experiment's name.
fn picture_of_posteriors(path: &Path) -> PathBuf {
    path.with_file_name(format!("{NAME}_posteriors"))
}

/// Draws the populations as HINT has them, and the posteriors of the one that is not measured.
pub(super) fn draw(folders: &[(Filter, PathBuf)], path: &Path) -> Result<()> {
    let rows = |folder: &Path| read_steps(&folder.join("steps.csv"), system_columns());
    let find =
        |wanted: Filter| folders.iter().find(|(filter, _)| *filter == wanted).map(|(_, folder)| folder.as_path());
    let (Some(particles), Some(hint)) = (find(Filter::Particle), find(Filter::Hint)) else { return Ok(()) };
    let (own, right, series) = (rows(hint)?, rows(particles)?, series_of(hint)?);
    let bands = |folder: &Path, rows: &[crate::filter::run::Row], column: usize| -> Result<Vec<[f64; 5]>> {
        let begin = measure::columns(Table::read(samples_of(folder, 0))?.values(), SPECIES, None)?;
        Ok(std::iter::once(begin[column].quantiles)
            .chain(rows.iter().map(|row| row.columns[column].quantiles))
            .collect())
    };
    let column_of =
        |table: &Table, column: usize| table.iter_rows().map(|row| f64::from(row[column])).collect::<Vec<_>>();
    let mut all = Vec::new();
    for (column, name) in LotkaVolterra::names().into_iter().enumerate() {
        let measured = column < OBSERVED;
        all.push(Track {
            name,
            bands: bands(hint, &own, column)?,
            reference: bands(particles, &right, column)?,
            truth: series.truth.as_ref().map(|truth| column_of(truth, column)).unwrap_or_default(),
            observed: if measured { column_of(&series.observations, column) } else { Vec::new() },
            noise: LotkaVolterra::default().observation_noise,
        });
    }
    tracks(path, 0, &all)?;
    let last = SPECIES - 1;
    let steps: Vec<u32> = own.iter().map(|row| row.step.step).collect();
    let of = |filter: Filter, folder: &Path| -> Result<PosteriorRow> {
        let values = |step: &u32| -> Result<Vec<f32>> {
            Ok(Table::read(samples_of(folder, *step))?.iter_rows().map(|row| row[last]).collect())
        };
        Ok(PosteriorRow { name: filter.label().into(), steps: steps.iter().map(values).collect::<Result<_>>()? })
    };
    let others = folders.iter().filter(|(filter, _)| *filter != Filter::Particle);
    let others = others.map(|(filter, folder)| of(*filter, folder)).collect::<Result<Vec<_>>>()?;
    let particles = of(Filter::Particle, particles)?;
    let truth = series.truth.as_ref().map(|truth| column_of(truth, last)).unwrap_or_default();
    let title = "Posterior of x4, which is not measured";
    posteriors(&picture_of_posteriors(path), title, &steps, &others, Some(&particles), &truth)
}

const CAPTION: &str = "Posteriors of the four populations given all measurements so far, by HINT: median, and the bands of \
the middle 50 % and 90 % (blue); those of the particle filter (thin lines); the truth (red). Crosses are measurements, \
with the deviation of their noise; x4 is not measured.";

const POSTERIORS: &str = "The posterior of x4 after each step, by HINT, by an INN and by an ensemble Kalman filter (rows), \
before that of the particle filter (grey). Every step has a scale of its own.";

/// Writes the page, and its tables as `.csv`.
pub(super) fn write(request: &Request<'_>, path: &Path, compared: &[Compared], covered: &[Covered]) -> Result<()> {
    let mut text = format!("# {TITLE}\n\n![{NAME}]({NAME}.png)\n\n{CAPTION}\n\n");
    let _ = write!(text, "![{NAME}_posteriors]({NAME}_posteriors.png)\n\n{POSTERIORS}\n\n");
    text += &table(compared);
    if !covered.is_empty() {
        text += "\n";
        text += &coverage(request, covered);
    }
    let set = if request.set.is_empty() { String::new() } else { format!(" Set besides: {}.", request.set.join(", ")) };
    let _ = write!(text, "\nScale `{}`.{set} The paper has no numbers of this experiment.\n", request.scale.name());
    write_atomic(&path.with_extension("md"), Overwrite::Yes, |file| file.write_all(text.as_bytes()))
}

/// The results of a filter, one for each series.
fn of<T>(all: &[T], filter: Filter, which: impl Fn(&T) -> Filter) -> Vec<&T> {
    all.iter().filter(|one| which(one) == filter).collect()
}

fn mean<'a, T>(all: &[&'a T], value: impl Fn(&'a T) -> f64) -> f64 {
    all.iter().map(|one| value(one)).sum::<f64>() / all.len() as f64
}

fn table(compared: &[Compared]) -> String {
    let series = compared.iter().filter(|one| one.filter == Filter::Particle).count();
    let mut text = format!(
        "Beside the particle filter, means over the steps of {}:\n\n\
         | filter | distance of means, x1 to x4 | deviation, x1 to x4 | furthest step | MMD | log-evidence | CRPS of x4 | seconds a step | simulations |\n\
         |---|---|---|---|---|---|---|---|---|\n",
        if series == 1 { "one series".into() } else { format!("{series} series") }
    );
    for filter in Filter::ALL {
        let own = of(compared, filter, |one| one.filter);
        if own.is_empty() {
            continue;
        }
        let species = |value: &dyn Fn(&Compared) -> [f64; SPECIES]| {
            let values: [f64; SPECIES] = std::array::from_fn(|i| mean(&own, |one| value(one)[i]));
            values.map(|value| format!("{value:.3}")).join(" ")
        };
        let worst = own.iter().map(|one| one.worst_mean).fold(0.0, f64::max);
        let furthest = own.iter().map(|one| one.worst_deviation);
        let furthest =
            furthest.fold(1.0, |worst: f64, v| if (v - 1.0).abs() > (worst - 1.0).abs() { v } else { worst });
        let known: Option<f64> = own.iter().map(|one| one.evidence).sum();
        let evidence = known.map_or("-".into(), |sum| format!("{:.3}", sum / own.len() as f64));
        let _ = writeln!(
            text,
            "| {} | {} | {} | {worst:.2}, {furthest:.2} | {:.5} | {evidence} | {:.5} | {:.1} | {:.0} |",
            filter.label(),
            species(&|one| one.mean),
            species(&|one| one.deviation),
            mean(&own, |one| one.mmd),
            mean(&own, |one| one.crps[SPECIES - 1]),
            mean(&own, |one| one.seconds),
            mean(&own, |one| one.simulations),
        );
    }
    text += "\nMeans are compared in standard deviations of the particles, deviations as parts of theirs; the furthest step \
             is that of any series and species. MMD is squared, of states in units of these deviations: what the particles \
             have is that of two draws of one posterior. The log-evidence is that of all observations, in nats away from \
             the particles'.\n";
    text
}

fn coverage(request: &Request<'_>, covered: &[Covered]) -> String {
    let series = series_count(request.scale);
    let mut text = format!(
        "Beside the truth of {series} other series, whose beginning is a draw of the initial guess, with the quick settings:\n\n\
         | filter | truths in the middle 50 % | in the middle 90 % | CRPS, x1 to x4 |\n|---|---|---|---|\n"
    );
    for filter in Filter::ALL {
        let own = of(covered, filter, |one| one.filter);
        let all: usize = own.iter().map(|one| one.of).sum();
        let part = |which: usize| own.iter().map(|one| one.inside[which]).sum::<usize>() as f64 / all as f64;
        let crps: [f64; SPECIES] = std::array::from_fn(|i| mean(&own, |one| one.crps[i]));
        let crps = crps.map(|value| format!("{value:.5}")).join(" ");
        let _ = writeln!(text, "| {} | {:.1} % | {:.1} % | {crps} |", filter.label(), 100.0 * part(0), 100.0 * part(1));
    }
    text
}

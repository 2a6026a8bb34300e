//! What a filter's posteriors are worth: beside those of many particles, and beside the truth.

use std::path::{Path, PathBuf};

use super::{Filter, system_columns};
use crate::data::Table;
use crate::data::lotka_volterra::SPECIES;
use crate::error::Result;
use crate::eval::mmd::Mmd;
use crate::filter::measure::some_rows;
use crate::filter::run::{Row, read_steps, samples_of};

/// Rows of each of two sets whose discrepancy is measured.
const MMD_ROWS: usize = 4000;

/// A filter beside the particles, as means over the steps of one series.
#[derive(Clone, Debug)]
pub(super) struct Compared {
    pub filter: Filter,
    /// Of each species: distance of the means in deviations of the particles, and deviation as a part of theirs.
    pub mean: [f64; SPECIES],
    pub deviation: [f64; SPECIES],
    /// The furthest mean of a step, and the deviation of a step that is the furthest from 1, of any species.
    pub worst_mean: f64,
    pub worst_deviation: f64,
    /// Squared discrepancy of the states, in deviations of the particles.
    pub mmd: f64,
    /// Distance of the log-evidence of all observations, in nats, of filters that know it.
    pub evidence: Option<f64>,
    /// Score of each species against the truth.
    pub crps: [f64; SPECIES],
    /// Of a step.
    pub seconds: f64,
    /// Of a step.
    pub simulations: f64,
}

/// How many truths lie in the bands of a filter, over the steps of one series and all species.
#[derive(Clone, Copy, Debug)]
pub(super) struct Covered {
    pub filter: Filter,
    /// In the middle 50 %, and 90 %.
    pub inside: [usize; 2],
    pub of: usize,
    /// Score of each species.
    pub crps: [f64; SPECIES],
}

/// Each filter beside the particles, which come first. They are compared with themselves.
pub(super) fn with_particles(folders: &[(Filter, PathBuf)]) -> Result<Vec<Compared>> {
    let (_, particles) = &folders[0];
    let truth = steps(particles)?;
    folders.iter().map(|(filter, folder)| compare(*filter, folder, &steps(folder)?, particles, &truth)).collect()
}

fn steps(folder: &Path) -> Result<Vec<Row>> {
    read_steps(&folder.join("steps.csv"), system_columns())
}

fn compare(filter: Filter, folder: &Path, rows: &[Row], particles: &Path, truth: &[Row]) -> Result<Compared> {
    let count = rows.len() as f64;
    let pairs = || rows.iter().zip(truth);
    let mean_of = |value: &dyn Fn(&Row, &Row, usize) -> f64| {
        std::array::from_fn(|i| pairs().map(|(own, true_)| value(own, true_, i)).sum::<f64>() / count)
    };
    let distance = |own: &Row, right: &Row, i: usize| {
        (own.columns[i].mean - right.columns[i].mean).abs() / right.columns[i].deviation
    };
    let part = |own: &Row, right: &Row, i: usize| own.columns[i].deviation / right.columns[i].deviation;
    let all = |value: &dyn Fn(&Row, &Row, usize) -> f64| -> Vec<f64> {
        pairs()
            .flat_map(|(own, right)| (0..SPECIES).map(move |i| (own, right, i)))
            .map(|(a, b, i)| value(a, b, i))
            .collect()
    };
    // A NaN is worse than anything.
    let worst = |values: Vec<f64>, from: f64| {
        values.into_iter().fold(from, |worst, v| if (v - from).abs() <= (worst - from).abs() { worst } else { v })
    };
    let evidence = |rows: &[Row]| rows.iter().map(|row| row.step.log_evidence).sum::<Option<f64>>();
    let mut mmd = 0.0;
    for (own, right) in pairs() {
        mmd += discrepancy(folder, particles, own.step.step, right)? / count;
    }
    Ok(Compared {
        filter,
        mean: mean_of(&distance),
        deviation: mean_of(&part),
        worst_mean: worst(all(&distance), 0.0),
        worst_deviation: worst(all(&part), 1.0),
        mmd,
        evidence: evidence(rows).zip(evidence(truth)).map(|(own, right)| (own - right).abs()),
        crps: mean_of(&|own, _, i| own.columns[i].score.map_or(f64::NAN, |score| score.crps)),
        seconds: rows.iter().map(|row| row.seconds).sum::<f64>() / count,
        simulations: rows.iter().map(|row| row.step.simulations as f64).sum::<f64>() / count,
    })
}

/// The discrepancy of a step's states from those of the particles, `right`.
fn discrepancy(folder: &Path, particles: &Path, step: u32, right: &Row) -> Result<f64> {
    let states = |folder: &Path| -> Result<Vec<f32>> {
        let table = Table::read(samples_of(folder, step))?;
        let mut some = some_rows(table.values(), SPECIES, 2 * MMD_ROWS);
        for row in some.chunks_exact_mut(SPECIES) {
            for (value, column) in row.iter_mut().zip(&right.columns) {
                *value = ((f64::from(*value) - column.mean) / column.deviation) as f32;
            }
        }
        Ok(some)
    };
    let (own, theirs) = (states(folder)?, states(particles)?);
    // Every other row of each: the particles beside themselves are other ones.
    let half = |rows: &[f32], which: usize| -> Vec<f32> {
        rows.chunks_exact(SPECIES).skip(which).step_by(2).flatten().copied().collect()
    };
    Ok(Mmd::of(&half(&own, 0), &half(&theirs, 1), SPECIES)?.squared)
}

/// How many truths lie in the bands of each filter.
pub(super) fn with_truth(folders: &[(Filter, PathBuf)]) -> Result<Vec<Covered>> {
    let of = |(filter, folder): &(Filter, PathBuf)| {
        let rows = steps(folder)?;
        let scores: Vec<_> = rows
            .iter()
            .flat_map(|row| row.columns.iter().enumerate().filter_map(|(i, c)| Some((i, c.score?))))
            .collect();
        let inside = [0, 1].map(|which| scores.iter().filter(|(_, score)| score.inside[which]).count());
        let crps = std::array::from_fn(|i| {
            let own: Vec<f64> = scores.iter().filter(|(column, _)| *column == i).map(|(_, score)| score.crps).collect();
            own.iter().sum::<f64>() / own.len() as f64
        });
        Ok(Covered { filter: *filter, inside, of: scores.len(), crps })
    };
    folders.iter().map(of).collect()
}

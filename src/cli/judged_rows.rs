//! The rows that a model is judged by: those that it was not trained on.

use std::path::Path;

use crate::config::Config;
use crate::counted::counted;
use crate::data::files::Far;
use crate::data::{Table, side_by_side};
use crate::measure;
use crate::rng::{Stream, permutation_on};
use crate::train::density::{held_out_lanes, not_trained_on};
use crate::{Error, Flow, Result};

use super::model;

/// Rows that are looked at.
pub(super) struct JudgedRows {
    /// What they are, in words.
    pub(super) of: String,
    pub(super) x: Vec<f32>,
    /// As many rows where the model is conditional.
    pub(super) y: Vec<f32>,
    /// Their numbers in the file, from 1; empty of data that are no file.
    pub(super) numbers: Vec<usize>,
}

impl JudgedRows {
    /// Rows of a table, at most `most`: by default, those that the model was not trained on; `all`: also the others.
    pub(super) fn of_table(flow: &Flow, data: &model::Data, all: bool, most: usize) -> Result<Self> {
        let model::Tables { x, y } = data.tables_for(flow, Far::Nearest)?;
        data.inside(flow, &x)?;
        let far = far_rows(data, flow, &x, y.as_ref())?;
        let (x, y) = (x.into_values(), y.map(Table::into_values).unwrap_or_default());
        let (dim, conditions) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
        let rows = x.len() / dim;
        let y = model::one_each(&y, rows, conditions);
        let file = data.path.display();
        let own = flow.training().and_then(|training| not_trained_on(&training, &side_by_side(&y, &x, rows)));
        let (of, mut chosen) = match own {
            Some(own) if !all && !own.is_empty() => {
                tracing::info!(
                    "{file} is the table of the training: looking at the {} of {rows} that the model was not trained on \
                     (--all takes all)",
                    counted(own.len(), "row")
                );
                (format!("held-out rows of {file}"), own)
            }
            own => {
                if own.is_some() {
                    tracing::warn!("the model was trained on rows of {file}: what is found says less of others");
                }
                (format!("rows of {file}"), (0..rows).collect())
            }
        };
        chosen.retain(|row| far.binary_search(row).is_err());
        if chosen.is_empty() {
            let what = "every row that would be looked at has a number that no 32-bit float holds";
            return Err(Error::format(&data.path, what));
        }
        chosen = some(chosen, most);
        let of_rows = |values: &[f32], columns: usize| {
            chosen.iter().flat_map(|&row| &values[row * columns..][..columns]).copied().collect()
        };
        let (x, y) = (of_rows(&x, dim), of_rows(&y, conditions));
        Ok(Self { of, x, y, numbers: chosen.iter().map(|row| row + 1).collect() })
    }

    /// The rows that a run held out, at most `most`.
    pub(super) fn of_run(flow: &Flow, run: &Path, config: &Config, most: usize) -> Result<Self> {
        let file = crate::train::folder::read_model(run)?;
        let data = measure::dataset_of_run(run, config, &file)?;
        let rows = held_out_lanes(&data);
        let (dim, conditions) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
        let chosen = some((0..rows.x.len() / dim).collect(), most);
        let of_rows = |values: &[f32], columns: usize| {
            chosen.iter().flat_map(|&row| &values[row * columns..][..columns]).copied().collect()
        };
        let (x, y) = (of_rows(&rows.x, dim), of_rows(&rows.y, conditions));
        Ok(Self { of: format!("held-out rows of {}", run.display()), x, y, numbers: Vec::new() })
    }

    /// Their number.
    pub(super) fn count(&self, flow: &Flow) -> usize {
        self.x.len() / flow.spec().dim as usize
    }
}

/// The rows, from 0, with a number that no float holds, in order. Warns of them: they are left out.
fn far_rows(data: &model::Data, flow: &Flow, x: &Table, y: Option<&Table>) -> Result<Vec<usize>> {
    // One observation for all rows has to be possible.
    let (of_each, of_all) = if y.is_some_and(|y| y.rows == x.rows) { (y, None) } else { (None, y) };
    data.possible(flow, of_all)?;
    if let Some(y) = of_each {
        model::inside(flow.units_of_conditions(), y, data.path_of_y())?;
    }
    let (far, first) = model::far_rows([Some((x, data.path.as_path())), of_each.map(|y| (y, data.path_of_y()))]);
    if let Some(first) = first {
        tracing::warn!(
            "{} of {} left out, with a number that no 32-bit float holds: the density there is 0. The first: {first}",
            far.len(),
            counted(x.rows, "row")
        );
    }
    Ok(far)
}

/// At most so many rows, by chance and in order: the first ones of a sorted table would not stand for all.
fn some(rows: Vec<usize>, most: usize) -> Vec<usize> {
    if rows.len() <= most {
        return rows;
    }
    tracing::info!("looking at {most} of {}, chosen by chance", counted(rows.len(), "row"));
    let order = permutation_on(0, Stream::Diagnosis, 3, rows.len() as u32);
    let mut chosen: Vec<usize> = order[..most].iter().map(|&place| rows[place as usize]).collect();
    chosen.sort_unstable();
    chosen
}

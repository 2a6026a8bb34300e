//! The pictures of a run: loss curves always, samples beside data when it is finished.

mod shapes;

use std::path::Path;

use super::dataset::Dataset;
use super::decision::Kept;
use super::folder::{RunFolder, picture};
use super::metrics;
use crate::config::Config;
use crate::data::side_by_side;
use crate::error::{Error, Result};
use crate::flow::{Flow, Lanes};
use crate::plan::Kind;
use crate::report::{LossHistory, LossPoint, correlation, fourier_blocks, loss_curves, marginals, pairs};

/// Samples, and data rows they are compared with.
const COMPARED: usize = 10_000;

/// Draws what can be drawn into the folder `plots`. One failure does not keep the others from being tried; the first
/// is returned. Samples are those of the model that was kept; there is none before the end.
pub(super) fn write(
    folder: &RunFolder,
    config: &Config,
    flow: &Flow,
    data: &Dataset,
    kept: Option<Kept>,
) -> Result<()> {
    let plots = folder.plots();
    let mut results = vec![losses(&folder.metrics(), &plots, kept)];
    if kept.is_some() {
        results.push(samples(&plots, config, flow, data));
    }
    results.into_iter().collect()
}

fn losses(metrics: &Path, plots: &Path, kept: Option<Kept>) -> Result<()> {
    let reports = metrics::read(metrics)?;
    if reports.is_empty() {
        return Ok(());
    }
    let point = |r: &crate::train::EpochReport| LossPoint {
        epoch: r.epoch as f64,
        train: r.train_loss,
        test: r.validation_loss,
        learning_rate: r.learning_rate,
    };
    create(plots)?;
    // The last epoch needs no mark.
    let kept = kept.filter(|kept| kept.epoch < kept.epochs).map(|kept| kept.epoch as f64);
    loss_curves(&plots.join(picture::LOSS), &LossHistory { points: reports.iter().map(point).collect(), kept })
}

fn samples(plots: &Path, config: &Config, flow: &Flow, data: &Dataset) -> Result<()> {
    if data.train_rows() < 2 {
        // There is nothing to compare with, which was told when the training began.
        return Ok(());
    }
    create(plots)?;
    let rows = data.some_rows(COMPARED);
    let seed = config.train.seed;
    let drawn = match flow.spec().kind {
        Kind::Flow => Lanes { y: Vec::new(), x: flow.sample(COMPARED, seed)? },
        // One sample for the conditions of each row.
        Kind::Cinn | Kind::Inn => Lanes { x: flow.given(&rows.y)?.sample(1, seed)?, y: rows.y.clone() },
        Kind::Hint => flow.joint()?.sample(COMPARED, seed)?,
    };
    if let Some(shapes) = config.data.preset.and_then(|preset| preset.shapes(config.data.outline)) {
        let labels = fourier_blocks(shapes.order());
        let map = correlation(&plots.join(picture::CORRELATION), &rows.x, &drawn.x, data.dim, &labels);
        let outlines = shapes::outlines_of(plots, shapes, config.data.seed, &drawn.x);
        let posterior = if data.cond_dim > 0 { shapes::posterior(plots, shapes, flow, data, seed) } else { Ok(()) };
        return map.and(outlines).and(posterior);
    }
    // Conditions and what depends on them side by side.
    let n = data.row_columns();
    let are_named = !data.x.columns.is_empty() && (data.cond_dim == 0 || !data.y.columns.is_empty());
    let are_packed = !data.x.packing.is_empty() || !data.y.packing.is_empty();
    let names = match are_named || are_packed {
        true => [data.y.labels(data.cond_dim), data.x.labels(data.dim)].concat(),
        false => Vec::new(),
    };
    let [rows, drawn] = [rows, drawn].map(|lanes| side_by_side(&lanes.y, &lanes.x, lanes.x.len() / data.dim));
    let map = correlation(&plots.join(picture::CORRELATION), &rows, &drawn, n, &names);
    let shapes = marginals(&plots.join(picture::MARGINALS), &rows, &drawn, n, &names);
    map.and(shapes).and(pairs(&plots.join(picture::PAIRS), &rows, &drawn, n, &names))
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))
}

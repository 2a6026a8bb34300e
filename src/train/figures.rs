//! The pictures of a run: loss curves always, samples beside data when it is finished.

use std::path::Path;

use super::best::Kept;
use super::dataset::Dataset;
use super::folder::{RunFolder, picture};
use super::metrics;
use crate::config::{Config, Preset};
use crate::data::fourier::Curve;
use crate::data::lens::{self, Lens};
use crate::data::side_by_side;
use crate::error::{Error, Result};
use crate::flow::{Flow, Lanes};
use crate::plan::Kind;
use crate::report::{
    LossHistory, LossPoint, Outline, correlation, fourier_blocks, loss_curves, marginals, outlines, pairs,
};

/// Samples, and data rows they are compared with.
const COMPARED: usize = 10_000;
/// Outlines drawn on each side.
const OUTLINES: usize = 36;
/// Points of a drawn curve.
const POINTS: usize = 256;

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
    let point = |r: &metrics::EpochReport| LossPoint {
        epoch: r.epoch as f64,
        train: r.train_loss,
        test: r.test_loss,
        learning_rate: r.lr,
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
        Kind::Cinn => Lanes { x: flow.given(&rows.y)?.sample(1, seed)?, y: rows.y.clone() },
        Kind::Hint => flow.sample_joint(COMPARED, seed)?,
    };
    if config.data.preset == Some(Preset::Lens) {
        let labels = fourier_blocks(lens::ORDER);
        let map = correlation(&plots.join(picture::CORRELATION), &rows.x, &drawn.x, data.dim, &labels);
        let posterior = if data.cond_dim > 0 { posterior(plots, config, flow, data) } else { Ok(()) };
        return map.and(lens_outlines(plots, config, &drawn.x)).and(posterior);
    }
    // Conditions and what depends on them side by side.
    let n = data.row_columns();
    let names = if data.x.columns.is_empty() || (data.cond_dim > 0 && data.y.columns.is_empty()) {
        Vec::new()
    } else {
        [&data.y.columns[..], &data.x.columns].concat()
    };
    let [rows, drawn] = [rows, drawn].map(|lanes| side_by_side(&lanes.y, &lanes.x, lanes.x.len() / data.dim));
    let map = correlation(&plots.join(picture::CORRELATION), &rows, &drawn, n, &names);
    let shapes = marginals(&plots.join(picture::MARGINALS), &rows, &drawn, n, &names);
    map.and(shapes).and(pairs(&plots.join(picture::PAIRS), &rows, &drawn, n, &names))
}

/// Samples for one held-out observation, beside the shapes of the data whose observations come nearest to it (paper, figure
/// "Samples from a conditional coupling net and from HINT").
fn posterior(plots: &Path, config: &Config, flow: &Flow, data: &Dataset) -> Result<()> {
    let (c, row) = (data.cond_dim, data.row_columns());
    let rows = if data.test.is_empty() { &data.train[..] } else { &data.test[..] };
    let Some(seen) = rows.get(..c) else { return Ok(()) };
    let distance = |row: &[f32]| row.iter().zip(seen).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let mut near: Vec<&[f32]> = data.train.chunks_exact(row).collect();
    let count = OUTLINES.min(near.len());
    near.select_nth_unstable_by(count - 1, |a, b| distance(&a[..c]).total_cmp(&distance(&b[..c])));
    let near: Vec<f32> = near[..count].iter().flat_map(|row| &row[c..]).copied().collect();

    let seen = data.y.outer(seen.to_vec());
    let samples = flow.given(&seen)?.sample(OUTLINES, config.train.seed)?;
    let outline = |row: &[f32]| -> Result<Outline> {
        let curve = Curve::new(row)?;
        let [from, to] = curve.farthest_pair();
        let narrow = |p: [f64; 2]| p.map(|v| v as f32);
        // As long as it was observed, in the middle of the curve's own, in the direction that is nearer.
        let half = [0, 1].map(|axis| 0.5 * f64::from(seen[axis]) * (to[axis] - from[axis]).signum());
        let end = |side: f64| narrow([0, 1].map(|axis| 0.5 * (from[axis] + to[axis]) + side * half[axis]));
        Ok(Outline {
            points: curve.trace(POINTS).into_iter().map(narrow).collect(),
            diameter: Some([from, to].map(narrow)),
            target: Some([end(-1.0), end(1.0)]),
            ..Outline::default()
        })
    };
    let all = |rows: &[f32]| rows.chunks_exact(lens::DIM).map(outline).collect::<Result<Vec<_>>>();
    let title = format!("samples given d_h = {:.2}, d_v = {:.2} (red)", seen[0], seen[1]);
    let titles = [title.as_str(), "data with nearly these; green: its own diameter"];
    outlines(&plots.join(picture::POSTERIOR), &all(&samples)?, &all(&data.x.outer(near))?, titles)
}

fn lens_outlines(plots: &Path, config: &Config, drawn: &[f32]) -> Result<()> {
    let narrow = |points: Vec<[f64; 2]>| points.into_iter().map(|p| p.map(|v| v as f32)).collect::<Vec<_>>();
    let curve = |row: &[f32]| Curve::new(row).map(|curve| narrow(curve.trace(POINTS)));
    let sampled = drawn.chunks_exact(lens::DIM).take(OUTLINES).map(|row| curve(row).map(Outline::from));
    let outline = config.data.outline.unwrap_or_default();
    let truth = (0..OUTLINES as u64).map(|row| {
        let lens = Lens::of_row(config.data.seed, row);
        let points = curve(&lens.coefficients(outline))?;
        Ok(Outline { points, reference: Some(narrow(lens.boundary(outline, POINTS / 2))), ..Outline::default() })
    });
    let sampled = sampled.collect::<Result<Vec<_>>>()?;
    let truth = truth.collect::<Result<Vec<_>>>()?;
    outlines(&plots.join(picture::OUTLINES), &sampled, &truth, ["samples", "data, and the shapes behind them"])
}

fn create(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).map_err(|e| Error::io("create", folder, e))
}

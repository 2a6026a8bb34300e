//! Figures of samples.

use std::path::Path;

use rayon::prelude::*;

use crate::config::Preset;
use crate::counted::counted;
use crate::data::Shapes;
use crate::data::shapes::fourier::Curve;

use crate::error::{Error, Result};
use crate::eval::correlation::Correlation;
use crate::eval::fit::{Rules, best_outline};
use crate::measure::held_out;
use crate::paper::lab::{Found, Lab};
use crate::paper::model::{Family, Model};
use crate::report::{
    ACROSS, DOWN, GalleryMap, GalleryRow, GalleryScale, Ink, Outline, cross_axes, fourier_blocks, gallery, grouped,
    lens_diameters, single_precision,
};

/// At most so many rows of samples and data whose correlations are compared.
const CORRELATED: usize = 100_000;
/// Points of a drawn curve.
const POINTS: usize = 256;

const BEST_FIT: (Ink, &str) = (Ink::Red, "true shape that fits best");
const SAMPLE: (Ink, &str) = (Ink::Curve, "sample");

pub(super) fn lens_models() -> Vec<Model> {
    [Family::RealNvp, Family::Recursive].map(|family| Model::new(Preset::Lens, family, 2)).into()
}

pub(super) fn cross_models() -> Vec<Model> {
    [Family::RealNvp, Family::Recursive].map(|family| Model::new(Preset::Cross, family, 4)).into()
}

pub(super) fn deep_models() -> Vec<Model> {
    let plain = [4, 8, 16, 32].map(|blocks| Model::new(Preset::Cross, Family::RealNvp, blocks));
    plain.into_iter().chain([Model::new(Preset::Cross, Family::Recursive, 4)]).collect()
}

pub(super) fn lens_given_models() -> Vec<Model> {
    given(Preset::Lens, [1, 4])
}

pub(super) fn cross_given_models() -> Vec<Model> {
    given(Preset::Cross, [4, 8])
}

fn given(data: Preset, blocks: [u32; 2]) -> Vec<Model> {
    let families = |blocks| [Family::Cinn, Family::Hint].map(|family| Model::new(data, family, blocks));
    blocks.into_iter().flat_map(families).collect()
}

/// Samples over the true shapes that fit them best.
pub(super) fn over_best_fits(lab: &mut Lab<'_>, models: &[Model], path: &Path) -> Result<bool> {
    drawn(lab, models, path, &[SAMPLE, BEST_FIT])
}

pub(super) fn lens_given(lab: &mut Lab<'_>, models: &[Model], path: &Path) -> Result<bool> {
    let own = (Ink::Green, "its largest diameter");
    let seen = (Ink::Blue, "a diameter as long as observed");
    drawn(lab, models, path, &[SAMPLE, own, seen])
}

pub(super) fn cross_given(lab: &mut Lab<'_>, models: &[Model], path: &Path) -> Result<bool> {
    let seen = (Ink::Blue, "axes that were observed");
    drawn(lab, models, path, &[SAMPLE, seen, BEST_FIT])
}

fn drawn(lab: &mut Lab<'_>, models: &[Model], path: &Path, legend: &[(Ink, &str)]) -> Result<bool> {
    let mut rows = Vec::new();
    for model in models {
        let Some(row) = row(lab, model)? else { return Ok(false) };
        rows.push(row);
    }
    let mut points = rows.iter().flat_map(|row| &row.outlines).map(|outline| &outline.points);
    if !points.any(|points| points.iter().flatten().all(|v| v.is_finite())) {
        let text = format!("{}: no model has a sample that can be drawn", path.display());
        lab.watcher.warning(&text);
        return Ok(false);
    }
    gallery(path, &rows, GalleryScale::Common, legend)?;
    Ok(true)
}

/// Samples of a model; of a conditional one each is given the observation of another row of the test set. None if it
/// is not there; one that diverged has a title alone.
fn row(lab: &mut Lab<'_>, model: &Model) -> Result<Option<GalleryRow>> {
    let name = format!("{}, {}", model.label(), counted(model.blocks, "block"));
    let flow = match lab.flow(model)? {
        Found::Flow(flow) => flow,
        Found::Diverged => {
            let title = format!("{name}: its training diverged");
            return Ok(Some(GalleryRow { title, outlines: vec![], map: None, labels: vec![] }));
        }
        Found::Nothing => return Ok(None),
    };
    let config = lab.config(model, 1)?;
    let shapes = model.data.shapes(config.data.outline).unwrap_or_else(|| unreachable!("figures show shapes"));
    let count = lab.request.scale.protocol(model).correlated.min(CORRELATED);
    let (x, y) = held_out(shapes, &config, count, model.is_conditional())?;
    let samples = match &y {
        None => flow.sample(count, config.train.seed)?,
        Some(y) => flow.given(y)?.sample(1, config.train.seed)?,
    };
    let finite = samples.chunks_exact(shapes.dim()).filter(|row| row.iter().all(|v| v.is_finite())).count();
    // Of a model whose samples are no numbers there is nothing to compare.
    let map = if finite < 2 { None } else { Some(difference(&x, &samples, shapes.dim())?) };
    let seen = y.as_deref().unwrap_or_default();
    Ok(Some(GalleryRow {
        title: format!("{name}, {} parameters", grouped(flow.parameters() as u64)),
        outlines: outlines(shapes, &samples, seen)?,
        map,
        labels: fourier_blocks(shapes.order()),
    }))
}

fn difference(data: &[f32], samples: &[f32], dim: usize) -> Result<GalleryMap> {
    let (data, samples) = (Correlation::of(data, dim)?, Correlation::of(samples, dim)?);
    Ok(GalleryMap::Difference { values: data.abs_difference(&samples)?, mean: data.mean_abs_difference(&samples)? })
}

/// The first samples, with what the figure compares them with; `seen` is empty if nothing was observed.
fn outlines(shapes: Shapes, samples: &[f32], seen: &[f32]) -> Result<Vec<Outline>> {
    let columns = shapes.observations().len();
    let shown = &samples[..ACROSS * DOWN * shapes.dim()];
    shown
        .par_chunks_exact(shapes.dim())
        .enumerate()
        .map(|(k, row)| {
            let curve = Curve::new(row)?;
            let fitted = || match best_outline(shapes, row, Rules::AnySize) {
                Ok(points) => Ok(Some(single_precision(points))),
                Err(Error::NotFinite { .. }) => Ok(None),
                Err(other) => Err(other),
            };
            let points = single_precision(curve.trace(POINTS));
            let broken = row.iter().any(|v| !v.is_finite());
            Ok(match (shapes, seen.get(k * columns..(k + 1) * columns)) {
                _ if broken => Outline::from(points),
                (_, None) => Outline { points, reference: fitted()?, ..Outline::default() },
                (Shapes::Lens(_), Some(y)) => {
                    let (measured, observed) = lens_diameters(&curve, y);
                    Outline { points, measured, observed, reference: None }
                }
                (Shapes::Cross, Some(y)) => {
                    Outline { points, measured: Vec::new(), observed: cross_axes(&curve, y), reference: fitted()? }
                }
            })
        })
        .collect()
}

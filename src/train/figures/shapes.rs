//! Pictures of models of the paper's shapes: sampled curves beside true ones, and samples for one observation.

use std::ops::Range;
use std::path::Path;

use crate::data::Shapes;
use crate::data::shapes::fourier::Curve;
use crate::error::Result;
use crate::flow::{Flow, Lanes};
use crate::report::{Outline, cross_axes, lens_diameters, outlines, single_precision};
use crate::train::dataset::Dataset;
use crate::train::folder::picture;

/// Outlines drawn on each side.
const OUTLINES: usize = 36;
/// Points of a drawn curve.
const POINTS: usize = 256;

/// Sampled curves beside those of the data set, with the shapes that these approximate behind them (paper, figures of
/// the data sets and of unconditional samples).
pub(super) fn outlines_of(plots: &Path, shapes: Shapes, data_seed: u64, drawn: &[f32]) -> Result<()> {
    let traced = |row: &[f32]| Curve::new(row).map(|curve| single_precision(curve.trace(POINTS)));
    let sampled = drawn.chunks_exact(shapes.dim()).take(OUTLINES).map(|row| traced(row).map(Outline::from));
    let mut rows = vec![0.0; OUTLINES * shapes.dim()];
    shapes.fill(&mut rows, data_seed, 0);
    let truth = rows.chunks_exact(shapes.dim()).zip(0..).map(|(row, number)| {
        let reference = shapes.boundary(data_seed, number, POINTS / 2);
        Ok(Outline { points: traced(row)?, reference: Some(single_precision(reference)), ..Outline::default() })
    });
    let sampled = sampled.collect::<Result<Vec<_>>>()?;
    let truth = truth.collect::<Result<Vec<_>>>()?;
    outlines(&plots.join(picture::OUTLINES), &sampled, &truth, ["samples", "data; red: their true shapes"])
}

/// Samples for one held-out observation, beside the shapes of the data whose observations come nearest to it (paper,
/// figures "Samples from a conditional coupling net and from HINT").
pub(super) fn posterior(plots: &Path, shapes: Shapes, flow: &Flow, data: &Dataset, seed: u64) -> Result<()> {
    let (c, row) = (data.cond_dim, data.row_columns());
    let rows = if data.test.is_empty() { &data.train[..] } else { &data.test[..] };
    let Some(seen) = rows.get(..c) else { return Ok(()) };
    let distance = |row: &[f32]| row.iter().zip(seen).map(|(a, b)| (a - b) * (a - b)).sum::<f32>();
    let mut near: Vec<&[f32]> = data.train.chunks_exact(row).collect();
    let count = OUTLINES.min(near.len());
    near.select_nth_unstable_by(count - 1, |a, b| distance(&a[..c]).total_cmp(&distance(&b[..c])));
    let part = |columns: Range<usize>| near[..count].iter().flat_map(|row| &row[columns.clone()]).copied().collect();
    let near = data.outer(Lanes { y: part(0..c), x: part(c..row) }).x;

    let seen = data.y.outer(seen.to_vec());
    let samples = flow.given(&seen)?.sample(OUTLINES, seed)?;
    let outline = |row: &[f32]| -> Result<Outline> {
        let curve = Curve::new(row)?;
        let (measured, observed) = match shapes {
            Shapes::Lens(_) => lens_diameters(&curve, &seen),
            Shapes::Cross => (Vec::new(), cross_axes(&curve, &seen)),
        };
        Ok(Outline { points: single_precision(curve.trace(POINTS)), measured, observed, reference: None })
    };
    let all = |rows: &[f32]| rows.chunks_exact(shapes.dim()).map(outline).collect::<Result<Vec<_>>>();
    let (title, beside) = match shapes {
        Shapes::Lens(_) => (
            format!("samples given a diameter of {:.2} x {:.2} (blue)", seen[0], seen[1]),
            "data with nearly this; green: the own diameter",
        ),
        Shapes::Cross => (
            format!("samples given centre and rotation (blue), ratio {:.2}", seen[3]),
            "data with nearly these; blue: as on the left",
        ),
    };
    outlines(&plots.join(picture::POSTERIOR), &all(&samples)?, &all(&near)?, [&title, beside])
}

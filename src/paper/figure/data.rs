//! The figure of the data sets.

use std::path::Path;

use crate::data::shapes::fourier::Curve;
use crate::data::{Shapes, TEST_FIRST_ROW};
use crate::error::Result;
use crate::eval::correlation::Correlation;
use crate::paper::lab::Lab;
use crate::paper::model::Model;
use crate::report::{
    ACROSS, DOWN, GalleryMap, GalleryRow, GalleryScale, Ink, fourier_blocks, gallery, single_precision,
};

/// Rows of a "large batch", of which the correlations are.
const CORRELATED: usize = 100_000;
/// Points of a drawn curve.
const POINTS: usize = 256;
const SEED: u64 = 1;

pub(super) fn data_sets(lab: &mut Lab<'_>, _: &[Model], path: &Path) -> Result<bool> {
    let lens = row("Lens shapes: M = 2, 20 coefficients", lab.lens()?)?;
    let cross = row("Cross shapes: M = 12, 100 coefficients", Shapes::Cross)?;
    let legend = [(Ink::Curve, "Fourier curve of a row"), (Ink::Red, "shape that it approximates")];
    gallery(path, &[lens, cross], GalleryScale::Own, &legend)?;
    Ok(true)
}

fn row(title: &str, shapes: Shapes) -> Result<GalleryRow> {
    let dim = shapes.dim();
    let mut rows = vec![0.0; CORRELATED * dim];
    shapes.fill(&mut rows, SEED, TEST_FIRST_ROW);
    let outline = |(row, number): (&[f32], u64)| {
        let points = single_precision(Curve::new(row)?.trace(POINTS));
        let reference = Some(single_precision(shapes.boundary(SEED, TEST_FIRST_ROW + number, POINTS / 2)));
        Ok(crate::report::Outline { points, reference, ..Default::default() })
    };
    let outlines = rows.chunks_exact(dim).zip(0..).take(ACROSS * DOWN).map(outline).collect::<Result<_>>()?;
    let map = Some(GalleryMap::Correlation(Correlation::of(&rows, dim)?));
    Ok(GalleryRow { title: title.into(), outlines, map, labels: fourier_blocks(shapes.order()) })
}

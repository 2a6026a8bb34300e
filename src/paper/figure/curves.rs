//! Figures of curves alone, without a model.

use std::path::Path;

use crate::data::shapes::natural;
use crate::data::{Shapes, TEST_FIRST_ROW};
use crate::error::Result;
use crate::paper::lab::Lab;
use crate::paper::model::Model;
use crate::report::{PAPER_OFFSET, approximations, sensitivity};

/// Orders M of the Fourier figure.
const ORDERS: [usize; 6] = [1, 2, 5, 12, 25, 50];
/// Points of a drawn curve.
const POINTS: usize = 1000;
/// Changes of a coefficient in the sensitivity figures.
const STEPS: usize = 8;

pub(super) fn fourier(_: &mut Lab<'_>, _: &[Model], path: &Path) -> Result<bool> {
    let curves = ORDERS.map(|order| (order, natural::curve(order).trace(POINTS)));
    approximations(path, &natural::CORNERS, &natural::points(), &curves)?;
    Ok(true)
}

pub(super) fn sensitivity_lens(lab: &mut Lab<'_>, _: &[Model], path: &Path) -> Result<bool> {
    // Of each kind of coefficient the lowest terms and a high one; Im a_0 is no part of a curve.
    changed(path, lab.lens()?, &["re_x_0", "re_x_1", "re_y_-2", "re_y_1", "im_x_-1", "im_x_2", "im_y_1"])
}

pub(super) fn sensitivity_cross(_: &mut Lab<'_>, _: &[Model], path: &Path) -> Result<bool> {
    changed(path, Shapes::Cross, &["re_x_0", "re_x_1", "re_x_-4", "re_y_2", "im_x_-1", "im_x_9", "im_y_12"])
}

fn changed(path: &Path, shapes: Shapes, columns: &[&str]) -> Result<bool> {
    let mut row = vec![0.0; shapes.dim()];
    shapes.fill_shape(&mut row, 1, TEST_FIRST_ROW);
    let names = shapes.column_names();
    let at = |name: &&str| names.iter().position(|n| n == name);
    let columns: Vec<usize> = columns.iter().filter_map(at).collect();
    sensitivity(path, &row, &columns, PAPER_OFFSET, STEPS, &names)?;
    Ok(true)
}

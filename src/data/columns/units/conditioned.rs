//! Rows of columns on their way to the networks and back, given the conditions of the rows.

use std::borrow::Cow;

use super::{Column, Regression, Standardizer, Units};
use crate::data::packing::Packing;
use crate::error::{Error, Result};

/// Columns with the conditions of some rows, see [`Units::given`]. Rows are row-major, and as many as those of the
/// conditions, which only columns with a [`super::Regression`] look at.
pub(crate) struct Conditioned<'a> {
    units: &'a Units,
    /// Conditions in the units of the networks, row-major.
    y: &'a [f32],
}

impl<'a> Conditioned<'a> {
    pub(super) fn new(units: &'a Units, y: &'a [f32]) -> Self {
        Self { units, y }
    }

    /// Rows in the units of the networks.
    ///
    /// # Errors
    /// [`crate::Error::Config`] naming row and column if a value is outside of its bounds, [`crate::Error::Shape`] if
    /// columns with a regression do not have the conditions of every row.
    pub(crate) fn inner<'b>(&self, rows: &'b [f32]) -> Result<Cow<'b, [f32]>> {
        if self.units.are_plain() {
            return Ok(rows.into());
        }
        let mut inner = rows.to_vec();
        self.apply(&mut inner)?;
        Ok(inner.into())
    }

    /// The same in place.
    ///
    /// # Errors
    /// As those of [`Conditioned::inner`].
    pub(crate) fn apply(&self, rows: &mut [f32]) -> Result<()> {
        if let Some(outside) = self.units.outside(rows) {
            return Err(outside.into());
        }
        let (count, conditions) = (rows.len() / self.units.dim(), self.units.conditions());
        if conditions > 0 && self.y.len() != count * conditions {
            let what = "conditions of the rows, which their columns are regressed on".into();
            return Err(Error::Shape { what, expected: count * conditions, got: self.y.len() });
        }
        if !self.units.are_plain() {
            self.each(rows, |x, shift, column| column.inner(x.into(), shift) as f32);
        }
        Ok(())
    }

    /// Rows in the user's units, of rows in the units of the networks.
    ///
    /// # Panics
    /// Where columns with a regression do not have the conditions of every row; so do the functions below.
    pub(crate) fn outer(&self, mut rows: Vec<f32>) -> Vec<f32> {
        if !self.units.are_plain() {
            self.each(&mut rows, |u, shift, column| column.outer(u.into(), shift));
        }
        rows
    }

    /// `log |d inner / d outer|` of each of some rows of `dim` columns in the user's units, which are inside the bounds; of
    /// packed columns by the numbers that they stand for.
    pub(crate) fn log_jacobian(&self, rows: &[f32], dim: usize) -> impl Iterator<Item = f64> {
        let units = self.units;
        let packed: f64 = units.packing.iter().map(Packing::ln_scale).sum();
        let scales = units.standardize.as_ref().map_or(0.0, Standardizer::ln_scale_sum) + packed;
        let of_bounds = |row: &[f32]| -> f64 {
            let slopes = units.bounds.iter().zip(row).filter(|(bounds, _)| !bounds.is_none());
            slopes.map(|(bounds, &x)| bounds.slope(x.into()).ln()).sum()
        };
        let beyond: Vec<(usize, Column<'_>)> = if units.transforms.is_empty() && units.squash.is_none() {
            Vec::new()
        } else {
            (0..dim).map(|c| (c, units.column(c))).collect()
        };
        let mut shifts = self.shifts(dim);
        rows.chunks_exact(dim).map(move |row| {
            let shifts = shifts.next_row();
            let rest: f64 = beyond.iter().map(|(c, column)| column.ln_slope_beyond(row[*c].into(), shifts[*c])).sum();
            of_bounds(row) - scales + rest
        })
    }

    /// Turns gradients with respect to rows in the units of the networks into those with respect to the same rows in
    /// the user's units. What the rows' conditions add to their own gradients, in the units of the networks, is added to
    /// `of_y`, unless that is empty.
    pub(crate) fn outer_gradient(&self, rows: &[f32], gradient: &mut [f32], of_y: &mut [f32]) {
        if let Some(regression) = self.units.regression.as_ref().filter(|_| !of_y.is_empty()) {
            self.add_gradient_of_shifts(regression, rows, gradient, of_y);
        }
        let mut rows = rows.iter();
        if !self.units.are_plain() {
            self.each(gradient, |d, shift, column| {
                let slope = rows.next().map_or(1.0, |&x| column.slope(x.into(), shift));
                (f64::from(d) * slope / column.scale) as f32
            });
        }
    }

    /// A shift is taken off before the squash.
    fn add_gradient_of_shifts(&self, regression: &Regression, rows: &[f32], gradient: &[f32], of_y: &mut [f32]) {
        let dim = self.units.dim();
        let columns: Vec<Column<'_>> = (0..dim).map(|c| self.units.column(c)).collect();
        let mut shifts = self.shifts(dim);
        let rows = rows.chunks_exact(dim).zip(gradient.chunks_exact(dim));
        for ((row, gradient), of_y) in rows.zip(of_y.chunks_exact_mut(regression.conditions())) {
            let shifts = shifts.next_row();
            let of_shift = |c: usize| -f64::from(gradient[c]) * columns[c].squash_slope(row[c].into(), shifts[c]);
            regression.add_gradient(of_shift, of_y);
        }
    }

    /// Changes every value, by its row's shift of its column, and its column.
    fn each(&self, values: &mut [f32], mut f: impl FnMut(f32, f64, &Column<'_>) -> f32) {
        let dim = self.units.dim();
        let columns: Vec<Column<'_>> = (0..dim).map(|c| self.units.column(c)).collect();
        let mut shifts = self.shifts(dim);
        for row in values.chunks_exact_mut(dim) {
            for ((value, column), &shift) in row.iter_mut().zip(&columns).zip(shifts.next_row()) {
                *value = f(*value, shift, column);
            }
        }
    }

    fn shifts(&self, dim: usize) -> Shifts<'a> {
        Shifts { units: self.units, y: self.y, row: vec![0.0; dim] }
    }
}

/// What the conditions give of the columns, row by row: never all rows at once, which may be many.
struct Shifts<'a> {
    units: &'a Units,
    /// Conditions of the rows to come.
    y: &'a [f32],
    row: Vec<f64>,
}

impl Shifts<'_> {
    fn next_row(&mut self) -> &[f64] {
        if let Some(regression) = &self.units.regression {
            let Some((y, later)) = self.y.split_at_checked(regression.conditions()) else {
                unreachable!("columns that conditions shift have the conditions of every row");
            };
            regression.of_row(y, &mut self.row);
            self.y = later;
        }
        &self.row
    }
}

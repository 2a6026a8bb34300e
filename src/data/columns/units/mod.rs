//! What the columns of a table are to a model: their names, where their values can lie, and their way to the networks.
//!
//! A value goes through five steps, each an increasing function, in this order (numbers that 32-bit floats do not hold are
//! packed before, see [`Packing`], and what is said here is of packed values):
//!
//! 1. Bounds. A column with a bound is mapped to the whole line, so that a density over it ends where the values do and
//!    samples never leave it: `ln(x - lower)`, `-ln(upper - x)`, or the logit `ln((x - lower) / (upper - x))`.
//! 2. A [`Transform`] of what comes out, for columns with heavy tails or far values. Which one is a setting, or chosen
//!    from the training rows by [`rule`].
//! 3. Standardisation: `(u - mean) / scale`.
//! 4. Of conditional models, less what the conditions say of the column by [`Regression`]. Its coefficients depend on the row
//!    through y alone, so this is a shift of x, and its Jacobian is 1.
//! 5. The squash: beyond `c` on either side, `c + r` becomes `c + ln(1 + r)`. Not after `asinh` and `rank`, which draw in far
//!    values themselves: two logarithms on top of each other would send samples far beyond the data on their way back.
//!
//! Everything is computed in f64; what goes to the networks is f32. Densities and gradients have the Jacobian of all
//! five. Columns that conditions shift have their ways through [`Units::given`].

mod asinh;
mod bounds;
mod choice;
mod conditioned;
mod fit;
mod rank;
mod regression;
mod robust;
pub(crate) mod rule;
mod softplus;
mod squash;
mod transform;

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

pub(crate) use bounds::Bounds;
pub use choice::Choice;
pub(crate) use choice::ColumnSetting;
pub(crate) use conditioned::Conditioned;
pub(crate) use fit::{Chosen, Wishes};
pub(crate) use regression::{Gains, Regressed, Regression};
pub(crate) use transform::Transform;

#[cfg(test)]
pub(crate) use {asinh::Asinh, rank::Rank, robust::Robust, softplus::Softplus};

use super::standardize::Standardizer;
use crate::data::packing::{self, Packing};
use crate::error::{Error, Result};

/// The columns of x, or those of y, as a model knows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Units {
    /// Names of the columns; empty if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// How the numbers of each column are packed; empty if none is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub packing: Vec<Packing>,
    /// Where the values of each column can lie; empty if none has a bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
    /// What happens to each column after its bounds; empty if nothing does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transforms: Vec<Transform>,
    /// Standardisation of the mapped values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardize: Option<Standardizer>,
    /// What the conditions say of the columns of x by least squares, and is taken off; none of the conditions themselves.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub regression: Option<Regression>,
    /// Where what is standardised begins to be drawn in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squash: Option<f64>,
}

/// A value that lies outside of the bounds of its column.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    /// Row, counted from 1.
    pub row: usize,
    /// Column, counted from 1.
    pub column: usize,
    name: Option<String>,
    /// What it must be.
    pub(crate) what: String,
}

impl Outside {
    /// As an error of a file, in which the columns have these numbers, from 1.
    pub fn in_file(self, path: &Path, numbers: &[usize]) -> Error {
        let Self { row, column, name, what } = self;
        let column = numbers.get(column - 1).copied().unwrap_or(column);
        Error::Cell { path: path.into(), row, column, name, what }
    }
}

impl From<Outside> for Error {
    fn from(Outside { row, column, name, what }: Outside) -> Self {
        let name = name.unwrap_or_else(|| column.to_string());
        Self::config(format!("columns.{name}"), format!("row {row}: {what}"))
    }
}

impl Units {
    /// The units of the columns of `rows`, row-major, of which there is at least one. The rows must lie inside the
    /// bounds.
    ///
    /// # Errors
    /// Those of [`Units::inner`] and [`Standardizer::fit`].
    #[cfg(test)]
    pub(crate) fn fit(
        columns: Vec<String>,
        bounds: Vec<Bounds>,
        dim: usize,
        standardize: bool,
        rows: &[f32],
    ) -> Result<Self> {
        let mut units = Self { columns, bounds, ..Self::default() };
        if standardize {
            units.standardize = Some(Standardizer::fit(&units.inner(rows)?, dim)?);
        }
        Ok(units)
    }

    /// What is wrong with these units for `dim` columns, which are given so many conditions.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Config`] with the part that does not fit; `what` says whose columns they are.
    pub(crate) fn check(&self, dim: usize, conditions: usize, what: &str) -> Result<()> {
        let agree = |part: &str, got: usize| match got == dim {
            true => Ok(()),
            false => Err(Error::Shape { what: format!("{part} of {what}"), expected: dim, got }),
        };
        if !self.columns.is_empty() {
            agree("column names", self.columns.len())?;
        }
        let mut seen = HashSet::new();
        if let Some(name) = self.columns.iter().find(|name| !seen.insert(name.as_str())) {
            let what = format!("two columns of {what} have the name `{name}`; they could not be told apart");
            return Err(Error::config("columns", what));
        }
        if !self.packing.is_empty() {
            agree("packings", self.packing.len())?;
        }
        if let Some((c, mistake)) =
            self.packing.iter().enumerate().find_map(|(c, packing)| Some((c, packing.mistake()?)))
        {
            return Err(Error::config(format!("columns.{}", self.name(c)), mistake));
        }
        if !self.bounds.is_empty() {
            agree("bounds", self.bounds.len())?;
        }
        for (c, bounds) in self.bounds.iter().enumerate() {
            if let Some(mistake) = bounds.mistake() {
                return Err(Error::config(format!("columns.{}", self.name(c)), mistake));
            }
        }
        if !self.transforms.is_empty() {
            agree("transforms", self.transforms.len())?;
        }
        for (c, transform) in self.transforms.iter().enumerate() {
            if let Some(mistake) = transform.mistake() {
                return Err(Error::config(format!("columns.{}", self.name(c)), mistake));
            }
        }
        if let Some(mistake) = self.regression.as_ref().and_then(|regression| regression.mistake(dim, conditions)) {
            return Err(Error::config("regression", format!("that of {what} {mistake}")));
        }
        if let Some(c) = self.squash.filter(|c| !(1e-3..=1e6).contains(c)) {
            return Err(Error::config(
                "squash",
                format!("of {what} is {c}, must be at least 0.001 and at most 1000000"),
            ));
        }
        let Some(s) = &self.standardize else { return Ok(()) };
        agree("means of the standardisation", s.mean.len())?;
        agree("scales of the standardisation", s.scale.len())?;
        if let Some(none) = s.constant.iter().find(|&&c| c >= dim) {
            let what = format!("`constant` tells of column {}, {what} has {dim}", none + 1);
            return Err(Error::config("standardize", what));
        }
        match (0..dim).find_map(|c| Some((c, s.mistake(c)?))) {
            None => Ok(()),
            Some((c, mistake)) => Err(Error::config("standardize", format!("column `{}` {mistake}", self.name(c)))),
        }
    }

    /// Name of column `c` (from 0), or its number (from 1).
    pub(crate) fn name(&self, c: usize) -> String {
        self.columns.get(c).cloned().unwrap_or_else(|| (c + 1).to_string())
    }

    /// Whether the numbers of some column are beyond 32-bit floats.
    #[cfg(feature = "cli")]
    pub(crate) fn is_packed(&self) -> bool {
        !self.packing.is_empty()
    }

    /// How the numbers of column `c` (from 0) are packed.
    pub(crate) fn packing(&self, c: usize) -> Packing {
        self.packing.get(c).copied().unwrap_or_default()
    }

    /// Names or numbers of `dim` columns for pictures of their values, which say how these are packed.
    pub(crate) fn labels(&self, dim: usize) -> Vec<String> {
        (0..dim).map(|c| self.packing(c).label(&self.name(c))).collect()
    }

    /// The oldest format of model files whose readers know all that is here: 2 has transforms and the squash, 3 the
    /// regression, 5 packed columns. An older reader would pass over them and take the columns for something else.
    pub(crate) fn oldest_format(&self) -> u32 {
        match self.regression {
            _ if !self.packing.is_empty() => 5,
            Some(_) => 3,
            None if !self.transforms.is_empty() || self.squash.is_some() => 2,
            None => 1,
        }
    }

    /// The distance about a value of column `c` (from 0), in the user's units, that is one unit of the networks; of a
    /// column that conditions shift, if the value is none that is drawn in.
    pub(crate) fn unit(&self, c: usize, x: f64) -> f64 {
        let is_shifted = self.regression.as_ref().is_some_and(|regression| regression.shifts(c));
        let column = self.column(c);
        let column = Column { squash: column.squash.filter(|_| !is_shifted), ..column };
        column.scale / column.slope(x, 0.0)
    }

    /// Whether column `c` is as a setting asks for. A transform may be none if the column had no scale for it.
    pub(crate) fn agrees(&self, c: usize, setting: &ColumnSetting) -> bool {
        let column = self.column(c);
        let same = |wanted: Option<f64>, has: Option<f64>| wanted.is_none() || wanted == has;
        let transform = match setting.transform {
            None => true,
            Some(Choice::Robust) => matches!(column.transform, Transform::Robust(_) | Transform::Identity),
            Some(Choice::Asinh) => matches!(column.transform, Transform::Asinh(_) | Transform::Identity),
            Some(Choice::Rank) => matches!(column.transform, Transform::Rank(_) | Transform::Identity),
            Some(Choice::Softplus) => matches!(column.transform, Transform::Softplus(_)),
            Some(Choice::Log | Choice::Logit) => column.transform.is_identity() && !column.bounds.is_none(),
            Some(Choice::None) => column.transform.is_identity() && (column.mean, column.scale) == (0.0, 1.0),
            Some(Choice::Standardize) => column.transform.is_identity(),
        };
        transform && same(setting.lower, column.bounds.lower) && same(setting.upper, column.bounds.upper)
    }

    /// The first of some values, row-major, that is outside of the bounds of its column.
    pub(crate) fn outside(&self, rows: &[f32]) -> Option<Outside> {
        let dim = self.bounds.len();
        let bounded: Vec<usize> = (0..dim).filter(|&c| !self.bounds[c].is_none()).collect();
        if bounded.is_empty() {
            return None;
        }
        let wrong = |row: &[f32]| bounded.iter().copied().find(|&c| !self.bounds[c].holds(row[c].into()));
        let (row, column) = rows.chunks_exact(dim).enumerate().find_map(|(r, row)| Some((r, wrong(row)?)))?;
        let packing = self.packing(column);
        let value = packing.shown(rows[row * dim + column]);
        let limit = |side, bound: Option<f64>| {
            bound.map(|bound| format!("{side} than {}", packing::brief(packing.unpack_exact(bound))))
        };
        let Bounds { lower, upper } = self.bounds[column];
        let limits: Vec<_> = limit("greater", lower).into_iter().chain(limit("less", upper)).collect();
        let what = format!("{value} must be {}, as the bounds of the column say", limits.join(" and "));
        Some(Outside { row: row + 1, column: column + 1, name: self.columns.get(column).cloned(), what })
    }

    /// The rows, with usual ones in place of those outside of the bounds, and the numbers, from 0, of these rows.
    pub(crate) fn moved_inside<'a>(&self, rows: &'a [f32]) -> (Cow<'a, [f32]>, Vec<usize>) {
        let dim = self.bounds.len().max(1);
        let outside: Vec<usize> = match self.bounds.iter().all(Bounds::is_none) {
            true => Vec::new(),
            false => (0..rows.len() / dim).filter(|r| self.outside(&rows[r * dim..][..dim]).is_some()).collect(),
        };
        if outside.is_empty() {
            return (rows.into(), outside);
        }
        let (mut rows, usual) = (rows.to_vec(), self.usual(dim));
        outside.iter().for_each(|row| rows[row * dim..][..dim].copy_from_slice(&usual));
        (rows.into(), outside)
    }

    /// These columns, given conditions y, row-major (B, C), in the units of the networks.
    pub(crate) fn given<'a>(&'a self, y: &'a [f32]) -> Conditioned<'a> {
        Conditioned::new(self, y)
    }

    /// Rows in the units of the networks, of columns that no conditions shift.
    ///
    /// # Errors
    /// [`Error::Config`] naming row and column if a value is outside of its bounds.
    pub(crate) fn inner<'a>(&self, rows: &'a [f32]) -> Result<Cow<'a, [f32]>> {
        self.given(&[]).inner(rows)
    }

    /// Rows in the user's units, of rows in the units of the networks, of columns that no conditions shift.
    pub(crate) fn outer(&self, rows: Vec<f32>) -> Vec<f32> {
        self.given(&[]).outer(rows)
    }

    /// The units of the columns before `at`, and of those from it on, of columns that have no regression yet.
    pub(crate) fn split_at(&self, at: usize) -> [Self; 2] {
        if at == 0 {
            return [Self::default(), self.clone()];
        }
        fn halves<T: Clone>(values: &[T], at: usize) -> [Vec<T>; 2] {
            let (left, right) = values.split_at(at.min(values.len()));
            [left.to_vec(), right.to_vec()]
        }
        let [columns, other_columns] = halves(&self.columns, at);
        let [packing, other_packing] = halves(&self.packing, at);
        let [bounds, other_bounds] = halves(&self.bounds, at);
        let [transforms, other_transforms] = halves(&self.transforms, at);
        let (standardize, other) = self.standardize.as_ref().map(|s| s.split_at(at)).unzip();
        let part = |columns, packing, bounds, transforms, standardize| {
            let (regression, squash) = (None, self.squash);
            Self { columns, packing, bounds, transforms, standardize, regression, squash }.shortened()
        };
        [
            part(columns, packing, bounds, transforms, standardize),
            part(other_columns, other_packing, other_bounds, other_transforms, other),
        ]
    }

    /// The units of some columns, then those of others, `dims` many, without regressions. Of a squash there is one for all.
    pub(crate) fn join(units: [&Self; 2], dims: [usize; 2]) -> Self {
        fn filled<T: Clone + Default>(values: [&[T]; 2], dims: [usize; 2]) -> Vec<T> {
            let some = values.into_iter().zip(dims);
            some.flat_map(|(values, dim)| if values.is_empty() { vec![T::default(); dim] } else { values.to_vec() })
                .collect()
        }
        let standardize = match (&units[0].standardize, &units[1].standardize) {
            (None, None) => None,
            (first, second) => {
                let of = |s: &Option<Standardizer>, dim| s.clone().unwrap_or_else(|| Standardizer::none(dim));
                Some(Standardizer::join(&of(first, dims[0]), &of(second, dims[1])))
            }
        };
        let [first, second] = units;
        let all = Self {
            columns: [&first.columns[..], &second.columns[..]].concat(),
            packing: filled([&first.packing, &second.packing], dims),
            bounds: filled([&first.bounds, &second.bounds], dims),
            transforms: filled([&first.transforms, &second.transforms], dims),
            standardize,
            regression: None,
            squash: second.squash,
        };
        all.shortened()
    }

    /// The same without lists that say nothing.
    fn shortened(mut self) -> Self {
        self.packing = packing::shortened(self.packing);
        if self.bounds.iter().all(Bounds::is_none) {
            self.bounds.clear();
        }
        if self.transforms.iter().all(Transform::is_identity) {
            self.transforms.clear();
        }
        self
    }

    /// A row in the middle of the training's: what the networks see as 0, of columns that no conditions shift.
    pub(crate) fn usual(&self, dim: usize) -> Vec<f32> {
        Self { regression: None, ..self.clone() }.outer(vec![0.0; dim])
    }

    /// Whether the networks see the packed rows as they are.
    pub(crate) fn are_plain(&self) -> bool {
        let columns = self.bounds.is_empty() && self.transforms.is_empty() && self.standardize.is_none();
        columns && self.regression.is_none() && self.squash.is_none()
    }

    /// Number of columns, as far as anything here depends on it: a squash alone is the same for all columns.
    fn dim(&self) -> usize {
        let standardized = self.standardize.as_ref().map_or(0, Standardizer::dim);
        let shifted = self.regression.as_ref().map_or(0, Regression::columns);
        self.bounds.len().max(self.transforms.len()).max(standardized).max(shifted).max(1)
    }

    /// Number of conditions that shift the columns.
    fn conditions(&self) -> usize {
        self.regression.as_ref().map_or(0, Regression::conditions)
    }

    /// Everything about column `c`, from 0.
    fn column(&self, c: usize) -> Column<'_> {
        static IDENTITY: Transform = Transform::Identity;
        let (mean, scale) = self.standardize.as_ref().map_or((0.0, 1.0), |s| (s.mean[c], s.scale[c]));
        let transform = self.transforms.get(c).unwrap_or(&IDENTITY);
        Column {
            bounds: self.bounds.get(c).copied().unwrap_or_default(),
            transform,
            mean,
            scale,
            squash: self.squash.filter(|_| !transform.draws_in()),
        }
    }
}

/// The way of one column.
struct Column<'a> {
    bounds: Bounds,
    transform: &'a Transform,
    mean: f64,
    scale: f64,
    squash: Option<f64>,
}

impl Column<'_> {
    /// A value before the squash, of which its conditions give `shift`.
    fn standardized(&self, x: f64, shift: f64) -> f64 {
        (self.transform.map(self.bounds.map(x)) - self.mean) / self.scale - shift
    }

    fn inner(&self, x: f64, shift: f64) -> f64 {
        let u = self.standardized(x, shift);
        self.squash.map_or(u, |c| squash::draw_in(u, c, 1.0))
    }

    fn outer(&self, u: f64, shift: f64) -> f32 {
        if u.is_infinite() && self.bounds.is_none() {
            // The model has failed, which must be seen.
            return u as f32;
        }
        let u = self.squash.map_or(u, |c| squash::let_out(u, c, 1.0)) + shift;
        self.bounds.unmap(self.transform.unmap(u * self.scale + self.mean))
    }

    /// Derivative of the squash.
    fn squash_slope(&self, x: f64, shift: f64) -> f64 {
        self.squash.map_or(1.0, |c| squash::slope(self.standardized(x, shift), c, 1.0))
    }

    /// Derivative of [`Column::inner`] times the scale.
    fn slope(&self, x: f64, shift: f64) -> f64 {
        self.bounds.slope(x) * self.transform.slope(self.bounds.map(x)) * self.squash_slope(x, shift)
    }

    /// Logarithm of the derivative of transform and squash.
    fn ln_slope_beyond(&self, x: f64, shift: f64) -> f64 {
        let transform = if self.transform.is_identity() { 0.0 } else { self.transform.slope(self.bounds.map(x)).ln() };
        transform + self.squash_slope(x, shift).ln()
    }
}

#[cfg(test)]
mod tests;

//! What the columns of a table are to a model: their names, where their values can lie, and their standardisation.
//!
//! A column with a bound is mapped to the whole line before it is standardised, so that a density over it ends where
//! the values do and samples never leave it: `ln(x - lower)`, `-ln(upper - x)`, or the logit
//! `ln((x - lower) / (upper - x))`. All three increase. Everything is computed in f64; what goes to the networks is
//! f32.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::standardize::Standardizer;
use crate::error::{Error, Result};

/// Where the values of a column can lie: strictly between its bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Bounds {
    /// No value is as small as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// No value is as large as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl Bounds {
    /// Whether there is any bound.
    pub fn is_none(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// What is wrong with the bounds themselves.
    pub fn mistake(&self) -> Option<String> {
        let bounds = [self.lower, self.upper];
        if let Some(bound) = bounds.into_iter().flatten().find(|bound| !bound.is_finite()) {
            return Some(format!("is {bound}; a bound is a finite number, leave it out where there is none"));
        }
        // As 32-bit floats, the values that lie between.
        if self.least() >= self.greatest() {
            return Some(match bounds {
                [Some(lower), Some(upper)] => {
                    format!("the lower bound {lower} leaves no room below the upper bound {upper}")
                }
                [bound, other] => {
                    let bound = bound.or(other).unwrap_or_default();
                    format!("no 32-bit float lies inside of the bound {bound:e}; bring the column to another unit")
                }
            });
        }
        // Where a bound bounds nothing, differences to it have no digits and may overflow.
        let beyond = bounds.into_iter().flatten().find(|bound| bound.abs() >= f64::from(f32::MAX));
        beyond.map(|bound| format!("is {bound:e}, which no 32-bit float is beyond; leave it out"))
    }

    /// Whether a value lies strictly inside. NaN does not.
    fn holds(&self, x: f64) -> bool {
        self.lower.is_none_or(|lower| x > lower) && self.upper.is_none_or(|upper| x < upper) && !x.is_nan()
    }

    /// Distance of a value to the nearer bound.
    pub fn room(&self, x: f64) -> f64 {
        let lower = self.lower.map_or(f64::INFINITY, |lower| x - lower);
        lower.min(self.upper.map_or(f64::INFINITY, |upper| upper - x))
    }

    /// The smallest f32 inside.
    fn least(&self) -> f32 {
        let Some(lower) = self.lower else { return f32::MIN };
        let near = lower as f32;
        if f64::from(near) > lower { near } else { near.next_up() }
    }

    /// The greatest f32 inside.
    fn greatest(&self) -> f32 {
        let Some(upper) = self.upper else { return f32::MAX };
        let near = upper as f32;
        if f64::from(near) < upper { near } else { near.next_down() }
    }

    /// To the whole line.
    fn map(&self, x: f64) -> f64 {
        match (self.lower, self.upper) {
            (None, None) => x,
            (Some(lower), None) => (x - lower).ln(),
            (None, Some(upper)) => -(upper - x).ln(),
            (Some(lower), Some(upper)) => ((x - lower) / (upper - x)).ln(),
        }
    }

    /// Derivative of [`Bounds::map`].
    fn slope(&self, x: f64) -> f64 {
        self.lower.map_or(0.0, |lower| 1.0 / (x - lower))
            + self.upper.map_or(0.0, |upper| 1.0 / (upper - x))
            + f64::from(u8::from(self.is_none()))
    }

    /// Inverse of [`Bounds::map`], as an f32 strictly inside.
    fn unmap(&self, u: f64) -> f32 {
        let x = match (self.lower, self.upper) {
            (None, None) => return u as f32,
            (Some(lower), None) => lower + u.exp(),
            (None, Some(upper)) => upper - (-u).exp(),
            // Each half from its own end, where it has its digits.
            (Some(lower), Some(upper)) if u < 0.0 => lower + (upper - lower) * u.exp() / (1.0 + u.exp()),
            (Some(lower), Some(upper)) => upper - (upper - lower) * (-u).exp() / (1.0 + (-u).exp()),
        };
        // A NaN stays one: it must be seen.
        (x as f32).clamp(self.least(), self.greatest())
    }
}

/// The columns of x, or those of y, as a model knows them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Units {
    /// Names of the columns; empty where they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// Where the values of each column can lie; empty where none has a bound.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<Bounds>,
    /// Standardisation of the mapped values.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub standardize: Option<Standardizer>,
}

/// A value that lies outside of the bounds of its column.
#[derive(Clone, Debug, PartialEq)]
pub struct Outside {
    /// Row, counted from 1.
    pub row: usize,
    /// Column, counted from 1.
    pub column: usize,
    name: Option<String>,
    what: String,
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
    pub fn fit(columns: Vec<String>, bounds: Vec<Bounds>, dim: usize, standardize: bool, rows: &[f32]) -> Result<Self> {
        let mut units = Self { columns, bounds, standardize: None };
        if standardize {
            units.standardize = Some(Standardizer::fit(&units.inner(rows)?, dim)?);
        }
        Ok(units)
    }

    /// What is wrong with these units for `dim` columns.
    ///
    /// # Errors
    /// [`Error::Shape`] or [`Error::Config`] with the part that does not fit; `what` says whose columns they are.
    pub fn check(&self, dim: usize, what: &str) -> Result<()> {
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
        if !self.bounds.is_empty() {
            agree("bounds", self.bounds.len())?;
        }
        for (c, bounds) in self.bounds.iter().enumerate() {
            if let Some(mistake) = bounds.mistake() {
                return Err(Error::config(format!("columns.{}", self.name(c)), mistake));
            }
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
    pub fn name(&self, c: usize) -> String {
        self.columns.get(c).cloned().unwrap_or_else(|| (c + 1).to_string())
    }

    /// The first of some values, row-major, that is outside of the bounds of its column.
    pub fn outside(&self, rows: &[f32]) -> Option<Outside> {
        let dim = self.bounds.len();
        let bounded: Vec<usize> = (0..dim).filter(|&c| !self.bounds[c].is_none()).collect();
        if bounded.is_empty() {
            return None;
        }
        let wrong = |row: &[f32]| bounded.iter().copied().find(|&c| !self.bounds[c].holds(row[c].into()));
        let (row, column) = rows.chunks_exact(dim).enumerate().find_map(|(r, row)| Some((r, wrong(row)?)))?;
        let value = rows[row * dim + column];
        let limit = |side, bound: Option<f64>| bound.map(|bound| format!("{side} than {bound}"));
        let Bounds { lower, upper } = self.bounds[column];
        let limits: Vec<_> = limit("greater", lower).into_iter().chain(limit("less", upper)).collect();
        let what = format!("{value} must be {}, as the bounds of the column say", limits.join(" and "));
        Some(Outside { row: row + 1, column: column + 1, name: self.columns.get(column).cloned(), what })
    }

    /// Rows in the units of the networks.
    ///
    /// # Errors
    /// [`Error::Config`] naming row and column where a value is outside of its bounds.
    pub fn inner<'a>(&self, rows: &'a [f32]) -> Result<Cow<'a, [f32]>> {
        if self.bounds.is_empty() && self.standardize.is_none() {
            return Ok(rows.into());
        }
        let mut inner = rows.to_vec();
        self.apply(&mut inner)?;
        Ok(inner.into())
    }

    /// The same in place.
    ///
    /// # Errors
    /// As those of [`Units::inner`].
    pub(crate) fn apply(&self, rows: &mut [f32]) -> Result<()> {
        if let Some(outside) = self.outside(rows) {
            return Err(outside.into());
        }
        if !self.bounds.is_empty() || self.standardize.is_some() {
            self.each(rows, |x, bounds, mean, scale| ((bounds.map(x.into()) - mean) / scale) as f32);
        }
        Ok(())
    }

    /// The units of the columns before `at`, and of those from it on.
    pub(crate) fn split_at(&self, at: usize) -> [Self; 2] {
        if at == 0 {
            return [Self::default(), self.clone()];
        }
        fn halves<T: Clone>(values: &[T], at: usize) -> [Vec<T>; 2] {
            let (left, right) = values.split_at(at.min(values.len()));
            [left.to_vec(), right.to_vec()]
        }
        let [columns, other_columns] = halves(&self.columns, at);
        let [bounds, other_bounds] = halves(&self.bounds, at);
        let (standardize, other) = self.standardize.as_ref().map(|s| s.split_at(at)).unzip();
        let some = |bounds: Vec<Bounds>| if bounds.iter().all(Bounds::is_none) { Vec::new() } else { bounds };
        [
            Self { columns, bounds: some(bounds), standardize },
            Self { columns: other_columns, bounds: some(other_bounds), standardize: other },
        ]
    }

    /// The units of some columns, then those of others, `dims` many.
    pub(crate) fn join(units: [&Self; 2], dims: [usize; 2]) -> Self {
        let bounds = units.iter().zip(dims).flat_map(|(units, dim)| match units.bounds.is_empty() {
            true => vec![Bounds::default(); dim],
            false => units.bounds.clone(),
        });
        let bounds: Vec<Bounds> = bounds.collect();
        let standardize = match (&units[0].standardize, &units[1].standardize) {
            (None, None) => None,
            (first, second) => {
                let of = |s: &Option<Standardizer>, dim| s.clone().unwrap_or_else(|| Standardizer::none(dim));
                Some(Standardizer::join(&of(first, dims[0]), &of(second, dims[1])))
            }
        };
        Self {
            columns: [&units[0].columns[..], &units[1].columns[..]].concat(),
            bounds: if bounds.iter().all(Bounds::is_none) { Vec::new() } else { bounds },
            standardize,
        }
    }

    /// Rows in the user's units, of rows in the units of the networks.
    pub fn outer(&self, mut rows: Vec<f32>) -> Vec<f32> {
        if !self.bounds.is_empty() || self.standardize.is_some() {
            self.each(&mut rows, |u, bounds, mean, scale| bounds.unmap(f64::from(u) * scale + mean));
        }
        rows
    }

    /// `log |d inner / d outer|` of each of some rows in the user's units, which are inside the bounds.
    pub fn log_jacobian(&self, rows: &[f32], dim: usize) -> impl Iterator<Item = f64> {
        let scales = self.standardize.as_ref().map_or(0.0, Standardizer::ln_scale_sum);
        let of_bounds = |row: &[f32]| -> f64 {
            let slopes = self.bounds.iter().zip(row).filter(|(bounds, _)| !bounds.is_none());
            slopes.map(|(bounds, &x)| bounds.slope(x.into()).ln()).sum()
        };
        rows.chunks_exact(dim).map(move |row| of_bounds(row) - scales)
    }

    /// Turns gradients with respect to rows in the units of the networks into those with respect to the same rows in
    /// the user's units.
    pub fn outer_gradient(&self, rows: &[f32], gradient: &mut [f32]) {
        let mut rows = rows.iter();
        if !self.bounds.is_empty() || self.standardize.is_some() {
            self.each(gradient, |d, bounds, _, scale| {
                let slope = rows.next().map_or(1.0, |&x| bounds.slope(x.into()));
                (f64::from(d) * slope / scale) as f32
            });
        }
    }

    /// Changes every value, by the bounds, mean and scale of its column.
    fn each(&self, values: &mut [f32], mut f: impl FnMut(f32, &Bounds, f64, f64) -> f32) {
        let dim = self.bounds.len().max(self.standardize.as_ref().map_or(0, Standardizer::dim));
        if dim == 0 {
            return;
        }
        let columns: Vec<(Bounds, f64, f64)> = (0..dim)
            .map(|c| {
                let bounds = self.bounds.get(c).copied().unwrap_or_default();
                let (mean, scale) = self.standardize.as_ref().map_or((0.0, 1.0), |s| (s.mean[c], s.scale[c]));
                (bounds, mean, scale)
            })
            .collect();
        for row in values.chunks_exact_mut(dim) {
            for (value, (bounds, mean, scale)) in row.iter_mut().zip(&columns) {
                *value = f(*value, bounds, *mean, *scale);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;

    use super::*;

    fn bounds(lower: Option<f64>, upper: Option<f64>) -> Bounds {
        Bounds { lower, upper }
    }

    const ALL: [(Option<f64>, Option<f64>); 4] =
        [(None, None), (Some(-1.0), None), (None, Some(3.0)), (Some(-1.0), Some(3.0))];

    fn units() -> Units {
        let rows: Vec<f32> = (0..400).map(|i| (i as f32 * 0.37).sin() * 0.9 + 0.5).collect();
        let bounds = ALL.map(|(lower, upper)| bounds(lower, upper)).to_vec();
        Units::fit(vec![], bounds, 4, true, &rows).unwrap()
    }

    #[test]
    fn rows_go_there_and_back_and_the_jacobian_is_that_of_the_way() {
        let units = units();
        let row = [0.3f32, -0.2, 2.5, 0.9];
        let inner = units.inner(&row).unwrap().into_owned();
        for (back, x) in units.outer(inner.clone()).iter().zip(row) {
            assert_relative_eq!(*back, x, max_relative = 1e-6);
        }
        let mut slopes = vec![1.0; 4];
        units.outer_gradient(&row, &mut slopes);
        for c in 0..4 {
            let moved = |by: f32| {
                let mut row = row;
                row[c] += by;
                (f64::from(units.inner(&row).unwrap()[c]), f64::from(row[c]))
            };
            let ((high, b), (low, a)) = (moved(1e-2), moved(-1e-2));
            assert_relative_eq!((high - low) / (b - a), f64::from(slopes[c]), max_relative = 1e-3);
            assert!(slopes[c] > 0.0);
        }
        let want: f64 = slopes.iter().map(|&s| f64::from(s).ln()).sum();
        assert_relative_eq!(units.log_jacobian(&row, 4).next().unwrap(), want, max_relative = 1e-6);
    }

    /// However far out a latent is, what comes back is inside and finite.
    #[test]
    fn samples_never_leave_the_bounds() {
        for (lower, upper) in [
            (Some(0.0), Some(1.0)),
            (Some(1e-30), Some(1e-29)),
            (Some(0.1), Some(1e30)),
            (Some(-5.0), None),
            (None, Some(0.3)),
            (Some(-1e-30), None),
            (None, Some(1e-30)),
            (Some(-3.4e38), Some(3.4e38)),
            (Some(3.4e38), None),
            (Some(0.0), Some(1e-44)),
        ] {
            let bounds = bounds(lower, upper);
            assert!(bounds.mistake().is_none());
            let units = Units { bounds: vec![bounds], ..Units::default() };
            let far = vec![-1e30, -800.0, -90.0, -20.0, -1.0, 0.0, 1.0, 20.0, 90.0, 800.0, 1e30];
            let rows = units.outer(far);
            assert!(rows.iter().all(|x| x.is_finite()) && rows.is_sorted(), "{rows:?}");
            assert_eq!(units.outside(&rows), None, "{rows:?}");
            assert!(units.inner(&rows).unwrap().iter().all(|u| u.is_finite()));
            assert!(units.outer(vec![f32::NAN])[0].is_nan());
        }
    }

    #[test]
    fn values_outside_are_named() {
        let units = Units {
            columns: vec!["a".into(), "rate".into()],
            bounds: vec![Bounds::default(), bounds(Some(0.0), Some(1.0))],
            ..Units::default()
        };
        let message = |rows: &[f32]| units.inner(rows).unwrap_err().to_string();
        let text = message(&[5.0, 0.5, -5.0, 1.0]);
        assert!(text.contains("columns.rate") && text.contains("row 2"), "{text}");
        assert!(text.contains("1 must be greater than 0 and less than 1"), "{text}");
        assert!(message(&[0.0, f32::NAN]).contains("NaN"));
        let text = units.outside(&[1.0, 0.0]).unwrap().in_file(Path::new("t.csv"), &[4, 7]).to_string();
        assert!(text.contains("t.csv: row 1, column 7 (`rate`)"), "{text}");
    }

    #[test]
    fn bounds_that_make_no_sense_are_told() {
        assert!(bounds(Some(1.0), Some(1.0)).mistake().unwrap().contains("no room"));
        assert!(bounds(Some(2.0), Some(1.0)).mistake().is_some());
        assert!(bounds(Some(f64::NAN), None).mistake().unwrap().contains("finite"));
        assert!(bounds(None, Some(f64::INFINITY)).mistake().is_some());
        for huge in [1e39, 1e300, f64::MAX, f64::from(f32::MAX)] {
            for none in [bounds(Some(huge), None), bounds(None, Some(-huge))] {
                assert!(none.mistake().unwrap().contains("no 32-bit float lies inside"), "{none:?}");
            }
            for all in [bounds(Some(-huge), None), bounds(None, Some(huge)), bounds(Some(-huge), Some(huge))] {
                assert!(all.mistake().unwrap().contains("leave it out"), "{all:?}");
            }
        }
        // No 32-bit float lies between these.
        assert!(bounds(Some(1.0), Some(1.0 + 1e-12)).mistake().is_some());
        assert!(Units { bounds: vec![Bounds::default()], ..Units::default() }.check(2, "x").is_err());
    }

    #[test]
    fn without_bounds_units_are_what_they_were() {
        let json = r#"{"columns":["a"],"standardize":{"mean":[1.0],"scale":[2.0]}}"#;
        let units: Units = serde_json::from_str(json).unwrap();
        assert!(units.bounds.is_empty());
        assert_eq!(units.inner(&[5.0]).unwrap()[0], 2.0);
        assert_eq!(Units::default().inner(&[5.0]).unwrap()[0], 5.0);
        assert_eq!(serde_json::to_string(&Units::default()).unwrap(), "{}");
    }
}

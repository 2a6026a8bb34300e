//! Columns brought to mean 0 and deviation 1, and back.
//!
//! A constant column has no scale of its own; it gets 1, so that it becomes 0 and comes back unchanged. Which columns
//! those are is kept, because a density over them is a matter of added noise alone and the user should know.

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// No mean or deviation of 32-bit floats is larger.
const LARGEST: f64 = 1e39;
/// No deviation of 32-bit floats that differ is smaller, in a table of any length.
const SMALLEST: f64 = 1e-60;

/// Mean and scale of every column of a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Standardizer {
    /// Column means.
    pub mean: Vec<f64>,
    /// Column deviations (divided by the number of rows); 1 for constant columns.
    pub scale: Vec<f64>,
    /// Constant columns, counted from 0.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub constant: Vec<usize>,
}

impl Standardizer {
    /// Measures the columns of row-major `values`. There must be at least one row.
    pub(crate) fn fit(values: &[f32], dim: usize) -> Result<Self> {
        if values.is_empty() || dim == 0 {
            return Err(Error::Shape { what: "values of a table to standardize".into(), expected: dim.max(1), got: 0 });
        }
        if !values.len().is_multiple_of(dim) {
            let (expected, got) = (values.len() / dim * dim, values.len());
            return Err(Error::Shape { what: format!("values in rows of {dim}"), expected, got });
        }
        let rows = values.chunks_exact(dim);
        let count = rows.len() as f64;
        let first = &values[..dim];

        let mut mean = vec![0.0f64; dim];
        let mut varies = vec![false; dim];
        for row in rows.clone() {
            for j in 0..dim {
                mean[j] += f64::from(row[j]);
                varies[j] |= row[j] != first[j];
            }
        }
        for j in 0..dim {
            // Of equal values the rounded sum would give a mean that is not quite the value.
            mean[j] = if varies[j] { mean[j] / count } else { f64::from(first[j]) };
        }
        let mut squares = vec![0.0f64; dim];
        for row in rows {
            for j in 0..dim {
                squares[j] += (f64::from(row[j]) - mean[j]).powi(2);
            }
        }
        let scale = (0..dim).map(|j| if varies[j] { (squares[j] / count).sqrt() } else { 1.0 }).collect();
        let constant = (0..dim).filter(|&j| !varies[j]).collect();
        Ok(Self { mean, scale, constant })
    }

    /// One that leaves `dim` columns as they are.
    pub(crate) fn none(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], scale: vec![1.0; dim], constant: Vec::new() }
    }

    /// That of the columns before `at`, and that of the others.
    pub(crate) fn split_at(&self, at: usize) -> (Self, Self) {
        let (mean, scale) = (self.mean.split_at(at), self.scale.split_at(at));
        let (constant, later): (Vec<_>, Vec<_>) = self.constant.iter().partition(|&&c| c < at);
        let later = later.into_iter().map(|c| c - at).collect();
        (
            Self { mean: mean.0.to_vec(), scale: scale.0.to_vec(), constant },
            Self { mean: mean.1.to_vec(), scale: scale.1.to_vec(), constant: later },
        )
    }

    /// That of some columns and of others after them.
    pub(crate) fn join(first: &Self, second: &Self) -> Self {
        let at = first.dim();
        Self {
            mean: [&first.mean[..], &second.mean[..]].concat(),
            scale: [&first.scale[..], &second.scale[..]].concat(),
            constant: first.constant.iter().copied().chain(second.constant.iter().map(|c| c + at)).collect(),
        }
    }

    /// What is wrong with the standardisation of column `c`, in words that follow its name.
    pub(crate) fn mistake(&self, c: usize) -> Option<String> {
        let (mean, scale) = (self.mean[c], self.scale[c]);
        let usable = mean.abs() <= LARGEST && (SMALLEST..=LARGEST).contains(&scale);
        (!usable).then(|| {
            format!(
                "has mean {mean:e} and deviation {scale:e}; the deviation must be positive, and both of a size that columns of \
                 32-bit floats can have"
            )
        })
    }

    /// Number of columns.
    pub(crate) fn dim(&self) -> usize {
        self.mean.len()
    }

    /// `sum ln(scale)`: a log density of standardized values minus this is one in the user's units.
    pub(crate) fn ln_scale_sum(&self) -> f64 {
        self.scale.iter().map(|scale| scale.ln()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::columns::units::Units;
    use crate::rng::{Stream, fill_normals};

    /// Columns of very different places and scales, one of them constant.
    fn table() -> Vec<f32> {
        let mut z = vec![0.0; 3 * 5000];
        fill_normals(7, Stream::Data, 0, 0, &mut z);
        for row in z.chunks_exact_mut(3) {
            row[0] = 1000.0 + 3.0 * row[0];
            row[1] = 0.1;
            row[2] = 1e-4 * row[2] - 5e-3;
        }
        z
    }

    fn units(table: &[f32]) -> Units {
        Units { standardize: Some(Standardizer::fit(table, 3).unwrap()), ..Units::default() }
    }

    #[test]
    fn standardized_columns_have_mean_0_and_deviation_1() {
        let values = table();
        let values = units(&values).inner(&values).unwrap();
        for j in [0, 2] {
            let column = || values.iter().skip(j).step_by(3).map(|&v| f64::from(v));
            let mean = column().sum::<f64>() / 5000.0;
            let square = column().map(|v| v * v).sum::<f64>() / 5000.0;
            assert!(mean.abs() < 1e-5 && (square - 1.0).abs() < 1e-5, "column {j}: {mean} {square}");
        }
        assert!(values.iter().skip(1).step_by(3).all(|&v| v == 0.0));
    }

    #[test]
    fn deviation_divides_by_the_number_of_rows() {
        let s = Standardizer::fit(&[1.0, 3.0], 1).unwrap();
        assert_eq!((s.mean[0], s.scale[0]), (2.0, 1.0));
    }

    #[test]
    fn standardized_columns_come_back() {
        let original = table();
        let units = units(&original);
        let values = units.inner(&original).unwrap();
        assert_ne!(values, original);
        for (a, b) in original.iter().zip(&units.outer(values.into_owned())) {
            assert!((a - b).abs() <= 1e-6 * a.abs().max(1e-3), "{a} {b}");
        }
    }

    #[test]
    fn constant_columns_are_found_exactly() {
        // 0.1 is no binary fraction: a mean by summing differs from the value.
        let s = Standardizer::fit(&table(), 3).unwrap();
        assert_eq!(s.constant, [1]);
        assert_eq!((s.mean[1], s.scale[1]), (f64::from(0.1f32), 1.0));
        assert_eq!(Standardizer::fit(&[4.0, 5.0], 2).unwrap().constant, [0, 1]);
    }

    fn identity(dim: usize) -> Standardizer {
        Standardizer { mean: vec![0.0; dim], scale: vec![1.0; dim], constant: Vec::new() }
    }

    #[test]
    fn log_scale_is_the_sum_over_columns() {
        let s = Standardizer { mean: vec![0.0; 3], scale: vec![2.0, 0.5, 3.0], constant: vec![] };
        assert!((s.ln_scale_sum() - 3f64.ln()).abs() < 1e-12);
        assert_eq!(identity(4).ln_scale_sum(), 0.0);
    }

    #[test]
    fn wrong_sizes_are_errors() {
        assert!(Standardizer::fit(&[], 3).is_err());
        assert!(Standardizer::fit(&[], 0).is_err());
        assert!(Standardizer::fit(&[1.0], 0).is_err());
        assert!(matches!(Standardizer::fit(&[1.0; 7], 3), Err(Error::Shape { got: 7, .. })));
    }

    #[test]
    fn survives_json() {
        let s = Standardizer::fit(&table(), 3).unwrap();
        let text = serde_json::to_string(&s).unwrap();
        let back: Standardizer = serde_json::from_str(&text).unwrap();
        assert_eq!(back.constant, s.constant);
        for (a, b) in s.mean.iter().chain(&s.scale).zip(back.mean.iter().chain(&back.scale)) {
            // A JSON parser may be off by the last bit.
            assert!((a - b).abs() <= f64::EPSILON * a.abs(), "{a} {b}");
        }
        assert!(!serde_json::to_string(&identity(2)).unwrap().contains("constant"));
    }
}

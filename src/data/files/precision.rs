//! Whether 32-bit floats can tell the numbers of a column apart.
//!
//! A time in seconds since 1970 is about 1.7e9, where neighbouring 32-bit floats are 128 apart: the column would become
//! a few steps, silently. So rounding is compared with the spread of the column while the file is read. Numbers near 1e-46
//! would all be zero.

use std::path::Path;

use crate::error::{Error, Result};

/// Rounding of more than this share of a column's deviation is told.
const COARSE: f64 = 1e-3;

/// What is known of the columns so far.
#[derive(Debug)]
pub(super) struct Precision {
    columns: Vec<Column>,
}

#[derive(Clone, Debug, Default)]
struct Column {
    count: f64,
    /// Sums are of differences to the first number, so that they lose nothing to a large offset.
    first: f64,
    sum: f64,
    squares: f64,
    /// Largest rounding error.
    error: f64,
    /// Largest distance from zero.
    largest: f64,
}

impl Precision {
    pub(super) fn new(columns: usize) -> Self {
        Self { columns: vec![Column::default(); columns] }
    }

    /// Takes note of a number, and of what it was rounded to.
    pub(super) fn add(&mut self, column: usize, value: f64, rounded: f32) {
        let c = &mut self.columns[column];
        if c.count == 0.0 {
            c.first = value;
        }
        let difference = value - c.first;
        c.count += 1.0;
        c.sum += difference;
        c.squares += difference * difference;
        c.error = c.error.max((value - f64::from(rounded)).abs());
        c.largest = c.largest.max(value.abs());
    }

    /// Fails if a column has nothing but numbers that 32-bit floats take for zero; `label` says what to call it.
    pub(super) fn check(&self, path: &Path, label: impl Fn(usize) -> String) -> Result<()> {
        let Some((column, largest)) = self.vanishing() else { return Ok(()) };
        let power = -largest.log10().floor();
        let what = format!(
            "{}: its numbers, at most {largest:.1e}, are below those that 32-bit floats hold; multiply them by 1e{power} (then \
             log-densities are {:.4} lower), or take their logarithm",
            label(column),
            power * std::f64::consts::LN_10
        );
        Err(Error::format(path, what))
    }

    /// The first column of numbers that are not zero, but so small that 32-bit floats hold little of them or nothing; and
    /// the largest of these.
    fn vanishing(&self) -> Option<(usize, f64)> {
        /// A few digits above the smallest number that has all of its digits.
        const LEAST: f64 = 1e-37;
        let vanishes = |c: &Column| c.largest > 0.0 && c.largest < LEAST;
        let column = self.columns.iter().position(vanishes)?;
        Some((column, self.columns[column].largest))
    }

    /// The columns whose numbers are too close together. A column of equal numbers is none: nothing is lost.
    pub(super) fn coarse(&self) -> Vec<usize> {
        let is_coarse = |c: &Column| {
            let mean = c.sum / c.count;
            let deviation = (c.squares / c.count - mean * mean).max(0.0).sqrt();
            c.squares > 0.0 && c.error > COARSE * deviation
        };
        (0..self.columns.len()).filter(|&j| is_coarse(&self.columns[j])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Precision;

    #[test]
    fn large_offsets_are_coarse_and_usual_numbers_are_not() {
        let value: [fn(f64) -> f64; 5] = [|i| 1.7e9 + i, |i| i / 7.0, |_| 0.1, |i| 300.0 + 0.1 * i, |i| 1e30 * i];
        let mut precision = Precision::new(value.len());
        for i in 0..500 {
            for (column, value) in value.iter().enumerate() {
                let v = value(f64::from(i));
                precision.add(column, v, v as f32);
            }
        }
        assert_eq!(precision.coarse(), [0]);
        assert_eq!(precision.vanishing(), None);
    }

    #[test]
    fn numbers_below_all_floats_are_no_zeros() {
        for (values, vanishing) in [
            ([1e-46, 3e-46], Some((1, 3e-46))),
            ([0.0, -1e-200], Some((1, 1e-200))),
            ([0.0, 0.0], None),
            // Beside one of a usual size the others may as well be zero.
            ([1e-46, 0.5], None),
        ] {
            let mut precision = Precision::new(2);
            for value in values {
                precision.add(0, 1.0, 1.0);
                precision.add(1, value, value as f32);
            }
            assert_eq!(precision.vanishing(), vanishing);
        }
    }
}

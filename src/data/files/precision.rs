//! Whether 32-bit floats can tell the numbers of a column apart.
//!
//! A time in seconds since 1970 is about 1.7e9, where neighbouring 32-bit floats are 128 apart: the column would become
//! a few steps, silently. So rounding is compared with the spread of the column while the file is read. Numbers near 1e-46
//! would all be zero, and those near 1e51 infinite. What is found says how the column is to be packed.

use std::path::Path;

use crate::data::lost::Vanished;
use crate::data::packing::Packing;
use crate::error::{Error, Result};

/// Rounding of more than this share of a column's deviation is told.
const COARSE: f64 = 1e-3;

/// What is known of the columns so far.
#[derive(Debug, Default)]
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
    /// Largest rounding error; infinite if a number is beyond all 32-bit floats.
    error: f64,
    /// Largest distance from zero.
    largest: f64,
    least: f64,
    greatest: f64,
    /// Numbers that are hardly smaller than the largest 32-bit float, or greater.
    huge: f64,
    /// Numbers that 32-bit floats hold little of, or nothing, but not zero; and the largest of them.
    tiny: f64,
    largest_tiny: f64,
    /// Numbers that are zero.
    zeros: f64,
    /// The first numbers, which tell where most of them are: a code for missing values moves means and ends.
    some: Vec<f64>,
    /// The first different numbers among the tiny ones, how often each occurs, and in which row it does first, from 0.
    vanished: Vec<(f64, usize, usize)>,
}

/// Numbers that are remembered.
const SOME: usize = 128;
/// Different numbers that vanish and are counted one by one.
const VANISHED: usize = 8;

/// A few digits above the smallest number that has all of its digits.
const LEAST: f64 = 1e-37;
/// A few digits below the greatest number.
const HUGE: f64 = 1e35;

impl Column {
    /// Whether nothing but numbers that are not zero would be taken for it.
    fn vanishes(&self) -> bool {
        self.largest > 0.0 && self.largest < LEAST
    }

    /// Whether most numbers would be, even if some are larger: a code for missing values, the end of a long tail.
    fn mostly_vanishes(&self) -> bool {
        2.0 * self.tiny > self.count - self.zeros
    }

    fn deviation(&self) -> f64 {
        let mean = self.sum / self.count;
        (self.squares / self.count - mean * mean).max(0.0).sqrt()
    }

    /// The middle of some numbers, and half the distance of their quartiles.
    fn middle(&self) -> Option<(f64, f64)> {
        let mut some = self.some.clone();
        some.sort_by(f64::total_cmp);
        let at = |quarters: usize| some.get(quarters * some.len() / 4).copied();
        let (low, middle, high) = (at(1)?, at(2)?, at(3)?);
        (high > low).then_some((middle, 0.5 * (high - low)))
    }

    fn is_coarse(&self) -> bool {
        let rounding = |number: f64| f64::from(f32::EPSILON) * number.abs();
        let most = self.middle().is_some_and(|(middle, width)| 0.5 * rounding(middle) > COARSE * width);
        self.squares > 0.0 && (most || self.error > COARSE * self.deviation())
    }

    /// How its numbers are to be packed.
    fn needed(&self) -> Packing {
        // A column of one number has no deviation; what it is measured by is 1.
        if self.least == self.greatest && (self.error > COARSE || self.vanishes()) {
            return Packing::constant(self.first);
        }
        if self.mostly_vanishes() {
            return Packing::new(0.0, self.largest_tiny, true);
        }
        if self.error.is_infinite() {
            // Single numbers are errors of the file.
            let most = 2.0 * self.huge > self.count;
            return if most { Packing::new(0.0, self.largest, true) } else { Packing::default() };
        }
        if self.is_coarse() {
            let width = self.greatest - self.least;
            let (near, width) = self.middle().unwrap_or((self.least, width));
            let offset = round_below(near, width);
            let distance = (self.greatest - offset).max(offset - self.least);
            return Packing::new(offset, distance, distance < LEAST);
        }
        Packing::default()
    }
}

/// A number of few digits, at most `width` below another.
fn round_below(number: f64, width: f64) -> f64 {
    let power = width.log10().floor() as i32;
    let step = 10f64.powi(power);
    let below = (number / step).floor() * step;
    // Multiples of 0.01 have two digits behind the point, and not the seventeen that f64 makes of some.
    let decimals = usize::try_from(-power).unwrap_or(0);
    format!("{below:.decimals$}").parse().unwrap_or(below)
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
            (c.least, c.greatest) = (value, value);
        }
        let difference = value - c.first;
        c.count += 1.0;
        c.sum += difference;
        c.squares += difference * difference;
        c.error = c.error.max((value - f64::from(rounded)).abs());
        c.largest = c.largest.max(value.abs());
        (c.least, c.greatest) = (c.least.min(value), c.greatest.max(value));
        c.huge += f64::from(u8::from(value.abs() > HUGE));
        if value == 0.0 {
            c.zeros += 1.0;
        } else if value.abs() < LEAST {
            c.tiny += 1.0;
            c.largest_tiny = c.largest_tiny.max(value.abs());
            match c.vanished.iter().position(|(number, ..)| *number == value) {
                Some(known) => c.vanished[known].1 += 1,
                None if c.vanished.len() < VANISHED => c.vanished.push((value, 1, c.count as usize - 1)),
                None => {}
            }
        }
        if c.some.len() < SOME {
            c.some.push(value);
        }
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
        let column = self.columns.iter().position(Column::vanishes)?;
        Some((column, self.columns[column].largest))
    }

    /// The columns whose numbers are too close together. A column of equal numbers is none: nothing is lost.
    pub(super) fn coarse(&self) -> Vec<usize> {
        (0..self.columns.len()).filter(|&j| self.columns[j].is_coarse()).collect()
    }

    /// The columns of which some numbers are nothing beside the others, packed like this.
    pub(super) fn vanished(&self, packing: &[Packing]) -> Vec<Vanished> {
        let of = |(column, c): (usize, &Column)| {
            // The first of the most frequent.
            let &(number, times, row) = c.vanished.iter().rev().max_by_key(|(_, times, _)| *times)?;
            let number = packing[column].unpack_exact(number);
            // As many digits as packing leaves.
            let number = format!("{number:.12e}").parse().unwrap_or(number);
            Some(Vanished { column, count: c.tiny as usize, number, times, row })
        };
        self.columns.iter().enumerate().filter_map(of).collect()
    }

    /// How the columns are to be packed, if any needs it; also if a number is beyond all 32-bit floats, so that the file is
    /// to be read again to find out which.
    pub(super) fn needed(&self) -> Option<Vec<Packing>> {
        let packing: Vec<_> = self.columns.iter().map(Column::needed).collect();
        let any = packing.iter().any(|packing| !packing.is_none());
        (any || self.columns.iter().any(|c| c.error.is_infinite())).then_some(packing)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn columns_are_packed_if_they_need_it() {
        let packing = |values: &[f64]| {
            let mut precision = Precision::new(1);
            values.iter().for_each(|&value| precision.add(0, value, value as f32));
            precision.needed().map(|packing| packing[0].to_string())
        };
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(packing(&[0.1, 300.0, -5e20]), None);
        assert_eq!(packing(&[0.0, 0.0]), None);
        assert_eq!(packing(&[1e-46, 3e-46]), said("1e-46"));
        assert_eq!(packing(&[3e51, -1e52, 0.0]), said("1e52"));
        // A code, and a long tail, among tiny numbers.
        assert_eq!(packing(&[1e-46, 3e-46, 2e-46, -999.0]), said("1e-46"));
        assert_eq!(packing(&[1e-46, -3e-44, 2e-40, 4e-11]), said("1e-40"));
        assert_eq!(packing(&[1_700_000_123.25, 1_700_000_890.5, 1_700_000_200.0]), said("+1700000200"));
        assert_eq!(packing(&[-1e8 + 0.137, -1e8 + 0.121, -1e8 + 0.143]), said("-99999999.87"));
        // Both an offset and a unit, which rounding may make one power less.
        let both = packing(&[1e-30 + 1e-40, 1e-30 + 2e-40, 1e-30]).unwrap();
        assert!(both.starts_with("1e-4") && both.contains(", +1"), "{both}");
        // Beside a code for missing values, too.
        let mut coded: Vec<f64> = (0..40).map(|i| 1.7e9 + f64::from(i)).collect();
        coded[3] = -999.0;
        assert_eq!(packing(&coded), said("+1700000020"));
        // A column of one number, which is its offset: noise of the model does not reach its last digit.
        for number in [1.234_567_890_1e51, 1_700_000_000.123, 1.234_567_890_1e-46, -123_456_789.123_456] {
            let mut precision = Precision::new(1);
            (0..5).for_each(|_| precision.add(0, number, number as f32));
            let packing = precision.needed().unwrap()[0];
            assert_eq!((packing.pack(number), packing.mistake()), (0.0, None), "{packing:?}");
            for packed in [0.0, 0.5, -3.0, 90.0] {
                assert_eq!(packing.unpack(packed), number, "{packing:?} {packed}");
            }
        }
        assert_eq!((packing(&[0.1; 3]), packing(&[7.0; 3]), packing(&[0.0; 3])), (None, None, None));
        // A single wrong number: a second look says where.
        assert_eq!(packing(&[1.0, 2.0, 1e60]), said("+0"));
    }

    #[test]
    fn numbers_that_are_nothing_beside_the_others_are_counted() {
        let packing = [Packing::default(), Packing::new(0.0, 7e51, true)];
        let mut precision = Precision::new(2);
        for row in 0..30 {
            let number = if row % 10 == 3 {
                -999.0
            } else if row == 4 {
                1e9
            } else {
                f64::from(row) * 1e50
            };
            let packed = packing[1].pack(number);
            precision.add(0, 1.0, 1.0);
            precision.add(1, packed, packed as f32);
        }
        let found = precision.vanished(&packing);
        assert_eq!(found, [Vanished { column: 1, count: 4, number: -999.0, times: 3, row: 3 }]);
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

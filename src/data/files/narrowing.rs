//! How the numbers of the columns of a file become 32-bit floats: packed, kept inside of their bounds, and what happens to
//! those that no such float holds.

use std::collections::BTreeMap;

use crate::data::columns::units::{Bounds, ColumnSetting};
use crate::data::lost::FarNumber;
use crate::data::packing::{Packed, Packing, places};
use crate::error::Error;

use super::advice::Advice;
use super::source::narrow;

/// Where the numbers of columns can lie. What lies inside is not rounded onto a bound.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Limits<'a> {
    /// Nobody knows.
    #[default]
    Unknown,
    /// As settings have them, by name, or by number in the file behind a prefix.
    Set(&'a BTreeMap<String, ColumnSetting>, &'a str),
    /// Those of a model, of packed values, whose columns are found as those of [`Packed::As`].
    As(&'a [String], &'a [Bounds]),
}

impl Limits<'_> {
    /// Those of some columns of a file, which have numbers from 1 and may have names, of their packed values.
    fn of_columns<'n>(
        &self,
        name: impl Fn(usize) -> Option<&'n str>,
        numbers: &[usize],
        packing: &[Packing],
    ) -> Vec<Bounds> {
        match self {
            Self::Unknown => vec![Bounds::default(); numbers.len()],
            Self::Set(settings, prefix) => {
                let by_name = |i: usize| name(i).and_then(|name| settings.get(name));
                let by_number = |i: usize| settings.get(&format!("{prefix}{}", numbers[i]));
                let setting = |i: usize| by_name(i).or_else(|| by_number(i)).copied().unwrap_or_default();
                (0..numbers.len()).map(|i| setting(i).packed(packing[i]).bounds()).collect()
            }
            Self::As(known, bounds) => {
                let places = places(known, name, numbers.len());
                places.into_iter().map(|place| bounds.get(place).copied().unwrap_or_default()).collect()
            }
        }
    }
}

/// What is made of a number that no 32-bit float holds, however its column is packed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Far {
    /// An error.
    #[default]
    Fails,
    /// The float that is nearest to it; the table says which those are.
    Nearest,
}

/// The way of a column.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Narrowing {
    pub(super) packing: Packing,
    bounds: Bounds,
    far: Far,
    /// Whether it is still to be found out how the column is packed, so that no number is too large.
    looks: bool,
}

/// What became of a number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Narrowed {
    /// Packed, not rounded.
    pub(super) exact: f64,
    pub(super) value: f32,
    /// Whether no float holds it.
    pub(super) is_far: bool,
}

impl Narrowing {
    /// Those of some columns, which have numbers from 1.
    pub(super) fn of_columns<'n>(
        packed: Packed<'_>,
        limits: Limits<'_>,
        far: Far,
        name: impl Fn(usize) -> Option<&'n str> + Copy,
        numbers: &[usize],
    ) -> Vec<Self> {
        let packing = packed.of_columns(name, numbers.len());
        let bounds = limits.of_columns(name, numbers, &packing);
        let looks = matches!(packed, Packed::AsNeeded);
        packing.into_iter().zip(bounds).map(|(packing, bounds)| Self { packing, bounds, far, looks }).collect()
    }

    /// A number as it is packed, exactly and rounded, or what is wrong with it.
    pub(super) fn of(&self, number: f64, advice: Advice) -> Result<Narrowed, String> {
        let inside = |exact, value| Narrowed { exact, value: self.bounds.rounded(exact, value), is_far: false };
        if self.looks && number.is_finite() {
            return Ok(inside(number, number as f32));
        }
        let exact = self.packing.pack(number);
        let value = exact as f32;
        match (value.is_finite(), number.is_finite()) {
            (true, _) => Ok(inside(exact, value)),
            (false, false) => narrow(number).map(|value| inside(exact, value)),
            (false, true) if self.far == Far::Nearest => {
                let value = f32::MAX.copysign(value);
                Ok(Narrowed { exact: value.into(), value, is_far: true })
            }
            (false, true) => Err(too_far(number, &self.packing, advice)),
        }
    }
}

/// That a number is too far from those that a column of this packing has, and what to do.
pub(crate) fn too_far(number: f64, packing: &Packing, advice: Advice) -> String {
    if packing.is_none() {
        return format!("{number:e} is too large for a 32-bit float");
    }
    format!(
        "{number:e} is too far from the numbers of this column, which are taken {}; {}",
        packing.how(),
        advice.too_far()
    )
}

impl super::super::table::Table {
    /// The error of a number of this table that no float holds.
    pub(crate) fn far_error(&self, far: &FarNumber, path: &std::path::Path) -> Error {
        Error::Cell {
            path: path.into(),
            row: far.row + 1,
            column: self.file_numbers()[far.column],
            name: self.columns.get(far.column).cloned(),
            what: too_far(far.number, &self.packing(far.column), Advice::Options),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(packing: Packing, bounds: Bounds, far: Far, number: f64) -> Result<Narrowed, String> {
        Narrowing { packing, bounds, far, looks: false }.of(number, Advice::Settings)
    }

    #[test]
    fn numbers_beyond_all_floats_are_errors_or_the_nearest() {
        let time = Packing::new(1.7e9, 3.0, false);
        for (packing, number, words) in
            [(Packing::default(), -1e39, "-1e39 is too large"), (time, 1e39, "less 1700000000")]
        {
            let text = of(packing, Bounds::default(), Far::Fails, number).unwrap_err();
            assert!(text.contains(words), "{text}");
            let nearest = of(packing, Bounds::default(), Far::Nearest, number).unwrap();
            assert_eq!((nearest.value, nearest.is_far), (f32::MAX.copysign(number as f32), true));
        }
        for number in [f64::NAN, f64::INFINITY] {
            assert!(of(time, Bounds::default(), Far::Nearest, number).is_err());
        }
    }

    #[test]
    fn what_is_inside_of_its_bounds_is_not_rounded_onto_them() {
        let bounds = Bounds { lower: Some(0.7), upper: Some(1.3) };
        let value = |number| of(Packing::default(), bounds, Far::Fails, number).unwrap().value;
        for (number, is_inside) in [(0.7 + 1e-12, true), (1.3 - 1e-12, true), (1.0, true), (0.7, false)] {
            let rounded = f64::from(value(number));
            assert_eq!(rounded > 0.7 && rounded < 1.3, is_inside, "{number}");
            assert!((rounded - number).abs() < 1e-7);
        }
        let positive = Bounds { lower: Some(0.0), upper: None };
        assert!(of(Packing::default(), positive, Far::Fails, 1e-60).unwrap().value > 0.0);
        // Of packed values, as settings say of numbers.
        let settings =
            BTreeMap::from([("given.2".to_owned(), ColumnSetting::from(Bounds { lower: Some(1.7e9), upper: None }))]);
        let packing = [Packing::default(), Packing::new(1.6e9, 3.0, false)];
        let found = Limits::Set(&settings, "given.").of_columns(|_| None, &[1, 2], &packing);
        assert_eq!(found, [Bounds::default(), Bounds { lower: Some(1e8), upper: None }]);
        let names = ["a".to_owned(), "b".into()];
        let found = Limits::As(&names, &[bounds, positive]).of_columns(|i| Some(["b", "a"][i]), &[1, 2], &packing);
        assert_eq!(found, [positive, bounds]);
    }
}

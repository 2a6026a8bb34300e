//! Columns whose numbers 32-bit floats do not hold as they are: packed by an offset and a power of ten.
//!
//! 32-bit floats have seven digits and end at 3e38 and 1e-45. A time of 1.7e9 s, a cross section of 1e-46 cm^2 and an
//! energy of 1e51 erg would be rounded to steps, to zero or to infinity. The words are those of the CF conventions for
//! netCDF, whose `add_offset` and `scale_factor` do the same: `number = offset + scale * packed`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// How the numbers of a column are packed into 32-bit floats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Packing {
    /// Subtracted first.
    offset: f64,
    /// Divided by then; a power of ten, so that digits stay as they are.
    scale: f64,
}

impl Default for Packing {
    fn default() -> Self {
        Self { offset: 0.0, scale: 1.0 }
    }
}

/// Least and greatest power of ten of a scale: f64 has all digits of them.
const POWERS: std::ops::RangeInclusive<i32> = -307..=300;

/// A power of ten, to its last bit.
fn power_of_ten(power: i32) -> f64 {
    format!("1e{power}").parse().unwrap_or(f64::NAN)
}

impl Packing {
    /// That of numbers at most `largest` away from `offset`, packed to less than ten if `rescale` is set.
    pub(super) fn new(offset: f64, largest: f64, rescale: bool) -> Self {
        let power = (largest.log10().floor() as i32).clamp(*POWERS.start(), *POWERS.end());
        Self { offset, scale: if rescale { power_of_ten(power) } else { 1.0 } }
    }

    /// That of a column of one number, which is packed to 0. Its scale is so small that what a model adds to that, up to 100, does
    /// not change the last digit of the number.
    pub(super) fn constant(number: f64) -> Self {
        let power = (number.abs() * f64::EPSILON / 400.0).log10().floor();
        // There are no powers of ten below the smallest numbers.
        if power < f64::from(*POWERS.start()) {
            return Self::new(0.0, number.abs(), true);
        }
        Self { offset: number, scale: power_of_ten(power as i32) }
    }

    /// Whether numbers are taken as they are.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// What is wrong with it, in words that follow the column's name.
    pub(crate) fn mistake(&self) -> Option<String> {
        let Self { offset, scale } = *self;
        let power = scale.log10().round();
        let is_power = scale > 0.0 && POWERS.contains(&(power as i32)) && power_of_ten(power as i32) == scale;
        (!is_power || !offset.is_finite()).then(|| {
            format!(
                "is packed with offset {offset:e} and scale {scale:e}; the scale must be a power of ten, both finite"
            )
        })
    }

    /// A number as it is packed, not yet rounded.
    pub(crate) fn pack(&self, number: f64) -> f64 {
        (number - self.offset) / self.scale
    }

    /// The number that a packed one stands for. Its decimal digits are shifted, so that what had few has few again.
    pub(crate) fn unpack(&self, packed: f32) -> f64 {
        if self.scale == 1.0 || !packed.is_finite() {
            return self.offset + f64::from(packed);
        }
        let text = format!("{packed:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let power = power.parse::<i32>().unwrap_or(0) + self.scale.log10().round() as i32;
        self.offset + format!("{digits}e{power}").parse::<f64>().unwrap_or(f64::NAN)
    }

    /// The number that a packed one stands for, as a message has it.
    pub(crate) fn shown(&self, packed: f32) -> String {
        if self.is_none() {
            return packed.to_string();
        }
        // Far from the offset the last digits are nothing but rounding.
        let step = 10f64.powf((f64::from(f32::EPSILON) * f64::from(packed.abs()) * self.scale).log10().ceil());
        let number = self.unpack(packed);
        brief(if self.offset != 0.0 && step >= 1.0 { (number / step).round() * step } else { number })
    }

    /// The number that a value among packed ones stands for, without rounding.
    pub(crate) fn unpack_exact(&self, packed: f64) -> f64 {
        self.offset + self.scale * packed
    }

    /// `ln(scale)`: a log-density of packed numbers minus this is one of the numbers.
    pub(crate) fn ln_scale(&self) -> f64 {
        self.scale.ln()
    }

    /// What to tell of a column that was packed as its numbers need it.
    pub(super) fn note(&self, column: &str) -> Option<String> {
        (!self.is_none()).then(|| {
            format!(
                "{column} is taken {} inside the model, as 32-bit floats do not hold its numbers; what is written, and \
                 densities, are of the numbers as they are",
                self.how()
            )
        })
    }

    /// How numbers are taken, in words.
    pub(crate) fn how(&self) -> String {
        if self.is_none() {
            return "as it is".into();
        }
        let shift = (self.offset != 0.0).then(|| format!("less {}", self.offset));
        let unit = (self.scale != 1.0).then(|| format!("in units of {:e}", self.scale));
        shift.into_iter().chain(unit).collect::<Vec<_>>().join(", ")
    }

    /// Name of a column of packed numbers, for pictures of these.
    pub(crate) fn label(&self, name: &str) -> String {
        /// Letters that leave room for the rest, which must not be cut off.
        const LONGEST: usize = 14;
        let short = || name.chars().take(LONGEST - 1).chain(['…']).collect::<String>();
        match (self.is_none(), name.chars().nth(LONGEST)) {
            (true, _) => name.to_owned(),
            (false, None) => format!("{name} [{self}]"),
            (false, Some(_)) => format!("{} [{self}]", short()),
        }
    }
}

/// As axes of plots have it: `1e-46`, `+1700000000`.
impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.scale == 1.0, self.offset == 0.0) {
            (false, true) => write!(f, "{:e}", self.scale),
            (true, _) => write!(f, "{:+}", self.offset),
            (false, false) => write!(f, "{:e}, {:+e}", self.scale, self.offset),
        }
    }
}

/// A number without more zeros than people can count.
pub(crate) fn brief(number: f64) -> String {
    let is_usual = number == 0.0 || (1e-4..1e15).contains(&number.abs());
    if is_usual { number.to_string() } else { format!("{number:e}") }
}

/// Numbers that packed values, row-major, stand for. `packing` has one for each column, or none at all.
pub(crate) fn unpacked<'a>(values: &'a [f32], packing: &'a [Packing]) -> impl Iterator<Item = f64> + 'a {
    values.iter().enumerate().map(move |(i, &value)| match packing {
        [] => value.into(),
        packing => packing[i % packing.len()].unpack(value),
    })
}

/// The same packing without a list of nothing but defaults.
pub(crate) fn shortened(packing: Vec<Packing>) -> Vec<Packing> {
    if packing.iter().all(Packing::is_none) { Vec::new() } else { packing }
}

/// How the columns of a table that is read are packed.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum Packed<'a> {
    /// Not at all: what 32-bit floats do not hold is an error, or told.
    #[default]
    No,
    /// As their numbers need it.
    AsNeeded,
    /// As those of a model: by name if all names are the model's, else by place.
    As(&'a [String], &'a [Packing]),
}

impl Packed<'_> {
    /// That of some columns of a file, whose names are empty if it has none.
    pub(super) fn of_columns<'n>(&self, names: impl Fn(usize) -> Option<&'n str>, count: usize) -> Vec<Packing> {
        let Self::As(known, packing) = self else { return vec![Packing::default(); count] };
        let places = places(known, names, count);
        places.into_iter().map(|place| packing.get(place).copied().unwrap_or_default()).collect()
    }
}

/// The place among `known` columns of each of some columns of a file: by name if all names are known, else by place.
pub(super) fn places<'n>(known: &[String], names: impl Fn(usize) -> Option<&'n str>, count: usize) -> Vec<usize> {
    let place = |i: usize| known.iter().position(|known| names(i) == Some(known.as_str()));
    let places: Option<Vec<usize>> = (0..count).map(place).collect();
    places.unwrap_or_else(|| (0..count).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back_with_their_digits() {
        for (packing, numbers) in [
            (Packing::new(0.0, 3e-46, true), [1e-46, 2.5e-47, -3.125e-46]),
            (Packing::new(0.0, 7e51, true), [1e51, 7e51, 0.0]),
            (Packing::new(1.7e9, 100.0, false), [1_700_000_003.25, 1_699_999_999.5, 1.7e9]),
            (Packing::new(0.0, 4e-320, true), [3e-320, 1e-320, 0.0]),
            (Packing::default(), [0.5, -3.0, 1e30]),
        ] {
            for number in numbers {
                let packed = packing.pack(number) as f32;
                let error = (packing.unpack(packed) - number).abs();
                assert!(error <= 1e-6 * (number - packing.offset).abs(), "{packing:?} {number:e} {packed}");
            }
            assert_eq!(packing.mistake(), None);
        }
        // Decimal digits survive.
        let packing = Packing::new(0.0, 3e-46, true);
        assert_eq!(packing.unpack(packing.pack(1.3e-46) as f32), 1.3e-46);
        assert!(packing.unpack(f32::NAN).is_nan() && packing.unpack(f32::INFINITY).is_infinite());
        assert!((packing.ln_scale() - 1e-46f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn labels_say_how_to_read_an_axis() {
        assert_eq!(Packing::default().label("a"), "a");
        assert_eq!(Packing::new(0.0, 3e-46, true).label("sigma"), "sigma [1e-46]");
        assert_eq!(Packing::new(1.7e9, 3.0, false).label("time"), "time [+1700000000]");
        assert_eq!(Packing::new(1.7e9, 3.0, false).label("seconds_since_the_epoch"), "seconds_since… [+1700000000]");
        assert_eq!(Packing::new(0.0, 3e-46, true).shown(1.5), "1.5e-46");
        let time = Packing::new(1.7e9, 3.0, false);
        assert_eq!([0.0, 3.25, -1.7e9].map(|x| time.shown(x)), ["1700000000", "1700000003.25", "0"]);
    }

    #[test]
    fn other_scales_than_powers_of_ten_are_mistakes() {
        for (offset, scale) in
            [(0.0, 2.0), (0.0, 0.0), (0.0, -1.0), (0.0, f64::NAN), (f64::INFINITY, 1.0), (0.0, 1e301)]
        {
            assert!(Packing { offset, scale }.mistake().is_some(), "{offset} {scale}");
        }
    }

    #[test]
    fn columns_are_found_by_name_or_by_place() {
        let some = |offset| Packing { offset, scale: 1.0 };
        let (known, packing) = (["a".to_owned(), "b".into()], [some(1.0), some(2.0)]);
        let packed = Packed::As(&known, &packing);
        let named = |file: &'static [&str]| packed.of_columns(|i| Some(file[i]), file.len());
        assert_eq!(named(&["b", "a"]), [some(2.0), some(1.0)]);
        assert_eq!(named(&["b"]), [some(2.0)]);
        // Some stand for others then, so all are taken by their places.
        assert_eq!(named(&["b", "c"]), [some(1.0), some(2.0)]);
        assert_eq!(packed.of_columns(|_| None, 3), [some(1.0), some(2.0), Packing::default()]);
        assert_eq!(Packed::AsNeeded.of_columns(|_| None, 1), [Packing::default()]);
    }
}

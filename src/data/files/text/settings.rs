//! What is said of the layout of text tables, instead of being found out.

use serde::{Deserialize, Serialize};

use crate::counted::{counted, have};

use super::number::MISSING;
use crate::data::files::Advice;

/// What separates the cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Separator {
    /// `,`
    #[serde(rename = "comma", alias = ",")]
    Comma,
    /// `;`
    #[serde(rename = "semicolon", alias = ";")]
    Semicolon,
    /// A tab.
    #[serde(rename = "tab", alias = "\t", alias = "\\t")]
    Tab,
    /// `|`
    #[serde(rename = "bar", alias = "|")]
    Bar,
    /// Any number of blanks or tabs.
    #[serde(rename = "blanks", alias = " ")]
    Blanks,
}

impl Separator {
    /// In order of preference: a comma may be part of names in a file of semicolons, hardly the other way round.
    pub(super) const ALL: [Self; 5] = [Self::Tab, Self::Semicolon, Self::Bar, Self::Comma, Self::Blanks];

    /// The character; a blank for blanks.
    pub(super) fn byte(self) -> u8 {
        match self {
            Self::Comma => b',',
            Self::Semicolon => b';',
            Self::Tab => b'\t',
            Self::Bar => b'|',
            Self::Blanks => b' ',
        }
    }
}

/// What stands between whole numbers and their fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Decimal {
    /// `.`
    #[default]
    #[serde(rename = "point", alias = ".")]
    Point,
    /// `,`
    #[serde(rename = "comma", alias = ",")]
    Comma,
}

/// What is said of the layout of text tables; what is not is found out from the first lines of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextSettings {
    /// Whether the first line holds names.
    pub(crate) header: Option<bool>,
    /// What separates cells.
    pub(crate) separator: Option<Separator>,
    /// What stands before fractions.
    pub(crate) decimal: Option<Decimal>,
    /// What stands for a missing value: texts or numbers, or `empty` for an empty cell. Rows that have one are left out.
    pub(crate) missing: Vec<String>,
    /// How it was said, for advice.
    pub(crate) advice: Advice,
}

/// The name of an empty cell.
const EMPTY: &str = "empty";

impl TextSettings {
    /// Whether a cell has a value that is missing, so that its row is to be left out.
    pub(super) fn is_missing(&self, cell: &str) -> bool {
        let cell = cell.trim();
        let same_number = |word: &str| word.parse::<f64>().is_ok_and(|number| cell.parse() == Ok(number));
        let is = |word: &String| match cell.is_empty() {
            true => word.eq_ignore_ascii_case(EMPTY),
            false => cell.eq_ignore_ascii_case(word) || same_number(word),
        };
        self.missing.iter().any(is)
    }

    /// The same of a number that is no text.
    pub(in crate::data::files) fn is_missing_number(&self, value: f64) -> bool {
        let is = |number: f64| number == value || (number.is_nan() && value.is_nan());
        self.missing.iter().any(|word| word.parse().is_ok_and(is))
    }
}

/// What usually stands for a missing value, as `data.missing` names it.
pub(crate) fn usually_missing() -> Vec<String> {
    let words = [EMPTY, "nan"].into_iter().chain(MISSING).chain(["inf", "-inf", "infinity"]);
    words.map(str::to_owned).collect()
}

/// Why there are no rows if all were left out.
pub(in crate::data::files) const ALL_MISSING: &str = "every row has a missing value (data.missing)";

/// That rows were left out, if some were.
pub(in crate::data::files) fn left_out_note(left_out: usize, rows: usize) -> Option<String> {
    (left_out > 0).then(|| {
        format!(
            "left out {left_out} of {}, which {} a missing value (data.missing); the others are numbered without {}",
            counted(rows, "row"),
            have(left_out),
            if left_out == 1 { "it" } else { "them" }
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_values_are_what_the_settings_say() {
        let settings = TextSettings { missing: vec!["NA".into(), "-999".into()], ..TextSettings::default() };
        let missing = ["NA", "na", "-999", "", "-999.0", "1", "-99"].map(|cell| settings.is_missing(cell));
        assert_eq!(missing, [true, true, true, false, true, false, false]);
        let settings = TextSettings { missing: vec!["empty".into()], ..settings };
        assert_eq!(["", "NA"].map(|cell| settings.is_missing(cell)), [true, false]);
        let missing = usually_missing();
        let settings = TextSettings { missing, ..settings };
        let cells = ["", "NaN", "None", "-Inf", "0", "-1", "x"].map(|cell| settings.is_missing(cell));
        assert_eq!(cells, [true, true, true, true, false, false, false]);
        let numbers = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0].map(|value| settings.is_missing_number(value));
        assert_eq!(numbers, [true, true, true, false]);
    }
}

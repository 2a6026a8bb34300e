//! Whether the first line of a text table holds names, and which.

use std::borrow::Cow;
use std::path::Path;

use super::number::{looks_missing, number, parsed};
use super::settings::Decimal;
use crate::data::files::Advice;
use crate::error::{Error, Result};

/// Cells of a line as texts.
pub(super) type Texts<'a> = [Cow<'a, str>];

/// Whether the first line holds names by what its cells are. "1.0,,2.0" and "1.0,NA" are rows with a hole, which must be
/// reported and not taken for names.
pub(super) fn is_names(first: &Texts<'_>, decimal: Decimal, advice: Advice, path: &Path) -> Result<bool> {
    let is_text = |cell: &Cow<'_, str>| parsed(cell, decimal).is_none() && !looks_missing(cell);
    // "nan" is no name, and no sign of a row of numbers either.
    let is_number = |cell: &Cow<'_, str>| parsed(cell, decimal).is_some_and(|value| !value.is_nan());
    let Some(column) = first.iter().position(is_text) else { return Ok(false) };
    if !first.iter().any(is_number) {
        return Ok(true);
    }
    let why = number(&first[column], decimal, advice).err().unwrap_or_default();
    let what = format!(
        "{why}, but others of the first line are: correct it; if the line holds names, none of them may be a number, or say \
         that it does ({})",
        advice.given("header", "true")
    );
    Err(Error::Cell { path: path.into(), row: 1, column: column + 1, name: None, what })
}

/// Whether a first line of whole numbers holds names: they count up by one, from 0 or 1 or as years do, and a column of
/// the rows below holds no whole number. So pandas names columns that have no names.
pub(super) fn counts(first: &Texts<'_>, rows: &[Vec<Cow<'_, str>>], decimal: Decimal) -> bool {
    let Some(numbers) = first.iter().map(|cell| whole(cell)).collect::<Option<Vec<i64>>>() else { return false };
    let Some(&start) = numbers.first() else { return false };
    let counts = numbers.windows(2).all(|pair| pair[1] == pair[0] + 1);
    let years = numbers.len() > 1 && (1500..=2500).contains(&start);
    let usual = (0..=1).contains(&start) || years;
    // A single 0 or 1 may be a number as well, so that more rows must tell.
    let least = if numbers.len() == 1 { 3 } else { 2 };
    let is_fraction = |cell: &Cow<'_, str>| whole(cell).is_none() && parsed(cell, decimal).is_some_and(f64::is_finite);
    let fractions = |column: usize| rows.iter().all(|row| row.get(column).is_some_and(is_fraction));
    usual && counts && rows.len() >= least && (0..numbers.len()).any(fractions)
}

/// The whole number that a cell is without a point, sign or exponent.
pub(super) fn whole(cell: &str) -> Option<i64> {
    cell.bytes().all(|byte| byte.is_ascii_digit()).then(|| cell.parse().ok()).flatten()
}

/// Names of the columns. One that is not read needs none.
pub(super) fn names(first: &Texts<'_>, path: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(first.len());
    let mut seen = std::collections::HashSet::new();
    for (i, cell) in first.iter().enumerate() {
        let (column, name) = (i + 1, cell.trim());
        if name.contains(char::REPLACEMENT_CHARACTER) {
            let what = format!("the name of column {column} is not UTF-8 text; save the file as UTF-8");
            return Err(Error::format(path, what));
        }
        if !name.is_empty() && !seen.insert(name.to_owned()) {
            let what = format!("two columns have the name `{name}` (the second is column {column})");
            return Err(Error::format(path, what));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<Cow<'_, str>> {
        line.split(',').map(Cow::from).collect()
    }

    #[test]
    fn names_are_texts_without_a_number() {
        let is_names = |line: &str| super::is_names(&texts(line), Decimal::Point, Advice::Settings, Path::new("t.csv"));
        for (line, expected) in
            [("a,b", true), ("a,NA", true), ("1,2", false), ("1,NA", false), ("nan,nan", false), (",", false)]
        {
            assert_eq!(is_names(line).unwrap(), expected, "{line}");
        }
        let error = is_names("1.0,1o0").unwrap_err().to_string();
        assert!(error.contains("column 2") && error.contains("data.header=true"), "{error}");
    }

    #[test]
    fn a_line_that_counts_over_rows_that_do_not_holds_names() {
        let counts = |first: &str, rows: &[&str]| {
            super::counts(&texts(first), &rows.iter().map(|row| texts(row)).collect::<Vec<_>>(), Decimal::Point)
        };
        assert!(counts("0,1,2", &["0.5,1,2", "-0.25,3,4"]) && counts("1,2", &["0.5,1e3", "3,2e3"]));
        assert!(counts("2019,2020", &["0.5,1.5", "0.25,2"]) && counts("0", &["0.5", "1.5", "2.5"]));
        // Rows of whole numbers, a line that does not count, one of another kind, too few rows to tell.
        assert!(
            !counts("0,1,2", &["3,4,5", "6,7,8"]) && !counts("0,2", &["0.5,1.5"; 2]) && !counts("7,8", &["0.5,1.5"; 2])
        );
        assert!(
            !counts("0.0,1.0", &["0.5,1.5"; 2])
                && !counts("1,2", &["3,inf"; 2])
                && !counts("0,1", &["0.5,1.5"])
                && !counts("0", &["0.5"])
                && !counts("0,1", &[])
        );
        assert!(!counts("0,1", &["0.5,1", "1,2"]), "a column of the rows must hold no whole number");
    }

    #[test]
    fn names_are_different() {
        assert_eq!(names(&texts("a, b ,"), Path::new("t.csv")).unwrap(), ["a", "b", ""]);
        let error = names(&texts("a,b,a"), Path::new("t.csv")).unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("column 3"), "{error}");
    }
}

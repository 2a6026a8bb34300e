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

/// Whether a first line of whole numbers holds names, which the rows below tell: it is unlike them all.
///
/// It counts up by one, from 0 or 1 (so pandas names columns that have no names) or as years do, and a column of the rows
/// holds no whole number. Or it has years in order, some of them left out. Or it counts, the rows are whole numbers too, but
/// are many, and none of them counts. No number of the rows may be such a year.
pub(super) fn counts(first: &Texts<'_>, rows: &[Vec<Cow<'_, str>>], decimal: Decimal) -> bool {
    /// So many columns that no row of data counts by chance, from 0 or 1 and as years.
    const MANY: [usize; 2] = [4, 3];
    /// So many rows that whole numbers which count would be seen.
    const ROWS: usize = 8;
    let Some(numbers) = first.iter().map(|cell| whole(cell)).collect::<Option<Vec<i64>>>() else { return false };
    let (Some(&start), n) = (numbers.first(), numbers.len()) else { return false };
    let are_years = n > 1 && numbers.iter().all(|number| (1500..=2500).contains(number));
    let counting = are_counting(&numbers) && (are_years || (0..=1).contains(&start));
    let in_order = are_years && (numbers.is_sorted_by(|a, b| a < b) || numbers.is_sorted_by(|a, b| a > b));
    let many = n >= MANY[usize::from(are_years)];
    let value = |cell: &Cow<'_, str>| parsed(cell, decimal);
    let is_fraction = |cell: &Cow<'_, str>| whole(cell).is_none() && value(cell).is_some_and(f64::is_finite);
    let is_of_fractions = |column: usize| rows.iter().all(|row| row.get(column).is_some_and(is_fraction));
    // A single 0 or 1 may be a number as well, so that more rows must tell.
    let least = if n == 1 { 3 } else { 2 };
    if rows.len() >= least && counting && (0..n).any(is_of_fractions) {
        return true;
    }
    let (low, high) = numbers.iter().fold((i64::MAX, i64::MIN), |(low, high), &n| (low.min(n), high.max(n)));
    let among_years = |cell: &Cow<'_, str>| value(cell).is_some_and(|v| (low as f64..=high as f64).contains(&v));
    if !many || are_years && rows.iter().flatten().any(among_years) {
        return false;
    }
    let is_counting = |row: &Vec<Cow<'_, str>>| {
        let numbers = row.iter().map(|cell| whole(cell)).collect::<Option<Vec<i64>>>();
        numbers.is_some_and(|numbers| are_counting(&numbers))
    };
    let of_whole_numbers = counting && rows.len() >= ROWS && !rows.iter().any(is_counting);
    (rows.len() >= least && in_order && (0..n).any(is_of_fractions)) || of_whole_numbers
}

fn are_counting(numbers: &[i64]) -> bool {
    numbers.windows(2).all(|pair| pair[1] == pair[0] + 1)
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
        // Years that do not count, in order and above other numbers.
        assert!(counts("2010,2015,2020", &["0.5,1.5,3"; 2]) && counts("2003,2001,1999", &["0.5,1,3"; 2]));
        assert!(!counts("2010,2020,2015", &["0.5,1.5,3"; 2]) && !counts("2010,2015,2020", &["2012.5,1.5,3"; 2]));
        assert!(!counts("2010,2015,2020", &["1,2,4"; 8]) && !counts("2010,2015", &["0.5,1.5"; 2]));
        // Above many rows of whole numbers.
        let rows = ["210,15,777", "310,200,21", "1,9,3", "5,4,3", "210,211,213", "7,7,7", "1,0,1", "900,1,2"];
        assert!(counts("2001,2002,2003", &rows) && !counts("2001,2002,2003", &rows[..7]));
        assert!(!counts("2001,2002,2003", &[&rows[..], &["2002,4,5"]].concat()) && !counts("2001,2002", &["3,9"; 9]));
        let rows = ["0,0,1,2", "5,4,3,2", "0,1,1,2", "9,1,4,4", "1,1,1,1", "3,0,3,0", "2,2,2,3", "0,1,2,2"];
        assert!(counts("0,1,2,3", &rows) && !counts("2,3,4,5", &rows));
        assert!(!counts("0,1,2,3", &[&rows[..], &["4,5,6,7"]].concat()));
    }

    #[test]
    fn names_are_different() {
        assert_eq!(names(&texts("a, b ,"), Path::new("t.csv")).unwrap(), ["a", "b", ""]);
        let error = names(&texts("a,b,a"), Path::new("t.csv")).unwrap_err().to_string();
        assert!(error.contains("`a`") && error.contains("column 3"), "{error}");
    }
}

//! Text tables: numbers separated by commas, semicolons, tabs or blanks, with or without a line of names.
//!
//! Nothing is guessed about values: a cell that is empty, no number, NaN or infinite is an error with its place,
//! because a density trained on a silently changed table is worse than none.

use std::io::Read;
use std::path::Path;

use super::precision::Precision;
#[cfg(test)]
use super::source::ALL;
use super::source::{Choice, narrow, open_regular};
use super::text_head;
use crate::atomic::{Overwrite, write_atomic};
use crate::data::table::{Table, check_shape};
use crate::error::{Error, Result};

/// Reads a text table.
///
/// The first line holds names if no cell is a number and at least one is a text (cells that look like a missing value
/// do not count). Numbers beside texts are an error: a row with a typo must not be lost as a line of names. Lines with
/// a `#` at the head of the file are comments; the last may hold the names, as NumPy writes them. Empty lines are
/// ignored, cells may be quoted, lines end in LF or CRLF.
#[cfg(test)]
pub(crate) fn read_csv(path: &Path) -> Result<Table> {
    read_chosen(path, ALL)
}

/// As [`read_csv`], some columns of it.
pub(super) fn read_chosen(path: &Path, choice: Choice<'_>) -> Result<Table> {
    let (file, length) = open_regular(path)?;
    if length == 0 {
        return Err(Error::format(path, "the file is empty"));
    }
    let (text, delimiter) = text_head::open(file, path)?;
    let text = Quotes { text, line: 1, opened: None };
    let mut reader =
        ::csv::ReaderBuilder::new().has_headers(false).flexible(true).delimiter(delimiter).from_reader(text);

    let result = records(&mut reader, path, choice);
    // A quote that is never closed swallows the rest of the file, whose last record then is a strange one.
    let at_end = result.is_err() && !reader.read_byte_record(&mut ::csv::ByteRecord::new()).unwrap_or(true);
    match reader.get_ref().opened {
        Some(line) if at_end => Err(Error::format(path, format!("the quote opened in line {line} is never closed"))),
        _ => result,
    }
}

/// The table of all records.
fn records(reader: &mut ::csv::Reader<impl Read>, path: &Path, choice: Choice<'_>) -> Result<Table> {
    let mut names: Option<Vec<String>> = None;
    let mut dim = 0;
    let mut row = 0;
    let mut values = Vec::new();
    // Indices of the columns that are read, once they are known.
    let mut chosen: Option<Vec<usize>> = None;
    let mut precision = Precision::new(0);
    let mut record = ::csv::ByteRecord::new();
    loop {
        let more = reader.read_byte_record(&mut record).map_err(|e| match e.into_kind() {
            ::csv::ErrorKind::Io(e) => Error::io("read", path, e),
            other => Error::format(path, format!("not a text table: {other:?}")),
        })?;
        if !more {
            break;
        }
        // A line of blanks. An empty line does not come up here, and "" in quotes is an empty cell.
        if record.len() == 1 && !record[0].is_empty() && record[0].trim_ascii().is_empty() {
            continue;
        }
        if dim == 0 {
            dim = record.len();
            if is_header(&record, path)? {
                names = Some(header(&record, path)?);
                continue;
            }
        }
        row += 1;
        if record.len() != dim {
            let line = record.position().map_or(0, ::csv::Position::line);
            let what = format!("row {row} (line {line}) has {} cells where {dim} are expected", record.len());
            return Err(Error::format(path, what));
        }
        let chosen = match &chosen {
            Some(chosen) => chosen,
            None => {
                let columns = choice(names.as_deref().unwrap_or_default(), dim)?.unwrap_or_else(|| (0..dim).collect());
                let nameless = |&&column: &&usize| names.as_ref().is_some_and(|names| names[column].is_empty());
                if let Some(column) = columns.iter().find(nameless) {
                    let column = column + 1;
                    let what =
                        format!("column {column} has no name; give it one, or drop it if it only counts the rows");
                    return Err(Error::format(path, what));
                }
                precision = Precision::new(columns.len());
                chosen.insert(columns)
            }
        };
        for (i, &column) in chosen.iter().enumerate() {
            let (exact, value) = number(&record[column]).map_err(|what| Error::Cell {
                path: path.into(),
                row,
                column: column + 1,
                name: names.as_ref().map(|names| names[column].clone()),
                what,
            })?;
            precision.add(i, exact, value);
            values.push(value);
        }
    }
    if values.is_empty() {
        let what = if names.is_some() { "there is a line of names and no row of numbers" } else { "there are no rows" };
        return Err(Error::format(path, what));
    }
    let chosen = chosen.unwrap_or_default();
    let names = names.map_or(Vec::new(), |names| chosen.iter().map(|&column| names[column].clone()).collect());
    let numbers = chosen.iter().map(|column| column + 1).collect();
    Ok(Table::new(names, chosen.len(), values)?.with_coarse(precision.coarse()).with_file_numbers(numbers))
}

/// A text that remembers in which line its last quote was opened, while it is open.
struct Quotes<R> {
    text: R,
    line: u64,
    opened: Option<u64>,
}

impl<R: Read> Read for Quotes<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let count = self.text.read(buffer)?;
        for byte in &buffer[..count] {
            match byte {
                b'"' => self.opened = if self.opened.is_some() { None } else { Some(self.line) },
                b'\n' => self.line += 1,
                _ => {}
            }
        }
        Ok(count)
    }
}

/// Whether the first line holds names. "1.0,,2.0" and "1.0,NA" are rows with a hole, which must be reported and not
/// taken for names.
fn is_header(record: &::csv::ByteRecord, path: &Path) -> Result<bool> {
    let missing = ["", "na", "n/a", "#n/a", "null", "none", "-", "?"];
    let text = |cell: &[u8]| String::from_utf8_lossy(cell).trim().to_owned();
    let is_text = |cell: &[u8]| {
        let text = text(cell);
        text.parse::<f64>().is_err() && !missing.iter().any(|m| text.eq_ignore_ascii_case(m))
    };
    // "nan" is no name, and no sign of a row of numbers either.
    let is_number = |cell: &[u8]| text(cell).parse::<f64>().is_ok() && cell.iter().any(u8::is_ascii_digit);
    let Some(column) = record.iter().position(is_text) else { return Ok(false) };
    if !record.iter().any(is_number) {
        return Ok(true);
    }
    let why = number(&record[column]).err().unwrap_or_default();
    let what = format!(
        "{why}, but others of the first line are: correct it; if the line holds names, none of them may be a number"
    );
    Err(Error::Cell { path: path.into(), row: 1, column: column + 1, name: None, what })
}

/// Names of the columns. One that is not read needs none.
fn header(record: &::csv::ByteRecord, path: &Path) -> Result<Vec<String>> {
    let mut names: Vec<String> = Vec::with_capacity(record.len());
    let mut seen = std::collections::HashSet::new();
    for (i, cell) in record.iter().enumerate() {
        let column = i + 1;
        let name = std::str::from_utf8(cell)
            .map_err(|_| {
                Error::format(path, format!("the name of column {column} is not UTF-8 text; save the file as UTF-8"))
            })?
            .trim();
        if !name.is_empty() && !seen.insert(name.to_owned()) {
            return Err(Error::format(
                path,
                format!("two columns have the name `{name}` (the second is column {column})"),
            ));
        }
        names.push(name.to_owned());
    }
    Ok(names)
}

/// The value of a cell as it is written and rounded, or what is wrong with it.
pub(in crate::data) fn number(cell: &[u8]) -> Result<(f64, f32), String> {
    let text = std::str::from_utf8(cell).map_err(|_| "not UTF-8 text".to_owned())?.trim();
    if text.is_empty() {
        return Err("the cell is empty".into());
    }
    let value: f64 = text.parse().map_err(|_| {
        let shown: String = text.chars().take(40).collect();
        let more = if shown.len() < text.len() { "..." } else { "" };
        let hint = if text.contains(',') && !text.contains('.') {
            "; decimals need a point"
        } else if text.contains(char::is_whitespace) {
            "; cells are separated by comma, semicolon, tab or, in all lines, blanks"
        } else {
            ""
        };
        format!("`{}{more}` is not a number{hint}", shown.escape_debug())
    })?;
    // "1e999" is finite on paper.
    if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) {
        return Err(format!("{} is too large for a 32-bit float", text.chars().take(40).collect::<String>()));
    }
    Ok((value, narrow(value)?))
}

/// Writes a text table with commas; `names` is empty or has one name a column. Numbers have as many digits as it takes
/// to read the same `f32` back.
pub(crate) fn write_csv(
    path: &Path,
    names: &[String],
    rows: usize,
    columns: usize,
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    check_shape(rows, columns, values)?;
    if !names.is_empty() && names.len() != columns {
        return Err(Error::Shape { what: "names of columns".into(), expected: columns, got: names.len() });
    }
    write_atomic(path, overwrite, |out| csv_to(out, names, columns, values))
}

/// Writes a text table with commas to any writer, as [`write_csv`] writes it to a file. A whole number has no point.
///
/// # Errors
/// Those of the writer.
pub(crate) fn csv_to(
    out: impl std::io::Write,
    names: &[String],
    columns: usize,
    values: &[f32],
) -> std::io::Result<()> {
    use std::fmt::Write;
    let mut writer = ::csv::Writer::from_writer(out);
    if !names.is_empty() {
        writer.write_record(names).map_err(of_writer)?;
    }
    let mut text = String::new();
    for row in values.chunks_exact(columns.max(1)) {
        for value in row {
            text.clear();
            write!(text, "{value:?}").map_err(std::io::Error::other)?;
            writer.write_field(text.strip_suffix(".0").unwrap_or(&text)).map_err(of_writer)?;
        }
        writer.write_record(None::<&[u8]>).map_err(of_writer)?;
    }
    writer.flush()
}

/// The writer's own error, where there is one: its kind says whether a pipe is broken.
fn of_writer(error: ::csv::Error) -> std::io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_numpy_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path).map(|t| (t.columns.clone(), t.values().to_vec()))
        };
        let numbers = vec![1.0, -2.0, 3.0, 4.0];
        let names = vec!["a".to_owned(), "b".to_owned()];
        for text in ["# a,b\n1,-2\n3,4\n", "#a b\n1e0 -2\n3 4", "a   b\r\n  1  -2 \r\n\r\n   \r\n3 4\r\n"] {
            assert_eq!(read(text).unwrap(), (names.clone(), numbers.clone()), "{text:?}");
        }
        assert_eq!(read("1.0 -2.0\n3.0 4.0\n").unwrap(), (vec![], numbers));
        assert_eq!(read("# my number\n1\n2\n").unwrap(), (vec!["my number".to_owned()], vec![1.0, 2.0]));
        let error = read("# 1,2\n3,4\n").unwrap_err().to_string();
        assert!(error.contains("`# 1` is not a number"), "a row that is a comment: {error}");
        assert!(read("#,b\n3,4\n").unwrap().0 == ["#", "b"]);
        let error = read("1 2\n3 4\n5\n").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("1 cells"), "{error}");
    }

    #[test]
    fn comments_at_the_head_are_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_csv(&path).map(|t| (t.columns.clone(), t.values().to_vec()))
        };
        let numbers = vec![1.0, 2.0, 3.0, 4.0];
        let named = (vec!["a".to_owned(), "b".to_owned()], numbers.clone());
        for text in [
            "# made by a script, version 2\n#\n\n# a,b\n1,2\n3,4\n",
            "# one\n# two\na\tb\n1\t2\n3\t4\n",
            "## a quote \" that is never closed\r\n# a b\r\n1 2\r\n3  4\r\n",
            "#first\r#a;b\r1;2\r3;4\r",
            "# numpy.savetxt with a header\n# a, b\n1.0 2.0\n3.0 4.0\n",
            "\u{feff}# of a spreadsheet\na,b\n1,2\n3,4\n",
        ] {
            assert_eq!(read(text).unwrap(), named, "{text:?}");
        }
        for text in ["# three words here\n1,2\n3,4\n", "# run 3\n1 2\n3 4\n", "# a,b\n# 5 chains\n1 2\n3 4\n"] {
            assert_eq!(read(text).unwrap(), (vec![], numbers.clone()), "{text:?}");
        }
        let error = read("# one\n# 7 8\n# two\n1 2\n").unwrap_err().to_string();
        assert!(error.contains("`#") && error.contains("not a number"), "{error}");
        let error = read("# one\n# two\na,b\n1,2\n3\n").unwrap_err().to_string();
        assert!(error.contains("line 5"), "lines are counted as they are in the file: {error}");
        assert!(read("# one\n# two\n").is_err());
        assert!(read("1,2\n# later\n3,4\n").unwrap_err().to_string().contains("row 2"));
    }

    #[test]
    fn cells_are_numbers_or_say_why_not() {
        for (text, value) in
            [("1", 1.0), (" -2.5e3 ", -2500.0), ("+.5", 0.5), ("7.", 7.0), ("1e-60", 0.0), ("3.4e38", 3.4e38)]
        {
            assert_eq!(number(text.as_bytes()).map(|n| n.1), Ok(value), "{text}");
        }
        let cases: [(&[u8], &str); 12] = [
            (b"", "empty"),
            (b"   ", "empty"),
            (b"abc", "`abc` is not a number"),
            (b"0x10", "not a number"),
            (b"1,5", "decimals need a point"),
            (b"1.0 2.0", "separated by comma"),
            (b"nan", "NaN"),
            (b"-inf", "infinite"),
            (b"1e39", "too large"),
            (b"1e999", "too large"),
            (b"-1e999", "too large"),
            (b"\xff", "UTF-8"),
        ];
        for (text, expected) in cases {
            let error = number(text).unwrap_err();
            assert!(error.contains(expected), "{}: {error}", text.escape_ascii());
        }
        let long = number("x".repeat(10_000).as_bytes()).unwrap_err();
        assert!(long.len() < 100, "{long}");
    }
}

//! Text tables: numbers separated by commas, semicolons, tabs or blanks, with or without a line of names.
//!
//! Nothing is guessed about values: a cell that is empty, no number, NaN or infinite is an error with its place, because
//! a density trained on a silently changed table is worse than none.

use std::fs::File;
use std::io::{BufRead, BufReader, Cursor, Read};
use std::path::Path;

use super::atomic::write_atomic;
use super::precision::Precision;
use super::table::{ALL, Choice, Table, check_shape, narrow, open_regular};
use crate::error::{Error, Result};

/// In order of preference: a comma may be part of names in a file of semicolons, hardly the other way round.
const DELIMITERS: [u8; 3] = *b"\t;,";
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Reads a text table.
///
/// The first line holds names if no cell is a number and at least one is a text (cells that look like a missing value do
/// not count). Numbers beside texts are an error: a row with a typo must not be lost as a line of names.
/// A `#` before the names is dropped: NumPy writes it. Empty lines are ignored, cells may be quoted, lines end in LF or CRLF.
pub fn read_csv(path: &Path) -> Result<Table> {
    read_chosen(path, ALL)
}

/// As [`read_csv`], some columns of it.
pub(super) fn read_chosen(path: &Path, choice: Choice<'_>) -> Result<Table> {
    let (file, length) = open_regular(path)?;
    if length == 0 {
        return Err(Error::format(path, "the file is empty"));
    }
    let (text, delimiter) = sniff(file, path)?;
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
    Ok(Table::new(names, chosen.len(), values)?.with_coarse(precision.coarse()))
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

/// Reads the first two lines, finds the delimiter, and gives the whole text back without its byte order mark.
fn sniff(file: File, path: &Path) -> Result<(Box<dyn Read>, u8)> {
    let failed = |e| Error::io("read", path, e);
    let mut input = BufReader::with_capacity(1 << 16, file);
    let mut mark = Vec::new();
    input.by_ref().take(BYTE_ORDER_MARK.len() as u64).read_to_end(&mut mark).map_err(failed)?;
    if mark.starts_with(b"\xff\xfe") || mark.starts_with(b"\xfe\xff") {
        return Err(Error::format(path, "the text is UTF-16; save it as UTF-8"));
    }
    let mut start = if mark == BYTE_ORDER_MARK { Vec::new() } else { mark };
    let mut lines = 0;
    while lines < 2 {
        let before = start.len();
        if input.read_until(b'\n', &mut start).map_err(failed)? == 0 {
            break;
        }
        lines += usize::from(!start[before..].trim_ascii().is_empty());
    }
    let start = without_comment_sign(start);
    let delimiter = delimiter(&start);
    let by_blanks = delimiter == b' ';
    let text = Cursor::new(start).chain(input);
    Ok((if by_blanks { Box::new(Blanks { text, pending: false, begun: false }) } else { Box::new(text) }, delimiter))
}

/// The text without the sign before a line of names, "# a,b". A line of numbers with such a sign stays what it is, and so
/// does a column of the name "#".
fn without_comment_sign(text: Vec<u8>) -> Vec<u8> {
    let begin = text.len() - text.trim_ascii_start().len();
    let Some(names) = text[begin..].strip_prefix(b"#") else { return text };
    let names = names.trim_ascii_start();
    let cell = names.split(|b| DELIMITERS.contains(b) || b.is_ascii_whitespace()).next().unwrap_or_default();
    let is_number = std::str::from_utf8(cell).is_ok_and(|cell| cell.parse::<f64>().is_ok());
    if cell.is_empty() || is_number { text } else { [&text[..begin], names].concat() }
}

/// A text whose cells are separated by any number of blanks, with one between them and none around them.
struct Blanks<R> {
    text: R,
    /// There were blanks after the last cell.
    pending: bool,
    /// The line has a cell.
    begun: bool,
}

impl<R: BufRead> Read for Blanks<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let mut count = 0;
        while count < buffer.len() {
            let Some(&byte) = self.text.fill_buf()?.first() else { break };
            let is_end = matches!(byte, b'\n' | b'\r');
            if byte == b' ' {
                (self.pending, _) = (true, self.text.consume(1));
            } else if self.pending && self.begun && !is_end {
                // The byte itself comes next.
                (self.pending, buffer[count]) = (false, b' ');
                count += 1;
            } else {
                (self.pending, self.begun, buffer[count]) = (false, !is_end, byte);
                count += 1;
                self.text.consume(1);
            }
        }
        Ok(count)
    }
}

/// The delimiter that cuts the first two lines into the same number of cells, else the first one in line 1.
fn delimiter(text: &[u8]) -> u8 {
    let mut counts = vec![[0usize; DELIMITERS.len()]];
    let mut quoted = false;
    let mut blank = true;
    for &byte in text {
        quoted ^= byte == b'"';
        if quoted {
            blank = false;
        } else if matches!(byte, b'\n' | b'\r') {
            if !blank {
                counts.push([0; DELIMITERS.len()]);
                blank = true;
            }
        } else {
            blank &= byte.is_ascii_whitespace() && byte != b'\t';
            if let (Some(which), Some(line)) = (DELIMITERS.iter().position(|&d| d == byte), counts.last_mut()) {
                line[which] += 1;
            }
        }
    }
    let first = counts[0];
    let second = counts.get(1).filter(|_| counts.len() > 2 || !blank);
    let agrees = |which: usize| first[which] > 0 && second.is_none_or(|second| second[which] == first[which]);
    let which = (0..DELIMITERS.len()).find(|&w| agrees(w)).or_else(|| (0..DELIMITERS.len()).find(|&w| first[w] > 0));
    which.map_or(if is_by_blanks(text) { b' ' } else { b',' }, |which| DELIMITERS[which])
}

/// Whether the first lines hold numbers with nothing but blanks between them.
fn is_by_blanks(text: &[u8]) -> bool {
    let numbers = |line: &&str| {
        line.split_whitespace().count() > 1 && line.split_whitespace().all(|cell| cell.parse::<f64>().is_ok())
    };
    // A name may hold blanks, so that the numbers decide.
    std::str::from_utf8(text).is_ok_and(|text| text.lines().filter(|line| !line.trim().is_empty()).any(|l| numbers(&l)))
}

/// Whether the first line holds names. "1.0,,2.0" and "1.0,NA" are rows with a hole, which must be reported and not taken
/// for names.
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
fn number(cell: &[u8]) -> Result<(f64, f32), String> {
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

/// Writes a text table with commas; `names` is empty or has one name a column. Numbers have as many digits as it takes to
/// read the same `f32` back.
pub fn write_csv(
    path: &Path,
    names: &[String],
    rows: usize,
    columns: usize,
    values: &[f32],
    force: bool,
) -> Result<()> {
    check_shape(rows, columns, values)?;
    if !names.is_empty() && names.len() != columns {
        return Err(Error::Shape { what: "names of columns".into(), expected: columns, got: names.len() });
    }
    write_atomic(path, force, |out| {
        let mut writer = ::csv::Writer::from_writer(out);
        if !names.is_empty() {
            writer.write_record(names)?;
        }
        let mut text = String::new();
        for row in values.chunks_exact(columns.max(1)) {
            for value in row {
                use std::fmt::Write;
                text.clear();
                write!(text, "{value:?}").map_err(std::io::Error::other)?;
                writer.write_field(&text)?;
            }
            writer.write_record(None::<&[u8]>)?;
        }
        writer.flush()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delimiters_are_found() {
        let cases: [(&str, u8); 14] = [
            ("1,2\n3,4\n", b','),
            ("1;2\n3;4", b';'),
            ("1\t2\r\n3\t4\r\n", b'\t'),
            ("a,b;c\n1;2\n", b';'),
            ("time [a;b],x\n1,2\n", b','),
            ("\"a,b,c\";d\n1;2", b';'),
            ("\"a\nb,c\";d\n1;2", b';'),
            ("1,5;2,5\n1,5;2,5\n", b';'),
            ("\n\n  \n1;2\n", b';'),
            ("1;2", b';'),
            ("1", b','),
            ("", b','),
            ("a;b\r1;2\r", b';'),
            ("a;b;c\n1;2\n", b';'),
        ];
        for (text, expected) in cases {
            assert_eq!(delimiter(text.as_bytes()) as char, expected as char, "{text:?}");
        }
    }

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
        assert!(read("# 1,2\n3,4\n").is_err(), "a row that is a comment");
        assert!(read("#,b\n3,4\n").unwrap().0 == ["#", "b"]);
        let error = read("1 2\n3 4\n5\n").unwrap_err().to_string();
        assert!(error.contains("line 3") && error.contains("1 cells"), "{error}");
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

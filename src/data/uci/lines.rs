//! A text read line by line, in one buffer: the raw files have up to 4.2 million rows of 19 numbers. Those took 2.8
//! seconds and 190 MB from file to normalised rows, the 2.1 million rows of POWER 0.9 seconds and 150 MB, in a
//! development build.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::counted::counted;
use crate::data::files::Advice;
use crate::data::files::narrow;
use crate::data::files::open_regular;
use crate::data::files::text::{Decimal, number};
use crate::error::{Error, Result};

/// Bytes read at a time.
const CHUNK: usize = 1 << 18;
/// Longer lines belong to another file. Those of MINIBOONE have 750 characters.
const LONGEST: u64 = 1 << 16;

/// The lines of a file.
pub(super) struct Lines {
    path: PathBuf,
    input: BufReader<std::fs::File>,
    line: Vec<u8>,
    /// Number of the last line that was read, from 1.
    number: usize,
}

impl Lines {
    pub(super) fn open(path: &Path) -> Result<Self> {
        let (file, length) = open_regular(path)?;
        if length == 0 {
            return Err(Error::format(path, "the file is empty"));
        }
        let input = BufReader::with_capacity(CHUNK, file);
        Ok(Self { path: path.into(), input, line: Vec::with_capacity(1 << 10), number: 0 })
    }

    /// Reads the next line that is not blank, without the blanks around it. `None` at the end of the file.
    pub(super) fn next(&mut self) -> Result<Option<Line<'_>>> {
        loop {
            self.line.clear();
            let mut input = self.input.by_ref().take(LONGEST);
            let read = input.read_until(b'\n', &mut self.line).map_err(|e| Error::io("read", &self.path, e))?;
            if read == 0 {
                return Ok(None);
            }
            self.number += 1;
            if read as u64 == LONGEST && self.line.last() != Some(&b'\n') {
                let what = format!("line {} has more than {LONGEST} characters: this is another file", self.number);
                return Err(Error::format(&self.path, what));
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        Ok(Some(Line { text: self.line.trim_ascii(), number: self.number, path: &self.path }))
    }
}

/// Number of lines of a file up to the last that is not blank.
pub(super) fn count(path: &Path) -> Result<usize> {
    let (mut file, _) = open_regular(path)?;
    let mut buffer = vec![0; CHUNK];
    let (mut ends, mut lines) = (0, 0);
    loop {
        let read = file.read(&mut buffer).map_err(|e| Error::io("read", path, e))?;
        let text = &buffer[..read];
        if read == 0 {
            return Ok(lines);
        }
        let ends_in = |text: &[u8]| text.iter().filter(|&&byte| byte == b'\n').count();
        let all = ends_in(text);
        if let Some(last) = text.iter().rposition(|byte| !byte.is_ascii_whitespace()) {
            lines = ends + all - ends_in(&text[last..]) + 1;
        }
        ends += all;
    }
}

/// A line that is not blank.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Without the blanks around it.
    pub(super) text: &'a [u8],
    number: usize,
    path: &'a Path,
}

impl<'a> Line<'a> {
    /// The cells between blanks as numbers, row `row` (from 1) of the data.
    pub(super) fn numbers<const N: usize>(&self, row: usize) -> Result<[f64; N]> {
        let mut values = [0.0; N];
        let mut count = 0;
        for cell in self.text.split(u8::is_ascii_whitespace).filter(|cell| !cell.is_empty()) {
            if let Some(value) = values.get_mut(count) {
                *value = self.number_in(cell, row, count, None)?;
            }
            count += 1;
        }
        if count == N { Ok(values) } else { Err(self.wrong_cells(row, count, N)) }
    }

    /// A cell of column `column`, from 0, as a number.
    pub(super) fn number_in(&self, cell: &[u8], row: usize, column: usize, name: Option<&str>) -> Result<f64> {
        plain(cell)
            .map_or_else(|| number(&String::from_utf8_lossy(cell), Decimal::Point, Advice::default()), Ok)
            .and_then(|exact| narrow(exact).map(|_| exact))
            .map_err(|what| self.wrong_cell(row, column, name, &what))
    }

    /// The error of a cell of column `column`, from 0.
    pub(super) fn wrong_cell(&self, row: usize, column: usize, name: Option<&str>, what: &str) -> Error {
        Error::Cell {
            path: self.path.into(),
            row,
            column: column + 1,
            name: name.map(str::to_owned),
            what: format!("{what} (line {} of the file)", self.number),
        }
    }

    /// The error of a row of another length.
    pub(super) fn wrong_cells(&self, row: usize, got: usize, expected: usize) -> Error {
        let line = self.number;
        let what = format!(
            "row {row} (line {line}) has {} where {expected} are expected; the file is damaged or truncated",
            counted(got, "cell")
        );
        Error::format(self.path, what)
    }
}

/// A number without exponent whose digits fit in 53 bits: most of them. Their quotient by a power of ten is rounded
/// once, so that it is what the standard library's slower way gives.
fn plain(cell: &[u8]) -> Option<f64> {
    /// Powers of ten that a 64-bit float holds exactly.
    const TENS: [f64; 16] = [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let (negative, digits) = match cell {
        [b'-', rest @ ..] => (true, rest),
        rest => (false, rest),
    };
    // Fifteen digits are less than 2^53.
    if digits.is_empty() || digits.len() > TENS.len() {
        return None;
    }
    let (mut value, mut point) = (0u64, None);
    for (i, &byte) in digits.iter().enumerate() {
        match byte {
            b'0'..=b'9' => value = 10 * value + u64::from(byte - b'0'),
            b'.' if point.is_none() => point = Some(i),
            _ => return None,
        }
    }
    let decimals = point.map_or(0, |point| digits.len() - 1 - point);
    if digits.len() - usize::from(point.is_some()) > 15 || digits == b"." {
        return None;
    }
    let size = value as f64 / TENS[decimals];
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_numbers_are_those_of_the_standard_library() {
        let cells =
            ["0", "-0.00", "234.840", "-50.85", ".5", "7.", "123456789012345", "0.12345678901234", "99999.9999999999"];
        for cell in cells {
            let expected: f64 = cell.parse().unwrap();
            assert_eq!(plain(cell.as_bytes()).map(f64::to_bits), Some(expected.to_bits()), "{cell}");
        }
        for i in 0..200_000u64 {
            let cell = format!("{}.{:0w$}", i * 7919 % 100_003, i * 104_729 % 1_000_003, w = 6 + i as usize % 4);
            assert_eq!(plain(cell.as_bytes()), Some(cell.parse().unwrap()), "{cell}");
        }
        for cell in ["", "-", ".", "-.", "1e5", "+1", "1.2.3", "1,5", "nan", "1234567890123456", "--1"] {
            assert_eq!(plain(cell.as_bytes()), None, "{cell}");
        }
    }

    #[test]
    fn lines_are_counted_up_to_the_last_with_text() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.txt");
        let long = "1 2\n".repeat(100_000) + "3";
        let spaced = "1 2\n".repeat(CHUNK / 4) + "\n\r\n  ";
        for (text, expected) in
            [("", 0), ("a", 1), ("a\n", 1), ("a\r\nb", 2), ("a\n\nb\n \n", 3), (&long, 100_001), (&spaced, CHUNK / 4)]
        {
            std::fs::write(&path, text).unwrap();
            assert_eq!(count(&path).unwrap(), expected);
        }
    }
}

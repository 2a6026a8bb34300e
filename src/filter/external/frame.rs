//! Arrays on their way to a command and back.

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::data::files::npy::{npy_numbers, npy_to, read_npy_bytes};
use crate::error::{Error, Result};

/// How arrays are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Format {
    /// NumPy's binary format.
    #[default]
    Npy,
    /// Lines of numbers with commas.
    Csv,
}

impl Format {
    /// What an array of it is called.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Npy => ".npy array",
            Self::Csv => "lines of numbers with commas",
        }
    }

    /// Bytes of an array.
    pub(super) fn encode(self, values: &[f32], rows: usize, columns: usize) -> Vec<u8> {
        use std::io::Write;

        let mut bytes = Vec::new();
        let written = match self {
            Self::Npy => npy_to(&mut bytes, rows, columns, values),
            // An array without columns is no lines.
            Self::Csv => values.chunks(columns.max(1)).try_for_each(|row| {
                let cells: Vec<String> = row.iter().map(f32::to_string).collect();
                writeln!(bytes, "{}", cells.join(","))
            }),
        };
        written.unwrap_or_else(|e| unreachable!("memory takes all bytes: {e}"));
        bytes
    }

    /// More bytes than an array of so many values has, of any type of numbers.
    pub(super) fn longest(self, values: usize) -> u64 {
        let each = match self {
            Self::Npy => 8,
            Self::Csv => 40,
        };
        (values as u64).saturating_mul(each).saturating_add(1 << 17)
    }

    /// Values of an array and the number of its columns.
    ///
    /// # Errors
    /// [`Error::Cell`] naming row and column, [`Error::Format`].
    pub(super) fn decode(self, bytes: &[u8], name: &Path) -> Result<(Vec<f32>, usize)> {
        match self {
            Self::Npy => begins_as_array(bytes, name).and_then(|()| read_npy_bytes(bytes, name)),
            Self::Csv => lines(bytes, name),
        }
    }

    /// Numbers of an array of any shape, unrounded; they need not be finite.
    ///
    /// # Errors
    /// [`Error::Format`].
    pub(super) fn decode_numbers(self, bytes: &[u8], name: &Path) -> Result<Vec<f64>> {
        match self {
            Self::Npy => begins_as_array(bytes, name).and_then(|()| npy_numbers(bytes, name)),
            Self::Csv => {
                let lines = text(bytes, name)?.lines().map(str::trim).filter(|line| !line.is_empty());
                let number = |(row, line): (usize, &str)| {
                    let wrong = || Error::format(name, format!("row {} is {}", row + 1, beginning(line.as_bytes())));
                    line.parse().map_err(|_| wrong())
                };
                lines.enumerate().map(number).collect()
            }
        }
    }
}

fn begins_as_array(bytes: &[u8], name: &Path) -> Result<()> {
    const MAGIC: &[u8] = b"\x93NUMPY";
    if bytes.is_empty() || bytes.starts_with(MAGIC) {
        return Ok(());
    }
    let what = format!("it begins with {}; nothing else may be printed to standard output", beginning(bytes));
    Err(Error::format(name, what))
}

fn text<'b>(bytes: &'b [u8], name: &Path) -> Result<&'b str> {
    std::str::from_utf8(bytes)
        .map_err(|_| Error::format(name, format!("it is no text; it begins with {}", beginning(bytes))))
}

/// Lines of numbers.
fn lines(bytes: &[u8], name: &Path) -> Result<(Vec<f32>, usize)> {
    let (mut values, mut columns) = (Vec::new(), 0);
    for (row, line) in text(bytes, name)?.lines().filter(|line| !line.trim().is_empty()).enumerate() {
        let before = values.len();
        for (column, cell) in line.split(',').enumerate() {
            let cell = cell.trim();
            let value = cell.parse::<f64>().ok().map(|value| value as f32).filter(|value| value.is_finite());
            values.push(value.ok_or_else(|| Error::Cell {
                path: name.into(),
                row: row + 1,
                column: column + 1,
                name: None,
                what: format!("it is {}", beginning(cell.as_bytes())),
            })?);
        }
        let got = values.len() - before;
        if row == 0 {
            columns = got;
        }
        if got != columns {
            let what = format!("row {} has {got} numbers, the first row has {columns}", row + 1);
            return Err(Error::format(name, what));
        }
    }
    if columns == 0 { Err(Error::format(name, "the output is empty")) } else { Ok((values, columns)) }
}

/// The first bytes of something, for messages.
fn beginning(bytes: &[u8]) -> String {
    const MOST: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MOST)]).escape_debug().to_string();
    format!("`{text}{}`", if bytes.len() > MOST { "..." } else { "" })
}

//! A table of finite numbers: what every data file becomes.

use std::cell::RefCell;
use std::fs::{self, File};
use std::io;
use std::path::Path;

use sha2::{Digest, Sha256};

use super::select::choose;
use super::{csv, npy};
use crate::atomic::Overwrite;
use crate::error::{Error, Result};

/// The extensions that [`Table::write`] knows, for messages.
const WRITTEN: &str = ".npy or .csv";
/// The extensions of other text tables that [`Table::read`] knows.
const TEXTS: [&str; 3] = ["txt", "tsv", "dat"];

/// Rows of finite numbers with optional names of the columns. There is at least one row and one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Number of rows.
    pub rows: usize,
    /// Names of the columns; empty if the file had none.
    pub columns: Vec<String>,
    dim: usize,
    values: Vec<f32>, // (rows, dim)
    coarse: Vec<usize>,
    /// Numbers of the columns in the file they come from, from 1.
    file_numbers: Vec<usize>,
}

/// Says which columns of a file are read, in which order, from their names (none where the file has none) and their
/// number; all of them where it says `None`. Cells of the others may hold anything.
pub(super) type Choice<'a> = &'a dyn Fn(&[String], usize) -> Result<Option<Vec<usize>>>;

/// All columns.
pub(super) const ALL: Choice<'static> = &|_, _| Ok(None);

impl Table {
    /// A table from row-major values. `columns` is empty or has `dim` names.
    pub fn new(columns: Vec<String>, dim: usize, values: Vec<f32>) -> Result<Self> {
        let wrong = |what: &str, expected, got| Err(Error::Shape { what: what.into(), expected, got });
        if dim == 0 {
            return wrong("columns of a table", 1, 0);
        }
        if values.is_empty() {
            return wrong("rows of a table", 1, 0);
        }
        if !values.len().is_multiple_of(dim) {
            return wrong("values in whole rows", values.len() / dim * dim, values.len());
        }
        if !columns.is_empty() && columns.len() != dim {
            return wrong("names of columns", dim, columns.len());
        }
        Ok(Self {
            rows: values.len() / dim,
            dim,
            columns,
            values,
            coarse: Vec::new(),
            file_numbers: (1..=dim).collect(),
        })
    }

    /// Reads a file by its extension: `.npy`, or the text tables `.csv`, `.txt`, `.tsv` and `.dat`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        read(path.as_ref(), ALL)
    }

    /// Reads some columns of a file, as [`Table::select`] chooses them. The others may hold anything.
    pub fn read_columns<S: AsRef<str>>(path: impl AsRef<Path>, wanted: &[S]) -> Result<Self> {
        read(path.as_ref(), &|names, dim| choose(names, dim, wanted, "data.columns").map(Some))
    }

    /// Reads the columns of these names, if the file has all of them, and otherwise the whole file. Also tells all
    /// names of the file.
    pub fn read_named(path: impl AsRef<Path>, wanted: &[String]) -> Result<(Self, Vec<String>)> {
        let all = RefCell::new(Vec::new());
        let table = read(path.as_ref(), &|names, _| {
            all.replace(names.to_vec());
            let index = |name| names.iter().position(|n| n == name);
            Ok(if wanted.is_empty() { None } else { wanted.iter().map(index).collect() })
        })?;
        Ok((table, all.into_inner()))
    }

    /// Writes a file by its extension. Only `.csv` keeps the names.
    pub fn write(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<()> {
        write_table(path.as_ref(), &self.columns, self.rows, self.dim, &self.values, overwrite)
    }

    /// Number of columns.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// All values, row by row.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// All values, row by row, to keep.
    pub fn into_values(self) -> Vec<f32> {
        self.values
    }

    /// Row `i`, counted from 0.
    pub fn row(&self, i: usize) -> &[f32] {
        &self.values[i * self.dim..][..self.dim]
    }

    /// All rows in order.
    pub fn iter_rows(&self) -> std::slice::ChunksExact<'_, f32> {
        self.values.chunks_exact(self.dim)
    }

    /// What to call column `i` (counted from 0) in a message: its name, or `column 3` (its number in the file, from 1).
    pub fn column_label(&self, i: usize) -> String {
        self.columns.get(i).cloned().unwrap_or_else(|| format!("column {}", self.file_numbers[i]))
    }

    /// The table of some columns in the given order. Each is a name, or a number counted from 1 as in error messages;
    /// a name wins over a number.
    pub fn select<S: AsRef<str>>(&self, wanted: &[S]) -> Result<Self> {
        self.take(&self.numbers(wanted)?)
    }

    /// The columns, from 0, that [`Table::select`] means.
    pub fn numbers<S: AsRef<str>>(&self, wanted: &[S]) -> Result<Vec<usize>> {
        choose(&self.columns, self.dim, wanted, "data.columns")
    }

    /// The table without some columns, from 0; at least one must be left.
    pub fn without(&self, columns: &[usize]) -> Result<Self> {
        self.take(&(0..self.dim).filter(|i| !columns.contains(i)).collect::<Vec<_>>())
    }

    /// The table of some columns, from 0, in the given order.
    pub fn take(&self, chosen: &[usize]) -> Result<Self> {
        let columns = if self.columns.is_empty() {
            Vec::new()
        } else {
            chosen.iter().map(|&i| self.columns[i].clone()).collect()
        };
        let values = self.iter_rows().flat_map(|row| chosen.iter().map(|&i| row[i])).collect();
        let coarse = (0..chosen.len()).filter(|&i| self.coarse.contains(&chosen[i])).collect();
        let file_numbers = chosen.iter().map(|&i| self.file_numbers[i]).collect();
        Ok(Self { coarse, file_numbers, ..Self::new(columns, chosen.len(), values)? })
    }

    /// The rows of this table with those of another to their right; with names where both have them.
    pub(crate) fn beside(&self, right: &Self) -> Result<Self> {
        let named = !self.columns.is_empty() && !right.columns.is_empty();
        let columns = if named { [&self.columns[..], &right.columns].concat() } else { Vec::new() };
        let values = side_by_side(&self.values, &right.values, self.rows);
        let coarse = self.coarse.iter().copied().chain(right.coarse.iter().map(|i| i + self.dim)).collect();
        let file_numbers = [&self.file_numbers[..], &right.file_numbers].concat();
        Ok(Self { coarse, file_numbers, ..Self::new(columns, self.dim + right.dim, values)? })
    }

    /// The table with the columns (from 0) whose numbers 32-bit floats cannot tell apart.
    pub(super) fn with_coarse(self, coarse: Vec<usize>) -> Self {
        Self { coarse, ..self }
    }

    /// The table with the numbers that its columns have in their file.
    pub(super) fn with_file_numbers(self, file_numbers: Vec<usize>) -> Self {
        Self { file_numbers, ..self }
    }

    /// The number, from 1, that each column has in the file it was read from.
    pub fn file_numbers(&self) -> &[usize] {
        &self.file_numbers
    }

    /// The columns (from 0) of the file whose numbers are so close together, for their size, that rounding them to
    /// 32-bit floats changed them much.
    pub fn coarse(&self) -> &[usize] {
        &self.coarse
    }

    /// What to tell where [`Table::coarse`] names a column.
    pub fn coarse_note(&self) -> Option<String> {
        let names: Vec<_> = self.coarse.iter().map(|&i| self.column_label(i)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "numbers closer together than 32-bit floats can tell apart: {}; subtract an offset from the column first \
                 (for example its first number), so that what differs is not rounded away",
                names.join(", ")
            )
        })
    }

    /// SHA-256 of shape and values in hexadecimal: equal for the same numbers in different files, whatever the names.
    pub fn fingerprint(&self) -> String {
        fingerprint(self.dim, &self.values)
    }
}

pub(super) fn read(path: &Path, choice: Choice<'_>) -> Result<Table> {
    match Format::read_of(path)? {
        Format::Npy => npy::read_chosen(path, choice),
        Format::Csv => csv::read_chosen(path, choice),
    }
}

/// [`Table::fingerprint`] of rows that are in no table.
pub(crate) fn fingerprint(dim: usize, values: &[f32]) -> String {
    let mut hash = Sha256::new();
    hash.update(((values.len() / dim) as u64).to_le_bytes());
    hash.update((dim as u64).to_le_bytes());
    let mut bytes = Vec::with_capacity(1 << 16);
    for chunk in values.chunks(1 << 14) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
        hash.update(&bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Writes `rows` x `columns` values to `.npy` or `.csv`, whichever the extension says. `names` (for `.csv`) is empty or
/// has one name a column.
pub(crate) fn write_table(
    path: &Path,
    names: &[String],
    rows: usize,
    columns: usize,
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    match Format::of(path)? {
        Format::Npy => npy::write_npy(path, rows, columns, values, overwrite),
        Format::Csv => csv::write_csv(path, names, rows, columns, values, overwrite),
    }
}

/// Writes the rows of several groups of `rows` rows each: `.npy` gets an array (groups, rows, columns), `.csv` a first
/// column `name` with the number of the group, from 1.
pub(crate) fn write_groups(
    path: &Path,
    name: &str,
    names: &[String],
    [groups, rows, columns]: [usize; 3],
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    check_shape(groups * rows, columns, values)?;
    match Format::of(path)? {
        Format::Npy => npy::write_npy_groups(path, [groups, rows, columns], values, overwrite),
        Format::Csv => {
            let (names, values) = with_group(name, names, rows, columns, values);
            csv::write_csv(path, &names, groups * rows, columns + 1, &values, overwrite)
        }
    }
}

/// Rows of two tables of `rows` rows each, row-major: the row of `left`, then that of `right`.
pub(crate) fn side_by_side(left: &[f32], right: &[f32], rows: usize) -> Vec<f32> {
    let [l, r] = [left, right].map(|values| values.len() / rows.max(1));
    let mut joined = Vec::with_capacity(left.len() + right.len());
    for row in 0..rows {
        joined.extend_from_slice(&left[row * l..][..l]);
        joined.extend_from_slice(&right[row * r..][..r]);
    }
    joined
}

/// Rows of groups of `rows` rows with the number of the group, from 1, as their first column.
pub(crate) fn with_group(
    name: &str,
    names: &[String],
    rows: usize,
    columns: usize,
    values: &[f32],
) -> (Vec<String>, Vec<f32>) {
    let unnamed = || (1..=columns).map(|i| format!("x{i}")).collect();
    let names = if names.is_empty() { unnamed() } else { names.to_vec() };
    let names = std::iter::once(name.to_owned()).chain(names).collect();
    let number = |row: usize| (row / rows + 1) as f32;
    let rows = values.chunks_exact(columns).enumerate();
    (names, rows.flat_map(|(i, row)| std::iter::once(number(i)).chain(row.iter().copied())).collect())
}

/// Writes one number a row: `.npy` gets one dimension, `.csv` a column of that name.
pub(crate) fn write_vector(path: &Path, name: &str, values: &[f32], overwrite: Overwrite) -> Result<()> {
    match Format::of(path)? {
        Format::Npy => npy::write_npy_vector(path, values, overwrite),
        Format::Csv => csv::write_csv(path, &[name.into()], values.len(), 1, values, overwrite),
    }
}

/// Fails as [`write_table`] would if a file of that name must not be written, before any work is spent on its content.
pub(crate) fn check_table_output(path: &Path, overwrite: Overwrite) -> Result<()> {
    Format::of(path)?;
    crate::atomic::check_output(path, overwrite)
}

/// File formats of tables.
#[derive(Clone, Copy)]
enum Format {
    Npy,
    Csv,
}

impl Format {
    /// That of a file to write. A name of another kind is no fault of a file, which need not exist, but of who gave it.
    fn of(path: &Path) -> Result<Self> {
        let what = match extension(path).as_deref() {
            Some("npy") => return Ok(Self::Npy),
            Some("csv") => return Ok(Self::Csv),
            Some(other) => format!("tables are written as {WRITTEN}, not as .{other}"),
            None => format!("the name of a table to write ends in {WRITTEN}"),
        };
        Err(Error::config(path.display().to_string(), what))
    }

    /// That of a file to read: text tables have several names.
    fn read_of(path: &Path) -> Result<Self> {
        let extension = extension(path);
        let is_text = extension.as_deref().is_some_and(|extension| TEXTS.contains(&extension));
        if is_text {
            return Ok(Self::Csv);
        }
        Self::of(path).map_err(|_| {
            let texts = TEXTS.map(|extension| format!(".{extension}")).join(", ");
            let got = extension.map_or("a name without one".into(), |extension| format!(".{extension}"));
            Error::format(path, format!("tables are read from {WRITTEN} or, as other texts, {texts}; not from {got}"))
        })
    }
}

fn extension(path: &Path) -> Option<String> {
    path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase())
}

/// Whether the name of a file is that of a table that can be read.
pub(crate) fn is_table_file(path: &Path) -> bool {
    Format::read_of(path).is_ok()
}

/// Opens a regular file and tells its length.
pub(crate) fn open_regular(path: &Path) -> Result<(File, u64)> {
    let failed = |e| Error::io("read", path, e);
    // Before opening: opening a pipe would wait for its writer.
    let metadata = fs::metadata(path).map_err(failed)?;
    if metadata.is_dir() {
        return Err(failed(io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(failed(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file")));
    }
    Ok((File::open(path).map_err(failed)?, metadata.len()))
}

/// A number as `f32`, or what is wrong with it.
pub(super) fn narrow(value: f64) -> Result<f32, String> {
    let narrowed = value as f32;
    if narrowed.is_finite() {
        Ok(narrowed)
    } else if value.is_nan() {
        Err("the value is NaN".into())
    } else if value.is_infinite() {
        Err("the value is infinite".into())
    } else {
        Err(format!("{value:e} is too large for a 32-bit float"))
    }
}

/// Whether `values` has the size of `rows` x `columns`.
pub(super) fn check_shape(rows: usize, columns: usize, values: &[f32]) -> Result<()> {
    match rows.checked_mul(columns) {
        Some(count) if count == values.len() => Ok(()),
        count => Err(Error::Shape {
            what: format!("values of {rows} rows and {columns} columns"),
            expected: count.unwrap_or(usize::MAX),
            got: values.len(),
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named() -> Table {
        let names = ["a", "b", "2"].map(String::from).to_vec();
        Table::new(names, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
    }

    #[test]
    fn sizes_must_fit() {
        let t = named();
        assert_eq!((t.rows, t.dim(), t.row(1), t.iter_rows().len()), (2, 3, &[4.0, 5.0, 6.0][..], 2));
        assert!(Table::new(vec![], 0, vec![]).is_err());
        assert!(Table::new(vec![], 3, vec![]).is_err());
        assert!(Table::new(vec![], 3, vec![0.0; 4]).is_err());
        assert!(Table::new(vec!["a".into()], 3, vec![0.0; 3]).is_err());
    }

    #[test]
    fn columns_are_chosen_by_name_before_number() {
        let t = named();
        assert_eq!(t.select(&["2", "1"]).unwrap().values(), [3.0, 1.0, 6.0, 4.0]);
        assert_eq!(t.select(&["2", "1"]).unwrap().columns, ["2", "a"]);
        assert_eq!(t.select(&["b"]).unwrap().values(), [2.0, 5.0]);
        assert_eq!(t.select(&["3", "b", "a"]).unwrap().row(1), [6.0, 5.0, 4.0]);
        let cases = [
            (vec!["c"], "no column `c`"),
            (vec!["0"], "no column `0`"),
            (vec!["4"], "1 to 3"),
            (vec![], "no column"),
            (vec!["a", "1"], "a is chosen twice"),
        ];
        for (wanted, message) in cases {
            let error = t.select(&wanted).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(matches!(error, Error::Config { .. }), "{error}");
        }
        let nameless = Table::new(vec![], 2, vec![1.0, 2.0]).unwrap();
        assert_eq!(nameless.select(&["2"]).unwrap().values(), [2.0]);
        assert!(nameless.select(&["x"]).unwrap_err().to_string().contains("no names"));
        assert_eq!((nameless.column_label(1), t.column_label(1)), ("column 2".to_owned(), "b".to_owned()));
    }

    #[test]
    fn fingerprint_sees_values_and_shape_only() {
        let t = named();
        assert_eq!(t.fingerprint().len(), 64);
        let nameless = Table::new(vec![], 3, t.values().to_vec()).unwrap();
        assert_eq!(t.fingerprint(), nameless.fingerprint());
        let other_shape = Table::new(vec![], 2, t.values().to_vec()).unwrap();
        let mut values = t.values().to_vec();
        values[5] = 6.000_001;
        let other_value = Table::new(vec![], 3, values).unwrap();
        assert_ne!(t.fingerprint(), other_shape.fingerprint());
        assert_ne!(t.fingerprint(), other_value.fingerprint());
        // By any SHA-256 of the bytes 1 (u64), 1 (u64), 1.0 (f32).
        let one = Table::new(vec![], 1, vec![1.0]).unwrap();
        assert_eq!(one.fingerprint(), "0b00d2111828b8450f781d8167e595903b75d445292bbe1b2dcf68a03dca5bc8");
    }

    #[test]
    fn extensions_choose_the_format() {
        for name in ["a.npy", "b.CSV", "c.txt", "d.TSV", "e.dat"] {
            assert!(
                matches!(Table::read(name), Err(Error::Io { action: "read", path, .. }) if path == Path::new(name))
            );
        }
        for name in ["a.npz", "a.parquet", "a", ".npy", ""] {
            let error = Table::read(name).unwrap_err().to_string();
            assert!(error.contains(".npy or .csv") && error.contains(".txt, .tsv, .dat"), "{error}");
        }
        // Text tables of other names are read, but not written.
        for name in ["a.npz", "a.txt", "a.tsv", "a", ".npy", ""] {
            assert!(named().write(name, Overwrite::No).unwrap_err().to_string().contains(".npy or .csv"));
            assert!(matches!(check_table_output(Path::new(name), Overwrite::No), Err(Error::Config { .. })));
        }
    }

    #[test]
    fn numbers_narrow_or_say_why_not() {
        assert_eq!(narrow(0.1), Ok(0.1f32));
        assert_eq!(narrow(f64::from(f32::MAX)), Ok(f32::MAX));
        assert_eq!(narrow(1e-300), Ok(0.0));
        for (value, message) in [(f64::NAN, "NaN"), (f64::INFINITY, "infinite"), (-1e39, "-1e39 is too large")] {
            assert!(narrow(value).unwrap_err().contains(message));
        }
    }
}

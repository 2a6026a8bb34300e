//! Tables as files: [`npy`] arrays and [`text`] tables, read and written by the extension of their names.

mod advice;
mod narrowing;
pub(crate) mod npy;
mod precision;
mod source;
pub(crate) mod text;

use std::cell::RefCell;
use std::path::Path;

pub(crate) use advice::Advice;
pub(crate) use narrowing::{Far, Limits};
pub(super) use source::narrow;
pub(crate) use source::open_regular;

use super::packing::{Packed, Packing};
use super::select::{Parts, choose, parts};
use super::table::{Table, check_shape};
use crate::atomic::Overwrite;
use crate::error::{Error, Result};
use source::{ALL, Choice};
use text::TextSettings;

/// The extensions that [`Table::write`] knows, for messages.
const WRITTEN: &str = ".npy or .csv";
/// The extensions of other text tables that [`Table::read`] knows.
const TEXTS: [&str; 3] = ["txt", "tsv", "dat"];

impl Table {
    /// Reads a file by its extension: `.npy`, or the text tables `.csv`, `.txt`, `.tsv` and `.dat`.
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        Self::read_with(path.as_ref(), &Reading::default())
    }

    /// The same with what is said of the layout of text tables, and of how columns are packed.
    pub(crate) fn read_with(path: &Path, how: &Reading<'_>) -> Result<Self> {
        read(path, how, ALL)
    }

    /// Reads some columns of a file, as [`Table::select`] chooses them. The others may hold anything.
    pub fn read_columns<S: AsRef<str>>(path: impl AsRef<Path>, wanted: &[S]) -> Result<Self> {
        Self::read_columns_with(path.as_ref(), wanted, &Reading::default())
    }

    /// The same with what is said of the layout of text tables, and of how columns are packed.
    pub(crate) fn read_columns_with<S: AsRef<str>>(path: &Path, wanted: &[S], how: &Reading<'_>) -> Result<Self> {
        read(path, how, &|names, dim| choose(names, dim, wanted, "data.columns").map(Some))
    }

    /// Reads the columns of these names, if the file has all of them, and otherwise the whole file. Also tells all
    /// names of the file.
    pub(crate) fn read_named(path: &Path, wanted: &[String], how: &Reading<'_>) -> Result<(Self, Vec<String>)> {
        let all = RefCell::new(Vec::new());
        let table = read(path, how, &|names, _| {
            all.replace(names.to_vec());
            let index = |name| names.iter().position(|n| n == name);
            Ok(if wanted.is_empty() { None } else { wanted.iter().map(index).collect() })
        })?;
        Ok((table, all.into_inner()))
    }

    /// Writes a file by its extension. Only `.csv` keeps the names.
    pub fn write(&self, path: impl AsRef<Path>, overwrite: Overwrite) -> Result<()> {
        let names = self.columns.clone();
        let packing = (0..self.dim()).map(|i| self.packing(i)).collect();
        write_table(path.as_ref(), &Columns { names, packing }, self.rows, self.dim(), self.values(), overwrite)
    }

    /// Reads the columns `given`, and `modelled` or, where that is `None`, all others; all as [`Table::select`] chooses
    /// them.
    ///
    /// # Errors
    /// Those of reading; [`Error::Config`] for `data.given` or `data.columns` where a column is unknown, named twice or
    /// in both lists, or none is left.
    pub(crate) fn read_parts(
        path: &Path,
        given: &[String],
        modelled: Option<&[String]>,
        how: &Reading<'_>,
    ) -> Result<Parts> {
        let choice = |names: &[String], dim| parts(names, dim, given, modelled).map(|(y, x)| Some([y, x].concat()));
        let table = read(path, how, &choice)?;
        // As many as were chosen: none was named twice.
        let at = given.len();
        Ok(Parts {
            given: table.take(&(0..at).collect::<Vec<_>>())?,
            modelled: table.take(&(at..table.dim()).collect::<Vec<_>>())?,
        })
    }
}

fn read(path: &Path, how: &Reading<'_>, choice: Choice<'_>) -> Result<Table> {
    match Format::read_of(path)? {
        Format::Npy => npy::read_chosen(path, how, choice),
        Format::Csv => text::read_chosen(path, how, choice),
    }
}

/// How a table is read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reading<'a> {
    /// What is said of the layout of text tables.
    pub(crate) text: TextSettings,
    /// How columns are packed.
    pub(crate) packed: Packed<'a>,
    /// Where their numbers can lie.
    pub(crate) limits: Limits<'a>,
    /// What is made of numbers that no 32-bit float holds.
    pub(crate) far: Far,
    /// A column of this name is left out where none are chosen, unless it is the only one. It may hold anything.
    pub(crate) without: Option<&'a str>,
}

/// What the columns of a table that is written are called, and how their values are packed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Columns {
    /// A name for each column, or none; a `.npy` has no room for names.
    pub(crate) names: Vec<String>,
    /// The packing of each column, or nothing. Numbers are written unpacked, of packed columns with 64 bits.
    pub(crate) packing: Vec<Packing>,
}

impl From<&[String]> for Columns {
    fn from(names: &[String]) -> Self {
        Self { names: names.to_vec(), packing: Vec::new() }
    }
}

impl Columns {
    /// The same behind another column, which is not packed; `count` is how many they are.
    pub(crate) fn behind(&self, first: &str, count: usize) -> Self {
        let unnamed = || (1..=count).map(|i| format!("x{i}")).collect();
        let names = if self.names.is_empty() { unnamed() } else { self.names.clone() };
        let packing = match self.packing.is_empty() {
            true => Vec::new(),
            false => std::iter::once(Packing::default()).chain(self.packing.iter().copied()).collect(),
        };
        Self { names: std::iter::once(first.to_owned()).chain(names).collect(), packing }
    }

    /// The same before another column, which is not packed.
    pub(crate) fn before(&self, last: &str, count: usize) -> Self {
        let mut columns = self.behind(last, count);
        columns.names.rotate_left(1);
        if !columns.packing.is_empty() {
            columns.packing.rotate_left(1);
        }
        columns
    }

    /// Whether any column is packed.
    pub(crate) fn are_packed(&self) -> bool {
        self.packing.iter().any(|packing| !packing.is_none())
    }
}

/// Writes `rows` x `dim` values to `.npy` or `.csv`, whichever the extension says.
pub(crate) fn write_table(
    path: &Path,
    columns: &Columns,
    rows: usize,
    dim: usize,
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    match Format::of(path)? {
        Format::Npy => npy::write_npy_of(path, columns, &[rows, dim], values, overwrite),
        Format::Csv => text::write_csv(path, columns, rows, dim, values, overwrite),
    }
}

/// Writes the rows of several groups of `rows` rows each: `.npy` gets an array (groups, rows, columns), `.csv` a first
/// column `name` with the number of the group, from 1.
pub(crate) fn write_groups(
    path: &Path,
    name: &str,
    columns: &Columns,
    [groups, rows, dim]: [usize; 3],
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    match Format::of(path)? {
        Format::Npy => npy::write_npy_of(path, columns, &[groups, rows, dim], values, overwrite),
        Format::Csv => {
            check_shape(groups * rows, dim, values)?;
            let values = with_group(rows, dim, values);
            text::write_csv(path, &columns.behind(name, dim), groups * rows, dim + 1, &values, overwrite)
        }
    }
}

/// Rows of groups of `rows` rows with the number of the group, from 1, as their first column.
pub(crate) fn with_group(rows: usize, dim: usize, values: &[f32]) -> Vec<f32> {
    let number = |row: usize| (row / rows + 1) as f32;
    let rows = values.chunks_exact(dim).enumerate();
    rows.flat_map(|(i, row)| std::iter::once(number(i)).chain(row.iter().copied())).collect()
}

/// Writes one number a row: `.npy` gets one dimension, `.csv` a column of that name.
pub(crate) fn write_vector(path: &Path, name: &str, values: &[f32], overwrite: Overwrite) -> Result<()> {
    match Format::of(path)? {
        Format::Npy => npy::write_npy_vector(path, values, overwrite),
        Format::Csv => {
            let columns = Columns { names: vec![name.into()], packing: Vec::new() };
            text::write_csv(path, &columns, values.len(), 1, values, overwrite)
        }
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
            let got = match extension {
                _ if path.is_dir() => "a folder".into(),
                Some(extension) => format!(".{extension}"),
                None => "a name without one".into(),
            };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_read_without_the_other_columns() {
        let list = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        // Cells of columns that are in neither part may hold anything.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tsv");
        std::fs::write(&path, "id\tu\tv\nx\t1\t2\ny\t3\t4\n").unwrap();
        let parts = Table::read_parts(&path, &list(&["v"]), Some(&list(&["u"])), &Reading::default()).unwrap();
        assert_eq!((parts.given.values(), parts.modelled.values()), (&[2.0, 4.0][..], &[1.0, 3.0][..]));
        assert_eq!((parts.given.file_numbers(), parts.modelled.file_numbers()), (&[3][..], &[2][..]));
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
            assert!(
                Table::new(vec![], 1, vec![1.0])
                    .unwrap()
                    .write(name, Overwrite::No)
                    .unwrap_err()
                    .to_string()
                    .contains(".npy or .csv")
            );
            assert!(matches!(check_table_output(Path::new(name), Overwrite::No), Err(Error::Config { .. })));
        }
    }
}

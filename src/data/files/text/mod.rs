//! Text tables: numbers separated by commas, semicolons, tabs, bars or blanks, with or without a line of names.
//!
//! [`layout`] finds out from the first lines what a file looks like, and says what it assumed; [`lines`] and [`cells`]
//! take it apart. Nothing is guessed about values: a cell that is empty, no number, NaN or infinite is an error with its
//! place, because a density trained on a silently changed table is worse than none.

mod cells;
mod header;
mod layout;
mod lines;
mod number;
mod settings;
mod write;

use std::path::Path;

use super::Reading;
use super::advice::Advice;
use super::narrowing::{Narrowed, Narrowing};
use super::precision::Precision;
use super::source::{Choice, open_regular};
use crate::counted::{are, counted};
use crate::data::lost::FarNumber;
use crate::data::packing::{Packed, shortened};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::memory;
use cells::{Cell, split};
use layout::{Column, Layout};
use lines::Lines;
pub(in crate::data) use number::number;
pub(super) use settings::{ALL_MISSING, left_out_note};
pub(crate) use settings::{Decimal, Separator, TextSettings, usually_missing};
pub(crate) use write::{csv_to, write_csv};

/// Reads a text table.
///
/// The first line holds names if no cell is a number and at least one is a text (cells that look like a missing value
/// do not count), or if its numbers are in order and the rows are not. Numbers beside texts are an error: a row with a typo must not be
/// lost as a line of names. Lines with a `#` at the head of the file are comments; the last may hold the names, as NumPy
/// writes them. Empty lines are ignored, cells may be quoted, lines end in LF, CRLF or CR.
///
/// `choice` says which columns are read, `how` what is not to be found out. A file whose columns turn out to need
/// packing is read twice.
pub(super) fn read_chosen(path: &Path, how: &Reading<'_>, choice: Choice<'_>) -> Result<Table> {
    let rows = read_once(path, how, choice)?;
    match if let Packed::AsNeeded = how.packed { rows.precision.needed() } else { None } {
        None => rows.finish(),
        Some(packing) => {
            drop(rows);
            let how = Reading { packed: Packed::As(&[], &packing), ..how.clone() };
            read_once(path, &how, choice)?.telling_packing().finish()
        }
    }
}

fn read_once<'a>(path: &'a Path, how: &'a Reading<'a>, choice: Choice<'a>) -> Result<Rows<'a>> {
    let (layout, lines) = begin(path, &how.text)?;
    Rows::new(path, how, layout, choice).read(lines)
}

/// What a text looks like, and its lines after those of its head.
fn begin(path: &Path, settings: &TextSettings) -> Result<(Layout, Lines)> {
    let (file, length) = open_regular(path)?;
    if length == 0 {
        return Err(Error::format(path, "the file is empty"));
    }
    let mut lines = Lines::new(file, path)?;
    Ok((Layout::find(&mut lines, settings)?, lines))
}

/// The rows of a table while they are read.
struct Rows<'a> {
    path: &'a Path,
    how: &'a Reading<'a>,
    layout: Layout,
    choice: Choice<'a>,
    /// Indices of the columns that are read, once they are known.
    chosen: Option<Vec<usize>>,
    /// How their numbers are rounded.
    ways: Vec<Narrowing>,
    precision: Precision,
    values: Vec<f32>,
    /// The numbers of a row before they are rounded.
    exact: Vec<f64>,
    /// Rows of the file so far, those left out too.
    row: usize,
    /// The line of the last of them.
    last_line: Option<u64>,
    left_out: usize,
    /// Numbers that no float holds.
    far: Vec<FarNumber>,
}

impl<'a> Rows<'a> {
    fn new(path: &'a Path, how: &'a Reading<'a>, layout: Layout, choice: Choice<'a>) -> Self {
        let (values, exact, precision, ways, far) = Default::default();
        let (chosen, last_line) = (None, None);
        Self { path, how, layout, choice, chosen, ways, precision, values, exact, row: 0, last_line, left_out: 0, far }
    }

    /// Says of each column how it is packed, where it is.
    fn telling_packing(mut self) -> Self {
        for (&column, way) in self.chosen.iter().flatten().zip(&self.ways) {
            self.layout.assumed.extend(way.packing.note(&label(&self.layout, column)));
        }
        self
    }

    fn read(mut self, mut lines: Lines) -> Result<Self> {
        let (mut cells, mut line) = (Vec::new(), Vec::new());
        while let Some(number) = lines.next(&mut line)? {
            split(&line, self.layout.separator, &mut cells);
            if let Err(error) = self.add(&line, &cells, number) {
                // A quote that is never closed swallows the rest of the file, whose last line then is a strange one.
                return Err(lines.open_quote().unwrap_or(error));
            }
        }
        Ok(self)
    }

    /// Adds a row, unless a value of it is missing and such rows are to be left out.
    fn add(&mut self, line: &[u8], cells: &[Cell], number_of_line: u64) -> Result<()> {
        self.row += 1;
        let (row, dim) = (self.row, self.layout.columns.len());
        let is_behind_a_gap = self.last_line.replace(number_of_line).is_some_and(|last| last + 1 < number_of_line);
        if is_behind_a_gap && self.how.text.advice == Advice::Steps {
            let what = format!(
                "row {row} (line {number_of_line}) follows a blank line; each row is a step: write the number that is \
                 missing there, or take the line out if none is"
            );
            return Err(Error::format(self.path, what));
        }
        let shortened = self.layout.ends_in_separator() && cells.len() + 1 == dim;
        if cells.len() != dim && !shortened {
            let what = format!(
                "row {row} (line {number_of_line}) has {} where {dim} {} expected",
                counted(cells.len(), "cell"),
                are(dim)
            );
            return Err(Error::format(self.path, what));
        }
        if self.layout.ends_in_separator() && !shortened && !cells[dim - 1].is_empty(line) {
            let what =
                format!("row {row} (line {number_of_line}) has a cell behind the separator that ends the other rows");
            return Err(Error::format(self.path, what));
        }
        self.choose()?;
        self.exact.clear();
        let far = self.far.len();
        let (start, chosen) = (self.values.len(), self.chosen.iter().flatten());
        memory::reserve(&mut self.values, chosen.clone().count(), || {
            format!("rows up to {row} of {}", self.path.display())
        })?;
        for (i, &column) in chosen.enumerate() {
            let text = cells[column].text(line);
            if self.how.text.is_missing(&text) {
                self.values.truncate(start);
                self.far.truncate(far);
                self.left_out += 1;
                return Ok(());
            }
            let number = number(&text, self.layout.decimal, self.how.text.advice);
            let rounded = number.and_then(|number| Ok((number, self.ways[i].of(number, self.how.text.advice)?)));
            let (number, Narrowed { exact, value, is_far }) = rounded.map_err(|what| Error::Cell {
                path: self.path.into(),
                row,
                column: column + 1,
                name: self.layout.name(column),
                what,
            })?;
            if is_far {
                self.far.push(FarNumber { row: row - 1 - self.left_out, column: i, number });
            }
            self.exact.push(exact);
            self.values.push(value);
        }
        // Of rows that are left out nothing counts.
        for (i, (&exact, &value)) in self.exact.iter().zip(&self.values[start..]).enumerate() {
            self.precision.add(i, exact, value);
        }
        Ok(())
    }

    /// Which columns are read. All that hold values, if nothing is chosen.
    fn choose(&mut self) -> Result<()> {
        if self.chosen.is_some() {
            return Ok(());
        }
        let names = self.layout.names.as_deref().unwrap_or_default();
        let columns = &self.layout.columns;
        let all = || {
            let (out, others): (Vec<_>, Vec<_>) = (0..columns.len())
                .filter(|&c| columns[c] == Column::Values)
                .partition(|&c| self.how.without.is_some_and(|name| names.get(c).is_some_and(|known| known == name)));
            if others.is_empty() { out } else { others }
        };
        let chosen = (self.choice)(names, columns.len())?.unwrap_or_else(all);
        if let Some(column) = chosen.iter().find(|&&column| columns[column] == Column::Ending) {
            let what = format!("column {} has no values: it is behind the separator that ends the lines", column + 1);
            return Err(Error::format(self.path, what));
        }
        if let Some(column) = chosen.iter().find(|&&column| names.get(column).is_some_and(String::is_empty)) {
            let (column, without) = (column + 1, self.how.text.advice.without_column());
            let what = format!("column {column} has no name; give it one, or {without}");
            return Err(Error::format(self.path, what));
        }
        self.precision = Precision::new(chosen.len());
        let name = |i: usize| names.get(chosen[i]).map(String::as_str);
        let numbers: Vec<usize> = chosen.iter().map(|column| column + 1).collect();
        let Reading { packed, limits, far, .. } = *self.how;
        self.ways = Narrowing::of_columns(packed, limits, far, name, &numbers);
        self.chosen = Some(chosen);
        Ok(())
    }

    fn finish(self) -> Result<Table> {
        if self.values.is_empty() {
            let what = match (self.row, &self.layout.names) {
                (0, Some(_)) => "there is a line of names and no row of numbers",
                (0, None) => "there are no rows",
                _ => ALL_MISSING,
            };
            return Err(Error::format(self.path, what));
        }
        let chosen = self.chosen.unwrap_or_default();
        // What is packed as a model has it may be nothing beside the model's numbers.
        if let Packed::No = self.how.packed {
            self.precision.check(self.path, |i| label(&self.layout, chosen[i]))?;
        }
        let names = chosen.iter().map_while(|&column| self.layout.name(column)).collect();
        let numbers = chosen.iter().map(|column| column + 1).collect();
        let mut assumed = self.layout.assumed;
        assumed.extend(left_out_note(self.left_out, self.row));
        let table = Table::new(names, chosen.len(), self.values)?;
        let packing: Vec<_> = self.ways.iter().map(|way| way.packing).collect();
        let table = table.with_coarse(self.precision.coarse()).with_file_numbers(numbers);
        let table = table.with_lost(self.precision.vanished(&packing), self.far);
        Ok(table.with_packing(shortened(packing)).with_assumed(assumed, self.left_out))
    }
}

/// The numbers of the column of this name, unrounded, if there is one; for those that are reckoned with before they are
/// rounded.
#[cfg(feature = "cli")]
pub(crate) fn exact_column(path: &Path, name: &str, settings: &TextSettings) -> Result<Option<Vec<f64>>> {
    let (layout, mut lines) = begin(path, settings)?;
    let Some(column) = layout.names.iter().flatten().position(|known| known == name) else { return Ok(None) };
    let (mut cells, mut line, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    while lines.next(&mut line)?.is_some() {
        split(&line, layout.separator, &mut cells);
        let text = cells.get(column).map(|cell| cell.text(&line)).unwrap_or_default();
        numbers.push(number(&text, layout.decimal, settings.advice).map_err(|what| Error::Cell {
            path: path.into(),
            row: numbers.len() + 1,
            column: column + 1,
            name: layout.name(column),
            what,
        })?);
    }
    Ok(Some(numbers))
}

/// What to call a column, from 0, in a message.
fn label(layout: &Layout, column: usize) -> String {
    match layout.name(column) {
        Some(name) => format!("column {} (`{name}`)", column + 1),
        None => format!("column {}", column + 1),
    }
}

#[cfg(test)]
mod tests;

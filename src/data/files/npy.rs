//! NumPy's `.npy`: numbers of any common type and byte order in, little-endian `f32` out.

mod header;
mod write;

use std::io::{BufReader, Read};
use std::path::Path;

use super::Reading;
use super::narrowing::{Narrowed, Narrowing};
use super::precision::Precision;
use super::source::{ALL, Choice, narrow, open_regular};
use super::text::{ALL_MISSING, left_out_note};
use crate::data::lost::FarNumber;
use crate::data::packing::{Packed, Packing, shortened};
use crate::data::table::Table;
use crate::error::{Error, Result};
use crate::memory;
pub(in crate::data) use header::Item;
use header::{Header, read_header};
#[cfg(feature = "cli")]
pub(crate) use write::npy_to;
pub(crate) use write::write_npy;
pub(super) use write::{write_npy_of, write_npy_vector};

/// Bytes decoded at a time; a multiple of every item size.
const CHUNK: usize = 1 << 18;

/// Reads a one- or two-dimensional array. One dimension makes one column. Names are absent.
pub(crate) fn read_npy(path: &Path) -> Result<Table> {
    read_chosen(path, &Reading::default(), ALL)
}

/// As [`read_npy`], some columns of it. Of the text's settings only what stands for a missing value is of any use. A file
/// whose columns turn out to need packing is read twice.
pub(super) fn read_chosen(path: &Path, how: &Reading<'_>, choice: Choice<'_>) -> Result<Table> {
    if let Packed::AsNeeded = how.packed {
        let looked = Numbers::read(path, how, choice)?;
        let Some(packing) = looked.precision.needed() else { return looked.table(path) };
        drop(looked);
        let mut numbers = Numbers::read(path, &Reading { packed: Packed::As(&[], &packing), ..how.clone() }, choice)?;
        let note = |(packing, column): (&Packing, &usize)| packing.note(&format!("column {}", column + 1));
        numbers.assumed = numbers.packing.iter().zip(&numbers.chosen).filter_map(note).collect();
        return numbers.table(path);
    }
    Numbers::read(path, how, choice)?.table(path)
}

/// Some columns of an array, rounded.
struct Numbers {
    chosen: Vec<usize>,
    packing: Vec<Packing>,
    precision: Precision,
    /// Row by row; NaN if one is missing.
    values: Vec<f32>,
    /// Numbers that no float holds, by their rows in the file.
    far: Vec<FarNumber>,
    /// What is to be told of how they are packed.
    assumed: Vec<String>,
    /// Whether nothing is packed.
    is_plain: bool,
}

impl Numbers {
    fn read(path: &Path, how: &Reading<'_>, choice: Choice<'_>) -> Result<Self> {
        let (file, length) = open_regular(path)?;
        let mut input = BufReader::with_capacity(CHUNK, file);
        let header = read_header(&mut input, length, path)?;
        let chosen = choice(&[], header.dim)?.unwrap_or_else(|| (0..header.dim).collect());
        let numbers: Vec<usize> = chosen.iter().map(|column| column + 1).collect();
        let ways = Narrowing::of_columns(how.packed, how.limits, how.far, |_| None, &numbers);
        let packing = ways.iter().map(|way| way.packing).collect();
        let mut precision = Precision::new(chosen.len());
        let mut far = Vec::new();
        // Numbers of one or two bytes fit.
        let is_wide = header.item.size > 2;
        let values = read_as(&mut input, &header, &chosen, path, |[row, column], number| {
            if how.text.is_missing_number(number) {
                return Ok(f32::NAN);
            }
            let Narrowed { exact, value, is_far } = ways[column].of(number, how.text.advice)?;
            if is_far {
                far.push(FarNumber { row, column, number });
            }
            if is_wide {
                precision.add(column, exact, value);
            }
            Ok(value)
        })?;
        // Of an array in columns they come column by column.
        far.sort_by_key(|of| (of.row, of.column));
        let is_plain = matches!(how.packed, Packed::No);
        Ok(Self { chosen, packing, precision, values, far, assumed: Vec::new(), is_plain })
    }

    fn table(self, path: &Path) -> Result<Table> {
        let Self { chosen, packing, precision, mut values, far, mut assumed, is_plain } = self;
        let rows = values.len() / chosen.len().max(1);
        let far = far_rows_left(far, &values, chosen.len());
        let left_out = remove_missing(&mut values, chosen.len());
        if values.is_empty() {
            return Err(Error::format(path, ALL_MISSING));
        }
        assumed.extend(left_out_note(left_out, rows));
        let numbers = chosen.iter().map(|column| column + 1).collect();
        // What is packed as a model has it may be nothing beside the model's numbers.
        if is_plain {
            precision.check(path, |i| format!("column {}", chosen[i] + 1))?;
        }
        let table = Table::new(Vec::new(), chosen.len(), values)?.with_coarse(precision.coarse());
        let table = table.with_lost(precision.vanished(&packing), far);
        let table = table.with_file_numbers(numbers).with_packing(shortened(packing));
        Ok(table.with_assumed(assumed, left_out))
    }
}

/// The numbers that no float holds, by the rows that are left when those with a NaN are left out.
fn far_rows_left(far: Vec<FarNumber>, values: &[f32], dim: usize) -> Vec<FarNumber> {
    if far.is_empty() {
        return far;
    }
    let mut rows = values.chunks_exact(dim);
    let (mut next, mut left) = (0, 0);
    let mut place = |row: usize| {
        let before = rows.by_ref().take(row - next);
        left += before.filter(|row| !is_missing(row)).count();
        next = row;
        left
    };
    let is_left = |of: &FarNumber| !is_missing(&values[of.row * dim..][..dim]);
    far.into_iter().filter(is_left).map(|of| FarNumber { row: place(of.row), ..of }).collect()
}

fn is_missing(row: &[f32]) -> bool {
    row.iter().any(|v| v.is_nan())
}

/// Removes the rows that hold a NaN, which stands for a missing value; returns their number.
fn remove_missing(values: &mut Vec<f32>, dim: usize) -> usize {
    let left_out = values.chunks_exact(dim).filter(|row| is_missing(row)).count();
    if left_out > 0 {
        *values = values.chunks_exact(dim).filter(|row| !is_missing(row)).flatten().copied().collect();
    }
    left_out
}

/// An array that is in memory, of one or two dimensions: its values and the number of its columns. Errors are those of
/// a file of that name.
#[cfg(feature = "cli")]
pub(crate) fn read_npy_bytes(mut bytes: &[u8], name: &Path) -> Result<(Vec<f32>, usize)> {
    let length = bytes.len() as u64;
    let header = read_header(&mut bytes, length, name)?;
    let values = read_as(&mut bytes, &header, &(0..header.dim).collect::<Vec<_>>(), name, |_, exact| narrow(exact))?;
    Ok((values, header.dim))
}

/// All numbers of an array that is in memory, as those of [`read_npy_numbers`].
#[cfg(feature = "cli")]
pub(crate) fn npy_numbers(mut bytes: &[u8], name: &Path) -> Result<Vec<f64>> {
    let length = bytes.len() as u64;
    let header = read_header(&mut bytes, length, name)?;
    read_as(&mut bytes, &header, &(0..header.dim).collect::<Vec<_>>(), name, |_, exact| Ok(exact))
}

/// All numbers of an array of any shape, unrounded; they need not be finite.
#[cfg(feature = "cli")]
pub(crate) fn read_npy_numbers(path: &Path) -> Result<Vec<f64>> {
    let (file, length) = open_regular(path)?;
    let mut input = BufReader::with_capacity(CHUNK, file);
    let header = read_header(&mut input, length, path)?;
    read_as(&mut input, &header, &(0..header.dim).collect::<Vec<_>>(), path, |_, exact| Ok(exact))
}

/// Some columns of an array, row by row and unrounded, as their number and their values; `choice` is told the number of
/// all. For values that are computed with before they are rounded.
pub(in crate::data) fn read_unrounded(
    path: &Path,
    choice: impl Fn(usize) -> Result<Vec<usize>>,
) -> Result<(usize, Vec<f64>)> {
    let (file, length) = open_regular(path)?;
    let mut input = BufReader::with_capacity(CHUNK, file);
    let header = read_header(&mut input, length, path)?;
    let chosen = choice(header.dim)?;
    let values = read_as(&mut input, &header, &chosen, path, |_, exact| narrow(exact).map(|_| exact))?;
    Ok((chosen.len(), values))
}

/// What `convert` makes of each value and its row and place in the row of the chosen columns, from 0.
fn read_as<T: Copy + Default>(
    input: &mut impl Read,
    header: &Header,
    chosen: &[usize],
    path: &Path,
    mut convert: impl FnMut([usize; 2], f64) -> Result<T, String>,
) -> Result<Vec<T>> {
    let &Header { item, fortran, rows, dim } = header;
    let count = rows * dim;
    let kept = chosen.len();
    // Where a column goes.
    let mut places = vec![None; dim];
    chosen.iter().enumerate().for_each(|(place, &column)| places[column] = Some(place));
    let mut values: Vec<T> = memory::reserved(rows * kept, || format!("{rows} x {kept} values of {}", path.display()))?;
    values.resize(rows * kept, T::default());
    let decode = item.decoder();
    let mut buffer = vec![0; CHUNK.min(count * item.size)];
    let mut index = 0;
    while index < count {
        let bytes = (buffer.len()).min((count - index) * item.size);
        input.read_exact(&mut buffer[..bytes]).map_err(|e| Error::io("read", path, e))?;
        for raw in buffer[..bytes].chunks_exact(item.size) {
            let (row, column) = if fortran { (index % rows, index / rows) } else { (index / dim, index % dim) };
            index += 1;
            let Some(place) = places[column] else { continue };
            values[row * kept + place] = convert([row, place], decode(raw)).map_err(|what| Error::Cell {
                path: path.into(),
                row: row + 1,
                column: column + 1,
                name: None,
                what,
            })?;
        }
    }
    Ok(values)
}

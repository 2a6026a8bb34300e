//! A table of finite numbers: what every data file becomes.

use sha2::{Digest, Sha256};

use super::lost::{FarNumber, Vanished};
use super::packing::{Packing, brief, shortened};
use crate::counted::{counted, times};
use crate::error::{Error, Result};

/// Rows of finite numbers with optional names of the columns. There is at least one row and one column.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// Number of rows.
    pub(crate) rows: usize,
    /// Names of the columns; empty if the file had none.
    pub(crate) columns: Vec<String>,
    dim: usize,
    values: Vec<f32>, // (rows, dim)
    coarse: Vec<usize>,
    /// How each column is packed; empty if none is.
    packing: Vec<Packing>,
    /// Numbers of the columns in the file they come from, from 1.
    file_numbers: Vec<usize>,
    /// What was assumed of its file and might be otherwise.
    assumed: Vec<String>,
    /// Rows of the file that were left out.
    left_out: usize,
    /// Columns of which some numbers became zero, as they are nothing beside the others.
    vanished: Vec<Vanished>,
    /// Numbers that no 32-bit float holds, in order; the nearest float is in their place.
    far: Vec<FarNumber>,
}

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
            packing: Vec::new(),
            file_numbers: (1..=dim).collect(),
            assumed: Vec::new(),
            left_out: 0,
            vanished: Vec::new(),
            far: Vec::new(),
        })
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Names of the columns; empty if the file had none.
    pub fn columns(&self) -> &[String] {
        &self.columns
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

    /// The table without some columns, from 0; at least one must be left.
    pub(crate) fn without(&self, columns: &[usize]) -> Result<Self> {
        self.take(&(0..self.dim).filter(|i| !columns.contains(i)).collect::<Vec<_>>())
    }

    /// The table of some columns, from 0, in the given order.
    pub(crate) fn take(&self, chosen: &[usize]) -> Result<Self> {
        let columns = if self.columns.is_empty() {
            Vec::new()
        } else {
            chosen.iter().map(|&i| self.columns[i].clone()).collect()
        };
        let values = self.iter_rows().flat_map(|row| chosen.iter().map(|&i| row[i])).collect();
        let coarse = (0..chosen.len()).filter(|&i| self.coarse.contains(&chosen[i])).collect();
        let file_numbers = chosen.iter().map(|&i| self.file_numbers[i]).collect();
        let packing = shortened(chosen.iter().map(|&i| self.packing(i)).collect());
        let (assumed, left_out) = (self.assumed.clone(), self.left_out);
        let place = |column: usize| chosen.iter().position(|&i| i == column);
        let of_vanished = |of: &Vanished| Some(Vanished { column: place(of.column)?, ..*of });
        let of_far = |of: &FarNumber| Some(FarNumber { column: place(of.column)?, ..*of });
        let vanished = self.vanished.iter().filter_map(of_vanished).collect();
        let far = self.far.iter().filter_map(of_far).collect();
        let table = Self::new(columns, chosen.len(), values)?;
        Ok(Self { coarse, packing, file_numbers, assumed, left_out, vanished, far, ..table })
    }

    /// The rows of this table with those of another to their right; with names where both have them.
    pub(crate) fn beside(&self, right: &Self) -> Result<Self> {
        let named = !self.columns.is_empty() && !right.columns.is_empty();
        let columns = if named { [&self.columns[..], &right.columns].concat() } else { Vec::new() };
        let values = side_by_side(&self.values, &right.values, self.rows);
        let coarse = self.coarse.iter().copied().chain(right.coarse.iter().map(|i| i + self.dim)).collect();
        let file_numbers = [&self.file_numbers[..], &right.file_numbers].concat();
        let of_left = (0..self.dim).map(|i| self.packing(i));
        let packing = shortened(of_left.chain((0..right.dim).map(|i| right.packing(i))).collect());
        let mut assumed = self.assumed.clone();
        assumed.extend(right.assumed.iter().filter(|text| !self.assumed.contains(text)).cloned());
        let left_out = self.left_out.max(right.left_out);
        let of_right = right.vanished.iter().map(|of| Vanished { column: of.column + self.dim, ..*of });
        let vanished = self.vanished.iter().copied().chain(of_right).collect();
        let of_right = right.far.iter().map(|of| FarNumber { column: of.column + self.dim, ..*of });
        let mut far: Vec<FarNumber> = self.far.iter().copied().chain(of_right).collect();
        far.sort_by_key(|of| (of.row, of.column));
        let table = Self::new(columns, self.dim + right.dim, values)?;
        Ok(Self { coarse, packing, file_numbers, assumed, left_out, vanished, far, ..table })
    }

    /// The table with the columns (from 0) whose numbers 32-bit floats cannot tell apart.
    pub(super) fn with_coarse(self, coarse: Vec<usize>) -> Self {
        Self { coarse, ..self }
    }

    /// The table whose columns are packed like this; empty if none is.
    pub(super) fn with_packing(self, packing: Vec<Packing>) -> Self {
        Self { packing, ..self }
    }

    /// The table with what became of numbers that 32-bit floats do not hold.
    pub(super) fn with_lost(self, vanished: Vec<Vanished>, far: Vec<FarNumber>) -> Self {
        Self { vanished, far, ..self }
    }

    /// The numbers, in order, in whose place there is the nearest 32-bit float, as none holds them.
    pub(crate) fn far(&self) -> &[FarNumber] {
        &self.far
    }

    /// The columns of which some numbers became zero, as they are nothing beside the others.
    pub(crate) fn vanished(&self) -> &[Vanished] {
        &self.vanished
    }

    /// The columns of these that are packed, so that what vanishes might as well be a usual number; and what to tell of them.
    pub(crate) fn vanished_note(&self) -> Option<(Vec<usize>, String)> {
        let of_packed = || self.vanished.iter().filter(|of| !self.packing(of.column).is_none());
        let described = |of: &Vanished| {
            let Vanished { column, count, number, times: often, row } = *of;
            let more = match count - often {
                0 => String::new(),
                1 => ", and another number".into(),
                more => format!(", and {more} other numbers"),
            };
            let (label, number) = (self.column_label(column), brief(number));
            format!("{label} ({number} {}, first in row {}{more})", times(often), row + 1)
        };
        let all: Vec<String> = of_packed().map(described).collect();
        (!all.is_empty()).then(|| {
            let what = format!(
                "numbers that are nothing beside the others of their column are taken for 0: {}; if they stand for missing \
                 values, name them in data.missing; of a column over so many orders of magnitude, take the logarithm",
                all.join(", ")
            );
            (of_packed().map(|of| of.column).collect(), what)
        })
    }

    /// How column `i`, from 0, is packed.
    pub(crate) fn packing(&self, i: usize) -> Packing {
        self.packing.get(i).copied().unwrap_or_default()
    }

    /// The table with the numbers that its columns have in their file.
    pub(super) fn with_file_numbers(self, file_numbers: Vec<usize>) -> Self {
        Self { file_numbers, ..self }
    }

    /// The table with what was assumed of its file, and how many rows of that were left out.
    pub(super) fn with_assumed(self, assumed: Vec<String>, left_out: usize) -> Self {
        Self { assumed, left_out, ..self }
    }

    /// What was assumed of the layout of the file and might be otherwise, in sentences.
    pub(crate) fn assumed(&self) -> &[String] {
        &self.assumed
    }

    /// How many rows of the file were left out, since a value is missing.
    pub(crate) fn left_out(&self) -> usize {
        self.left_out
    }

    /// The number, from 1, that each column has in the file it was read from.
    pub(crate) fn file_numbers(&self) -> &[usize] {
        &self.file_numbers
    }

    /// The columns (from 0) of the file whose numbers are so close together, for their size, that rounding them to
    /// 32-bit floats changed them much.
    pub(crate) fn coarse(&self) -> &[usize] {
        &self.coarse
    }

    /// What to tell where [`Table::coarse`] names a column.
    pub(crate) fn coarse_note(&self) -> Option<String> {
        let names: Vec<_> = self.coarse.iter().map(|&i| self.column_label(i)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "numbers closer together than 32-bit floats can tell apart: {}; take values far from all others (codes for \
                 missing ones?) out of the column, or subtract an offset from it first, so that what differs is not rounded \
                 away",
                names.join(", ")
            )
        })
    }

    /// SHA-256 of shape and values in hexadecimal: equal for the same numbers in different files, whatever the names.
    #[cfg(test)]
    pub(crate) fn fingerprint(&self) -> String {
        fingerprint(self.dim, &self.values)
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

/// Whether `values` has the size of `rows` x `columns`.
pub(super) fn check_shape(rows: usize, columns: usize, values: &[f32]) -> Result<()> {
    match rows.checked_mul(columns) {
        Some(count) if count == values.len() => Ok(()),
        count => Err(Error::Shape {
            what: format!("values of {} and {}", counted(rows, "row"), counted(columns, "column")),
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
}

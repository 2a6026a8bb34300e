//! Arrays of float32, or float64 if columns are packed, to files.

use std::io::Write;
use std::path::Path;

use super::CHUNK;
use super::header::MAGIC;
use crate::atomic::{Overwrite, write_atomic};
use crate::data::files::Columns;
use crate::data::packing::unpacked;
use crate::data::table::check_shape;
use crate::error::Result;

/// What the length of the magic bytes and the header is a multiple of.
const ALIGNMENT: usize = 64;

/// Writes `rows` x `columns` values as little-endian float32 in row order (version 1.0 of the format).
pub(crate) fn write_npy(path: &Path, rows: usize, columns: usize, values: &[f32], overwrite: Overwrite) -> Result<()> {
    check_shape(rows, columns, values)?;
    write(path, &format!("({rows}, {columns})"), values, overwrite)
}

/// Writes values as a one-dimensional array.
pub(in crate::data::files) fn write_npy_vector(path: &Path, values: &[f32], overwrite: Overwrite) -> Result<()> {
    write(path, &format!("({},)", values.len()), values, overwrite)
}

/// Writes values of columns, the last dimension, as an array of this shape: the numbers of packed ones with 64 bits.
pub(in crate::data::files) fn write_npy_of(
    path: &Path,
    columns: &Columns,
    shape: &[usize],
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    let (&dim, outer) = shape.split_last().unwrap_or((&0, &[]));
    check_shape(outer.iter().product(), dim, values)?;
    let sizes = shape.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    let shape = format!("({sizes})");
    if !columns.are_packed() {
        return write(path, &shape, values, overwrite);
    }
    write_atomic(path, overwrite, |out| {
        header_to(out, "<f8", &shape)?;
        bytes_to(out, unpacked(values, &columns.packing).map(f64::to_le_bytes))
    })
}

/// Writes an array to anything that takes bytes; it may have no columns.
#[cfg(feature = "cli")]
pub(crate) fn npy_to(out: &mut dyn Write, rows: usize, columns: usize, values: &[f32]) -> std::io::Result<()> {
    write_to(out, &format!("({rows}, {columns})"), values)
}

fn write(path: &Path, shape: &str, values: &[f32], overwrite: Overwrite) -> Result<()> {
    write_atomic(path, overwrite, |out| write_to(out, shape, values))
}

fn write_to(out: &mut dyn Write, shape: &str, values: &[f32]) -> std::io::Result<()> {
    header_to(out, "<f4", shape)?;
    bytes_to(out, values.iter().map(|v| v.to_le_bytes()))
}

fn header_to(out: &mut dyn Write, item: &str, shape: &str) -> std::io::Result<()> {
    let mut header = format!("{{'descr': '{item}', 'fortran_order': False, 'shape': {shape}, }}");
    let prefix = MAGIC.len() + 4;
    let end = (prefix + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(end - prefix - header.len() - 1));
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

fn bytes_to<const N: usize>(out: &mut dyn Write, items: impl Iterator<Item = [u8; N]>) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(CHUNK);
    for item in items {
        bytes.extend(item);
        if bytes.len() == CHUNK {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

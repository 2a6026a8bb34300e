//! Arrays of float32 to files.

use std::io::Write;
use std::path::Path;

use super::{CHUNK, MAGIC};
use crate::atomic::{Overwrite, write_atomic};
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

/// Writes values as a three-dimensional array.
pub(in crate::data::files) fn write_npy_groups(
    path: &Path,
    shape: [usize; 3],
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    let [groups, rows, columns] = shape;
    write(path, &format!("({groups}, {rows}, {columns})"), values, overwrite)
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
    let mut header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let prefix = MAGIC.len() + 4;
    let end = (prefix + header.len() + 1).next_multiple_of(ALIGNMENT);
    header.push_str(&" ".repeat(end - prefix - header.len() - 1));
    header.push('\n');
    out.write_all(MAGIC)?;
    out.write_all(&[1, 0])?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())?;
    let mut bytes = Vec::with_capacity(CHUNK);
    for chunk in values.chunks(CHUNK / 4) {
        bytes.clear();
        bytes.extend(chunk.iter().flat_map(|v| v.to_le_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

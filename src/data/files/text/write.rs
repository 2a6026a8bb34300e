//! Text tables as they are written: with commas, and a line of names where there are names.

use std::path::Path;

use crate::atomic::{Overwrite, write_atomic};
use crate::data::files::Columns;
use crate::data::table::check_shape;
use crate::error::{Error, Result};

/// Writes a text table with commas. Numbers have as many digits as it takes to read the same `f32` back, and those of
/// packed columns the same `f64`.
pub(crate) fn write_csv(
    path: &Path,
    columns: &Columns,
    rows: usize,
    dim: usize,
    values: &[f32],
    overwrite: Overwrite,
) -> Result<()> {
    check_shape(rows, dim, values)?;
    if !columns.names.is_empty() && columns.names.len() != dim {
        return Err(Error::Shape { what: "names of columns".into(), expected: dim, got: columns.names.len() });
    }
    write_atomic(path, overwrite, |out| csv_to(out, columns, dim, values))
}

/// Writes a text table with commas to any writer, as [`write_csv`] writes it to a file. A whole number has no point.
///
/// # Errors
/// Those of the writer.
pub(crate) fn csv_to(out: impl std::io::Write, columns: &Columns, dim: usize, values: &[f32]) -> std::io::Result<()> {
    use std::fmt::Write;
    let mut writer = ::csv::Writer::from_writer(out);
    if !columns.names.is_empty() {
        writer.write_record(&columns.names).map_err(of_writer)?;
    }
    let mut text = String::new();
    for row in values.chunks_exact(dim.max(1)) {
        for (column, value) in row.iter().enumerate() {
            text.clear();
            match columns.packing.get(column).filter(|packing| !packing.is_none()) {
                Some(packing) => write!(text, "{:?}", packing.unpack(*value)),
                None => write!(text, "{value:?}"),
            }
            .map_err(std::io::Error::other)?;
            writer.write_field(text.strip_suffix(".0").unwrap_or(&text)).map_err(of_writer)?;
        }
        writer.write_record(None::<&[u8]>).map_err(of_writer)?;
    }
    writer.flush()
}

/// The writer's own error, if there is one: its kind says whether a pipe is broken.
fn of_writer(error: ::csv::Error) -> std::io::Error {
    match error.into_kind() {
        ::csv::ErrorKind::Io(error) => error,
        other => std::io::Error::other(format!("{other:?}")),
    }
}

//! What readers of every format share: opening a file, choosing columns, numbers as `f32`.

use std::fs::{self, File};
use std::io;
use std::path::Path;

use crate::error::{Error, Result};

/// Says which columns of a file are read, in which order, from their names (none if the file has none) and their
/// number; all of them where it says `None`. Cells of the others may hold anything.
pub(super) type Choice<'a> = &'a dyn Fn(&[String], usize) -> Result<Option<Vec<usize>>>;

/// All columns.
pub(super) const ALL: Choice<'static> = &|_, _| Ok(None);

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
pub(in crate::data) fn narrow(value: f64) -> Result<f32, String> {
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

#[cfg(test)]
mod tests {
    use super::*;

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

//! Results on stdout: numbers and tables, without a panic where the reader is gone.

use std::io::{self, BufWriter, Write};

/// A buffered stdout. Call [`finish`] on it.
pub(super) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes what is left, so that a failure is seen.
pub(super) fn finish(mut out: impl Write) -> io::Result<()> {
    out.flush()
}

/// Prints one line.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{text}")?;
    finish(out)
}

/// Prints rows as CSV, with a header where the columns have names.
pub(super) fn csv(names: &[String], dim: usize, values: &[f32]) -> anyhow::Result<()> {
    let mut writer = ::csv::Writer::from_writer(stdout());
    if !names.is_empty() {
        writer.write_record(names)?;
    }
    for row in values.chunks_exact(dim) {
        writer.write_record(row.iter().map(|v| v.to_string()))?;
    }
    Ok(writer.flush()?)
}

/// Whether an error says that nobody reads stdout any more.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    // An error of the library is about a file the user named, never about stdout.
    let broken = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if let Some(e) = error.downcast_ref::<io::Error>() {
        return broken(e);
    }
    match error.downcast_ref::<::csv::Error>().map(::csv::Error::kind) {
        Some(::csv::ErrorKind::Io(e)) => broken(e),
        _ => false,
    }
}

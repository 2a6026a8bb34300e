//! Results on stdout: numbers and tables, without a panic where the reader is gone.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use crate::data::files::Columns;
use crate::data::files::text::csv_to;
use crate::printable::printable;
use crate::{Error, Flow, Result};

/// A buffered stdout. Call [`finish`] on it.
pub(super) fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::new(io::stdout().lock())
}

/// Writes what is left, so that a failure is seen.
pub(super) fn finish(mut out: impl Write) -> io::Result<()> {
    out.flush()
}

/// Prints one line, or several.
pub(super) fn line(text: &str) -> io::Result<()> {
    let mut out = stdout();
    writeln!(out, "{}", printable(text))?;
    finish(out)
}

/// Fails if a file that is to be written is also read, or written twice, however its name is spelled. Each file
/// comes with the option that names it.
pub(super) fn distinct(outputs: &[(&str, &Path)], inputs: &[&Path]) -> Result<()> {
    for (i, &(option, output)) in outputs.iter().enumerate() {
        if let Some(&(other, _)) = outputs[..i].iter().find(|(_, other)| same_file(other, output)) {
            return Err(Error::config(option, format!("is the same file as {other}; choose another name")));
        }
        if let Some(input) = inputs.iter().find(|input| same_file(input, output)) {
            let what =
                format!("{} is read by this command and would be replaced; choose another name", input.display());
            return Err(Error::config(option, what));
        }
    }
    Ok(())
}

/// Whether two names mean one file, which need not exist yet.
fn same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        path.canonicalize().ok().or_else(|| {
            let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
            Some(folder.canonicalize().ok()?.join(path.file_name()?))
        })
    };
    a == b || place(a).is_some_and(|a| place(b) == Some(a))
}

/// Warns where results hold NaN or infinity: how many rows of `dim` values do, and which is the first.
pub(super) fn warn_not_finite(what: &str, dim: usize, values: &[f32]) {
    let mut rows = values.chunks_exact(dim).enumerate().filter(|(_, row)| row.iter().any(|v| !v.is_finite()));
    let Some((first, row)) = rows.next() else { return };
    let (more, value) = (rows.count(), row.iter().find(|v| !v.is_finite()).unwrap_or(&f32::NAN));
    tracing::warn!(
        "{} of {} {what} are not finite; the first is that of row {} ({value})",
        more + 1,
        values.len() / dim,
        first + 1
    );
}

/// The columns of a model, to be written.
pub(super) fn columns(flow: &Flow) -> Columns {
    Columns { names: flow.columns().to_vec(), packing: flow.units().packing.clone() }
}

/// The conditions of a model and its columns, with names where both have names.
pub(super) fn joint_columns(flow: &Flow) -> Columns {
    let (y, x) = (flow.conditions(), flow.columns());
    let names = if y.is_empty() || x.is_empty() { Vec::new() } else { [y, x].concat() };
    let spec = flow.spec();
    let of_y = (0..spec.cond_dim as usize).map(|c| flow.units_of_conditions().packing(c));
    let packing = of_y.chain((0..spec.dim as usize).map(|c| flow.units().packing(c))).collect();
    Columns { names, packing }
}

/// Prints rows as CSV, with a header where the columns have names.
pub(super) fn csv(columns: &Columns, dim: usize, values: &[f32]) -> anyhow::Result<()> {
    let names = columns.names.iter().map(|name| printable(name).into_owned()).collect();
    Ok(csv_to(stdout(), &Columns { names, ..columns.clone() }, dim, values)?)
}

/// Whether an error is about stdout: one of the library is about a file that the user named, any other is not.
pub(super) fn is_of_stdout(error: &anyhow::Error) -> bool {
    error.is::<io::Error>()
}

/// Whether an error says that nobody reads stdout any more.
pub(super) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    // An error of the library is about a file the user named, never about stdout.
    error.downcast_ref::<io::Error>().is_some_and(|e| e.kind() == io::ErrorKind::BrokenPipe)
}

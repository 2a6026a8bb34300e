//! Models and tables as commands take them: RUN, and files whose columns are those of the model.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use crate::config::{Columns, Given};
use crate::counted::{are, counted};
use crate::data::files::{Far, Limits, Reading};
use crate::data::packing::Packed;
use crate::data::{Table, Units};
use crate::plan::Kind;
use crate::train::folder::{is_table, read_model};
use crate::{Error, Flow, Result};
use clap::Args;

use super::device::DeviceArgs;
use super::layout::LayoutArgs;
use super::ranks;

/// Loads the model of a run folder, a model file or a checkpoint onto the chosen device.
pub(super) fn load(run: &Path, device: &DeviceArgs) -> Result<Flow> {
    if is_table(run) {
        let what = "is a table, and no model: the first argument is the model (a run folder, a model file or a checkpoint), and \
                    tables come after it";
        return Err(Error::format(run, what));
    }
    // The file first: its errors are the user's more often than those of a device.
    let file = ranks::together(read_model(run))?;
    let engine = device.open()?;
    tracing::debug!("device: {}", engine.info().name);
    Flow::from_file(file, &engine)
}

/// A table whose rows a model takes, and their conditions.
#[derive(Args)]
pub(super) struct Data {
    /// Table: .csv, .npy or text (.txt, .tsv, .dat)
    #[arg(value_name = "DATA")]
    pub(super) path: PathBuf,
    #[command(flatten)]
    pub(super) parts: Parts,
}

/// Which columns of a table are the model's.
#[derive(Args, Clone)]
pub(super) struct Parts {
    /// Columns of the table that are the model's, by name or number, in the model's order where they have other names
    /// [default: by name, else all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// Conditions of a conditional model: a table with one row or as many as DATA, or columns of DATA by name or
    /// number, in the model's order where they have other names [default: columns of DATA, by name]
    #[arg(long, value_name = "FILE|LIST")]
    given: Option<String>,
    #[command(flatten)]
    pub(super) layout: LayoutArgs,
}

impl Parts {
    /// Whether anything is said of the columns of a table.
    pub(super) fn is_said(&self) -> bool {
        self.columns.is_some() || self.given.is_some()
    }
}

/// Tables in the order of a model's columns.
pub(super) struct Tables {
    /// Of x.
    pub(super) x: Table,
    /// Of the conditions, with one row or as many as that of x; none for an unconditional model.
    pub(super) y: Option<Table>,
}

/// Their values.
pub(super) struct Rows {
    /// Of x.
    pub(super) x: Vec<f32>,
    /// Of the conditions: one, or as many as of x; empty for an unconditional model.
    pub(super) y: Vec<f32>,
}

/// One row of `columns` conditions for each of `rows` rows, from as many or from a single one.
pub(super) fn one_each(y: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    if y.len() == columns { y.repeat(rows) } else { y.to_vec() }
}

impl Data {
    /// The files that are read.
    pub(super) fn inputs(&self) -> Vec<&Path> {
        let given = self.parts.given.as_deref().map(Path::new).filter(|path| is_file(path));
        std::iter::once(self.path.as_path()).chain(given).collect()
    }

    /// The rows in the model's columns, inside of the bounds that it knows.
    pub(super) fn rows_for(&self, flow: &Flow) -> Result<Rows> {
        let Tables { x, y } = self.tables_for(flow, Far::Fails)?;
        self.inside(flow, &x)?;
        self.possible(flow, y.as_ref())?;
        Ok(Rows { x: x.into_values(), y: y.map(Table::into_values).unwrap_or_default() })
    }

    /// Fails if conditions are outside of the bounds that the model knows, or are numbers that no float holds.
    pub(super) fn possible(&self, flow: &Flow, y: Option<&Table>) -> Result<()> {
        let Some(y) = y else { return Ok(()) };
        self.possible_numbers(y)?;
        inside(flow.units_of_conditions(), y, self.path_of_y())
    }

    /// Fails if conditions are numbers that no float holds.
    pub(super) fn possible_numbers(&self, y: &Table) -> Result<()> {
        y.far().first().map_or(Ok(()), |far| Err(y.far_error(far, self.path_of_y())))
    }

    /// Fails if a value of x is outside of the bounds that the model knows.
    pub(super) fn inside(&self, flow: &Flow, x: &Table) -> Result<()> {
        inside(flow.units(), x, &self.path)
    }

    /// The file that holds the conditions.
    pub(super) fn path_of_y(&self) -> &Path {
        self.inputs().last().copied().unwrap_or(&self.path)
    }

    /// Tables of the model's columns: as chosen, else by name where both have names, else by position. Their values may
    /// be outside of the bounds that the model knows, and `far` says what is made of numbers that no float holds.
    pub(super) fn tables_for(&self, flow: &Flow, far: Far) -> Result<Tables> {
        let (path, names) = (&self.path, flow.columns());
        let spec = flow.spec();
        let (dim, cond_dim) = (spec.dim as usize, spec.cond_dim as usize);
        let (of_x, of_y) = (flow.units(), flow.units_of_conditions());
        let reading = as_model(of_x, &self.parts.layout, far);
        let reading_y = as_model(of_y, &self.parts.layout, far);
        let of_given = match &self.parts.given {
            Some(given) if spec.kind == Kind::Flow => return Err(no_conditions(given)),
            Some(given) if !is_file(Path::new(given)) => Some(Columns::of_text(given).0),
            _ => None,
        };
        let x = match (&self.parts.columns, &of_given) {
            (Some(columns), _) if columns.len() != dim => {
                let named = columns.len();
                let what = format!("the model has {}, {named} {} named", counted(dim, "column"), are(named));
                return Err(Error::config(COLUMNS, what));
            }
            (Some(columns), _) => chosen(path, columns, COLUMNS, names, &reading)?,
            // A table as it was trained on: what is not condition is modelled.
            (None, Some(given)) if names.is_empty() => {
                let both = Units::join([of_y, of_x], [cond_dim, dim]);
                let both = Units { columns: Vec::new(), ..both };
                let reading = as_model(&both, &self.parts.layout, far);
                Table::read_parts(path, given, None, &reading).map_err(|e| renamed(e, GIVEN))?.modelled
            }
            (None, _) => {
                let (table, in_file) = Table::read_named(path, names, &reading)?;
                let table = in_columns_of(of_x, dim, "columns", table, path)?;
                let also: Vec<_> = of_given.iter().flatten().chain(flow.conditions()).cloned().collect();
                tell_of_names(names, &in_file, &also, path);
                table
            }
        };
        if x.dim() != dim {
            let (columns, left) = (counted(dim, "column"), x.dim());
            let what = format!("the model was trained with {columns}; {left} {} left of the file", are(left));
            return Err(Error::format(path, what));
        }
        note(&x, path);
        let y = match (&self.parts.given, of_given) {
            _ if spec.kind == Kind::Flow => return Ok(Tables { x, y: None }),
            (_, Some(columns)) if columns.len() != cond_dim => {
                let what = format!("{} {} named", columns.len(), are(columns.len()));
                return Err(Error::config(GIVEN, format!("the model was trained with {}; {what}", conditions(flow))));
            }
            (_, Some(columns)) => chosen(path, &columns, GIVEN, flow.conditions(), &reading_y)?,
            (Some(file), None) => table_of_conditions(flow, Path::new(file), &self.parts.layout, far)?,
            (None, None) => {
                let (table, in_file) = Table::read_named(path, flow.conditions(), &reading_y)?;
                if flow.conditions().is_empty() || !flow.conditions().iter().all(|name| in_file.contains(name)) {
                    return Err(needs_conditions(flow));
                }
                table
            }
        };
        if y.rows != 1 && y.rows != x.rows {
            let (of_y, of_x) = (counted(y.rows, "row"), counted(x.rows, "row"));
            let what = format!("{of_y} of conditions for {of_x} of {}", path.display());
            return Err(Error::config(GIVEN, format!("{what}; give one row, or as many")));
        }
        Ok(Tables { x, y: Some(y) })
    }
}

impl Data {
    /// DATA as conditions alone, which may be outside of the bounds that the model knows; `far` as of
    /// [`Data::tables_for`].
    pub(super) fn conditions_for(&self, flow: &Flow, far: Far) -> Result<Table> {
        match (&self.parts.given, &self.parts.columns) {
            (Some(_), _) => Err(Error::config(GIVEN, "is not needed: DATA holds the conditions here; leave it out")),
            (None, Some(_)) => {
                Err(Error::config(COLUMNS, "is for columns of x; DATA holds conditions here; leave it out"))
            }
            (None, None) => table_of_conditions(flow, &self.path, &self.parts.layout, far),
        }
    }
}

const COLUMNS: &str = "--columns";
pub(super) const GIVEN: &str = "--given";

/// Observations y for a conditional model, from a file of their own, inside of the bounds that the model knows.
pub(super) fn observations(flow: &Flow, path: &Path, layout: &LayoutArgs) -> Result<Table> {
    let table = table_of_conditions(flow, path, layout, Far::Fails)?;
    inside(flow.units_of_conditions(), &table, path)?;
    Ok(table)
}

/// Columns are packed as a model has them, and are not rounded onto bounds that it knows.
fn as_model<'a>(units: &'a Units, layout: &LayoutArgs, far: Far) -> Reading<'a> {
    let limits = Limits::As(&units.columns, &units.bounds);
    Reading { limits, far, ..layout.reading_as(Packed::As(&units.columns, &units.packing)) }
}

fn table_of_conditions(flow: &Flow, path: &Path, layout: &LayoutArgs, far: Far) -> Result<Table> {
    if flow.spec().kind == Kind::Flow {
        return Err(no_conditions(&path.display().to_string()));
    }
    let names = flow.conditions();
    let units = flow.units_of_conditions();
    let reading = as_model(units, layout, far);
    let (table, in_file) = Table::read_named(path, names, &reading)?;
    let table = in_columns_of(units, flow.spec().cond_dim as usize, "conditions", table, path)?;
    tell_of_names(names, &in_file, flow.columns(), path);
    note(&table, path);
    Ok(table)
}

/// That conditions are missing.
pub(super) fn needs_conditions(flow: &Flow) -> Error {
    let what = format!("is missing: the model is a `{}` with {}", flow.spec().kind.name(), conditions(flow));
    Error::config(GIVEN, what)
}

fn no_conditions(given: &str) -> Error {
    Error::config(GIVEN, format!("is {given}, but the model is an unconditional `flow`; leave it out"))
}

/// "3 conditions (a, b, c)".
fn conditions(flow: &Flow) -> String {
    let (c, names) = (flow.spec().cond_dim, flow.conditions());
    let conditions = counted(c, "condition");
    if names.is_empty() { conditions } else { format!("{conditions} ({})", names.join(", ")) }
}

fn is_file(path: &Path) -> bool {
    matches!(Given::of_text(&path.to_string_lossy()), Given::File(_))
}

/// Some columns of a file, as `option` names them, for those of the model in this order; where they have the model's
/// `names`, in another order, for those of the same name.
fn chosen(path: &Path, columns: &[String], option: &str, names: &[String], how: &Reading<'_>) -> Result<Table> {
    let wanted: Vec<_> = columns.iter().map(|name| name.trim()).collect();
    let table = Table::read_columns_with(path, &wanted, how).map_err(|e| renamed(e, option))?;
    let same = !names.is_empty()
        && table.columns.len() == names.len()
        && names.iter().all(|name| table.columns.contains(name));
    if same { table.select(names) } else { Ok(table) }
}

fn renamed(error: Error, option: &str) -> Error {
    match error {
        Error::Config { what, .. } => Error::config(option, what),
        other => other,
    }
}

/// Tells what is to be known of how a file was read.
pub(super) fn note(table: &Table, path: &Path) {
    table.assumed().iter().for_each(|assumed| tracing::info!("{}: {assumed}", path.display()));
    for note in table.coarse_note().into_iter().chain(table.vanished_note().map(|(_, note)| note)) {
        tracing::warn!("{}: {note}", path.display());
    }
}

/// The rows, from 0 and in order, of some tables of the same rows that have a number which no float holds; and what is to be
/// said of the first.
pub(super) fn far_rows(tables: [Option<(&Table, &Path)>; 2]) -> (Vec<usize>, Option<Error>) {
    let tables = || tables.iter().flatten();
    let rows: BTreeSet<usize> = tables().flat_map(|(table, _)| table.far().iter().map(|far| far.row)).collect();
    let first = tables().find_map(|(table, path)| Some(table.far_error(table.far().first()?, path)));
    (rows.into_iter().collect(), first)
}

/// Whether all values are inside the bounds that the model knows.
pub(super) fn inside(units: &Units, table: &Table, path: &Path) -> Result<()> {
    units.outside(table.values()).map_or(Ok(()), |outside| Err(outside.in_file(path, table.file_numbers())))
}

/// Observations that a posterior of the model predicts: they may lie beyond its bounds.
pub(super) fn predictions(flow: &Flow, path: &Path, layout: &LayoutArgs) -> Result<Table> {
    table_of_conditions(flow, path, layout, Far::default())
}

/// Samples that are compared with those of a model.
pub(super) fn samples(flow: &Flow, path: &Path, layout: &LayoutArgs) -> Result<Table> {
    let names = flow.columns();
    let (table, _) = Table::read_named(path, names, &as_model(flow.units(), layout, Far::Fails))?;
    in_columns_of(flow.units(), flow.spec().dim as usize, "columns", table, path)
}

/// The rows of a file of latent vectors of so many columns: columns by position.
pub(super) fn latent_rows(path: &Path, expected: usize, layout: &LayoutArgs) -> Result<Table> {
    let table = Table::read_with(path, &layout.reading())?;
    if table.dim() != expected {
        return Err(Error::format(
            path,
            format!("the model has {}; the file has {}", counted(expected, "latent column"), table.dim()),
        ));
    }
    Ok(table)
}

/// The columns of a model of these units in a table; `what` says what they are.
fn in_columns_of(units: &Units, dim: usize, what: &str, table: Table, path: &Path) -> Result<Table> {
    let names = &units.columns[..];
    let named = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
    let what = if dim == 1 { what.trim_end_matches('s') } else { what };
    if names.is_empty() || table.columns.is_empty() {
        // An array of one dimension, as NumPy has a single observation.
        if table.dim() == 1 && dim > 1 && table.rows == dim && table.columns.is_empty() {
            if !units.packing.is_empty() {
                let what =
                    format!("the model takes its {what} packed; save the {dim} values as one row of two dimensions");
                return Err(Error::format(path, what));
            }
            tracing::info!("{}: its {dim} values were taken for one row", path.display());
            return Table::new(Vec::new(), dim, table.into_values());
        }
        if table.dim() != dim {
            let found = table.dim();
            let way_out =
                if found > dim && what.starts_with("column") { "; choose the model's with --columns" } else { "" };
            let what = format!("the model was trained with {dim} {what}{named}; the file has {found}{way_out}");
            return Err(Error::format(path, what));
        }
        return Ok(table);
    }
    if names == table.columns {
        return Ok(table);
    }
    let list = |names: Vec<&String>| names.iter().map(|n| format!("`{n}`")).collect::<Vec<_>>().join(", ");
    let missing: Vec<_> = names.iter().filter(|name| !table.columns.contains(name)).collect();
    if !missing.is_empty() {
        return Err(Error::format(
            path,
            format!(
                "the model was trained with {dim} {what}{named}; the file has {} and lacks {}",
                table.dim(),
                list(missing)
            ),
        ));
    }
    table.select(names)
}

/// Says which columns of a file are taken, where they are not all of them in its order. `also` are used otherwise.
fn tell_of_names(names: &[String], in_file: &[String], also: &[String], path: &Path) {
    if names.is_empty() || in_file.is_empty() || names == in_file {
        return;
    }
    let extra = in_file.iter().filter(|name| !names.contains(name) && !also.contains(name));
    let extra: Vec<_> = extra.map(|name| format!("`{name}`")).collect();
    if extra.is_empty() {
        tracing::info!("{}: columns are put in the model's order, by name", path.display());
    } else {
        tracing::info!("{}: columns are chosen by name; not used: {}", path.display(), extra.join(", "));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        text.split_whitespace().map(String::from).collect()
    }

    fn units(text: &str) -> Units {
        Units { columns: names(text), ..Units::default() }
    }

    fn matched(model: &str, file: &str) -> Result<Vec<f32>> {
        let dim = names(file).len();
        let table = Table::new(names(file), dim, (0..dim).map(|v| v as f32).collect()).unwrap();
        in_columns_of(&units(model), names(model).len(), "columns", table, Path::new("x.csv")).map(Table::into_values)
    }

    #[test]
    fn columns_are_matched_by_name() {
        assert_eq!(matched("a b", "a b").unwrap(), [0.0, 1.0]);
        assert_eq!(matched("a b", "b a").unwrap(), [1.0, 0.0]);
        assert_eq!(matched("a b", "c b a").unwrap(), [2.0, 1.0]);
        let text = matched("a b c d", "d b").unwrap_err().to_string();
        assert!(text.contains("`a`, `c`") && text.contains("x.csv"), "{text}");
    }

    #[test]
    fn without_names_by_position() {
        let table = |dim| Table::new(vec![], dim, vec![0.0; dim]).unwrap();
        assert!(in_columns_of(&units("a b"), 2, "columns", table(2), Path::new("x.npy")).is_ok());
        let text = in_columns_of(&units("a b"), 2, "columns", table(3), Path::new("x.npy")).unwrap_err().to_string();
        assert!(text.contains("2 columns (a, b); the file has 3"), "{text}");
    }

    #[test]
    fn an_array_of_one_dimension_is_one_row() {
        let column = |rows: usize| Table::new(vec![], 1, vec![0.5; rows]).unwrap();
        let read = |table, dim| in_columns_of(&Units::default(), dim, "conditions", table, Path::new("y.npy"));
        let row = read(column(3), 3).unwrap();
        assert_eq!((row.rows, row.dim()), (1, 3));
        // Of one condition it is as many rows, and another number of values is neither.
        assert_eq!(read(column(3), 1).unwrap().rows, 3);
        assert!(read(column(3), 2).unwrap_err().to_string().contains("2 conditions; the file has 1"));
    }
}

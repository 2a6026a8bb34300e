//! Which columns of which file are conditions and which are modelled, and what the settings say of them.

use std::path::Path;

use crate::config::{Config, Given, keys};
use crate::data::Table;
use crate::data::units::{Bounds, Units};
use crate::error::{Error, Result};
use crate::flow::ModelFile;

/// The columns of rows [y, x].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// C.
    pub(super) cond_dim: usize,
    /// N.
    pub(super) dim: usize,
    /// Names of the conditions; empty where they have none.
    pub(super) y: Vec<String>,
    /// Names of the columns that are modelled; empty where they have none.
    pub(super) x: Vec<String>,
}

/// Reads the rows [y, x] that the settings ask for, the columns of x from `path`.
pub(super) fn read(config: &Config, path: &Path) -> Result<(Table, Columns)> {
    let data = &config.data;
    let table = |columns: Option<&[String]>| match columns {
        Some(columns) => Table::read_columns(path, columns),
        None => Table::read(path),
    };
    let chosen = data.columns.as_ref().map(|columns| columns.0.as_slice());
    let (rows, columns, files) = match &data.given {
        None => (None, table(chosen)?, vec![(path, 0)]),
        Some(Given::File(given)) => {
            let y = Table::read(given)?;
            let x = table(chosen)?;
            if y.rows != x.rows {
                let what = format!(
                    "has {} rows, but {} has {}: every row needs the conditions of its own",
                    y.rows,
                    path.display(),
                    x.rows
                );
                return Err(Error::format(given, what));
            }
            let files = vec![(given.as_path(), 0), (path, y.dim())];
            (Some(y), x, files)
        }
        Some(Given::Columns(given)) => {
            let whole = match chosen {
                Some(chosen) => {
                    given_twice(&given.0, chosen)?;
                    Table::read_columns(path, &[&given.0[..], chosen].concat())?
                }
                None => table(None)?,
            };
            let (y, x) = apart(&whole, &given.0, chosen.map(<[String]>::len))?;
            (Some(y), x, vec![])
        }
    };
    let (rows, columns) = joined(rows, columns)?;
    // While rows are as they are in the files.
    let bounds = Units { columns: columns.names(), bounds: columns.bounds(config)?, standardize: None };
    if let Some(outside) = bounds.outside(rows.values()) {
        let file = files.iter().rev().find(|(_, first)| *first < outside.column).map_or(path, |(file, _)| file);
        return Err(outside.in_file(file));
    }
    Ok((rows, columns))
}

/// Rows in memory: conditions, where the settings name some, come first.
pub(super) fn in_memory(config: &Config, table: Table) -> Result<(Table, Columns)> {
    match &config.data.given {
        Some(Given::Columns(given)) => {
            let (y, x) = apart(&table, &given.0, None)?;
            joined(Some(y), x)
        }
        Some(Given::File(path)) => {
            let what = format!("is the file {}; conditions of rows in memory are named columns", path.display());
            Err(Error::config(GIVEN, what))
        }
        None => joined(None, table),
    }
}

const GIVEN: &str = "data.given";

/// The columns of a table that are conditions, and the others. Where some were chosen to be modelled, `modelled` many,
/// they come after the conditions.
fn apart(table: &Table, given: &[String], modelled: Option<usize>) -> Result<(Table, Table)> {
    let take = |columns: std::ops::Range<usize>| table.take(&columns.collect::<Vec<_>>());
    if let Some(modelled) = modelled {
        let first = table.dim() - modelled;
        return Ok((take(0..first)?, take(first..table.dim())?));
    }
    let in_given = |error| match error {
        Error::Config { what, .. } => Error::config(GIVEN, what),
        other => other,
    };
    let chosen = table.numbers(given).map_err(in_given)?;
    if chosen.len() == table.dim() {
        return Err(Error::config(GIVEN, "names all columns of the table, so that none is left to be modelled"));
    }
    Ok((table.take(&chosen)?, table.without(&chosen)?))
}

/// Whether a column is condition and modelled at once.
fn given_twice(given: &[String], modelled: &[String]) -> Result<()> {
    match given.iter().find(|name| modelled.contains(name)) {
        None => Ok(()),
        Some(name) => {
            let what = format!("`{name}` is in data.columns too; a column is a condition or modelled, not both");
            Err(Error::config(GIVEN, what))
        }
    }
}

/// Rows [y, x].
fn joined(y: Option<Table>, x: Table) -> Result<(Table, Columns)> {
    let Some(y) = y else {
        let columns = Columns { cond_dim: 0, dim: x.dim(), y: Vec::new(), x: x.columns.clone() };
        return Ok((x, columns));
    };
    if let Some(name) = y.columns.iter().find(|name| x.columns.contains(name)) {
        let what =
            format!("`{name}` is a condition and a column of the data; rename one, so that they can be told apart");
        return Err(Error::config(GIVEN, what));
    }
    let columns = Columns { cond_dim: y.dim(), dim: x.dim(), y: y.columns.clone(), x: x.columns.clone() };
    Ok((y.beside(&x)?, columns))
}

impl Columns {
    /// C + N.
    pub(super) fn row(&self) -> usize {
        self.cond_dim + self.dim
    }

    /// Names of all columns of a row, `given.1` or `1` where a part of them has none; empty where none has a name.
    fn names(&self) -> Vec<String> {
        if self.y.is_empty() && self.x.is_empty() {
            return Vec::new();
        }
        let part = |names: &[String], dim: usize, prefix: &str| match names {
            [] => (1..=dim).map(|i| format!("{prefix}{i}")).collect(),
            names => names.to_vec(),
        };
        [part(&self.y, self.cond_dim, "given."), part(&self.x, self.dim, "")].concat()
    }

    /// What to call column `j` of a row, from 0.
    pub(super) fn label(&self, j: usize) -> String {
        let (names, number, what) =
            if j < self.cond_dim { (&self.y, j, "condition") } else { (&self.x, j - self.cond_dim, "column") };
        names.get(number).cloned().unwrap_or_else(|| format!("{what} {}", number + 1))
    }

    /// Bounds of all columns of a row, as the settings name them; empty where there are none.
    pub(super) fn bounds(&self, config: &Config) -> Result<Vec<Bounds>> {
        if config.columns.is_empty() {
            return Ok(Vec::new());
        }
        let mut bounds = vec![Bounds::default(); self.row()];
        for (name, &column) in &config.columns {
            bounds[self.find(name)?] = column;
        }
        Ok(bounds)
    }

    /// The column of a row that a setting names: by its name, by its number in x, or as `given.` and its number in y.
    fn find(&self, name: &str) -> Result<usize> {
        let named = |names: &[String]| names.iter().position(|n| n == name);
        let number = |text: &str, dim| text.parse::<usize>().ok().filter(|n| (1..=dim).contains(n)).map(|n| n - 1);
        let y = || named(&self.y).or_else(|| number(name.strip_prefix("given.")?, self.cond_dim));
        let x = || named(&self.x).or_else(|| number(name, self.dim)).map(|i| i + self.cond_dim);
        y().or_else(x).ok_or_else(|| {
            let all = [&self.y[..], &self.x[..]].concat();
            let nearest = all.iter().min_by_key(|known| keys::edit_distance(known, name));
            let hint = nearest.map_or_else(
                || format!("columns have no names here: take 1 to {}, and given.1 for the first condition", self.dim),
                |nearest| format!("did you mean `{nearest}`?"),
            );
            Error::config(format!("columns.{name}"), format!("there is no such column; {hint}"))
        })
    }

    /// The units of all columns that a model to start from has.
    pub(super) fn carried(&self, file: &ModelFile) -> Result<Units> {
        let spec = &file.plan.spec;
        if (spec.dim as usize, spec.cond_dim as usize) != (self.dim, self.cond_dim) {
            let count = |dim: usize, cond_dim: usize| match cond_dim {
                0 => format!("{dim} columns"),
                c => format!("{dim} columns and {c} conditions"),
            };
            let model = count(spec.dim as usize, spec.cond_dim as usize);
            let what = format!("the model has {model}, the data has {}", count(self.dim, self.cond_dim));
            return Err(Error::config("model.init", what));
        }
        Ok(Units::join([&file.y, &file.x], [self.cond_dim, self.dim]))
    }
}

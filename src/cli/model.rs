//! Models and tables as commands take them: RUN, and files whose columns are those of the model.

use std::path::{Path, PathBuf};

use clap::Args;
use hintflow::data::Table;
use hintflow::train::folder::read_model;
use hintflow::{Error, Flow, Result};

use super::device::DeviceArgs;

/// Loads the model of a run folder, a model file or a checkpoint onto the chosen device.
pub(super) fn load(run: &Path, device: &DeviceArgs) -> Result<Flow> {
    // The file first: its errors are the user's more often than those of a device.
    let file = read_model(run)?;
    let engine = device.open()?;
    tracing::debug!("device: {}", engine.info().name);
    Flow::from_file(file, &engine)
}

/// A table whose rows a model takes.
#[derive(Args)]
pub(super) struct Data {
    /// Table: .csv or .npy
    #[arg(value_name = "DATA")]
    pub(super) path: PathBuf,
    /// Columns of the table that are the model's, in its order, by name or number [default: by name, else all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Option<Vec<String>>,
}

impl Data {
    /// The rows in the model's columns: as chosen, else by name where both have names, else by position.
    pub(super) fn rows_for(&self, flow: &Flow) -> Result<Vec<f32>> {
        let (path, dim) = (&self.path, flow.spec().dim as usize);
        let table = match &self.columns {
            None => {
                let (table, names) = Table::read_named(path, flow.columns())?;
                let table = in_columns_of(flow.columns(), dim, table, path)?;
                tell_of_names(flow.columns(), &names, path);
                table
            }
            Some(columns) if columns.len() != dim => {
                let what = format!("the model has {dim} columns, {} are named", columns.len());
                return Err(Error::config(COLUMNS, what));
            }
            Some(columns) => {
                let wanted: Vec<_> = columns.iter().map(|name| name.trim()).collect();
                Table::read_columns(path, &wanted).map_err(|e| match e {
                    Error::Config { what, .. } => Error::config(COLUMNS, what),
                    other => other,
                })?
            }
        };
        if let Some(note) = table.coarse_note() {
            tracing::warn!("{}: {note}", path.display());
        }
        Ok(table.into_values())
    }
}

const COLUMNS: &str = "--columns";

/// The rows of a file of latent vectors: columns by position.
pub(super) fn latent_rows_for(flow: &Flow, path: &Path) -> Result<Vec<f32>> {
    let table = Table::read(path)?;
    let expected = flow.spec().dim as usize;
    if table.dim() != expected {
        return Err(Error::format(
            path,
            format!("the model has {expected} latent columns; the file has {}", table.dim()),
        ));
    }
    Ok(table.into_values())
}

fn in_columns_of(names: &[String], dim: usize, table: Table, path: &Path) -> Result<Table> {
    if names.is_empty() || table.columns.is_empty() {
        if table.dim() != dim {
            let found = table.dim();
            let way_out = if found > dim { "; choose the model's with --columns" } else { "" };
            let what = format!("the model was trained with {dim} columns; the file has {found}{way_out}");
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
                "the model was trained with {dim} columns; the file has {} and lacks {}",
                table.dim(),
                list(missing)
            ),
        ));
    }
    table.select(names)
}

/// Says which columns of a file are taken, where they are not all of them in its order.
fn tell_of_names(names: &[String], in_file: &[String], path: &Path) {
    if names.is_empty() || in_file.is_empty() || names == in_file {
        return;
    }
    let extra: Vec<_> = in_file.iter().filter(|name| !names.contains(name)).map(|name| format!("`{name}`")).collect();
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

    fn matched(model: &str, file: &str) -> Result<Vec<f32>> {
        let dim = names(file).len();
        let table = Table::new(names(file), dim, (0..dim).map(|v| v as f32).collect()).unwrap();
        in_columns_of(&names(model), names(model).len(), table, Path::new("x.csv")).map(Table::into_values)
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
        assert!(in_columns_of(&names("a b"), 2, table(2), Path::new("x.npy")).is_ok());
        let text = in_columns_of(&names("a b"), 2, table(3), Path::new("x.npy")).unwrap_err().to_string();
        assert!(text.contains("2 columns; the file has 3"), "{text}");
    }
}

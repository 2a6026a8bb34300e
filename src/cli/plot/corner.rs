//! `hintflow plot corner`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::layout::LayoutArgs;
use crate::counted::counted;
use crate::data::Table;
use crate::data::files::Reading;
use crate::data::files::text::exact_column;
use crate::data::packing::{Packed, Packing};
use crate::report::{CornerSample, MOST_COLUMNS, MOST_SAMPLES, corner};
use crate::{Error, Result};

use super::{Picture, titles};

const AFTER_HELP: &str = "\
Columns are matched by name if the files have names, else by position. A column `weight`, as `hintflow correct` writes
it, weighs the rows. Lines go around the regions of highest density that hold 50 % and 90 %.";

/// Columns of samples, and pairs of columns, of one file or of several in their colours
#[derive(Args)]
#[command(after_help = AFTER_HELP)]
pub(super) struct Corner {
    /// Samples: .npy, .csv or text
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// True values to be marked: a table with one row
    #[arg(long, value_name = "FILE")]
    truth: Option<PathBuf>,
    /// Columns to draw, by name or number [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    /// What to call them in the picture [default: their names]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    labels: Option<Vec<String>>,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    layout: LayoutArgs,
}

/// The column that weighs rows.
const WEIGHT: &str = "weight";
/// The column that says which observation a sample is of.
const GROUP: &str = "observation";

impl Corner {
    pub(super) fn draw(&self) -> Result<PathBuf> {
        let inputs: Vec<&Path> = self.files.iter().chain(&self.truth).map(PathBuf::as_path).collect();
        let path = self.picture.path(&inputs)?;
        if self.files.len() > MOST_SAMPLES {
            let what = format!("{} are named; at most {MOST_SAMPLES} can be told apart in a picture", self.files.len());
            return Err(Error::config("FILE", what));
        }
        let mut names: Option<Vec<String>> = None;
        // All are packed as the first needs it, so that they have one axis.
        let mut packing: Vec<Packing> = Vec::new();
        let mut are_named = false;
        let mut samples = Vec::new();
        for (file, name) in self.files.iter().zip(titles(&self.files)) {
            let (table, weights) = match &names {
                None => self.read(file, Packed::AsNeeded)?,
                Some(names) => self.read(file, Packed::As(names, &packing))?,
            };
            let table = match &names {
                None => table,
                Some(names) => in_order(table, names, are_named, file)?,
            };
            if names.is_none() {
                names = Some(columns(&table));
                are_named = !table.columns().is_empty();
                packing = (0..table.dim()).map(|k| table.packing(k)).collect();
            }
            samples.push(CornerSample { name, rows: table.into_values(), weights });
        }
        let names = names.unwrap_or_default();
        if names.len() > MOST_COLUMNS {
            let what = format!(
                "{} has {}; of more than {MOST_COLUMNS} nothing can be seen: choose some, such as --columns {}",
                self.files[0].display(),
                counted(names.len(), "column"),
                names.iter().take(4).map(|name| name.trim_start_matches(NUMBERED)).collect::<Vec<_>>().join(",")
            );
            return Err(Error::config("--columns", what));
        }
        let truth = self.truth.as_ref().map(|file| self.true_values(file, &names, &packing)).transpose()?;
        let packed_names: Vec<String> = names.iter().zip(&packing).map(|(name, packing)| packing.label(name)).collect();
        let labels = match &self.labels {
            Some(labels) if labels.len() != names.len() => {
                let (given, columns) = (counted(labels.len(), "name"), counted(names.len(), "column"));
                let what = format!("gives {given} for {columns}: {}", names.join(", "));
                return Err(Error::config("--labels", what));
            }
            Some(labels) => labels,
            None => &packed_names,
        };
        corner(&path, &samples, labels, truth.as_deref())?;
        Ok(path)
    }

    /// The columns of a file that are drawn, and the weights of its rows.
    fn read(&self, file: &Path, packed: Packed<'_>) -> Result<(Table, Option<Vec<f32>>)> {
        let layout = self.layout.reading_as(packed);
        let Some(wanted) = &self.columns else {
            let table = Table::read_with(file, &Reading { without: Some(WEIGHT), ..layout })?;
            // A column of weights alone is drawn.
            let weights = match table.columns().iter().any(|name| name == WEIGHT) {
                true => None,
                false => self.weights(file)?,
            };
            return Ok((of_one_observation(table, file)?, weights));
        };
        let wanted: Vec<&str> = wanted.iter().map(|name| name.trim()).collect();
        // The column that says something of the rows is read, too, if it is there; others may hold anything.
        let more: Vec<&str> = wanted.iter().copied().chain((!wanted.contains(&GROUP)).then_some(GROUP)).collect();
        let table = match Table::read_columns_with(file, &more, &layout) {
            Ok(table) if more.len() > wanted.len() => of_one_observation(table, file)?,
            _ => Table::read_columns_with(file, &wanted, &layout).map_err(|error| match error {
                Error::Config { what, .. } => Error::config("--columns", format!("{}: {what}", file.display())),
                other => other,
            })?,
        };
        let weights = match wanted.contains(&WEIGHT) {
            true => Ok(None),
            false => self.weights(file),
        };
        match weights {
            // A column of texts has that name.
            Err(Error::Cell { .. }) => Ok((table, None)),
            weights => Ok((table, weights?)),
        }
    }

    /// The weights of the rows of a file, the largest of them 1, if it has any.
    fn weights(&self, file: &Path) -> Result<Option<Vec<f32>>> {
        if file.extension().is_some_and(|end| end.eq_ignore_ascii_case("npy")) {
            return Ok(None);
        }
        // Not as a table, whose numbers are float32: all weights may be below those.
        let Some(weights) = exact_column(file, WEIGHT, &self.layout.text())? else { return Ok(None) };
        let largest = weights.iter().copied().fold(0.0, f64::max);
        if weights.iter().any(|weight| *weight < 0.0) || largest == 0.0 {
            let what = format!("its column `{WEIGHT}` must hold weights, 0 or more, and not 0 alone");
            return Err(Error::format(file, what));
        }
        Ok(Some(weights.into_iter().map(|weight| (weight / largest) as f32).collect()))
    }

    fn true_values(&self, file: &Path, names: &[String], packing: &[Packing]) -> Result<Vec<f32>> {
        let layout = self.layout.reading_as(Packed::As(names, packing));
        let (table, in_file) = Table::read_named(file, names, &layout)?;
        let table = match &self.columns {
            // By number, or of a file with other names.
            Some(wanted) if table.dim() != names.len() || !names.iter().all(|name| in_file.contains(name)) => {
                let wanted: Vec<&str> = wanted.iter().map(|name| name.trim()).collect();
                match Table::read_columns_with(file, &wanted, &layout) {
                    Ok(table) => table,
                    Err(_) => table,
                }
            }
            _ => table,
        };
        if table.rows() != 1 && !(table.dim() == 1 && table.rows() == names.len()) {
            return Err(Error::format(
                file,
                format!("has {}; the true values are one row", counted(table.rows(), "row")),
            ));
        }
        let values = table.into_values();
        if values.len() != names.len() {
            let (values, columns) = (counted(values.len(), "value"), counted(names.len(), "column"));
            let what = format!("has {values} for {columns} to draw: {}", names.join(", "));
            return Err(Error::format(file, what));
        }
        Ok(values)
    }
}

/// Before the number of a column without a name.
const NUMBERED: &str = "column ";

fn columns(table: &Table) -> Vec<String> {
    (0..table.dim()).map(|k| table.column_label(k)).collect()
}

/// The table without the column that says which observation a sample is of, if it has that and others.
fn of_one_observation(table: Table, file: &Path) -> Result<Table> {
    let Some(group) = table.columns().iter().position(|column| column == GROUP) else { return Ok(table) };
    let first = table.row(0)[group];
    if table.iter_rows().any(|row| row[group] != first) {
        let what = format!(
            "holds samples for several observations (its column `{GROUP}`), which are as many posteriors; draw one at a time"
        );
        return Err(Error::format(file, what));
    }
    if table.dim() == 1 { Ok(table) } else { table.without(&[group]) }
}

/// The table with the columns of the first file, by name if it has names.
fn in_order(table: Table, names: &[String], are_named: bool, file: &Path) -> Result<Table> {
    let is_named = !table.columns().is_empty() && are_named;
    if is_named && names.iter().all(|name| table.columns().contains(name)) {
        return table.select(names);
    }
    if table.dim() == names.len() {
        return Ok(table);
    }
    let what = format!(
        "has {} ({}), and the first file {} ({}); choose those that both have with --columns",
        counted(table.dim(), "column"),
        columns(&table).join(", "),
        names.len(),
        names.join(", ")
    );
    Err(Error::format(file, what))
}

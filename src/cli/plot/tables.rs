//! `hintflow plot correlation` and `hintflow plot outlines`

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::layout::LayoutArgs;
use crate::counted::{self, counted};
use crate::data::Table;
use crate::data::packing::Packed;
use crate::data::shapes::fourier::{Curve, column_names, order_of};
use crate::report::{Outline, correlation_map, correlations, fourier_blocks, grouped, outlines, single_precision};
use crate::{Error, Result};

use super::{Picture, titles};

/// Correlations of the columns of a table, or of two tables and their difference
#[derive(Args)]
pub(super) struct Correlation {
    /// A table, or two with the same columns
    #[arg(required = true, value_name = "FILE", num_args = 1..=2)]
    files: Vec<PathBuf>,
    /// Columns to draw, by name or number [default: all]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    columns: Option<Vec<String>>,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    layout: LayoutArgs,
}

impl Correlation {
    pub(super) fn draw(&self) -> Result<PathBuf> {
        let path = self.picture.path(&self.files.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        let read = |file: &PathBuf| read(file, self.columns.as_deref(), &self.layout);
        let first = read(&self.files[0])?;
        let titles = titles(&self.files);
        let labels = labels(&first);
        let Some(file) = self.files.get(1) else {
            let title = format!(
                "{}: correlations of {} {}",
                titles[0],
                grouped(first.rows() as u64),
                counted::of(&first.rows(), "row")
            );
            correlation_map(&path, &title, first.values(), first.dim(), &labels)?;
            return Ok(path);
        };
        let mut second = read(file)?;
        let names = first.columns();
        if !names.is_empty() && names.iter().all(|name| second.columns().contains(name)) {
            second = second.select(names)?;
        }
        if second.dim() != first.dim() {
            let columns = counted(second.dim(), "column");
            let what = format!("has {columns}, but {} has {}", self.files[0].display(), first.dim());
            return Err(Error::format(file, what));
        }
        let tables = [(titles[0].as_str(), first.values()), (titles[1].as_str(), second.values())];
        correlations(&path, tables, first.dim(), &labels)?;
        Ok(path)
    }
}

/// Curves of Fourier coefficients, such as samples of Lens and Cross models
#[derive(Args)]
pub(super) struct Outlines {
    /// Rows of Fourier coefficients; a second file is drawn beside the first
    #[arg(required = true, value_name = "FILE", num_args = 1..=2)]
    files: Vec<PathBuf>,
    #[command(flatten)]
    picture: Picture,
    #[command(flatten)]
    layout: LayoutArgs,
}

/// Curves that are drawn of each file, and the points of each.
const CURVES: usize = 36;
const POINTS: usize = 256;

impl Outlines {
    pub(super) fn draw(&self) -> Result<PathBuf> {
        let path = self.picture.path(&self.files.iter().map(PathBuf::as_path).collect::<Vec<_>>())?;
        let sides = self.files.iter().map(|file| curves(file, &self.layout)).collect::<Result<Vec<_>>>()?;
        let (titles, none) = (titles(&self.files), Vec::new());
        let second = sides.get(1).unwrap_or(&none);
        outlines(&path, &sides[0], second, [&titles[0], titles.get(1).map_or("", String::as_str)])?;
        Ok(path)
    }
}

fn curves(file: &Path, layout: &LayoutArgs) -> Result<Vec<Outline>> {
    let table = Table::read_with(file, &layout.reading())?;
    if order_of(table.dim()).is_none() {
        let what = format!(
            "has {}; curves of order M have 4 (2 M + 1) coefficients, as samples of Lens (20) and Cross (100) have",
            counted(table.dim(), "column")
        );
        return Err(Error::format(file, what));
    }
    let curve = |row: &[f32]| Ok(Outline::from(single_precision(Curve::new(row)?.trace(POINTS))));
    table.iter_rows().take(CURVES).map(curve).collect()
}

fn read(file: &Path, columns: Option<&[String]>, layout: &LayoutArgs) -> Result<Table> {
    // Correlations are those of packed numbers.
    let layout = layout.reading_as(Packed::AsNeeded);
    let Some(columns) = columns else { return Table::read_with(file, &layout) };
    let wanted: Vec<&str> = columns.iter().map(|name| name.trim()).collect();
    Table::read_columns_with(file, &wanted, &layout).map_err(|error| match error {
        Error::Config { what, .. } => Error::config("--columns", format!("{}: {what}", file.display())),
        other => other,
    })
}

/// Names of the columns: blocks of coefficients of a curve are named once.
fn labels(table: &Table) -> Vec<String> {
    match order_of(table.dim()) {
        Some(order) if table.columns() == column_names(order) => fourier_blocks(order),
        _ => table.columns().to_vec(),
    }
}

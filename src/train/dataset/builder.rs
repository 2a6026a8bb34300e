//! A data set from rows in memory.

use super::{Dataset, Found, Judged, RowColumns, Rows, What};
use crate::config::Model;
use crate::config::preset::{for_inn_tables, for_tables};
use crate::counted::counted;
use crate::data::columns::units::{Bounds, Choice, ColumnSetting, Gains, Units};
use crate::data::{Table, side_by_side};
use crate::error::{Error, Result};
use crate::eval::density::HeldOut;
use crate::flow::{Flow, FlowBuilder, ModelFile};
use crate::plan::Kind;

/// Collects the rows of a [`Dataset`] and what is done with them; see [`Dataset::from_rows`].
///
/// Nothing set means: a tenth of the rows, chosen at random, judges the training (validation), and every column is
/// brought to a form that networks like, which the data decide: standardised, robust against far values, or by the
/// logarithm of heavy tails. These transforms become part of the flow, which speaks in the units of the rows.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct DatasetBuilder {
    x: Lane,
    y: Lane,
    /// Share of the rows that is kept for validation, unless it has rows of its own.
    share: f64,
    validation: Option<Vec<f32>>,
    validation_conditions: Vec<f32>,
    standardize: bool,
    regression: bool,
    gains: Gains,
    columns_of: Option<ModelFile>,
    seed: u64,
}

/// Columns of x, or conditions.
#[derive(Clone, Debug, Default)]
struct Lane {
    rows: Vec<f32>,
    dim: usize,
    names: Vec<String>,
    settings: Vec<(usize, ColumnSetting)>,
}

impl Lane {
    /// The rows of a part as a table.
    fn table(&self, what: &str, rows: &[f32]) -> Result<Table> {
        if self.dim == 0 {
            return Err(Error::argument("dim", format!("{what} must have at least one column")));
        }
        if !rows.len().is_multiple_of(self.dim) {
            let values = counted(self.dim, "value");
            let what = format!("{what} must hold whole rows of {values}; values beyond the last whole row");
            return Err(Error::Shape { what, expected: 0, got: rows.len() % self.dim });
        }
        if !self.names.is_empty() && self.names.len() != self.dim {
            let what = format!("names of {what}");
            return Err(Error::Shape { what, expected: self.dim, got: self.names.len() });
        }
        if let Some((i, name)) = self.names.iter().enumerate().find(|(i, name)| self.names[..*i].contains(name)) {
            return Err(Error::argument(
                "names",
                format!("`{name}` stands for two columns of {what}, the last {i} (from 0)"),
            ));
        }
        if let Some(i) = self.names.iter().position(|name| name.trim().is_empty()) {
            return Err(Error::argument("names", format!("the name of column {i} (from 0) of {what} is empty")));
        }
        if rows.is_empty() {
            return Err(Error::Shape { what: format!("rows of {what}"), expected: 1, got: 0 });
        }
        if let Some(place) = rows.iter().position(|v| !v.is_finite()) {
            return Err(Error::NotFinite { what: self.place(what, place) });
        }
        let bounds = self.settings(what)?.iter().map(ColumnSetting::bounds).collect();
        if let Some(outside) = (Units { bounds, ..Units::default() }).outside(rows) {
            let place = self.place(what, (outside.row - 1) * self.dim + outside.column - 1);
            return Err(Error::argument("bounds", format!("{place}: {}", outside.what)));
        }
        Table::new(self.names.clone(), self.dim, rows.to_vec())
    }

    /// Where a value is, for messages: as indices, from 0.
    fn place(&self, what: &str, place: usize) -> String {
        format!("row {}, column {} of {what} (from 0)", place / self.dim, place % self.dim)
    }

    /// What is said of each column.
    fn settings(&self, what: &str) -> Result<Vec<ColumnSetting>> {
        let mut settings = vec![ColumnSetting::default(); self.dim];
        for &(column, setting) in &self.settings {
            let count = self.dim;
            let Some(place) = settings.get_mut(column) else {
                return Err(Error::argument(
                    "column",
                    format!("is {column}, but {what} has columns 0 to {}", count - 1),
                ));
            };
            let ColumnSetting { lower, upper, transform } = setting;
            *place = ColumnSetting {
                lower: lower.or(place.lower),
                upper: upper.or(place.upper),
                transform: transform.or(place.transform),
            };
            // Rows in memory are packed by nobody.
            if let Some(mistake) = place.bounds().mistake().or_else(|| Some(place.mistake()?.1)) {
                return Err(Error::argument(format!("column {column} of {what}"), mistake));
            }
        }
        Ok(settings)
    }
}

impl DatasetBuilder {
    pub(super) fn new(x: &[f32], dim: usize) -> Self {
        let defaults = for_tables().data;
        Self {
            x: Lane { rows: x.to_vec(), dim, ..Lane::default() },
            y: Lane::default(),
            share: defaults.validation.unwrap_or(0.0),
            validation: None,
            validation_conditions: Vec::new(),
            standardize: defaults.standardize,
            regression: defaults.regression,
            gains: Gains::Clear,
            columns_of: None,
            seed: defaults.seed,
        }
    }

    /// Conditions y of a conditional model, row-major (rows, `dim`): a row for each row of x.
    pub fn conditions(mut self, y: &[f32], dim: usize) -> Self {
        (self.y.rows, self.y.dim) = (y.to_vec(), dim);
        self
    }

    /// Names of the columns of x, which become part of the model.
    pub fn names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.x.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Names of the conditions.
    pub fn condition_names(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.y.names = names.into_iter().map(Into::into).collect();
        self
    }

    /// Where the values of a column of x (from 0) lie: strictly between these bounds. The model gives no density beyond
    /// them, and no sample.
    pub fn bounds(mut self, column: usize, lower: Option<f64>, upper: Option<f64>) -> Self {
        self.x.settings.push((column, Bounds { lower, upper }.into()));
        self
    }

    /// How a column of x (from 0) is brought to the networks, instead of what the data would choose.
    pub fn transform(mut self, column: usize, transform: Choice) -> Self {
        self.x.settings.push((column, ColumnSetting { transform: Some(transform), ..ColumnSetting::default() }));
        self
    }

    /// Where the values of a condition (from 0) lie, as [`DatasetBuilder::bounds`] says of a column of x.
    pub fn condition_bounds(mut self, column: usize, lower: Option<f64>, upper: Option<f64>) -> Self {
        self.y.settings.push((column, Bounds { lower, upper }.into()));
        self
    }

    /// How a condition (from 0) is brought to the networks, instead of what the data would choose.
    pub fn condition_transform(mut self, column: usize, transform: Choice) -> Self {
        self.y.settings.push((column, ColumnSetting { transform: Some(transform), ..ColumnSetting::default() }));
        self
    }

    /// Share of the rows that is kept for validation, chosen at random; 0 for none.
    pub fn validation(mut self, share: f64) -> Self {
        self.share = share;
        self
    }

    /// Rows of x for validation, instead of a share of the others; see [`DatasetBuilder::validation_conditions`] too.
    pub fn validation_rows(mut self, x: &[f32]) -> Self {
        self.validation = Some(x.to_vec());
        self
    }

    /// The conditions of the validation rows, a row for each.
    pub fn validation_conditions(mut self, y: &[f32]) -> Self {
        self.validation_conditions = y.to_vec();
        self
    }

    /// Whether columns are brought to forms that networks like; otherwise they see the rows as they are.
    pub fn standardize(mut self, standardize: bool) -> Self {
        self.standardize = standardize;
        self
    }

    /// Whether columns of x that gain by it have their linear regression on the conditions subtracted.
    pub fn regression(mut self, regression: bool) -> Self {
        self.regression = regression;
        self
    }

    /// Which gains count if columns are regressed.
    pub(crate) fn gains(self, gains: Gains) -> Self {
        Self { gains, ..self }
    }

    /// Takes names, bounds and transforms of the columns from a flow, instead of choosing them: so the flow can be trained
    /// on with these rows.
    pub fn columns_of(mut self, flow: &Flow) -> Self {
        self.columns_of = Some(flow.description());
        self
    }

    /// Seed of the choice of validation rows.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Shares out the rows and brings them to the units of the networks.
    ///
    /// # Errors
    /// [`Error::Shape`] if lengths do not agree, [`Error::NotFinite`] naming row and column, [`Error::Argument`] or
    /// [`Error::Config`] if a choice does not fit the rows.
    pub fn build(self) -> Result<Dataset> {
        let (cond_dim, dim) = (self.y.dim, self.x.dim);
        self.agree()?;
        let all = self.rows(["the conditions", "x"], &self.y.rows, &self.x.rows)?;
        let count = all.rows;
        let Ok(rows) = u32::try_from(count) else {
            return Err(Error::argument("x", "has 2^32 rows or more"));
        };
        let mut found = super::notes::of_rounding(&all);
        let columns = RowColumns::in_memory(&self.y.names, &self.x.names, [cond_dim, dim], all.file_numbers());
        let coarse = all.coarse().to_vec();
        let mut config = for_tables();
        config.model.kind = if cond_dim > 0 { Kind::Hint } else { Kind::Flow };
        (config.data.standardize, config.data.regression) = (self.standardize, self.regression);
        (config.data.seed, config.data.validation) = (self.seed, None);
        if !(0.0..1.0).contains(&self.share) {
            let what = format!("must be a share of the rows, at least 0 and less than 1, is {}", self.share);
            return Err(Error::argument("validation", what));
        }
        let (train, test, held_out, split) = match &self.validation {
            Some(x) => {
                let whats = ["the validation conditions", "the validation rows"];
                let test = self.rows(whats, &self.validation_conditions, x)?.into_values();
                (all.into_values().into(), test, Vec::new(), None)
            }
            None => {
                let held_out = super::count_held_out(rows, self.share);
                if held_out == 0 && self.share > 0.0 {
                    found.push(Found::of_rows(What::NoneHeldOut(Judged::Validation)));
                }
                let chosen = super::held_out_rows(rows, held_out, self.seed);
                let (train, test) = super::split(all, rows, held_out, &chosen)?;
                let split = HeldOut { seed: self.seed, of: rows, rows: held_out as u32 };
                (train, test, chosen, (held_out > 0).then_some(split))
            }
        };
        let mut settings = self.y.settings("the conditions")?;
        settings.extend(self.x.settings("x")?);
        let said = [&self.y.settings, &self.x.settings].iter().any(|settings| !settings.is_empty());
        let name = "rows".into();
        let rows = Rows { name, columns, coarse, train, test, held_out, split, found, ..Rows::default() };
        rows.prepare_with(&config, if said { settings } else { Vec::new() }, self.columns_of.as_ref(), self.gains)
    }

    /// Whether everything that was given has something that it belongs to.
    fn agree(&self) -> Result<()> {
        let nothing = |name: &str, what: &str| Err(Error::argument(name, what));
        if self.validation.is_none() && !self.validation_conditions.is_empty() {
            return nothing(
                "validation_conditions",
                "there are no validation rows that they belong to (validation_rows)",
            );
        }
        if self.y.dim > 0 || !self.y.rows.is_empty() {
            return Ok(());
        }
        let none = "there are no conditions in the data (conditions)";
        if !self.validation_conditions.is_empty() {
            return nothing("validation_conditions", none);
        }
        if !self.y.names.is_empty() {
            return nothing("condition_names", none);
        }
        if !self.y.settings.is_empty() {
            return nothing("condition_bounds and condition_transform", none);
        }
        Ok(())
    }

    /// Rows [y, x], of what they are called.
    fn rows(&self, [what_y, what_x]: [&str; 2], y: &[f32], x: &[f32]) -> Result<Table> {
        let of_x = self.x.table(what_x, x)?;
        if self.y.dim == 0 && y.is_empty() {
            return Ok(of_x);
        }
        let of_y = self.y.table(what_y, y)?;
        if of_y.rows != of_x.rows {
            let what = format!("rows of {what_y}, one for each row of {what_x}");
            return Err(Error::Shape { what, expected: of_x.rows, got: of_y.rows });
        }
        if let Some(name) = of_y.columns.iter().find(|name| of_x.columns.contains(name)) {
            return Err(Error::argument("names", format!("`{name}` is a condition and a column of x; rename one")));
        }
        let values = side_by_side(of_y.values(), of_x.values(), of_x.rows);
        Table::new(Vec::new(), self.y.dim + self.x.dim, values)
    }
}

impl Dataset {
    /// Starts a data set of rows in memory, row-major (rows, `dim`).
    pub fn from_rows(x: &[f32], dim: usize) -> DatasetBuilder {
        DatasetBuilder::new(x, dim)
    }

    /// Starts a flow for this data, with its columns and their transforms, and the defaults of tables: four blocks of
    /// rational-quadratic splines of width 128 with full recursion, the columns in reverse order between blocks. Of data
    /// with conditions it is a `hint`, which knows x and y together; see [`Dataset::cinn`] too.
    pub fn flow(&self) -> FlowBuilder {
        self.builder(if self.cond_dim > 0 { Kind::Hint } else { Kind::Flow })
    }

    /// Starts a `cinn` for this data, which knows x given y and nothing of y, with the defaults of [`Dataset::flow`]. Data
    /// without conditions has none: `build` says so.
    pub fn cinn(&self) -> FlowBuilder {
        self.builder(Kind::Cinn)
    }

    /// Starts an `inn` for this data, which draws samples of x given y and has no density (docs/model.md, INN): eight blocks
    /// of plain affine couplings of width 64, as many latent columns as x has more columns than y. Data without conditions has none:
    /// `build` says so; rows whose regression is taken off cannot train it ([`DatasetBuilder::regression`]).
    pub fn inn(&self) -> FlowBuilder {
        let spec = for_inn_tables().model.shape(self.dim as u32, self.cond_dim as u32);
        FlowBuilder::for_data(spec, [&self.x, &self.y]).max_log_scale(8.0).init_by_inputs()
    }

    fn builder(&self, kind: Kind) -> FlowBuilder {
        let spec = Model { kind, ..for_tables().model }.shape(self.dim as u32, self.cond_dim as u32);
        FlowBuilder::for_data(spec, [&self.x, &self.y])
    }

    /// Number of rows to train on.
    pub fn rows(&self) -> usize {
        self.train_rows()
    }

    /// Number of rows that judge the training.
    pub fn validation_rows(&self) -> usize {
        self.test_rows()
    }

    /// N, the number of columns of x.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// C, the number of conditions; 0 if there are none.
    pub fn cond_dim(&self) -> usize {
        self.cond_dim
    }

    /// What is to be known of the rows before a density of them is believed: constant or repeated columns, far values, columns
    /// that others give. A sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.notes
    }

    /// What was chosen for the columns, and is nothing to worry about. A sentence each.
    pub fn choices(&self) -> &[String] {
        &self.choices
    }
}

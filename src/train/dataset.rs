//! The rows of a training: simulated or read, split, standardised.
//!
//! Of conditional models a row is [y, x]: conditions before the columns that are modelled.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use super::columns::{self, RowColumns};
use super::data_report::{self, DataReport};
use super::found::{Chose, Found, Judged, What};
use super::notes;
use crate::config::{Config, CouplingKind, KnownRows, Preset, Train, Training};
use crate::counted::{are, counted};
use crate::data::columns::units::{ColumnSetting, Conditioned, Gains, Units, Wishes};
use crate::data::{Table, table};
use crate::error::{Error, Result};
use crate::eval::density::HeldOut;
use crate::flow::{Lanes, ModelFile};
use crate::memory;
use crate::plan::Kind;
use crate::rng::{self, Stream};

/// Rows to train on and rows that judge the training (validation), in the units of the networks, and the way there.
///
/// [`Dataset::from_rows`] begins one, [`Dataset::flow`] makes the builder of a flow for it. So a flow cannot be trained with rows
/// of other units than its own: its transforms are the data's, and nobody else can set them.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Training rows [y, x], row-major (rows, C + N), in the units of the networks.
    pub(crate) train: Arc<[f32]>,
    /// Held-out rows, as `train`, with the test noise already added; may be empty.
    pub(crate) test: Vec<f32>,
    /// N, the number of columns of x.
    pub(crate) dim: usize,
    /// C, the number of conditions y; 0 for an unconditional model.
    pub(crate) cond_dim: usize,
    /// Names, bounds and standardisation of the columns of x.
    pub(crate) x: Units,
    /// The same of the conditions.
    pub(crate) y: Units,
    /// Mean over the held-out rows of the log-determinant of the way of x to the units of the networks.
    pub(crate) test_jacobian: f64,
    /// SHA-256 of the training and held-out rows, in the user's units.
    pub(crate) fingerprint: String,
    /// Short name: that of the preset, or the stem of the file.
    pub(crate) name: String,
    /// What the user should know about the rows.
    pub(crate) found: Vec<Found>,
    /// What was chosen for them, and is nothing to worry about.
    pub(crate) chose: Vec<Chose>,
    /// A sentence for each of `found`.
    pub(crate) notes: Vec<String>,
    /// A sentence for each of `chose`.
    pub(crate) choices: Vec<String>,
    /// What every column is like; none of simulated rows, and of those that a program gave.
    pub(crate) columns: Vec<data_report::Column>,
    /// How the rows of a table were shared out; none of rows that have a test part of their own.
    pub(crate) split: Option<HeldOut>,
    /// Name of the file that they are rows of.
    pub(crate) file: Option<String>,
    /// Rows of that file that have a missing value.
    pub(crate) left_out: usize,
}

impl Dataset {
    /// Simulates or reads the rows that the settings ask for. `init` is the model that training starts from: its
    /// units stay with it.
    ///
    /// # Errors
    /// Those of reading a table, and [`Error::Config`] if settings do not fit the rows.
    pub(crate) fn load(config: &Config, init: Option<&ModelFile>) -> Result<Self> {
        Rows::load(config, init, init)?.prepare(config, init)
    }

    /// Rows that are in memory. The settings say which columns are conditions, and whether columns are standardised;
    /// `test` may be left out.
    ///
    /// # Errors
    /// [`Error::Config`] if settings do not fit the rows, [`Error::Shape`] if the tables differ in columns.
    #[cfg(test)]
    pub(crate) fn from_tables(config: &Config, name: &str, train: Table, test: Option<Table>) -> Result<Self> {
        if let Some(got) = test.as_ref().map(Table::dim).filter(|&dim| dim != train.dim()) {
            return Err(Error::Shape { what: "columns of the held-out rows".into(), expected: train.dim(), got });
        }
        let (train, columns) = columns::in_memory(config, train)?;
        let test = test.map(|test| columns::in_memory(config, test)).transpose()?;
        let rows = Rows {
            name: name.into(),
            columns,
            found: notes::of_rounding(&train),
            coarse: train.coarse().to_vec(),
            train: train.into_values().into(),
            test: test.map(|(test, _)| test.into_values()).unwrap_or_default(),
            ..Rows::default()
        };
        rows.prepare(config, None)
    }

    /// What there is to tell of the rows.
    pub(crate) fn report(&self) -> DataReport {
        DataReport {
            name: self.name.clone(),
            file: self.file.clone(),
            training_rows: self.train_rows(),
            held_out_rows: self.test_rows(),
            left_out_rows: self.left_out,
            columns: self.columns.clone(),
            findings: self.found.iter().map(Into::into).collect(),
            choices: self.choices.clone(),
        }
    }

    /// Columns of a row, C + N.
    pub(crate) fn row_columns(&self) -> usize {
        self.cond_dim + self.dim
    }

    /// Number of training rows.
    pub(crate) fn train_rows(&self) -> usize {
        self.train.len() / self.row_columns()
    }

    /// Number of held-out rows.
    pub(crate) fn test_rows(&self) -> usize {
        self.test.len() / self.row_columns()
    }

    /// Some rows in the user's units, to compare samples with: training rows, at most `most`, spread over all of them,
    /// as a table may be sorted.
    pub(crate) fn some_rows(&self, most: usize) -> Lanes<Vec<f32>> {
        let mut lanes = Lanes::<Vec<f32>>::default();
        let apart = self.train_rows().div_ceil(most.max(1)).max(1);
        for row in self.train.chunks_exact(self.row_columns()).step_by(apart) {
            let (y, x) = row.split_at(self.cond_dim);
            lanes.y.extend_from_slice(y);
            lanes.x.extend_from_slice(x);
        }
        self.outer(lanes)
    }

    /// Rows of both lanes in the user's units.
    pub(crate) fn outer(&self, rows: Lanes<Vec<f32>>) -> Lanes<Vec<f32>> {
        rows.outer(Lanes { y: &self.y, x: &self.x })
    }

    /// Settings with what depends on the number of rows: the batch and the batches of an epoch, dropout and decay.
    ///
    /// # Errors
    /// [`Error::Config`] if a batch has more rows than there are, or a training more steps than can be counted.
    pub(crate) fn resolve(&self, train: &Train, kind: Kind, coupling: CouplingKind) -> Result<Training> {
        let rows = self.train_rows() as u64;
        let known = KnownRows { training: rows, validates: self.test_rows() > 0 };
        let training = Training::of(train, known, kind, coupling);
        let batch = training.batch();
        if batch > rows {
            let held_out = match self.split {
                None => String::new(),
                Some(HeldOut { rows, .. }) => format!(" ({rows} more {} held out, see data.validation)", are(rows)),
            };
            let what = format!(
                "is {batch}, but there {} only {}{held_out}; choose {rows} or less",
                are(rows),
                counted(rows, "training row")
            );
            return Err(Error::config("train.batch", what));
        }
        let batches = training.batches();
        let fits = |n: Option<u64>| n.filter(|&n| n <= u64::from(u32::MAX));
        if fits(batch.checked_mul(batches)).is_none() {
            let what =
                format!("is {batches}: an epoch would take 2^32 rows or more; choose fewer batches and more epochs");
            return Err(Error::config("train.batches_per_epoch", what));
        }
        let passes = (batch * batches).div_ceil(rows);
        if fits(train.epochs.checked_mul(batches.max(passes))).is_none() {
            let what = format!("is {}: there would be 2^32 steps or more; choose fewer", train.epochs);
            return Err(Error::config("train.epochs", what));
        }
        Ok(training)
    }
}

/// Adds the noise of `data.test_noise` to the values x of held-out rows, in their order.
pub(crate) fn add_test_noise<'a>(x: impl IntoIterator<Item = &'a mut f32>, config: &Config) {
    if config.data.test_noise == 0.0 {
        return;
    }
    let sigma = config.data.test_noise as f32;
    let fours = (0..).map(|group| rng::normals4(config.train.seed, Stream::TestNoise, 0, group));
    x.into_iter().zip(fours.flatten()).for_each(|(x, z)| *x += sigma * z);
}

/// Rows as they were simulated or read. There is one copy of the training rows from here on to the device.
#[derive(Default)]
pub(super) struct Rows {
    name: String,
    columns: RowColumns,
    /// Columns of a row that lost much by rounding, from 0.
    coarse: Vec<usize>,
    train: Arc<[f32]>,
    test: Vec<f32>,
    /// Which rows of the table are held out; empty where none is, or where they are no rows of the table.
    held_out: Vec<bool>,
    split: Option<HeldOut>,
    /// Name of the file that they are rows of.
    file: Option<String>,
    found: Vec<Found>,
    /// What was assumed of the file.
    chose: Vec<Chose>,
    /// Rows of the file that have a missing value.
    left_out: usize,
}

impl Rows {
    /// Simulates or reads the rows that the settings ask for; those of a table must lie inside the bounds of the model
    /// to start from. Columns are packed as those of the model `like`, or as they need it.
    pub(super) fn load(config: &Config, init: Option<&ModelFile>, like: Option<&ModelFile>) -> Result<Self> {
        match config.data.preset {
            Some(preset) => match preset.shapes(config.data.outline) {
                Some(shapes) => simulated::rows(config, preset, shapes),
                None => uci::rows(config, preset),
            },
            None => read(config, init, like),
        }
    }

    /// SHA-256 of training and held-out rows.
    pub(super) fn fingerprint(&self) -> String {
        fingerprint(self.columns.row(), &self.train, &self.test)
    }

    /// Brings the rows to the units of the networks, and adds the test noise.
    pub(super) fn prepare(self, config: &Config, init: Option<&ModelFile>) -> Result<Dataset> {
        let settings = self.columns.settings(config)?;
        let is_simulated = config.data.preset.is_some_and(|preset| preset.shapes(config.data.outline).is_some());
        // While the rows are in the user's units.
        let mut columns = match is_simulated {
            true => Vec::new(),
            false => data_report::of_columns(&self.train, &self.test, &self.columns),
        };
        let data = self.prepare_with(config, settings, init, Gains::Clear)?;
        for (j, column) in columns.iter_mut().enumerate() {
            let (units, j) = if j < data.cond_dim { (&data.y, j) } else { (&data.x, j - data.cond_dim) };
            column.transform = data_report::transform_of(units, j).into();
        }
        Ok(Dataset { columns, ..data })
    }

    /// The same with what is said of each column; empty if nothing is.
    fn prepare_with(
        self,
        config: &Config,
        settings: Vec<ColumnSetting>,
        init: Option<&ModelFile>,
        gains: Gains,
    ) -> Result<Dataset> {
        let fingerprint = self.fingerprint();
        let Self { name, columns, coarse, mut train, mut test, held_out, split, file, .. } = self;
        let (mut found, mut chose, left_out) = (self.found, self.chose, self.left_out);
        let (row, cond_dim, dim) = (columns.row(), columns.cond_dim, columns.dim);
        let carried = init.map(|file| columns.carried(file)).transpose()?;
        let tell = config.data.preset.is_none();
        if tell {
            found.extend(notes::of_rows(&train, &columns, &coarse, config.model.kind));
            found.extend(notes::of_relations(&train, &columns, config.model.kind, &held_out));
        }
        let units = match carried {
            Some(carried) => stays(config, &settings, carried)?,
            None => {
                // Simulated rows and those of the paper's data sets have the paper's units.
                let standardize = config.data.standardize;
                let wishes = Wishes { columns: settings, standardize, choose: tell, squash: config.squash() };
                let (units, chosen) = Units::choose(row, &wishes, &train, &test)?;
                found.extend(notes::of_units(&chosen, &columns, &held_out));
                Units { packing: columns.packing().to_vec(), ..units }
            }
        };
        if let Some(outside) = units.outside(&train).or_else(|| units.outside(&test)) {
            return Err(outside.into());
        }
        let [y, x] = units.split_at(cond_dim);
        let x = match init {
            Some(file) if file.x.regression.is_some() && !config.data.regression => {
                let what = "is false, but the model to start from takes a regression off its columns; leave it out";
                return Err(Error::config("data.regression", what));
            }
            Some(file) => Units { regression: file.x.regression.clone(), ..x },
            None if config.data.regression => {
                let (x, regressed) = x.regressed(dim, &y, cond_dim, &train, gains)?;
                chose.extend(notes::of_regression(&regressed, &columns));
                x
            }
            None => x,
        };
        // Names that a model has stay with it.
        let named = |units: Units, names: Vec<String>, before: Option<&Units>| {
            let columns = before.map(|units| units.columns.clone()).filter(|names| !names.is_empty()).unwrap_or(names);
            Units { columns, ..units }
        };
        let x = named(x, columns.x.clone(), init.map(|file| &file.x));
        let y = named(y, columns.y.clone(), init.map(|file| &file.y));
        // In place: nobody else has the rows yet.
        to_networks([&y, &x], Arc::make_mut(&mut train), cond_dim, row, |_, _| ())?;
        let mut test_jacobian = 0.0;
        to_networks([&y, &x], &mut test, cond_dim, row, |lane, rows| {
            lane.log_jacobian(rows, dim).for_each(|jacobian| test_jacobian += jacobian);
        })?;
        test_jacobian /= (test.len() / row).max(1) as f64;
        if let Some(s) = units.standardize.as_ref().filter(|_| tell) {
            // What rounding made constant is told already, and is none.
            found.extend(notes::of_constants(s.constant.iter().copied().filter(|c| !coarse.contains(c)), &columns));
        }
        // On x alone, as in training.
        add_test_noise(test.chunks_exact_mut(row).flat_map(|row| &mut row[cond_dim..]), config);
        let notes = found.iter().map(Found::to_string).collect();
        let choices = chose.iter().map(Chose::to_string).collect();
        Ok(Dataset {
            train,
            test,
            dim,
            cond_dim,
            x,
            y,
            test_jacobian,
            fingerprint,
            name,
            found,
            chose,
            notes,
            choices,
            columns: Vec::new(),
            split,
            file,
            left_out,
        })
    }
}

/// Brings rows [y, x] of `row` columns to the units of the networks, a part at a time; `before` sees each part's x and its
/// way before it goes.
fn to_networks(
    [y, x]: [&Units; 2],
    rows: &mut [f32],
    cond_dim: usize,
    row: usize,
    mut before: impl FnMut(&Conditioned<'_>, &[f32]),
) -> Result<()> {
    /// Rows of a part.
    const PART: usize = 4096;
    // A copy of a million rows is not for nothing.
    let is_plain = y.are_plain() && x.are_plain() && x.packing.is_empty();
    for rows in rows.chunks_mut(PART * row).filter(|_| !is_plain) {
        let mut of_y: Vec<f32> = rows.chunks_exact(row).flat_map(|row| &row[..cond_dim]).copied().collect();
        let mut of_x: Vec<f32> = rows.chunks_exact(row).flat_map(|row| &row[cond_dim..]).copied().collect();
        y.given(&[]).apply(&mut of_y)?;
        let lane = x.given(&of_y);
        before(&lane, &of_x);
        lane.apply(&mut of_x)?;
        let (mut of_y, mut of_x) = (of_y.iter(), of_x.iter());
        for row in rows.chunks_exact_mut(row) {
            let (y, x) = row.split_at_mut(cond_dim);
            y.iter_mut().zip(&mut of_y).for_each(|(to, from)| *to = *from);
            x.iter_mut().zip(&mut of_x).for_each(|(to, from)| *to = *from);
        }
    }
    Ok(())
}

/// The units of the model to start from, which stay with it: settings may not ask for others.
fn stays(config: &Config, settings: &[ColumnSetting], carried: Units) -> Result<Units> {
    if !config.data.standardize && carried.standardize.is_some() {
        let what = "is false, but the model to start from standardises its columns; leave it out";
        return Err(Error::config("data.standardize", what));
    }
    if let Some((c, setting)) = settings.iter().enumerate().find(|(c, setting)| !carried.agrees(*c, setting)) {
        let name = carried.name(c);
        let other = match carried.agrees(c, &ColumnSetting { transform: None, ..*setting }) {
            true => {
                format!("the model to start from has another transform of `{name}`, which stays with it; leave it out")
            }
            false => "the model to start from has other bounds, which stay with it; leave them out".into(),
        };
        return Err(Error::config("columns", other));
    }
    Ok(Units { columns: vec![], ..carried })
}

/// SHA-256 of training and held-out rows of so many columns.
pub(super) fn fingerprint(columns: usize, train: &[f32], test: &[f32]) -> String {
    let mut hash = Sha256::new();
    hash.update(table::fingerprint(columns, train));
    if !test.is_empty() {
        hash.update(table::fingerprint(columns, test));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Zeros that are shared later.
fn shared_zeros(count: usize, what: impl FnOnce() -> String) -> Result<Arc<[f32]>> {
    // An `Arc` cannot be asked whether it fits, so a `Vec` of the same size is.
    drop(memory::reserved::<f32>(count, what)?);
    Ok(std::iter::repeat_n(0.0, count).collect())
}

fn read(config: &Config, init: Option<&ModelFile>, like: Option<&ModelFile>) -> Result<Rows> {
    let Some(path) = &config.data.path else {
        let presets = Preset::ALL.map(Preset::name).join(", ");
        let what = format!("no data: name a preset ({presets}) or a table (.npy, .csv) to train on");
        return Err(Error::config("data.path", what));
    };
    let (table, columns) = columns::read(config, path, init, like)?;
    let Ok(mut rows) = u32::try_from(table.rows) else {
        return Err(Error::format(path, "has 2^32 rows or more; split it"));
    };
    if let Some(wanted) = config.data.rows {
        if wanted > rows.into() {
            let what = format!("is {wanted}, but {} has {}", path.display(), counted(rows, "row"));
            return Err(Error::config("data.rows", what));
        }
        rows = wanted as u32;
    }
    let share = config.data.validation.unwrap_or(0.0);
    let held_out = count_held_out(rows, share);
    let mut found = notes::of_rounding(&table);
    let chose = table.assumed().iter().cloned().map(Chose::Assumed).collect();
    let left_out = table.left_out();
    if held_out == 0 && share > 0.0 {
        found.push(Found::of_rows(What::NoneHeldOut(Judged::Test)));
    }
    let name = path.file_stem().map_or("data".into(), |s| s.to_string_lossy().into_owned());
    let coarse = table.coarse().to_vec();
    let is_held_out = held_out_rows(rows, held_out, config.data.seed);
    let (train, test) = split(table, rows, held_out, &is_held_out)?;
    let split = (held_out > 0).then_some(HeldOut { seed: config.data.seed, of: rows, rows: held_out as u32 });
    let file = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let held_out = is_held_out;
    Ok(Rows { name, columns, coarse, train, test, held_out, split, file, found, chose, left_out })
}

/// How many of `rows` rows a share is. A table of one row trains, too: nothing is held out of it.
fn count_held_out(rows: u32, share: f64) -> usize {
    let held_out = match (f64::from(rows) * share).round() as u32 {
        0 if share > 0.0 => 1,
        n => n,
    };
    held_out.min(rows - 1) as usize
}

/// Which of `rows` rows are held out, `held_out` of them; empty where none is.
fn held_out_rows(rows: u32, held_out: usize, seed: u64) -> Vec<bool> {
    if held_out == 0 { Vec::new() } else { is_held_out(rows, held_out, seed) }
}

/// Which of the first `rows` rows of a table are held out.
pub(super) fn is_held_out(rows: u32, held_out: usize, seed: u64) -> Vec<bool> {
    let mut is_held_out = vec![false; rows as usize];
    for &row in &rng::permutation_on(seed, Stream::Split, 0, rows)[..held_out] {
        is_held_out[row as usize] = true;
    }
    is_held_out
}

/// Training and held-out rows of the first `rows` rows of a table, both in the table's order.
fn split(table: Table, rows: u32, held_out: usize, is_held_out: &[bool]) -> Result<(Arc<[f32]>, Vec<f32>)> {
    let dim = table.dim();
    let what = || counted(rows, "training row") + " beside the table";
    let mut train = shared_zeros((rows as usize - held_out) * dim, what)?;
    if held_out == 0 {
        let mut values = table.into_values();
        values.truncate(rows as usize * dim);
        Arc::make_mut(&mut train).copy_from_slice(&values);
        return Ok((train, Vec::new()));
    }
    let mut test = memory::reserved(held_out * dim, || counted(held_out, "held-out row"))?;
    let mut places = Arc::make_mut(&mut train).chunks_exact_mut(dim);
    for (row, held_out) in table.iter_rows().zip(is_held_out) {
        match if *held_out { None } else { places.next() } {
            Some(place) => place.copy_from_slice(row),
            None => test.extend_from_slice(row),
        }
    }
    Ok((train, test))
}

mod builder;
mod simulated;
mod uci;

pub use builder::DatasetBuilder;

#[cfg(test)]
mod tests;

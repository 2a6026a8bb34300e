//! The rows of a training: simulated or read, split, standardised.

use std::sync::Arc;

use sha2::{Digest, Sha256};

use crate::config::{Config, Preset, preset};
use crate::data::lens;
use crate::data::standardize::Standardizer;
use crate::data::{TEST_FIRST_ROW, Table};
use crate::error::{Error, Result};
use crate::flow::ModelFile;
use crate::rng::{self, Stream};

/// Training and held-out rows in the units of the networks, and where they come from.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// Training rows, row-major (rows, N), standardised where the model standardises.
    pub train: Arc<[f32]>,
    /// Held-out rows, as `train`, with the test noise already added; may be empty.
    pub test: Vec<f32>,
    /// N, the number of columns.
    pub dim: usize,
    /// Names of the columns, empty where they have none.
    pub columns: Vec<String>,
    /// The standardisation that was applied.
    pub standardize: Option<Standardizer>,
    /// SHA-256 of the training and held-out rows, before standardisation.
    pub fingerprint: String,
    /// Short name: that of the preset, or the stem of the file.
    pub name: String,
    /// What the user should know about the rows.
    pub notes: Vec<String>,
}

impl Dataset {
    /// Simulates or reads the rows that the settings ask for. `init` is the model that training starts from: its
    /// standardisation stays with it.
    ///
    /// # Errors
    /// Those of reading a table, and [`Error::Config`] where settings do not fit the rows.
    pub fn load(config: &Config, init: Option<&ModelFile>) -> Result<Self> {
        let (name, train, test) = match config.data.preset {
            Some(Preset::Lens) => simulate_lens(config)?,
            None => read(config)?,
        };
        Self::prepare(config, init, name, train, test)
    }

    /// Rows that are in memory. The settings say whether they are standardised; `test` may be left out.
    ///
    /// # Errors
    /// [`Error::Config`] where settings do not fit the rows, [`Error::Shape`] where the tables differ in columns.
    pub fn from_tables(config: &Config, name: &str, train: Table, test: Option<Table>) -> Result<Self> {
        if let Some(got) = test.as_ref().map(Table::dim).filter(|&dim| dim != train.dim()) {
            return Err(Error::Shape { what: "columns of the held-out rows".into(), expected: train.dim(), got });
        }
        Self::prepare(config, None, name.into(), train, test)
    }

    fn prepare(
        config: &Config,
        init: Option<&ModelFile>,
        name: String,
        train: Table,
        test: Option<Table>,
    ) -> Result<Self> {
        let dim = train.dim();
        if let Some(file) = init
            && file.plan.spec.dim as usize != dim
        {
            let n = file.plan.spec.dim;
            return Err(Error::config("model.init", format!("the model has {n} columns, the data has {dim}")));
        }
        let fingerprint = fingerprint(&train, test.as_ref());
        let columns = train.columns.clone();
        let mut train = train.into_values();
        let mut test = test.map(Table::into_values).unwrap_or_default();
        let carried = init.and_then(|file| file.standardize.clone());
        let standardize = match (config.data.standardize, carried) {
            (true, Some(carried)) => Some(carried),
            (true, None) => Some(Standardizer::fit(&train, dim)?),
            (false, None) => None,
            (false, Some(_)) => {
                let what = "is false, but the model to start from standardises its columns; leave it out";
                return Err(Error::config("data.standardize", what));
            }
        };
        let mut notes = Vec::new();
        if let Some(s) = &standardize {
            s.apply(&mut train)?;
            s.apply(&mut test)?;
            let constant = s.constant_names(&columns);
            if !constant.is_empty() && config.data.preset.is_none() {
                let list = constant.join(", ");
                notes
                    .push(format!("constant: {list}; a density over a constant is one of the noise added in training"));
            }
        }
        if config.data.test_noise > 0.0 && !test.is_empty() {
            let mut noise = vec![0.0; test.len()];
            rng::fill_normals(config.train.seed, Stream::TestNoise, 0, 0, &mut noise);
            let sigma = config.data.test_noise as f32;
            test.iter_mut().zip(noise).for_each(|(x, z)| *x += sigma * z);
        }
        if test.is_empty() && config.data.validation.is_none_or(|share| share > 0.0) {
            notes.push("too few rows to hold any out: there is no test loss".into());
        }
        Ok(Self { train: train.into(), test, dim, columns, standardize, fingerprint, name, notes })
    }

    /// Number of training rows.
    pub fn train_rows(&self) -> usize {
        self.train.len() / self.dim
    }

    /// Number of held-out rows.
    pub fn test_rows(&self) -> usize {
        self.test.len() / self.dim
    }

    /// Some rows in the user's units, to compare samples with: training rows, at most `most`.
    pub fn some_rows(&self, most: usize) -> Result<Vec<f32>> {
        let mut rows = self.train[..self.train_rows().min(most) * self.dim].to_vec();
        if let Some(s) = &self.standardize {
            s.undo(&mut rows)?;
        }
        Ok(rows)
    }

    /// Fills in what depends on the number of rows: the batch and the batches of an epoch.
    ///
    /// # Errors
    /// [`Error::Config`] where a batch has more rows than there are, or a training more steps than can be counted.
    pub fn complete(&self, config: &mut Config) -> Result<()> {
        let (rows, held_out) = (self.train_rows() as u64, self.test_rows() as u64);
        let batch = config.train.batch.unwrap_or_else(|| preset::batch_for(rows));
        if batch > rows {
            let held_out = match held_out {
                0 => String::new(),
                n if config.data.preset.is_none() => format!(" ({n} more are held out, see data.validation)"),
                _ => String::new(),
            };
            let what = format!("is {batch}, but there are only {rows} training rows{held_out}; choose {rows} or less");
            return Err(Error::config("train.batch", what));
        }
        let batches = config.train.batches_per_epoch.unwrap_or(rows / batch);
        let fits = |n: Option<u64>| n.filter(|&n| n <= u64::from(u32::MAX));
        if fits(batch.checked_mul(batches)).is_none() {
            let what =
                format!("is {batches}: an epoch would take 2^32 rows or more; choose fewer batches and more epochs");
            return Err(Error::config("train.batches_per_epoch", what));
        }
        let passes = (batch * batches).div_ceil(rows);
        if fits(config.train.epochs.checked_mul(batches.max(passes))).is_none() {
            let what = format!("is {}: there would be 2^32 steps or more; choose fewer", config.train.epochs);
            return Err(Error::config("train.epochs", what));
        }
        config.train.batch = Some(batch);
        config.train.batches_per_epoch = Some(batches);
        Ok(())
    }
}

fn simulate_lens(config: &Config) -> Result<(String, Table, Option<Table>)> {
    let data = &config.data;
    let outline = data.outline.unwrap_or_default();
    let rows = |key: &str, n: u64| match u32::try_from(n) {
        Ok(n) => Ok(n as usize),
        Err(_) => Err(Error::config(key, format!("is {n}, must be less than 2^32"))),
    };
    let train = lens::generate(rows("data.rows", data.rows.unwrap_or(1))?, data.seed, outline, 0)?;
    let test = match rows("data.test_rows", data.test_rows.unwrap_or(0))? {
        0 => None,
        n => Some(lens::generate(n, data.seed, outline, TEST_FIRST_ROW)?),
    };
    Ok((Preset::Lens.name().into(), train, test))
}

fn read(config: &Config) -> Result<(String, Table, Option<Table>)> {
    let Some(path) = &config.data.path else {
        let what = "no data: name a preset (lens) or a table (.npy, .csv) to train on";
        return Err(Error::config("data.path", what));
    };
    let mut table = Table::read(path)?;
    if let Some(columns) = &config.data.columns {
        table = table.select(&columns.0)?;
    }
    let Ok(mut rows) = u32::try_from(table.rows) else {
        return Err(Error::format(path, "has 2^32 rows or more; split it"));
    };
    if let Some(wanted) = config.data.rows {
        if wanted > rows.into() {
            let what = format!("is {wanted}, but {} has {rows} rows", path.display());
            return Err(Error::config("data.rows", what));
        }
        rows = wanted as u32;
    }
    let share = config.data.validation.unwrap_or(0.0);
    // A table of one row trains, too: nothing is held out of it.
    let held_out = match (f64::from(rows) * share).round() as u32 {
        0 if share > 0.0 => 1,
        n => n,
    };
    let held_out = held_out.min(rows - 1) as usize;
    let mut order = rng::permutation_on(config.data.seed, Stream::Split, 0, rows);
    let (test, train) = order.split_at_mut(held_out);
    test.sort_unstable();
    train.sort_unstable();
    let test = if test.is_empty() { None } else { Some(table.select_rows(test)?) };
    let stem = path.file_stem().map_or("data".into(), |s| s.to_string_lossy().into_owned());
    Ok((stem, table.select_rows(train)?, test))
}

fn fingerprint(train: &Table, test: Option<&Table>) -> String {
    let mut hash = Sha256::new();
    hash.update(train.fingerprint());
    hash.update(test.map(Table::fingerprint).unwrap_or_default());
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;
    use std::path::Path;

    fn table(folder: &Path, rows: usize) -> Config {
        let path = folder.join("t.npy");
        let values = (0..rows * 2).map(|v| v as f32).collect();
        Table::new(vec![], 2, values).unwrap().write(&path, true).unwrap();
        let mut config = for_tables();
        config.data.path = Some(path);
        config
    }

    #[test]
    fn tables_are_split_by_a_seed_and_standardised_by_the_training_rows() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = table(folder.path(), 100);
        let data = Dataset::load(&config, None).unwrap();
        assert_eq!((data.train_rows(), data.test_rows(), data.dim, data.name.as_str()), (90, 10, 2, "t"));
        let mean = data.train.iter().step_by(2).sum::<f32>() / 90.0;
        assert!(mean.abs() < 1e-5);
        let rows = data.some_rows(1000).unwrap();
        assert!(rows.chunks(2).is_sorted_by(|a, b| a[0] < b[0]) && rows.len() == 180);
        config.data.seed = 2;
        assert_ne!(Dataset::load(&config, None).unwrap().fingerprint, data.fingerprint);
    }

    #[test]
    fn small_tables_train_too() {
        let folder = tempfile::tempdir().unwrap();
        for rows in [1, 2, 5] {
            let mut config = table(folder.path(), rows);
            let data = Dataset::load(&config, None).unwrap();
            assert_eq!(data.train_rows() + data.test_rows(), rows);
            assert!(data.train_rows() > 0 && (data.test_rows() > 0) == (rows > 1));
            data.complete(&mut config).unwrap();
            assert_eq!(config.train.batches_per_epoch, Some(1));
        }
    }

    #[test]
    fn batches_beyond_the_data_name_the_remedy() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = table(folder.path(), 100);
        config.train.batch = Some(91);
        let data = Dataset::load(&config, None).unwrap();
        let text = data.complete(&mut config).unwrap_err().to_string();
        assert!(text.contains("train.batch") && text.contains("90") && text.contains("data.validation"), "{text}");
        config.train.batch = None;
        config.train.epochs = u64::MAX;
        assert!(data.complete(&mut config).unwrap_err().to_string().contains("train.epochs"));
        config.data.rows = Some(101);
        assert!(Dataset::load(&config, None).unwrap_err().to_string().contains("data.rows"));
    }

    #[test]
    fn test_noise_is_always_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = table(folder.path(), 50);
        let plain = Dataset::load(&config, None).unwrap();
        config.data.test_noise = 0.1;
        let noisy = Dataset::load(&config, None).unwrap();
        assert_eq!(noisy.test, Dataset::load(&config, None).unwrap().test);
        assert_eq!(noisy.train, plain.train);
        assert!(noisy.test.iter().zip(&plain.test).all(|(a, b)| a != b && (a - b).abs() < 0.6));
    }
}

//! The data report: what a table is like, and what is to be known of it before a density of it is believed.
//!
//! What is found is told when a training begins, and is in `data.json` of its run folder beside ranges and quantiles of
//! every column. [`super::notes`] finds it.

use std::path::Path;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::columns::RowColumns;
use super::found::{Drawn, Found, What};
use crate::data::columns::quantile::quantile;
use crate::data::columns::units::{Transform, Units};

/// A [`Found`] as `data.json` has it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Finding {
    /// What it is.
    pub problem: Problem,
    /// The columns that it is about; empty if it is about rows.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub columns: Vec<String>,
    /// The sentence for people: what was found, what it means for a density, and which option helps.
    pub says: String,
}

/// What may be wrong with a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Problem {
    /// Too few rows to learn from.
    FewRows,
    /// No row is held out.
    NoneHeldOut,
    /// Rows were left out.
    LeftOut,
    /// Rows that repeat others.
    RepeatedRows,
    /// A column with one value.
    Constant,
    /// Few values, all of them whole numbers.
    WholeNumbers,
    /// Columns that are linear functions of others; copies are the simplest.
    Collinear,
    /// Values far from all others.
    FarValues,
    /// A tail heavier than that of a normal distribution.
    HeavyTail,
    /// A bounded column that is nearly linear far from its bound.
    FarFromBound,
    /// Numbers that are closer together than 32-bit floats can tell.
    Rounded,
    /// Numbers of a packed column that are nothing beside the others, such as codes for missing values.
    Vanished,
}

impl From<&Found> for Finding {
    fn from(found: &Found) -> Self {
        let problem = match &found.what {
            What::FewRows(_) => Problem::FewRows,
            What::NoneHeldOut(_) => Problem::NoneHeldOut,
            What::LeftOut(_) => Problem::LeftOut,
            What::Repeated(_) => Problem::RepeatedRows,
            What::Constant(..) => Problem::Constant,
            What::Whole(_) => Problem::WholeNumbers,
            What::Given(..) => Problem::Collinear,
            What::Drawn(Drawn::Robust, _) => Problem::FarValues,
            What::Drawn(Drawn::Asinh, _) => Problem::HeavyTail,
            What::Drawn(Drawn::Softplus, _) => Problem::FarFromBound,
            What::Rounded(_) => Problem::Rounded,
            What::Vanished(_) => Problem::Vanished,
        };
        Self { problem, columns: found.columns.clone(), says: found.to_string() }
    }
}

/// What `data.json` holds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct DataReport {
    /// Name of the data set.
    pub name: String,
    /// Name of its file, if it is one.
    pub file: Option<String>,
    /// Rows to train on.
    pub training_rows: usize,
    /// Rows that judge the training.
    pub held_out_rows: usize,
    /// Rows of the file that have a missing value and were left out.
    pub left_out_rows: usize,
    /// The columns, conditions first; none of simulated rows.
    pub columns: Vec<Column>,
    /// What is to be known of them.
    pub findings: Vec<Finding>,
    /// What was chosen for them, and is nothing to worry about.
    pub choices: Vec<String>,
}

/// A column of a table, in its own units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Column {
    /// Its name, or `column 3`.
    pub name: String,
    /// Whether the model is given it, instead of modelling it.
    pub is_condition: bool,
    /// Least and greatest value.
    pub least: f64,
    /// See [`Column::least`].
    pub greatest: f64,
    /// Mean of all values.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// The values below which the shares [`SHARES`] lie, of at most [`SAMPLED`] rows that are spread over the table.
    pub quantiles: [f64; 5],
    /// Different values among these.
    pub distinct: usize,
    /// Its way to the networks, by its name in `columns.NAME.transform`.
    pub transform: String,
}

/// Of which shares a column's quantiles are told.
pub(crate) const SHARES: [f64; 5] = [0.01, 0.25, 0.5, 0.75, 0.99];

/// Rows that quantiles are taken from: sorting millions would take longer than it tells.
const SAMPLED: usize = 20_000;

/// The columns of rows [y, x], training and held-out ones together, in the user's units. The ways to the networks are
/// not known yet.
pub(super) fn of_columns(train: &[f32], test: &[f32], columns: &RowColumns) -> Vec<Column> {
    let dim = columns.row();
    let rows = || train.chunks_exact(dim).chain(test.chunks_exact(dim));
    let count = (train.len() + test.len()) / dim;
    let mut range = vec![[f32::INFINITY, f32::NEG_INFINITY]; dim];
    let mut sum = vec![0.0f64; dim];
    for row in rows() {
        for ((range, sum), &value) in range.iter_mut().zip(&mut sum).zip(row) {
            *range = [range[0].min(value), range[1].max(value)];
            *sum += f64::from(value);
        }
    }
    let mean: Vec<f64> = sum.iter().map(|sum| sum / count as f64).collect();
    // The means are subtracted first: squares would cancel in columns far from zero.
    let mut square = vec![0.0f64; dim];
    for row in rows() {
        for ((square, mean), &value) in square.iter_mut().zip(&mean).zip(row) {
            *square += (f64::from(value) - mean).powi(2);
        }
    }
    let some: Vec<&[f32]> = rows().step_by(count.div_ceil(SAMPLED).max(1)).collect();
    let of = |j: usize| {
        let mut sorted: Vec<f64> = some.iter().map(|row| row[j].into()).collect();
        sorted.sort_by(f64::total_cmp);
        // Numbers as they are in the file.
        let packing = columns.packing_of(j);
        let quantiles = SHARES.map(|share| packing.unpack(quantile(&sorted, share) as f32));
        sorted.dedup();
        Column {
            name: columns.label(j),
            is_condition: j < columns.cond_dim,
            least: packing.unpack(range[j][0]),
            greatest: packing.unpack(range[j][1]),
            mean: packing.unpack_exact(mean[j]),
            deviation: packing.ln_scale().exp() * (square[j] / count as f64).sqrt(),
            quantiles,
            distinct: sorted.len(),
            transform: String::new(),
        }
    };
    (0..dim).into_par_iter().map(of).collect()
}

/// The name in settings of the way that a column has to the networks.
pub(super) fn transform_of(units: &Units, column: usize) -> &'static str {
    let bounds = units.bounds.get(column).copied().unwrap_or_default();
    match units.transforms.get(column) {
        Some(Transform::Robust(_)) => "robust",
        Some(Transform::Asinh(_)) => "asinh",
        Some(Transform::Softplus(_)) => "softplus",
        Some(Transform::Rank(_)) => "rank",
        Some(Transform::Identity) | None => match (bounds.lower, bounds.upper, &units.standardize) {
            (Some(_), Some(_), _) => "logit",
            (None, None, Some(_)) => "standardize",
            (None, None, None) => "none",
            _ => "log",
        },
    }
}

impl DataReport {
    /// Writes `data.json` over what may be there.
    ///
    /// # Errors
    /// [`crate::Error::Io`] if it cannot be written.
    #[cfg(feature = "cli")]
    pub(super) fn write(&self, path: &Path) -> crate::Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(|e| crate::Error::format(path, e.to_string()))?;
        crate::atomic::write_atomic(path, crate::Overwrite::Yes, |file| writeln!(file, "{json}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;
    use crate::config::{Columns, Given};
    use crate::plan::Kind;
    use crate::train::dataset::Dataset;

    #[test]
    fn columns_have_their_ranges_and_their_ways() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        let wave = |i: i32| (f64::from(i * 7919 % 401) / 401.0 - 0.5) * 2.0;
        let row = |i: i32| format!("{},{},{}\n", i % 2, 100.0 + f64::from(i), wave(i));
        let rows: String = (0..401).map(row).collect();
        std::fs::write(&path, format!("side,time,wave\n0,NA,0\n{rows}")).unwrap();
        let mut config = for_tables();
        config.model.kind = Kind::Hint;
        config.data.given = Some(Given::of_text("time"));
        config.data.missing = Some(Columns(vec!["NA".into()]));
        config.data.path = Some(path);
        config
            .columns
            .insert("side".into(), crate::data::columns::units::Bounds { lower: Some(-1.0), upper: None }.into());
        let profile = Dataset::load(&config, None).unwrap().report();
        assert_eq!((profile.training_rows + profile.held_out_rows, profile.left_out_rows), (401, 1));
        let names: Vec<_> = profile.columns.iter().map(|c| (c.name.as_str(), c.is_condition)).collect();
        assert_eq!(names, [("time", true), ("side", false), ("wave", false)]);
        let [time, side, wave] = &profile.columns[..] else { panic!("three columns") };
        assert_eq!((time.least, time.greatest, time.mean, time.quantiles[2]), (100.0, 500.0, 300.0, 300.0));
        assert!((time.deviation - 401.0 / 12f64.sqrt()).abs() < 0.1, "{}", time.deviation);
        assert_eq!((side.distinct, time.distinct), (2, 401));
        assert_eq!((side.transform.as_str(), wave.transform.as_str()), ("log", "standardize"));
        assert_eq!(profile.findings.len(), 1, "{:?}", profile.findings);
        assert_eq!(
            (profile.findings[0].problem, &profile.findings[0].columns[..]),
            (Problem::WholeNumbers, &["side".to_owned()][..])
        );
        let json = serde_json::to_string(&profile).unwrap();
        assert_eq!(serde_json::from_str::<DataReport>(&json).unwrap(), profile);
    }
}

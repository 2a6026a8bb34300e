//! The numbers of the paper's tables.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::measure::Metric;

const TABLES: &str = include_str!("published.toml");

/// A number of the paper: the mean of its runs and their deviation, where it has one.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Value {
    /// Of a single run.
    One(f64),
    /// Mean and deviation.
    Runs([f64; 2]),
}

impl Value {
    /// Mean, and the deviation of the runs.
    pub(super) fn parts(self) -> (f64, Option<f64>) {
        match self {
            Self::One(mean) => (mean, None),
            Self::Runs([mean, deviation]) => (mean, Some(deviation)),
        }
    }
}

/// The numbers of a table: by the key of a row, then by measure.
pub(super) type Numbers = BTreeMap<String, BTreeMap<Metric, Value>>;

/// The numbers of the table of that name.
pub(super) fn table(name: &str) -> Numbers {
    let mut all: BTreeMap<String, Numbers> =
        toml::from_str(TABLES).unwrap_or_else(|e| unreachable!("the file is part of the program: {e}"));
    all.remove(name).unwrap_or_else(|| unreachable!("no table `{name}` in the program's own file"))
}

/// What a reader needs to know of the paper's numbers of a table.
pub(super) fn remark(table: &str) -> Option<&'static str> {
    match table {
        "cross_unconditional" | "depth_fixed_2m" => Some(
            "The paper measures RealNVP with 4 blocks twice: its table of Cross shapes has an IoU of 0.594 and an H-dist of \
             0.134, that of the depths 0.314 and 0.236, both with an LL of 3.419.",
        ),
        _ => None,
    }
}

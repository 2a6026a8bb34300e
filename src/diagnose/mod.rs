//! Whether a posterior, or a density, can be trusted: tests on rows that the model was not trained on.
//!
//! Each test has a null hypothesis that holds if the model is right, a p-value under it, and a size of the effect in words.
//! The p-values of [`ranks`], of columns of z and of `|z|^2` are exact; those of correlations and of neighbours are normal
//! approximations. What they compare:
//!
//! | file | what is uniform, or standard normal, if the model is right |
//! |---|---|
//! | [`ranks`] | the rank of the truth among samples of its posterior: of each column by itself (simulation-based calibration), by the density (expected coverage), by the distance from random points (TARP) |
//! | [`latents`] | z of held-out rows: each column, `|z|^2`, pairs, and in dependence on the conditions |
//! | [`neighbours`] | how often the nearest neighbours of a sample are samples, too (a classifier two-sample test) |
//! | [`predictive`] | the rank of an observation among what is simulated from its posterior |
//! | [`uniform`] | the exact test, and bands for pictures |
//!
//! [`likeness`] says whether the rows are like those of the training at all, and [`headline`] what is wrong with posteriors.
//! [`Diagnosis`] holds the tests together; several tests at once are corrected for by Holm's method. [`Diagnostics`] is what
//! is written down of it.

mod diagnostics;
mod fault;
pub(crate) mod importance;
pub(crate) mod latents;
pub(crate) mod likeness;
pub(crate) mod model;
pub(crate) mod neighbours;
pub(crate) mod predictive;
pub(crate) mod ranks;
pub(crate) mod uniform;

use serde::{Deserialize, Deserializer, Serialize};

pub(crate) use diagnostics::{Diagnostics, against, fingerprint, p_value_text, verdict};
pub(crate) use fault::{Fault, headline};

/// One test of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Test {
    /// What is tested, in a few words.
    pub name: String,
    /// Which test it is.
    pub kind: Kind,
    /// How large the effect is; see [`Test::says`].
    #[serde(deserialize_with = "nan_of_null")]
    pub statistic: f64,
    /// The chance of a deviation as large, if the model is right.
    pub p_value: f64,
    /// The same with regard to all tests of a diagnosis together.
    pub adjusted_p_value: f64,
    /// What was found, for people.
    pub says: String,
    /// The column of x, or the condition, that it is about, if it is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<String>,
    /// What is wrong with posteriors, by more than chance.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<Fault>,
}

/// JSON has no word for what is no number.
fn nan_of_null<'de, D: Deserializer<'de>>(json: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(json)?.unwrap_or(f64::NAN))
}

/// What a test looks at, that first which says most to those who use a posterior.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// Ranks of a column.
    Calibration,
    /// Columns of z and conditions.
    Conditions,
    /// Ranks by density.
    Coverage,
    /// Ranks by the distance from random points.
    Tarp,
    /// Two samples told apart.
    TwoSample,
    /// An observation among predictions of it.
    Predictive,
    /// `|z|^2`.
    Norm,
    /// A column of z.
    Latent,
    /// Pairs of columns of z.
    Pairs,
}

impl Test {
    pub(crate) fn new(name: impl Into<String>, kind: Kind, statistic: f64, p_value: f64, says: String) -> Self {
        // What is no number fails.
        let p_value = if p_value.is_nan() { 0.0 } else { p_value.clamp(0.0, 1.0) };
        let name = name.into();
        Self { name, kind, statistic, p_value, adjusted_p_value: p_value, says, column: None, faults: Vec::new() }
    }

    /// It, about a column of x or a condition.
    fn of_column(self, name: &str) -> Self {
        Self { column: Some(name.into()), ..self }
    }

    /// It, with what is wrong.
    fn with(self, faults: Vec<Fault>) -> Self {
        Self { faults, ..self }
    }
}

/// Tests of one model, corrected for their number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Diagnosis {
    /// The tests.
    pub tests: Vec<Test>,
    /// The smallest adjusted p-value; 1 without tests.
    pub p_value: f64,
}

/// The adjusted p-value below which a diagnosis speaks against a model, unless the user names another.
pub(crate) const LEVEL: f64 = 0.01;

/// The p-value of a single test below which its words call a fault by its name: some of many tests have one below
/// [`LEVEL`] by chance.
const BEYOND_CHANCE: f64 = 0.001;

impl Diagnosis {
    /// Adjusts the p-values (Holm 1979): whatever the dependence of the tests, a model that is right is found wrong with a
    /// chance of at most the level.
    pub(crate) fn of(mut tests: Vec<Test>) -> Self {
        let mut order: Vec<usize> = (0..tests.len()).collect();
        order.sort_by(|&a, &b| tests[a].p_value.total_cmp(&tests[b].p_value));
        let mut largest: f64 = 0.0;
        for (place, &test) in order.iter().enumerate() {
            largest = largest.max((tests[test].p_value * (order.len() - place) as f64).min(1.0));
            tests[test].adjusted_p_value = largest;
        }
        let p_value = tests.iter().map(|test| test.adjusted_p_value).fold(1.0, f64::min);
        Self { tests, p_value }
    }

    /// The tests that speak against the model: those first that are about what people use, columns and conditions, and of
    /// a kind the strongest.
    pub(crate) fn rejected(&self, level: f64) -> Vec<&Test> {
        let mut rejected: Vec<&Test> = self.tests.iter().filter(|test| test.adjusted_p_value < level).collect();
        rejected.sort_by(|a, b| (a.kind as u8).cmp(&(b.kind as u8)).then(a.p_value.total_cmp(&b.p_value)));
        rejected
    }
}

/// The smallest of several p-values as one: the chance that one of `count` independent ones is as small (Šidák).
fn smallest_of(p_value: f64, count: usize) -> f64 {
    -f64::exp_m1(count as f64 * f64::ln_1p(-p_value))
}

/// Standard deviation of each column; 1 for a constant one.
fn deviations(rows: &[f32], dim: usize) -> Vec<f64> {
    let n = (rows.len() / dim).max(1) as f64;
    let of = |c: usize| {
        let column = || rows.iter().skip(c).step_by(dim).map(|&v| f64::from(v));
        let mean = column().sum::<f64>() / n;
        let deviation = (column().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
        if deviation > 0.0 { deviation } else { 1.0 }
    };
    (0..dim).map(of).collect()
}

/// Two-sided p-value of a standard normal.
fn two_sided(z: f64) -> f64 {
    statrs::function::erf::erfc(z.abs() / std::f64::consts::SQRT_2)
}

#[cfg(test)]
mod tests;

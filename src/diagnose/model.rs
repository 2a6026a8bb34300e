//! The tests of a model.

use super::latents;
use super::neighbours;
use super::ranks::{COVERAGE, Posterior, Ranks, Samples, TARP, ranks};
use super::{Diagnosis, Test, deviations};
use crate::data::side_by_side;
use crate::error::Result;
use crate::flow::Flow;
use crate::plan::Kind;
use crate::rng::{Stream, permutation_on};

/// How much is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Effort {
    /// Samples of each posterior.
    pub samples: usize,
    /// Seed of all that is drawn.
    pub seed: u64,
}

/// What the tests of a model are made from, for pictures.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers {
    /// Ranks of truths among samples of their posteriors.
    pub ranks: Vec<Uniformly>,
    /// Latent columns, and the norm.
    pub latents: Vec<Uniformly>,
    /// Conditions and latent vectors side by side, if the model has a density.
    pub joint: Option<Joint>,
    /// The farthest that a row is from itself after the way to z and back, in deviations of the column; none of a model
    /// without a density.
    pub round_trip_error: Option<f64>,
}

/// Numbers from 0 to 1 that are uniform if a model is right.
#[derive(Clone, Debug)]
pub(crate) struct Uniformly {
    /// The place of their test in the diagnosis.
    pub test: usize,
    /// What they are.
    pub name: String,
    /// The numbers.
    pub numbers: Vec<f64>,
}

/// Rows of columns that have names.
#[derive(Clone, Debug)]
pub(crate) struct Joint {
    /// Names of the columns.
    pub names: Vec<String>,
    /// The rows, row-major.
    pub rows: Vec<f32>,
}

/// Judges a model by rows x and, if it has conditions, as many rows y. `tell` hears how many rows are done.
///
/// # Errors
/// Those of the model.
pub(crate) fn diagnose(
    flow: &Flow,
    x: &[f32],
    y: &[f32],
    effort: Effort,
    tell: &mut dyn FnMut(usize),
) -> Result<(Diagnosis, Numbers)> {
    let (dim, c) = (flow.spec().dim as usize, flow.spec().cond_dim as usize);
    let names = |names: &[String], letter: &str, count: usize| -> Vec<String> {
        if names.is_empty() { (1..=count).map(|i| format!("{letter}{i}")).collect() } else { names.to_vec() }
    };
    let (columns, conditions) = (names(flow.columns(), "x", dim), names(flow.conditions(), "y", c));
    // A row's own part in it is one of all rows.
    let scale = deviations(x, dim);
    let mut numbers = Numbers::default();
    let mut tests = Vec::new();
    if flow.spec().kind == Kind::Flow {
        let samples = flow.sample(x.len() / dim, effort.seed)?;
        tests.push(neighbours::test("samples and held-out rows", &samples, x, dim, effort.seed));
    } else {
        let rows = x.len() / dim;
        let posterior = OfFlow { flow, y, c, seed: effort.seed };
        let ranks = ranks(&posterior, x, &points(x, dim, effort.seed), &scale, effort.samples, effort.seed, tell)?;
        tell(rows);
        tests.extend(ranks.tests(&columns));
        numbers.ranks = of_ranks(ranks, &columns);
    }
    if !flow.spec().kind.has_density() {
        return Ok((Diagnosis::of(tests), numbers));
    }
    let given = flow.given(y)?;
    let z = given.encode(x)?.z;
    numbers.round_trip_error = Some(farthest(x, &given.decode(&z)?, &scale));
    let first = tests.len();
    tests.extend(latents::tests(&z, dim, y, &conditions));
    let uniform = latents::uniform(&z, dim).into_iter().enumerate();
    let column = |(column, numbers)| Uniformly { test: first + column, name: latents::name(column), numbers };
    numbers.latents = uniform.map(column).collect();
    let norms = latents::uniform_norms(&z, dim);
    if norms.len() == z.len() / dim {
        numbers.latents.push(Uniformly { test: first + dim, name: latents::NORM.into(), numbers: norms });
    }
    let rows = side_by_side(y, &z, z.len() / dim);
    let names = conditions.into_iter().chain((1..=dim).map(|column| format!("z{column}"))).collect();
    numbers.joint = Some(Joint { names, rows });
    Ok((Diagnosis::of(tests), numbers))
}

/// The posterior of `observed` told apart from a reference sample (rows, N).
///
/// # Errors
/// Those of the model.
pub(crate) fn against(flow: &Flow, observed: &[f32], reference: &[f32], seed: u64) -> Result<Test> {
    let dim = flow.spec().dim as usize;
    let samples = flow.given(observed)?.sample((reference.len() / dim).min(neighbours::MOST), seed)?;
    Ok(neighbours::test("samples and reference", &samples, reference, dim, seed))
}

/// The farthest that a value of rows is from that of others, in deviations of its column, or in a thousand of its roundings if
/// these are more. No number if one of them is none.
fn farthest(x: &[f32], others: &[f32], scale: &[f64]) -> f64 {
    let error = |((x, other), scale): ((&f32, &f32), &f64)| {
        let (x, other) = (f64::from(*x), f64::from(*other));
        (x - other).abs() / scale.max(1e3 * f64::from(f32::EPSILON) * x.abs())
    };
    let errors = x.iter().zip(others).zip(scale.iter().cycle()).map(error);
    errors.fold(0.0, |most, error| if error > most || error.is_nan() { error } else { most })
}

fn of_ranks(ranks: Ranks, columns: &[String]) -> Vec<Uniformly> {
    let Ranks { columns: all, density, distance } = ranks;
    let others = [(COVERAGE.to_owned(), density), (TARP.to_owned(), distance)];
    let others = others.into_iter().filter(|(_, numbers)| !numbers.is_empty());
    // In the order of their tests.
    let all = columns.iter().cloned().zip(all).chain(others).enumerate();
    all.map(|(test, (name, numbers))| Uniformly { test, name, numbers }).collect()
}

struct OfFlow<'a> {
    flow: &'a Flow,
    y: &'a [f32],
    c: usize,
    seed: u64,
}

impl OfFlow<'_> {
    fn of(&self, first: usize, conditions: usize) -> &[f32] {
        &self.y[first * self.c..][..conditions * self.c]
    }
}

impl Posterior for OfFlow<'_> {
    fn columns(&self) -> usize {
        self.flow.spec().dim as usize
    }

    fn sample(&self, first: usize, conditions: usize, n: usize) -> Result<Samples> {
        let given = self.flow.given(self.of(first, conditions))?.numbered_from(first as u32);
        if !self.flow.spec().kind.has_density() {
            return Ok(Samples { rows: given.sample(n, self.seed)?, log_prob: Vec::new() });
        }
        let (rows, log_prob) = given.sample_and_log_prob(n, self.seed)?;
        Ok(Samples { rows, log_prob })
    }

    fn log_prob(&self, first: usize, rows: &[f32]) -> Result<Vec<f32>> {
        if !self.flow.spec().kind.has_density() {
            return Ok(Vec::new());
        }
        self.flow.given(self.of(first, rows.len() / self.columns()))?.log_prob(rows)
    }
}

/// For each row another one, by chance: points that depend on the truths' distribution, and not on the truth.
fn points(x: &[f32], dim: usize, seed: u64) -> Vec<f32> {
    let rows = x.len() / dim;
    let order = permutation_on(seed, Stream::Diagnosis, 2, rows as u32);
    let mut of = vec![0; rows];
    // Each gets the next of a random order, so that none gets itself.
    (0..rows).for_each(|i| of[order[i] as usize] = order[(i + 1) % rows] as usize);
    of.iter().flat_map(|&row| &x[row * dim..][..dim]).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::farthest;

    #[test]
    fn the_farthest_value_is_told_in_its_columns_deviations() {
        let x = [0.0, 10.0, 1.0, 20.0];
        assert_eq!(farthest(&x, &[0.0, 10.0, 1.5, 19.0], &[1.0, 4.0]), 0.5);
        assert!(farthest(&x, &[f32::NAN, 10.0, 1.5, 20.0], &[1.0, 4.0]).is_nan());
        assert!(farthest(&x, &[0.0, 10.0, 1.0, f32::NAN], &[1.0, 4.0]).is_nan());
    }
}

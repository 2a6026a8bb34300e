//! Ranks of the truth among samples of its posterior. If posteriors are right, each is uniform.

use rayon::prelude::*;

use super::uniform;
use super::{Kind, Test};
use crate::data::columns::quantile::normal_quantile;
use crate::error::Result;
use crate::rng::{Counter, Stream};

/// A posterior for each of many conditions: what is tested.
pub(crate) trait Posterior {
    /// Number of columns.
    fn columns(&self) -> usize;

    /// `n` samples for each of some conditions, from number `first` on.
    ///
    /// # Errors
    /// Whatever may go wrong in drawing.
    fn sample(&self, first: usize, conditions: usize, n: usize) -> Result<Samples>;

    /// The log-density of a row for each of some conditions, from number `first` on; nothing of a posterior without one.
    ///
    /// # Errors
    /// Whatever may go wrong in a model.
    fn log_prob(&self, first: usize, rows: &[f32]) -> Result<Vec<f32>>;
}

/// Samples of posteriors, and how dense they are.
pub(crate) struct Samples {
    /// (conditions, n, columns)
    pub rows: Vec<f32>,
    /// (conditions, n); empty without a density.
    pub log_prob: Vec<f32>,
}

/// Ranks of truths as numbers from 0 to 1. Ties and the gaps between ranks are filled at random, so that they are exactly
/// uniform if the truth is a sample like the others.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ranks {
    /// For each column the rank of each truth.
    pub columns: Vec<Vec<f64>>,
    /// The share of samples that are denser than the truth: the smallest highest-density region that holds it. Empty
    /// without a density.
    pub density: Vec<f64>,
    /// The share of samples that are nearer than the truth to a random point.
    pub distance: Vec<f64>,
}

/// Names of tests.
pub(super) const COVERAGE: &str = "expected coverage";
pub(super) const TARP: &str = "TARP";

/// Rows that are drawn at a time.
const PIECE: usize = 200_000;

/// Ranks of `truths` (rows, columns) among `n` samples each.
///
/// `points` (rows, columns) are those of TARP (Lemos et al. 2023), which must not depend on the truth of their row;
/// `scale` makes columns comparable in distances.
///
/// # Errors
/// Those of the posterior.
pub(crate) fn ranks(
    posterior: &dyn Posterior,
    truths: &[f32],
    points: &[f32],
    scale: &[f64],
    n: usize,
    seed: u64,
    tell: &mut dyn FnMut(usize),
) -> Result<Ranks> {
    let dim = posterior.columns();
    let rows = truths.len() / dim;
    let together = (PIECE / n.max(1)).clamp(1, rows.max(1));
    let mut all = Ranks { columns: vec![Vec::with_capacity(rows); dim], ..Ranks::default() };
    for first in (0..rows).step_by(together) {
        tell(first);
        let count = together.min(rows - first);
        let samples = posterior.sample(first, count, n)?;
        let of_truths = posterior.log_prob(first, &truths[first * dim..][..count * dim])?;
        let of_row = |i: usize| {
            let row = first + i;
            let own = &samples.rows[i * n * dim..][..n * dim];
            let (truth, point) = (&truths[row * dim..][..dim], &points[row * dim..][..dim]);
            let mut rng = Counter::for_row(seed, Stream::Diagnosis, row as u64);
            let columns: Vec<f64> = (0..dim)
                .map(|c| rank(own[c..].iter().step_by(dim).map(|&v| f64::from(v)), truth[c].into(), &mut rng))
                .collect();
            // Denser samples are those of a smaller negative density.
            let density = of_truths.get(i).map(|&truth| {
                let others = &samples.log_prob[i * n..][..n];
                rank(others.iter().map(|&d| -f64::from(d)), -f64::from(truth), &mut rng)
            });
            let from = |x: &[f32]| -> f64 {
                x.iter().zip(point).zip(scale).map(|((x, p), s)| ((f64::from(*x) - f64::from(*p)) / s).powi(2)).sum()
            };
            let distance = rank(own.chunks_exact(dim).map(from), from(truth), &mut rng);
            (columns, density, distance)
        };
        let found: Vec<_> = (0..count).into_par_iter().map(of_row).collect();
        for (columns, density, distance) in found {
            all.columns.iter_mut().zip(columns).for_each(|(all, rank)| all.push(rank));
            all.density.extend(density);
            all.distance.push(distance);
        }
    }
    Ok(all)
}

/// Where a value is among others, from 0 to 1: at random between its neighbours, and among those that are equal.
fn rank(others: impl Iterator<Item = f64>, value: f64, rng: &mut Counter) -> f64 {
    let (mut below, mut equal, mut count) = (0usize, 0usize, 0usize);
    for other in others {
        // A sample that is no number fails the test.
        if other.is_nan() || value.is_nan() {
            return f64::NAN;
        }
        below += usize::from(other < value);
        equal += usize::from(other == value);
        count += 1;
    }
    (below as f64 + rng.uniform(0.0, 1.0) * (equal + 1) as f64) / (count + 1) as f64
}

impl Ranks {
    /// Tests of all of them. `names` are those of the columns.
    pub(crate) fn tests(&self, names: &[String]) -> Vec<Test> {
        let of_columns = self.columns.iter().zip(names).map(|(ranks, name)| {
            let shape = Scores::of(ranks);
            let p_value = uniform::p_value(ranks);
            Test::new(format!("calibration of {name}"), Kind::Calibration, shape.shift, p_value, shape.in_words(name))
        });
        let of_columns: Vec<Test> = of_columns.collect();
        let coverage = |ranks: &[f64], level: f64| {
            ranks.iter().filter(|&&rank| rank <= level).count() as f64 / ranks.len().max(1) as f64
        };
        let held = [0.5, 0.9].map(|level| 100.0 * coverage(&self.density, level));
        let says = format!(
            "the densest regions that should hold 50 % and 90 % of the truths hold {:.1} % and {:.1} %",
            held[0], held[1]
        );
        let p_value = uniform::p_value(&self.density);
        let density = Test::new(COVERAGE, Kind::Coverage, held[1] / 100.0, p_value, says);
        let density = (!self.density.is_empty()).then_some(density);
        let tarp = uniform::p_value(&self.distance);
        let half = 100.0 * coverage(&self.distance, 0.5);
        let says = format!("regions around random points that should hold 50 % of the truths hold {half:.1} %");
        let distance = Test::new(TARP, Kind::Tarp, half / 100.0, tarp, says);
        of_columns.into_iter().chain(density).chain([distance]).collect()
    }
}

/// How the truths lie in their posteriors, by normal scores of their ranks.
struct Scores {
    /// By how many deviations of the posterior the truths lie above its middle.
    shift: f64,
    /// How many times wider the truths scatter than the posterior.
    width: f64,
}

impl Scores {
    fn of(ranks: &[f64]) -> Self {
        let scores: Vec<f64> = ranks.iter().map(|&rank| normal_quantile(rank.clamp(1e-4, 1.0 - 1e-4))).collect();
        let n = scores.len().max(1) as f64;
        let shift = scores.iter().sum::<f64>() / n;
        let width = (scores.iter().map(|s| (s - shift).powi(2)).sum::<f64>() / n).sqrt();
        Self { shift, width }
    }

    fn in_words(&self, name: &str) -> String {
        let side = if self.shift > 0.0 { "above" } else { "below" };
        format!(
            "truths of {name} lie {:.2} posterior standard deviations {side} the middle, and scatter {:.2} times as wide as \
             the posterior",
            self.shift.abs(),
            self.width
        )
    }
}

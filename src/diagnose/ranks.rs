//! Ranks of the truth among samples of its posterior. If posteriors are right, each is uniform.

use rayon::prelude::*;

use super::uniform;
use super::{BEYOND_CHANCE, Fault, Kind, LEVEL, Test};
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
            let (scores, p_value) = (Scores::of(ranks), uniform::p_value(ranks));
            let says = scores.in_words(name, p_value);
            Test::new(format!("calibration of {name}"), Kind::Calibration, scores.shift, p_value, says)
                .of_column(name)
                .with(scores.faults(p_value))
        });
        let of_columns: Vec<Test> = of_columns.collect();
        of_columns.into_iter().chain(self.coverage()).chain([self.tarp()]).collect()
    }

    fn coverage(&self) -> Option<Test> {
        let held = HELD.map(|level| share_below(&self.density, level));
        let p_value = uniform::p_value(&self.density);
        let off = |place: usize, side: f64| {
            let level = HELD[place];
            p_value < LEVEL
                && side * (held[place] - level)
                    > CLEAR * (level * (1.0 - level) / self.density.len().max(1) as f64).sqrt()
        };
        let (fault, words) = match [0, 1].map(|place| [off(place, -1.0), off(place, 1.0)]) {
            [[less, false], [lesser, false]] if less || lesser => (Some(Fault::Narrow), "posteriors are too narrow: "),
            [[false, more], [false, greater]] if more || greater => (Some(Fault::Wide), "posteriors are too wide: "),
            _ => (None, ""),
        };
        let [half, most] = held.map(|share| 100.0 * share);
        let says = format!(
            "{words}the densest regions that should hold 50 % and 90 % of the truths hold {half:.1} % and {most:.1} %"
        );
        let test = Test::new(COVERAGE, Kind::Coverage, held[1], p_value, says);
        (!self.density.is_empty()).then(|| test.with(fault.into_iter().collect()))
    }

    fn tarp(&self) -> Test {
        let half = share_below(&self.distance, 0.5);
        let says =
            format!("regions around random points that should hold 50 % of the truths hold {:.1} %", 100.0 * half);
        Test::new(TARP, Kind::Tarp, half, uniform::p_value(&self.distance), says)
    }
}

/// The levels at which coverage is told.
const HELD: [f64; 2] = [0.5, 0.9];

/// What is off by more standard errors than this is more than chance, and is called by its name.
const CLEAR: f64 = 3.0;

fn share_below(ranks: &[f64], level: f64) -> f64 {
    ranks.iter().filter(|&&rank| rank <= level).count() as f64 / ranks.len().max(1) as f64
}

/// Ranks nearer to an end than this are those of truths beyond nearly all samples.
const END: f64 = 0.001;
/// Of a right posterior two in a thousand are so near to the ends.
const MANY: f64 = 0.2;

/// How the truths lie in their posteriors, by normal scores of their ranks.
struct Scores {
    /// By how many deviations of the posterior the truths lie above its middle.
    shift: f64,
    /// How many times wider the truths scatter than the posterior.
    width: f64,
    /// Their number.
    count: f64,
    /// Whether many truths lie beyond all samples, so that they may scatter more widely than ranks tell.
    is_cut: bool,
}

impl Scores {
    fn of(ranks: &[f64]) -> Self {
        let scores: Vec<f64> = ranks.iter().map(|&rank| normal_quantile(rank.clamp(1e-4, 1.0 - 1e-4))).collect();
        let count = scores.len().max(1) as f64;
        let shift = scores.iter().sum::<f64>() / count;
        let width = (scores.iter().map(|s| (s - shift).powi(2)).sum::<f64>() / count).sqrt();
        let beyond = ranks.iter().filter(|&&rank| !(END..=1.0 - END).contains(&rank)).count() as f64;
        Self { shift, width, count, is_cut: beyond > MANY * count }
    }

    /// What is wrong by more than chance: also for the test of all ranks, whose p-value this is. A right posterior has a shift of N(0, 1 / n), and a width of N(1, 1 / 2n); where
    /// truths scatter more widely, so does the shift.
    fn faults(&self, p_value: f64) -> Vec<Fault> {
        if p_value >= LEVEL {
            return Vec::new();
        }
        let error = 1.0 / self.count.sqrt();
        let by = |off: f64, error: f64, [less, more]: [Fault; 2]| {
            let fault = if off > 0.0 { more } else { less };
            (off.abs() > CLEAR * error).then_some(fault)
        };
        let width = by(self.width - 1.0, error / 2f64.sqrt(), [Fault::Wide, Fault::Narrow]);
        let shift = by(self.shift, error * self.width.max(1.0), [Fault::High, Fault::Low]);
        let all: Vec<Fault> = width.into_iter().chain(shift).collect();
        if all.is_empty() && p_value < BEYOND_CHANCE { vec![Fault::Shape] } else { all }
    }

    /// What is beyond chance comes first.
    fn in_words(&self, name: &str, p_value: f64) -> String {
        let side = if self.shift > 0.0 { "above" } else { "below" };
        let shift = format!("lie {:.2} posterior standard deviations {side} the middle", self.shift.abs());
        let at_least = if self.is_cut { "at least " } else { "" };
        let width = format!("scatter {at_least}{:.2} times as wide as the posterior", self.width);
        let words = |fault: &Fault| match fault {
            Fault::Narrow => format!("too narrow, as truths {width}"),
            Fault::Wide => format!("too wide, as truths {width}"),
            Fault::Low => format!("too low, as truths {shift}"),
            Fault::High => format!("too high, as truths {shift}"),
            Fault::Shape | Fault::Unfollowed => format!("of another shape than the truths, which {width} and {shift}"),
        };
        let faults: Vec<String> = self.faults(p_value).iter().map(words).collect();
        if !faults.is_empty() {
            return format!("posteriors of {name} are {}", faults.join(", and "));
        }
        let chance = if p_value < LEVEL { "" } else { ": no more than chance" };
        format!("truths of {name} {width} and {shift}{chance}")
    }
}

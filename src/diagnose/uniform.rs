//! Whether numbers are uniform on [0, 1], anywhere at once: an exact test with bands that a picture can show.
//!
//! The i-th smallest of n uniform numbers is Beta(i, n + 1 - i). Each of them gets a two-sided level; the smallest is the
//! statistic, and its chance under uniformity the p-value. As every place is as likely to be the smallest, the test sees
//! shifts as well as what is too wide or too narrow (tests of "equal local levels"; Säilynoja, Bürkner and Vehtari 2022
//! simulate the same bands). The chance is computed exactly: a Poisson process of n events in the mean passes between
//! the bands, given that it has n events at the end.

use statrs::function::beta::{beta_reg, inv_beta_reg};

/// The chance that uniform and independent numbers are as unlikely at their places as these, in [0, 1] and in any order. NaN
/// counts as 0, which no uniform number is. Nothing speaks against no numbers: 1.
pub(crate) fn p_value(numbers: &[f64]) -> f64 {
    let sorted = sorted(numbers);
    let n = sorted.len();
    let levels = sorted.iter().enumerate().map(|(place, &u)| {
        let below = beta_reg((place + 1) as f64, (n - place) as f64, u.clamp(0.0, 1.0));
        2.0 * below.min(1.0 - below)
    });
    let local_level = levels.fold(1.0, f64::min);
    match n {
        0 => 1.0,
        _ if local_level <= LEAST => 0.0,
        _ => (1.0 - chance_within(&Bands::of(n, local_level))).clamp(0.0, 1.0),
    }
}

/// A local level below which the p-value is 0 for any number of values that are tested here.
const LEAST: f64 = 1e-12;

/// Numbers in order; those that are none first.
fn sorted(numbers: &[f64]) -> Vec<f64> {
    let mut sorted: Vec<f64> = numbers.iter().map(|&u| if u.is_nan() { 0.0 } else { u }).collect();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Where each of n sorted uniform numbers is, but for a chance of `local_level` each.
#[derive(Clone, Debug)]
pub(crate) struct Bands {
    lower: Vec<f64>,
    upper: Vec<f64>,
}

impl Bands {
    fn of(n: usize, local_level: f64) -> Self {
        let lower = |place: usize| inv_beta_reg((place + 1) as f64, (n - place) as f64, local_level / 2.0);
        let lower: Vec<f64> = (0..n).map(lower).collect();
        let upper = lower.iter().rev().map(|l| 1.0 - l).collect();
        Self { lower, upper }
    }

    /// Bands that all n numbers keep to with this chance.
    pub(crate) fn simultaneous(n: usize, chance: f64) -> Self {
        // The local level lies between that of one place and that of n independent ones.
        let (mut low, mut high) = ((1.0 - chance) / (n.max(1) as f64 * 2.0), 1.0 - chance);
        for _ in 0..25 {
            let middle = (low * high).sqrt();
            if chance_within(&Self::of(n, middle)) > chance { low = middle } else { high = middle }
        }
        Self::of(n, low)
    }

    /// The smallest and the largest share of numbers that may be at most `at`.
    pub(crate) fn shares(&self, at: f64) -> [f64; 2] {
        let n = self.lower.len().max(1) as f64;
        let count = |bound: &[f64]| bound.partition_point(|&b| b <= at) as f64 / n;
        [count(&self.upper), count(&self.lower)]
    }
}

/// The chance that all of n sorted uniform numbers are within their bands.
fn chance_within(bands: &Bands) -> f64 {
    let n = bands.lower.len();
    // From now on at most so many numbers have come; from now on at least.
    let most = bands.lower.iter().enumerate().map(|(i, &at)| (at, i, usize::MAX));
    let least = bands.upper.iter().enumerate().map(|(i, &at)| (at, usize::MAX, i + 1));
    let mut bounds: Vec<(f64, usize, usize)> = most.chain(least).collect();
    bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
    // The most that may have come: what the next bound allows.
    let mut ceilings = vec![n; bounds.len()];
    let mut ceiling = n;
    for (place, bound) in bounds.iter().enumerate().rev() {
        ceiling = ceiling.min(bound.1);
        ceilings[place] = ceiling;
    }
    // Chances of `first`, `first + 1`, ... events so far, but for the factor whose logarithm is `scale`.
    let (mut first, mut chances, mut before, mut scale) = (0, vec![1.0], 0.0, 0.0);
    for (&(at, _, least), ceiling) in bounds.iter().zip(ceilings) {
        let rate = n as f64 * (at - before);
        before = at;
        let mut next = vec![0.0; (ceiling + 1).saturating_sub(first)];
        // Poisson chances without e^-rate, which is part of the scale.
        let mut terms = vec![1.0];
        for k in 1..next.len() {
            let term = terms[k - 1] * rate / k as f64;
            // The others are less than what is rounded away.
            if term < 1e-25 && k as f64 > rate {
                break;
            }
            terms.push(term);
        }
        scale -= rate;
        for (j, chance) in chances.iter().enumerate() {
            for (sum, term) in next.iter_mut().skip(j).zip(&terms) {
                *sum += chance * term;
            }
        }
        if least != usize::MAX && least > first {
            next.drain(..(least - first).min(next.len()));
            first = least;
        }
        let sum: f64 = next.iter().sum();
        if sum <= 0.0 {
            return 0.0;
        }
        next.iter_mut().for_each(|chance| *chance /= sum);
        scale += sum.ln();
        chances = next;
    }
    let rate = n as f64 * (1.0 - before).max(0.0);
    // The rest of the n events after the last bound.
    let end: f64 = chances
        .iter()
        .enumerate()
        .filter(|(j, _)| first + j <= n)
        .map(|(j, chance)| chance * poisson(rate, n - first - j))
        .sum();
    (end.ln() + scale - ln_poisson(n)).exp().min(1.0)
}

/// The chance of `k` events where `rate` are expected.
fn poisson(rate: f64, k: usize) -> f64 {
    if rate == 0.0 {
        return if k == 0 { 1.0 } else { 0.0 };
    }
    (k as f64 * rate.ln() - rate - ln_factorial(k)).exp()
}

/// The logarithm of the chance of n events where n are expected.
fn ln_poisson(n: usize) -> f64 {
    if n == 0 { 0.0 } else { n as f64 * (n as f64).ln() - n as f64 - ln_factorial(n) }
}

fn ln_factorial(n: usize) -> f64 {
    statrs::function::gamma::ln_gamma(n as f64 + 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    fn uniform(n: usize, seed: u64) -> Vec<f64> {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        (0..n).map(|_| rng.uniform(0.0, 1.0)).collect()
    }

    #[test]
    fn few_numbers_have_the_chances_of_integrals() {
        // One number: both bounds are of it alone.
        for u in [0.01, 0.2, 0.5, 0.97] {
            approx::assert_abs_diff_eq!(p_value(&[u]), 2.0 * u.min(1.0 - u), epsilon = 1e-9);
        }
        // Two: P(a1 <= U(1) <= b1, a2 <= U(2) <= b2), by a sum over a fine grid.
        let bands = Bands { lower: vec![0.05, 0.3], upper: vec![0.7, 0.95] };
        let grid = 4000;
        let at = |i: usize| (i as f64 + 0.5) / grid as f64;
        let inside = (0..grid).map(|i| {
            let first = at(i);
            let second = (0.95 - first.max(0.3)).max(0.0);
            if (0.05..=0.7).contains(&first) { 2.0 * second } else { 0.0 }
        });
        approx::assert_abs_diff_eq!(chance_within(&bands), inside.sum::<f64>() / grid as f64, epsilon = 1e-3);
    }

    /// Under uniformity p-values are uniform, too, and so no test of them may fail more often than it says.
    #[test]
    fn p_values_of_uniform_numbers_are_uniform() {
        for n in [3, 20, 200] {
            let p: Vec<f64> = (0..400).map(|seed| p_value(&uniform(n, seed))).collect();
            let share = |level: f64| p.iter().filter(|&&p| p < level).count() as f64 / p.len() as f64;
            for level in [0.05, 0.3, 0.7] {
                let error = 4.0 * (level * (1.0 - level) / p.len() as f64).sqrt();
                assert!((share(level) - level).abs() < error, "n = {n}: {} below {level}", share(level));
            }
        }
    }

    #[test]
    fn simultaneous_bands_hold_as_many_as_they_say() {
        let bands = Bands::simultaneous(100, 0.9);
        let held = (0..1000).filter(|&seed| {
            let numbers = sorted(&uniform(100, seed));
            let bounds = bands.lower.iter().zip(&bands.upper);
            numbers.iter().zip(bounds).all(|(u, (lower, upper))| lower <= u && u <= upper)
        });
        let held = held.count() as f64 / 1000.0;
        assert!((held - 0.9).abs() < 0.04, "{held}");
        let [low, high] = bands.shares(0.5);
        assert!(low < 0.5 && 0.5 < high && high - low < 0.4, "{low} {high}");
        assert_eq!(bands.shares(1.0), [1.0, 1.0]);
    }

    #[test]
    fn what_is_not_uniform_is_seen() {
        let numbers = uniform(500, 7);
        let shifted: Vec<f64> = numbers.iter().map(|u| u.powf(1.3)).collect();
        let narrow: Vec<f64> = numbers.iter().map(|u| 0.5 + 0.85 * (u - 0.5)).collect();
        assert!(p_value(&shifted) < 1e-4);
        assert!(p_value(&narrow) < 1e-4);
        assert_eq!(p_value(&[f64::NAN, 0.3, 0.6]), 0.0);
        assert_eq!(p_value(&[]), 1.0);
    }
}

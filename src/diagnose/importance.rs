//! Importance sampling: samples of a model are weighted so that they stand for a density that is known up to a factor.
//!
//! The largest weights are smoothed by a generalised Pareto distribution (Vehtari et al. 2024, "Pareto smoothed importance
//! sampling"), whose shape k says whether the weights can be trusted at all.

/// Weighted samples.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Weighted {
    /// Weights, which sum to 1, in the order of the samples.
    pub weights: Vec<f64>,
    /// What the largest weights are like.
    pub tail: Tail,
    /// The largest k at which the weights of so many samples can be trusted.
    pub largest_good_k: f64,
    /// As many equally weighted samples would tell as much: 1 / sum of squared weights.
    pub effective_samples: f64,
    /// The logarithm of the integral of the density, and its standard error.
    pub log_evidence: f64,
    pub log_evidence_error: f64,
}

/// The largest of some weights.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Tail {
    /// None of many is more than [`EVEN`] times the mean.
    Even,
    /// The shape k of their distribution; infinite if no sample has a density.
    Pareto(f64),
    /// Too few samples to tell.
    Unknown,
}

/// Weights of which none is more than so many times the mean need no smoothing: shapes fitted to small differences say
/// nothing (k = 2.8 was seen of weights that differ by 40 %). Few weights may be even by chance.
pub(crate) const EVEN: f64 = 3.0;
const FEWEST_EVEN: usize = 1000;

impl Weighted {
    /// Of samples with these log-densities, up to a common term, under the target and under the model that drew them. A
    /// sample that the target has no density for (-inf) gets no weight.
    pub(crate) fn of(target: &[f64], model: &[f64]) -> Self {
        let logs: Vec<f64> = target.iter().zip(model).map(|(t, m)| t - m).collect();
        let n = logs.len().max(1) as f64;
        let largest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        // The largest k at which errors fall with the number of samples as fast as they should.
        let largest_good_k = (1.0 - 1.0 / n.log10()).min(0.7);
        if !largest.is_finite() {
            return Self {
                weights: vec![0.0; logs.len()],
                tail: Tail::Pareto(f64::INFINITY),
                largest_good_k,
                effective_samples: 0.0,
                log_evidence: f64::NEG_INFINITY,
                log_evidence_error: f64::INFINITY,
            };
        }
        let mut weights: Vec<f64> = logs.iter().map(|log| (log - largest).exp()).collect();
        let tail = smooth(&mut weights);
        let mean = weights.iter().sum::<f64>() / n;
        let variance = weights.iter().map(|w| (w - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
        weights.iter_mut().for_each(|w| *w /= n * mean);
        let effective_samples = 1.0 / weights.iter().map(|w| w * w).sum::<f64>();
        Self {
            weights,
            tail,
            largest_good_k,
            effective_samples,
            log_evidence: mean.ln() + largest,
            // Of one sample nothing is known.
            log_evidence_error: if n > 1.0 { (variance / n).sqrt() / mean } else { f64::INFINITY },
        }
    }

    /// Whether the weights say anything, as far as can be told: the estimate of k scatters, and of 1,000 samples with a true
    /// k of 0.9 a quarter to a third look good.
    pub(crate) fn is_good(&self) -> bool {
        match self.tail {
            Tail::Even => true,
            Tail::Pareto(k) => k <= self.largest_good_k,
            Tail::Unknown => false,
        }
    }

    /// Numbers of `count` samples with equal weights: systematic resampling, which takes each as often as its weight says,
    /// but for less than one. `at` from 0 to 1 is where it begins.
    pub(crate) fn resample(&self, count: usize, at: f64) -> Vec<usize> {
        let (mut chosen, mut sum, mut next) = (Vec::with_capacity(count), 0.0, at / count as f64);
        for (number, weight) in self.weights.iter().enumerate() {
            sum += weight;
            while next < sum && chosen.len() < count {
                chosen.push(number);
                next += 1.0 / count as f64;
            }
        }
        // The sum may be a little less than 1.
        let last = chosen.last().copied().unwrap_or(0);
        chosen.resize(count, last);
        chosen
    }
}

/// Fewest samples whose tail is fitted: of 50 samples with a true k of 0.9, a third looked good.
const FEWEST: usize = 100;

/// Puts quantiles of a fitted distribution in place of the largest weights, none of them larger than the largest, unless
/// they are even.
fn smooth(weights: &mut [f64]) -> Tail {
    let n = weights.len();
    let tail = (0.2 * n as f64).min(3.0 * (n as f64).sqrt()).ceil() as usize;
    if n < FEWEST {
        return Tail::Unknown;
    }
    let mean = weights.iter().sum::<f64>() / n as f64;
    if n >= FEWEST_EVEN && weights.iter().all(|&w| w <= EVEN * mean) {
        return Tail::Even;
    }
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| weights[a].total_cmp(&weights[b]));
    let cut = weights[order[n - tail - 1]];
    let tail = &order[n - tail..];
    let above: Vec<f64> = tail.iter().map(|&place| weights[place] - cut).collect();
    let largest = weights[order[n - 1]];
    if largest <= cut {
        // Of a tail of equal weights there is no shape.
        return Tail::Unknown;
    }
    let (k, scale) = fit(&above);
    for (place, &number) in tail.iter().enumerate() {
        let share = (place as f64 + 0.5) / tail.len() as f64;
        weights[number] = (cut + quantile(share, k, scale)).min(largest);
    }
    Tail::Pareto(k)
}

/// The quantile of a generalised Pareto distribution of shape k.
fn quantile(share: f64, k: f64, scale: f64) -> f64 {
    if k.abs() < 1e-9 { -scale * (-share).ln_1p() } else { scale * (-k * (-share).ln_1p()).exp_m1() / k }
}

/// Shape and scale of a generalised Pareto distribution for sorted values above 0 (Zhang and Stephens 2009), the shape drawn
/// towards 1/2 as if ten more values had it.
fn fit(sorted: &[f64]) -> (f64, f64) {
    let n = sorted.len();
    let grid = 30 + (n as f64).sqrt() as usize;
    let quarter = sorted[((n as f64 / 4.0 + 0.5) as usize).clamp(1, n) - 1].max(f64::MIN_POSITIVE);
    let mean_log = |b: f64| sorted.iter().map(|x| (-b * x).ln_1p()).sum::<f64>() / n as f64;
    let candidates: Vec<f64> = (1..=grid)
        .map(|j| 1.0 / sorted[n - 1] + (1.0 - (grid as f64 / (j as f64 - 0.5)).sqrt()) / (3.0 * quarter))
        .collect();
    let likelihood = |b: f64| {
        let k = mean_log(b);
        n as f64 * ((-b / k).ln() - k - 1.0)
    };
    let likelihoods: Vec<f64> = candidates.iter().map(|&b| likelihood(b)).collect();
    let highest = likelihoods.iter().copied().filter(|l| l.is_finite()).fold(f64::NEG_INFINITY, f64::max);
    let (mut sum, mut weighted) = (0.0, 0.0);
    for (b, likelihood) in candidates.iter().zip(&likelihoods).filter(|(_, l)| l.is_finite()) {
        let weight = (likelihood - highest).exp();
        sum += weight;
        weighted += weight * b;
    }
    let b = weighted / sum;
    let k = mean_log(b);
    let n = n as f64;
    ((k * n + 10.0 * 0.5) / (n + 10.0), -k / b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    /// Samples of N(0, s^2) weighted for N(0, 1), whose integral is 1.
    fn weighted(s: f64, n: usize, seed: u64) -> Weighted {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        let x: Vec<f64> = (0..n / 2).flat_map(|_| rng.normal_pair()).map(|z| z * s).collect();
        let target: Vec<f64> = x.iter().map(|x| -0.5 * x * x).collect();
        let model: Vec<f64> = x.iter().map(|x| -0.5 * (x / s).powi(2) - s.ln()).collect();
        Weighted::of(&target, &model)
    }

    #[test]
    fn a_wider_model_is_corrected_and_a_far_narrower_one_is_refused() {
        let wide = weighted(1.3, 4000, 1);
        assert!(wide.is_good() && wide.effective_samples > 3000.0, "{wide:?}");
        let narrow = weighted(0.3, 4000, 1);
        assert!(!narrow.is_good(), "{:?}", narrow.tail);
        let same = weighted(1.0, 4000, 1);
        assert!(same.tail == Tail::Even && (same.effective_samples - 4000.0).abs() < 1e-6, "{same:?}");
        let heavy = weighted(0.75, 4000, 1);
        assert!(matches!(heavy.tail, Tail::Pareto(k) if k > 0.0 && k < 0.7), "{heavy:?}");
        assert_eq!(Weighted::of(&[0.0; 8], &[0.0; 8]).tail, Tail::Unknown);
        // Log-densities of any common size; and a tail that is all alike.
        let shifted = |by: f64| Weighted::of(&(0..200).map(|i| by - f64::from(i % 7)).collect::<Vec<_>>(), &[0.0; 200]);
        for by in [1e9, -1e9] {
            let (far, near) = (shifted(by), shifted(0.0));
            assert!((far.log_evidence - by - near.log_evidence).abs() < 1e-5 && far.weights == near.weights, "{far:?}");
        }
        assert_eq!(Weighted::of(&[0.0; 200], &[0.0; 200]).tail, Tail::Unknown);
        // Few samples do not hide what many would show.
        let good = |n| (0..50).filter(|&seed| weighted(0.3, n, seed).is_good()).count();
        assert_eq!(good(50), 0);
        assert!(good(1000) < 25, "{}", good(1000));
    }

    #[test]
    fn the_evidence_is_within_its_error() {
        let off = (0..200).filter(|&seed| {
            let w = weighted(1.3, 2000, seed);
            w.log_evidence.abs() > 2.0 * w.log_evidence_error
        });
        let off = off.count();
        assert!((2..=20).contains(&off), "{off} of 200 beyond two standard errors");
    }

    /// Quantiles of a known distribution give its shape back.
    #[test]
    fn shapes_of_tails_are_found() {
        for k in [-0.3, 0.0, 0.4, 0.9] {
            let values: Vec<f64> = (0..4000).map(|i| quantile((f64::from(i) + 0.5) / 4000.0, k, 2.0)).collect();
            let (found, scale) = fit(&values);
            assert!((found - k).abs() < 0.03 && (scale - 2.0).abs() < 0.1, "{k}: {found} {scale}");
        }
    }

    #[test]
    fn resampling_takes_each_by_its_weight() {
        let weighted = Weighted::of(&[0.0, 2f64.ln(), f64::NEG_INFINITY, 0.0], &[0.0; 4]);
        assert_eq!(weighted.resample(8, 0.5), [0, 0, 1, 1, 1, 1, 3, 3]);
        assert!(!Weighted::of(&[f64::NEG_INFINITY; 3], &[0.0; 3]).is_good());
    }
}

//! Quantiles of sorted values, and those of the normal distribution.

/// The value below which a share `p` of some sorted values lies, between the nearest two. There must be a value.
pub(crate) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let last = sorted.len() - 1;
    let place = p * last as f64;
    let low = (place as usize).min(last);
    let (a, b) = (sorted[low], sorted[(low + 1).min(last)]);
    // Of equal neighbours exactly their value.
    if a == b { a } else { a + place.fract() * (b - a) }
}

/// The share of sorted values that is less than `x`, with half of those that are equal to it.
pub(crate) fn middle_rank(sorted: &[f64], x: f64) -> f64 {
    let less = sorted.partition_point(|&v| v < x);
    let not_more = sorted.partition_point(|&v| v <= x);
    (less + not_more) as f64 / (2 * sorted.len()) as f64
}

/// Pairs of shares, and how many deviations of a normal distribution lie between its quantiles there.
const SPREADS: [(f64, f64); 4] = [(0.25, 1.349), (0.1, 2.5631), (0.05, 3.2897), (0.01, 4.6527)];

/// A deviation that few far values do not touch: by the distance of the quartiles, or of wider quantiles where more
/// than half of the values are the same. 0 if nearly all are.
pub(crate) fn spread(sorted: &[f64]) -> f64 {
    let of = |&(p, deviations): &(f64, f64)| (quantile(sorted, 1.0 - p) - quantile(sorted, p)) / deviations;
    SPREADS.iter().map(of).find(|&spread| spread > 0.0).unwrap_or(0.0)
}

/// Share of a standard normal distribution below `z`.
pub(crate) fn normal_cdf(z: f64) -> f64 {
    let x = z.abs();
    let density = (-0.5 * x * x).exp() / std::f64::consts::TAU.sqrt();
    let upper = if x < 3.0 {
        // x + x^3 / 3 + x^5 / (3 * 5) + ...
        let (mut term, mut sum) = (x, x);
        for k in 1..60 {
            term *= x * x / f64::from(2 * k + 1);
            sum += term;
        }
        0.5 - density * sum
    } else {
        // Mills' ratio as the continued fraction 1 / (x + 1 / (x + 2 / (x + 3 / ...))).
        density / (1..80).rev().fold(x, |under, k| x + f64::from(k) / under)
    };
    if z > 0.0 { 1.0 - upper } else { upper }
}

/// The inverse of [`normal_cdf`], for `p` between 0 and 1.
pub(crate) fn normal_quantile(p: f64) -> f64 {
    let tail = p.min(1.0 - p);
    // Bisection on the smaller side, where the shares have their digits.
    let (mut low, mut high) = (-40.0, 0.0);
    for _ in 0..60 {
        let middle = 0.5 * (low + high);
        *(if normal_cdf(middle) < tail { &mut low } else { &mut high }) = middle;
    }
    let z = 0.5 * (low + high);
    if p > 0.5 { -z } else { z }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn normal_quantiles_are_the_textbooks() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_964), (0.01, -2.326_348), (1e-9, -5.997_807)] {
            assert!((normal_quantile(p) - z).abs() < 1e-5, "{p}: {}", normal_quantile(p));
        }
        assert!((normal_cdf(1.0) - 0.841_344_7).abs() < 1e-6);
    }

    #[test]
    fn spreads_are_deviations_and_ranks_are_middle_ones() {
        let normal: Vec<f64> = (0..1000).map(|i| 5.0 + 2.0 * normal_quantile((f64::from(i) + 0.5) / 1000.0)).collect();
        assert!((spread(&normal) - 2.0).abs() < 0.01);
        assert_eq!(spread(&[1.0; 9]), 0.0);
        let mostly = [vec![0.0; 80], (1..=20).map(f64::from).collect()].concat();
        assert!(spread(&mostly) > 1.0);
        assert_eq!(middle_rank(&[1.0, 2.0, 2.0, 3.0], 2.0), 0.5);
        assert_eq!(quantile(&[1.0, 3.0], 0.5), 2.0);
    }
}

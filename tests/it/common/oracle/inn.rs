//! The losses of an INN (Ardizzone et al. 2018) in float64, from their definitions: the map is that of a flow of W columns.

use super::Model;

/// The squared maximum mean discrepancy of two sets of rows of `n` columns: the mean over all pairs, those of a row with
/// itself too, of `k(a, a') + k(b, b') - 2 k(a, b)`, with `k(d) = sum of s / (s + d^2)` for s = 1/16, 1/2, 4.
pub(crate) fn mmd(a: &[f64], b: &[f64], n: usize) -> f64 {
    let mean = |a: &[f64], b: &[f64]| {
        let (mut sum, mut pairs) = (0.0, 0.0);
        for p in a.chunks_exact(n) {
            for q in b.chunks_exact(n) {
                let square: f64 = p.iter().zip(q).map(|(p, q)| (p - q).powi(2)).sum();
                sum += [0.0625, 0.5, 4.0].map(|s| s / (s + square)).iter().sum::<f64>();
                pairs += 1.0;
            }
        }
        sum / pairs
    };
    mean(a, a) + mean(b, b) - 2.0 * mean(a, b)
}

/// Columns and factors of the losses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct InnLosses {
    /// N
    pub(crate) dim: usize,
    /// C
    pub(crate) conditions: usize,
    /// L
    pub(crate) latent: usize,
    /// Factor of the discrepancy of [z, y].
    pub(crate) latent_factor: f64,
    /// Factor of the discrepancy of x; none: there is no way back.
    pub(crate) inverse_factor: Option<f64>,
}

impl InnLosses {
    /// The mean loss over rows `target` = [padding, z, y] and `x` = [x, padding]. In the discrepancy of [z, y] the y of the
    /// model is that of `fixed`, as no gradient goes through it.
    pub(crate) fn of(&self, model: &Model, fixed: &Model, target: &[f64], x: &[f64]) -> f64 {
        let w = model.spec.dim;
        let rows = (x.len() / w) as f64;
        let padding = w - self.conditions - self.latent;
        let squares = |a: &[f64], b: &[f64], columns: std::ops::Range<usize>| {
            let (a, b) = (part(a, w, columns.clone()), part(b, w, columns));
            a.iter().zip(&b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / rows
        };
        let (there, there_fixed) = (model.forward(x, &[]).z, fixed.forward(x, &[]).z);
        let y = w - self.conditions;
        let mut seen = Vec::new();
        for (own, fixed) in there.chunks_exact(w).zip(there_fixed.chunks_exact(w)) {
            seen.extend_from_slice(&own[padding..y]);
            seen.extend_from_slice(&fixed[y..]);
        }
        let wanted = part(target, w, padding..w);
        let forward = squares(&there, target, 0..padding)
            + squares(&there, target, y..w)
            + self.latent_factor * mmd(&seen, &wanted, w - padding);
        let Some(factor) = self.inverse_factor else { return forward };
        let back = model.inverse(target, &[]);
        let discrepancy = mmd(&part(&back, w, 0..self.dim), &part(x, w, 0..self.dim), self.dim);
        forward + factor * discrepancy + squares(&back, x, self.dim..w)
    }
}

/// Some columns of rows of `w`.
fn part(rows: &[f64], w: usize, columns: std::ops::Range<usize>) -> Vec<f64> {
    rows.chunks_exact(w).flat_map(|row| &row[columns.clone()]).copied().collect()
}

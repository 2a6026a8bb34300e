//! Initial weights: normals for everything trained, random orthogonal matrices for fixed mixing (spec, sections 3, 5).

use crate::plan::Plan;
use crate::rng::{self, Stream};

/// A weight arena with initial values: trained weights ~ N(0, sigma^2), fixed Q uniform over the orthogonal group.
pub(super) fn weights(plan: &Plan, seed: u64, sigma: f32) -> Vec<f32> {
    let layout = &plan.layout;
    let mut weights = vec![0.0; layout.len()];
    let trained = &mut weights[..layout.trained];
    rng::fill_normals(seed, Stream::InitParameters, 0, 0, trained);
    trained.iter_mut().for_each(|w| *w *= sigma);
    for (number, mix) in plan.mixes().enumerate().filter(|(_, m)| m.reflections.is_none()) {
        let q = orthogonal(mix.dim as usize, seed, number as u32);
        weights[mix.q as usize..mix.q as usize + q.len()].copy_from_slice(&q);
    }
    weights
}

/// Q of a QR decomposition of a Gaussian matrix with the signs of R's diagonal made positive, which makes Q uniform.
/// Modified Gram-Schmidt on the rows, twice: enough for orthogonality to rounding in f64.
fn orthogonal(n: usize, seed: u64, number: u32) -> Vec<f32> {
    let mut normals = vec![0.0f32; n * n];
    rng::fill_normals(seed, Stream::Mixing, number, 0, &mut normals);
    let mut rows: Vec<Vec<f64>> = normals.chunks_exact(n).map(|r| r.iter().map(|&v| f64::from(v)).collect()).collect();
    for i in 0..n {
        let (done, rest) = rows.split_at_mut(i);
        let row = &mut rest[0];
        for _ in 0..2 {
            for q in done.iter() {
                let along: f64 = q.iter().zip(row.iter()).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(q).for_each(|(r, q)| *r -= along * q);
            }
        }
        let norm = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        row.iter_mut().for_each(|v| *v /= norm);
    }
    rows.into_iter().flatten().map(|v| v as f32).collect()
}

#[cfg(test)]
mod tests {
    use approx::abs_diff_eq;

    use super::*;

    #[test]
    fn fixed_mixing_is_orthogonal_and_differs_between_blocks() {
        for n in [1, 2, 7, 100] {
            let q = orthogonal(n, 5, 0);
            for i in 0..n {
                for j in 0..n {
                    let dot: f64 = (0..n).map(|k| f64::from(q[i * n + k]) * f64::from(q[j * n + k])).sum();
                    let want = f64::from(u8::from(i == j));
                    assert!(abs_diff_eq!(dot, want, epsilon = 1e-6), "n = {n}, rows {i} and {j}: {dot}");
                }
            }
            assert!(n == 1 || q != orthogonal(n, 5, 1));
        }
    }
}

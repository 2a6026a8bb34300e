//! Initial weights: normals for everything trained, random orthogonal matrices for fixed mixing
//! (docs/model.md, Initial weights).

use crate::plan::{Mixing, Plan};
use crate::rng::{self, Stream};

/// How trained weights begin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Init {
    /// All of them ~ N(0, sigma^2).
    Sigma(f32),
    /// By the number of inputs of each layer.
    Inputs,
}

/// Deviation of the weights of hidden layers, times the root of their number of inputs. Measured for splines on four real
/// tables: with 1.4 of it held-out densities were 1.25 nats lower.
const HIDDEN_GAIN: f32 = 0.58;
/// The same of the last layer: splines begin near to the identity.
const LAST_GAIN: f32 = 0.1;

/// A weight arena with initial values: trained weights as `init` says, fixed Q uniform over the orthogonal group or over
/// the permutations, or the reverse order.
pub(super) fn weights(plan: &Plan, seed: u64, init: Init) -> Vec<f32> {
    let layout = &plan.layout;
    let mut weights = vec![0.0; layout.len()];
    let trained = &mut weights[..layout.trained];
    rng::fill_normals(seed, Stream::InitParameters, 0, 0, trained);
    match init {
        Init::Sigma(sigma) => trained.iter_mut().for_each(|w| *w *= sigma),
        Init::Inputs => {
            for tensor in plan.layout.tensors.iter().filter(|tensor| tensor.offset < layout.trained) {
                let gain = match tensor.shape[..] {
                    [_, inputs] if tensor.name.ends_with(".2.weight") => LAST_GAIN / (inputs as f32).sqrt(),
                    [_, inputs] if inputs > 0 => HIDDEN_GAIN / (inputs as f32).sqrt(),
                    _ => 0.0,
                };
                trained[tensor.range()].iter_mut().for_each(|w| *w *= gain);
            }
        }
    }
    for (number, mix) in plan.mixes().enumerate().filter(|(_, m)| m.reflections.is_none()) {
        let n = mix.dim as usize;
        let q = match plan.spec.mixing {
            Mixing::Reverse => permutation((0..n).rev()),
            Mixing::Permutation => permutation(random_order(n, seed, number as u32).into_iter()),
            _ => orthogonal(n, seed, number as u32),
        };
        weights[mix.q as usize..mix.q as usize + q.len()].copy_from_slice(&q);
    }
    weights
}

/// The matrix whose row `i` takes the column that is number `i` of an order.
fn permutation(order: impl ExactSizeIterator<Item = usize>) -> Vec<f32> {
    let n = order.len();
    let mut q = vec![0.0; n * n];
    order.enumerate().for_each(|(i, j)| q[i * n + j] = 1.0);
    q
}

/// A random order of `n` columns (Fisher, Yates).
fn random_order(n: usize, seed: u64, number: u32) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    let mut random = rng::Counter::new(seed, Stream::Mixing, number, 1);
    for i in (1..n).rev() {
        order.swap(i, random.uniform(0.0, (i + 1) as f64) as usize);
    }
    order
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

//! Numerical Jacobians, their determinants, and which of their entries the architecture forces to zero.

use super::oracle::{Kind, Spec};

/// Row-major J with `J_ij = d f_i / d x_j`, by central differences of this step.
///
/// 1e-6 is about right in float64 for values near 1: truncation and rounding then both stay near 1e-10.
pub(crate) fn numerical_jacobian(f: impl Fn(&[f64]) -> Vec<f64>, at: &[f64], step: f64) -> Vec<f64> {
    let columns: Vec<Vec<f64>> = (0..at.len())
        .map(|j| {
            let moved = |by: f64| {
                let mut x = at.to_vec();
                x[j] += by;
                f(&x)
            };
            moved(step).iter().zip(moved(-step)).map(|(plus, minus)| (plus - minus) / (2.0 * step)).collect()
        })
        .collect();
    let outputs = columns.first().map_or(0, Vec::len);
    (0..outputs).flat_map(|i| columns.iter().map(move |column| column[i])).collect()
}

/// log|det A| of a row-major n x n matrix, by LU decomposition with partial pivoting; minus infinity where singular.
pub(crate) fn log_abs_det(matrix: &[f64], n: usize) -> f64 {
    assert_eq!(matrix.len(), n * n);
    let mut rows: Vec<Vec<f64>> = matrix.chunks_exact(n.max(1)).map(<[f64]>::to_vec).collect();
    let mut log_det = 0.0;
    for k in 0..n {
        let pivot = (k..n).max_by(|&a, &b| rows[a][k].abs().total_cmp(&rows[b][k].abs())).expect("a row is left");
        rows.swap(k, pivot);
        let (done, below) = rows.split_at_mut(k + 1);
        let top = &done[k];
        if top[k] == 0.0 {
            return f64::NEG_INFINITY;
        }
        log_det += top[k].abs().ln();
        for row in below {
            let factor = row[k] / top[k];
            for j in k..n {
                row[j] -= factor * top[j];
            }
        }
    }
    log_det
}

/// Which entries of the Jacobian of one unmixed block may differ from zero, row-major, latent_dim x latent_dim
/// (two lanes: `[y, x]`). All others must be exactly zero.
///
/// Lower triangular always. Without recursion, the two diagonal squares are diagonal: RealNVP's sparse Jacobian.
/// Each level of recursion fills the lower left corner of each of them; what nodes of 3 or fewer columns hold below
/// the diagonal is filled as far as their own split goes: of 3 columns, the last two never see each other.
pub(crate) fn block_dependence(spec: &Spec) -> Vec<bool> {
    let n = spec.latent_dim();
    let mut may = vec![false; n * n];
    match spec.kind {
        Kind::Flow | Kind::Cinn => fill(spec, &mut may, 0, 0, n),
        Kind::Hint => {
            fill(spec, &mut may, 0, 0, spec.cond_dim);
            fill(spec, &mut may, 0, spec.cond_dim, n);
            for i in spec.cond_dim..n {
                may[i * n..i * n + spec.cond_dim].fill(true);
            }
        }
    }
    may
}

/// Marks what a node of the columns `from..to` makes depend on each other.
fn fill(spec: &Spec, may: &mut [bool], level: usize, from: usize, to: usize) {
    let n = spec.latent_dim();
    let size = to - from;
    let middle = from + size / 2;
    for i in from..to {
        may[i * n + i] = true;
        if i >= middle {
            may[i * n + from..i * n + middle].fill(true);
        }
    }
    if spec.divides(level, size) {
        fill(spec, may, level + 1, from, middle);
        fill(spec, may, level + 1, middle, to);
    }
}

//! The orthogonal Q that begins a block, on one row.

use super::network::{dot, gradient};
use super::spec::{Mixing, Spec, Tensors};

/// Q of one lane of one block; the identity where the block has none.
pub(super) struct Mix<'a> {
    q: Q<'a>,
}

enum Q<'a> {
    Identity,
    /// Row-major.
    Matrix(&'a [f64]),
    /// H_1 H_2 ... H_N; row r is v_r.
    Reflections {
        name: String,
        rows: &'a [f64],
    },
}

impl<'a> Mix<'a> {
    /// Q of the lane called `lane`, as `blocks.0` or `blocks.0.x`.
    pub(super) fn new(spec: &Spec, params: &'a Tensors, lane: &str, block: usize) -> Self {
        let q = match spec.mixing {
            _ if !spec.mixes(block) => Q::Identity,
            Mixing::None => Q::Identity,
            Mixing::Fixed | Mixing::Reverse | Mixing::Permutation => {
                Q::Matrix(&params[&format!("{lane}.mix.weight")].data)
            }
            Mixing::Householder => {
                let name = format!("{lane}.mix.reflections");
                Q::Reflections { rows: &params[&name].data, name }
            }
        };
        Self { q }
    }

    /// Q x.
    pub(super) fn forward(&self, x: &[f64]) -> Vec<f64> {
        let n = x.len();
        match &self.q {
            Q::Identity => x.to_vec(),
            Q::Matrix(q) => (0..n).map(|i| dot(&q[i * n..(i + 1) * n], x)).collect(),
            Q::Reflections { rows, .. } => rows.chunks_exact(n).rev().fold(x.to_vec(), |x, v| reflect(v, &x)),
        }
    }

    /// Q^T u.
    pub(super) fn inverse(&self, u: &[f64]) -> Vec<f64> {
        let n = u.len();
        match &self.q {
            Q::Identity => u.to_vec(),
            Q::Matrix(q) => (0..n).map(|j| (0..n).map(|i| q[i * n + j] * u[i]).sum()).collect(),
            Q::Reflections { rows, .. } => rows.chunks_exact(n).fold(u.to_vec(), |u, v| reflect(v, &u)),
        }
    }

    /// Adds the gradients of reflections to `grads` and returns the gradient of x, for the gradient of Q x.
    pub(super) fn backward(&self, x: &[f64], d_output: &[f64], grads: &mut Tensors) -> Vec<f64> {
        let Q::Reflections { name, rows } = &self.q else {
            return self.inverse(d_output);
        };
        let n = x.len();
        // seen[k] is what the k-th applied reflection sees; H_N is applied first.
        let mut seen = vec![x.to_vec()];
        for v in rows.chunks_exact(n).rev() {
            seen.push(reflect(v, &seen[seen.len() - 1]));
        }
        let d_rows = &mut gradient(grads, name).data;
        let mut d = d_output.to_vec();
        for (r, v) in rows.chunks_exact(n).enumerate() {
            let u = &seen[n - 1 - r];
            // out = u - beta v (v.u) with beta = 2 / v.v, so d beta / dv = -2 beta v / v.v.
            let (vv, vu, vd) = (dot(v, v), dot(v, u), dot(v, &d));
            let beta = 2.0 / vv;
            for k in 0..n {
                d_rows[r * n + k] += beta * (2.0 * vd * vu * v[k] / vv - d[k] * vu - vd * u[k]);
            }
            d = reflect(v, &d);
        }
        d
    }
}

/// (I - 2 v v^T / v.v) u
fn reflect(v: &[f64], u: &[f64]) -> Vec<f64> {
    let factor = 2.0 * dot(v, u) / dot(v, v);
    u.iter().zip(v).map(|(u, v)| u - factor * v).collect()
}

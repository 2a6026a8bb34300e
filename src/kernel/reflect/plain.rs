//! The same one reflection at a time, in f64: what the tests of the CPU and of the GPU engine compare with.
//!
//! `Q = H_1 ... H_N`, `H_r = I - beta_r v_r v_r^T`, `beta_r = 2 / (v_r^T v_r)`. With `M_{N+1} = I` and
//! `M_r = H_r M_{r+1}`, Q is `M_1`.

/// The matrices and vectors of one mixing.
#[derive(Default)]
pub(crate) struct Plain {
    /// Q, row-major `[n, n]`, after [`Plain::product`].
    pub(crate) m: Vec<f64>,
    g: Vec<f64>,
    v: Vec<f64>,
    w: Vec<f64>,
    u: Vec<f64>,
}

impl Plain {
    /// Gradient of the vectors (added to `d_vectors`) from the gradient of Q.
    pub(crate) fn backward(&mut self, n: usize, vectors: &[f32], d_q: &[f64], d_vectors: &mut [f64]) {
        self.product(n, vectors);
        let Self { m, g, v, w, u } = self;
        g.clear();
        g.extend_from_slice(d_q);
        for r in 0..n {
            set(v, &vectors[r * n..(r + 1) * n]);
            let beta = beta(v);
            transposed_times(m, v, w);
            reflect(v, beta, w, m); // now M_{r+1}: a reflection is its own inverse
            transposed_times(m, v, w);
            transposed_times(g, v, u);
            // M_r = M_{r+1} - beta v w^T, so with G = dL/dM_r:
            // dL/dv = -beta (G w + M_{r+1} u) + beta^2 (v^T G w) v.
            let along: f64 = u.iter().zip(w.iter()).map(|(u, w)| u * w).sum();
            for (i, d) in d_vectors[r * n..(r + 1) * n].iter_mut().enumerate() {
                let row = i * n..(i + 1) * n;
                let gw: f64 = g[row.clone()].iter().zip(w.iter()).map(|(g, w)| g * w).sum();
                let mu: f64 = m[row].iter().zip(u.iter()).map(|(m, u)| m * u).sum();
                *d += beta * (beta * along * v[i] - gw - mu);
            }
            reflect(v, beta, u, g); // dL/dM_{r+1} = H_r G
        }
    }

    /// Leaves M_1 in `m`.
    pub(crate) fn product(&mut self, n: usize, vectors: &[f32]) {
        let Self { m, v, w, .. } = self;
        m.clear();
        m.resize(n * n, 0.0);
        (0..n).for_each(|i| m[i * n + i] = 1.0);
        for vector in vectors.chunks_exact(n).rev() {
            set(v, vector);
            transposed_times(m, v, w);
            reflect(v, beta(v), w, m);
        }
    }
}

fn set(v: &mut Vec<f64>, vector: &[f32]) {
    v.clear();
    v.extend(vector.iter().map(|&v| f64::from(v)));
}

/// `2 / v^T v`, or 0 for the zero vector.
fn beta(v: &[f64]) -> f64 {
    let square: f64 = v.iter().map(|v| v * v).sum();
    if square > 0.0 { 2.0 / square } else { 0.0 }
}

/// `w = m^T v`.
fn transposed_times(m: &[f64], v: &[f64], w: &mut Vec<f64>) {
    w.clear();
    w.resize(v.len(), 0.0);
    for (row, &v) in m.chunks_exact(v.len()).zip(v) {
        w.iter_mut().zip(row).for_each(|(w, m)| *w += m * v);
    }
}

/// `m <- (I - beta v v^T) m` for `w = m^T v`.
fn reflect(v: &[f64], beta: f64, w: &[f64], m: &mut [f64]) {
    for (row, &v) in m.chunks_exact_mut(v.len()).zip(v) {
        row.iter_mut().zip(w).for_each(|(m, w)| *m -= beta * v * w);
    }
}

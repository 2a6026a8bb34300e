//! `Reflect`: Q as a product of Householder reflections (spec, section 3), and the gradient of their vectors.
//!
//! `Q = H_1 ... H_N`, `H_r = I - beta_r v_r v_r^T`, `beta_r = 2 / (v_r^T v_r)`. With `M_{N+1} = I` and
//! `M_r = H_r M_{r+1}`, Q is `M_1`. All of it in f64: it is done once per step, and orthogonality errors would
//! accumulate over the blocks.

/// Room for the matrices and vectors of one mixing; it grows with the first use and is then used again.
#[derive(Default)]
pub(crate) struct Reflections {
    m: Vec<f64>,
    g: Vec<f64>,
    v: Vec<f64>,
    w: Vec<f64>,
    u: Vec<f64>,
}

impl Reflections {
    /// Q, row-major `[n, n]`, of the reflection vectors, row-major `[n, n]` (row r is v_r). A zero vector reflects
    /// nothing.
    pub(crate) fn forward(&mut self, n: usize, vectors: &[f32], q: &mut [f32]) {
        self.product(n, vectors);
        for (q, m) in q.iter_mut().zip(&self.m) {
            *q = *m as f32;
        }
    }

    /// Gradient of the vectors (added to `d_vectors`) from the gradient of Q.
    pub(crate) fn backward(
        &mut self,
        n: usize,
        vectors: &[f32],
        d_q: impl Iterator<Item = f64>,
        d_vectors: &mut [f32],
    ) {
        self.product(n, vectors);
        let Self { m, g, v, w, u } = self;
        g.clear();
        g.extend(d_q);
        assert_eq!(g.len(), n * n);
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
                *d += (beta * (beta * along * v[i] - gw - mu)) as f32;
            }
            reflect(v, beta, u, g); // dL/dM_{r+1} = H_r G
        }
    }

    /// Leaves M_1 in `m`.
    fn product(&mut self, n: usize, vectors: &[f32]) {
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

#[cfg(test)]
mod tests {
    use approx::abs_diff_eq;

    use super::*;

    fn numbers(n: usize, seed: u64) -> Vec<f32> {
        let mut out = vec![0.0; n];
        crate::rng::fill_normals(seed, crate::rng::Stream::Mixing, 0, 0, &mut out);
        out
    }

    #[test]
    fn gradient_agrees_with_finite_differences() {
        for n in [1, 2, 5, 8] {
            let vectors = numbers(n * n, 1);
            let weight = numbers(n * n, 2);
            let value = |vectors: &[f32]| -> f64 {
                let mut reflections = Reflections::default();
                reflections.product(n, vectors);
                reflections.m.iter().zip(&weight).map(|(q, &w)| q * f64::from(w)).sum()
            };
            let mut got = vec![0.0; n * n];
            Reflections::default().backward(n, &vectors, weight.iter().map(|&w| f64::from(w)), &mut got);
            for i in 0..n * n {
                let step = 2.0f32.powi(-8);
                let moved = |by: f32| {
                    let mut v = vectors.clone();
                    v[i] += by;
                    value(&v)
                };
                // Fourth-order differences: the step must be large to be exact in f32.
                let (h, s) = (f64::from(step), |k: f32| moved(k * step) - moved(-k * step));
                let want = (8.0 * s(1.0) - s(2.0)) / (12.0 * h);
                assert!(abs_diff_eq!(f64::from(got[i]), want, epsilon = 1e-5), "n = {n}, {i}: {} or {want}", got[i]);
            }
        }
    }

    #[test]
    fn a_zero_vector_reflects_nothing() {
        let mut q = vec![9.0; 4];
        let mut reflections = Reflections::default();
        reflections.forward(2, &[0.0; 4], &mut q);
        assert_eq!(q, [1.0, 0.0, 0.0, 1.0]);
        let mut d = vec![0.0; 4];
        reflections.backward(2, &[0.0; 4], [1.0; 4].into_iter(), &mut d);
        assert_eq!(d, [0.0; 4]);
    }
}

//! `Reflect`: Q as a product of Householder reflections (spec, section 3), and the gradient of their vectors.
//!
//! `Q = H_1 ... H_N`, `H_r = I - beta_r v_r v_r^T`, `beta_r = 2 / (v_r^T v_r)`. With `M_{N+1} = I` and `M_r = H_r M_{r+1}`,
//! Q is `M_1`. All of it in f64: it is done once per step, and orthogonality errors would accumulate over the blocks.

/// Q, row-major `[n, n]`, of the reflection vectors, row-major `[n, n]` (row r is v_r). A zero vector reflects nothing.
pub(crate) fn forward(n: usize, vectors: &[f32], q: &mut [f32]) {
    let mut m = product(n, vectors);
    for (q, m) in q.iter_mut().zip(m.drain(..)) {
        *q = m as f32;
    }
}

fn product(n: usize, vectors: &[f32]) -> Vec<f64> {
    let mut m = vec![0.0; n * n];
    (0..n).for_each(|i| m[i * n + i] = 1.0);
    for r in (0..n).rev() {
        reflect(n, &vector(n, vectors, r), &mut m);
    }
    m
}

fn vector(n: usize, vectors: &[f32], r: usize) -> Vec<f64> {
    vectors[r * n..(r + 1) * n].iter().map(|&v| f64::from(v)).collect()
}

/// `2 / v^T v`, or 0 for the zero vector.
fn beta(v: &[f64]) -> f64 {
    let square: f64 = v.iter().map(|v| v * v).sum();
    if square > 0.0 { 2.0 / square } else { 0.0 }
}

/// `m^T v`.
fn transposed_times(n: usize, m: &[f64], v: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; n];
    for (row, &v) in m.chunks_exact(n).zip(v) {
        out.iter_mut().zip(row).for_each(|(o, m)| *o += m * v);
    }
    out
}

/// `m <- (I - beta v v^T) m`.
fn reflect(n: usize, v: &[f64], m: &mut [f64]) {
    let (beta, w) = (beta(v), transposed_times(n, m, v));
    for (row, &v) in m.chunks_exact_mut(n).zip(v) {
        row.iter_mut().zip(&w).for_each(|(m, w)| *m -= beta * v * w);
    }
}

/// Gradient of the vectors (added to `d_vectors`) from the gradient of Q.
pub(crate) fn backward(n: usize, vectors: &[f32], d_q: &[f32], d_vectors: &mut [f32]) {
    let mut m = product(n, vectors);
    let mut g: Vec<f64> = d_q.iter().map(|&g| f64::from(g)).collect();
    for r in 0..n {
        let v = vector(n, vectors, r);
        let beta = beta(&v);
        reflect(n, &v, &mut m); // now M_{r+1}: a reflection is its own inverse
        let w = transposed_times(n, &m, &v);
        let u = transposed_times(n, &g, &v);
        // M_r = M_{r+1} - beta v w^T, so with G = dL/dM_r:
        // dL/dv = -beta (G w + M_{r+1} u) + beta^2 (v^T G w) v.
        let along: f64 = u.iter().zip(&w).map(|(u, w)| u * w).sum();
        for (i, d) in d_vectors[r * n..(r + 1) * n].iter_mut().enumerate() {
            let row = i * n..(i + 1) * n;
            let gw: f64 = g[row.clone()].iter().zip(&w).map(|(g, w)| g * w).sum();
            let mu: f64 = m[row].iter().zip(&u).map(|(m, u)| m * u).sum();
            *d += (beta * (beta * along * v[i] - gw - mu)) as f32;
        }
        reflect(n, &v, &mut g); // dL/dM_{r+1} = H_r G
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
                product(n, vectors).iter().zip(&weight).map(|(q, &w)| q * f64::from(w)).sum()
            };
            let mut got = vec![0.0; n * n];
            backward(n, &vectors, &weight, &mut got);
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
        forward(2, &[0.0; 4], &mut q);
        assert_eq!(q, [1.0, 0.0, 0.0, 1.0]);
        let mut d = vec![0.0; 4];
        backward(2, &[0.0; 4], &[1.0; 4], &mut d);
        assert_eq!(d, [0.0; 4]);
    }
}

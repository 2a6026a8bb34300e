//! Random models and rows for tests that need no fixture. Every number is a float32, so that an engine gets the same.

use std::f64::consts::PI;

use super::oracle::{Kind, Mixing, Model, Scale, Spec, Tensor};

/// SplitMix64: small, and the same numbers on every platform for ever.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// The stream of a seed.
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Uniform in (0, 1), never 0.
    pub(crate) fn uniform(&mut self) -> f64 {
        ((self.next() >> 12) as f64 + 0.5) / (1_u64 << 52) as f64
    }

    /// N(0, 1), by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (2.0 * PI * self.uniform()).cos()
    }

    /// `count` values of N(0, sigma^2), rounded to float32.
    pub(crate) fn normals(&mut self, count: usize, sigma: f64) -> Vec<f64> {
        (0..count).map(|_| to_f32(sigma * self.normal())).collect()
    }

    /// `count` values of mean 0 and standard deviation sigma, none beyond 1.74 sigma, rounded to float32.
    pub(crate) fn uniforms(&mut self, count: usize, sigma: f64) -> Vec<f64> {
        (0..count).map(|_| to_f32(sigma * 12.0_f64.sqrt() * (self.uniform() - 0.5))).collect()
    }
}

/// A model whose couplings are clearly nonlinear and that is yet tame enough for float32.
///
/// Scales multiply over blocks and levels, and what has grown makes the next scale grow: with the same gain in every
/// coupling, four blocks of 20 columns reach 1e10. So the last layers share a fixed budget between all couplings
/// that a column passes through, and weights are uniform: in networks of width 1 the tails of a normal run away.
/// Seen over widths 3 and 32, up to four blocks, and six seeds: |z| stays below 60 for x ~ N(0, 1) (exp: 260).
pub(crate) fn random_model(seed: u64, spec: Spec) -> Model {
    let mut rng = Rng::new(seed);
    let share = 1.0 / ((spec.blocks * couplings_of_a_column(&spec)) as f64).sqrt();
    let slope = match spec.scale {
        Scale::Atan { slope } => slope,
        Scale::Exp => 1.0,
    };
    let random = |(name, shape): (String, Vec<usize>)| {
        let count = shape.iter().product();
        let fan_in = if shape.len() == 2 { shape[1].max(1) } else { 1 } as f64;
        let data = match name.rsplit('.').take(3).collect::<Vec<_>>()[..] {
            ["weight", "mix", ..] => match spec.mixing {
                Mixing::Reverse => ones(&(0..shape[0]).rev().collect::<Vec<_>>()),
                Mixing::Permutation => ones(&random_permutation(&mut rng, shape[0])),
                _ => random_orthogonal(&mut rng, shape[0]),
            },
            ["reflections", ..] => rng.normals(count, 1.0),
            ["weight", "2", "s"] => rng.uniforms(count, 0.7 * share / slope / fan_in.sqrt()),
            ["weight", "2", "t"] => rng.uniforms(count, 0.7 * share / fan_in.sqrt()),
            // Values cannot run away, since splines keep to their box; slopes can, and steep ones lose the digits of an
            // inverse in float32.
            ["weight", "2", "spline"] => rng.uniforms(count, 0.3 * share / fan_in.sqrt()),
            ["bias", "2", "spline"] => rng.uniforms(count, 0.3 * share),
            ["weight", ..] => rng.uniforms(count, 1.2 / fan_in.sqrt()),
            ["bias", "2", "s"] => rng.uniforms(count, 0.3 * share / slope),
            _ => rng.uniforms(count, 0.3),
        };
        (name, Tensor { shape, data })
    };
    let params = spec.shapes().into_iter().map(random).collect();
    Model::new(spec, params)
}

/// Couplings that the last column of the wider lane passes through in one block: one a level, one more between lanes.
fn couplings_of_a_column(spec: &Spec) -> usize {
    let widest_lane = if spec.kind == Kind::Hint { spec.dim.max(spec.cond_dim) } else { spec.dim };
    let (mut level, mut size) = (0, widest_lane);
    while spec.divides(level, size) {
        (level, size) = (level + 1, size - size / 2);
    }
    level + spec.lanes()
}

/// An orthogonal matrix (orthogonal up to float32 rounding) by Gram and Schmidt on Gaussian rows.
pub(crate) fn random_orthogonal(rng: &mut Rng, n: usize) -> Vec<f64> {
    let mut rows: Vec<Vec<f64>> = Vec::new();
    while rows.len() < n {
        let mut row: Vec<f64> = (0..n).map(|_| rng.normal()).collect();
        // Twice, as once loses orthogonality where the row is nearly in the span of the others.
        for _ in 0..2 {
            for other in &rows {
                let along: f64 = row.iter().zip(other).map(|(a, b)| a * b).sum();
                row.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let norm = row.iter().map(|a| a * a).sum::<f64>().sqrt();
        row.iter_mut().for_each(|a| *a /= norm);
        rows.push(row);
    }
    rows.concat().into_iter().map(to_f32).collect()
}

/// A random order of n columns.
fn random_permutation(rng: &mut Rng, n: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..n).collect();
    for i in (1..n).rev() {
        order.swap(i, (rng.uniform() * (i + 1) as f64) as usize);
    }
    order
}

/// The matrix whose i-th row takes column `order[i]`, row-major.
fn ones(order: &[usize]) -> Vec<f64> {
    order.iter().flat_map(|&column| (0..order.len()).map(move |j| f64::from(u8::from(j == column)))).collect()
}

/// `count` rows (x, y) of N(0, 1), each with every ReLU input further than `margin` from 0, and every knot of a spline
/// as far from what it bends.
///
/// Gradients jump at a kink, so neither finite differences nor a float32 engine can be held to them there.
pub(crate) fn random_rows(model: &Model, seed: u64, count: usize, margin: f64) -> (Vec<f64>, Vec<f64>) {
    let mut rng = Rng::new(seed);
    let (mut rows_x, mut rows_y) = (Vec::new(), Vec::new());
    let mut accepted = 0;
    for _ in 0..1000 * count {
        if accepted == count {
            break;
        }
        let x = rng.normals(model.spec.dim, 1.0);
        let y = rng.normals(model.spec.cond_dim, 1.0);
        if model.min_kink_margin(&x, &y) > margin {
            rows_x.extend(x);
            rows_y.extend(y);
            accepted += 1;
        }
    }
    assert_eq!(accepted, count, "too few rows keep a margin of {margin} to the kinks; ask for a smaller one");
    (rows_x, rows_y)
}

/// The nearest float32.
pub(crate) fn to_f32(value: f64) -> f64 {
    f64::from(value as f32)
}

//! `Couple`: the affine maps of a stage, their log-determinant, inverse and backward (spec, section 1).

use super::Shape;
use super::math::{atan, exp};
use super::simd::{self, Kernel, Simd};
use crate::plan::{Link, Scale, Stage};

/// Log-scale function, chosen once per kernel call so that the loops are branch-free.
trait LogScale: Copy {
    /// `sigma(a)`.
    fn value(self, a: f32) -> f32;
    /// `sigma'(a)`.
    fn slope(self, a: f32) -> f32;
}

#[derive(Clone, Copy)]
struct Atan(f32);

impl LogScale for Atan {
    #[inline(always)]
    fn value(self, a: f32) -> f32 {
        self.0 * atan(a)
    }
    #[inline(always)]
    fn slope(self, a: f32) -> f32 {
        self.0 / (1.0 + a * a)
    }
}

#[derive(Clone, Copy)]
struct Identity;

impl LogScale for Identity {
    #[inline(always)]
    fn value(self, a: f32) -> f32 {
        a
    }
    #[inline(always)]
    fn slope(self, _: f32) -> f32 {
        1.0
    }
}

/// Runs the kernel that `$kernel` makes of the log-scale function of `$scale`.
macro_rules! run_with {
    ($scale:expr, $sigma:ident => $kernel:expr) => {
        match $scale {
            Scale::Atan { slope } => {
                let $sigma = Atan(slope);
                simd::run($kernel);
            }
            Scale::Exp => {
                let $sigma = Identity;
                simd::run($kernel);
            }
        }
    };
}

/// `to` = every column of `x` through its chain; adds `sum sigma(s)` to `log_det`.
pub(crate) fn forward(
    shape: Shape,
    stage: &Stage,
    scale: Scale,
    x: &[f32],
    st: &[f32],
    to: &mut [f32],
    log_det: &mut [f32],
) {
    run_with!(scale, sigma => Forward { shape, stage, sigma, x, st, to, log_det });
}

struct Forward<'a, L> {
    shape: Shape,
    stage: &'a Stage,
    sigma: L,
    x: &'a [f32],
    st: &'a [f32],
    to: &'a mut [f32],
    log_det: &'a mut [f32],
}

impl<L: LogScale> Kernel for Forward<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, sigma, .. } = self;
        let log_det = shape.row_mut(self.log_det, 0);
        for (c, chain) in self.stage.chains.iter().enumerate() {
            let column = shape.row_mut(self.to, c);
            column.copy_from_slice(shape.row(self.x, c));
            for link in chain {
                let (s, t) = rows(shape, self.st, *link);
                for (((v, j), &s), &t) in column.iter_mut().zip(log_det.iter_mut()).zip(s).zip(t) {
                    let log_scale = sigma.value(s);
                    *v = *v * exp(log_scale) + t;
                    *j += log_scale;
                }
            }
            // An unbounded scale may overflow where there is no sample, and 0 * infinity would reach the gradients.
            column[shape.rows..].fill(0.0);
        }
    }
}

/// Rows of s and t.
#[inline(always)]
fn rows(shape: Shape, st: &[f32], link: Link) -> (&[f32], &[f32]) {
    (shape.row(st, link.s as usize), shape.row(st, link.t as usize))
}

/// Inverts the chains of all columns in place.
pub(crate) fn inverse(shape: Shape, stage: &Stage, scale: Scale, x: &mut [f32], st: &[f32]) {
    for (c, chain) in stage.chains.iter().enumerate() {
        for link in chain.iter().rev() {
            link_inverse(shape, *link, scale, shape.row_mut(x, c), st);
        }
    }
}

/// Inverts one affine map of one column: `v <- (v - t) * exp(-sigma(s))`.
pub(crate) fn link_inverse(shape: Shape, link: Link, scale: Scale, column: &mut [f32], st: &[f32]) {
    let (s, t) = rows(shape, st, link);
    run_with!(scale, sigma => LinkInverse { shape, sigma, column, s, t });
}

struct LinkInverse<'a, L> {
    shape: Shape,
    sigma: L,
    column: &'a mut [f32],
    s: &'a [f32],
    t: &'a [f32],
}

impl<L: LogScale> Kernel for LinkInverse<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        for ((v, &s), &t) in self.column.iter_mut().zip(self.s).zip(self.t) {
            *v = (*v - t) * exp(-self.sigma.value(s));
        }
        // See `Forward`: in a reversible training, gradients follow.
        self.column[self.shape.rows..].fill(0.0);
    }
}

/// Buffers of the backward pass.
pub(crate) struct Buffers<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) st: &'a [f32],
    pub(crate) d_to: &'a [f32],
    pub(crate) d_log_det: &'a [f32],
    pub(crate) d_x: &'a mut [f32],
    pub(crate) d_st: &'a mut [f32],
}

/// Writes the gradients of `x` and `st`.
pub(crate) fn backward(shape: Shape, stage: &Stage, scale: Scale, buffers: Buffers<'_>) {
    run_with!(scale, sigma => Backward { shape, stage, sigma, buffers });
}

struct Backward<'a, L> {
    shape: Shape,
    stage: &'a Stage,
    sigma: L,
    buffers: Buffers<'a>,
}

impl<L: LogScale> Kernel for Backward<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, stage, sigma, buffers: b } = self;
        let d_log_det = shape.row(b.d_log_det, 0);
        for (c, chain) in stage.chains.iter().enumerate() {
            // Forward once more: every link needs the value that went into it. It is parked where d_s will be.
            let column = shape.row_mut(b.d_x, c);
            column.copy_from_slice(shape.row(b.x, c));
            for link in chain {
                let (s, t) = rows(shape, b.st, *link);
                shape.row_mut(b.d_st, link.s as usize).copy_from_slice(column);
                for ((v, &s), &t) in column.iter_mut().zip(s).zip(t) {
                    *v = *v * exp(sigma.value(s)) + t;
                }
            }
            column.copy_from_slice(shape.row(b.d_to, c));
            for link in chain.iter().rev() {
                let (s, _) = rows(shape, b.st, *link);
                shape.row_mut(b.d_st, link.t as usize).copy_from_slice(column);
                let d_s = shape.row_mut(b.d_st, link.s as usize);
                for (((g, d), &s), &j) in column.iter_mut().zip(d_s.iter_mut()).zip(s).zip(d_log_det) {
                    let scaled = *g * exp(sigma.value(s));
                    *d = (scaled * *d + j) * sigma.slope(s);
                    *g = scaled;
                }
                // See `Forward`: padding has no gradient.
                d_s[shape.rows..].fill(0.0);
                column[shape.rows..].fill(0.0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Plan, Spec};

    /// Padding samples whose scale overflows must not reach the gradients.
    #[test]
    fn padding_stays_finite_and_without_gradient() {
        let spec = Spec { dim: 2, blocks: 1, width: 4, scale: Scale::Exp, ..Spec::default() };
        let stage = &Plan::new(&spec).unwrap().stages[0];
        let shape = Shape { stride: 16, width: 16, rows: 3 };
        let st = vec![200.0; stage.st_rows as usize * 16];
        let (mut to, mut log_det) = (vec![1.0; 32], vec![0.0; 16]);
        forward(shape, stage, spec.scale, &[0.0; 32], &st, &mut to, &mut log_det);
        assert!(to[3..16].iter().chain(&to[19..]).all(|&v| v == 0.0));
        // On the way back of a reversible training it is the other sign that overflows.
        let mut back = [1.0; 32];
        inverse(shape, stage, spec.scale, &mut back, &vec![-200.0; st.len()]);
        assert!(stage.chains.iter().zip(back.chunks(16)).all(|(chain, row)| chain.is_empty() || row[3..] == [0.0; 13]));
        let (mut d_x, mut d_st) = (vec![9.0; 32], vec![9.0; st.len()]);
        let [d_to, d_log_det] = [vec![0.0; 32], vec![0.0; 16]];
        let (d_to, d_log_det) = (&d_to, &d_log_det);
        backward(
            shape,
            stage,
            spec.scale,
            Buffers { x: &[1.0; 32], st: &st, d_to, d_log_det, d_x: &mut d_x, d_st: &mut d_st },
        );
        for row in d_x.chunks_exact(16).chain(d_st.chunks_exact(16)) {
            assert!(row[3..].iter().all(|&v| v == 0.0), "{row:?}");
        }
    }
}

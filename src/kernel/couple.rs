//! `Couple`: the affine maps of a stage, their log-determinant, inverse and backward (spec, section 1).

use super::Shape;
use super::math::{atan, exp};
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

/// Runs `$body` with `$sigma` bound to the log-scale function of `$scale`.
macro_rules! with_scale {
    ($scale:expr, $sigma:ident => $body:expr) => {
        match $scale {
            Scale::Atan { slope } => {
                let $sigma = Atan(slope);
                $body
            }
            Scale::Exp => {
                let $sigma = Identity;
                $body
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
    let log_det = shape.row_mut(log_det, 0);
    for (c, chain) in stage.chains.iter().enumerate() {
        let column = shape.row_mut(to, c);
        column.copy_from_slice(shape.row(x, c));
        for link in chain {
            let (s, t) = rows(shape, st, *link);
            with_scale!(scale, sigma => affine(sigma, s, t, column, log_det));
        }
    }
}

/// Rows of s and t.
fn rows(shape: Shape, st: &[f32], link: Link) -> (&[f32], &[f32]) {
    (shape.row(st, link.s as usize), shape.row(st, link.t as usize))
}

fn affine(sigma: impl LogScale, s: &[f32], t: &[f32], column: &mut [f32], log_det: &mut [f32]) {
    for (((v, j), &s), &t) in column.iter_mut().zip(log_det).zip(s).zip(t) {
        let log_scale = sigma.value(s);
        *v = *v * exp(log_scale) + t;
        *j += log_scale;
    }
}

/// Inverts the chains of the columns `columns` in place.
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
    with_scale!(scale, sigma => {
        for ((v, &s), &t) in column.iter_mut().zip(s).zip(t) {
            *v = (*v - t) * exp(-sigma.value(s));
        }
    });
}

/// Buffers of the backward pass.
pub(crate) struct Backward<'a> {
    pub(crate) x: &'a [f32],
    pub(crate) st: &'a [f32],
    pub(crate) d_to: &'a [f32],
    pub(crate) d_log_det: &'a [f32],
    pub(crate) d_x: &'a mut [f32],
    pub(crate) d_st: &'a mut [f32],
}

/// Writes the gradients of `x` and `st`.
pub(crate) fn backward(shape: Shape, stage: &Stage, scale: Scale, b: Backward<'_>) {
    let d_log_det = shape.row(b.d_log_det, 0);
    for (c, chain) in stage.chains.iter().enumerate() {
        // Forward once more: every link needs the value that went into it. It is parked where d_s will be.
        let column = shape.row_mut(b.d_x, c);
        column.copy_from_slice(shape.row(b.x, c));
        for link in chain {
            let (s, t) = rows(shape, b.st, *link);
            shape.row_mut(b.d_st, link.s as usize).copy_from_slice(column);
            with_scale!(scale, sigma => {
                for ((v, &s), &t) in column.iter_mut().zip(s).zip(t) {
                    *v = *v * exp(sigma.value(s)) + t;
                }
            });
        }
        column.copy_from_slice(shape.row(b.d_to, c));
        for link in chain.iter().rev() {
            let (s, _) = rows(shape, b.st, *link);
            shape.row_mut(b.d_st, link.t as usize).copy_from_slice(column);
            let d_s = shape.row_mut(b.d_st, link.s as usize);
            with_scale!(scale, sigma => {
                for (((g, d), &s), &j) in column.iter_mut().zip(d_s).zip(s).zip(d_log_det) {
                    let scaled = *g * exp(sigma.value(s));
                    *d = (scaled * *d + j) * sigma.slope(s);
                    *g = scaled;
                }
            });
        }
    }
}

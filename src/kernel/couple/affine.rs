//! Affine maps, `v <- v exp(sigma(s)) + t` (docs/model.md, Couplings): every column goes through its chain.
//!
//! Columns go through their chains one by one. Sixteen samples through all columns, then the next sixteen, took cross4
//! 54 ms forward and 74 ms backward instead of 19 and 41: every access was to another row of the arena.
//!
//! The backward pass keeps each link's scale from its own forward pass, which saves a third of the exponentials and arc
//! tangents. It parks nothing of a chain's last link, and copies columns that have no chain: from 41 to 35 ms backward
//! with all levels in one stage, from 61 to 38 ms with a stage for each. The next column's rows, which have long left
//! the cache, are fetched while a column is computed: with all levels in one stage from 19 to 14 ms forward and from 35
//! to 31 ms backward.

use super::super::math::{LaneArray, atan, exp, fma, lanes, lanes_mut};
use super::super::memory::fetch;
use super::super::simd::{self, Kernel, Simd};
use super::super::{LANES, Shape};
use super::Gradients;
use crate::plan::{Link, Node, Scale, Stage};

/// Which parameter of a link is s.
const S_ROW: u32 = 0;
/// Which one is t.
const T_ROW: u32 = 1;

/// Log-scale function, chosen once per kernel call so that the loops are branch-free.
trait LogScale: Copy {
    /// `sigma(a)`.
    fn value<S: Simd>(self, a: f32) -> f32;
    /// `sigma'(a)`.
    fn slope<S: Simd>(self, a: f32) -> f32;
}

#[derive(Clone, Copy)]
struct Atan(f32);

impl LogScale for Atan {
    #[inline(always)]
    fn value<S: Simd>(self, a: f32) -> f32 {
        self.0 * atan::<S>(a)
    }
    #[inline(always)]
    fn slope<S: Simd>(self, a: f32) -> f32 {
        self.0 / fma::<S>(a, a, 1.0)
    }
}

#[derive(Clone, Copy)]
struct Identity;

impl LogScale for Identity {
    #[inline(always)]
    fn value<S: Simd>(self, a: f32) -> f32 {
        a
    }
    #[inline(always)]
    fn slope<S: Simd>(self, _: f32) -> f32 {
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
pub(super) fn forward(
    shape: Shape,
    stage: &Stage,
    scale: Scale,
    x: &[f32],
    st: &[f32],
    to: &mut [f32],
    log_det: &mut [f32],
) {
    run_with!(scale, sigma => Forward { shape, stage, sigma, x, st, to, log_det });
    // An unbounded scale may overflow in places without a sample, and 0 * infinity would reach the gradients.
    shape.clear_padding(to);
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
        let Self { shape, stage: Stage { chains, .. }, sigma, .. } = self;
        // Column by column: rows are read from their beginning to their end.
        for (c, chain) in chains.iter().enumerate() {
            if chain.is_empty() {
                shape.row_mut(self.to, c).copy_from_slice(shape.row(self.x, c));
                continue;
            }
            let next = chains.get(c + 1).map_or(&[][..], Vec::as_slice);
            for at in (0..shape.width).step_by(LANES) {
                for row in next.iter().flat_map(|link| [link.row(S_ROW), link.row(T_ROW)]) {
                    fetch(self.st, row as usize * shape.stride + at);
                }
                let mut j = *lanes(self.log_det, at);
                let mut v = *lanes(self.x, c * shape.stride + at);
                for link in chain {
                    let [s, t] = st_lanes(shape, self.st, *link, at);
                    for i in 0..LANES {
                        let log_scale = sigma.value::<S>(s[i]);
                        v[i] = fma::<S>(v[i], exp::<S>(log_scale), t[i]);
                        j[i] += log_scale;
                    }
                }
                *lanes_mut(self.to, c * shape.stride + at) = v;
                *lanes_mut(self.log_det, at) = j;
            }
        }
    }
}

/// Lanes of s and t.
#[inline(always)]
fn st_lanes(shape: Shape, st: &[f32], link: Link, at: usize) -> [&LaneArray; 2] {
    [S_ROW, T_ROW].map(|parameter| link.row(parameter)).map(|row| lanes(st, row as usize * shape.stride + at))
}

/// Inverts the chains of all columns in place.
pub(super) fn inverse(shape: Shape, stage: &Stage, scale: Scale, x: &mut [f32], st: &[f32]) {
    for (c, chain) in stage.chains.iter().enumerate() {
        for link in chain.iter().rev() {
            link_inverse(shape, *link, scale, shape.row_mut(x, c), st);
        }
    }
}

/// Inverts the maps of one node in place.
pub(super) fn node_inverse(shape: Shape, node: &Node, scale: Scale, x: &mut [f32], st: &[f32]) {
    for j in 0..node.lower {
        let link = Link { first: node.st + j, step: node.outputs };
        link_inverse(shape, link, scale, shape.row_mut(x, (node.lower_first + j) as usize), st);
    }
}

/// Inverts one affine map of one column: `v <- (v - t) * exp(-sigma(s))`.
fn link_inverse(shape: Shape, link: Link, scale: Scale, column: &mut [f32], st: &[f32]) {
    run_with!(scale, sigma => LinkInverse { shape, sigma, column, link, st });
}

struct LinkInverse<'a, L> {
    shape: Shape,
    sigma: L,
    column: &'a mut [f32],
    link: Link,
    st: &'a [f32],
}

impl<L: LogScale> Kernel for LinkInverse<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        for at in (0..self.shape.width).step_by(LANES) {
            let [s, t] = st_lanes(self.shape, self.st, self.link, at);
            let v = lanes_mut(self.column, at);
            for i in 0..LANES {
                v[i] = (v[i] - t[i]) * exp::<S>(-self.sigma.value::<S>(s[i]));
            }
        }
        // See `Forward`: in a reversible training, gradients follow.
        self.column[self.shape.rows..].fill(0.0);
    }
}

/// Backward of [`inverse`], `x = (v - t) exp(-sigma(s))`: writes the gradients of v, `d_from`, and of `st`.
pub(super) fn inverse_backward(
    shape: Shape,
    stage: &Stage,
    scale: Scale,
    [x, st, d_x]: [&[f32]; 3],
    [d_from, d_st]: [&mut [f32]; 2],
) {
    run_with!(scale, sigma => InverseBackward { shape, stage, sigma, x, st, d_x, d_from: &mut *d_from, d_st: &mut *d_st });
    // See `forward`: padding has no gradient.
    shape.clear_padding(d_from);
    shape.clear_padding(d_st);
}

struct InverseBackward<'a, L> {
    shape: Shape,
    stage: &'a Stage,
    sigma: L,
    x: &'a [f32],
    st: &'a [f32],
    d_x: &'a [f32],
    d_from: &'a mut [f32],
    d_st: &'a mut [f32],
}

impl<L: LogScale> Kernel for InverseBackward<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, stage: Stage { chains, .. }, sigma, .. } = self;
        for (c, chain) in chains.iter().enumerate() {
            let &[link] = &chain[..] else {
                assert!(chain.is_empty(), "a column has one map at most");
                shape.row_mut(self.d_from, c).copy_from_slice(shape.row(self.d_x, c));
                continue;
            };
            for at in (0..shape.width).step_by(LANES) {
                let place = |row: u32| row as usize * shape.stride + at;
                let s = lanes(self.st, place(link.row(S_ROW)));
                let x = lanes(self.x, c * shape.stride + at);
                let d_x = lanes(self.d_x, c * shape.stride + at);
                let d_from = lanes_mut(self.d_from, c * shape.stride + at);
                for i in 0..LANES {
                    d_from[i] = d_x[i] * exp::<S>(-sigma.value::<S>(s[i]));
                }
                let d_s = lanes_mut(self.d_st, place(link.row(S_ROW)));
                for i in 0..LANES {
                    d_s[i] = -(d_x[i] * x[i]) * sigma.slope::<S>(s[i]);
                }
                let d_t = lanes_mut(self.d_st, place(link.row(T_ROW)));
                for i in 0..LANES {
                    d_t[i] = -d_from[i];
                }
            }
        }
    }
}

/// Writes the gradients of `x` and `st`.
pub(super) fn backward(shape: Shape, stage: &Stage, scale: Scale, buffers: Gradients<'_>) {
    let Gradients { x, st, d_to, d_log_det, d_x, d_st } = buffers;
    run_with!(scale, sigma => Backward {
        shape, stage, sigma, buffers: Gradients { x, st, d_to, d_log_det, d_x: &mut *d_x, d_st: &mut *d_st }
    });
    // See `forward`: padding has no gradient.
    shape.clear_padding(d_x);
    shape.clear_padding(d_st);
}

struct Backward<'a, L> {
    shape: Shape,
    stage: &'a Stage,
    sigma: L,
    buffers: Gradients<'a>,
}

impl<L: LogScale> Kernel for Backward<'_, L> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, stage: Stage { chains, .. }, sigma, buffers: b } = self;
        let place = |row: u32, at: usize| row as usize * shape.stride + at;
        for (c, chain) in chains.iter().enumerate() {
            let Some((last, earlier)) = chain.split_last() else {
                shape.row_mut(b.d_x, c).copy_from_slice(shape.row(b.d_to, c));
                continue;
            };
            let next = chains.get(c + 1).map_or(&[][..], Vec::as_slice);
            for at in (0..shape.width).step_by(LANES) {
                if !next.is_empty() {
                    fetch(b.x, (c + 1) * shape.stride + at);
                }
                for link in next {
                    fetch(b.st, place(link.row(S_ROW), at));
                }
                let d_log_det = lanes(b.d_log_det, at);
                // Forward once more: every link needs its scale and the value that went into it. All but those of the
                // last are parked where the link's d_t and d_s will be.
                let mut v = *lanes(b.x, c * shape.stride + at);
                for link in earlier {
                    let [s, t] = st_lanes(shape, b.st, *link, at);
                    *lanes_mut(b.d_st, place(link.row(S_ROW), at)) = v;
                    let scale = lanes_mut(b.d_st, place(link.row(T_ROW), at));
                    for i in 0..LANES {
                        scale[i] = exp::<S>(sigma.value::<S>(s[i]));
                        v[i] = fma::<S>(v[i], scale[i], t[i]);
                    }
                }
                let mut g = *lanes(b.d_to, c * shape.stride + at);
                *lanes_mut(b.d_st, place(last.row(T_ROW), at)) = g;
                let s = lanes(b.st, place(last.row(S_ROW), at));
                let d_s = lanes_mut(b.d_st, place(last.row(S_ROW), at));
                for i in 0..LANES {
                    g[i] *= exp::<S>(sigma.value::<S>(s[i]));
                    d_s[i] = fma::<S>(g[i], v[i], d_log_det[i]) * sigma.slope::<S>(s[i]);
                }
                for link in earlier.iter().rev() {
                    let s = lanes(b.st, place(link.row(S_ROW), at));
                    let d_t = lanes_mut(b.d_st, place(link.row(T_ROW), at));
                    let scale = *d_t;
                    *d_t = g;
                    let d_s = lanes_mut(b.d_st, place(link.row(S_ROW), at));
                    for i in 0..LANES {
                        g[i] *= scale[i];
                        d_s[i] = fma::<S>(g[i], d_s[i], d_log_det[i]) * sigma.slope::<S>(s[i]);
                    }
                }
                *lanes_mut(b.d_x, c * shape.stride + at) = g;
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
        // Chains of no link, one link and several.
        let spec = Spec { dim: 5, blocks: 1, width: 4, scale: Scale::Exp, ..Spec::default() };
        let stage = &Plan::new(&spec).unwrap().stages[0];
        assert!((0..3).all(|links| stage.chains.iter().any(|chain| chain.len() == links)));
        let shape = Shape { stride: 16, width: 16, rows: 3 };
        let st = vec![200.0; stage.st_rows as usize * 16];
        let (mut to, mut log_det) = (vec![1.0; 80], vec![0.0; 16]);
        forward(shape, stage, spec.scale, &[0.0; 80], &st, &mut to, &mut log_det);
        assert!(to.chunks(16).all(|row| row[3..] == [0.0; 13]));
        // On the way back of a reversible training it is the other sign that overflows.
        let mut back = [1.0; 80];
        inverse(shape, stage, spec.scale, &mut back, &vec![-200.0; st.len()]);
        assert!(stage.chains.iter().zip(back.chunks(16)).all(|(chain, row)| chain.is_empty() || row[3..] == [0.0; 13]));
        let (mut d_x, mut d_st) = (vec![9.0; 80], vec![9.0; st.len()]);
        let [d_to, d_log_det] = [vec![0.0; 80], vec![0.0; 16]];
        let (d_to, d_log_det) = (&d_to, &d_log_det);
        backward(
            shape,
            stage,
            spec.scale,
            Gradients { x: &[1.0; 80], st: &st, d_to, d_log_det, d_x: &mut d_x, d_st: &mut d_st },
        );
        for row in d_x.chunks_exact(16).chain(d_st.chunks_exact(16)) {
            assert!(row[3..].iter().all(|&v| v == 0.0), "{row:?}");
        }
    }
}

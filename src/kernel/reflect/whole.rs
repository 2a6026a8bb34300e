//! Q as a matrix: the reflections applied to the columns of the identity, some columns at a time, and the gradient of
//! the vectors from that of Q, which is that of a batch whose samples are these columns.

use rayon::prelude::*;

use super::blocks::Sums;
use super::{APPLY_SCRATCH, Reflections};
use crate::kernel::simd::{self, Kernel, Simd};
use crate::kernel::{LANES, Shape};

/// Most columns whose Q is worked out in f64. It takes next to nothing for so few, and what an inverse by Q^T rounds, in
/// rows that are computed again as in samples, is the rounding of Q alone.
const EXACT: usize = 64;

/// Most columns that are computed at a time.
const COLUMNS: usize = 144;

/// How the columns of Q are cut.
#[derive(Clone, Copy)]
struct Panels {
    n: usize,
    /// Lane groups of a panel; the last one may have fewer.
    groups: usize,
}

impl Panels {
    fn new(n: usize) -> Self {
        let panels = n.div_ceil(COLUMNS);
        Self { n, groups: n.div_ceil(panels * LANES) }
    }

    fn count(self) -> usize {
        self.n.div_ceil(self.groups * LANES)
    }

    /// First column of panel `p`, and the shape of it.
    fn panel(self, p: usize) -> (usize, Shape) {
        let first = p * self.groups * LANES;
        let rows = (self.n - first).min(self.groups * LANES);
        (first, Shape { stride: LANES * (self.groups | 1), width: rows.next_multiple_of(LANES), rows })
    }
}

impl Reflections {
    /// Q, row-major `[n, n]`.
    pub(crate) fn whole(&mut self, q: &mut [f32]) {
        if self.n <= EXACT {
            simd::run(Exact { n: self.n, pitch: self.pitch, units: &self.units, q });
        } else {
            self.whole_by_blocks(q);
        }
    }

    pub(super) fn whole_by_blocks(&mut self, q: &mut [f32]) {
        let panels = Panels::new(self.n);
        let len = (self.n + APPLY_SCRATCH) * panels.panel(0).1.stride;
        let mut room = self.take_room(panels.count() * len);
        room.par_chunks_mut(len).take(panels.count()).enumerate().for_each(|(p, room)| {
            let (first, shape) = panels.panel(p);
            let (x, scratch) = room.split_at_mut(self.n * shape.stride);
            x.fill(0.0);
            (0..shape.rows).for_each(|c| x[(first + c) * shape.stride + c] = 1.0);
            self.apply(shape, false, x, scratch);
        });
        // By rows of Q, which panels share.
        q.par_chunks_mut(self.n).enumerate().for_each(|(i, row)| {
            for (p, room) in room.chunks_exact(len).take(panels.count()).enumerate() {
                let (first, shape) = panels.panel(p);
                row[first..first + shape.rows].copy_from_slice(&room[i * shape.stride..][..shape.rows]);
            }
        });
        self.room = room;
    }

    /// Adds the gradient of the vectors, from Q and its gradient: `d_q(i)` is that of element i.
    pub(crate) fn whole_backward(&mut self, q: &[f32], d_q: impl Fn(usize) -> f32, d_vectors: &mut [f32]) {
        let n = self.n;
        let panels = Panels::new(n);
        let stride = panels.panel(0).1.stride;
        let mut room = self.take_room((2 * n + Self::backward_scratch(n)) * stride);
        let mut inner = std::mem::take(&mut self.inner);
        inner.resize(self.inner_len(), 0.0);
        inner.fill(0.0);
        for p in 0..panels.count() {
            let (first, shape) = panels.panel(p);
            let (y, rest) = room.split_at_mut(n * stride);
            let (d, scratch) = rest.split_at_mut(n * stride);
            for i in 0..n {
                let at = i * n + first;
                let (y, d) = (shape.row_mut(y, i), shape.row_mut(d, i));
                y[shape.rows..].fill(0.0);
                d[shape.rows..].fill(0.0);
                y[..shape.rows].copy_from_slice(&q[at..at + shape.rows]);
                d[..shape.rows].iter_mut().enumerate().for_each(|(c, d)| *d = d_q(at + c));
            }
            let mut sums = Sums { vectors: d_vectors, inner: &mut inner, fresh: false };
            self.backward(shape, y, d, false, scratch, &mut sums);
        }
        self.room = room;
        self.complete(|i| inner[i], d_vectors);
        self.inner = inner;
    }

    /// The room, to be given back, with at least so many values.
    pub(super) fn take_room(&mut self, len: usize) -> Vec<f32> {
        let mut room = std::mem::take(&mut self.room);
        room.resize(room.len().max(len), 0.0);
        room
    }
}

/// Q in f64, one reflection after the other, from the unit vectors with the lengths that they have.
struct Exact<'a> {
    n: usize,
    pitch: usize,
    units: &'a [f32],
    q: &'a mut [f32],
}

impl Kernel for Exact<'_> {
    // Plain loops, which the compiler turns into vectors of the instruction set.
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { n, pitch, units, q } = self;
        let mut rows = [[0.0f64; EXACT]; EXACT];
        let rows = &mut rows[..n];
        let width = n.next_multiple_of(8);
        rows.iter_mut().enumerate().for_each(|(i, row)| row[i] = 1.0);
        for u in units.chunks_exact(pitch).take(n).rev() {
            let square: f64 = u.iter().map(|&u| f64::from(u) * f64::from(u)).sum();
            if square == 0.0 {
                continue;
            }
            // H = I - 2 / |u|^2 u u^T.
            let mut dots = [0.0f64; EXACT];
            for (row, &u) in rows.iter().zip(u) {
                let u = f64::from(u);
                dots[..width].iter_mut().zip(&row[..width]).for_each(|(dot, q)| *dot += u * q);
            }
            for (row, &u) in rows.iter_mut().zip(u) {
                let by = 2.0 / square * f64::from(u);
                row[..width].iter_mut().zip(&dots[..width]).for_each(|(q, dot)| *q -= by * dot);
            }
        }
        for (q, row) in q.chunks_exact_mut(n).zip(rows) {
            q.iter_mut().zip(row).for_each(|(q, row)| *q = *row as f32);
        }
    }
}

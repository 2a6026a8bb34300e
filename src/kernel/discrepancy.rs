//! `Discrepancy`: the squared maximum mean discrepancy of two sets of samples (Gretton et al. 2012) and its gradient, with
//! inverse multiquadric kernels (docs/model.md, INN).
//!
//! Every sample meets every other, in the order of their numbers, so that neither tiles nor threads change a bit. Sixteen
//! samples go side by side through all others.

use rayon::prelude::*;

use super::LANES;
use super::simd::{self, Kernel, Simd};

/// Squares of the kernels' lengths, in the units of the networks: `k(d) = sum of s / (s + d^2)`.
pub(crate) const SQUARED_LENGTHS: [f32; 3] = [0.0625, 0.5, 4.0];

/// Two sets of samples, columns one after the other, each padded to whole lanes.
pub(crate) struct Sets<'a> {
    /// (n, B)
    pub(crate) from: &'a [f32],
    /// (n, B)
    pub(crate) target: &'a [f32],
    /// n
    pub(crate) columns: usize,
    /// B
    pub(crate) samples: usize,
}

/// What a group of lanes has of the result: the share of each sample, then the gradients of the first columns.
pub(crate) type Part = Vec<[f32; LANES]>;

impl Sets<'_> {
    /// Samples from one column to the next.
    pub(crate) fn stride(samples: usize) -> usize {
        samples.next_multiple_of(LANES)
    }

    /// Of every group of lanes each sample's share, `weight` times the mean of `k(from, from') + k(target, target') - 2
    /// k(from, target')` over all B samples with a dash, and the gradient, for the first `wanted` columns of `from`, of
    /// the mean of the shares.
    pub(crate) fn discrepancy(&self, wanted: usize, weight: f32) -> Vec<Part> {
        let groups = Self::stride(self.samples) / LANES;
        let group = |group: usize| {
            let mut part = vec![[0.0; LANES]; 1 + wanted];
            simd::run(Group { sets: self, at: group * LANES, weight, part: &mut part });
            part
        };
        (0..groups).into_par_iter().map(group).collect()
    }
}

/// A group of samples with all others.
struct Group<'a> {
    sets: &'a Sets<'a>,
    at: usize,
    weight: f32,
    part: &'a mut [[f32; LANES]],
}

impl Kernel for Group<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { sets: &Sets { from, target, columns, samples }, at, weight, part } = self;
        let stride = Sets::stride(samples);
        let Some((share, gradients)) = part.split_first_mut() else { unreachable!("the share at least") };
        for j in 0..samples {
            let own = kernel(squares(from, from, columns, stride, at, j));
            let other = kernel(squares(from, target, columns, stride, at, j));
            let targets = kernel(squares(target, target, columns, stride, at, j));
            for (i, share) in share.iter_mut().enumerate() {
                *share += (own.value[i] - other.value[i]) + (targets.value[i] - other.value[i]);
            }
            for (c, gradient) in gradients.iter_mut().enumerate() {
                let first = c * stride;
                let (own_j, target_j) = (from[first + j], target[first + j]);
                let here = &from[first + at..][..LANES];
                for i in 0..LANES {
                    gradient[i] += own.slope[i] * (here[i] - own_j) - other.slope[i] * (here[i] - target_j);
                }
            }
        }
        let mean = weight / samples as f32;
        // Of the mean over B samples; a sample is on either side of a pair, and d(d^2) is twice the difference.
        let factor = 4.0 * mean / samples as f32;
        for i in 0..LANES {
            let exists = at + i < samples;
            share[i] = if exists { share[i] * mean } else { 0.0 };
            gradients.iter_mut().for_each(|g| g[i] = if exists { g[i] * factor } else { 0.0 });
        }
    }
}

/// Squared distances of samples `at..` of one set from sample `j` of another.
#[inline(always)]
fn squares(a: &[f32], b: &[f32], columns: usize, stride: usize, at: usize, j: usize) -> [f32; LANES] {
    let mut squares = [0.0; LANES];
    for c in 0..columns {
        let (a, b) = (&a[c * stride + at..][..LANES], b[c * stride + j]);
        for i in 0..LANES {
            let difference = a[i] - b;
            squares[i] += difference * difference;
        }
    }
    squares
}

/// Values of the kernel, and its slopes in the squared distance.
struct Values {
    value: [f32; LANES],
    slope: [f32; LANES],
}

#[inline(always)]
fn kernel(squares: [f32; LANES]) -> Values {
    let mut values = Values { value: [0.0; LANES], slope: [0.0; LANES] };
    for s in SQUARED_LENGTHS {
        for (i, square) in squares.into_iter().enumerate() {
            let near = 1.0 / (s + square);
            values.value[i] += s * near;
            values.slope[i] -= s * near * near;
        }
    }
    values
}

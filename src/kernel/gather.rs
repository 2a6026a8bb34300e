//! `Gather`: rows of the resident data plus noise, and `Normal`: latent samples. Counters are those of [`crate::rng`].

use super::Shape;
use crate::rng::{Stream, normals4};

/// Where a tile of a batch comes from.
pub(crate) struct Rows<'a> {
    /// The data, row-major (all rows, N).
    pub(crate) data: &'a [f32],
    /// Numbers of the rows of this tile.
    pub(crate) order: &'a [u32],
    /// Position of the tile's first row in its batch.
    pub(crate) first: usize,
    /// Deviation of the noise.
    pub(crate) noise: f32,
    /// Seed of the noise.
    pub(crate) seed: u64,
    /// Step of the noise.
    pub(crate) step: u32,
}

/// Fills `to` (N, samples); padding samples become 0.
pub(crate) fn gather(shape: Shape, from: &Rows<'_>, to: &mut [f32]) {
    let columns = to.len() / shape.stride;
    for (r, &number) in from.order.iter().enumerate() {
        let at = number as usize * columns;
        for (c, &value) in from.data[at..at + columns].iter().enumerate() {
            to[c * shape.stride + r] = value;
        }
    }
    if from.noise != 0.0 {
        each_normal(shape, columns, from.first as u64, (from.seed, Stream::Noise, from.step), |at, normal| {
            to[at] += from.noise * normal;
        });
    }
    clear_padding(shape, columns, to);
}

/// Fills `to` (N, samples) with standard normals of the samples `first_row..`.
pub(crate) fn normal(shape: Shape, seed: u64, first_row: u64, to: &mut [f32]) {
    let columns = to.len() / shape.stride;
    each_normal(shape, columns, first_row, (seed, Stream::Latent, 0), |at, normal| to[at] = normal);
    clear_padding(shape, columns, to);
}

/// Calls `f` with the position and the normal of every element. A sample has whole groups of four to itself, so that
/// its values depend on its number and the columns alone.
fn each_normal(
    shape: Shape,
    columns: usize,
    first_row: u64,
    (seed, stream, step): (u64, Stream, u32),
    mut f: impl FnMut(usize, f32),
) {
    let groups = columns.div_ceil(4);
    for r in 0..shape.rows {
        for group in 0..groups {
            let normals = normals4(seed, stream, step, (first_row + r as u64) * groups as u64 + group as u64);
            for (c, normal) in (group * 4..columns).zip(normals) {
                f(c * shape.stride + r, normal);
            }
        }
    }
}

fn clear_padding(shape: Shape, columns: usize, to: &mut [f32]) {
    for c in 0..columns {
        shape.row_mut(to, c)[shape.rows..].fill(0.0);
    }
}

//! `Gather`: rows of the resident data plus noise, and `Normal`: latent samples. Counters are those of [`crate::rng`].

use super::memory::fetch;
use super::normals::{self, Numbers};
use super::{LANES, Shape};
use crate::rng::Stream;

/// Where a tile of a batch comes from.
pub(crate) struct Rows<'a> {
    /// The data, row-major (all rows, N).
    pub(crate) data: &'a [f32],
    /// Numbers of the rows of this tile.
    pub(crate) order: &'a [u32],
    /// Position of the tile's first row in its batch.
    pub(crate) first: usize,
    /// Number of columns of conditions, which come first and get no noise.
    pub(crate) conditions: usize,
    /// Deviation of the noise.
    pub(crate) noise: f32,
    /// Seed of the noise.
    pub(crate) seed: u64,
    /// Step of the noise.
    pub(crate) step: u32,
}

/// Rows between one that is copied and one that is fetched for later. It takes the gather of a step of cross4d0 from 34
/// to 27 ms of one thread, in an hour in which memory was slow.
const AHEAD: usize = 8;

/// Fills `to` (N, samples); padding samples become 0.
pub(crate) fn gather(shape: Shape, from: &Rows<'_>, to: &mut [f32]) {
    let columns = to.len() / shape.stride;
    for (r, &number) in from.order.iter().enumerate() {
        // Rows lie anywhere in the data, so nothing but their numbers tells which come next.
        if let Some(&later) = from.order.get(r + AHEAD) {
            let at = later as usize * columns;
            (0..columns).step_by(LANES).for_each(|c| fetch(from.data, at + c));
            // Rows begin anywhere in a cache line, so there may be one more.
            fetch(from.data, at + columns.saturating_sub(1));
        }
        let at = number as usize * columns;
        for (c, &value) in from.data[at..at + columns].iter().enumerate() {
            to[c * shape.stride + r] = value;
        }
    }
    if from.noise != 0.0 {
        let numbers = Numbers {
            seed: from.seed,
            stream: Stream::Noise,
            step: from.step,
            first_row: from.first as u64,
            group_rows: 0,
        };
        normals::add(shape, numbers, from.noise, &mut to[from.conditions * shape.stride..]);
    }
    shape.clear_padding(to);
}

/// Fills `to` (N, samples) with normals of a deviation; padding samples become 0.
pub(crate) fn normal(shape: Shape, numbers: Numbers, deviation: f32, to: &mut [f32]) {
    to.fill(0.0);
    normals::add(shape, numbers, deviation, to);
    shape.clear_padding(to);
}

//! HOW operations are computed on the CPU: one file per operation with its inverse and its backward; `shaders/`
//! computes the same operations on GPUs.
//!
//! A kernel works on a [`Tile`]: the activation arena of a few samples, small enough to stay in cache. It knows nodes
//! and buffers, neither recursion nor threads. Samples of a row are contiguous; rows are padded to whole groups of
//! [`LANES`] samples, and padding samples hold finite values and zero gradients, so no kernel needs a special tail.

pub(crate) mod adam;
pub(crate) mod couple;
pub(crate) mod discrepancy;
pub(crate) mod dropout;
pub(crate) mod gather;
pub(crate) mod loss;
pub(crate) mod math;
pub(crate) mod memory;
pub(crate) mod mix;
pub(crate) mod networks;
pub(crate) mod normals;
pub(crate) mod product;
pub(crate) mod reflect;
pub(crate) mod simd;
pub(crate) mod tree;
pub(crate) mod walk;

use std::alloc::{Layout, handle_alloc_error};
use std::ops::Range;

use crate::buffer::Buffer;
use memory::Floats;

/// Samples are padded to a multiple of this: the widest SIMD register.
pub(crate) const LANES: usize = 16;

/// The activation arena for one tile of samples.
pub(crate) struct Tile {
    values: Floats,
    stride: usize,
    rows: usize,
}

/// Gradients of the weights, summed over tiles, in the layout of the weights.
pub(crate) struct Gradients<'a> {
    pub(crate) values: &'a mut [f32],
    /// Whether this is the first tile: it writes what the others add to, which saves clearing the values.
    pub(crate) fresh: bool,
}

/// Extent of the rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    /// Distance between two features in the arena.
    pub(crate) stride: usize,
    /// Samples computed: `rows` rounded up to whole lanes.
    pub(crate) width: usize,
    /// Samples that exist.
    pub(crate) rows: usize,
}

impl Tile {
    /// An arena of `arena_rows` features for up to `capacity` samples.
    pub(crate) fn new(arena_rows: u32, capacity: usize) -> Self {
        // An odd number of lane groups: power-of-two distances would put all features into the same cache sets.
        let stride = LANES * (capacity.div_ceil(LANES) | 1);
        let len = arena_rows as usize * stride;
        // As every other allocation that fails.
        let layout = || Layout::array::<f32>(len).unwrap_or(Layout::new::<f32>());
        let values = Floats::zeroed(len).unwrap_or_else(|| handle_alloc_error(layout()));
        Self { values, stride, rows: capacity }
    }

    /// Samples the arena has room for.
    pub(crate) fn capacity(&self) -> usize {
        self.stride
    }

    /// Sets the number of samples of the next run.
    pub(crate) fn set_rows(&mut self, rows: usize) {
        assert!(rows <= self.stride, "a tile holds {} samples, not {rows}", self.stride);
        self.rows = rows;
    }

    pub(crate) fn shape(&self) -> Shape {
        Shape { stride: self.stride, width: self.rows.next_multiple_of(LANES), rows: self.rows }
    }

    fn range(&self, b: Buffer) -> Range<usize> {
        b.first as usize * self.stride..(b.first + b.rows) as usize * self.stride
    }

    /// The features of one buffer.
    pub(crate) fn get(&self, buffer: Buffer) -> &[f32] {
        &self.values[self.range(buffer)]
    }

    /// Several buffers at once, all of them writable. They must not overlap.
    pub(crate) fn split<const N: usize>(&mut self, buffers: [Buffer; N]) -> [&mut [f32]; N] {
        let ranges = buffers.map(|b| self.range(b));
        match self.values.get_disjoint_mut(ranges) {
            Ok(slices) => slices,
            Err(e) => unreachable!("buffers of an operation overlap or lie outside the arena: {e}"),
        }
    }

    /// Fills a buffer from row-major samples; padding samples become 0.
    pub(crate) fn load(&mut self, buffer: Buffer, samples: &[f32]) {
        let shape = self.shape();
        let columns = buffer.rows as usize;
        let [out] = self.split([buffer]);
        for c in 0..columns {
            let row = shape.row_mut(out, c);
            for (value, sample) in row.iter_mut().zip(samples.chunks_exact(columns)) {
                *value = sample[c];
            }
            row[shape.rows..].fill(0.0);
        }
    }

    /// Copies a buffer to row-major samples.
    pub(crate) fn store(&self, buffer: Buffer, samples: &mut [f32]) {
        let shape = self.shape();
        let columns = buffer.rows as usize;
        let from = self.get(buffer);
        for c in 0..columns {
            for (sample, value) in samples.chunks_exact_mut(columns).zip(shape.row(from, c)) {
                sample[c] = *value;
            }
        }
    }

    /// Bytes of the arena.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.values)
    }
}

impl Shape {
    /// Feature `i` of a buffer, padding included.
    pub(crate) fn row(self, buffer: &[f32], i: usize) -> &[f32] {
        &buffer[i * self.stride..i * self.stride + self.width]
    }

    /// Feature `i` of a buffer, writable, padding included.
    pub(crate) fn row_mut(self, buffer: &mut [f32], i: usize) -> &mut [f32] {
        &mut buffer[i * self.stride..i * self.stride + self.width]
    }

    /// Cuts the samples into blocks of no more than `most`, as even as whole groups of lanes allow: where each begins,
    /// and its shape. A buffer from there on is the buffer of the block.
    pub(crate) fn sample_blocks(self, most: usize) -> impl Iterator<Item = (usize, Self)> {
        let groups = self.width / LANES;
        let blocks = self.width.div_ceil(most);
        (0..blocks).map(move |b| {
            let [at, end] = [b, b + 1].map(|b| b * groups / blocks * LANES);
            (at, Self { width: end - at, rows: self.rows.clamp(at, end) - at, ..self })
        })
    }

    /// Sets what lies behind the samples of every feature of a buffer to 0.
    pub(crate) fn clear_padding(self, buffer: &mut [f32]) {
        if self.rows < self.width {
            for row in buffer.chunks_exact_mut(self.stride) {
                row[self.rows..self.width].fill(0.0);
            }
        }
    }

    /// Features `first..first + n` of a buffer.
    pub(crate) fn rows_of(self, buffer: &[f32], first: u32, n: u32) -> &[f32] {
        &buffer[first as usize * self.stride..(first + n) as usize * self.stride]
    }

    /// Features `first..first + n` of a buffer, writable.
    pub(crate) fn rows_of_mut(self, buffer: &mut [f32], first: u32, n: u32) -> &mut [f32] {
        &mut buffer[first as usize * self.stride..(first + n) as usize * self.stride]
    }
}

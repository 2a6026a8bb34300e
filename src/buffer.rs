//! Handles into the activation arena: plain data, no device.
//!
//! The activation arena holds one row per feature and one column per sample (feature-major), so that samples are
//! contiguous: a SIMD register or a GPU subgroup takes neighbouring samples. An engine decides how many samples lie
//! side by side; a [`Buffer`] is the same on every engine.

/// A run of rows in the activation arena, one row per feature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Buffer {
    /// First row.
    pub(crate) first: u32,
    /// Number of rows.
    pub(crate) rows: u32,
}

impl Buffer {
    /// No rows: a place that nothing is read from.
    pub(crate) const EMPTY: Self = Self { first: 0, rows: 0 };

    /// Rows `first..first + rows` of the buffer, as a buffer.
    pub(crate) fn part(self, first: u32, rows: u32) -> Self {
        assert!(first + rows <= self.rows, "rows {first}..{} of {}", first + rows, self.rows);
        Self { first: self.first + first, rows }
    }

    /// Whether some row belongs to both.
    pub(crate) fn overlaps(self, other: Self) -> bool {
        self.first < other.first + other.rows && other.first < self.first + self.rows
    }
}

/// Hands out rows of an activation arena.
#[derive(Clone, Debug, Default)]
pub(crate) struct Arena {
    rows: u32,
}

impl Arena {
    /// A fresh buffer of `rows` features.
    pub(crate) fn alloc(&mut self, rows: u32) -> Buffer {
        let first = self.rows;
        self.rows += rows;
        Buffer { first, rows }
    }

    /// Rows handed out so far.
    pub(crate) fn rows(&self) -> u32 {
        self.rows
    }
}

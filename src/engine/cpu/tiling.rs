//! How a batch is cut into tiles and tiles into groups: from the model and the batch size alone.
//!
//! Sizes between 64 and 240 samples made no difference at 20 columns in a prototype, 240 to 400 none at 100, 640 was
//! slower; 160, 208 and 400 none in place of 304, since arenas lie in large pages. 8 groups instead of 16 gained
//! nothing for large batches. A small batch in 16 groups spends more on sums of gradients: 500 samples took 1.95 ms at
//! best in 16 groups, and 1.6 in 8 together with fewer moves to the pool and no clearing. The number of tiles nearest
//! to the target rather than the next larger one: cross4 from 696 to 680 ms, 32 tiles instead of 48.

use std::ops::Range;

use crate::kernel::LANES;
use crate::plan::Plan;

/// Partial gradients of a step; also the most threads that a step can use. Fewer for models of many millions of
/// weights, whose partial gradients would fill the memory.
pub(super) fn groups(plan: &Plan) -> usize {
    const MOST: usize = 16;
    const FLOATS: usize = 1 << 28;
    (FLOATS / plan.layout.gradient_len().max(1)).clamp(2, MOST)
}

/// Samples a group has where the batch is small.
const GROUP_ROWS: usize = 64;

/// Samples a tile should hold. Small models keep weights, gradients and activations in the second-level cache with
/// about 160 samples; the weights of large ones do not fit it, so more samples must share each load.
fn target(plan: &Plan) -> usize {
    if plan.layout.trained < 500_000 { 160 } else { 304 }
}

/// A batch cut into tiles of whole lane groups, as even as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tiling {
    rows: usize,
    tiles: usize,
    groups: usize,
}

impl Tiling {
    /// Tiles of a training step: a multiple of the groups where the batch is large enough.
    pub(super) fn step(plan: &Plan, rows: usize) -> Self {
        let vectors = rows.div_ceil(LANES);
        // A group that has few samples spends its time on its gradients' sums rather than on products.
        let groups = groups(plan).min(rows.div_ceil(GROUP_ROWS)).max(1);
        let share = groups * target(plan);
        let per_group = ((rows + share / 2) / share).max(1);
        let tiles = (groups * per_group).min(vectors).max(1);
        Self { rows, tiles, groups: groups.min(tiles) }
    }

    /// Tiles of an evaluation.
    pub(super) fn run(plan: &Plan, rows: usize) -> Self {
        let tiles = rows.div_ceil(target(plan)).max(1);
        Self { rows, tiles, groups: tiles }
    }

    pub(super) fn tiles(self) -> usize {
        self.tiles
    }

    /// Samples of tile `i`.
    pub(super) fn rows(self, i: usize) -> Range<usize> {
        let vectors = self.rows.div_ceil(LANES);
        let edge = |i: usize| (LANES * (i * vectors / self.tiles)).min(self.rows);
        edge(i)..edge(i + 1)
    }

    /// Samples of the largest tile, in whole lane groups.
    pub(super) fn capacity(self) -> usize {
        LANES * self.rows.div_ceil(LANES).div_ceil(self.tiles).max(1)
    }

    /// Groups that have tiles.
    pub(super) fn groups(self) -> usize {
        self.groups
    }

    /// Tiles of group `g`.
    pub(super) fn group(self, g: usize) -> Range<usize> {
        let groups = self.groups();
        g * self.tiles / groups..(g + 1) * self.tiles / groups
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Spec;

    #[test]
    fn tiles_cover_every_sample_once_and_fit() {
        let plan = Plan::new(&Spec { dim: 4, width: 8, ..Spec::default() }).unwrap();
        for rows in [1, 15, 16, 17, 37, 257, 500, 2560, 9_999, 10_000, 123_457] {
            for tiling in [Tiling::step(&plan, rows), Tiling::run(&plan, rows)] {
                let mut next = 0;
                for i in 0..tiling.tiles() {
                    let tile = tiling.rows(i);
                    assert!(tile.start == next && !tile.is_empty(), "{rows}: {tile:?}");
                    assert!(tile.len() <= tiling.capacity());
                    next = tile.end;
                }
                assert_eq!(next, rows);
                let of_groups: Vec<usize> = (0..tiling.groups()).flat_map(|g| tiling.group(g)).collect();
                assert!(of_groups.iter().copied().eq(0..tiling.tiles()));
            }
        }
    }
}

//! Trained mixings: Q of the reflections, and the gradient of their vectors, by products of matrices alone; see
//! `shaders/shared/reflections.wgsl`. But Q of few columns is made by a kernel of its own, `shaders/reflect_few.wgsl`,
//! with rounding errors an eighth as large.
//!
//! Mixings share the dispatches, as many as the room in scratch and the bound of work of a dispatch allow; of larger
//! ones a dispatch does some rows of tiles. A and C stay in scratch from the forward to the backward pass: of the N^3
//! multiply-adds for a mixing, to make them again would add 1.5 to the 3.5 of the backward pass, in its least parallel
//! part. All else lies in room that the mixings of one dispatch leave to those of the next.

use super::{Extent, Head, Kernel, Recorder, launch};
use crate::engine::gpu::compile::cost::{Reflecting, TILE};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::MixId;

/// Floats of room for the mixings of one dispatch, if there are several of them: a few of a thousand columns, whose
/// tiles keep any device busy.
const ROOM: usize = 8 << 20;

/// Mixings that share dispatches.
#[derive(Clone, Copy)]
struct Group {
    first: u32,
    count: u32,
    /// Their columns.
    n: u32,
}

impl Group {
    /// Tiles along one side of a matrix.
    fn across(self) -> u32 {
        self.n.div_ceil(TILE)
    }
}

impl Recorder<'_> {
    /// Mixings `first .. first + run` in groups of equal dimension that room and work allow.
    fn groups(&self, first: MixId, run: usize) -> Vec<Group> {
        let dims: Vec<u32> = self.plan.mixes().skip(first).take(run).map(|mix| mix.dim).collect();
        let mut first = first as u32;
        let mut groups = Vec::new();
        for equal in dims.chunk_by(|a, b| a == b) {
            let n = u64::from(equal[0]);
            let allowed = (self.bounds.reflection_work / n.pow(3)).clamp(1, together(equal[0] as usize) as u64);
            for group in equal.chunks(allowed as usize) {
                groups.push(Group { first, count: group.len() as u32, n: group[0] });
                first += group.len() as u32;
            }
        }
        groups
    }

    /// One kernel over all rows of tiles, `across` workgroups for each. One dispatch if the work allows it.
    fn over_tiles(&mut self, kernel: Kernel, group: Group, grid: impl Fn(u32) -> u32) -> Result<()> {
        let work_of_row = u64::from(group.count) * u64::from(group.n).pow(3) / u64::from(group.across());
        let most = (self.bounds.reflection_work / work_of_row).clamp(1, group.across().into()) as u32;
        let mut row = 0;
        while row < group.across() {
            let rows = most.min(group.across() - row);
            let (mixes, first) = (self.tables.mix_list, group.first);
            let (derived, room) = (self.plan.layout.trained as u32, kept(self.plan) as u32);
            let launch = launch::Reflections { mixes, first, derived, room, row, rows };
            let sizes = Reflecting { kernel, columns: group.n };
            self.push(kernel, Head::None, [Extent::Fixed(grid(rows)), Extent::Fixed(group.count)], launch, sizes)?;
            row += rows;
        }
        Ok(())
    }

    /// `trains`: whether the backward pass follows.
    pub(super) fn reflect(&mut self, mix: MixId, run: usize, trains: bool) -> Result<()> {
        for group in self.groups(mix, run) {
            let across = group.across();
            let tiles = |rows: u32| rows * across;
            let sides = if trains { 2 } else { 1 };
            if group.n <= launch::FEW_COLUMNS {
                self.over_tiles(Kernel::ReflectFew, group, |_| sides)?;
                continue;
            }
            self.over_tiles(Kernel::ReflectGram, group, tiles)?;
            self.over_tiles(Kernel::ReflectSolve, group, |_| sides * across)?;
            self.over_tiles(Kernel::Reflect, group, tiles)?;
        }
        Ok(())
    }

    pub(super) fn reflect_backward(&mut self, mix: MixId, run: usize) -> Result<()> {
        let (slices, length) = (self.fit.slices as u32, self.plan.layout.gradient_len() as u32);
        for group in self.groups(mix, run) {
            let Group { first, count, n } = group;
            let room = kept(self.plan) as u32;
            let launch = launch::ReflectReduce { mixes: self.tables.mix_list, first, room, slices, length };
            let grid = [Extent::Fixed((n * n).div_ceil(256)), Extent::Fixed(count)];
            self.push(Kernel::ReflectReduce, Head::None, grid, launch, ())?;
            let across = group.across();
            let tiles = |rows: u32| rows * across;
            self.over_tiles(Kernel::ReflectSides, group, tiles)?;
            self.over_tiles(Kernel::ReflectInner, group, tiles)?;
            self.over_tiles(Kernel::ReflectBackward, group, tiles)?;
        }
        Ok(())
    }
}

/// Most mixings of so many columns that share the room.
fn together(n: usize) -> usize {
    (ROOM / (2 * n * n)).max(1)
}

/// Floats of scratch that stay: A and C of every mixing.
fn kept(plan: &Plan) -> usize {
    2 * plan.layout.derived
}

/// Floats of the scratch array that belong to the mixings; the sums of the loss follow.
pub(crate) fn reflection_scratch(plan: &Plan) -> usize {
    let trained: Vec<usize> =
        plan.mixes().filter(|mix| mix.reflections.is_some()).map(|mix| mix.dim as usize).collect();
    let groups = trained.chunk_by(|a, b| a == b);
    let room = groups.map(|equal| 2 * equal[0] * equal[0] * together(equal[0]).min(equal.len())).max().unwrap_or(0);
    kept(plan) + room
}

//! How much lies on the device at a time: samples per tile, copies of the gradient; and what is too much for it.

use bytemuck::Zeroable as _;

use crate::engine::gpu::device::open::Device;
use crate::engine::gpu::kernels::launch::TileJob;
use crate::engine::gpu::layout::panels::panels_len;
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::{Op, Program};

/// Samples that the smallest workgroup takes along, in quads; bounds the samples of a tile.
const QUADS_PER_WORKGROUP: u64 = 8;
/// Tiles begin at multiples of that many samples within a batch, so that sums over samples are grouped alike however
/// the batch is cut: the quads that a workgroup of `loss.wgsl` has, and those that `weight_gradient.wgsl` fetches at a
/// time.
pub(crate) const TILE_STEP: usize = 32;
/// Most samples of a tile: as many keep any device busy, and the loops over them end before llvmpipe's limit.
pub(crate) const TILE_SAMPLES: u64 = 1 << 17;
/// A slice of the batch has no fewer than these samples: its copy of the gradient is written and read, 8 bytes per
/// weight, for 2 operations per weight and sample. So they are 64 per byte, where a H100 does 20. Estimated, no GPU
/// measured yet.
const SLICE_SAMPLES: usize = 256;
/// Most copies of the gradient. With 40 a stage of lens2 has 84 x 40 workgroups of two warps, as many as a H100 keeps
/// at a time (8,448 warps) to four fifths. Estimated, no GPU measured yet.
const MAX_SLICES: usize = 40;
/// Most bytes of all copies of the gradient: to write and to read them takes 0.08 ms on a H100. Estimated, no GPU
/// measured yet.
const PARTIALS_BYTES: u64 = 128 << 20;

/// Quads of a cache line of 128 bytes; rows of the arena begin at multiples of it.
const LINE: usize = 8;

/// Sizes of a program on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fit {
    /// Samples of a tile, a multiple of [`TILE_STEP`].
    pub(crate) capacity: usize,
    /// Copies of the gradient, one per slice of the batch. Depends on model and batch alone and not on the tiles, so
    /// that a device with little memory to spare computes the same bits.
    pub(crate) slices: usize,
}

impl Fit {
    /// Sizes on a device that has room for everything.
    pub(crate) fn of_whole(program: &Program, rows: usize) -> Result<Self> {
        let most = u64::MAX;
        Room { arena: most, array: most, workgroups: 65_535, work: most }.fit(program, rows, usize::MAX, "")
    }

    /// Quads from one row of the arena to the next.
    pub(crate) fn stride(self) -> usize {
        self.capacity / 4
    }

    /// Quads of a batch that one slice has.
    pub(crate) fn slice_quads(self, batch: usize) -> usize {
        batch.div_ceil(4).div_ceil(self.slices).next_multiple_of(TILE_STEP / 4)
    }

    /// Cuts a batch into tiles; what each tile's kernels are told, apart from seeds.
    pub(crate) fn tiles(self, batch: usize) -> impl Iterator<Item = TileJob> {
        (0..batch).step_by(self.capacity).map(move |first| {
            let rows = self.capacity.min(batch - first);
            let quads = rows.div_ceil(4);
            let slice = self.slice_quads(batch);
            let last = first + rows == batch;
            let end = if last { self.slices } else { (first / 4 + quads).div_ceil(slice) };
            TileJob {
                rows: rows as u32,
                quads: quads as u32,
                // A tile that is not full lies closer together, so that less of it travels.
                stride: quads.next_multiple_of(LINE) as u32,
                first: first as u32,
                slice: slice as u32,
                slices: (end - first / 4 / slice) as u32,
                inverse_batch: (1.0 / batch as f64) as f32,
                ..TileJob::zeroed()
            }
        })
    }

    /// Bytes of an arena of that many rows.
    pub(crate) fn arena_bytes(self, rows: u32) -> u64 {
        u64::from(rows) * self.capacity as u64 * 4
    }
}

/// What limits the size of a tile.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Bytes of the arena.
    arena: u64,
    /// Bytes of one array.
    array: u64,
    /// Workgroups along one dimension of a grid.
    workgroups: u64,
    /// Multiply-adds of one dispatch, so that none blocks the device for long.
    work: u64,
}

impl Room {
    pub(crate) fn of(device: &Device) -> Self {
        // A driver may reset a device whose dispatch takes seconds. Software adapters reach 0.1 to 1 GFLOP/s (llvmpipe
        // on two busy cores, 64 samples of lens1: weight gradients 110 ms, networks 30 ms), integrated GPUs hundreds.
        let work = match device.info.kind {
            "software" => 8_000_000,
            "discrete" => 1 << 37,
            _ => 1 << 33,
        };
        let arena = if device.info.kind == "discrete" { 2 << 30 } else { 1 << 30 };
        Self {
            arena: device.max_array().min(arena),
            array: device.max_array(),
            workgroups: u64::from(device.limits.max_compute_workgroups_per_dimension),
            work,
        }
    }

    /// Multiply-adds of one dispatch, so that none blocks the device for long.
    pub(crate) fn work(self) -> u64 {
        self.work
    }

    /// Sizes for batches of `rows` samples, with tiles of no more than `most` of them.
    ///
    /// A batch that needs several tiles is cut into nearly equal ones.
    pub(crate) fn fit(self, program: &Program, rows: usize, most: usize, adapter: &str) -> Result<Fit> {
        let row_bytes = u64::from(program.arena_rows.max(1)) * 4;
        let largest = (self.arena / row_bytes)
            .min(self.workgroups * QUADS_PER_WORKGROUP * 4)
            .min(TILE_SAMPLES)
            // Few samples keep a device so badly busy that a longer dispatch is the better choice; so is one where all
            // samples meet.
            .min(if program.couples_samples() { u64::MAX } else { (self.work / heaviest(program)).max(64) });
        let largest = (largest as usize).min(most) / TILE_STEP * TILE_STEP;
        if largest == 0 {
            let needed = row_bytes * TILE_STEP as u64;
            return Err(too_large("32 samples of its activations", needed, self.arena, adapter));
        }
        let tiles = rows.max(1).div_ceil(largest);
        if tiles > 1 && program.couples_samples() {
            return Err(Error::UnsupportedLimit {
                name: "samples of a batch",
                what: format!(
                    "an `inn` on `{adapter}`, whose discrepancy needs the whole batch on the device; take a smaller \
                     train.batch, or --device cpu"
                ),
                needed: rows as u64,
                available: largest as u64,
            });
        }
        let capacity = rows.max(1).div_ceil(tiles).next_multiple_of(TILE_STEP);
        let copy = (program.plan.layout.gradient_len().max(1) * 4) as u64;
        let copies = (PARTIALS_BYTES.min(self.array) / copy).clamp(1, MAX_SLICES as u64) as usize;
        let wanted = Fit { capacity, slices: (rows / SLICE_SAMPLES).clamp(1, copies) };
        // Rounding up may leave the last slices without samples.
        let slices = rows.max(1).div_ceil(4).div_ceil(wanted.slice_quads(rows.max(1)));
        Ok(Fit { slices, ..wanted })
    }

    /// Checks that the weights and what goes with them fit, before anything is allocated.
    pub(crate) fn check_weights(self, plan: &Plan, adapter: &str) -> Result<()> {
        let layout = &plan.layout;
        // Gradients and moments are no longer than the weights; the panels and the offsets in them are. What the
        // reflections need of scratch is no longer than their offsets.
        let needed = (layout.len() as u64 * 4).max(panels_len(plan) * 4).max(layout.len() as u64 * 8);
        if needed > self.array {
            return Err(too_large("its weights", needed, self.array, adapter));
        }
        Ok(())
    }
}

fn too_large(what: &str, needed: u64, available: u64, adapter: &str) -> Error {
    Error::UnsupportedLimit {
        name: "max_storage_buffer_binding_size",
        what: format!("the model on `{adapter}` (in bytes, for {what})"),
        needed,
        available,
    }
}

/// Multiply-adds per sample of the heaviest dispatch.
fn heaviest(program: &Program) -> u64 {
    let stage = |id: usize| -> u64 {
        let per_node = program.plan.stages[id].nodes.iter().map(|n| {
            let (i, h, o) = (u64::from(n.inputs()), u64::from(n.hidden), u64::from(n.outputs));
            n.nets.len() as u64 * h * (i + h + o)
        });
        per_node.sum()
    };
    let square = |rows: u32| u64::from(rows) * u64::from(rows);
    let work = program.rows.iter().map(|op| match op {
        Op::Networks { stage: id, .. } | Op::Walk { stage: id, .. } | Op::NetworksBackward { stage: id, .. } => {
            stage(*id)
        }
        Op::Mix { from, .. } | Op::MixBackward { from, .. } => square(from.rows),
        _ => 1,
    });
    work.max().unwrap_or(1).max(1)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::plan::Spec;
    use crate::tape::{Memory, Tape, Then};

    fn program() -> Program {
        let plan = Arc::new(Plan::new(&Spec { dim: 20, width: 139, ..Spec::default() }).unwrap());
        let mut tape = Tape::training(plan, Memory::Stored);
        let (x, log_det) = (tape.gather(), tape.log_det());
        let z = tape.couple(0, x, crate::buffer::Buffer::EMPTY, log_det);
        tape.loss(z, log_det);
        tape.backward();
        tape.finish("test", vec![], Then::Step)
    }

    const ROOM: Room = Room { arena: 1 << 30, array: 1 << 31, workgroups: 65_535, work: 1 << 40 };

    #[test]
    fn a_batch_that_fits_is_one_tile() {
        let fit = ROOM.fit(&program(), 10_000, usize::MAX, "x").unwrap();
        assert_eq!(fit.capacity, 10_016);
        assert_eq!(ROOM.fit(&program(), 1, usize::MAX, "x").unwrap(), Fit { capacity: 32, slices: 1 });
        assert_eq!(ROOM.fit(&program(), 0, usize::MAX, "x").unwrap().capacity, 32);
    }

    #[test]
    fn slices_depend_on_the_batch_and_not_on_the_tiles() {
        for rows in [1, 37, 1000, 10_000, 123_457] {
            let fit = |most| ROOM.fit(&program(), rows, most, "x").unwrap();
            let whole = fit(usize::MAX);
            assert!(whole.slices <= MAX_SLICES);
            let quads = rows.div_ceil(4);
            let size = whole.slice_quads(rows);
            assert!(size.is_multiple_of(8) && whole.slices * size >= quads && (whole.slices - 1) * size < quads);
            for most in [32, 100, 5000] {
                assert_eq!(fit(most).slices, whole.slices, "{rows} samples, tiles of {most}");
            }
        }
    }

    #[test]
    fn a_batch_that_does_not_fit_is_cut_into_equal_tiles() {
        let fit = ROOM.fit(&program(), 10_000, 6_000, "x").unwrap();
        assert_eq!(fit.capacity, 5_024);
        let tight = Room { arena: 1 << 23, ..ROOM };
        let fit = tight.fit(&program(), 10_000, usize::MAX, "x").unwrap();
        assert!(fit.arena_bytes(program().arena_rows) <= 1 << 23 && fit.capacity > 100);
    }

    #[test]
    fn what_does_not_fit_at_all_is_named() {
        let tiny = Room { arena: 1000, array: 1000, ..ROOM };
        let message = tiny.fit(&program(), 100, usize::MAX, "x").unwrap_err().to_string();
        assert!(message.contains("1000") && message.contains("max_storage_buffer_binding_size"), "{message}");
        let message = tiny.check_weights(&program().plan, "x").unwrap_err().to_string();
        assert!(message.contains("weights"), "{message}");
    }
}

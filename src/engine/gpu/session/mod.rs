//! A model on a device: its programs, and their replay for tiles of samples.

pub(crate) mod arrays;
pub(crate) mod options;
mod programs;
mod run;
mod step;
pub(crate) mod tuner;
mod tuning;

use std::sync::Arc;
use std::time::Duration;

use arrays::Arrays;
use bytemuck::Zeroable;
use options::Options;

use crate::comm::World;
use crate::engine::gpu::compile::bounds::{Bounds, SOFTWARE_ITERATIONS};
use crate::engine::gpu::compile::dispatch::{Dispatch, Recorded};
use crate::engine::gpu::compile::record::pack_weights;
use crate::engine::gpu::compile::record::reflect::reflection_scratch;
use crate::engine::gpu::compile::tiling::{Fit, Room};
use crate::engine::gpu::device::open::Device;
use crate::engine::gpu::device::timer::Timer;
use crate::engine::gpu::kernels::extras;
use crate::engine::gpu::kernels::launch::{TileJob, Update};
use crate::engine::gpu::kernels::shader::Role;
use crate::engine::gpu::layout::panels::Panels;
use crate::engine::gpu::layout::tables::Tables;
use crate::engine::{Footprint, Job, KernelTime, ProgramId, Session, Skips, StepJob, Values};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::Program;

/// A program ready to replay.
struct Compiled {
    program: Program,
    fit: Fit,
    recorded: Recorded,
    /// Whether its backward operations leave some gradients unwritten, which are zero then.
    clear: bool,
    /// The dropout for which it has kernels beside those without any, or 0.
    dropout: u8,
}

/// The training data.
struct Data {
    values: Arc<[f32]>,
    /// Whether all of it is on the device.
    resident: bool,
}

/// One model on one device.
pub(super) struct GpuSession {
    pub(super) device: Arc<Device>,
    plan: Arc<Plan>,
    tables: Tables,
    room: Room,
    /// What programs are recorded for, with the variants of those that are not measured.
    bounds: Bounds,
    options: Options,
    pub(super) arrays: Arrays,
    programs: Vec<Compiled>,
    data: Option<Data>,
    order: Vec<u32>,
    /// Samples of the last step.
    last_rows: Option<usize>,
    /// Copies of the gradient that the last run or step left; none: no samples, so the gradient is zero.
    last_slices: Option<usize>,
    /// Reused from tile to tile.
    upload: Vec<f32>,
    /// Copies the weights to the panels.
    pack_weights: Option<Dispatch>,
    /// Whether the host has written weights since they were copied.
    weights_written: bool,
    /// Whether other ranks share the work.
    shared: bool,
}

impl GpuSession {
    pub(super) fn new(device: Arc<Device>, plan: Arc<Plan>, options: Options) -> Result<Self> {
        let room = Room::of(&device);
        room.check_weights(&plan, &device.info.name)?;
        let panels = Panels::new(&plan);
        let tables = Tables::new(&plan, &panels, device.workgroup());
        let mut arrays = Arrays::new(device.clone())?;
        arrays.grow(Role::Weights, plan.layout.len() as u64 * 4)?;
        arrays.grow(Role::Tables, tables.words.len() as u64 * 4)?;
        arrays.write(Role::Tables, 0, bytemuck::cast_slice(&tables.words))?;
        arrays.grow(Role::Panels, panels.len * 4)?;
        arrays.grow(Role::PackedOffsets, panels.packed_offsets.len() as u64 * 8)?;
        arrays.write(Role::PackedOffsets, 0, bytemuck::cast_slice(&panels.packed_offsets))?;
        arrays.grow(Role::Scratch, reflection_scratch(&plan) as u64 * 4)?;
        let pack_weights = pack_weights(&plan, device.limits.max_compute_workgroups_per_dimension);
        arrays.add_kernels(pack_weights.iter().map(|dispatch| dispatch.variant));
        let bounds = Bounds {
            workgroups: device.limits.max_compute_workgroups_per_dimension,
            iterations: options.iterations.or(device.software.then_some(SOFTWARE_ITERATIONS)),
            reflection_work: options.reflection_work.unwrap_or(room.work()),
            variants: options.variants,
            fuse: options.fuse,
        };
        Ok(Self {
            room,
            bounds,
            options,
            arrays,
            programs: Vec::new(),
            data: None,
            order: Vec::new(),
            last_rows: None,
            last_slices: None,
            upload: Vec::new(),
            pack_weights,
            weights_written: false,
            shared: false,
            tables,
            device,
            plan,
        })
    }

    /// Records a tile of a program into the next submission: with the operations before the tiles where it is the
    /// first, and those after where it is the last.
    fn replay(&mut self, program: usize, tile: TileJob, batch: usize, update: &Update, dropout: u8) -> Result<()> {
        self.arrays.bind()?;
        let compiled = &self.programs[program];
        let first = tile.first == 0;
        let last = (tile.first + tile.rows) as usize == batch;
        if first && compiled.clear {
            self.arrays.clear(Role::Partials)?;
        }
        let none = [].as_slice();
        let pack = if std::mem::take(&mut self.weights_written) { self.pack_weights.as_slice() } else { none };
        let recorded = &compiled.recorded;
        let lists = [
            (pack, TileJob::zeroed()),
            (if first { &recorded.prepare } else { none }, TileJob::zeroed()),
            (&recorded.rows, tile),
            (if last { &recorded.finish } else { none }, TileJob::zeroed()),
        ];
        self.arrays.replay(&lists, update, dropout)?;
        Ok(())
    }

    /// Kernels of a program, in order.
    #[cfg(test)]
    pub(super) fn kernels(&self, program: ProgramId) -> Vec<crate::engine::gpu::kernels::shader::Kernel> {
        self.programs[program.0].recorded.all().map(|dispatch| dispatch.variant.kernel).collect()
    }

    /// Array of some values, where in it they begin, and their number.
    fn place(&self, values: Values) -> (Role, u64, u64) {
        let (all, trained) = (self.plan.layout.len() as u64, self.plan.layout.trained as u64);
        match values {
            Values::Weights => (Role::Weights, 0, all),
            Values::FirstMoments => (Role::FirstMoments, 0, trained),
            Values::SecondMoments => (Role::SecondMoments, 0, trained),
            Values::Averages => (Role::Extras, extras::AVERAGES, trained),
        }
    }
}

impl Session for GpuSession {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        self.add_program(program, rows)
    }

    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        self.evaluate(program, job)
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        self.take_data(data)
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        self.take_order(order)
    }

    fn share(&mut self, world: World) -> Result<()> {
        self.shared = world.size() > 1;
        Ok(())
    }

    fn exchanged(&self) -> Duration {
        Duration::ZERO
    }

    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        self.train(program, job)
    }

    fn loss(&mut self) -> Result<f32> {
        self.mean_loss()
    }

    fn skips(&mut self) -> Result<Skips> {
        let there = self.arrays.bytes(Role::Extras) >= extras::AVERAGES * 4;
        Ok(if there {
            extras::from_floats(&self.arrays.read(Role::Extras, extras::SKIPPED, 2)?)
        } else {
            Skips::default()
        })
    }

    fn set_skips(&mut self, skips: Skips) -> Result<()> {
        self.arrays.grow(Role::Extras, extras::AVERAGES * 4)?;
        self.arrays.write(Role::Extras, extras::SKIPPED * 4, bytemuck::cast_slice(&extras::to_floats(skips)))?;
        Ok(())
    }

    fn gradients(&mut self) -> Result<Vec<f32>> {
        let len = self.plan.layout.gradient_len();
        let mut sum = vec![0.0; len];
        // Slice by slice, in the order of the kernels that sum them.
        for slice in 0..self.last_slices.unwrap_or(0) {
            let copy = self.arrays.read(Role::Partials, (slice * len) as u64, len as u64)?;
            sum.iter_mut().zip(copy).for_each(|(sum, part)| *sum += part);
        }
        Ok(sum)
    }

    fn read(&mut self, values: Values) -> Result<Vec<f32>> {
        let (role, first, len) = self.place(values);
        if self.arrays.bytes(role) < (first + len) * 4 {
            return Ok(vec![0.0; len as usize]);
        }
        self.arrays.read(role, first, len)
    }

    fn write(&mut self, values: Values, data: &[f32]) -> Result<()> {
        let (role, first, len) = self.place(values);
        // What the counters say must not get lost when the averages come.
        let skips = if values == Values::Averages { self.skips()? } else { Skips::default() };
        self.arrays.grow(role, (first + len) * 4)?;
        self.arrays.write(role, first * 4, bytemuck::cast_slice(data))?;
        if values == Values::Averages {
            self.set_skips(skips)?;
        }
        self.weights_written |= values == Values::Weights;
        Ok(())
    }

    fn dispatches(&self, program: ProgramId) -> usize {
        self.programs[program.0].recorded.all().count()
    }

    fn tiles(&self, program: ProgramId, rows: usize) -> usize {
        rows.div_ceil(self.programs[program.0].fit.capacity)
    }

    fn begin_profile(&mut self) -> Result<()> {
        self.arrays.commands.timer = Some(Timer::new(&self.device, self.options.time_by_pass)?);
        Ok(())
    }

    fn end_profile(&mut self) -> Result<Vec<KernelTime>> {
        self.arrays.commands.end_timer()
    }

    fn footprint(&self) -> Footprint {
        self.arrays.footprint()
    }
}

//! A model on a device: its programs, and their replay for tiles of samples.

#[cfg(test)]
mod hooks;
mod tuning;

pub(crate) mod arrays;
pub(crate) mod tuner;

use std::sync::Arc;

use arrays::Arrays;
use bytemuck::Zeroable;
use tuner::Tuner;

use crate::engine::gpu::compile::bounds::{Bounds, KernelVariants, SOFTWARE_ITERATIONS};
use crate::engine::gpu::compile::dispatch::{Dispatch, Recorded};
use crate::engine::gpu::compile::recompute::{recomputed, wide_rows};
use crate::engine::gpu::compile::record::reflect::reflection_scratch;
use crate::engine::gpu::compile::record::{self, Recorder};
use crate::engine::gpu::compile::tiling::{Fit, Room, TILE_STEP};
use crate::engine::gpu::compile::trim::trim;
use crate::engine::gpu::device::open::{Device, Failure};
use crate::engine::gpu::device::timer::Timer;
use crate::engine::gpu::device::transfer::{from_arena, to_arena};
use crate::engine::gpu::kernels::extras;
use crate::engine::gpu::kernels::launch::{NONE, TileJob, Update};
use crate::engine::gpu::kernels::shader::Role;
use crate::engine::gpu::layout::panels::Panels;
use crate::engine::gpu::layout::tables::Tables;
use crate::engine::{Footprint, Job, KernelTime, ProgramId, Session, Skips, StepJob, Values};
use crate::error::Result;
use crate::plan::Plan;
use crate::program::{Program, StepOp};

/// Bytes of results that a run leaves on the device before it fetches them.
const RESULTS: u64 = 64 << 20;

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
    /// Largest tile; tests make it small.
    most_samples: usize,
    /// Largest data set that stays on the device, in bytes; tests make it 0.
    most_data: u64,
    /// See [`Bounds::reflection_work`]; tests make it small.
    reflection_work: u64,
    /// See [`Bounds::iterations`]; tests make it small.
    iterations: Option<u64>,
    /// Variants of programs compiled from now on, where they are not measured.
    variants: KernelVariants,
    /// Measures which variants are the fastest; none: the first ones are taken.
    tuner: Option<Arc<Tuner>>,
    /// See [`Bounds::fuse`]; tests switch it off.
    fuse: bool,
    /// Copies the weights to the panels.
    pack_weights: Option<Dispatch>,
    /// Whether the host has written weights since they were copied.
    weights_written: bool,
}

impl GpuSession {
    pub(super) fn new(device: Arc<Device>, plan: Arc<Plan>) -> Result<Self> {
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
        let pack_weights = record::pack_weights(&plan, device.limits.max_compute_workgroups_per_dimension);
        arrays.add_kernels(pack_weights.iter().map(|dispatch| dispatch.variant));
        Ok(Self {
            room,
            arrays,
            programs: Vec::new(),
            data: None,
            order: Vec::new(),
            last_rows: None,
            last_slices: None,
            upload: Vec::new(),
            most_samples: usize::MAX,
            most_data: u64::MAX,
            reflection_work: room.work(),
            iterations: device.software.then_some(SOFTWARE_ITERATIONS),
            variants: KernelVariants::default(),
            tuner: None,
            fuse: true,
            pack_weights,
            weights_written: false,
            tables,
            device,
            plan,
        })
    }

    /// Measures which variants of programs compiled from now on are the fastest.
    pub(super) fn tuned(self, tuner: Option<Arc<Tuner>>) -> Self {
        Self { tuner, ..self }
    }

    /// Makes room for the sums of the loss of a batch.
    fn grow_losses(&mut self, batch: usize) -> Result<(), Failure> {
        let floats = reflection_scratch(&self.plan) + batch.div_ceil(TILE_STEP);
        self.arrays.grow(Role::Scratch, floats as u64 * 4)
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

    /// Records a program for the device.
    fn record(&self, program: &Program, fit: Fit, variants: KernelVariants, recomputed: &[usize]) -> Result<Recorded> {
        let recorder = || self.recorder(fit, variants, recomputed);
        let trains = program.finish.iter().any(|op| matches!(op, StepOp::ReflectBackward { .. }));
        Ok(Recorded {
            prepare: recorder().steps(&program.prepare, trains)?,
            rows: recorder().rows(program)?,
            finish: recorder().steps(&program.finish, trains)?,
        })
    }

    fn recorder<'a>(&'a self, fit: Fit, variants: KernelVariants, recomputed: &'a [usize]) -> Recorder<'a> {
        let bounds = Bounds {
            workgroups: self.device.limits.max_compute_workgroups_per_dimension,
            iterations: self.iterations,
            reflection_work: self.reflection_work,
            variants,
            fuse: self.fuse,
        };
        Recorder::new(&self.plan, &self.tables, fit, bounds, recomputed)
    }

    /// Makes the arrays large enough for a program and batches of `rows` samples.
    fn allocate(&mut self, program: &Program, rows: usize, fit: Fit) -> Result<(), Failure> {
        self.arrays.grow(Role::Arena, fit.arena_bytes(program.arena_rows))?;
        let (gradients, trained) = (self.plan.layout.gradient_len() as u64, self.plan.layout.trained as u64);
        if program.has_gradients() {
            self.arrays.grow(Role::Partials, gradients * 4 * fit.slices as u64)?;
        }
        if program.finish.contains(&StepOp::Adam) {
            self.grow_losses(rows)?;
            self.arrays.grow(Role::FirstMoments, trained * 4)?;
            self.arrays.grow(Role::SecondMoments, trained * 4)?;
            self.arrays.grow(Role::Extras, extras::AVERAGES * 4)?;
        }
        Ok(())
    }

    /// Makes the arrays large enough for a program, or the tiles small enough for the device.
    fn find_room(&mut self, program: &Program, rows: usize) -> Result<Fit> {
        let mut most = self.most_samples;
        loop {
            let fit = self.room.fit(program, rows, most, &self.device.info.name)?;
            match self.allocate(program, rows, fit) {
                Ok(()) => return Ok(fit),
                Err(Failure::Memory(_)) if fit.capacity > TILE_STEP => {
                    most = (fit.capacity / 2).max(TILE_STEP);
                    tracing::debug!("{}: not enough memory, tiles of {most} samples now", program.name);
                }
                Err(failure) => return Err(failure.into()),
            }
        }
    }

    /// The program without rows of hidden activations that are computed again.
    fn trim(&self, program: &Program, recomputed: &[usize], variants: KernelVariants) -> Program {
        trim(program, |stage| {
            let tables = &self.tables.stages[stage];
            // Networks that run one by one go through these rows.
            let packed = variants.forward.is_some() && !tables.packs.is_empty();
            (packed && recomputed.contains(&stage)).then(|| wide_rows(&self.plan.stages[stage], tables))
        })
    }

    /// Puts the rows of a tile in order on the device, where the data set as a whole is not.
    fn stream(&mut self, first: usize, rows: usize) -> Result<()> {
        let (Some(data), columns) = (&self.data, self.plan.spec.row_columns() as usize) else { return Ok(()) };
        self.upload.clear();
        for &row in &self.order[first..first + rows] {
            self.upload.extend_from_slice(&data.values[row as usize * columns..][..columns]);
        }
        self.arrays.grow(Role::Data, (self.upload.len() * 4) as u64)?;
        self.arrays.upload(Role::Data, bytemuck::cast_slice(&self.upload))?;
        Ok(())
    }

    /// Adds the kernels of a program that drop hidden units, if it has not had them.
    fn prepare_dropout(&mut self, program: ProgramId, dropout: u8) {
        let compiled = &mut self.programs[program.0];
        if dropout != 0 && compiled.dropout != dropout {
            self.arrays.add_kernels(compiled.recorded.all().map(|dispatch| dispatch.variant.with_dropout(dropout)));
            compiled.dropout = dropout;
        }
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

/// Whether a program leaves the gradient of every weight.
fn writes_every_gradient(program: &Program) -> bool {
    let mut trained = program.plan.mixes().enumerate().filter(|(_, mix)| mix.reflections.is_some());
    program.writes_every_gradient() && trained.all(|(mix, _)| program.finish.contains(&StepOp::ReflectBackward { mix }))
}

impl Session for GpuSession {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        debug_assert_eq!(program.plan, self.plan, "a session runs programs of its own plan");
        let variants = self.tune(&program, rows)?;
        let recomputed = recomputed(&self.tables, &program, variants, rows, self.iterations);
        let program = self.trim(&program, &recomputed, variants);
        let fit = self.find_room(&program, rows)?;
        let recorded = self.record(&program, fit, variants, &recomputed)?;
        self.arrays.commands.reserve_launches(recorded.all().chain(&self.pack_weights).count())?;
        self.arrays.add_kernels(recorded.all().map(|dispatch| dispatch.variant));
        let clear = program.has_gradients() && !writes_every_gradient(&program);
        self.programs.push(Compiled { program, fit, recorded, clear, dropout: 0 });
        self.arrays.bind()?;
        Ok(ProgramId(self.programs.len() - 1))
    }

    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let compiled = &self.programs[program.0];
        let (fit, gradients) = (compiled.fit, compiled.program.has_gradients());
        let (inputs, outputs) = (compiled.program.inputs.clone(), compiled.program.outputs.clone());
        if gradients {
            self.last_slices = (job.rows > 0).then_some(fit.slices);
        }
        let mut results: Vec<Vec<f32>> =
            outputs.iter().map(|buffer| Vec::with_capacity(job.rows * buffer.rows as usize)).collect();
        let output_rows: u64 = outputs.iter().map(|buffer| u64::from(buffer.rows)).sum();
        let tile_bytes = output_rows * fit.capacity as u64 * 4;
        let fetch_every = (RESULTS / tile_bytes.max(1)).max(1) as usize;
        let all: Vec<TileJob> = fit.tiles(job.rows).collect();
        for together in all.chunks(fetch_every) {
            self.arrays.commands.reserve_staging(tile_bytes * together.len() as u64)?;
            for tile in together {
                let (first, rows, pitch) = (tile.first as usize, tile.rows as usize, tile.stride as usize * 4);
                for (buffer, values) in inputs.iter().zip(job.inputs) {
                    let features = buffer.rows as usize;
                    let samples = &values[first * features..(first + rows) * features];
                    to_arena(samples, features, pitch, &mut self.upload);
                    let offset = u64::from(buffer.first) * pitch as u64 * 4;
                    self.arrays.write(Role::Arena, offset, bytemuck::cast_slice(&self.upload))?;
                }
                let tile = TileJob {
                    seed_lo: job.seed as u32,
                    seed_hi: (job.seed >> 32) as u32,
                    start_lo: job.first_row as u32,
                    start_hi: (job.first_row >> 32) as u32,
                    step: job.groups.first,
                    group_rows: job.groups.rows,
                    loss_cell: NONE,
                    ..*tile
                };
                self.replay(program.0, tile, job.rows, &Update::zeroed(), 0)?;
                let pitch = pitch as u64;
                let parts: Vec<(u64, u64)> =
                    outputs.iter().map(|b| (u64::from(b.first) * pitch, u64::from(b.rows) * pitch)).collect();
                self.arrays.stage(Role::Arena, &parts)?;
            }
            let fetched = self.arrays.commands.fetch()?;
            let mut rest = fetched.as_slice();
            for tile in together {
                for (buffer, result) in outputs.iter().zip(&mut results) {
                    let (features, pitch) = (buffer.rows as usize, tile.stride as usize * 4);
                    let (now, later) = rest.split_at(features * pitch);
                    from_arena(now, features, pitch, tile.rows as usize, result);
                    rest = later;
                }
            }
        }
        Ok(results)
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        let bytes = data.len() as u64 * 4;
        let resident = bytes <= self.device.max_array().min(self.most_data)
            && match self.arrays.grow(Role::Data, bytes) {
                Ok(()) => true,
                Err(Failure::Memory(_)) => false,
                Err(failure) => return Err(failure.into()),
            };
        if resident {
            self.arrays.write(Role::Data, 0, bytemuck::cast_slice(&data))?;
        } else {
            tracing::info!("the training data does not fit on the device and is streamed to it");
        }
        self.data = Some(Data { values: data, resident });
        // An order is one of the data it was given for.
        self.order.clear();
        self.arrays.bind()
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        self.order.clear();
        self.order.extend_from_slice(order);
        if self.data.as_ref().is_some_and(|data| data.resident) {
            self.arrays.grow(Role::Order, order.len() as u64 * 4)?;
            self.arrays.write(Role::Order, 0, bytemuck::cast_slice(order))?;
            self.arrays.bind()?;
        }
        Ok(())
    }

    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        let compiled = &self.programs[program.0];
        let (fit, gradients) = (compiled.fit, compiled.program.has_gradients());
        self.grow_losses(job.rows)?;
        self.prepare_dropout(program, job.dropout);
        let loss_cell = reflection_scratch(&self.plan) as u32;
        let resident = self.data.as_ref().is_some_and(|data| data.resident);
        let adam = job.adam.adam;
        let update = Update {
            rate: job.adam.rate,
            root: job.adam.root,
            beta1: adam.beta1,
            beta2: adam.beta2,
            eps: adam.eps,
            l2: adam.l2,
            grad_clamp: adam.grad_clamp,
            clip_norm: adam.clip_norm,
            shrink: job.adam.shrink,
            follow: job.adam.follow,
        };
        for tile in fit.tiles(job.rows) {
            if !resident {
                self.stream(job.first + tile.first as usize, tile.rows as usize)?;
            }
            let tile = TileJob {
                resident: u32::from(resident),
                seed_lo: job.seed as u32,
                seed_hi: (job.seed >> 32) as u32,
                step: job.step,
                start_lo: job.first as u32,
                noise: job.noise,
                loss_cell,
                ..tile
            };
            self.replay(program.0, tile, job.rows, &update, job.dropout)?;
        }
        self.last_rows = Some(job.rows);
        if gradients {
            self.last_slices = Some(fit.slices);
        }
        self.arrays.commands.step_recorded()?;
        Ok(())
    }

    fn loss(&mut self) -> Result<f32> {
        let Some(rows) = self.last_rows else { return Ok(f32::NAN) };
        let (first, sums) = (reflection_scratch(&self.plan) as u64, rows.div_ceil(TILE_STEP) as u64);
        let sum: f64 = self.arrays.read(Role::Scratch, first, sums)?.into_iter().map(f64::from).sum();
        Ok((sum / rows as f64) as f32)
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
        self.arrays.commands.timer = Some(Timer::new(&self.device)?);
        Ok(())
    }

    fn end_profile(&mut self) -> Result<Vec<KernelTime>> {
        self.arrays.commands.end_timer()
    }

    fn footprint(&self) -> Footprint {
        self.arrays.footprint()
    }
}

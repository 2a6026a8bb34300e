//! The arrays of one model on a device, and the replay of its programs.

use std::collections::HashMap;
use std::sync::Arc;

use bytemuck::Zeroable;

use super::device::{Device, Failure};
use super::fit::{Fit, Room};
use super::launch::{Tile, Update};
use super::record::{self, Bounds, Dispatch, Recorder};
use super::shader::{Kernel, Role};
use super::tables::Tables;
use super::transfer::{Commands, Part, from_arena, to_arena};
use crate::engine::{Job, ProgramId, Session, StepJob, Values};
use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::program::{Op, Program, StepOp};

/// Training steps that share a submission.
const STEPS_PER_SUBMISSION: usize = 4;
/// Cells of the scratch array that hold the sum of the loss of the last step, and of the last run.
const STEP_LOSS: u32 = 0;
const RUN_LOSS: u32 = 1;

/// A program ready to replay.
struct Compiled {
    program: Program,
    fit: Fit,
    prepare: Vec<Dispatch>,
    rows: Vec<Dispatch>,
    finish: Vec<Dispatch>,
    /// Whether it has backward operations that write gradients.
    gradients: bool,
    /// Whether they leave some gradients unwritten, which are zero then.
    clear: bool,
}

impl Compiled {
    fn all(&self) -> impl Iterator<Item = &Dispatch> {
        self.prepare.iter().chain(&self.rows).chain(&self.finish)
    }
}

/// A kernel with the session's arrays.
struct Bound {
    pipeline: Arc<super::device::Pipeline>,
    group: wgpu::BindGroup,
}

/// The training data.
struct Data {
    values: Arc<[f32]>,
    rows: usize,
    /// Whether all of it is on the device.
    resident: bool,
}

/// One model on one device.
pub(super) struct GpuSession {
    device: Arc<Device>,
    plan: Arc<Plan>,
    tables: Tables,
    room: Room,
    commands: Commands,
    arrays: [Option<wgpu::Buffer>; Role::ALL.len()],
    bound: HashMap<Kernel, Bound>,
    programs: Vec<Compiled>,
    data: Option<Data>,
    order: Vec<u32>,
    /// Samples of the last step.
    last_rows: Option<usize>,
    /// Copies of the gradient that the last run or step left; none: no samples, so the gradient is zero.
    last_slices: Option<usize>,
    steps_waiting: usize,
    /// Reused from tile to tile.
    upload: Vec<f32>,
    /// Largest tile; tests make it small.
    most_samples: usize,
    /// Largest data set that stays on the device, in bytes; tests make it 0.
    most_data: u64,
}

impl GpuSession {
    pub(super) fn new(device: Arc<Device>, plan: Arc<Plan>) -> Result<Self> {
        let room = Room::of(&device);
        room.check_weights(&plan, &device.info.name)?;
        let tables = Tables::new(&plan);
        let commands = Commands::new(device.clone())?;
        let mut this = Self {
            room,
            commands,
            arrays: Default::default(),
            bound: HashMap::new(),
            programs: Vec::new(),
            data: None,
            order: Vec::new(),
            last_rows: None,
            last_slices: None,
            steps_waiting: 0,
            upload: Vec::new(),
            most_samples: usize::MAX,
            most_data: u64::MAX,
            tables,
            device,
            plan,
        };
        this.grow(Role::Weights, this.plan.layout.len() as u64 * 4)?;
        let words = bytemuck::cast_slice(&this.tables.words).to_vec();
        this.grow(Role::Tables, words.len() as u64)?;
        this.write_bytes(Role::Tables, 0, &words)?;
        this.grow(Role::Scratch, record::scratch_len(&this.plan) as u64 * 4)?;
        Ok(this)
    }

    /// Limits the samples of a tile of programs compiled from now on.
    #[cfg(test)]
    pub(super) fn limit_tiles(&mut self, samples: usize) {
        self.most_samples = samples;
    }

    /// Streams data sets given from now on, whatever their size.
    #[cfg(test)]
    pub(super) fn stream_data(&mut self, streamed: bool) {
        self.most_data = if streamed { 0 } else { u64::MAX };
    }

    /// Makes an array at least that large, all zero; one that is large enough stays as it is.
    fn grow(&mut self, role: Role, bytes: u64) -> Result<(), Failure> {
        let slot = &mut self.arrays[role as usize];
        if slot.as_ref().is_some_and(|buffer| buffer.size() >= bytes) {
            return Ok(());
        }
        // The bind groups hold on to the old array.
        self.commands.submit()?;
        self.bound.clear();
        *slot = None;
        let device = &self.device;
        let buffer = device.scoped(|| {
            device.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some(role.name()),
                size: bytes.max(16).next_multiple_of(16),
                usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
                mapped_at_creation: false,
            })
        })?;
        *slot = Some(buffer);
        Ok(())
    }

    fn write_bytes(&mut self, role: Role, offset: u64, bytes: &[u8]) -> Result<()> {
        self.steps_waiting = 0;
        if let Some(buffer) = &self.arrays[role as usize]
            && !bytes.is_empty()
        {
            self.commands.write(buffer, offset, bytes)?;
        }
        Ok(())
    }

    /// Reads `(offset, length)` in floats of an array, one behind the other.
    fn read_floats(&mut self, role: Role, parts: &[(u64, u64)]) -> Result<Vec<f32>> {
        self.steps_waiting = 0;
        let Some(buffer) = &self.arrays[role as usize] else { return Ok(Vec::new()) };
        let parts: Vec<Part<'_>> =
            parts.iter().map(|&(offset, len)| Part { buffer, offset: offset * 4, bytes: len * 4 }).collect();
        self.commands.read(&parts)
    }

    /// Bind groups of all kernels that the compiled programs use.
    fn bind(&mut self) -> Result<()> {
        let mut kernels: Vec<Kernel> = self.programs.iter().flat_map(Compiled::all).map(|d| d.kernel).collect();
        kernels.sort_unstable_by_key(|&kernel| kernel as u32);
        kernels.dedup();
        kernels.retain(|kernel| !self.bound.contains_key(kernel));
        for kernel in kernels {
            let pipeline = self.device.pipeline(kernel)?;
            for binding in &pipeline.bindings {
                // Arrays that get their size later, such as the data, begin as a placeholder.
                self.grow(binding.role, 1)?;
            }
            let arrays = &self.arrays;
            let entries: Vec<wgpu::BindGroupEntry<'_>> = pipeline
                .bindings
                .iter()
                .filter_map(|binding| {
                    let buffer = arrays[binding.role as usize].as_ref()?;
                    Some(wgpu::BindGroupEntry { binding: binding.role as u32, resource: buffer.as_entire_binding() })
                })
                .collect();
            let group = self.device.scoped(|| {
                self.device.device.create_bind_group(&wgpu::BindGroupDescriptor {
                    label: Some(kernel.name()),
                    layout: &pipeline.layout,
                    entries: &entries,
                })
            })?;
            self.bound.insert(kernel, Bound { pipeline, group });
        }
        Ok(())
    }

    /// Records dispatches of a program into the next submission.
    fn replay(&mut self, program: usize, parts: &[Replay], update: &Update) -> Result<()> {
        self.bind()?;
        let (compiled, bound) = (&self.programs[program], &self.bound);
        if compiled.clear
            && matches!(parts.first(), Some(Replay::Prepare))
            && let Some(partials) = &self.arrays[Role::Partials as usize]
        {
            self.commands.clear(partials)?;
        }
        self.commands.pass(compiled.all().count(), |pass| {
            for part in parts {
                let (list, tile) = match part {
                    Replay::Prepare => (&compiled.prepare, Tile::zeroed()),
                    Replay::Rows(tile) => (&compiled.rows, *tile),
                    Replay::Finish => (&compiled.finish, Tile::zeroed()),
                };
                for dispatch in list {
                    // `bind` has made a group for every kernel of the programs.
                    let Some(bound) = bound.get(&dispatch.kernel) else { continue };
                    pass.pass.set_pipeline(&bound.pipeline.pipeline);
                    pass.pass.set_bind_group(0, &bound.group, &[]);
                    pass.launch(&dispatch.bytes(&tile, update)[..dispatch.len]);
                    let [x, y] = dispatch.grid.map(|extent| extent.workgroups(tile.quads));
                    pass.pass.dispatch_workgroups(x, y, 1);
                }
            }
        })?;
        Ok(())
    }

    /// Records a program for a device, with tiles as large as its memory allows.
    fn record(&self, program: &Program, fit: Fit) -> Result<[Vec<Dispatch>; 3]> {
        let bounds = Bounds {
            workgroups: self.device.limits.max_compute_workgroups_per_dimension,
            turns: self.device.software.then_some(record::SOFTWARE_TURNS),
        };
        let recorder = || Recorder::new(&self.plan, &self.tables, fit, bounds);
        Ok([recorder().steps(&program.prepare)?, recorder().rows(&program.rows)?, recorder().steps(&program.finish)?])
    }

    /// What a tile's kernels are told, apart from seeds.
    fn tile(&self, fit: Fit, first: usize, rows: usize, batch: usize) -> Tile {
        Tile {
            rows: rows as u32,
            quads: rows.div_ceil(4) as u32,
            stride: fit.stride() as u32,
            first: first as u32,
            accumulate: u32::from(first > 0),
            inverse_batch: (1.0 / batch as f64) as f32,
            ..Tile::zeroed()
        }
    }

    /// Allocates the arrays of a program.
    fn allocate(&mut self, program: &Program, fit: Fit, gradients: bool) -> Result<(), Failure> {
        self.grow(Role::Arena, fit.arena_bytes(program.arena_rows))?;
        let layout = &self.plan.layout;
        let (copy, trained) = (layout.gradient_len() as u64 * 4, layout.trained as u64 * 4);
        if gradients {
            self.grow(Role::Partials, copy * fit.slices as u64)?;
        }
        if program.finish.contains(&StepOp::Adam) {
            self.grow(Role::FirstMoments, trained)?;
            self.grow(Role::SecondMoments, trained)?;
        }
        Ok(())
    }

    /// Puts the rows of a tile in order on the device, where the data set as a whole is not.
    fn stream(&mut self, first: usize, rows: usize) -> Result<()> {
        let (Some(data), columns) = (&self.data, self.plan.spec.dim as usize) else { return Ok(()) };
        let mut upload = std::mem::take(&mut self.upload);
        upload.clear();
        for &row in &self.order[first..first + rows] {
            upload.extend_from_slice(&data.values[row as usize * columns..][..columns]);
        }
        self.grow(Role::Data, (upload.len() * 4) as u64)?;
        let written = self.write_bytes(Role::Data, 0, bytemuck::cast_slice(&upload));
        self.upload = upload;
        written
    }

    fn check_order(&self, first: usize, rows: usize) -> Result<()> {
        let shape = |what: &str, expected, got| Err(Error::Shape { what: what.to_owned(), expected, got });
        if rows == 0 {
            return shape("samples of a training step", 1, 0);
        }
        match first.checked_add(rows) {
            Some(end) if end <= self.order.len() => Ok(()),
            end => shape("length of the order of the training data", end.unwrap_or(usize::MAX), self.order.len()),
        }
    }
}

/// Whether the backward operations of a program write the gradient of every weight.
fn writes_every_gradient(program: &Program) -> bool {
    let plan = &program.plan;
    let stages = (0..plan.stages.len()).all(|wanted| {
        program.rows.iter().any(|op| matches!(op, Op::NetworksBackward { stage, .. } if *stage == wanted))
    });
    let mixes = plan.mixes().enumerate().filter(|(_, mix)| mix.reflections.is_some()).all(|(wanted, _)| {
        program.finish.contains(&StepOp::ReflectBackward { mix: wanted })
            && program.rows.iter().any(|op| matches!(op, Op::MixBackward { mix, .. } if *mix == wanted))
    });
    stages && mixes
}

/// What [`GpuSession::replay`] can replay.
enum Replay {
    Prepare,
    Rows(Tile),
    Finish,
}

impl Session for GpuSession {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        debug_assert_eq!(program.plan, self.plan, "a session runs programs of its own plan");
        let gradients =
            program.rows.iter().any(|op| matches!(op, Op::NetworksBackward { .. } | Op::MixBackward { .. }));
        let mut most = self.most_samples;
        let fit = loop {
            let fit = self.room.fit(&program, rows, most, &self.device.info.name)?;
            match self.allocate(&program, fit, gradients) {
                Ok(()) => break fit,
                Err(Failure::Memory(_)) if fit.capacity > 4 => {
                    most = (fit.capacity / 2).max(4);
                    tracing::debug!("{}: not enough memory, tiles of {most} samples now", program.name);
                }
                Err(failure) => return Err(failure.into()),
            }
        };
        let [prepare, rows, finish] = self.record(&program, fit)?;
        self.commands.reserve(prepare.len() + rows.len() + finish.len())?;
        let clear = gradients && !writes_every_gradient(&program);
        self.programs.push(Compiled { program, fit, prepare, rows, finish, gradients, clear });
        self.bind()?;
        Ok(ProgramId(self.programs.len() - 1))
    }

    fn run(&mut self, program: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let Compiled { program: recorded, fit, gradients, .. } = &self.programs[program.0];
        let (fit, gradients) = (*fit, *gradients);
        let (inputs, outputs) = (recorded.inputs.clone(), recorded.outputs.clone());
        if inputs.len() != job.inputs.len() {
            let what = "inputs of the program".to_owned();
            return Err(Error::Shape { what, expected: inputs.len(), got: job.inputs.len() });
        }
        for (buffer, values) in inputs.iter().zip(job.inputs) {
            let expected = job.rows * buffer.rows as usize;
            if values.len() != expected {
                return Err(Error::Shape { what: "values of an input".to_owned(), expected, got: values.len() });
            }
        }
        if gradients {
            self.last_slices = (job.rows > 0).then_some(fit.slices);
        }
        let mut results = vec![Vec::new(); outputs.len()];
        let row_bytes = fit.capacity as u64 * 4;
        for first in (0..job.rows).step_by(fit.capacity) {
            let rows = fit.capacity.min(job.rows - first);
            let mut upload = std::mem::take(&mut self.upload);
            for (buffer, values) in inputs.iter().zip(job.inputs) {
                let features = buffer.rows as usize;
                to_arena(&values[first * features..(first + rows) * features], features, fit.capacity, &mut upload);
                let offset = u64::from(buffer.first) * row_bytes;
                self.write_bytes(Role::Arena, offset, bytemuck::cast_slice(&upload))?;
            }
            self.upload = upload;
            let tile = Tile {
                seed_lo: job.seed as u32,
                seed_hi: (job.seed >> 32) as u32,
                start_lo: job.first_row as u32,
                start_hi: (job.first_row >> 32) as u32,
                loss_cell: RUN_LOSS,
                ..self.tile(fit, first, rows, job.rows)
            };
            let mut parts = Vec::with_capacity(3);
            if first == 0 {
                parts.push(Replay::Prepare);
            }
            parts.push(Replay::Rows(tile));
            if first + rows == job.rows {
                parts.push(Replay::Finish);
            }
            self.replay(program.0, &parts, &Update::zeroed())?;
            let values = fit.capacity as u64;
            let wanted: Vec<(u64, u64)> =
                outputs.iter().map(|b| (u64::from(b.first) * values, u64::from(b.rows) * values)).collect();
            let read = self.read_floats(Role::Arena, &wanted)?;
            let mut rest = read.as_slice();
            for (buffer, result) in outputs.iter().zip(&mut results) {
                let (now, later) = rest.split_at(buffer.rows as usize * fit.capacity);
                from_arena(now, buffer.rows as usize, fit.capacity, rows, result);
                rest = later;
            }
        }
        if outputs.is_empty() {
            self.commands.submit()?;
        }
        Ok(results)
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        let columns = self.plan.spec.dim as usize;
        if !data.len().is_multiple_of(columns) {
            let what = format!("values of the training data, {columns} per row");
            return Err(Error::Shape { what, expected: data.len() / columns * columns, got: data.len() });
        }
        let bytes = data.len() as u64 * 4;
        let resident = bytes <= self.device.max_array().min(self.most_data)
            && match self.grow(Role::Data, bytes) {
                Ok(()) => true,
                Err(Failure::Memory(_)) => false,
                Err(failure) => return Err(failure.into()),
            };
        if resident {
            self.write_bytes(Role::Data, 0, bytemuck::cast_slice(&data))?;
        } else {
            tracing::info!("the training data does not fit on the device and is streamed to it");
        }
        self.data = Some(Data { rows: data.len() / columns, values: data, resident });
        // An order is one of the data it was given for.
        self.order.clear();
        self.bind()
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        let rows = self.data.as_ref().map_or(0, |data| data.rows);
        if let Some(&row) = order.iter().find(|&&row| row as usize >= rows) {
            let what = "rows of the training data that its order names".to_owned();
            return Err(Error::Shape { what, expected: row as usize + 1, got: rows });
        }
        self.order = order.to_vec();
        if self.data.as_ref().is_some_and(|data| data.resident) {
            self.grow(Role::Order, order.len() as u64 * 4)?;
            self.write_bytes(Role::Order, 0, bytemuck::cast_slice(order))?;
            self.bind()?;
        }
        Ok(())
    }

    fn step(&mut self, program: ProgramId, job: &StepJob) -> Result<()> {
        let Compiled { fit, gradients, .. } = &self.programs[program.0];
        let (fit, gradients) = (*fit, *gradients);
        self.check_order(job.first, job.rows)?;
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
        };
        for first in (0..job.rows).step_by(fit.capacity) {
            let rows = fit.capacity.min(job.rows - first);
            if !resident {
                self.stream(job.first + first, rows)?;
            }
            let tile = Tile {
                resident: u32::from(resident),
                seed_lo: job.seed as u32,
                seed_hi: (job.seed >> 32) as u32,
                step: job.step,
                start_lo: job.first as u32,
                noise: job.noise,
                loss_cell: STEP_LOSS,
                ..self.tile(fit, first, rows, job.rows)
            };
            // A fixed array would not do: its length differs.
            let parts: &[Replay] = match (first == 0, first + rows == job.rows) {
                (true, true) => &[Replay::Prepare, Replay::Rows(tile), Replay::Finish],
                (true, false) => &[Replay::Prepare, Replay::Rows(tile)],
                (false, true) => &[Replay::Rows(tile), Replay::Finish],
                (false, false) => &[Replay::Rows(tile)],
            };
            self.replay(program.0, parts, &update)?;
        }
        self.last_rows = Some(job.rows);
        if gradients {
            self.last_slices = Some(fit.slices);
        }
        self.steps_waiting += 1;
        if self.steps_waiting >= STEPS_PER_SUBMISSION {
            self.steps_waiting = 0;
            self.commands.submit()?;
        }
        Ok(())
    }

    fn loss(&mut self) -> Result<f32> {
        let Some(rows) = self.last_rows else { return Ok(f32::NAN) };
        let sum = self.read_floats(Role::Scratch, &[(STEP_LOSS.into(), 1)])?;
        Ok(sum.first().map_or(f32::NAN, |&sum| (f64::from(sum) / rows as f64) as f32))
    }

    fn gradients(&mut self) -> Result<Vec<f32>> {
        let len = self.plan.layout.gradient_len();
        let mut sum = vec![0.0; len];
        // Slice by slice, in the order of the kernels that sum them.
        for slice in 0..self.last_slices.unwrap_or(0) {
            let copy = self.read_floats(Role::Partials, &[((slice * len) as u64, len as u64)])?;
            sum.iter_mut().zip(copy).for_each(|(sum, part)| *sum += part);
        }
        Ok(sum)
    }

    fn read(&mut self, values: Values) -> Result<Vec<f32>> {
        let (role, len) = self.place(values);
        if self.arrays[role as usize].is_none() {
            return Ok(vec![0.0; len]);
        }
        self.read_floats(role, &[(0, len as u64)])
    }

    fn write(&mut self, values: Values, data: &[f32]) -> Result<()> {
        let (role, len) = self.place(values);
        if data.len() != len {
            return Err(Error::Shape { what: format!("{values:?}"), expected: len, got: data.len() });
        }
        self.grow(role, len as u64 * 4)?;
        self.write_bytes(role, 0, bytemuck::cast_slice(data))
    }

    fn dispatches(&self, program: ProgramId) -> usize {
        self.programs[program.0].all().count()
    }

    fn memory(&self) -> usize {
        let arrays: u64 = self.arrays.iter().flatten().map(wgpu::Buffer::size).sum();
        (arrays + self.commands.memory()) as usize
    }
}

impl GpuSession {
    /// Array and its length in floats.
    fn place(&self, values: Values) -> (Role, usize) {
        let layout = &self.plan.layout;
        match values {
            Values::Weights => (Role::Weights, layout.len()),
            Values::FirstMoments => (Role::FirstMoments, layout.trained),
            Values::SecondMoments => (Role::SecondMoments, layout.trained),
        }
    }
}

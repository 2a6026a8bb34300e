//! The session of the CPU engine: weights, partial gradients, and the loop over tiles.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rayon::prelude::*;

use super::arrays::zeros;
use super::compiled::{Compiled, Source};
use super::execute::{Model, Place};
use super::mixing::{Applied, each_part, vectors};
use super::phases::Phases;
use super::profile::{self, Clock};
use super::tiling::{Tiling, groups};
use super::trim::trim;
use super::update::Optimizer;
use crate::comm::World;
use crate::engine::ranks::Ranks;
use crate::engine::{Footprint, Job, KernelTime, ProgramId, Session, Skips, StepJob, Values};
use crate::error::Result;
use crate::kernel::memory::Floats;
use crate::kernel::reflect::Reflections;
use crate::kernel::tree::{self, BLOCK, Sums};
use crate::kernel::{Gradients, Tile};
use crate::memory;
use crate::plan::{Mix, Plan};
use crate::program::{Program, StepOp, shortcuts};

pub(super) struct CpuSession {
    pool: Arc<rayon::ThreadPool>,
    model: Model,
    optimizer: Optimizer,
    /// One gradient arena per group of tiles, one after the other; empty until a program with gradients is compiled.
    partials: Floats,
    /// How many of the partial gradients the last run wrote; none of them where it had no samples.
    written: usize,
    programs: Vec<Compiled>,
    /// What is known of the mixings with these weights.
    known: Known,
    /// Those that share training steps.
    ranks: Ranks,
    /// Sums of the loss over the samples of each group.
    losses: Vec<f64>,
    /// Mean loss of the last run.
    loss: f32,
    /// Times of operations, while they are taken.
    profile: Option<Vec<KernelTime>>,
}

/// What has been worked out of the trained mixings since the weights changed.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Known {
    Nothing,
    /// The reflections can be applied.
    Reflections,
    /// Every Q, too.
    Whole,
}

impl CpuSession {
    pub(super) fn new(plan: Arc<Plan>, pool: Arc<rayon::ThreadPool>) -> Result<Self> {
        let optimizer = Optimizer::new(&plan.layout)?;
        let trained_mixes = plan.mixes().filter(|mix| mix.reflections.is_some());
        let model = Model {
            mixes: plan.mixes().cloned().collect(),
            reflections: trained_mixes.map(|mix| Reflections::new(mix.dim as usize)).collect(),
            weights: zeros(plan.layout.len(), "weights")?,
            data: Arc::new([]),
            order: Vec::new(),
            plan,
        };
        Ok(Self {
            pool,
            optimizer,
            model,
            partials: Floats::default(),
            known: Known::Nothing,
            ranks: Ranks::alone(),
            losses: Vec::new(),
            written: 0,
            programs: Vec::new(),
            loss: f32::NAN,
            profile: None,
        })
    }

    /// The partial gradients that the last run wrote.
    fn partials(&self) -> impl Iterator<Item = &[f32]> + Clone {
        self.partials.chunks_exact(self.model.plan.layout.gradient_len()).take(self.written)
    }

    /// The mean loss of a batch, of the sums that its groups left.
    fn mean_loss(&self, tiling: Tiling, rows: usize) -> f32 {
        (tree::sum(self.losses[..tiling.groups()].iter().copied()) / rows as f64) as f32
    }

    /// A whole program. It moves to the pool once: with every move a thread has to be woken.
    fn all(&mut self, id: ProgramId, rows: usize, source: &Source<'_>, outputs: &mut [Vec<f32>]) -> Result<()> {
        let pool = self.pool.clone();
        pool.install(|| {
            self.prepare(id);
            self.tiles(id, rows, source, outputs)?;
            self.finish(id, source);
            Ok(())
        })
    }

    /// Operations before the tiles: what they need of the mixings, unless it is known.
    fn prepare(&mut self, id: ProgramId) {
        let Compiled { program, applied, .. } = &self.programs[id.0];
        let Some(&op) = program.prepare.first() else { return };
        let mixes = 0..self.model.mixes.len();
        let needed = if mixes.clone().all(|mix| applied.by_blocks(mix)) { Known::Reflections } else { Known::Whole };
        if self.known >= needed {
            return;
        }
        let start = Instant::now();
        let Model { mixes, reflections, weights, plan, .. } = &mut self.model;
        let (trained, derived) = weights.split_at_mut(plan.layout.trained);
        let matrix = |mix: usize| {
            let Mix { q, dim, .. } = mixes[mix];
            let first = q as usize - trained.len();
            first..first + (dim * dim) as usize
        };
        let known = self.known;
        each_part(reflections, derived, &matrix, &|mix, reflections, q| {
            if known < Known::Reflections
                && let Some(vectors) = vectors(&mixes[mix])
            {
                reflections.set(&trained[vectors]);
            }
            if needed == Known::Whole {
                reflections.whole(q);
            }
        });
        self.known = needed;
        self.profile.iter_mut().for_each(|profile| profile.push(profile::since(start, op)));
    }

    /// Runs all tiles of a batch, those of a shared step together with the other ranks. Without outputs, so in training,
    /// it allocates nothing (`tests/allocations.rs`).
    fn tiles(&mut self, id: ProgramId, rows: usize, source: &Source<'_>, outputs: &mut [Vec<f32>]) -> Result<()> {
        let compiled = &self.programs[id.0];
        let program = &compiled.program;
        let model = &self.model;
        let clock = self.profile.is_some().then(|| Clock::new(program));
        let with_gradients = program.has_gradients();
        let tiling = if with_gradients { Tiling::step(&model.plan, rows) } else { Tiling::run(&model.plan, rows) };
        if program.couples_samples() {
            // Every rank computes the whole batch: what one would save is less than the others' samples would cost.
            let phases = Phases {
                model,
                compiled,
                source,
                rows,
                tiling: Tiling::step(&model.plan, rows),
                clock: clock.as_ref(),
            };
            phases.run(&mut self.partials, &mut self.losses, outputs);
            let tiling = phases.tiling;
            self.written = tiling.groups();
            self.loss = self.mean_loss(tiling, rows);
            if let (Some(profile), Some(clock)) = (&mut self.profile, clock) {
                profile.extend(clock.read(program));
            }
            return Ok(());
        }
        let pieces = cut(program, tiling, outputs);
        let one = |i: usize, gradients: Gradients<'_>| {
            let range = tiling.rows(i);
            let place = Place { source, first: range.start, batch: rows };
            compiled.with_tile(tiling.capacity(), range.len(), |tile| {
                Model::load(program, tile, &place);
                let loss = model.run(compiled, 0..program.rows.len(), tile, &place, gradients, clock.as_ref());
                if let Some(piece) = pieces.get(i) {
                    let mut piece = piece.lock().unwrap_or_else(PoisonError::into_inner);
                    for (buffer, samples) in program.outputs.iter().zip(piece.iter_mut()) {
                        tile.store(*buffer, samples);
                    }
                }
                loss
            })
        };
        if with_gradients {
            let shared = self.ranks.are_several() && matches!(source, Source::Batch(_));
            let own = if shared { self.ranks.own(tiling.groups()) } else { 0..tiling.groups() };
            let len = model.plan.layout.gradient_len();
            let partials = self.partials[own.start * len..own.end * len].par_chunks_exact_mut(len);
            // Not `skip` of an iterator over all: rayon allocates for it.
            partials.zip(&mut self.losses[own.clone()]).zip(own).for_each(|((partial, loss), g)| {
                if compiled.first_writes {
                    model.clear_what_no_tile_writes(&compiled.applied, partial);
                } else {
                    partial.fill(0.0);
                }
                let tiles = tiling.group(g).enumerate().map(|(nth, i)| (i, nth == 0 && compiled.first_writes));
                *loss = tiles.map(|(i, fresh)| one(i, Gradients { values: partial, fresh })).sum();
            });
            self.written = tiling.groups();
            if shared {
                let start = Instant::now();
                self.ranks.add_up(&mut self.partials, len, &mut self.losses[..tiling.groups()])?;
                self.written = 1;
                self.profile.iter_mut().for_each(|profile| profile.push(profile::of_ranks(start)));
            }
            self.loss = self.mean_loss(tiling, rows);
        } else {
            (0..tiling.tiles()).into_par_iter().for_each(|i| {
                one(i, Gradients { values: &mut [], fresh: true });
            });
        }
        if let (Some(profile), Some(clock)) = (&mut self.profile, clock) {
            profile.extend(clock.read(program));
        }
        Ok(())
    }

    /// Operations after the tiles.
    fn finish(&mut self, id: ProgramId, source: &Source<'_>) {
        let mut reflected = false;
        for i in 0..self.programs[id.0].program.finish.len() {
            let op = self.programs[id.0].program.finish[i];
            let start = Instant::now();
            match op {
                StepOp::Reflect { .. } => unreachable!("{op:?} comes before the tiles"),
                // The first of them does all.
                StepOp::ReflectBackward { .. } if reflected => continue,
                StepOp::ReflectBackward { .. } => {
                    self.reflect_backward(id);
                    reflected = true;
                }
                StepOp::Clip | StepOp::Adam => {
                    let Source::Batch(job) = source else { unreachable!("an update needs a training step") };
                    self.update(op, job);
                }
            }
            self.profile.iter_mut().for_each(|profile| profile.push(profile::since(start, op)));
        }
    }

    /// Completes the gradients of all reflection vectors, in the first partial gradient: from those of Q, or from what
    /// the tiles left in their place, summed over the groups.
    fn reflect_backward(&mut self, id: ProgramId) {
        let applied = &self.programs[id.0].applied;
        let Model { mixes, reflections, weights, plan, .. } = &mut self.model;
        let (stride, trained) = (plan.layout.gradient_len(), plan.layout.trained);
        let (first, others) = self.partials.split_at_mut(stride);
        let others = others.chunks_exact(stride).take(self.written.saturating_sub(1));
        // The vectors are trained and Q is derived, so they lie apart.
        let (d_trained, d_derived) = first.split_at_mut(trained);
        let place = |mix: usize| vectors(&mixes[mix]).unwrap_or(0..0);
        each_part(reflections, d_trained, &place, &|mix, reflections, d_vectors| {
            let at = mixes[mix].q as usize;
            let own = &d_derived[at - trained..];
            let sum = |i: usize| {
                let others = others.clone().map(|partial| partial[at + i]);
                tree::sum(std::iter::once(own[i]).chain(others))
            };
            if applied.by_blocks(mix) {
                reflections.complete(sum, d_vectors);
            } else {
                let n = mixes[mix].dim as usize;
                reflections.whole_backward(&weights[at..at + n * n], sum, d_vectors);
            }
        });
    }

    /// The update, or what decides on it.
    fn update(&mut self, op: StepOp, job: &StepJob) {
        let layout = &self.model.plan.layout;
        let partials = self.partials.chunks_exact(layout.gradient_len()).take(self.written);
        match op {
            StepOp::Clip => self.optimizer.clip(&job.adam, partials),
            _ => {
                self.known = Known::Nothing;
                self.optimizer.update(&job.adam, &mut self.model.weights[..layout.trained], partials);
            }
        }
    }

    fn values(&mut self, values: Values) -> &mut [f32] {
        match values {
            Values::Weights => &mut self.model.weights,
            Values::FirstMoments => &mut self.optimizer.first_moments,
            Values::SecondMoments => &mut self.optimizer.second_moments,
            Values::Averages => &mut self.optimizer.averages,
        }
    }
}

/// Cuts every output into the pieces of the tiles: for each tile one slice per output, which its thread locks.
fn cut<'a>(program: &Program, tiling: Tiling, outputs: &'a mut [Vec<f32>]) -> Vec<Mutex<Vec<&'a mut [f32]>>> {
    if outputs.is_empty() {
        return Vec::new();
    }
    let mut pieces: Vec<Vec<&'a mut [f32]>> = (0..tiling.tiles()).map(|_| Vec::new()).collect();
    for (buffer, output) in program.outputs.iter().zip(outputs) {
        let mut rest = output.as_mut_slice();
        for (i, piece) in pieces.iter_mut().enumerate() {
            let (head, tail) = rest.split_at_mut(tiling.rows(i).len() * buffer.rows as usize);
            piece.push(head);
            rest = tail;
        }
    }
    pieces.into_iter().map(Mutex::new).collect()
}

impl Session for CpuSession {
    fn compile(&mut self, program: Program, rows: usize) -> Result<ProgramId> {
        let mut program = trim(&program);
        let applied = Applied::new(&mut program, rows);
        let first_writes = program.writes_every_gradient_once();
        let short = shortcuts(&program);
        let compiled = Compiled { program, first_writes, short, applied, idle: Mutex::new(Vec::new()) };
        if compiled.program.has_gradients() && self.partials.is_empty() {
            let len = self.model.plan.layout.gradient_len();
            let groups = groups(&self.model.plan);
            self.partials = zeros(len * groups, "partial gradients")?;
            self.losses = vec![0.0; groups];
        }
        self.programs.push(compiled);
        Ok(ProgramId(self.programs.len() - 1))
    }

    fn run(&mut self, id: ProgramId, job: &Job<'_>) -> Result<Vec<Vec<f32>>> {
        let program = &self.programs[id.0].program;
        let mut outputs = Vec::with_capacity(program.outputs.len());
        for buffer in &program.outputs {
            let count = job.rows * buffer.rows as usize;
            let mut output: Vec<f32> = memory::reserved(count, || format!("results of {} rows", job.rows))?;
            output.resize(count, 0.0);
            outputs.push(output);
        }
        if job.rows == 0 {
            self.written = if program.has_gradients() { 0 } else { self.written };
        } else {
            self.all(id, job.rows, &Source::Job(job), &mut outputs)?;
        }
        Ok(outputs)
    }

    fn set_data(&mut self, data: Arc<[f32]>) -> Result<()> {
        self.model.data = data;
        self.model.order.clear();
        Ok(())
    }

    fn set_order(&mut self, order: &[u32]) -> Result<()> {
        self.model.order.clear();
        self.model.order.extend_from_slice(order);
        Ok(())
    }

    fn step(&mut self, id: ProgramId, job: &StepJob) -> Result<()> {
        self.all(id, job.rows, &Source::Batch(job), &mut [])
    }

    fn share(&mut self, world: World) -> Result<()> {
        self.ranks = Ranks::new(world);
        Ok(())
    }

    fn exchanged(&self) -> Duration {
        self.ranks.exchanged()
    }

    fn loss(&mut self) -> Result<f32> {
        Ok(self.loss)
    }

    fn skips(&mut self) -> Result<Skips> {
        Ok(self.optimizer.skips)
    }

    fn set_skips(&mut self, skips: Skips) -> Result<()> {
        self.optimizer.skips = skips;
        Ok(())
    }

    fn gradients(&mut self) -> Result<Vec<f32>> {
        let mut gradients = vec![0.0; self.model.plan.layout.gradient_len()];
        let mut sums = Sums::new();
        for (b, block) in gradients.chunks_mut(BLOCK).enumerate() {
            let range = b * BLOCK..b * BLOCK + block.len();
            block.copy_from_slice(&sums.of_parts(&range, self.partials())[..block.len()]);
        }
        Ok(gradients)
    }

    fn read(&mut self, values: Values) -> Result<Vec<f32>> {
        if values == Values::Averages {
            self.optimizer.average()?;
        }
        Ok(self.values(values).to_vec())
    }

    fn write(&mut self, values: Values, data: &[f32]) -> Result<()> {
        if values == Values::Averages {
            self.optimizer.average()?;
        }
        self.known = if values == Values::Weights { Known::Nothing } else { self.known };
        self.values(values).copy_from_slice(data);
        Ok(())
    }

    fn dispatches(&self, _: ProgramId) -> usize {
        0
    }

    fn tiles(&self, program: ProgramId, rows: usize) -> usize {
        let tiling = if self.programs[program.0].program.has_gradients() { Tiling::step } else { Tiling::run };
        tiling(&self.model.plan, rows).tiles()
    }

    fn begin_profile(&mut self) -> Result<()> {
        self.profile = Some(Vec::new());
        Ok(())
    }

    fn end_profile(&mut self) -> Result<Vec<KernelTime>> {
        Ok(self.profile.take().unwrap_or_default())
    }

    fn footprint(&self) -> Footprint {
        let tiles =
            |c: &Compiled| c.idle.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Tile::bytes).sum::<usize>();
        Footprint {
            weights: size_of_val(&*self.model.weights)
                + self.model.reflections.iter().map(Reflections::bytes).sum::<usize>(),
            optimizer: self.optimizer.bytes(),
            gradients: size_of_val(&*self.partials) + self.ranks.bytes(),
            activations: self.programs.iter().map(tiles).sum(),
            data: size_of_val(&*self.model.data) + size_of_val(self.model.order.as_slice()),
            transfer: 0,
        }
    }
}

#[cfg(test)]
#[path = "session_tests.rs"]
mod tests;

//! One operation on one tile: from the recorded operation to its kernel.

use std::ops::Range;
use std::sync::Arc;

use super::compiled::{Compiled, Source};
use super::mixing::{Applied, vectors};
use super::profile::Clock;
use crate::buffer::Buffer;
use crate::kernel::dropout::Dropout;
use crate::kernel::memory::Floats;
use crate::kernel::networks::{Inputs, SavedActivations};
use crate::kernel::normals::Numbers;
use crate::kernel::reflect::Reflections;
use crate::kernel::reflect::blocks::Sums;
use crate::kernel::{Gradients, Tile, couple, gather, loss, mix, networks, walk};
use crate::plan::{Mix, Plan};
use crate::program::{Op, Program, StageId};

/// What all tiles read: the model and the data.
pub(super) struct Model {
    pub(super) plan: Arc<Plan>,
    pub(super) mixes: Vec<Mix>,
    /// Of every mixing that is trained, otherwise of none.
    pub(super) reflections: Vec<Reflections>,
    pub(super) weights: Floats,
    pub(super) data: Arc<[f32]>,
    pub(super) order: Vec<u32>,
}

/// One tile of a batch.
pub(super) struct Place<'a> {
    pub(super) source: &'a Source<'a>,
    /// Position of the tile's first sample in the batch.
    pub(super) first: usize,
    /// Number of samples of the whole batch.
    pub(super) batch: usize,
}

impl Model {
    /// Takes the caller's inputs of a tile into its arena.
    pub(super) fn load(program: &Program, tile: &mut Tile, place: &Place<'_>) {
        let Source::Job(job) = place.source else { return };
        let rows = tile.shape().rows;
        for (buffer, values) in program.inputs.iter().zip(job.inputs) {
            let columns = buffer.rows as usize;
            tile.load(*buffer, &values[place.first * columns..(place.first + rows) * columns]);
        }
    }

    /// Runs operations of a program on a tile, by the clock if there is one; returns the sum of the loss over its
    /// samples.
    pub(super) fn run(
        &self,
        compiled: &Compiled,
        ops: Range<usize>,
        tile: &mut Tile,
        place: &Place<'_>,
        mut gradients: Gradients<'_>,
        clock: Option<&Clock>,
    ) -> f64 {
        let Compiled { program, short, applied, .. } = compiled;
        let mut execute = |i: usize| {
            let (op, short) = (&program.rows[i], short[i]);
            match applied.at(i) {
                Some(y) => self.reflect(op, short, [y, applied.scratch()], tile, &mut gradients),
                None => self.execute(op, short, tile, place, &mut gradients),
            }
        };
        match clock {
            None => ops.map(execute).sum(),
            Some(clock) => ops.map(|i| clock.time(i, || execute(i))).sum(),
        }
    }

    /// Prepares a partial gradient for its first tile, which writes the gradients of networks and of Q rather than add
    /// to them. The vectors of reflections get theirs from that of Q, after all tiles.
    pub(super) fn clear_what_no_tile_writes(&self, applied: &Applied, gradient: &mut [f32]) {
        if cfg!(test) {
            gradient.fill(f32::NAN);
        }
        let whole = self.mixes.iter().enumerate().filter(|&(mix, _)| !applied.by_blocks(mix));
        for vectors in whole.filter_map(|(_, mix)| vectors(mix)) {
            gradient[vectors].fill(0.0);
        }
    }

    /// What a training step drops in a stage.
    fn dropout(&self, stage: StageId, place: &Place<'_>) -> Option<Dropout> {
        let Source::Batch(job) = place.source else { return None };
        (job.dropout > 0).then(|| Dropout {
            rate: job.dropout,
            seed: job.seed,
            step: job.step,
            first_row: place.first as u32,
            group: 2 * self.plan.hidden_before(stage),
        })
    }

    /// A mixing whose reflections are applied block by block; `y` is what it put out, if this is its backward.
    fn reflect(
        &self,
        op: &Op,
        short: bool,
        [y, scratch]: [Buffer; 2],
        tile: &mut Tile,
        gradients: &mut Gradients<'_>,
    ) -> f64 {
        let shape = tile.shape();
        match *op {
            Op::Mix { mix, transpose, from, to } => {
                let [from, to, scratch] = tile.split([from, to, scratch]);
                to.copy_from_slice(from);
                self.reflections[mix].apply(shape, transpose, to, scratch);
            }
            Op::MixBackward { mix, d_to, d_from, .. } => {
                let [y, d_to, d_from, scratch] = tile.split([y, d_to, d_from, scratch]);
                d_from.copy_from_slice(d_to);
                let (trained, derived) = gradients.values.split_at_mut(self.plan.layout.trained);
                let (mix, reflections) = (&self.mixes[mix], &self.reflections[mix]);
                let Some(vectors) = vectors(mix) else { unreachable!("{mix:?} has no reflections") };
                // The place of Q's gradient, which there is none of.
                let inner = &mut derived[mix.q as usize - trained.len()..][..reflections.inner_len()];
                let mut sums = Sums { vectors: &mut trained[vectors], inner, fresh: gradients.fresh };
                reflections.backward(shape, y, d_from, !short, scratch, &mut sums);
            }
            _ => unreachable!("{op:?} is no mixing"),
        }
        0.0
    }

    /// Runs an operation; `short` leaves out the gradients of columns that nobody reads.
    fn execute(&self, op: &Op, short: bool, tile: &mut Tile, place: &Place<'_>, gradients: &mut Gradients<'_>) -> f64 {
        let shape = tile.shape();
        let (weights, spec) = (&*self.weights, &self.plan.spec);
        let stage = |id: usize| &self.plan.stages[id];
        match *op {
            Op::Gather { to, conditions } => {
                let Source::Batch(job) = place.source else { unreachable!("gather needs a training step") };
                let at = job.first + place.first;
                let rows = gather::Rows {
                    data: &self.data,
                    order: &self.order[at..at + shape.rows],
                    first: place.first,
                    conditions: conditions as usize,
                    noise: job.noise,
                    seed: job.seed,
                    step: job.step,
                };
                let [to] = tile.split([to]);
                gather::gather(shape, &rows, to);
            }
            Op::Normal { to, stream, deviation } => {
                let [to] = tile.split([to]);
                let first = place.first as u64;
                let numbers = match *place.source {
                    Source::Job(job) => Numbers {
                        seed: job.seed,
                        stream,
                        step: job.groups.first,
                        first_row: job.first_row + first,
                        group_rows: job.groups.rows,
                    },
                    Source::Batch(job) => {
                        Numbers { seed: job.seed, stream, step: job.step, first_row: first, group_rows: 0 }
                    }
                };
                gather::normal(shape, numbers, deviation, to);
            }
            Op::Fill { to, value } => {
                let [to] = tile.split([to]);
                to.fill(value);
            }
            Op::Mix { mix, transpose, from, to } => {
                let [from, to] = tile.split([from, to]);
                mix::forward(shape, &self.mixes[mix], transpose, weights, from, to);
            }
            Op::Networks { stage: id, x, given, st, hidden: [h1, h2], keep } => {
                let [x, given, st, h1, h2] = tile.split([x, given, st, h1, h2]);
                let inputs = Inputs { x, given };
                networks::forward(
                    shape,
                    stage(id),
                    weights,
                    inputs,
                    st,
                    [h1, h2],
                    SavedActivations::of(stage(id), keep),
                    self.dropout(id, place).as_ref(),
                );
            }
            Op::Couple { stage: id, x, st, to, log_det } => {
                let [x, st, to, log_det] = tile.split([x, st, to, log_det]);
                couple::forward(shape, stage(id), spec, x, st, to, log_det);
            }
            Op::Uncouple { stage: id, from, x, st } => {
                if from != x {
                    let [from, x] = tile.split([from, x]);
                    x.copy_from_slice(from);
                }
                let [x, st] = tile.split([x, st]);
                couple::inverse(shape, stage(id), spec, x, st);
            }
            Op::Walk { stage: id, x, given, st, hidden: [h1, h2], keep } => {
                let [x, given, st, h1, h2] = tile.split([x, given, st, h1, h2]);
                walk::walk(
                    shape,
                    stage(id),
                    spec,
                    weights,
                    x,
                    given,
                    st,
                    [h1, h2],
                    keep,
                    self.dropout(id, place).as_ref(),
                );
            }
            Op::Loss { z, log_det, loss, d_z, d_log_det } => {
                let [z, log_det, loss, d_z, d_log_det] = tile.split([z, log_det, loss, d_z, d_log_det]);
                loss::loss(shape, place.batch, z, log_det, loss, d_z, d_log_det);
                return loss[..shape.rows].iter().map(|&l| f64::from(l)).sum();
            }
            Op::SquaredError { from, target, loss, d_from, weight } => {
                let [from, target, loss, d_from] = tile.split([from, target, loss, d_from]);
                loss::squared_error(shape, place.batch, weight, [from, target], loss, d_from);
            }
            Op::TotalLoss { loss } => {
                return tile.get(loss)[..shape.rows].iter().map(|&l| f64::from(l)).sum();
            }
            Op::Discrepancy { .. } => unreachable!("{op:?} works on all tiles at once"),
            Op::UncoupleBackward { stage: id, x, st, d_x, d_from, d_st } => {
                let [x, st, d_x, d_from, d_st] = tile.split([x, st, d_x, d_from, d_st]);
                couple::inverse_backward(shape, stage(id), spec, [x, st, d_x], [d_from, d_st]);
            }
            Op::CoupleBackward { stage: id, x, st, d_to, d_log_det, d_x, d_st } => {
                let [x, st, d_to, d_log_det, d_x, d_st] = tile.split([x, st, d_to, d_log_det, d_x, d_st]);
                let buffers = couple::Gradients { x, st, d_to, d_log_det, d_x, d_st };
                couple::backward(shape, stage(id), spec, buffers);
            }
            Op::NetworksBackward { stage: id, x, given, hidden: [h1, h2], d_st, d_hidden: [d1, d2], slots: _, d_x } => {
                let [x, given, h1, h2, d_st, d1, d2, d_x] = tile.split([x, given, h1, h2, d_st, d1, d2, d_x]);
                let inputs = Inputs { x, given };
                let d_x = if short { None } else { Some(d_x) };
                let dropout = self.dropout(id, place);
                networks::backward(
                    shape,
                    stage(id),
                    weights,
                    inputs,
                    [h1, h2],
                    d_st,
                    [d1, d2],
                    d_x,
                    gradients,
                    dropout.as_ref(),
                );
            }
            Op::MixBackward { mix, from, d_to, d_from } => {
                let [from, d_to, d_from] = tile.split([from, d_to, d_from]);
                let d_from = if short { None } else { Some(d_from) };
                mix::backward(shape, &self.mixes[mix], weights, from, d_to, d_from, gradients);
            }
        }
        0.0
    }
}

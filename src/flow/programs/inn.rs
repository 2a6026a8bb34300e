//! Programs of the invertible network of Ardizzone et al. 2018 (docs/model.md, INN): a map of [x, padding] onto [padding,
//! z, y], both of W columns.

use std::sync::Arc;

use super::{blocks, forward as encode, uncouple};
use crate::buffer::Buffer;
use crate::plan::{Plan, Spec};
use crate::program::Program;
use crate::rng::Stream;
use crate::tape::{Memory, Tape, Then};

/// Deviation of the padding of training steps, on either side. Samples have a padding of 0.
pub(crate) const PADDING: f32 = 0.05;

/// The losses of a training step, in this proportion to the squared error of y and of the padding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Losses {
    /// Factor of the discrepancy of [z, y], of which z has gradients.
    pub(crate) latent: f32,
    /// Factor of the discrepancy of x on the way back, beside the squared error of its padding; none: there is no way
    /// back.
    pub(crate) inverse: Option<f32>,
}

/// Places in the columns of either side.
struct Columns {
    /// W
    all: u32,
    /// N, the first of [x, padding]
    x: u32,
    /// The first of [padding, z, y].
    padding: u32,
    /// L
    latent: u32,
}

impl Columns {
    fn of(spec: &Spec) -> Self {
        let all = spec.latent_dim();
        Self { all, x: spec.dim, padding: all - spec.cond_dim - spec.latent, latent: spec.latent }
    }

    /// Where y begins.
    fn y(&self) -> u32 {
        self.padding + self.latent
    }
}

/// [x, padding] to [padding, z, y].
pub(super) fn forward(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let x = tape.input(plan.spec.latent_dim());
    let (z, _) = encode(&mut tape, x, Buffer::EMPTY);
    tape.finish("forward", vec![z], Then::Nothing)
}

/// [padding, z, y] to [x, padding].
pub(super) fn inverse(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let z = tape.input(plan.spec.latent_dim());
    let x = back(&mut tape, z);
    tape.finish("inverse", vec![x], Then::Nothing)
}

/// z, which `latent` puts into its buffer, and y to x.
pub(super) fn decode(plan: &Arc<Plan>, name: &'static str, latent: impl FnOnce(&mut Tape, Buffer)) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let columns = Columns::of(&plan.spec);
    let all = tape.buffer(columns.all);
    tape.zero(all.part(0, columns.padding));
    latent(&mut tape, all.part(columns.padding, columns.latent));
    tape.input_to(all.part(columns.y(), plan.spec.cond_dim));
    let x = back(&mut tape, all).part(0, columns.x);
    tape.finish(name, vec![x], Then::Nothing)
}

/// The inverse of all blocks.
fn back(tape: &mut Tape, z: Buffer) -> Buffer {
    let plan = tape.plan();
    blocks(&plan).rev().fold(z, |x, block| {
        uncouple(tape, block.plan.stages.clone(), x, Buffer::EMPTY);
        tape.mix(block.all, true, x)
    })
}

/// Losses and gradients on rows of the caller, [padding, z, y] and [x, padding].
pub(super) fn gradients(plan: &Arc<Plan>, losses: Losses) -> Program {
    let mut tape = Tape::training(plan.clone(), Memory::Stored);
    let [target, x] = [(); 2].map(|()| tape.input(plan.spec.latent_dim()));
    let loss = all_losses(&mut tape, target, x, losses);
    tape.finish("inn_gradients", vec![loss], Then::Gradients)
}

/// A training step on rows of the resident data.
pub(super) fn step(plan: &Arc<Plan>, losses: Losses) -> Program {
    let mut tape = Tape::training(plan.clone(), Memory::Stored);
    let columns = Columns::of(&plan.spec);
    let (w, y) = (columns.all, columns.y());
    // [padding, z, y] and [x, padding] side by side, so that a row of the data falls into its place.
    let both = tape.buffer(2 * w);
    tape.normal_to(both.part(0, columns.padding), Stream::Padding, PADDING);
    tape.normal_to(both.part(columns.padding, columns.latent), Stream::TrainingLatent, 1.0);
    tape.gather_to(both.part(y, plan.spec.row_columns()));
    // At most one of the two has padding.
    tape.normal_to(both.part(w + columns.x, w - columns.x), Stream::Padding, PADDING);
    all_losses(&mut tape, both.part(0, w), both.part(w, w), losses);
    tape.finish("inn_step", Vec::new(), Then::Step)
}

/// Records both ways, their losses and the backward pass; returns the loss per sample.
fn all_losses(tape: &mut Tape, target: Buffer, x: Buffer, losses: Losses) -> Buffer {
    let plan = tape.plan();
    let columns = Columns::of(&plan.spec);
    let loss = tape.buffer(1);
    tape.zero(loss);
    let (z, log_det) = encode(tape, x, Buffer::EMPTY);
    tape.no_gradient(log_det);
    tape.squared_error(z, 0..columns.padding, target, 1.0, loss);
    tape.discrepancy(z, columns.padding..columns.all, columns.latent, target, losses.latent, loss);
    tape.squared_error(z, columns.y()..columns.all, target, 1.0, loss);
    if let Some(weight) = losses.inverse {
        let back = blocks(&plan).rev().fold(target, |x, block| {
            let x = block.plan.stages.clone().rev().fold(x, |x, stage| tape.uncouple_stored(stage, x));
            tape.mix(block.all, true, x)
        });
        tape.discrepancy(back, 0..columns.x, columns.x, x, weight, loss);
        tape.squared_error(back, columns.x..columns.all, x, 1.0, loss);
    }
    tape.total_loss(loss);
    tape.backward();
    loss
}

//! z to x for given conditions: rows that are decoded, samples, and samples with their densities.

use std::sync::Arc;

use super::{blocks, given as given_input, seen, seen_inputs};
use crate::buffer::Buffer;
use crate::plan::{Kind, Plan};
use crate::program::Program;
use crate::rng::Stream;
use crate::tape::{Tape, Then};

/// What blocks are given.
enum Given {
    /// All of them the same: the conditions of a `cinn`, or nothing.
    Same(Buffer),
    /// Each block of a `hint` its own of the y lane.
    Seen(Vec<Buffer>),
}

/// Where log-derivatives are added up.
#[derive(Clone, Copy)]
struct Counted {
    /// (1, B)
    log_det: Buffer,
    /// (N, B), scratch.
    forth: Buffer,
}

/// From a latent that `latent` makes, and conditions as an input.
pub(super) fn given(plan: &Arc<Plan>, name: &'static str, latent: impl FnOnce(&mut Tape, u32) -> Buffer) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let z = latent(&mut tape, plan.spec.dim);
    let given = if plan.spec.kind == Kind::Hint {
        let y = tape.input(plan.spec.cond_dim);
        Given::Seen(seen(&mut tape, y))
    } else {
        Given::Same(given_input(&mut tape, plan))
    };
    let x = inverse(&mut tape, z, &given, None);
    tape.finish(name, vec![x], Then::Nothing)
}

/// The same of a `hint`, if an input for each block is what it sees of y.
pub(super) fn seeing(plan: &Arc<Plan>, name: &'static str, latent: impl FnOnce(&mut Tape, u32) -> Buffer) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let z = latent(&mut tape, plan.spec.dim);
    let given = Given::Seen(seen_inputs(&mut tape));
    let x = inverse(&mut tape, z, &given, None);
    tape.finish(name, vec![x], Then::Nothing)
}

/// Samples with all that their density is made of: z, the log-determinant of x to z, and x.
pub(super) fn scored(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::inference(plan.clone());
    // Twice the same: the inverse overwrites one of them.
    let [z, latent] = [(); 2].map(|()| tape.buffer(plan.spec.dim));
    [z, latent].into_iter().for_each(|to| tape.normal_to(to, Stream::Latent, 1.0));
    let given = match plan.spec.kind {
        Kind::Hint => Given::Seen(seen_inputs(&mut tape)),
        Kind::Flow | Kind::Cinn | Kind::Inn => Given::Same(given_input(&mut tape, plan)),
    };
    let counted = Counted { log_det: tape.log_det(), forth: tape.buffer(plan.spec.dim) };
    let x = inverse(&mut tape, latent, &given, Some(counted));
    tape.finish("sample_scored", vec![z, counted.log_det, x], Then::Nothing)
}

/// All blocks backwards.
fn inverse(tape: &mut Tape, z: Buffer, given: &Given, counted: Option<Counted>) -> Buffer {
    let plan = tape.plan();
    blocks(&plan).enumerate().rev().fold(z, |x, (number, block)| {
        let (stages, mixes, y) = match given {
            Given::Same(y) => (block.plan.stages.clone(), block.all.clone(), *y),
            Given::Seen(seen) => (block.lanes().x.clone(), block.mixes[1].clone(), seen[number]),
        };
        for stage in stages.rev() {
            match counted {
                None => tape.uncouple(stage, x, y, false),
                Some(Counted { log_det, forth }) => tape.uncouple_counted(stage, x, y, forth, log_det),
            }
        }
        tape.mix(mixes, true, x)
    })
}

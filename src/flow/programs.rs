//! The programs of a flow, recorded from its plan: what runs, in which order (paper, eqs. 1 to 6).

use std::sync::Arc;

use crate::buffer::Buffer;
use crate::plan::Plan;
use crate::program::Program;
use crate::tape::{Memory, Tape, Then};

/// The programs a flow can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Name {
    /// x to z and log-determinant.
    Encode,
    /// z to x.
    Decode,
    /// Normals to x.
    Sample,
    /// Loss per row and d_x of given rows, gradients of the mean loss.
    LossGradients(Memory),
    /// d_x for given x, d_z, d_log_det.
    Vjp(Memory),
    /// A training step on rows of the resident data.
    Step(Memory),
}

/// Records a program.
pub(crate) fn record(name: Name, plan: &Arc<Plan>) -> Program {
    let plan = plan.clone();
    match name {
        Name::Encode => {
            let mut tape = Tape::inference(plan);
            let x = tape.input();
            let (z, log_det) = forward(&mut tape, x);
            tape.finish("encode", vec![z, log_det], Then::Nothing)
        }
        Name::Decode => {
            let mut tape = Tape::inference(plan);
            let z = tape.input();
            let x = inverse(&mut tape, z);
            tape.finish("decode", vec![x], Then::Nothing)
        }
        Name::Sample => {
            let mut tape = Tape::inference(plan);
            let z = tape.normal();
            let x = inverse(&mut tape, z);
            tape.finish("sample", vec![x], Then::Nothing)
        }
        Name::LossGradients(memory) => {
            let mut tape = Tape::training(plan, memory);
            let x = tape.input();
            let (z, log_det) = forward(&mut tape, x);
            let loss = tape.loss(z, log_det);
            tape.backward();
            let d_x = tape.gradient(x);
            tape.finish("loss_gradients", vec![loss, d_x], Then::Gradients)
        }
        Name::Vjp(memory) => {
            let mut tape = Tape::training(plan, memory);
            let x = tape.input();
            let (z, log_det) = forward(&mut tape, x);
            tape.seed(z);
            tape.seed(log_det);
            tape.backward();
            let d_x = tape.gradient(x);
            tape.finish("vjp", vec![d_x], Then::Gradients)
        }
        Name::Step(memory) => {
            let mut tape = Tape::training(plan, memory);
            let x = tape.gather();
            let (z, log_det) = forward(&mut tape, x);
            tape.loss(z, log_det);
            tape.backward();
            tape.finish("step", Vec::new(), Then::Step)
        }
    }
}

/// All blocks forward; returns z and the log-determinant.
fn forward(tape: &mut Tape, mut x: Buffer) -> (Buffer, Buffer) {
    let plan = tape.plan();
    let log_det = tape.log_det();
    let mut mix = 0;
    for block in &plan.blocks {
        if block.mix.is_some() {
            x = tape.mix(mix, false, x);
            mix += 1;
        }
        for stage in block.stages.clone() {
            x = tape.couple(stage, x, log_det);
        }
    }
    (x, log_det)
}

/// All blocks backward, each inverted; returns x.
fn inverse(tape: &mut Tape, mut x: Buffer) -> Buffer {
    let plan = tape.plan();
    let mut mix = plan.mixes().count();
    for block in plan.blocks.iter().rev() {
        for stage in block.stages.clone().rev() {
            tape.uncouple(stage, x, false);
        }
        if block.mix.is_some() {
            mix -= 1;
            x = tape.mix(mix, true, x);
        }
    }
    x
}

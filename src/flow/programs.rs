//! The programs of a model, recorded from its plan: what runs, in which order (paper, eqs. 1 to 6 and section 3.3;
//! docs/model.md, Lanes).
//!
//! Training takes the columns of a block together: with two lanes the networks of both and of the cross coupling are
//! one stage. What needs one lane alone (the evidence, the posterior, their log-determinants) takes them apart.

mod inn;
mod inverse;

use std::ops::Range;
use std::sync::Arc;

use crate::buffer::Buffer;
use crate::plan::{Kind, Lanes, Plan};
use crate::program::{MixId, Program};
use crate::rng::Stream;
use crate::tape::{Memory, Tape, Then};
pub(crate) use inn::{Losses, PADDING};

/// The programs a model can run. Letters as in [`crate::program`]; `y` stands for the conditions of a conditional
/// model.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Name {
    /// x (and y) to z and log-determinant; with two lanes to z_y, its log-determinant, z_x and its log-determinant.
    Encode,
    /// z (and y) to x; with two lanes z_x and y to x.
    Decode,
    /// Normals (and y) to x.
    Sample,
    /// Two lanes: y to z_y and its log-determinant.
    EncodeY,
    /// Two lanes: y to what the couplings of x see of it in each block.
    Seen,
    /// Two lanes: x and that of each block to z_x and its log-determinant.
    EncodeSeeing,
    /// Two lanes: z_x and that of each block to x.
    DecodeSeeing,
    /// Two lanes: normals and that of each block to x.
    SampleSeeing,
    /// Normals (and y, with two lanes what each block sees of it) to z, the log-determinant of x to z, and x.
    SampleScored,
    /// Two lanes: z_y and z_x to y and x.
    DecodeJoint,
    /// Two lanes: normals to y and x.
    SampleJoint,
    /// x (two lanes: rows [y, x]; y of a `cinn`) to what the networks of each stage have for it, in the order of the pass.
    NetworkOutputs,
    /// Loss per row and d_x of given rows, with two lanes of rows [y, x]; gradients of the mean loss.
    LossGradients(Memory),
    /// d_x for given x (two lanes: rows [y, x]), d_z, d_log_det, and y of a `cinn`.
    Vjp(Memory),
    /// A training step on rows of the resident data.
    Step(Memory),
    /// A training step that clips the gradient by its norm.
    ClippedStep(Memory),
    /// Of an `inn`: x with padding to [padding, z, y].
    Forward,
    /// Of an `inn`: the same backwards.
    Inverse,
    /// Of an `inn`: loss per row of given rows [padding, z, y] and [x, padding]; gradients of the mean loss.
    InnGradients(Losses),
    /// Of an `inn`: a training step on rows of the resident data, and whether it clips the gradient by its norm.
    InnStep(Losses, bool),
}

/// Records a program.
pub(crate) fn record(name: Name, plan: &Arc<Plan>) -> Program {
    match name {
        Name::Encode => encode(plan),
        Name::Decode if plan.spec.kind == Kind::Inn => inn::decode(plan, "decode", Tape::input_to),
        Name::Sample if plan.spec.kind == Kind::Inn => {
            inn::decode(plan, "sample", |tape, z| tape.normal_to(z, Stream::Latent, 1.0))
        }
        Name::Decode => inverse::given(plan, "decode", Tape::input),
        Name::Sample => inverse::given(plan, "sample", Tape::normal),
        Name::EncodeY => {
            let mut tape = Tape::inference(plan.clone());
            let y = tape.input(plan.spec.cond_dim);
            let log_det = tape.log_det();
            let z = blocks(plan).fold(y, |y, block| {
                let y = tape.mix(block.mixes[0].clone(), false, y);
                couple(&mut tape, block.lanes().y.clone(), y, Buffer::EMPTY, log_det)
            });
            tape.finish("encode_y", vec![z, log_det], Then::Nothing)
        }
        Name::Seen => {
            let mut tape = Tape::inference(plan.clone());
            let y = tape.input(plan.spec.cond_dim);
            let seen = seen(&mut tape, y);
            tape.finish("seen", seen, Then::Nothing)
        }
        Name::EncodeSeeing => encode_seeing(plan),
        Name::DecodeSeeing => inverse::seeing(plan, "decode_seeing", Tape::input),
        Name::SampleSeeing => inverse::seeing(plan, "sample_seeing", Tape::normal),
        Name::SampleScored => inverse::scored(plan),
        Name::DecodeJoint => joint(plan, "decode_joint", |tape| {
            let [y, x] = [plan.spec.cond_dim, plan.spec.dim].map(|columns| tape.input(columns));
            [y, x]
        }),
        Name::SampleJoint => joint(plan, "sample_joint", |tape| {
            let z = tape.normal(plan.spec.latent_dim());
            [z.part(0, plan.spec.cond_dim), z.part(plan.spec.cond_dim, plan.spec.dim)]
        }),
        Name::NetworkOutputs => {
            // Of which every stage has its own.
            let mut tape = Tape::training(plan.clone(), Memory::Stored);
            let x = tape.input(plan.spec.latent_dim());
            let given = given(&mut tape, plan);
            forward(&mut tape, x, given);
            let outputs = tape.network_outputs();
            tape.finish("network_outputs", outputs, Then::Nothing)
        }
        Name::LossGradients(memory) => {
            let mut tape = Tape::training(plan.clone(), memory);
            let (x, given) = (tape.input(plan.spec.latent_dim()), given(&mut tape, plan));
            let (z, log_det) = forward(&mut tape, x, given);
            let loss = tape.loss(z, log_det);
            tape.backward();
            let d_x = tape.gradient(x);
            tape.finish("loss_gradients", vec![loss, d_x], Then::Gradients)
        }
        Name::Vjp(memory) => {
            let mut tape = Tape::training(plan.clone(), memory);
            let x = tape.input(plan.spec.latent_dim());
            let given = given(&mut tape, plan);
            let (z, log_det) = forward(&mut tape, x, given);
            tape.seed(z);
            tape.seed(log_det);
            tape.backward();
            let d_x = tape.gradient(x);
            tape.finish("vjp", vec![d_x], Then::Gradients)
        }
        Name::ClippedStep(memory) => record(Name::Step(memory), plan).clipped(),
        Name::Step(memory) => {
            let mut tape = Tape::training(plan.clone(), memory);
            let row = tape.gather();
            let (x, given) = match plan.spec.kind {
                Kind::Flow | Kind::Hint => (row, Buffer::EMPTY),
                Kind::Inn => unreachable!("its training has other losses"),
                Kind::Cinn => (row.part(plan.spec.cond_dim, plan.spec.dim), row.part(0, plan.spec.cond_dim)),
            };
            let (z, log_det) = forward(&mut tape, x, given);
            tape.loss(z, log_det);
            tape.backward();
            tape.finish("step", Vec::new(), Then::Step)
        }
        Name::Forward => inn::forward(plan),
        Name::Inverse => inn::inverse(plan),
        Name::InnGradients(losses) => inn::gradients(plan, losses),
        Name::InnStep(losses, false) => inn::step(plan, losses),
        Name::InnStep(losses, true) => inn::step(plan, losses).clipped(),
    }
}

/// A block with the numbers of its mixings: of all lanes, and of each.
struct Block<'a> {
    plan: &'a crate::plan::Block,
    all: Range<MixId>,
    mixes: [Range<MixId>; 2],
}

impl Block<'_> {
    /// The stages of a model with two lanes, apart.
    fn lanes(&self) -> &Lanes {
        match &self.plan.lanes {
            Some(lanes) => lanes,
            None => unreachable!("only a `hint` has two lanes"),
        }
    }
}

/// The blocks in forward order.
fn blocks(plan: &Plan) -> std::vec::IntoIter<Block<'_>> {
    let mut next = 0;
    let blocks: Vec<_> = plan
        .blocks
        .iter()
        .map(|block| {
            let all = next..next + block.mixes.len();
            next = all.end;
            // Without a mixing both are empty.
            let middle = (all.start + 1).min(all.end);
            let mixes = [all.start..middle, middle..all.end];
            Block { plan: block, all, mixes }
        })
        .collect();
    blocks.into_iter()
}

/// The conditions of a `cinn` as an input.
fn given(tape: &mut Tape, plan: &Plan) -> Buffer {
    if plan.spec.given() > 0 { tape.input(plan.spec.given()) } else { Buffer::EMPTY }
}

/// Stages one after the other.
fn couple(tape: &mut Tape, stages: Range<usize>, x: Buffer, given: Buffer, log_det: Buffer) -> Buffer {
    stages.fold(x, |x, stage| tape.couple(stage, x, given, log_det))
}

/// Their inverse, in place.
fn uncouple(tape: &mut Tape, stages: Range<usize>, x: Buffer, given: Buffer) {
    stages.rev().for_each(|stage| tape.uncouple(stage, x, given, false));
}

/// All blocks forward, the lanes together; returns z and the log-determinant.
fn forward(tape: &mut Tape, x: Buffer, given: Buffer) -> (Buffer, Buffer) {
    let plan = tape.plan();
    let log_det = tape.log_det();
    let z = blocks(&plan).fold(x, |x, block| {
        let x = tape.mix(block.all, false, x);
        couple(tape, block.plan.stages.clone(), x, given, log_det)
    });
    (z, log_det)
}

fn encode(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let mut x = tape.input(plan.spec.dim);
    if plan.spec.kind != Kind::Hint {
        let given = given(&mut tape, plan);
        let (z, log_det) = forward(&mut tape, x, given);
        return tape.finish("encode", vec![z, log_det], Then::Nothing);
    }
    let mut y = tape.input(plan.spec.cond_dim);
    let [log_det_y, log_det_x] = [tape.log_det(), tape.log_det()];
    for block in blocks(plan) {
        let [mix_y, mix_x] = block.mixes.clone();
        (y, x) = (tape.mix(mix_y, false, y), tape.mix(mix_x, false, x));
        // x first: it sees this block's y as it comes.
        x = couple(&mut tape, block.lanes().x.clone(), x, y, log_det_x);
        y = couple(&mut tape, block.lanes().y.clone(), y, Buffer::EMPTY, log_det_y);
    }
    tape.finish("encode", vec![y, log_det_y, x, log_det_x], Then::Nothing)
}

/// The y lane of a `hint` forward: what each block's couplings of x see of it.
fn seen(tape: &mut Tape, mut y: Buffer) -> Vec<Buffer> {
    let plan = tape.plan();
    let log_det = tape.log_det();
    let mut seen = Vec::new();
    for block in blocks(&plan) {
        y = tape.mix(block.mixes[0].clone(), false, y);
        tape.hold(y);
        seen.push(y);
        if seen.len() < plan.blocks.len() {
            y = couple(tape, block.lanes().y.clone(), y, Buffer::EMPTY, log_det);
        }
    }
    seen
}

/// The same as inputs.
fn seen_inputs(tape: &mut Tape) -> Vec<Buffer> {
    let plan = tape.plan();
    plan.blocks.iter().map(|_| tape.input(plan.spec.cond_dim)).collect()
}

fn encode_seeing(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let x = tape.input(plan.spec.dim);
    let seen = seen_inputs(&mut tape);
    let log_det = tape.log_det();
    let z = blocks(plan).zip(seen).fold(x, |x, (block, y)| {
        let x = tape.mix(block.mixes[1].clone(), false, x);
        couple(&mut tape, block.lanes().x.clone(), x, y, log_det)
    });
    tape.finish("encode_seeing", vec![z, log_det], Then::Nothing)
}

/// Both lanes inverted, from latents [z_y, z_x] that `latent` makes.
fn joint(plan: &Arc<Plan>, name: &'static str, latent: impl FnOnce(&mut Tape) -> [Buffer; 2]) -> Program {
    let mut tape = Tape::inference(plan.clone());
    let [mut y, mut x] = latent(&mut tape);
    for block in blocks(plan).rev() {
        uncouple(&mut tape, block.lanes().y.clone(), y, Buffer::EMPTY);
        uncouple(&mut tape, block.lanes().x.clone(), x, y);
        let [mix_y, mix_x] = block.mixes.clone();
        (y, x) = (tape.mix(mix_y, true, y), tape.mix(mix_x, true, x));
    }
    tape.finish(name, vec![y, x], Then::Nothing)
}

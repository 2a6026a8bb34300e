//! Training steps: the update against f64, tiles, streaming, submissions, and what a session keeps.

use super::*;
use crate::engine::gpu::kernels::shader::{Kernel, Role};
use crate::engine::gpu::session::arrays::Arrays;
use crate::engine::gpu::session::tuner::Tuner;
use crate::engine::{ProgramId, StepJob};
use crate::flow::programs::{Name, record};
use crate::optim::{Adam, AdamStep};
use crate::plan::Mixing;
use crate::tape::{Memory, Tape, Then};

pub(super) fn model() -> Arc<Plan> {
    plan(Spec { dim: 5, width: 13, mixing: Mixing::Householder, mix_first: false, ..Spec::default() })
}

pub(super) fn trainer(plan: &Arc<Plan>) -> Program {
    let mut tape = Tape::training(plan.clone(), Memory::Stored);
    let (x, log_det) = (tape.gather(), tape.log_det());
    let (mut z, mut mix) = (x, 0);
    for block in &plan.blocks {
        if !block.mixes.is_empty() {
            z = tape.mix(mix..mix + 1, false, z);
            mix += 1;
        }
        for stage in block.stages.clone() {
            z = tape.couple(stage, z, Buffer::EMPTY, log_det);
        }
    }
    tape.loss(z, log_det);
    tape.backward();
    tape.finish("train", vec![], Then::Step)
}

/// The same program on rows that the caller gives, without the update.
pub(super) fn looker(plan: &Arc<Plan>) -> Program {
    let Program { arena_rows, mut rows, mut finish, prepare, .. } = trainer(plan);
    let Op::Gather { to, .. } = rows.remove(0) else { panic!("the first operation gathers") };
    finish.retain(|op| *op != StepOp::Adam);
    Program { plan: plan.clone(), name: "look", arena_rows, inputs: vec![to], outputs: vec![], prepare, rows, finish }
}

pub(super) const ROWS: usize = 60;

pub(super) fn data(plan: &Plan) -> Vec<f32> {
    numbers(17, ROWS * plan.spec.row_columns() as usize, 1.0)
}

fn session(plan: &Arc<Plan>, streamed: bool, tile: usize) -> (GpuSession, ProgramId) {
    session_on(device(), plan, streamed, tile)
}

pub(super) fn session_on(
    device: Arc<Device>,
    plan: &Arc<Plan>,
    streamed: bool,
    tile: usize,
) -> (GpuSession, ProgramId) {
    let mut session = session_with(&device, plan, Options { most_samples: tile, ..streaming(streamed) });
    session.write(Values::Weights, &weights(plan)).unwrap();
    session.set_data(data(plan).into()).unwrap();
    session.set_order(&(0..ROWS as u32).rev().collect::<Vec<_>>()).unwrap();
    let id = session.compile(trainer(plan), 37).unwrap();
    (session, id)
}

fn job(t: u64) -> StepJob {
    StepJob { first: 3 * t as usize, rows: 37, noise: 0.0, dropout: 0, seed: 4, step: t as u32, adam: step(t) }
}

fn step(t: u64) -> AdamStep {
    Adam { grad_clamp: 0.05, l2: 0.01, ..Adam::default() }.step(0.01, t)
}

fn state(session: &mut GpuSession) -> Vec<Vec<f32>> {
    [Values::Weights, Values::FirstMoments, Values::SecondMoments].map(|v| session.read(v).unwrap()).to_vec()
}

#[test]
fn steps_are_those_of_the_definition() {
    let plan = model();
    let (mut session, id) = session(&plan, false, usize::MAX);
    let mut reference = Reference::new(&plan, &weights(&plan));
    let program = looker(&plan);
    let trained = plan.layout.trained;
    let (mut m, mut v) = (vec![0.0f64; trained], vec![0.0f64; trained]);
    for t in 1..=5 {
        session.step(id, &job(t)).unwrap();
        let rows: Vec<f32> =
            (0..37).flat_map(|r| data(&plan)[(ROWS - 1 - (3 * t as usize + r)) * 5..][..5].to_vec()).collect();
        reference.run(&program, 37, &[rows]);
        let loss = session.loss().unwrap();
        assert_close("loss", &[loss], &[reference.loss / 37.0], within(1e-5));
        assert_close(
            "gradients",
            &session.gradients().unwrap()[..trained],
            &reference.gradients[..trained],
            within(1e-4),
        );
        let AdamStep { adam, rate, root, .. } = step(t);
        let f = f64::from;
        for i in 0..trained {
            let clamp = f(adam.grad_clamp);
            let g = reference.gradients[i].clamp(-clamp, clamp) + f(adam.l2) * reference.weights[i];
            m[i] = f(adam.beta1) * m[i] + (1.0 - f(adam.beta1)) * g;
            v[i] = f(adam.beta2) * v[i] + (1.0 - f(adam.beta2)) * g * g;
            reference.weights[i] -= f(rate) * m[i] / (v[i].sqrt() * f(root) + f(adam.eps));
        }
    }
    let got = state(&mut session);
    assert_close("weights", &got[0][..trained], &reference.weights[..trained], within(1e-4));
    assert_close("first moments", &got[1], &m, within(1e-3));
    assert_close("second moments", &got[2], &v, within(1e-3));
}

#[test]
fn same_bits_however_steps_are_submitted_and_data_comes() {
    let plan = model();
    let mut results = vec![];
    for (streamed, look) in [(false, false), (false, true), (true, false), (true, true)] {
        let (mut session, id) = session(&plan, streamed, usize::MAX);
        for t in 1..=6 {
            session.step(id, &StepJob { noise: 0.1, ..job(t) }).unwrap();
            if look {
                session.loss().unwrap();
                session.read(Values::Weights).unwrap();
            }
        }
        results.push((session.loss().unwrap(), state(&mut session)));
    }
    assert!(results.iter().all(|r| r == &results[0]));
}

/// Less memory, so smaller tiles, must not change what a training computes.
#[test]
fn tiles_and_streaming_change_no_bit() {
    let plan = model();
    let rows = 1100;
    let mut results = vec![];
    for (streamed, tile, recompute) in [
        (false, usize::MAX, false),
        (false, 480, false),
        (true, 480, true),
        (false, 32, false),
        (false, 32, true),
        (false, usize::MAX, true),
    ] {
        let variants = KernelVariants { recompute: Some(recompute), ..KernelVariants::default() };
        let options = Options { variants, most_samples: tile, ..streaming(streamed) };
        let mut session = session_with(&device(), &plan, options);
        session.write(Values::Weights, &weights(&plan)).unwrap();
        session.set_data(numbers(17, rows * 5, 1.0).into()).unwrap();
        session.set_order(&(0..rows as u32).rev().collect::<Vec<_>>()).unwrap();
        let id = session.compile(trainer(&plan), rows).unwrap();
        let mut losses = vec![];
        for t in 1..=4 {
            session.step(id, &StepJob { first: 0, rows, noise: 0.1, ..job(t) }).unwrap();
            losses.push(session.loss().unwrap());
        }
        results.push((losses, session.gradients().unwrap(), state(&mut session)));
    }
    assert!(results.iter().all(|r| r == &results[0]));
}

/// A batch of another size than the program was compiled for.
#[test]
fn larger_and_smaller_batches() {
    let plan = model();
    let look = looker(&plan);
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    session.write(Values::Weights, &weights(&plan)).unwrap();
    for compiled in [40, 1100] {
        let id = session.compile(look.clone(), compiled).unwrap();
        for rows in [5, 700, 1500] {
            let input = numbers(8, rows * 5, 1.0);
            session.run(id, &Job { rows, inputs: &[&input], seed: 0, first_row: 0, ..Job::default() }).unwrap();
            let mut reference = Reference::new(&plan, &weights(&plan));
            reference.run(&look, rows, std::slice::from_ref(&input));
            let what = format!("{rows} samples, compiled for {compiled}");
            assert_close(&what, &session.gradients().unwrap(), &reference.gradients, within(1e-4));
        }
    }
}

#[test]
fn a_restored_session_goes_on_with_the_same_bits() {
    let plan = model();
    let (mut whole, id) = session(&plan, false, usize::MAX);
    (1..=4).for_each(|t| whole.step(id, &job(t)).unwrap());
    let (mut first, id) = session(&plan, false, usize::MAX);
    (1..=2).for_each(|t| first.step(id, &job(t)).unwrap());
    let (mut second, id) = session(&plan, false, usize::MAX);
    let all = [Values::Weights, Values::FirstMoments, Values::SecondMoments];
    for (values, saved) in all.into_iter().zip(state(&mut first)) {
        second.write(values, &saved).unwrap();
    }
    (3..=4).for_each(|t| second.step(id, &job(t)).unwrap());
    assert!(state(&mut whole) == state(&mut second));
}

#[test]
fn an_evaluation_between_steps_disturbs_nothing() {
    let plan = model();
    let (mut plain, id) = session(&plan, false, usize::MAX);
    (1..=3).for_each(|t| plain.step(id, &job(t)).unwrap());
    let (mut disturbed, id) = session(&plan, false, usize::MAX);
    let look = disturbed.compile(looker(&plan), 200).unwrap();
    let rows = numbers(1, 200 * 5, 1.0);
    for t in 1..=3 {
        disturbed.step(id, &job(t)).unwrap();
        disturbed.run(look, &Job { rows: 200, inputs: &[&rows], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    }
    assert_eq!(plain.loss().unwrap(), disturbed.loss().unwrap());
    // The rest of the weights is computed from these by whatever program runs next.
    let trained =
        |state: Vec<Vec<f32>>| state.into_iter().map(|v| v[..plan.layout.trained].to_vec()).collect::<Vec<_>>();
    assert!(trained(state(&mut plain)) == trained(state(&mut disturbed)));
}

#[test]
fn steps_make_nothing_new_on_the_device() {
    let plan = model();
    for (device, streamed) in [(device(), true), (device(), false), (Arc::new(embedding::poor()), true)] {
        let (mut session, id) = session_on(device, &plan, streamed, 32);
        (0..80).for_each(|t| session.step(id, &job(t % 7 + 1)).unwrap());
        session.loss().unwrap();
        let before = held(&session);
        let submitted = session.device.submitted();
        (0..60).for_each(|t| session.step(id, &job(t % 7 + 1)).unwrap());
        assert_eq!(held(&session), before, "streamed: {streamed}");
        assert!(session.device.submitted() - submitted <= 60, "at most one submission per step");
        assert!(session.loss().unwrap().is_finite());
    }
}

/// What tuning gives back has been held all the same.
#[test]
fn the_footprint_is_the_most_that_was_held() {
    let mut arrays = Arrays::new(device()).unwrap();
    let held = |arrays: &Arrays| arrays.footprint().activations;
    arrays.grow(Role::Arena, 4096).unwrap();
    arrays.release(Role::Arena).unwrap();
    assert_eq!(held(&arrays), 4096);
    arrays.grow(Role::Arena, 1024).unwrap();
    assert_eq!(held(&arrays), 4096);
    arrays.grow(Role::Arena, 8192).unwrap();
    assert_eq!(held(&arrays), 8192);
}

#[test]
fn dispatches_of_trained_mixings() {
    let plan = model();
    let (session, id) = session(&plan, false, 32);
    // Reflections 1; rows: gather, networks, couple and mix, networks, couple and loss; backward networks 2, what lies
    // between 1, gradient of Q 1, networks 2; reflections 4, Adam.
    assert_eq!(session.dispatches(id), 1 + 1 + 2 + 2 + 2 + 1 + 1 + 2 + 4 + 1);
}

#[test]
fn a_step_has_few_dispatches() {
    let device = device();
    // The bench cases lens2 and cross4, with and without a mixing before the first block.
    for (dim, width, blocks, mix_first, expected) in
        [(20, 104, 2, false, 11), (20, 104, 2, true, 12), (100, 263, 4, false, 21), (100, 263, 4, true, 22)]
    {
        let plan = plan(Spec { dim, width, blocks, mix_first, mixing: Mixing::Fixed, ..Spec::default() });
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        let id = session.compile(trainer(&plan), 32).unwrap();
        assert_eq!(session.dispatches(id), expected, "{blocks} blocks of {dim} columns, {mix_first}");
        // One more per stage where narrow nodes are computed again.
        let variants = KernelVariants { recompute: Some(true), ..KernelVariants::default() };
        let mut session = session_with(&device, &plan, Options { variants, ..Options::default() });
        let id = session.compile(trainer(&plan), 32).unwrap();
        assert_eq!(session.dispatches(id), expected + blocks as usize, "{blocks} blocks of {dim} columns, {mix_first}");
    }
}

/// Conditioned on the output every level of a block is a stage of its own: forward two dispatches for each, backward
/// three but for the last; gather and Adam. A stage whose nodes are all narrow has one less where they are computed
/// again.
#[test]
fn a_step_of_levels_has_few_dispatches_per_level() {
    let device = device();
    for (dim, width, blocks, levels, expected, recomputed) in [(20, 104, 2, 4, 41, 35), (100, 263, 4, 7, 141, 125)] {
        let condition_on = ConditionOn::Output;
        let spec =
            Spec { dim, width, blocks, condition_on, mix_first: false, mixing: Mixing::Fixed, ..Spec::default() };
        let plan = plan(spec);
        assert_eq!(plan.stages.len(), levels * blocks as usize);
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        let id = session.compile(trainer(&plan), 32).unwrap();
        assert_eq!(session.dispatches(id), expected, "{blocks} blocks of {dim} columns");
        let variants = KernelVariants { recompute: Some(true), ..KernelVariants::default() };
        let mut session = session_with(&device, &plan, Options { variants, ..Options::default() });
        let id = session.compile(trainer(&plan), 32).unwrap();
        assert_eq!(session.dispatches(id), recomputed, "{blocks} blocks of {dim} columns, computed again");
    }
}

#[test]
fn tuning_changes_no_bit_and_is_remembered() {
    tuning(&model());
    // Two lanes, where some stages have conditions.
    tuning(&plan(Spec { kind: Kind::Hint, dim: 3, cond_dim: 2, width: 13, ..Spec::default() }));
}

fn tuning(plan: &Arc<Plan>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tuning.json");
    let run = |tuner: Option<Tuner>| {
        let mut session = session_with(&device(), plan, Options { tuner: tuner.map(Arc::new), ..Options::default() });
        session.write(Values::Weights, &weights(plan)).unwrap();
        session.set_data(data(plan).into()).unwrap();
        session.set_order(&(0..ROWS as u32).collect::<Vec<_>>()).unwrap();
        let id = session.compile(record(Name::Step(Memory::Stored), plan), 37).unwrap();
        (1..=3).for_each(|t| session.step(id, &job(t)).unwrap());
        (session.loss().unwrap(), state(&mut session), session.kernels(id))
    };
    let tuner = |software| Tuner::with_file(Some(file.clone()), software);
    let plain = run(None);
    let tuned = run(Some(tuner(true)));
    assert!((&tuned.0, &tuned.1) == (&plain.0, &plain.1));
    // What the file says is used.
    let mut found: serde_json::Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let fastest = found["fastest"].as_object_mut().unwrap();
    assert_eq!(fastest.len(), 1);
    for (arena, forward, backward) in [
        (false, Kernel::NetworksPacked, Kernel::NetworksPackedBackward),
        (true, Kernel::Networks, Kernel::NetworksBackward),
    ] {
        let number = if arena { serde_json::Value::Null } else { 1.into() };
        let fastest = found["fastest"].as_object_mut().unwrap();
        fastest
            .values_mut()
            .for_each(|c| *c = serde_json::json!({ "forward": number, "backward": number, "recompute": null }));
        std::fs::write(&file, serde_json::to_vec(&found).unwrap()).unwrap();
        let (loss, state, kernels) = run(Some(tuner(true)));
        assert!((&loss, &state) == (&plain.0, &plain.1));
        assert!(kernels.contains(&forward) && kernels.contains(&backward), "{kernels:?}");
    }
    // It does not pay for few samples, nor on software adapters.
    std::fs::remove_file(&file).unwrap();
    run(Some(tuner(false)));
    assert!(!file.exists());
}

#[test]
fn divergence_is_seen() {
    let plan = model();
    let (mut session, id) = session(&plan, false, usize::MAX);
    let mut values = weights(&plan);
    let bias = plan.layout.tensors.iter().find(|t| t.name == "blocks.0.tree.1.s.0.bias").unwrap();
    values[bias.offset] = f32::NAN;
    session.write(Values::Weights, &values).unwrap();
    session.step(id, &job(1)).unwrap();
    assert!(session.loss().unwrap().is_nan());
}

#[test]
fn no_samples_are_no_work() {
    let plan = model();
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let mut program = looker(&plan);
    program.outputs = program.inputs.clone();
    let id = session.compile(program, 10).unwrap();
    let outputs = session.run(id, &Job { rows: 0, inputs: &[&[]], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    assert_eq!(outputs, [Vec::<f32>::new()]);
    assert!(session.gradients().unwrap().iter().all(|&g| g == 0.0));
}

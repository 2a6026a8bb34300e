//! What the optimiser has besides the paper's Adam, against f64: clipping, decay, averages.

use super::training::{ROWS, data, looker, model, session_on, trainer};
use super::*;
use crate::engine::gpu::kernels::shader::Kernel;
use crate::engine::{ProgramId, Skips, StepJob};
use crate::optim::Adam;
use crate::optim::definition::Definition;

const ALL: Adam =
    Adam { beta1: 0.9, beta2: 0.95, eps: 1e-4, l2: 0.01, grad_clamp: 0.05, clip_norm: 0.2, decay: 2.0, average: 0.6 };

fn job(adam: Adam, t: u64) -> StepJob {
    StepJob {
        first: 3 * t as usize,
        rows: 37,
        noise: 0.0,
        dropout: 0,
        seed: 4,
        step: t as u32,
        adam: adam.step(0.01, t),
    }
}

fn session(device: Arc<Device>, plan: &Arc<Plan>) -> (GpuSession, ProgramId) {
    let (mut session, _) = session_on(device, plan, false, usize::MAX);
    let id = session.compile(trainer(plan).clipped(), 37).unwrap();
    session.write(Values::Averages, &weights(plan)[..plan.layout.trained]).unwrap();
    (session, id)
}

const VALUES: [Values; 4] = [Values::Weights, Values::FirstMoments, Values::SecondMoments, Values::Averages];

fn state(session: &mut GpuSession) -> Vec<Vec<f32>> {
    VALUES.map(|v| session.read(v).unwrap()).to_vec()
}

#[test]
fn updates_are_those_of_the_definition() {
    let plan = model();
    let trained = plan.layout.trained;
    let program = looker(&plan);
    for (what, adam) in [
        ("all", ALL),
        ("clip", Adam { clip_norm: 0.2, ..Adam::default() }),
        ("a wide bound", Adam { clip_norm: 1e9, ..Adam::default() }),
        ("decay", Adam { decay: 2.0, clip_norm: 1e9, ..Adam::default() }),
        ("average", Adam { average: 0.99, clip_norm: 1e9, ..Adam::default() }),
    ] {
        let (mut session, id) = session(device(), &plan);
        let mut reference = Reference::new(&plan, &weights(&plan));
        let mut definition = Definition::new(&plan.layout, &weights(&plan));
        let mut scales = Vec::new();
        for t in 1..=5 {
            session.step(id, &job(adam, t)).unwrap();
            let rows: Vec<f32> =
                (0..37).flat_map(|r| data(&plan)[(ROWS - 1 - (3 * t as usize + r)) * 5..][..5].to_vec()).collect();
            reference.run(&program, 37, &[rows]);
            scales.push(definition.step(&adam.step(0.01, t), &reference.gradients[..trained]));
            reference.weights[..trained].copy_from_slice(&definition.weights);
        }
        assert_eq!(scales.iter().all(|&s| s < 0.9), adam.clip_norm == 0.2, "{what}: {scales:?}");
        let got = state(&mut session);
        assert_close(what, &got[0][..trained], &definition.weights, within(1e-4));
        assert_close(what, &got[1], &definition.first, within(1e-3));
        assert_close(what, &got[2], &definition.second, within(1e-3));
        assert_close(what, &got[3], &definition.averages, within(1e-4));
        assert_eq!(session.skips().unwrap(), Skips::default());
    }
}

/// A bound that is never reached changes no bit, and neither do averages.
#[test]
fn what_is_not_clipped_is_as_without() {
    let plan = model();
    let run = |adam: Adam, clipped: bool| {
        let (mut session, plain) = session_on(device(), &plan, false, usize::MAX);
        let id = if clipped { session.compile(trainer(&plan).clipped(), 37).unwrap() } else { plain };
        session.write(Values::Averages, &weights(&plan)[..plan.layout.trained]).unwrap();
        (1..=3).for_each(|t| session.step(id, &job(adam, t)).unwrap());
        state(&mut session)[..3].to_vec()
    };
    let plain = run(Adam::default(), false);
    assert!(run(Adam { clip_norm: 1e9, average: 0.9, ..Adam::default() }, true) == plain);
    assert!(run(Adam { average: 0.9, ..Adam::default() }, false) == plain);
}

/// More weights than the threads of the norm's workgroups, and batches of several slices.
#[test]
fn norms_of_many_weights() {
    let plan = plan(Spec { dim: 20, width: 150, blocks: 1, mixing: crate::plan::Mixing::Fixed, ..Spec::default() });
    let trained = plan.layout.trained;
    assert!(trained > 256 * 256);
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let scaled: Vec<f32> = weights(&plan).iter().map(|w| 0.1 * w).collect();
    session.write(Values::Weights, &scaled).unwrap();
    let rows = 1100;
    session.set_data(numbers(17, rows * 20, 1.0).into()).unwrap();
    session.set_order(&(0..rows as u32).collect::<Vec<_>>()).unwrap();
    let id = session.compile(trainer(&plan).clipped(), rows).unwrap();
    let adam = Adam { clip_norm: 0.05, grad_clamp: 1e30, l2: 0.0, ..Adam::default() };
    session.step(id, &StepJob { first: 0, rows, ..job(adam, 1) }).unwrap();
    let gradient: Vec<f64> = session.gradients().unwrap()[..trained].iter().map(|&g| g.into()).collect();
    let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
    assert!(norm > 0.1, "{norm}");
    let first: Vec<f64> = gradient.iter().map(|g| 0.1 * g * 0.05 / norm).collect();
    assert_close("first moments", &session.read(Values::FirstMoments).unwrap(), &first, within(1e-5));
}

#[test]
fn updates_whose_gradient_is_not_finite_are_left_out_and_counted() {
    let plan = model();
    let (mut session, id) = session(device(), &plan);
    let skips = |total, in_a_row| Skips { total, in_a_row };
    let give = |session: &mut GpuSession, bad: Option<f32>| {
        let mut rows = data(&plan);
        bad.into_iter().for_each(|bad| rows[ROWS * 5 / 2] = bad);
        session.set_data(rows.into()).unwrap();
        session.set_order(&(0..ROWS as u32).rev().collect::<Vec<_>>()).unwrap();
    };
    session.step(id, &job(ALL, 1)).unwrap();
    let trained = plan.layout.trained;
    let before = state(&mut session);
    for (t, bad) in (2..).zip([f32::NAN, f32::INFINITY, 1e30]) {
        give(&mut session, Some(bad));
        session.step(id, &job(ALL, t)).unwrap();
        assert_eq!(session.skips().unwrap(), skips(t as u32 - 1, t as u32 - 1), "{bad}");
    }
    let after = state(&mut session);
    // The rest of the weights is computed from these.
    assert!(after[0][..trained] == before[0][..trained] && after[1..] == before[1..]);
    give(&mut session, None);
    session.step(id, &job(ALL, 5)).unwrap();
    assert_eq!(session.skips().unwrap(), skips(3, 0));
    assert!(state(&mut session)[0] != before[0]);
    session.set_skips(skips(70, 2)).unwrap();
    assert_eq!(session.skips().unwrap(), skips(70, 2));
    // Averages that come later leave the counters.
    let (mut late, id) = session_on(super::device(), &plan, false, usize::MAX);
    late.set_skips(skips(9, 1)).unwrap();
    late.write(Values::Averages, &vec![0.5; trained]).unwrap();
    assert_eq!((late.skips().unwrap(), late.read(Values::Averages).unwrap()), (skips(9, 1), vec![0.5; trained]));
    late.step(id, &job(Adam::default(), 1)).unwrap();
}

#[test]
fn clipping_takes_two_dispatches_and_nothing_else_any() {
    let plan = model();
    let (mut session, plain) = session_on(device(), &plan, false, 32);
    let clipped = session.compile(trainer(&plan).clipped(), 37).unwrap();
    assert_eq!(session.dispatches(clipped), session.dispatches(plain) + 2);
    let kernels = session.kernels(clipped);
    assert_eq!(kernels[kernels.len() - 3..], [Kernel::GradientNorm, Kernel::Clip, Kernel::Adam]);
    assert!(!session.kernels(plain).contains(&Kernel::Clip));
}

#[test]
fn steps_make_nothing_new_on_the_device() {
    let plan = model();
    for device in [device(), Arc::new(embedding::poor())] {
        let (mut session, id) = session(device, &plan);
        (0..80).for_each(|t| session.step(id, &job(ALL, t % 7 + 1)).unwrap());
        session.loss().unwrap();
        let before = held(&session);
        let submitted = session.device.submitted();
        (0..60).for_each(|t| session.step(id, &job(ALL, t % 7 + 1)).unwrap());
        assert_eq!(held(&session), before);
        assert!(session.device.submitted() - submitted <= 60, "at most one submission per step");
        assert!(session.loss().unwrap().is_finite());
    }
}

//! Dropout: the units that the native engine drops, in every kernel of the networks.

use super::*;
use crate::engine::{Engine, StepJob};
use crate::flow::programs::{Name, record};
use crate::optim::Adam;
use crate::tape::Memory;

const RATE: u8 = 77;

fn all_specs() -> Vec<Spec> {
    let base = Spec { dim: 6, blocks: 2, width: 40, ..Spec::default() };
    let by_level = Spec { condition_on: ConditionOn::Output, dim: 5, width: 21, ..base.clone() };
    let coupling = Transform::Spline(Spline { bins: 4, ..Spline::default() });
    let affine = [
        Spec { kind: Kind::Hint, cond_dim: 3, ..base.clone() },
        Spec { kind: Kind::Cinn, cond_dim: 4, dim: 1, width: 150, ..base.clone() },
        base,
        by_level,
    ];
    let splines = affine.clone().map(|spec| Spec { coupling, ..spec });
    affine.into_iter().chain(splines).collect()
}

/// Loss, gradients and weights after two steps.
fn steps(session: &mut dyn Session, plan: &Arc<Plan>, memory: Memory, dropout: u8, rows: usize) -> [Vec<f32>; 3] {
    session.write(Values::Weights, &numbers(7, plan.layout.len(), 0.3)).unwrap();
    let trained = plan.layout.trained;
    for moments in [Values::FirstMoments, Values::SecondMoments] {
        session.write(moments, &vec![0.0; trained]).unwrap();
    }
    let columns = plan.spec.row_columns() as usize;
    session.set_data(numbers(17, 120 * columns, 1.0).into()).unwrap();
    session.set_order(&(0..120).map(|i| (i * 37 + 11) % 120).collect::<Vec<u32>>()).unwrap();
    let id = session.compile(record(Name::Step(memory), plan), rows).unwrap();
    let mut losses = vec![];
    for t in 1..=2 {
        let adam = Adam { eps: 1e-3, ..Adam::default() }.step(0.01, t);
        let job = StepJob { first: 3, rows, noise: 0.1, dropout, seed: 9 << 32 | 4, step: t as u32, adam };
        session.step(id, &job).unwrap();
        losses.push(session.loss().unwrap());
    }
    let gradients = session.gradients().unwrap()[..trained].to_vec();
    [losses, gradients, session.read(Values::Weights).unwrap()[..trained].to_vec()]
}

fn wide(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| v.into()).collect()
}

#[test]
fn steps_are_those_of_the_native_engine() {
    let device = device();
    for spec in all_specs() {
        let plan = plan(spec);
        for memory in [Memory::Stored, Memory::Reversible] {
            let what = format!("{memory:?}, {:?}", plan.spec);
            let mut native = Engine::cpu_with_threads(1).unwrap().load(plan.clone()).unwrap();
            let expected = steps(native.as_mut(), &plan, memory, RATE, 70);
            let run = |tile: usize, fuse: bool, number: Option<usize>, recompute: bool, dropout: u8| {
                let variants = KernelVariants { forward: number, backward: number, recompute: Some(recompute) };
                let mut session = session_with(&device, &plan, Options { variants, fuse, ..tiles(tile) });
                steps(&mut session, &plan, memory, dropout, 70)
            };
            let got = run(usize::MAX, true, Some(0), false, RATE);
            for ((name, tolerance), (got, want)) in
                [("losses", 2e-5), ("gradients", 1e-3), ("weights", 3e-4)].into_iter().zip(got.iter().zip(&expected))
            {
                assert_close(&format!("{name}, {what}"), got, &wide(want), within(tolerance));
            }
            // In packs of another shape and computed again, through the arena, in tiles.
            assert!(run(usize::MAX, true, Some(1), true, RATE) == got, "{what}: packs change the bits");
            assert!(run(usize::MAX, false, None, false, RATE) == got, "{what}: the arena changes the bits");
            assert!(run(32, true, Some(0), true, RATE) == got, "{what}: tiles change the bits");
            let none = run(usize::MAX, true, Some(0), false, 0);
            assert!((none[0][0] - got[0][0]).abs() > 1e-3 * got[0][0].abs(), "{what}: nothing was dropped");
        }
    }
}

/// A program may be run with and without it, in any order, and makes nothing new after the first step of a rate.
#[test]
fn steps_with_other_rates_do_not_disturb_each_other() {
    let plan = plan(Spec { dim: 5, width: 20, blocks: 1, ..Spec::default() });
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let mut losses = |dropout: u8| steps(&mut session, &plan, Memory::Stored, dropout, 37)[0].clone();
    let first = [0, 128, 20].map(&mut losses);
    assert!(first[0] != first[1] && first[1] != first[2]);
    assert_eq!([0, 128, 20].map(&mut losses), first);
}

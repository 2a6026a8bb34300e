//! Whole models, most of them conditional: programs against f64 and against the native engine.

use super::*;
use crate::engine::{Engine, Groups, StepJob};
use crate::flow::programs::{Name, record};
use crate::optim::Adam;
use crate::plan::Mixing;
use crate::tape::Memory;

/// Models of two blocks: awkward sizes, both ways of conditioning, all mixings and transformations.
fn whole_specs() -> Vec<Spec> {
    use ConditionOn::{Input, Output};
    let sizes = [(1, 1, Input, Mixing::Householder), (2, 3, Output, Mixing::Fixed), (9, 5, Input, Mixing::Fixed)];
    let more = [(5, 2, Output, Mixing::Householder), (3, 8, Input, Mixing::None)];
    let spec = |kind, (dim, cond_dim, condition_on, mixing)| {
        let mix_first = dim % 2 == 0 || kind == Kind::Cinn;
        Spec { kind, dim, cond_dim, condition_on, mixing, mix_first, width: 18, ..Spec::default() }
    };
    let all = sizes.into_iter().chain(more).flat_map(|size| [Kind::Cinn, Kind::Hint].map(|kind| spec(kind, size)));
    let coupling = Transform::Spline(Spline { bins: 5, half_width: 2.0, min_slope: 1e-3 });
    let of_splines = |kind, size| Spec { coupling, ..spec(kind, size) };
    all.chain([
        // A coupling without recursion: the baseline.
        Spec { depth: 0.into(), ..spec(Kind::Cinn, (6, 4, Input, Mixing::Fixed)) },
        spec(Kind::Hint, (4, 3, Input, Mixing::Permutation)),
        of_splines(Kind::Cinn, (1, 1, Input, Mixing::Householder)),
        of_splines(Kind::Hint, (2, 3, Output, Mixing::Reverse)),
        of_splines(Kind::Hint, (9, 5, Input, Mixing::Permutation)),
        of_splines(Kind::Cinn, (5, 2, Output, Mixing::Fixed)),
        of_splines(Kind::Flow, (7, 0, Input, Mixing::Householder)),
    ])
    .collect()
}

/// Weights small enough for an inverse of two blocks.
fn small_weights(plan: &Plan) -> Vec<f32> {
    let mut weights = numbers(7, plan.layout.len(), 0.3);
    for mix in plan.mixes().filter(|mix| mix.permutes) {
        let (q, n) = (mix.q as usize, mix.dim as usize);
        weights[q..q + n * n].fill(0.0);
        // A turn of the columns, which is not its own inverse.
        (0..n).for_each(|row| weights[q + row * n + (row + 1) % n] = 1.0);
    }
    weights
}

/// In f64; and the same bits in tiles, with every operation in a dispatch of its own, with other variants of the
/// kernels.
#[test]
fn programs_are_those_of_the_definition() {
    let device = device();
    for spec in whole_specs() {
        let plan = plan(spec);
        let mut names = vec![Name::Encode, Name::Decode];
        if plan.spec.kind == Kind::Hint {
            names.extend([Name::EncodeY, Name::DecodeJoint]);
        }
        names.extend([Memory::Stored, Memory::Reversible].map(Name::LossGradients));
        for name in names {
            let (what, rows) = (format!("{name:?}, {:?}", plan.spec), 37);
            let program = record(name, &plan);
            let inputs = inputs_of(&program, rows);
            let mut reference = Reference::new(&plan, &small_weights(&plan));
            let expected = reference.run(&program, rows, &inputs);

            let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
            let run = |fuse: bool, tile: usize, number: Option<usize>, recompute: bool| {
                let variants = KernelVariants { forward: number, backward: number, recompute: Some(recompute) };
                let mut session = session_with(&device, &plan, Options { variants, fuse, ..tiles(tile) });
                session.write(Values::Weights, &small_weights(&plan)).unwrap();
                let id = session.compile(program.clone(), rows).unwrap();
                let outputs = session.run(id, &Job { rows, inputs: &inputs, ..Job::default() }).unwrap();
                (outputs, session.gradients().unwrap())
            };
            let got = run(true, usize::MAX, Some(0), false);
            assert_eq!(got.0.len(), expected.len());
            for (got, want) in got.0.iter().zip(&expected) {
                assert_close(&what, got, want, within(1e-4));
            }
            if program.has_gradients() {
                for tensor in plan.layout.tensors.iter().filter(|t| t.offset < plan.layout.trained) {
                    let range = tensor.range();
                    let what = format!("{what}, {}", tensor.name);
                    assert_close(&what, &got.1[range.clone()], &reference.gradients[range], within(2e-4));
                }
            }
            assert!(run(false, usize::MAX, Some(0), false) == got, "{what}: dispatches change the bits");
            assert!(run(true, 32, Some(1), true) == got, "{what}: tiles change the bits");
            assert!(run(true, usize::MAX, None, true) == got, "{what}: the arena changes the bits");
        }
    }
}

/// Samples and training steps, whose random numbers the f64 definition leaves out.
#[test]
fn samples_and_steps_are_those_of_the_native_engine() {
    let device = device();
    for spec in whole_specs() {
        let plan = plan(spec);
        let mut native = Engine::cpu_with_threads(1).unwrap().load(plan.clone()).unwrap();
        let mut session: Box<dyn Session> =
            Box::new(GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap());
        let columns = plan.spec.row_columns() as usize;
        let data: Arc<[f32]> = numbers(17, 60 * columns, 1.0).into();
        let order: Vec<u32> = (0..60).map(|i| (i * 37 + 11) % 60).collect();
        let mut results = vec![];
        for session in [&mut native, &mut session] {
            session.write(Values::Weights, &small_weights(&plan)).unwrap();
            let mut samples = vec![];
            let joint = (plan.spec.kind == Kind::Hint).then_some(Name::SampleJoint);
            for name in [Name::Sample].into_iter().chain(joint) {
                let program = record(name, &plan);
                let inputs = inputs_of(&program, 45);
                let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
                let id = session.compile(program, 45).unwrap();
                let groups = Groups { rows: 10, first: 3 };
                samples.extend(
                    session.run(id, &Job { rows: 45, inputs: &inputs, seed: 5, first_row: 4, groups }).unwrap(),
                );
            }
            session.set_data(data.clone()).unwrap();
            session.set_order(&order).unwrap();
            let mut losses = vec![];
            for (t, memory) in [(1, Memory::Stored), (2, Memory::Stored), (3, Memory::Reversible)] {
                let id = session.compile(record(Name::Step(memory), &plan), 37).unwrap();
                let adam = Adam { l2: 0.01, eps: 1e-3, ..Adam::default() }.step(0.01, t);
                let job =
                    StepJob { first: 2 * t as usize, rows: 37, noise: 0.1, dropout: 0, seed: 9, step: t as u32, adam };
                session.step(id, &job).unwrap();
                losses.push(session.loss().unwrap());
            }
            let weights = session.read(Values::Weights).unwrap()[..plan.layout.trained].to_vec();
            results.push((samples, losses, weights));
        }
        let what = format!("{:?}", plan.spec);
        let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
        let (native, gpu) = (&results[0], &results[1]);
        for (got, want) in gpu.0.iter().zip(&native.0) {
            assert_close(&format!("samples, {what}"), got, &wide(want), within(1e-4));
        }
        assert_close(&format!("losses, {what}"), &gpu.1, &wide(&native.1), within(1e-5));
        assert_close(&format!("weights, {what}"), &gpu.2, &wide(&native.2), within(1e-4));
    }
}

/// Two lanes have as many dispatches per step as one, but for the first mixing of each.
#[test]
fn a_step_has_few_dispatches() {
    let device = device();
    for (kind, mix_first, expected) in
        [(Kind::Cinn, false, 11), (Kind::Cinn, true, 12), (Kind::Hint, false, 11), (Kind::Hint, true, 13)]
    {
        let plan = plan(Spec { kind, dim: 20, cond_dim: 4, width: 40, blocks: 2, mix_first, ..Spec::default() });
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        let id = session.compile(record(Name::Step(Memory::Stored), &plan), 32).unwrap();
        assert_eq!(session.dispatches(id), expected, "{kind:?}, {mix_first}");
    }
}

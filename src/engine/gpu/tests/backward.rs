//! Backward operations, each alone with arbitrary incoming gradients, and the gradient of whole models.

use super::*;
use crate::engine::gpu::kernels::shader::Kernel;
use crate::flow::programs::{Name, record};
use crate::plan::Mixing;
use crate::tape::{Memory, Tape, Then};

#[test]
fn loss() {
    let device = device();
    for dim in DIMS {
        let plan = plan(Spec { dim, ..Spec::default() });
        for rows in ROWS {
            let mut case = Case::new(&plan);
            let [z, log_det, loss, d_z, d_log_det] = [dim, 1, 1, dim, 1].map(|n| case.buffer(n));
            case.ops.push(Op::Loss { z, log_det, loss, d_z, d_log_det });
            case.check(&device, rows, 1e-6, &format!("loss, N = {dim}"));
        }
    }
}

#[test]
fn couple_backward() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [x, st, d_to, d_log_det] = [s.dim, s.st_rows, s.dim, 1].map(|n| case.buffer(n));
            let [d_x, d_st] = [s.dim, s.st_rows].map(|n| case.buffer(n));
            case.ops.push(Op::CoupleBackward { stage, x, st, d_to, d_log_det, d_x, d_st });
            case.check(device, rows, 1e-5, &format!("couple backward, N = {}", s.dim));
        }
    });
}

#[test]
fn networks_backward() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [x, given, d_st, d_x] = [s.dim, s.given, s.st_rows, s.dim].map(|n| case.buffer(n));
            // Random hidden activations: half of them negative, which stand for zeros of the ReLU.
            let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
            let d_hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
            let slots = case.scratch(s.slot_rows);
            case.ops.push(Op::NetworksBackward { stage, x, given, hidden, d_st, d_hidden, slots, d_x });
            case.check(device, rows, 1e-5, &format!("networks backward, N = {}", s.dim));
        }
    });
}

#[test]
fn wide_networks_backward() {
    let device = device();
    for (dim, width, cond_dim) in [(5, 1, 0), (4, 130, 0), (70, 33, 0), (5, 130, 9), (1, 300, 3)] {
        let kind = if cond_dim > 0 { Kind::Cinn } else { Kind::Flow };
        let plan = plan(Spec { kind, cond_dim, dim, width, blocks: 1, depth: 1.into(), ..Spec::default() });
        let s = &plan.stages[0];
        let mut case = Case::new(&plan);
        let [x, given, d_st, d_x] = [s.dim, s.given, s.st_rows, s.dim].map(|n| case.buffer(n));
        let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
        let d_hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
        let slots = case.scratch(s.slot_rows);
        case.ops.push(Op::NetworksBackward { stage: 0, x, given, hidden, d_st, d_hidden, slots, d_x });
        case.check(&device, 70, 1e-5, &format!("N = {dim}, width {width}"));
    }
}

/// More samples than one slice takes.
#[test]
fn gradients_over_several_slices() {
    let plan = plan(Spec { dim: 5, width: 8, blocks: 1, mixing: Mixing::Householder, ..Spec::default() });
    let device = device();
    let s = &plan.stages[0];
    let mut case = Case::new(&plan);
    let [x, d_st, d_x, d_from] = [s.dim, s.st_rows, s.dim, s.dim].map(|n| case.buffer(n));
    let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
    let d_hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
    let slots = case.scratch(s.slot_rows);
    case.prepare.push(StepOp::Reflect { mix: 0 });
    case.ops.push(Op::NetworksBackward { stage: 0, x, given: Buffer::EMPTY, hidden, d_st, d_hidden, slots, d_x });
    case.ops.push(Op::MixBackward { mix: 0, from: x, d_to: d_x, d_from });
    case.finish.push(StepOp::ReflectBackward { mix: 0 });
    let (expected, gradients) = case.expect(2_500);
    let (outputs, got) = case.run(&mut session_with(&device, &plan, Options::default()), 2_500);
    assert_close("d_x", &outputs[2], &expected[2], within(1e-5));
    assert_close("one tile", &got, &gradients, within(1e-5));
    // Tiles that end within slices and at their ends, that hold several and that are part of one.
    for tile in [1_100, 640, 320, 32] {
        assert!(
            case.run(&mut session_with(&device, &plan, tiles(tile)), 2_500) == (outputs.clone(), got.clone()),
            "tiles of {tile}"
        );
    }
}

/// Hidden activations of narrow nodes that are computed again instead of kept change no bit.
#[test]
fn narrow_nodes_computed_again() {
    let device = device();
    for (dim, width, condition_on, memory, kernels, cond_dim) in [
        (7, 150, ConditionOn::Input, Memory::Stored, 2, 0),
        (20, 104, ConditionOn::Input, Memory::Stored, 2, 0),
        // All but the last are left by the inverse.
        (20, 104, ConditionOn::Input, Memory::Reversible, 1, 0),
        (9, 24, ConditionOn::Output, Memory::Stored, 6, 0),
        (9, 24, ConditionOn::Output, Memory::Reversible, 6, 0),
        (1, 5, ConditionOn::Input, Memory::Stored, 2, 0),
        // Several packs.
        (100, 40, ConditionOn::Input, Memory::Stored, 2, 0),
        // With conditions.
        (7, 150, ConditionOn::Input, Memory::Stored, 2, 3),
        (20, 30, ConditionOn::Output, Memory::Reversible, 8, 5),
        (1, 5, ConditionOn::Input, Memory::Stored, 2, 1),
    ] {
        let kind = if cond_dim > 0 { Kind::Cinn } else { Kind::Flow };
        let plan = plan(Spec { kind, cond_dim, dim, width, condition_on, blocks: 2, ..Spec::default() });
        let program = record(Name::LossGradients(memory), &plan);
        let rows = 300;
        let inputs: Vec<_> = program.inputs.iter().map(|b| numbers(11, rows * b.rows as usize, 1.0)).collect();
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let run = |recompute: bool, tile: usize| {
            let variants = KernelVariants { recompute: Some(recompute), ..KernelVariants::default() };
            let mut session = session_with(&device, &plan, Options { variants, ..tiles(tile) });
            session.write(Values::Weights, &weights(&plan)).unwrap();
            let id = session.compile(program.clone(), rows).unwrap();
            let narrow = session.kernels(id).into_iter().filter(|&k| k == Kernel::NarrowBackward).count();
            assert_eq!(narrow, if recompute { kernels } else { 0 }, "N = {dim}");
            let outputs = session.run(id, &Job { rows, inputs: &inputs, ..Job::default() }).unwrap();
            (outputs, session.gradients().unwrap())
        };
        let kept = run(false, usize::MAX);
        assert!(kept.1.iter().any(|&g| g != 0.0));
        assert!(run(true, usize::MAX) == kept, "N = {dim}, width {width}");
        assert!(run(true, 96) == kept, "N = {dim}, width {width}, tiles of 96");
    }
}

#[test]
fn mix_backward_and_reflections() {
    let device = device();
    for dim in DIMS {
        for mixing in [Mixing::Fixed, Mixing::Householder] {
            let plan = plan(Spec { dim, mixing, blocks: 3, mix_first: false, width: 5, ..Spec::default() });
            let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
            for rows in ROWS {
                let mut case = Case::new(&plan);
                for mix in 0..2 {
                    let [from, d_to, d_from] = [dim, dim, dim].map(|n| case.buffer(n));
                    case.ops.push(Op::MixBackward { mix, from, d_to, d_from });
                    if mixing == Mixing::Householder {
                        case.prepare.push(StepOp::Reflect { mix });
                        case.finish.push(StepOp::ReflectBackward { mix });
                    }
                }
                case.check(&device, rows, 2e-5, &format!("mix backward, N = {dim}, {mixing:?}"));
                let what = format!("dispatches, N = {dim}");
                let id = session.compile(case.program(), rows).unwrap();
                // Both mixings share the dispatches of the reflections.
                let forward = if dim > 32 { 3 } else { 1 };
                let expected = if mixing == Mixing::Householder { forward + 4 + 4 } else { 2 };
                assert_eq!(session.dispatches(id), expected, "{what}");
            }
        }
    }
}

/// The tape's gradient of the loss of a whole model, against f64 and against finite differences of the f64 loss.
#[test]
fn whole_models() {
    let device = device();
    for (dim, condition_on, mixing) in [
        (1, ConditionOn::Input, Mixing::None),
        (2, ConditionOn::Output, Mixing::Fixed),
        (7, ConditionOn::Input, Mixing::Householder),
        (20, ConditionOn::Output, Mixing::Householder),
    ] {
        let plan = plan(Spec { dim, condition_on, mixing, width: 16, mix_first: false, ..Spec::default() });
        let mut tape = Tape::training(plan.clone(), Memory::Stored);
        let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
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
        let loss = tape.loss(z, log_det);
        tape.backward();
        let program = tape.finish("model", vec![z, log_det, loss], Then::Gradients);
        let input = numbers(11, 37 * dim as usize, 1.0);
        let mut reference = Reference::new(&plan, &weights(&plan));
        let expected = reference.run(&program, 37, std::slice::from_ref(&input));

        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        session.write(Values::Weights, &weights(&plan)).unwrap();
        let id = session.compile(program.clone(), 37).unwrap();
        let outputs =
            session.run(id, &Job { rows: 37, inputs: &[&input], seed: 0, first_row: 0, ..Job::default() }).unwrap();
        for (got, want) in outputs.iter().zip(&expected) {
            assert_close(&format!("N = {dim}, outputs"), got, want, within(2e-5));
        }
        let gradients = session.gradients().unwrap();
        for tensor in plan.layout.tensors.iter().filter(|t| t.offset < plan.layout.trained) {
            let what = format!("N = {dim}, {}", tensor.name);
            assert_close(&what, &gradients[tensor.range()], &reference.gradients[tensor.range()], within(1e-4));
        }

        // With every operation in a dispatch of its own.
        let mut apart = session_with(&device, &plan, Options { fuse: false, ..Options::default() });
        apart.write(Values::Weights, &weights(&plan)).unwrap();
        let separate = apart.compile(program.clone(), 37).unwrap();
        assert!(apart.dispatches(separate) > session.dispatches(id));
        let again =
            apart.run(separate, &Job { rows: 37, inputs: &[&input], seed: 0, first_row: 0, ..Job::default() }).unwrap();
        assert!(again == outputs && apart.gradients().unwrap() == gradients, "N = {dim}: dispatches change the bits");

        // The f64 backward operations are only as good as their agreement with differences.
        let exact = reference.gradients.clone();
        let start = weights(&plan);
        let mean_loss = |i: usize, offset: f64| {
            let mut moved = Reference::new(&plan, &start);
            moved.weights[i] += offset;
            moved.run(&Program { finish: vec![], ..program.clone() }, 37, std::slice::from_ref(&input));
            moved.loss / 37.0
        };
        let largest = exact[..plan.layout.trained].iter().fold(0.0f64, |m, g| m.max(g.abs()));
        for i in (0..plan.layout.trained).step_by(plan.layout.trained / 40 + 1) {
            let step = 1e-6;
            let slope = (mean_loss(i, step) - mean_loss(i, -step)) / (2.0 * step);
            assert!((slope - exact[i]).abs() <= 1e-5 * largest, "N = {dim}, weight {i}: {slope} and {}", exact[i]);
        }
    }
}

//! Forward operations and inverses, each alone.

use super::*;
use crate::plan::Mixing;

#[test]
fn fill() {
    let plan = plan(Spec { dim: 3, ..Spec::default() });
    let device = device();
    for rows in ROWS {
        let mut case = Case::new(&plan);
        let [_, to, _] = [1, 5, 1].map(|n| case.buffer(n));
        case.ops.push(Op::Fill { to, value: -2.5 });
        case.check(&device, rows, 0.0, "fill");
    }
}

#[test]
fn mix() {
    let device = device();
    for dim in DIMS {
        let plan = plan(Spec { dim, mixing: Mixing::Fixed, ..Spec::default() });
        for transpose in [false, true] {
            for rows in ROWS {
                let mut case = Case::new(&plan);
                let [_, from, to, _] = [1, dim, dim, 1].map(|n| case.buffer(n));
                case.ops.push(Op::Mix { mix: 1, transpose, from, to });
                case.check(&device, rows, 2e-6, &format!("mix, N = {dim}, transpose {transpose}"));
            }
        }
    }
}

#[test]
fn networks() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [_, x, given, st, _] = [1, s.dim, s.given, s.st_rows, 1].map(|n| case.buffer(n));
            let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
            case.ops.push(Op::Networks { stage, x, given, st, hidden, keep: true });
            case.check(device, rows, 1e-5, &format!("networks, N = {}", s.dim));
        }
    });
}

#[test]
fn couple_to_another_buffer_and_in_place() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        for (rows, in_place) in [(1, true), (37, false), (257, true)] {
            let mut case = Case::new(plan);
            let [x, to, st, log_det] = [s.dim, s.dim, s.st_rows, 1].map(|n| case.buffer(n));
            let to = if in_place { x } else { to };
            case.ops.push(Op::Couple { stage, x, st, to, log_det });
            case.check(device, rows, 2e-5, &format!("couple, N = {}", s.dim));
        }
    });
}

#[test]
fn uncouple() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [x, st] = [s.dim, s.st_rows].map(|n| case.buffer(n));
            case.ops.push(Op::Uncouple { stage, from: x, x, st });
            case.check(device, rows, 1e-5, &format!("uncouple, N = {}", s.dim));
        }
    });
}

#[test]
fn walk() {
    for_stages(|device, plan, stage| {
        let s = &plan.stages[stage];
        if plan.spec.condition_on == ConditionOn::Output {
            return;
        }
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [_, x, given, st, _] = [1, s.dim, s.given, s.st_rows, 1].map(|n| case.buffer(n));
            let hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
            case.ops.push(Op::Walk { stage, x, given, st, hidden, keep: true });
            case.check(device, rows, 1e-4, &format!("walk, N = {}", s.dim));
        }
    });
}

/// Widths that the groups of threads do not divide, and more outputs than one pass over the groups takes.
#[test]
fn wide_networks() {
    let device = device();
    for (dim, width, cond_dim) in [(5, 1, 0), (4, 130, 0), (70, 33, 0), (5, 130, 9), (1, 300, 3)] {
        let kind = if cond_dim > 0 { Kind::Cinn } else { Kind::Flow };
        let plan = plan(Spec { kind, cond_dim, dim, width, blocks: 1, depth: 1.into(), ..Spec::default() });
        let s = &plan.stages[0];
        let mut case = Case::new(&plan);
        let [x, st, y, given] = [s.dim, s.st_rows, s.dim, s.given].map(|n| case.buffer(n));
        let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
        case.ops.push(Op::Networks { stage: 0, x, given, st, hidden, keep: true });
        let st = case.scratch(s.st_rows);
        let hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
        case.ops.push(Op::Walk { stage: 0, x: y, given, st, hidden, keep: true });
        // The inverse divides by scales that are far from 1 at these widths.
        case.check(&device, 70, 1e-3, &format!("N = {dim}, width {width}"));
    }
}

#[test]
fn decoding_inverts_encoding() {
    let device = device();
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        let plan = plan(Spec { dim: 20, blocks: 2, width: 40, condition_on, mix_first: false, ..Spec::default() });
        let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
        let mut tape = crate::tape::Tape::inference(plan.clone());
        let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
        let mut z = x;
        for block in &plan.blocks {
            for stage in block.stages.clone() {
                z = tape.couple(stage, z, Buffer::EMPTY, log_det);
            }
        }
        for block in plan.blocks.iter().rev() {
            for stage in block.stages.clone().rev() {
                tape.uncouple(stage, z, Buffer::EMPTY, false);
            }
        }
        let id = session.compile(tape.finish("round", vec![z], crate::tape::Then::Nothing), 50).unwrap();
        session.write(Values::Weights, &numbers(1, plan.layout.len(), 0.2)).unwrap();
        let input = numbers(2, 50 * 20, 1.0);
        let back =
            session.run(id, &Job { rows: 50, inputs: &[&input], seed: 0, first_row: 0, ..Job::default() }).unwrap();
        let expected: Vec<f64> = input.iter().map(|&v| v.into()).collect();
        assert_close("round trip", &back[0], &expected, within(2e-5));
    }
}

#[test]
fn dispatches_are_few() {
    let plan = plan(Spec { dim: 20, ..Spec::default() });
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let mut tape = crate::tape::Tape::inference(plan.clone());
    let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
    let z = tape.couple(0, x, Buffer::EMPTY, log_det);
    let id = session.compile(tape.finish("one stage", vec![z], crate::tape::Then::Nothing), 10).unwrap();
    // Networks, couple.
    assert_eq!(session.dispatches(id), 2);
}

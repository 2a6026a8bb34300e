//! Splines: every operation alone, against f64; and how much of a step they take.

use super::*;
use crate::flow::programs::{Name, record};
use crate::plan::Mixing;
use crate::tape::Memory;

/// Largest error of values and log-derivatives, of the largest value.
const FORWARD: f64 = 1e-4;
/// The same of gradients.
const BACKWARD: f64 = 1e-4;

#[test]
fn couple_to_another_buffer_and_in_place() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        for (rows, in_place) in [(1, true), (37, false), (257, true)] {
            let mut case = Case::new(plan);
            let [x, to, st, log_det, _] = [s.dim, s.dim, s.st_rows, 1, 1].map(|n| case.buffer(n));
            let to = if in_place { x } else { to };
            case.ops.push(Op::Couple { stage, x, st, to, log_det });
            case.check(device, rows, FORWARD, &format!("couple, {:?}", plan.spec));
        }
    });
}

#[test]
fn uncouple() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [x, st, _] = [s.dim, s.st_rows, 1].map(|n| case.buffer(n));
            case.ops.push(Op::Uncouple { stage, from: x, x, st });
            case.check(device, rows, FORWARD, &format!("uncouple, {:?}", plan.spec));
        }
    });
}

#[test]
fn networks() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [_, x, given, st, _] = [1, s.dim, s.given, s.st_rows, 1].map(|n| case.buffer(n));
            let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
            case.ops.push(Op::Networks { stage, x, given, st, hidden, keep: true });
            case.check(device, rows, 1e-5, &format!("networks, {:?}", plan.spec));
        }
    });
}

#[test]
fn walk() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        if plan.spec.condition_on == ConditionOn::Output {
            return;
        }
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [_, x, given, st, _] = [1, s.dim, s.given, s.st_rows, 1].map(|n| case.buffer(n));
            let hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
            case.ops.push(Op::Walk { stage, x, given, st, hidden, keep: true });
            case.check(device, rows, FORWARD, &format!("walk, {:?}", plan.spec));
        }
    });
}

#[test]
fn couple_backward() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            // Gradients are divided by the size of a bin: a thousandth of the box at least, with these numbers a
            // hundredth.
            case.scale = 0.5;
            let [x, st, d_to, d_log_det] = [s.dim, s.st_rows, s.dim, 1].map(|n| case.buffer(n));
            let [d_x, d_st, _] = [s.dim, s.sum_rows, 1].map(|n| case.buffer(n));
            case.ops.push(Op::CoupleBackward { stage, x, st, d_to, d_log_det, d_x, d_st });
            case.check(device, rows, BACKWARD, &format!("couple backward, {:?}", plan.spec));
        }
    });
}

#[test]
fn networks_backward() {
    for_stages_of(spline_specs, |device, plan, stage| {
        let s = &plan.stages[stage];
        for rows in ROWS {
            let mut case = Case::new(plan);
            let [x, given, d_st, d_x, _] = [s.dim, s.given, s.sum_rows, s.dim, 1].map(|n| case.buffer(n));
            let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
            let d_hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
            let slots = case.scratch(s.slot_rows);
            case.ops.push(Op::NetworksBackward { stage, x, given, hidden, d_st, d_hidden, slots, d_x });
            case.check(device, rows, 1e-5, &format!("networks backward, {:?}", plan.spec));
        }
    });
}

/// Widths that need the arena, and more outputs than one pass over the groups of threads takes.
#[test]
fn wide_networks() {
    let device = device();
    let coupling = Transform::Spline(Spline { bins: 4, ..Spline::default() });
    for (dim, width, cond_dim) in [(5, 1, 0), (4, 130, 0), (40, 33, 0), (5, 130, 9), (1, 300, 3)] {
        let kind = if cond_dim > 0 { Kind::Cinn } else { Kind::Flow };
        let plan = plan(Spec { kind, cond_dim, dim, width, coupling, blocks: 1, depth: 1.into(), ..Spec::default() });
        let s = &plan.stages[0];
        let mut case = Case::new(&plan);
        let [x, st, given] = [s.dim, s.st_rows, s.given].map(|n| case.buffer(n));
        let hidden = [case.buffer(s.hidden_rows), case.buffer(s.hidden_rows)];
        case.ops.push(Op::Networks { stage: 0, x, given, st, hidden, keep: true });
        let [d_st, d_x] = [s.sum_rows, s.dim].map(|n| case.buffer(n));
        let d_hidden = [case.scratch(s.hidden_rows), case.scratch(s.hidden_rows)];
        let slots = case.scratch(s.slot_rows);
        case.ops.push(Op::NetworksBackward { stage: 0, x, given, hidden, d_st, d_hidden, slots, d_x });
        case.check(&device, 70, 2e-5, &format!("N = {dim}, width {width}"));
    }
}

/// Runs a coupling of one column, of as many samples as there are values.
fn one_column(spline: Spline, x: &[f32], parameters: impl Fn(usize) -> Vec<f32>) -> Vec<Vec<f32>> {
    let coupling = Transform::Spline(spline);
    let plan = plan(Spec { dim: 1, coupling, blocks: 1, width: 3, mixing: Mixing::None, ..Spec::default() });
    let mut session = GpuSession::new(device(), plan.clone(), Options::default()).unwrap();
    let mut case = Case::new(&plan);
    let [x_in, st, log_det, d_to, d_log_det, to, back, d_x, d_st] =
        [1, spline.parameters(), 1, 1, 1, 1, 1, 1, spline.parameters()].map(|n| case.arena.alloc(n));
    case.inputs = vec![x_in, back, st, log_det, d_to, d_log_det];
    case.outputs = vec![to, log_det, back, d_x, d_st];
    case.ops = vec![
        Op::Couple { stage: 0, x: x_in, st, to, log_det },
        Op::Uncouple { stage: 0, from: back, x: back, st },
        Op::CoupleBackward { stage: 0, x: x_in, st, d_to, d_log_det, d_x, d_st },
    ];
    let rows = x.len();
    let id = session.compile(case.program(), rows).unwrap();
    let st: Vec<f32> = (0..rows).flat_map(parameters).collect();
    let (zeros, ones) = (vec![0.0; rows], vec![1.0; rows]);
    session.run(id, &Job { rows, inputs: &[x, x, &st, &zeros, &ones, &ones], ..Job::default() }).unwrap()
}

/// Values at the ends of the box and beyond go through as they are, and leave no gradients. A NaN stays one.
#[test]
fn outside_of_the_box_nothing_happens() {
    let spline = Spline { bins: 5, half_width: 2.0, min_slope: 1e-3 };
    let x = [-3.0, -2.0, 2.0, 1e30, f32::NEG_INFINITY, f32::NAN, 1.9];
    let parameters = |_| numbers(3, spline.parameters() as usize, 2.0);
    let [to, log_det, back, d_x, d_st] = one_column(spline, &x, parameters).try_into().unwrap();
    for i in 0..6 {
        let same = |v: f32| v.to_bits() == x[i].to_bits() || (v.is_nan() && x[i].is_nan());
        assert!(same(to[i]) && same(back[i]), "{}", x[i]);
        assert_eq!((log_det[i], d_x[i]), (0.0, 1.0), "{}", x[i]);
        assert!(d_st[i * 14..][..14].iter().all(|&d| d == 0.0), "{}", x[i]);
    }
    assert!(to[6] != x[6] && back[6] != x[6] && log_det[6] != 0.0 && d_st[6 * 14..].iter().any(|&d| d != 0.0));
}

/// A diverged network is seen: a NaN among the widths or heights, or in a slope of the value's bin, makes one of it.
/// What is so large that all but one bin have their smallest size does not.
#[test]
fn nan_comes_out_as_nan_and_large_parameters_do_not() {
    let spline = Spline { bins: 4, half_width: 2.0, min_slope: 1e-3 };
    let x = [0.3; 11];
    let parameters = |sample: usize| {
        let mut values = vec![0.0; 11];
        values[sample] = f32::NAN;
        values
    };
    let [to, log_det, back, d_x, _] = one_column(spline, &x, parameters).try_into().unwrap();
    for i in 0..11 {
        // 0.3 is in the third bin of four, whose slopes are the second and the third.
        let seen = i != 8;
        for (name, v) in [("to", to[i]), ("log_det", log_det[i]), ("back", back[i]), ("d_x", d_x[i])] {
            assert_eq!(v.is_nan(), seen, "{name}, parameter {i}: {v}");
        }
    }
    for size in [30.0, 300.0, 1e20] {
        let parameters = |sample: usize| {
            let mut values = vec![0.0; 11];
            values[sample] = if sample.is_multiple_of(2) { size } else { -size };
            values
        };
        for (i, values) in one_column(spline, &x, parameters).iter().enumerate() {
            // Slopes have no bound.
            let bounded = if i == 0 || i == 2 { values.len() } else { values.len() / 11 * 8 };
            assert!(values[..bounded].iter().all(|v| v.is_finite()), "{size}, output {i}: {values:?}");
        }
    }
}

/// Both ways, and at values that lie on knots: of equal bins at every fourth of the box.
#[test]
fn the_inverse_is_one_and_knots_belong_to_both_bins() {
    let spline = Spline { bins: 8, half_width: 4.0, min_slope: 1e-3 };
    let x: Vec<f32> = (-400..400).map(|i| i as f32 * 0.01).collect();
    let none = one_column(spline, &x, |_| vec![0.0; 23]);
    let exact: Vec<f64> = x.iter().map(|&v| v.into()).collect();
    assert_close("identity", &none[0], &exact, within(1e-6));
    assert_close("its inverse", &none[2], &exact, within(1e-6));
    assert!(none[1].iter().all(|v| v.abs() < 1e-5), "its log-derivative");
    let parameters = |_: usize| numbers(9, 23, 1.5);
    let forth = one_column(spline, &x, parameters);
    let back = one_column(spline, &forth[0], parameters);
    assert_close("there and back", &back[2], &exact, within(2e-5));
    assert!(forth[0].is_sorted_by(|a, b| a < b), "monotone");
}

/// A spline takes as many dispatches as an affine map.
#[test]
fn dispatches_are_those_of_affine_models() {
    let device = device();
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        for (kind, dim, cond_dim, width) in [
            (Kind::Flow, 20, 0, 104),
            (Kind::Flow, 60, 0, 130),
            (Kind::Cinn, 9, 3, 16),
            (Kind::Hint, 20, 4, 40),
            (Kind::Flow, 5, 0, 700),
        ] {
            let affine = Spec { kind, dim, cond_dim, width, condition_on, blocks: 2, ..Spec::default() };
            let spline = Spec { coupling: Transform::Spline(Spline::default()), ..affine.clone() };
            let steps = [Memory::Stored, Memory::Reversible].map(Name::Step);
            for name in [Name::Encode, Name::Decode, Name::Sample].into_iter().chain(steps) {
                let [affine, spline] = [&affine, &spline].map(|spec| {
                    let plan = plan(spec.clone());
                    let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
                    let id = session.compile(record(name, &plan), 32).unwrap();
                    (session.dispatches(id), session.kernels(id))
                });
                assert_eq!(affine, spline, "{name:?}, N = {dim}, {condition_on:?}");
            }
        }
    }
}

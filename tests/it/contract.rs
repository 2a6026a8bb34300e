//! One contract for every model, on every engine: agreement with the float64 oracle, round trip, log-determinant,
//! triangle, gradients in the middle of a graph, batch = loop of single rows, densities that integrate to one.

use crate::common::compare::{Tolerance, assert_close};
use crate::common::engines;
use crate::common::fixture::write_model;
use crate::common::jacobian::{block_dependence, log_abs_det};
use crate::common::oracle::{ConditionOn, Mixing, Model, Scale, Spec, SplineSettings, Transform, is_trained};
use crate::common::random::{Rng, random_model, random_rows};
use crate::common::whole::assert_close_on_the_whole;
use hintflow::flow::{Gradients, Memory};
use hintflow::{Engine, Flow};

/// Of values against the oracle, relative to the largest.
const VALUES: Tolerance = Tolerance::relative(1e-4).floor(1e-6);
/// Of gradients against the oracle, relative to the largest of each tensor.
const GRADIENTS: Tolerance = Tolerance::relative(1e-3).floor(1e-5);
/// Distance of the test rows from any kink of a ReLU, where float32 and float64 may take different sides.
const MARGIN: f64 = 1e-5;

/// The same for splines, from knots too: what comes to a spline has gone through others, whose slopes enlarge its rounding.
const KNOT_MARGIN: f64 = 1e-4;

fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn load(model: &Model, engine: &Engine) -> Flow {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    Flow::load(&path, engine).expect("model")
}

/// Depths that differ at N columns, and "full".
fn depths(dim: usize) -> Vec<usize> {
    let full = (0..).find(|&d| dim <= 3 << d).unwrap_or(0);
    (0..full).chain([99]).collect()
}

/// Shapes of the contract. The mixing goes round so that every one meets every kind of split.
fn specs(condition_on: ConditionOn, dims: impl Iterator<Item = usize>) -> impl Iterator<Item = Spec> {
    dims.flat_map(move |dim| {
        depths(dim).into_iter().enumerate().map(move |(i, depth)| {
            let mixing = [Mixing::Householder, Mixing::Fixed, Mixing::None][(dim + i) % 3];
            let scale = if (dim + i) % 5 == 0 { Scale::Exp } else { Scale::default() };
            let width = 5 + 3 * (dim % 4);
            Spec { depth, condition_on, mixing, scale, width, mix_first: dim % 2 == 0, ..Spec::flow(dim) }
        })
    })
}

/// The same with splines: few and many bins, small boxes that leave values outside.
fn spline_specs(condition_on: ConditionOn, dims: impl Iterator<Item = usize>) -> impl Iterator<Item = Spec> {
    specs(condition_on, dims).enumerate().map(|(i, spec)| {
        let bins = [8, 3, 2, 12, 5][i % 5];
        let half_width = [5.0, 1.5, 3.0][i % 3];
        let min_slope = if i % 4 == 0 { 0.05 } else { 1e-3 };
        let mixing = [Mixing::Reverse, Mixing::Permutation, Mixing::None, Mixing::Fixed][i % 4];
        let coupling = Transform::Spline(SplineSettings { bins, half_width, min_slope });
        // Gradients of networks of a single unit are sums that nearly cancel.
        let width = spec.width + 20;
        Spec { mixing, coupling, width, ..spec }
    })
}

fn check_model(spec: &Spec, rows: usize, engine: &Engine) {
    let what = |part: &str| format!("{part} of {spec:?}");
    let model = random_model(7, spec.clone());
    let flow = load(&model, engine);
    let margin = if spec.coupling == Transform::Affine { MARGIN } else { KNOT_MARGIN };
    let (x, _) = random_rows(&model, 11, rows, margin);

    // Against the oracle, and back.
    let want = model.forward(&x, &[]);
    let encoded = flow.encode(&f32s(&x)).expect("encode");
    assert_close(&what("z"), &encoded.z, &want.z, VALUES);
    assert_close(&what("log-det"), &encoded.log_det, &want.log_det, VALUES);
    assert_close(&what("decode"), &flow.decode(&f32s(&want.z)).expect("decode"), &x, Tolerance::relative(3e-4));
    assert_close(&what("density"), &flow.log_prob(&f32s(&x)).expect("density"), &model.log_prob(&x, &[]), VALUES);

    // Backward with arbitrary gradients coming in, as in the middle of a larger graph.
    let mut rng = Rng::new(5);
    let (d_z, d_log_det) = (rng.normals(rows * spec.dim, 1.7), rng.normals(rows, 2.3));
    let want = model.vjp(&x, &[], &d_z, &d_log_det);
    let vjp = |flow: &Flow| flow.vjp(&f32s(&x), &f32s(&d_z), &f32s(&d_log_det)).expect("vjp");
    let stored = vjp(&flow);
    let reversible = vjp(&flow.with_memory(Memory::Reversible));
    for got in [&stored, &reversible] {
        assert_close(&what("d_x"), &got.x, &want.x, GRADIENTS);
        for (name, gradient) in &got.tensors {
            let want = &want.params[name].data;
            assert_close(&what(name), gradient, want, GRADIENTS);
        }
        let trained = want.params.keys().filter(|name| is_trained(name)).count();
        assert_eq!(got.tensors.len(), trained, "{}", what("tensors with a gradient"));
    }
    assert_same_gradients(&what("reversible"), &reversible, &stored, bending(spec));
}

/// How much more sharply than an affine map, or a spline of eight bins, the transformation of a model bends: so much more
/// the rounding of an inverse changes its gradients.
fn bending(spec: &Spec) -> f64 {
    match spec.coupling {
        Transform::Affine => 1.0,
        Transform::Spline(SplineSettings { bins, .. }) => (bins as f64 / 8.0).max(1.0),
    }
}

/// Activations that are computed again change rounding only.
fn assert_same_gradients(what: &str, got: &Gradients, want: &Gradients, bending: f64) {
    let rounding = Tolerance::relative(1e-4 * bending).floor(1e-5);
    let f64s = |values: &[f32]| -> Vec<f64> { values.iter().map(|&v| v.into()).collect() };
    assert_close(&format!("d_x, {what}"), &got.x, &f64s(&want.x), rounding);
    let (mut all, mut wanted) = (Vec::new(), Vec::new());
    for ((name, got), (_, want)) in got.tensors.iter().zip(&want.tensors) {
        assert_close(&format!("{name}, {what}"), got, &f64s(want), rounding);
        all.extend(f64s(got));
        wanted.extend(f64s(want));
    }
    assert_close_on_the_whole(&format!("all weights, {what}"), &all, &wanted, 1e-5 * bending);
}

fn check_models(condition_on: ConditionOn, dims: impl Iterator<Item = usize>, engine: &Engine) {
    for spec in specs(condition_on, engines::asked(dims)) {
        check_model(&spec, 21, engine);
    }
}

fn check_splines(condition_on: ConditionOn, dims: impl Iterator<Item = usize>, engine: &Engine) {
    for spec in spline_specs(condition_on, engines::asked(dims)) {
        check_model(&spec, 21, engine);
    }
}

/// Widths and numbers of rows at which engines work in another way: activations kept or computed again, rows in one
/// block or several, gradients of one tile or of many.
fn check_sizes(engine: &Engine) {
    for (i, (dim, width, rows)) in
        [(1, 41, 200), (1, 200, 200), (2, 81, 130), (3, 40, 130), (6, 152, 130), (5, 201, 130), (3, 8, 3000)]
            .into_iter()
            .enumerate()
    {
        let condition_on = if i % 2 == 0 { ConditionOn::Input } else { ConditionOn::Output };
        let spec = Spec { width, condition_on, ..Spec::flow(dim) };
        check_model(&spec, rows, engine);
        // Many bins in a wide network only: the gradients of a network of one unit are sums that nearly cancel.
        let bins = if dim == 6 { 20 } else { 8 };
        let coupling = Transform::Spline(SplineSettings { bins, ..SplineSettings::default() });
        check_model(&Spec { coupling, mixing: Mixing::Reverse, ..spec }, rows, engine);
    }
}

/// The Jacobian of one unmixed block, row by row from the engine's own backward pass: its zeros are exactly those of
/// the recursion, and its determinant is what the engine says.
fn jacobian_is_the_papers_triangle(condition_on: ConditionOn, engine: &Engine) {
    for dim in engines::asked([1, 2, 3, 4, 5, 7, 8, 13, 20, 33]) {
        for depth in depths(dim) {
            let spec = Spec { depth, condition_on, mixing: Mixing::None, blocks: 1, width: 96, ..Spec::flow(dim) };
            let model = random_model(3, spec.clone());
            let flow = load(&model, engine);
            let (x, _) = random_rows(&model, 2, 1, MARGIN);
            // One sample per row of the Jacobian.
            let repeated: Vec<f32> = f32s(&x).repeat(dim);
            let mut seeds = vec![0.0; dim * dim];
            (0..dim).for_each(|i| seeds[i * dim + i] = 1.0);
            let jacobian = flow.vjp(&repeated, &seeds, &vec![0.0; dim]).expect("vjp").x;
            for (at, may) in block_dependence(&spec).into_iter().enumerate() {
                let (i, j, entry) = (at / dim, at % dim, jacobian[at]);
                assert!(may || entry == 0.0, "d z_{i} / d x_{j} = {entry} must be zero: {spec:?}");
                assert!(!may || entry != 0.0, "d z_{i} / d x_{j} is zero: {spec:?}");
            }
            let jacobian: Vec<f64> = jacobian.iter().map(|&v| f64::from(v)).collect();
            let log_det = flow.encode(&f32s(&x)).expect("encode").log_det;
            let tolerance = Tolerance::relative(1e-4).floor(1e-4);
            assert_close(&format!("log-det of {spec:?}"), &log_det, &[log_abs_det(&jacobian, dim)], tolerance);
        }
    }
}

/// No tensor is forgotten by the backward pass.
fn every_parameter_gets_a_gradient(engine: &Engine) {
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        for dim in engines::asked([2, 3, 5, 20, 33]) {
            // Wide enough that no network is dead for all rows.
            let model = random_model(7, Spec { width: 64, condition_on, ..Spec::flow(dim) });
            let (x, _) = random_rows(&model, 11, 37, 0.0);
            let (_, gradients) = load(&model, engine).loss_gradients(&f32s(&x)).expect("gradients");
            for (name, gradient) in gradients.tensors.iter().filter(|(_, g)| !g.is_empty()) {
                assert!(gradient.iter().any(|&g| g != 0.0), "{name} has no gradient at N = {dim}, {condition_on:?}");
            }
        }
    }
}

/// Rows do not know of each other, nor of the size of the batch.
fn batch_is_a_loop_of_single_rows(engine: &Engine) {
    for (dim, condition_on) in [(5, ConditionOn::Input), (20, ConditionOn::Output)] {
        let model = random_model(1, Spec { condition_on, ..Spec::flow(dim) });
        let flow = load(&model, engine);
        for rows in [1, 37, 257] {
            let x = f32s(&Rng::new(rows as u64).normals(rows * dim, 1.0));
            let all = flow.encode(&x).expect("encode");
            let decoded = flow.decode(&all.z).expect("decode");
            for r in 0..rows {
                let range = r * dim..(r + 1) * dim;
                let one = flow.encode(&x[range.clone()]).expect("encode");
                assert_eq!(
                    (one.z.as_slice(), one.log_det[0]),
                    (&all.z[range.clone()], all.log_det[r]),
                    "row {r} of {rows}"
                );
                assert_eq!(flow.decode(&one.z).expect("decode"), decoded[range], "decoded row {r} of {rows}");
            }
        }
    }
}

/// No rows are no error, and leave nothing of an earlier call behind.
fn no_rows_have_no_gradient(engine: &Engine) {
    let model = random_model(2, Spec::flow(4));
    let flow = load(&model, engine);
    flow.vjp(&[0.5; 8], &[1.0; 8], &[1.0; 2]).expect("vjp");
    let nothing = flow.vjp(&[], &[], &[]).expect("vjp of no rows");
    assert!(nothing.x.is_empty() && nothing.tensors.iter().all(|(_, g)| g.iter().all(|&v| v == 0.0)));
    assert!(flow.encode(&[]).expect("encode").z.is_empty() && flow.sample(0, 1).expect("sample").is_empty());
    assert!(flow.loss_gradients(&[]).is_err(), "a mean over no rows");
    assert!(flow.encode(&[0.0; 7]).is_err(), "a row that is not whole");
}

/// Calls from several threads take turns: each gets its own gradients.
fn threads_take_turns(engine: &Engine) {
    let model = random_model(2, Spec::flow(4));
    let flow = load(&model, engine);
    let rows: Vec<Vec<f32>> = (0..2).map(|seed| f32s(&Rng::new(seed).normals(4 * 37, 1.0))).collect();
    let want: Vec<_> = rows.iter().map(|x| flow.loss_gradients(x).expect("gradients")).collect();
    std::thread::scope(|scope| {
        for (x, want) in rows.iter().zip(&want) {
            let flow = &flow;
            scope.spawn(move || {
                for _ in 0..20 {
                    assert!(flow.loss_gradients(x).expect("gradients") == *want, "gradients of another thread");
                }
            });
        }
    });
}

/// The sum over a fine grid of the density is 1, in one and two dimensions.
fn density_integrates_to_one(engine: &Engine) {
    for (dim, step, reach) in [(1, 0.002, 12.0), (2, 0.04, 10.0)] {
        let couplings = [Transform::Affine, Transform::Spline(SplineSettings::default())];
        for (condition_on, coupling) in
            [ConditionOn::Input, ConditionOn::Output].into_iter().flat_map(|c| couplings.map(|t| (c, t)))
        {
            let model = random_model(9, Spec { condition_on, coupling, ..Spec::flow(dim) });
            let flow = load(&model, engine);
            let side: Vec<f32> = (0..).map(|i| -reach + step * i as f32).take_while(|&v| v <= reach).collect();
            let grid: Vec<f32> = match dim {
                1 => side.clone(),
                _ => side.iter().flat_map(|&a| side.iter().flat_map(move |&b| [a, b])).collect(),
            };
            let density = flow.log_prob(&grid).expect("density");
            let cell = f64::from(step).powi(dim as i32);
            let sum: f64 = density.iter().map(|&d| f64::from(d).exp() * cell).sum();
            assert!((sum - 1.0).abs() <= 2e-3, "N = {dim}, {condition_on:?}: the density integrates to {sum}");
        }
    }
}

/// Samples have the mean and the spread that the density says; a prefix of a longer draw is the shorter draw.
fn samples_follow_the_density(engine: &Engine) {
    let model = random_model(4, Spec::flow(3));
    let flow = load(&model, engine);
    let n = 20_000;
    let samples = flow.sample(n, 42).expect("samples");
    assert_eq!(flow.sample(37, 42).expect("samples"), samples[..37 * 3], "a prefix");
    assert_eq!(flow.sample_from(5, 42, 1000).expect("samples"), samples[3000..3015], "a piece");
    assert_ne!(flow.sample(37, 43).expect("samples"), samples[..37 * 3], "another seed");
    // z of a sample must be standard normal.
    let z = flow.encode(&samples).expect("encode").z;
    let bound = 5.0 / (n as f64).sqrt();
    for c in 0..3 {
        let column = || z.iter().skip(c).step_by(3).map(|&v| f64::from(v));
        let mean = column().sum::<f64>() / n as f64;
        let square = column().map(|v| v * v).sum::<f64>() / n as f64;
        assert!(mean.abs() <= bound && (square - 1.0).abs() <= 2.0 * bound, "column {c}: {mean}, {square}");
    }
}

macro_rules! contract {
    ($engine:ident, $dims:expr) => {
        mod $engine {
            use super::*;

            #[test]
            fn agrees_with_the_oracle_conditioned_on_input() {
                check_models(ConditionOn::Input, $dims, &engines::$engine());
            }

            #[test]
            fn agrees_with_the_oracle_conditioned_on_output() {
                check_models(ConditionOn::Output, $dims, &engines::$engine());
            }

            #[test]
            fn splines_agree_with_the_oracle_conditioned_on_input() {
                check_splines(ConditionOn::Input, $dims, &engines::$engine());
            }

            #[test]
            fn splines_agree_with_the_oracle_conditioned_on_output() {
                check_splines(ConditionOn::Output, $dims, &engines::$engine());
            }

            #[test]
            fn agrees_with_the_oracle_at_other_sizes() {
                check_sizes(&engines::$engine());
            }

            #[test]
            fn jacobian_is_the_papers_triangle_conditioned_on_input() {
                jacobian_is_the_papers_triangle(ConditionOn::Input, &engines::$engine());
            }

            #[test]
            fn jacobian_is_the_papers_triangle_conditioned_on_output() {
                jacobian_is_the_papers_triangle(ConditionOn::Output, &engines::$engine());
            }

            #[test]
            fn every_parameter_gets_a_gradient() {
                super::every_parameter_gets_a_gradient(&engines::$engine());
            }

            #[test]
            fn batch_is_a_loop_of_single_rows() {
                super::batch_is_a_loop_of_single_rows(&engines::$engine());
            }

            #[test]
            fn no_rows_have_no_gradient() {
                super::no_rows_have_no_gradient(&engines::$engine());
            }

            #[test]
            fn threads_take_turns() {
                super::threads_take_turns(&engines::$engine());
            }

            #[test]
            fn density_integrates_to_one() {
                super::density_integrates_to_one(&engines::$engine());
            }

            #[test]
            fn samples_follow_the_density() {
                super::samples_follow_the_density(&engines::$engine());
            }
        }
    };
}

contract!(cpu, 1..=33);
contract!(gpu, 1..=33);

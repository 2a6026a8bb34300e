//! The contract of conditional models, `cinn` and `hint`, on every engine: agreement with the float64 oracle, round
//! trip, triangle, consistent densities, batch = loop of single observations.

use crate::common::compare::{Tolerance, assert_close};
use crate::common::engines;
use crate::common::fixture::write_model;
use crate::common::jacobian::{block_dependence, log_abs_det};
use crate::common::oracle::{ConditionOn, Kind, Mixing, Model, Scale, Spec, SplineSettings, Transform, is_trained};
use crate::common::random::{Rng, random_model, random_rows};
use crate::common::whole::assert_close_on_the_whole;
use hintflow::flow::{Gradients, Memory};
use hintflow::{Engine, Error, Flow};

/// Of values against the oracle, relative to the largest.
const VALUES: Tolerance = Tolerance::relative(1e-4).floor(1e-6);
/// Of gradients against the oracle, relative to the largest of each tensor.
const GRADIENTS: Tolerance = Tolerance::relative(1e-3).floor(1e-5);
/// Distance of the test rows from any kink of a ReLU, where float32 and float64 may take different sides.
const MARGIN: f64 = 1e-5;

fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn f64s(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&v| v.into()).collect()
}

fn load(model: &Model, engine: &Engine) -> Flow {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    Flow::load(&path, engine).expect("model")
}

/// Rows of one part and of the other, side by side.
fn side_by_side(left: &[f64], right: &[f64], rows: usize) -> Vec<f64> {
    let [l, r] = [left.len() / rows, right.len() / rows];
    (0..rows).flat_map(|i| [&left[i * l..(i + 1) * l], &right[i * r..(i + 1) * r]].concat()).collect()
}

/// Shapes of the contract: N and C from 1, every depth that differs, mixings and scales by turns.
fn specs(kind: Kind, condition_on: ConditionOn) -> Vec<Spec> {
    let sizes = [(1, 1), (1, 4), (2, 1), (3, 2), (4, 1), (5, 3), (7, 4), (8, 9), (20, 2), (33, 5), (2, 33)];
    let mut specs = Vec::new();
    for (i, (dim, cond_dim)) in sizes.into_iter().enumerate() {
        for depth in [0, 1, 99] {
            let mixing = [Mixing::Householder, Mixing::Fixed, Mixing::None][(i + depth) % 3];
            let scale = if (i + depth) % 5 == 0 { Scale::Exp } else { Scale::default() };
            let (width, mix_first) = (5 + 4 * (i % 4), i % 2 == 0);
            let spec = Spec { kind, depth, condition_on, mixing, scale, width, mix_first, ..Spec::flow(dim) };
            specs.push(Spec { cond_dim, ..spec });
        }
    }
    // Widths at which engines work in another way.
    for (dim, cond_dim, width) in [(3, 2, 41), (6, 5, 152), (2, 7, 201), (9, 1, 81)] {
        specs.push(Spec { kind, cond_dim, width, condition_on, blocks: 3, ..Spec::flow(dim) });
    }
    specs
}

fn check_models(kind: Kind, condition_on: ConditionOn, engine: &Engine) {
    for (i, spec) in specs(kind, condition_on).into_iter().enumerate() {
        // Of wide networks more rows than pass their layers together.
        check_model(&spec, if i % 7 == 3 || spec.width > 40 { 200 } else { 21 }, engine);
    }
}

fn check_model(spec: &Spec, rows: usize, engine: &Engine) {
    let what = |part: &str| format!("{part} of {spec:?}");
    let model = random_model(7, spec.clone());
    let flow = load(&model, engine);
    let (x64, y64) = random_rows(&model, 11, rows, MARGIN);
    let (x, y) = (f32s(&x64), f32s(&y64));
    let given = flow.given(&y).expect("observations");

    let want = model.forward(&x64, &y64);
    let latent = f32s(&Rng::new(3).normals(rows * spec.dim, 1.0));
    let decoded = given.decode(&latent).expect("decode");
    assert_close(&what("decode"), &decoded, &model.inverse(&f64s(&latent), &y64), Tolerance::relative(3e-4));
    let encoded = given.encode(&x).expect("encode");
    assert_close(&what("round trip"), &given.decode(&encoded.z).expect("decode"), &x64, Tolerance::relative(3e-4));
    let density = given.log_prob(&x).expect("density");
    assert_close(&what("density"), &density, &model.log_prob(&x64, &y64), VALUES);

    if spec.kind == Kind::Cinn {
        assert_close(&what("z"), &encoded.z, &want.z, VALUES);
        assert_close(&what("log-det"), &encoded.log_det, &want.log_det, VALUES);
        assert!(flow.joint().is_err());
    } else {
        let lanes = flow.joint().unwrap().encode(&y, &x).expect("both lanes");
        assert_eq!((&lanes.x.z, &lanes.x.log_det), (&encoded.z, &encoded.log_det), "{}", what("one x lane"));
        let z = side_by_side(&f64s(&lanes.y.z), &f64s(&lanes.x.z), rows);
        assert_close(&what("z"), &z, &want.z, VALUES);
        let log_det = side_by_side(&f64s(&lanes.y.log_det), &f64s(&lanes.x.log_det), rows);
        assert_close(&what("log-det"), &log_det, &want.log_det, VALUES);
        let back = flow.joint().unwrap().decode(&lanes.y.z, &lanes.x.z).expect("decode");
        assert_close(&what("y round trip"), &back.y, &y64, Tolerance::relative(3e-4));
        assert_close(&what("x round trip"), &back.x, &x64, Tolerance::relative(5e-4));
        let evidence = flow.joint().unwrap().log_evidence(&y).expect("evidence");
        assert_close(&what("evidence"), &evidence, &model.evidence_log_prob(&y64), VALUES);
        let joint = flow.joint().unwrap().log_prob(&y, &x).expect("joint density");
        assert_close(&what("joint density"), &joint, &model.joint_log_prob(&x64, &y64), VALUES);
        let sum: Vec<f64> = evidence.iter().zip(&density).map(|(&e, &p)| f64::from(e) + f64::from(p)).collect();
        assert_close(&what("sum of log-densities"), &joint, &sum, Tolerance::relative(1e-6).floor(1e-6));
    }
    check_gradients(spec, &model, flow, [&x64, &y64]);
}

/// Backward with arbitrary gradients coming in, as in the middle of a larger graph, stored and reversible.
fn check_gradients(spec: &Spec, model: &Model, flow: Flow, [x64, y64]: [&[f64]; 2]) {
    let what = |part: &str| format!("{part} of {spec:?}");
    let rows = x64.len() / spec.dim;
    let mut rng = Rng::new(5);
    let (d_z, d_log_det) = (rng.normals(rows * spec.latent_dim(), 1.7), rng.normals(rows, 2.3));
    // Of two lanes, the engine has one coefficient for the sum.
    let of_lanes: Vec<f64> = d_log_det.iter().flat_map(|&d| vec![d; spec.lanes()]).collect();
    let want = model.vjp(x64, y64, &d_z, &of_lanes);
    let (x, y) = (f32s(x64), f32s(y64));
    let vjp = |flow: &Flow| flow.given(&y).unwrap().vjp(&x, &f32s(&d_z), &f32s(&d_log_det)).expect("vjp");
    let stored = vjp(&flow);
    let (loss, of_loss) = flow.given(&y).unwrap().loss_gradients(&x).expect("gradients");
    assert_close(&what("loss"), &[loss], &[model.loss(x64, y64)], VALUES);
    let reversible = vjp(&flow.with_memory(Memory::Reversible));
    for (got, want) in [(&stored, &want), (&reversible, &want), (&of_loss, &model.loss_gradients(x64, y64))] {
        assert_close(&what("d_x"), &got.x, &want.x, GRADIENTS);
        match spec.kind {
            Kind::Hint => assert_close(&what("d_y"), &got.y, &want.y, GRADIENTS),
            _ => assert!(got.y.is_empty()),
        }
        for (name, gradient) in &got.tensors {
            assert_close(&what(name), gradient, &want.params[name].data, GRADIENTS);
        }
        let trained = want.params.keys().filter(|name| is_trained(name)).count();
        assert_eq!(got.tensors.len(), trained, "{}", what("tensors with a gradient"));
    }
    let all = |g: &Gradients| g.tensors.iter().flat_map(|(_, g)| f64s(g)).collect::<Vec<_>>();
    assert_close_on_the_whole(&what("reversible"), &all(&reversible), &all(&stored), 1e-5);
}

/// The Jacobian of one unmixed block over [y, x], row by row from the engine's own backward pass: its zeros are those
/// of the recursion, y never depends on x, and its determinant is what the engine says.
fn joint_jacobian_is_triangular(condition_on: ConditionOn, engine: &Engine) {
    for (dim, cond_dim) in [(1, 1), (2, 1), (1, 5), (5, 2), (7, 4), (4, 8), (20, 4)] {
        for depth in [0, 1, 99] {
            let spec =
                Spec { depth, condition_on, mixing: Mixing::None, blocks: 1, width: 96, ..Spec::hint(dim, cond_dim) };
            let model = random_model(3, spec.clone());
            let flow = load(&model, engine);
            let (x, y) = random_rows(&model, 2, 1, MARGIN);
            let n = dim + cond_dim;
            let mut seeds = vec![0.0; n * n];
            (0..n).for_each(|i| seeds[i * n + i] = 1.0);
            // One observation and one row for each row of the Jacobian.
            let (x, y) = (f32s(&x), f32s(&y));
            let rows = flow.given(&y).unwrap().vjp(&x.repeat(n), &seeds, &vec![0.0; n]).expect("vjp");
            let jacobian = side_by_side(&f64s(&rows.y), &f64s(&rows.x), n);
            for (at, may) in block_dependence(&spec).into_iter().enumerate() {
                let (i, j, entry) = (at / n, at % n, jacobian[at]);
                assert!(may == (entry != 0.0), "d z_{i} / d [y, x]_{j} = {entry}: {spec:?}");
            }
            let lanes = flow.joint().unwrap().encode(&y, &x).expect("encode");
            let log_det = f64::from(lanes.y.log_det[0]) + f64::from(lanes.x.log_det[0]);
            let tolerance = Tolerance::relative(1e-4).floor(1e-4);
            assert_close(&format!("log-det of {spec:?}"), &[log_det], &[log_abs_det(&jacobian, n)], tolerance);
        }
    }
}

/// Samples of an observation do not know of the others, nor how many are drawn: a list of observations is a loop over
/// single ones, bit for bit.
fn batch_is_a_loop_of_single_observations(engine: &Engine) {
    for (kind, condition_on) in
        [(Kind::Cinn, ConditionOn::Output), (Kind::Hint, ConditionOn::Input), (Kind::Hint, ConditionOn::Output)]
    {
        let (dim, cond_dim, n) = (5, 3, 70);
        let model = random_model(1, Spec { kind, condition_on, ..Spec::hint(dim, cond_dim) });
        let flow = load(&model, engine);
        let y = f32s(&Rng::new(8).normals(6 * cond_dim, 1.0));
        let given = flow.given(&y).unwrap();
        let all = given.sample(n, 4).expect("samples");
        assert_eq!(all.len(), 6 * n * dim);
        let per_observation = n * dim;
        for (k, (own, y)) in all.chunks(per_observation).zip(y.chunks(cond_dim)).enumerate() {
            let one = flow.given(y).unwrap().numbered_from(k as u32);
            assert_eq!(one.sample(n, 4).expect("samples"), own, "observation {k} alone");
            assert_eq!(one.sample(7, 4).expect("samples"), own[..7 * dim], "a prefix of observation {k}");
            // Each row alone, too.
            let x = given.sample_rows(n, 4, k * n + 3, 1).expect("a sample");
            assert_eq!(x, own[3 * dim..4 * dim]);
            let one = flow.given(y).unwrap();
            let density = one.log_prob(own).expect("densities");
            let repeated = y.repeat(n);
            assert_eq!(density, flow.given(&repeated).unwrap().log_prob(own).unwrap(), "one observation for all rows");
            assert_eq!(density[5], one.log_prob(&own[5 * dim..6 * dim]).unwrap()[0]);
            // z of the samples is standard normal.
            let z = one.encode(own).expect("encode").z;
            let decoded = one.decode(&z).expect("decode");
            assert_eq!(decoded, flow.given(&repeated).unwrap().decode(&z).unwrap(), "decoded one by one");
            let square = z.iter().map(|v| v * v).sum::<f32>() / z.len() as f32;
            assert!((square - 1.0).abs() < 5.0 * (2.0 / z.len() as f32).sqrt(), "{square}");
        }
        assert_eq!(given.sample_rows(n, 4, 100, 150).expect("a piece"), all[100 * dim..250 * dim]);
        assert!(given.sample_rows(n, 4, 6 * n, 1).is_err());
        let latent = |k: usize| {
            flow.given(&y[k * cond_dim..][..cond_dim]).unwrap().encode(&all[k * per_observation..][..dim]).unwrap().z
        };
        let distance: f32 = latent(0).iter().zip(latent(1)).map(|(a, b)| (a - b).abs()).sum();
        assert!(distance > 1e-3, "two observations have the same random numbers");
    }
}

/// The densities that samples come with are those that they have.
fn samples_come_with_their_densities(engine: &Engine) {
    let spline = Transform::Spline(SplineSettings { bins: 8, half_width: 5.0, min_slope: 1e-3 });
    for (kind, condition_on) in [
        (Kind::Flow, ConditionOn::Input),
        (Kind::Flow, ConditionOn::Output),
        (Kind::Cinn, ConditionOn::Input),
        (Kind::Hint, ConditionOn::Input),
        (Kind::Hint, ConditionOn::Output),
    ] {
        for coupling in [Spec::flow(1).coupling, spline] {
            let (dim, n) = (5, 40);
            let base = if kind == Kind::Flow { Spec::flow(dim) } else { Spec::hint(dim, 3) };
            let model = random_model(3, Spec { kind, condition_on, coupling, ..base });
            let flow = load(&model, engine);
            let y = if kind == Kind::Flow { Vec::new() } else { f32s(&Rng::new(8).normals(4 * 3, 1.0)) };
            let given = flow.given(&y).unwrap();
            for n in [1, n] {
                let (x, log_prob) = given.sample_and_log_prob(n, 7).expect("samples");
                assert_eq!(x, given.sample(n, 7).expect("samples"), "{kind:?}, {coupling:?}");
                let each: Vec<f32> = y.chunks(3).flat_map(|y| y.repeat(n)).collect();
                let want = f64s(&flow.given(&each).unwrap().log_prob(&x).expect("densities"));
                let what = format!("densities of samples, {kind:?}, {condition_on:?}, {coupling:?}");
                assert_close(&what, &f64s(&log_prob), &want, Tolerance::relative(1e-4).floor(1.0));
            }
        }
    }
}

/// Joint samples: latents are standard normal in both lanes, and a piece is a piece of the whole.
fn joint_samples_follow_the_density(engine: &Engine) {
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        let model = random_model(4, Spec { condition_on, ..Spec::hint(3, 2) });
        let flow = load(&model, engine);
        let n = 20_000;
        let samples = flow.joint().unwrap().sample(n, 42).expect("samples");
        let piece = flow.joint().unwrap().sample_from(5, 42, 1000).expect("samples");
        assert_eq!((&piece.y[..], &piece.x[..]), (&samples.y[2000..2010], &samples.x[3000..3015]));
        let lanes = flow.joint().unwrap().encode(&samples.y, &samples.x).expect("encode");
        let z = side_by_side(&f64s(&lanes.y.z), &f64s(&lanes.x.z), n);
        let bound = 5.0 / (n as f64).sqrt();
        for a in 0..5 {
            for b in 0..=a {
                let product = z.chunks(5).map(|z| z[a] * z[b]).sum::<f64>() / n as f64;
                let want = f64::from(u8::from(a == b));
                assert!((product - want).abs() <= 2.0 * bound, "columns {a} and {b}: {product}");
            }
        }
    }
}

/// The sum of the posterior density over a fine grid is 1 for any observation, and that of the evidence over y.
fn densities_integrate_to_one(engine: &Engine) {
    let side: Vec<f32> = (0..2401).map(|i| -12.0 + 0.01 * i as f32).collect();
    for (kind, condition_on) in
        [(Kind::Cinn, ConditionOn::Input), (Kind::Hint, ConditionOn::Input), (Kind::Hint, ConditionOn::Output)]
    {
        let model = random_model(9, Spec { kind, condition_on, ..Spec::hint(1, 1) });
        let flow = load(&model, engine);
        let integral = |density: Vec<f32>| density.iter().map(|&d| f64::from(d).exp() * 0.01).sum::<f64>();
        for y in [-1.0, 0.3, 2.0] {
            let sum = integral(flow.given(&[y]).unwrap().log_prob(&side).unwrap());
            assert!((sum - 1.0).abs() <= 2e-3, "{kind:?}, {condition_on:?}, y = {y}: {sum}");
        }
        if kind == Kind::Hint {
            let sum = integral(flow.joint().unwrap().log_evidence(&side).unwrap());
            assert!((sum - 1.0).abs() <= 2e-3, "evidence, {condition_on:?}: {sum}");
        }
    }
}

/// An unconditional flow that is given nothing is the flow itself.
fn nothing_given_changes_nothing(engine: &Engine) {
    let flow = load(&random_model(2, Spec::flow(4)), engine);
    let given = flow.given(&[]).expect("nothing");
    let samples = flow.sample(30, 5).expect("samples");
    assert_eq!((given.observations(), samples.len()), (0, 120));
    assert_eq!(given.sample(30, 5).expect("samples"), samples);
    assert_eq!(given.sample_rows(30, 5, 11, 8).expect("a piece"), samples[44..76]);
    assert_eq!(given.encode(&samples).expect("encode"), flow.encode(&samples).expect("encode"));
    let text = |result: hintflow::Result<Vec<f32>>| result.expect_err("must fail").to_string();
    assert!(text(given.sample_rows(30, 5, 29, 2)).contains("expected 30, got 31"));
}

/// More samples than can be counted, numbered or held are errors.
fn huge_numbers_of_samples_are_refused(engine: &Engine) {
    let error = |result: hintflow::Result<Vec<f32>>| result.expect_err("must fail");
    let hint = load(&random_model(2, Spec::hint(4, 3)), engine);
    let given = hint.given(&[0.0; 6]).expect("two observations");
    for n in [1 << 31, usize::MAX / 2 + 1, usize::MAX] {
        assert!(matches!(error(given.sample(n, 1)), Error::Argument { name, .. } if name == "n"));
        assert!(matches!(error(given.sample_rows(n, 1, 0, 1)), Error::Argument { name, .. } if name == "n"));
    }
    assert!(error(given.sample_rows(5, 1, usize::MAX, 2)).to_string().contains("expected 10"));
    assert!(error(given.sample_rows(5, 1, 2, usize::MAX)).to_string().contains("expected 10"));
    let last = hint.given(&[0.0; 6]).unwrap().numbered_from(u32::MAX);
    assert!(last.sample_rows(5, 1, 0, 5).is_ok());
    assert!(error(last.sample(5, 1)).to_string().contains("4294967295"));
    let flow = load(&random_model(2, Spec::flow(4)), engine);
    for n in [usize::MAX, usize::MAX / 4, usize::MAX / 16] {
        assert!(matches!(error(flow.sample(n, 1)), Error::OutOfMemory { .. }));
        let lanes = hint.joint().unwrap().sample(n, 1);
        assert!(matches!(lanes, Err(Error::OutOfMemory { .. })));
    }
}

/// What does not fit is an error that says so.
fn misuse_is_told(engine: &Engine) {
    let text = |result: hintflow::Result<Vec<f32>>| result.expect_err("must fail").to_string();
    let hint = load(&random_model(2, Spec::hint(4, 3)), engine);
    assert!(matches!(hint.log_prob(&[0.0; 4]), Err(Error::WrongKind { found: "hint", .. })));
    assert!(text(hint.sample(1, 1)).contains("Flow::given"));
    let given = |y: &[f32], x: &[f32]| hint.given(y).and_then(|given| given.log_prob(x));
    assert!(text(given(&[0.0; 4], &[0.0; 4])).contains("whole rows of 3"));
    assert!(text(given(&[], &[])).contains("observations"));
    for value in [f32::NAN, f32::INFINITY] {
        assert!(matches!(hint.given(&[0.0, value, 0.0]), Err(Error::NotFinite { .. })));
    }
    assert!(matches!(Engine::cpu_with_threads(1_000_000), Err(Error::Argument { .. })));
    assert!(text(given(&[0.0; 6], &[0.0; 12])).contains("one for each observation: expected 2, got 3"));
    assert!(text(hint.joint().unwrap().log_prob(&[0.0; 3], &[0.0; 8])).contains("expected 1, got 2"));
    let flow = load(&random_model(2, Spec::flow(4)), engine);
    assert!(matches!(flow.given(&[0.0; 3]), Err(Error::WrongKind { found: "flow", .. })));
    assert!(matches!(flow.joint(), Err(Error::WrongKind { found: "flow", .. })));
}

/// What is no number stays none on the way through splines, and the last numbers of samples exist too.
#[test]
fn no_input_panics() {
    let splines = Transform::Spline(SplineSettings { bins: 8, half_width: 5.0, min_slope: 1e-3 });
    let spec = Spec { coupling: splines, ..Spec::flow(3) };
    let flow = load(&random_model(2, spec), &engines::cpu());
    assert!(matches!(flow.decode(&[f32::NAN; 3]), Err(Error::NotFinite { .. })));
    assert_eq!(flow.decode(&[f32::MAX; 3]).expect("rows").len(), 3);
    assert_eq!(flow.sample_from(3, 1, u64::MAX).expect("samples").len(), 9);
}

macro_rules! contract {
    ($engine:ident) => {
        mod $engine {
            use super::*;

            #[test]
            fn cinn_agrees_with_the_oracle_conditioned_on_input() {
                check_models(Kind::Cinn, ConditionOn::Input, &engines::$engine());
            }

            #[test]
            fn cinn_agrees_with_the_oracle_conditioned_on_output() {
                check_models(Kind::Cinn, ConditionOn::Output, &engines::$engine());
            }

            #[test]
            fn hint_agrees_with_the_oracle_conditioned_on_input() {
                check_models(Kind::Hint, ConditionOn::Input, &engines::$engine());
            }

            #[test]
            fn hint_agrees_with_the_oracle_conditioned_on_output() {
                check_models(Kind::Hint, ConditionOn::Output, &engines::$engine());
            }

            #[test]
            fn joint_jacobian_is_triangular() {
                for condition_on in [ConditionOn::Input, ConditionOn::Output] {
                    super::joint_jacobian_is_triangular(condition_on, &engines::$engine());
                }
            }

            #[test]
            fn batch_is_a_loop_of_single_observations() {
                super::batch_is_a_loop_of_single_observations(&engines::$engine());
            }

            #[test]
            fn samples_come_with_their_densities() {
                super::samples_come_with_their_densities(&engines::$engine());
            }

            #[test]
            fn joint_samples_follow_the_density() {
                super::joint_samples_follow_the_density(&engines::$engine());
            }

            #[test]
            fn densities_integrate_to_one() {
                super::densities_integrate_to_one(&engines::$engine());
            }

            #[test]
            fn nothing_given_changes_nothing() {
                super::nothing_given_changes_nothing(&engines::$engine());
            }

            #[test]
            fn huge_numbers_of_samples_are_refused() {
                super::huge_numbers_of_samples_are_refused(&engines::$engine());
            }

            #[test]
            fn misuse_is_told() {
                super::misuse_is_told(&engines::$engine());
            }
        }
    };
}

contract!(cpu);
contract!(gpu);

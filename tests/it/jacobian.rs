//! Jacobians of whole models against finite differences of the float64 oracle, for every kind of model; and the zeros
//! that tell recursive couplings from plain ones.

use crate::common::compare::{Tolerance, assert_close};
use crate::common::engines;
use crate::common::fixture::write_model;
use crate::common::jacobian::{block_dependence, numerical_jacobian};
use crate::common::oracle::{ConditionOn, Kind, Mixing, Model, Spec};
use crate::common::random::{random_model, random_rows};
use hintflow::flow::Conditional;
use hintflow::{Error, Flow};

/// Of entries against the oracle, relative to the largest of the Jacobian.
const ENTRIES: Tolerance = Tolerance::relative(1e-3).floor(1e-5);

fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn load(model: &Model) -> Flow {
    let folder = tempfile::tempdir().expect("temporary folder");
    let path = folder.path().join("model.safetensors");
    write_model(&path, model);
    Flow::load(&path, &engines::cpu()).expect("model")
}

/// By central differences: of a `hint` [z_y, z_x] by [y, x], else z by x.
fn by_differences(model: &Model, x: &[f64], y: &[f64]) -> Vec<f64> {
    let step = 1e-6;
    match model.spec.kind {
        Kind::Flow | Kind::Cinn => numerical_jacobian(|x| model.forward(x, y).z, x, step),
        Kind::Hint => {
            let forward = |yx: &[f64]| model.forward(&yx[y.len()..], &yx[..y.len()]).z;
            numerical_jacobian(forward, &[y, x].concat(), step)
        }
    }
}

fn check(spec: Spec) {
    let rows = 5;
    let model = random_model(13, spec.clone());
    // Kinks of ReLUs are farther away than a step.
    let (x, y) = random_rows(&model, 2, rows, 1e-4);
    let flow = load(&model);
    let (y32, n) = (f32s(&y), spec.latent_dim());
    let given: Conditional<'_> = flow.given(&y32).expect("observations");
    let got = given.jacobian(&f32s(&x)).expect("Jacobian");
    assert_eq!(got.len(), rows * n * n);

    let mut mean = vec![0.0; n * n];
    for (row, got) in got.chunks_exact(n * n).enumerate() {
        let part = |values: &[f64]| values[row * values.len() / rows..(row + 1) * values.len() / rows].to_vec();
        let want = by_differences(&model, &part(&x), &part(&y));
        assert_close(&format!("row {row} of {spec:?}"), got, &want, ENTRIES);
        mean.iter_mut().zip(&want).for_each(|(mean, slope)| *mean += slope.abs() / rows as f64);
    }
    let got = given.mean_abs_jacobian(&f32s(&x)).expect("mean");
    assert_close(&format!("mean of {spec:?}"), &got, &mean, ENTRIES);
}

#[test]
fn agrees_with_finite_differences_for_every_kind_of_model() {
    for (i, dim) in [1, 2, 5, 8, 20].into_iter().enumerate() {
        let condition_on = [ConditionOn::Input, ConditionOn::Output][i % 2];
        let depth = [0, 99, 1][i % 3];
        for kind in [Spec::flow(dim), Spec::cinn(dim, 3), Spec::hint(dim, 1 + i)] {
            check(Spec { depth, condition_on, ..kind });
        }
    }
}

#[test]
fn plain_couplings_leave_zeros_that_recursion_fills() {
    let dim = 20;
    let share_of_zeros = |depth| {
        let spec = Spec { depth, mixing: Mixing::None, blocks: 1, width: 96, ..Spec::flow(dim) };
        let model = random_model(3, spec.clone());
        let (x, _) = random_rows(&model, 2, 9, 0.0);
        let mean = load(&model).mean_abs_jacobian(&f32s(&x)).expect("mean");
        for (at, may) in block_dependence(&spec).into_iter().enumerate() {
            assert_eq!(may, mean[at] > 0.0, "entry {} {} at depth {depth}: {}", at / dim, at % dim, mean[at]);
            assert!(may || mean[at] == 0.0);
        }
        mean.iter().filter(|v| **v == 0.0).count()
    };
    // Diagonal and the lower left quarter.
    assert_eq!(share_of_zeros(0), 400 - 20 - 100);
    let dense = share_of_zeros(99);
    assert!((190..=200).contains(&dense), "{dense}");
}

#[test]
fn one_observation_stands_for_all_rows_and_no_rows_have_no_mean() {
    let model = random_model(1, Spec::hint(4, 2));
    let flow = load(&model);
    let (one, x) = ([0.3f32, -0.7], [0.1f32, 0.2, -0.4, 0.9, 1.0, -1.0, 0.5, 0.0]);
    let given = flow.given(&one).expect("observation");
    let twice = [one, one].concat();
    let both = flow.given(&twice).expect("observations").jacobian(&x).expect("Jacobian");
    assert_eq!(given.jacobian(&x).expect("Jacobian"), both);
    assert!(given.jacobian(&[]).expect("Jacobian").is_empty());
    assert!(matches!(given.mean_abs_jacobian(&[]), Err(Error::Shape { .. })));
    assert!(given.jacobian(&x[..7]).is_err());
    assert!(matches!(flow.jacobian(&x), Err(Error::WrongKind { .. })));
}

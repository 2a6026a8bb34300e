//! Trained posteriors against known ones: a linear-Gaussian problem, whose posterior is a formula, and units that
//! change.

use crate::rooms::common::engines;
use hintflow::Flow;
use hintflow::config::{Columns, Config, Given, preset};
use hintflow::data::columns::units::Regression;
use hintflow::data::{Table, Units};
use hintflow::flow::FlowBuilder;
use hintflow::plan::Kind;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::Dataset;

/// y = A x + 0.5 n, x and n standard normal.
const A: [[f64; 2]; 2] = [[1.0, 0.5], [-0.3, 0.8]];
const NOISE: f64 = 0.5;

/// Rows [y, x].
fn simulated(rows: usize) -> Table {
    let mut normals = vec![0.0; rows * 4];
    fill_normals(3, Stream::Data, 0, 0, &mut normals);
    let values = normals.chunks(4).flat_map(|row| {
        let y = [0, 1].map(|i| {
            let clean = A[i][0] * f64::from(row[0]) + A[i][1] * f64::from(row[1]);
            (clean + NOISE * f64::from(row[2 + i])) as f32
        });
        [y[0], y[1], row[0], row[1]]
    });
    let names = ["y1", "y2", "x1", "x2"].map(String::from).to_vec();
    Table::new(names, 4, values.collect()).expect("a table")
}

/// Mean and covariance of x given y: `(A^T A / s^2 + I)^-1`, and that times `A^T y / s^2`.
fn exact(y: [f64; 2]) -> ([f64; 2], [[f64; 2]; 2]) {
    let precision = |i: usize, j: usize| {
        let product = (0..2).map(|k| A[k][i] * A[k][j]).sum::<f64>() / (NOISE * NOISE);
        product + f64::from(u8::from(i == j))
    };
    let [a, b, d] = [precision(0, 0), precision(0, 1), precision(1, 1)];
    let det = a * d - b * b;
    let covariance = [[d / det, -b / det], [-b / det, a / det]];
    let right = [0, 1].map(|i| (0..2).map(|k| A[k][i] * y[k]).sum::<f64>() / (NOISE * NOISE));
    (covariance.map(|row| row[0] * right[0] + row[1] * right[1]), covariance)
}

fn trained(kind: Kind) -> Flow {
    let mut config: Config = preset::for_tables();
    config.model.kind = kind;
    (config.model.blocks, config.model.width) = (3, Some(32));
    config.data.given = Some(Given::Columns(Columns(vec!["y1".into(), "y2".into()])));
    (config.train.epochs, config.train.batch) = (25, Some(100));
    let data = Dataset::from_tables(&config, "linear", simulated(20_000), None).expect("data");
    let spec = config.model.spec(2, 2).expect("a model");
    let flow = FlowBuilder::from_spec(spec)
        .seed(1)
        .units(data.x.clone())
        .units_of_conditions(data.y.clone())
        .build(&engines::cpu())
        .expect("a flow");
    let mut trainer = crate::rooms::begin(&flow, &config, &data).expect("a trainer");
    while !trainer.is_done() {
        trainer.step().expect("a step");
        if trainer.at_epoch_end() {
            trainer.finish_epoch().expect("an epoch");
        }
    }
    trainer.finish().expect("the best epoch");
    flow
}

/// Errors are in deviations of the posterior; 20,000 samples alone leave 0.007, and 20,000 rows of training up to 0.08 (of
/// 10,000 rows four seeds left up to 0.17, and which of them passed was a matter of the processor).
fn posterior_is_the_analytic_one(kind: Kind) {
    let flow = trained(kind);
    let n = 20_000;
    for y in [[0.0, 0.0], [1.0, -0.5], [-1.2, 1.0]] {
        let (mean, covariance) = exact(y);
        let samples = flow.given(&y.map(|v| v as f32)).expect("observed").sample(n, 5).expect("samples");
        let average = |f: &dyn Fn(&[f32]) -> f64| samples.chunks(2).map(f).sum::<f64>() / n as f64;
        for i in 0..2 {
            let got = average(&|x| x[i].into());
            let error = (got - mean[i]).abs() / covariance[i][i].sqrt();
            assert!(error < 0.15, "{kind:?}, y = {y:?}: mean of x{i} is {got}, exact {}", mean[i]);
            for j in 0..2 {
                let got = average(&|x| (f64::from(x[i]) - mean[i]) * (f64::from(x[j]) - mean[j]));
                let error = (got - covariance[i][j]).abs() / (covariance[i][i] * covariance[j][j]).sqrt();
                assert!(error < 0.15, "{kind:?}, y = {y:?}: covariance {i}{j} is {got}, exact {}", covariance[i][j]);
            }
        }
    }
}

#[test]
fn hint_learns_a_gaussian_posterior() {
    posterior_is_the_analytic_one(Kind::Hint);
}

#[test]
fn cinn_learns_a_gaussian_posterior() {
    posterior_is_the_analytic_one(Kind::Cinn);
}

/// The same model for columns in other units has the density of the units: it changes by the Jacobian alone.
#[test]
fn other_units_change_the_density_by_their_jacobian() {
    let table = simulated(500);
    let part = |columns: [&str; 2], coefficient: f32| -> Vec<f32> {
        table.select(&columns).expect("columns").values().iter().map(|v| v * coefficient).collect()
    };
    let model = |of_x: f32, of_y: f32| {
        let units = |rows: &[f32]| Units::fit(vec![], vec![], 2, true, rows).expect("units");
        Flow::hint_builder(2, 2)
            .init_sigma(0.05)
            .seed(4)
            .units(units(&part(["x1", "x2"], of_x)))
            .units_of_conditions(units(&part(["y1", "y2"], of_y)))
            .build(&engines::cpu())
            .expect("a flow")
    };
    // Powers of two: the standardised values are the same to the last bit.
    let (of_x, of_y) = (1024.0, 0.125);
    let (flow, scaled) = (model(1.0, 1.0), model(of_x, of_y));
    let (x, y) = (part(["x1", "x2"], 1.0), part(["y1", "y2"], 1.0));
    let (x2, y2) = (part(["x1", "x2"], of_x), part(["y1", "y2"], of_y));
    let [jacobian_x, jacobian_y] = [of_x, of_y].map(|coefficient| 2.0 * f64::from(coefficient).ln());
    let same = |what: &str, before: Vec<f32>, after: Vec<f32>, jacobian: f64| {
        assert_eq!((before.len(), after.len()), (500, 500), "{what}");
        for (before, after) in before.into_iter().zip(after) {
            let change = f64::from(before) - f64::from(after);
            assert!(
                (change - jacobian).abs() < 1e-4 + 1e-6 * f64::from(before.abs()),
                "{what}: {before} became {after}, by {jacobian} expected"
            );
        }
    };
    let posterior = |flow: &Flow, y: &[f32], x: &[f32]| flow.given(y).unwrap().log_prob(x).unwrap();
    same("posterior", posterior(&flow, &y, &x), posterior(&scaled, &y2, &x2), jacobian_x);
    same(
        "evidence",
        flow.joint().unwrap().log_evidence(&y).unwrap(),
        scaled.joint().unwrap().log_evidence(&y2).unwrap(),
        jacobian_y,
    );
    let joint = [flow.joint().unwrap().log_prob(&y, &x).unwrap(), scaled.joint().unwrap().log_prob(&y2, &x2).unwrap()];
    let [before, after] = joint;
    same("joint", before, after, jacobian_x + jacobian_y);
    let [samples, scaled_samples] =
        [(&flow, &y[..2]), (&scaled, &y2[..2])].map(|(flow, y)| flow.given(y).unwrap().sample(50, 1).unwrap());
    assert_eq!((samples.len(), scaled_samples.len()), (100, 100));
    assert!(samples.iter().zip(&scaled_samples).all(|(a, b)| (a * of_x - b).abs() <= 1e-4 * b.abs().max(1.0)));
}

/// A model with a regression in its units is the one without, of x less what the regression says: the same densities and
/// latents, samples moved by it, and gradients with respect to y that go through it.
#[test]
fn a_regression_moves_x_and_nothing_else() {
    let table = simulated(60);
    let part = |columns: [&str; 2]| table.select(&columns).expect("columns").into_values();
    let (x, y) = (part(["x1", "x2"]), part(["y1", "y2"]));
    let of_y = Units::fit(vec![], vec![], 2, true, &y).expect("units");
    let of_x = Units::fit(vec![], vec![], 2, true, &x).expect("units");
    let coefficients = [[0.7, -0.4], [0.0, 1.5]];
    let regression: Regression =
        serde_json::from_value(serde_json::json!({ "coefficients": coefficients })).expect("a regression");
    for kind in [Kind::Hint, Kind::Cinn] {
        let model = |units: Units| {
            let builder = if kind == Kind::Hint { Flow::hint_builder(2, 2) } else { Flow::cinn_builder(2, 2) };
            let builder = builder.init_sigma(0.05).seed(4).units(units).units_of_conditions(of_y.clone());
            builder.build(&engines::cpu()).expect("a flow")
        };
        let (plain, moved) =
            (model(of_x.clone()), model(Units { regression: Some(regression.clone()), ..of_x.clone() }));
        let scale = &of_x.standardize.as_ref().expect("deviations").scale;
        let less: Vec<f32> = {
            let inner = of_y.inner(&y).expect("inside");
            let shift =
                |row: usize, j: usize| (0..2).map(|i| coefficients[j][i] * f64::from(inner[2 * row + i])).sum::<f64>();
            x.iter().enumerate().map(|(k, &x)| (f64::from(x) - scale[k % 2] * shift(k / 2, k % 2)) as f32).collect()
        };
        let close = |what: &str, ours: &[f32], theirs: &[f32]| {
            assert_eq!(ours.len(), theirs.len(), "{what}");
            for (a, b) in ours.iter().zip(theirs) {
                assert!((a - b).abs() <= 2e-4 * b.abs().max(1.0), "{kind:?}, {what}: {a}, expected {b}");
            }
        };
        let (ours, theirs) = (moved.given(&y).unwrap(), plain.given(&y).unwrap());
        let (encoded, expected) = (ours.encode(&x).unwrap(), theirs.encode(&less).unwrap());
        close("z", &encoded.z, &expected.z);
        close("log-determinants", &encoded.log_det, &expected.log_det);
        close("decoded", &ours.decode(&encoded.z).unwrap(), &x);
        let shifts: Vec<f32> = x.iter().zip(&less).map(|(x, less)| x - less).collect();
        let drawn = theirs.sample(1, 9).unwrap();
        let expected: Vec<f32> = drawn.iter().zip(&shifts).map(|(x, shift)| x + shift).collect();
        close("samples", &ours.sample(1, 9).unwrap(), &expected);
        if kind == Kind::Hint {
            let lanes = moved.joint().unwrap().sample(40, 3).unwrap();
            let z = moved.joint().unwrap().encode(&lanes.y, &lanes.x).unwrap();
            let back = moved.joint().unwrap().decode(&z.y.z, &z.x.z).unwrap();
            close("joint samples there and back", &[back.y, back.x].concat(), &[lanes.y, lanes.x].concat());
            let gradients = ours.loss_gradients(&x).unwrap().1;
            // The loss is the mean over the rows, in the units of the networks, of which the Jacobian takes no part.
            let loss = |y: &[f32]| moved.given(y).unwrap().loss_gradients(&x).unwrap().0;
            for (k, &gradient) in gradients.y.iter().enumerate().take(12) {
                let at = |by: f32| {
                    let mut y = y.clone();
                    y[k] += by;
                    f64::from(loss(&y))
                };
                let slope = 60.0 * (at(1e-2) - at(-1e-2)) / 2e-2;
                let got = 60.0 * f64::from(gradient);
                assert!((slope - got).abs() < 2e-2 * (1.0 + got.abs()), "y{k}: {got}, by differences {slope}");
            }
        }
    }
}

/// The posterior is Gaussian, its mean linear in y: with the regression a short training leaves next to nothing to learn.
#[test]
fn a_linear_posterior_costs_few_nats() {
    let flow = trained(Kind::Hint);
    assert!(flow.units().regression.is_some());
    let table = simulated(22_000);
    let (mut sum, mut rows) = (0.0, 0.0);
    let (mut x, mut y, mut exactly) = (Vec::new(), Vec::new(), Vec::new());
    // None that it was trained on.
    for row in table.values().chunks(4).skip(20_000) {
        let ([m0, m1], [[a, b], [_, d]]) = exact([row[0].into(), row[1].into()]);
        let (u, v, det) = (f64::from(row[2]) - m0, f64::from(row[3]) - m1, a * d - b * b);
        let square = (d * u * u - 2.0 * b * u * v + a * v * v) / det;
        exactly.push(-0.5 * square - 0.5 * det.ln() - std::f64::consts::TAU.ln());
        y.extend_from_slice(&row[..2]);
        x.extend_from_slice(&row[2..]);
    }
    for (log_prob, exactly) in flow.given(&y).unwrap().log_prob(&x).unwrap().iter().zip(exactly) {
        sum += exactly - f64::from(*log_prob);
        rows += 1.0;
    }
    let short = sum / rows;
    assert!(short < 0.01, "{short} nats short of the exact density");
}

//! Filters against the Kalman filter, which knows the posterior of a linear-Gaussian system.

mod kalman;

use hintflow::Engine;
use hintflow::filter::{Filter, HintSettings, Method, RowRng, StateSpace, System};
use kalman::{Gaussian, Linear};

/// A damped rotation that is observed in one direction only: two unknowns, and each observation tells of both.
fn linear() -> Linear {
    Linear {
        start: Gaussian { mean: [1.0, -0.5], covariance: [[0.8, 0.3], [0.3, 0.5]] },
        motion: [[0.9, -0.35], [0.3, 0.85]],
        process: 0.3,
        direction: [1.0, 0.4],
        noise: 0.25,
    }
}

/// The system as its simulator.
fn simulator(linear: Linear) -> impl System {
    let Linear { start, motion, process, direction, noise } = linear;
    // Cholesky of the first covariance.
    let [[a, b], [_, d]] = start.covariance;
    let l11 = a.sqrt();
    let (l21, l22) = (b / l11, (d - b * b / a).sqrt());
    let seen = move |x: &[f32]| direction[0] * f64::from(x[0]) + direction[1] * f64::from(x[1]);
    StateSpace::new(
        (2, 1),
        move |rng: &mut RowRng, x: &mut [f32]| {
            let (u, v) = (rng.normal(), rng.normal());
            x[0] = (start.mean[0] + l11 * u) as f32;
            x[1] = (start.mean[1] + l21 * u + l22 * v) as f32;
        },
        move |_, x: &[f32], rng: &mut RowRng, next: &mut [f32]| {
            for (next, row) in next.iter_mut().zip(motion) {
                let mean = row[0] * f64::from(x[0]) + row[1] * f64::from(x[1]);
                *next = (mean + process * rng.normal()) as f32;
            }
        },
        move |_, x: &[f32], rng: &mut RowRng, y: &mut [f32]| y[0] = (seen(x) + noise * rng.normal()) as f32,
    )
    .likelihood(move |_, x, y| {
        let z = (f64::from(y[0]) - seen(x)) / noise;
        -0.5 * z * z - noise.ln() - 0.5 * std::f64::consts::TAU.ln()
    })
    .names(["position", "velocity"])
}

const OBSERVED: [f64; 6] = [1.1, 0.6, -0.4, -0.2, 0.9, 0.3];

/// Mean and covariance of rows of two columns.
fn moments(states: &[f32]) -> Gaussian {
    let rows = (states.len() / 2) as f64;
    let wide = |row: &[f32]| [f64::from(row[0]), f64::from(row[1])];
    let mut mean = [0.0; 2];
    states.chunks_exact(2).map(wide).for_each(|x| (0..2).for_each(|i| mean[i] += x[i] / rows));
    let mut covariance = [[0.0; 2]; 2];
    for x in states.chunks_exact(2).map(wide) {
        (0..2).for_each(|i| (0..2).for_each(|j| covariance[i][j] += (x[i] - mean[i]) * (x[j] - mean[j]) / rows));
    }
    Gaussian { mean, covariance }
}

/// Furthest mean from the truth and furthest covariance, in units of the true deviations, and furthest log-evidence. Of
/// particles in five standard errors: of so many as the weights of each step are worth, and errors of all steps add up at
/// most.
fn distances(method: Method, seed: u64) -> [f64; 3] {
    let system = simulator(linear());
    let engine = Engine::cpu().unwrap();
    let mut filter = Filter::new(&system, method, &engine, seed).unwrap();
    let mut truth = linear().start;
    let (mut worst, mut variance) = ([0.0f64; 3], 0.0);
    for (number, observed) in (1..).zip(OBSERVED) {
        let step = filter.step(&[observed as f32]).unwrap();
        variance += step.effective.map_or(0.0, f64::recip);
        let error = if variance > 0.0 { 5.0 * variance.sqrt() } else { 1.0 };
        let evidence;
        (truth, evidence) = linear().step(truth, observed);
        let found = moments(filter.states());
        let unit = |i: usize| truth.covariance[i][i].sqrt();
        // A NaN is worse than anything.
        let mut see = |which: usize, distance: f64| {
            worst[which] = if distance.is_nan() { f64::INFINITY } else { worst[which].max(distance) };
        };
        for i in 0..2 {
            see(0, (found.mean[i] - truth.mean[i]).abs() / unit(i) / error);
            for j in 0..2 {
                let apart = (found.covariance[i][j] - truth.covariance[i][j]).abs() / (unit(i) * unit(j));
                see(1, apart / error);
            }
        }
        see(2, (step.log_evidence.unwrap() - evidence).abs() / error);
        assert_eq!(step.step, number);
    }
    worst
}

#[test]
fn particles_agree_with_the_kalman_filter() {
    for seed in [3, 4] {
        let [mean, covariance, evidence] = distances(Method::particle(200_000), seed);
        assert!(mean < 1.0 && covariance < 2f64.sqrt() && evidence < 1.0, "{mean} {covariance} {evidence}");
    }
}

#[test]
fn the_ensemble_kalman_filter_is_exact_for_linear_systems() {
    let [mean, covariance, evidence] = distances(Method::ensemble_kalman(200_000), 4);
    let error = 5.0 * (3.0 / 200_000f64).sqrt();
    assert!(mean < error && covariance < error * 2f64.sqrt() && evidence < error, "{mean} {covariance} {evidence}");
}

#[test]
fn hint_comes_near_to_the_kalman_filter() {
    // Small and short, for a test: of a tenth of a deviation, and of the covariance.
    let settings = HintSettings::default().rows(8000).set("model.blocks", 4).set("model.width", 24);
    let settings = settings.set("train.epochs", 8).set("train.batch", 200);
    let [mean, covariance, evidence] = distances(Method::Hint(settings), 5);
    assert!(mean < 0.1 && covariance < 0.15 && evidence < 0.1, "{mean} {covariance} {evidence}");
}

/// An observation that nothing can have given: the particles say so, and how far it is is known of every method.
#[test]
fn impossible_observations_are_found() {
    let (system, engine) = (simulator(linear()), Engine::cpu().unwrap());
    let small = HintSettings::default().rows(500).set("model.blocks", 1).set("model.width", 8).set("train.epochs", 1);
    let methods = [Method::particle(2000), Method::ensemble_kalman(2000), Method::Hint(small)];
    for method in methods {
        let mut filter = Filter::new(&system, method, &engine, 3).unwrap();
        let (near, far) = (filter.step(&[1.1]).unwrap(), filter.step(&[100.0]).unwrap());
        assert!(near.beyond == Some(0.0) && far.beyond.unwrap() > 1.0, "{filter:?}: {near:?} {far:?}");
    }
    let mut filter = Filter::new(&system, Method::particle(2000), &engine, 3).unwrap();
    let error = filter.step(&[1e30]).unwrap_err().to_string();
    assert!(error.starts_with("step 1: no particle") && error.contains("(1e30)"), "{error}");
    // It is where it was.
    assert_eq!(filter.step(&[1.1]).unwrap().step, 1);
}

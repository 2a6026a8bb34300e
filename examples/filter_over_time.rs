//! Filters a system of closures: a stochastic growth model whose state is seen only through its square, so that its
//! posterior has two sides for a while, which a Kalman filter cannot have.
//!
//!     cargo run --release --example filter_over_time

use hintflow::filter::{Filter, HintSettings, Method, RowRng, StateSpace};
use hintflow::{Engine, Result};

const OBSERVED: [f32; 4] = [1.1, 2.0, 2.7, 2.2];

fn main() -> Result<()> {
    let growth = StateSpace::new(
        (1, 1), // columns of the state, and of an observation
        |rng: &mut RowRng, x: &mut [f32]| x[0] = rng.normal() as f32,
        |_step, x: &[f32], rng: &mut RowRng, next: &mut [f32]| {
            next[0] = 0.9 * x[0] + 0.3 + 0.4 * rng.normal() as f32;
        },
        |_step, x: &[f32], rng: &mut RowRng, y: &mut [f32]| y[0] = x[0] * x[0] + 0.2 * rng.normal() as f32,
    )
    .likelihood(|_step, x, y| -0.5 * f64::from((y[0] - x[0] * x[0]) / 0.2).powi(2)) // for the particle filter alone
    .names(["x"]);

    let engine = Engine::auto()?;
    // Splines, since affine couplings have no second side. A step takes seconds.
    let hint = HintSettings::default().rows(8000).set("model.coupling", "spline").set("model.blocks", 4);
    let hint = hint.set("model.width", 32).set("train.epochs", 10).set("train.lr", 0.003).set("train.lr_final", 0.0003);
    for method in [Method::Hint(hint), Method::ensemble_kalman(10_000), Method::particle(100_000)] {
        println!("{method:?}");
        let mut filter = Filter::new(&growth, method, &engine, 1)?;
        for y in OBSERVED {
            let step = filter.step(&[y])?;
            let states = filter.states();
            let share = states.iter().filter(|x| **x > 0.0).count() as f64 / states.len() as f64;
            let mean = states.iter().map(|x| x.abs()).sum::<f32>() / states.len() as f32;
            let evidence = step.log_evidence.unwrap_or(f64::NAN);
            println!("  step {}: |x| {mean:.3}, positive {share:.2}, log-evidence {evidence:.2}", step.step);
        }
    }
    Ok(())
}

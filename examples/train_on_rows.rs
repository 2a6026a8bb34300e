//! Trains a flow on rows that are in memory and scores new ones: `cargo run --release --example train_on_rows`.
//!
//! The rows are a noisy circle, which no Gaussian describes.

use std::f32::consts::TAU;
use std::ops::ControlFlow;

use hintflow::train::Event;
use hintflow::{Dataset, Engine, Overwrite, Result, TrainConfig, Trainer};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

fn main() -> Result<()> {
    let engine = Engine::auto()?;
    println!("running on {}", engine.info().name);

    // The units of the rows become part of the flow, so it speaks in those of the rows.
    let data = Dataset::from_rows(&circle(20_000, 1), 2).validation_rows(&circle(2_000, 2)).build()?;
    let mut flow = data.flow().seed(1).build(&engine)?;

    let trainer = Trainer::new(&mut flow, &data, TrainConfig::default().epochs(30))?;
    let fitted = trainer.fit(|event| {
        if let Event::Epoch(report) = event {
            println!("epoch {}: training loss {:.4}", report.epoch, report.train_loss);
        }
        ControlFlow::Continue(())
    })?;
    // The model of the epoch that scored the validation rows best.
    println!("kept the model of epoch {}", fitted.kept_epoch);

    // A point on the circle, its centre, and a point far outside.
    let density = flow.log_prob(&[1.0, 0.0, 0.0, 0.0, 3.0, 3.0])?;
    println!(
        "log-density on the circle {:.2}, at its centre {:.2}, far away {:.2}",
        density[0], density[1], density[2]
    );

    let samples = flow.sample(10_000, 7)?;
    let radius = samples.chunks_exact(2).map(|p| p[0].hypot(p[1])).sum::<f32>() / 10_000.0;
    println!("mean radius of 10,000 samples {radius:.3}");

    let path = std::env::temp_dir().join("circle.safetensors");
    flow.save(&path, Overwrite::Yes)?;
    println!("saved as {}", path.display());
    Ok(())
}

/// Points about the unit circle: their distances from it are those of 12 uniform numbers from their mean, scaled to a
/// standard deviation of 0.1.
fn circle(rows: usize, seed: u64) -> Vec<f32> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let point = |i: usize| {
        let radius = 1.0 + 0.1 * ((0..12).map(|_| rng.random::<f32>()).sum::<f32>() - 6.0);
        let angle = TAU * (i as f32 + 0.5) / rows as f32;
        [radius * angle.cos(), radius * angle.sin()]
    };
    (0..rows).flat_map(point).collect()
}

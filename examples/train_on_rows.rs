//! Trains a flow on rows that are in memory and scores new ones: `cargo run --release --example train_on_rows`.
//!
//! The rows are a noisy circle, which no Gaussian describes.

use std::f32::consts::TAU;
use std::path::Path;

use hintflow::config::preset;
use hintflow::data::Table;
use hintflow::flow::FlowBuilder;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::{Dataset, Trainer};
use hintflow::{Engine, Result};

fn main() -> Result<()> {
    let engine = Engine::auto()?;
    println!("running on {}", engine.info().name);

    let mut config = preset::for_tables();
    config.train.epochs = 30;
    config.train.batch = Some(400);
    let data = Dataset::from_tables(&config, "circle", circle(20_000, 1)?, Some(circle(2_000, 2)?))?;

    // The model of these settings, for two columns and no conditions. The units of the training rows become part of it,
    // so it speaks in those of the table.
    let spec = config.model.spec(2, 0)?;
    let flow = FlowBuilder::from_spec(spec).units(data.x.clone()).seed(1).build(&engine)?;

    let mut trainer = Trainer::new(&flow, &config, &data)?;
    while !trainer.is_done() {
        trainer.step()?;
        if trainer.at_epoch_end() {
            let report = trainer.finish_epoch()?;
            println!("epoch {}: training loss {:.4}", report.epoch, report.train_loss);
        }
    }

    // The model of the epoch that scored the held-out rows best.
    println!("kept the model of epoch {}", trainer.finish()?.epoch);

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
    flow.save(Path::new(&path), true)?;
    println!("saved as {}", path.display());
    Ok(())
}

/// Points on the unit circle with noise of deviation 0.1.
fn circle(rows: usize, seed: u64) -> Result<Table> {
    let mut noise = vec![0.0; 2 * rows];
    fill_normals(seed, Stream::Data, 0, 0, &mut noise);
    for (i, point) in noise.chunks_exact_mut(2).enumerate() {
        let angle = TAU * (i as f32 + 0.5) / rows as f32;
        point[0] = angle.cos() + 0.1 * point[0];
        point[1] = angle.sin() + 0.1 * point[1];
    }
    Table::new(vec!["x".into(), "y".into()], 2, noise)
}

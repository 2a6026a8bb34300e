//! The library as a program that embeds it holds it: what numbers and settings that are wrong are answered with.

use std::ops::ControlFlow;

use crate::common::engines;
use hintflow::train::Event;
use hintflow::{Dataset, Error, Flow, TrainConfig, Trainer};

/// Rows of a positive column and another one.
fn rows(count: usize) -> Vec<f32> {
    let row = |i: usize| [1.1 + (i as f32 * 0.7).sin(), (i as f32 * 1.3).cos()];
    (0..count).flat_map(row).collect()
}

/// A small flow whose first column has bounds, and its data.
fn bounded() -> (Dataset, Flow) {
    let data = Dataset::from_rows(&rows(200), 2).bounds(0, Some(0.0), None).build().unwrap();
    let flow = data.flow().blocks(1).width(8).build(&engines::cpu()).unwrap();
    (data, flow)
}

#[test]
fn beyond_a_bound_there_is_no_density_and_no_latent() {
    let (_, flow) = bounded();
    let x = [0.5, 1.0, -0.5, 1.0, 0.7, -1.0];
    let densities = flow.log_prob(&x).unwrap();
    assert_eq!(densities[1], f32::NEG_INFINITY);
    assert_eq!([densities[0], densities[2]][..], flow.log_prob(&[x[0], x[1], x[4], x[5]]).unwrap());
    let text = flow.encode(&x).unwrap_err().to_string();
    assert!(text.contains("row 2") && text.contains("-0.5"), "{text}");
}

#[test]
fn a_hint_has_no_density_beyond_the_bounds_of_either_lane() {
    let y: Vec<f32> = rows(200).chunks(2).map(|row| row[0]).collect();
    let builder = Dataset::from_rows(&rows(200), 2).conditions(&y, 1);
    let data = builder.bounds(0, Some(0.0), None).condition_bounds(0, Some(0.0), None).build().unwrap();
    let flow = data.flow().blocks(1).width(8).build(&engines::cpu()).unwrap();
    let joint = flow.joint().unwrap();
    let densities = joint.log_prob(&[0.5, -0.5, 0.5], &[0.5, 1.0, 0.5, 1.0, -0.5, 1.0]).unwrap();
    assert!(densities[0].is_finite());
    assert_eq!(densities[1..], [f32::NEG_INFINITY; 2]);
    let evidence = joint.log_evidence(&[0.5, -0.5]).unwrap();
    assert!(evidence[0].is_finite());
    assert_eq!(evidence[1], f32::NEG_INFINITY);
    assert_eq!(flow.given(&[0.5]).unwrap().log_prob(&[-0.5, 1.0]).unwrap(), [f32::NEG_INFINITY]);
}

#[test]
fn values_that_are_no_numbers_are_named() {
    let (_, flow) = bounded();
    let named = |error: Error, place: &str| match error {
        Error::NotFinite { what } => assert!(what.contains(place), "{what}: not {place}"),
        other => panic!("{other}"),
    };
    for value in [f32::NAN, f32::INFINITY] {
        named(flow.log_prob(&[0.5, 1.0, 0.5, value]).unwrap_err(), "row 1, column 1 of x");
        named(flow.encode(&[value, 1.0]).unwrap_err(), "row 0, column 0 of x");
        named(flow.decode(&[0.0, value]).unwrap_err(), "row 0, column 1 of z");
        named(flow.loss_gradients(&[0.5, value]).unwrap_err(), "row 0, column 1 of x");
    }
}

/// A rate at which the weights stay numbers, and nothing else does.
#[test]
fn a_training_that_explodes_is_no_success() {
    let (data, mut flow) = bounded();
    let hopeless = TrainConfig::default().epochs(2).learning_rate(1e15).retries(0);
    let trained = Trainer::new(&mut flow, &data, hopeless).unwrap().fit(|_| ControlFlow::Continue(()));
    assert!(matches!(trained, Err(Error::Diverged { .. })), "{trained:?}");
    // Its weights may be no numbers now, which another trainer must not take for a start.
    let again = Trainer::new(&mut flow, &data, TrainConfig::default().epochs(1)).map(|_| ());
    assert!(matches!(again, Ok(()) | Err(Error::NotFinite { .. })), "{again:?}");
    // With retries it comes to a rate that is none.
    let (data, mut flow) = bounded();
    let patient = TrainConfig::default().epochs(12).learning_rate(1e3).retries(30);
    let mut back = 0;
    let fitted = Trainer::new(&mut flow, &data, patient).unwrap().fit(|event| {
        back += u32::from(matches!(event, Event::WentBack(_)));
        ControlFlow::Continue(())
    });
    let loss = fitted.unwrap().validation_loss.unwrap();
    assert!(loss.is_finite(), "{loss} after {back} retries");
}

#[test]
fn a_training_that_the_caller_ends_has_stopped_early() {
    let (data, mut flow) = bounded();
    let config = TrainConfig::default().epochs(3);
    let trainer = Trainer::new(&mut flow, &data, config.clone()).unwrap();
    let broken = trainer.fit(|event| match event {
        Event::Epoch(report) if report.epoch == 2 => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    let broken = broken.unwrap();
    assert_eq!((broken.epochs, broken.stopped_early), (2, true));
    let whole = Trainer::new(&mut flow, &data, config).unwrap().fit(|_| ControlFlow::Continue(())).unwrap();
    assert_eq!((whole.epochs, whole.stopped_early), (3, false));
}

/// Numbers of affine couplings overflow where those of splines, the identity beyond their box, do not.
#[test]
fn rows_at_the_end_of_all_floats_have_no_density() {
    let flow = Flow::builder(4).blocks(3).width(8).init_sigma(0.5).build(&engines::cpu()).unwrap();
    let far = [3e38f32, -3e38, 3e38, 1.0, 3.4e38, 3.4e38, -3.4e38, 3.4e38, 0.5, 0.5, 0.5, 0.5];
    let densities = flow.log_prob(&far).unwrap();
    assert_eq!(densities[..2], [f32::NEG_INFINITY; 2]);
    assert!(densities[2].is_finite());
}

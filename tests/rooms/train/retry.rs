//! Trainings that diverge: they go back and on by themselves, as often as they may, and stopping changes nothing of it.

use std::sync::atomic::AtomicBool;

use hintflow::config::{Config, Keep, ScaleKind};
use hintflow::train::run::{self, Observer, Options};
use hintflow::train::{Dataset, Retries, State};
use hintflow::{Engine, Error};

use super::{advance, flow, settings, through_a_file};
use crate::rooms::common::engines;

/// A rate that must be halved many times.
fn diverging(folder: &tempfile::TempDir) -> Config {
    let mut config = settings(folder);
    config.model.scale = ScaleKind::Exp;
    (config.train.lr, config.train.lr_final, config.train.warmup_epochs) = (1e6, 1e6, 0);
    (config.train.grad_clamp, config.train.retries, config.train.epochs) = (1e30, 30, 4);
    config
}

/// Trains to the end, and through a file after `stop` calls. Returns the state at the end and what was told.
fn finished(
    folder: &tempfile::TempDir,
    config: &Config,
    engine: &Engine,
    stop: Option<usize>,
) -> (State, Vec<String>, usize) {
    let data = Dataset::load(config, None).unwrap();
    let flows = [flow(config, &data, engine), flow(config, &data, engine)];
    let mut trainer = crate::rooms::begin(&flows[0], config, &data).unwrap();
    let (mut told, mut calls) = (Vec::new(), 0);
    while !trainer.is_done() {
        if stop == Some(calls) {
            match trainer.state() {
                Ok(state) => {
                    let state = through_a_file(folder, &flows[0], &data, state);
                    trainer = crate::rooms::begin(&flows[1], config, &data).unwrap();
                    trainer.restore(&state).unwrap();
                }
                // Such a state is no checkpoint.
                Err(error) => assert!(matches!(error, Error::Diverged { .. })),
            }
        }
        trainer.step().unwrap();
        calls += 1;
        if trainer.at_epoch_end() {
            trainer.finish_epoch().unwrap();
        }
        told.extend(trainer.went_back());
    }
    (trainer.state().unwrap(), told, calls)
}

pub(super) fn goes_back_and_on(engine: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let config = diverging(&folder);
    let (state, told, _) = finished(&folder, &config, engine, None);
    assert!(state.retries.count > 5 && state.retries.count as usize == told.len(), "{:?} {told:?}", state.retries);
    assert!(told[0].contains("the loss became") && told[0].contains("the beginning"), "{}", told[0]);
    assert!(told[1].contains("0.25 of the learning rate") && told[1].contains("train.retries"), "{}", told[1]);
    assert_eq!((state.position.epoch, state.position.step), (4, 48));
    assert!(state.best.is_some_and(|best| best.test_loss < 100.0), "a model that was trained");
}

#[test]
fn a_training_that_diverges_goes_back_and_on() {
    goes_back_and_on(&engines::cpu());
}

#[test]
fn stopping_changes_nothing_of_it() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engines::cpu();
    for (keep, average) in [(Keep::Best, 0.0), (Keep::Last, 0.9)] {
        let mut config = diverging(&folder);
        (config.train.keep, config.train.average) = (keep, average);
        let (expected, told, calls) = finished(&folder, &config, &engine, None);
        assert!(expected.retries.count > 5);
        for stop in [1, 11, 21, calls / 2, calls - 30, calls - 13, calls - 1] {
            let (state, told_too, _) = finished(&folder, &config, &engine, Some(stop));
            assert!(state == expected, "stopped after {stop} of {calls} calls, {keep:?}");
            // What was told before is not told again.
            assert_eq!(told_too, told);
        }
    }
}

#[test]
fn it_fails_when_no_retries_are_left() {
    let folder = tempfile::tempdir().unwrap();
    for retries in [0, 2] {
        let mut config = diverging(&folder);
        config.train.retries = retries;
        let data = Dataset::load(&config, None).unwrap();
        let flow = flow(&config, &data, &engines::cpu());
        let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
        let mut told = 0;
        let error = (0..1000).find_map(|_| {
            let error = trainer.step().err();
            told += u64::from(trainer.went_back().is_some());
            error
        });
        assert!(matches!(error, Some(Error::Diverged { .. })), "{error:?}");
        assert_eq!(told, retries);
    }
}

/// Weights that blow up without a loss that is no number.
#[test]
fn a_model_that_has_exploded_is_left_for_the_best() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    (config.train.lr, config.train.lr_final) = (1e-6, 1e-6);
    let data = Dataset::load(&config, None).unwrap();
    for retries in [3, 0] {
        config.train.retries = retries;
        let flow = flow(&config, &data, &engines::cpu());
        let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
        advance(&mut trainer, 12);
        let mut state = trainer.state().unwrap();
        let best = state.best.clone().unwrap();
        state.weights.iter_mut().for_each(|w| *w *= 1000.0);
        trainer.restore(&state).unwrap();
        while !trainer.at_epoch_end() {
            trainer.step().unwrap();
        }
        let report = trainer.finish_epoch().unwrap();
        let told = trainer.went_back();
        let after = trainer.state().unwrap();
        assert_eq!(after.position.epoch, 2);
        if retries == 0 {
            assert!(told.is_none() && after.weights != best.weights);
            continue;
        }
        let told = told.unwrap();
        assert!(told.contains("held-out rows") && told.contains("in epoch 2"), "{told}");
        assert!(told.contains("the model of epoch 1 and on with 0.5"), "{told}");
        assert!(report.validation_loss.unwrap() > 1000.0);
        assert_eq!(after.retries, Retries { count: 1, step: 24 });
        assert!(after.weights == best.weights && after.first_moments.iter().all(|&m| m == 0.0));
        assert!(trainer.went_back().is_none(), "it is told once");
        // The next step has half the rate, and Adam begins anew.
        trainer.step().unwrap();
        let moved = trainer.state().unwrap();
        let most = moved.weights.iter().zip(&best.weights).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(most > 0.0 && most < 0.6e-6, "{most:e}");
    }
}

/// One batch with a value that is none, which clipping leaves out.
#[test]
fn updates_that_are_left_out_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    (config.train.clip_norm, config.train.retries, config.train.shuffle) = (1.0, 0, false);
    // Each row once in an epoch of five batches.
    (config.train.batch, config.train.batches_per_epoch) = (Some(10), Some(5));
    let mut data = Dataset::load(&config, None).unwrap();
    let mut rows = data.train.to_vec();
    rows[12 * 5] = f32::NAN;
    data.train = rows.into();
    let flow = flow(&config, &data, &engines::cpu());
    let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
    advance(&mut trainer, 15);
    assert_eq!(trainer.skipped(), 3);
    let state = trainer.state().unwrap();
    assert_eq!((state.skips.total, state.skips.in_a_row), (3, 0));
    // All rows bad: diverged after a few.
    let mut bad = data.clone();
    bad.train = vec![f32::NAN; data.train.len()].into();
    let mut trainer = crate::rooms::begin(&flow, &config, &bad).unwrap();
    let mut steps = 0;
    let error = loop {
        if let Err(error) = trainer.step() {
            break error;
        }
        steps += 1;
        if trainer.at_epoch_end() {
            trainer.finish_epoch().unwrap();
        }
    };
    assert!(matches!(error, Error::Diverged { .. }), "{error:?}");
    assert_eq!(steps, 9, "seen at the end of the second epoch");
}

struct Told(Vec<String>);

impl Observer for Told {
    fn warning(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

#[test]
fn a_run_says_that_it_went_back() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = diverging(&folder);
    config.run.checkpoint_every = Some(1);
    config.run.out = Some(folder.path().join("run"));
    let stop = AtomicBool::new(false);
    let options = Options { command: &[], overwrite: hintflow::Overwrite::Yes, stop: &stop };
    let mut observer = Told(vec![]);
    let outcome = run::start(config.clone(), &engines::cpu(), options, &mut observer).unwrap();
    assert!(outcome.finished);
    let count = observer.0.iter().filter(|text| text.contains("train.retries")).count();
    assert!(count > 5, "{:?}", observer.0);
    // Checkpoints at every step see a weight that is none before the loss is read, and nothing comes of it.
    let (state, told, _) = finished(&folder, &config, &engines::cpu(), None);
    assert_eq!((told.len(), state.position.step), (count, outcome.step));
    let file = hintflow::flow::ModelFile::read(&folder.path().join("run/model.safetensors")).unwrap();
    let best = state.best.unwrap().weights;
    for tensor in &file.plan.layout.tensors {
        assert!(file.weights[tensor.range()] == best[tensor.range()], "{}", tensor.name);
    }

    config.train.retries = 2;
    let result = run::start(config, &engines::cpu(), options, &mut Told(vec![]));
    assert!(matches!(result, Err(Error::Diverged { .. })));
}

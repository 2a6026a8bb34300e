//! The trainer without files: n + m steps with a checkpoint between are n + m steps without, on every engine.

mod mixing;
mod patience;
mod ranks;
mod retry;

use std::sync::atomic::AtomicBool;

use crate::rooms::common::engines;
use hintflow::config::{Config, Fall, Keep, Memory, Model, ScaleKind, preset};
use hintflow::data::Table;
use hintflow::flow::FlowBuilder;
use hintflow::plan::Mixing;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::checkpoint::{About, Checkpoint, Device};
use hintflow::train::run::{self, Observer, Options, Outcome, Start};
use hintflow::train::{Best, Dataset, State, TrainingLoop};
use hintflow::{Engine, Error, Flow};

/// Settings of affine couplings for 60 rows of 5 columns: trained mixing, noise, batches that do not divide the rows, and
/// more rows in an epoch than there are.
fn settings(folder: &tempfile::TempDir) -> Config {
    let path = folder.path().join("t.npy");
    let value = |i: usize| ((i * 7919 % 997) as f32 / 300.0).sin() + (i % 5) as f32;
    Table::new(vec![], 5, (0..300).map(value).collect()).unwrap().write(&path, hintflow::Overwrite::Yes).unwrap();
    let mut config = preset::for_affine_tables();
    config.data.path = Some(path);
    config.model.width = Some(6);
    config.model.blocks = 2;
    config.model.mixing = Mixing::Householder;
    config.train.batch = Some(13);
    config.train.batches_per_epoch = Some(12);
    config.train.epochs = 3;
    config.train.warmup_epochs = 1;
    config.train.patience = 0;
    config
}

fn flow(config: &Config, data: &Dataset, engine: &Engine) -> Flow {
    let spec = config.model.spec(data.dim as u32, data.cond_dim as u32).unwrap();
    let builder =
        FlowBuilder::from_spec(spec).seed(config.train.seed).units(data.x.clone()).units_of_conditions(data.y.clone());
    builder.build(engine).unwrap()
}

/// Takes steps until `until` of them are done; returns what the epochs reported, as bits.
fn advance(trainer: &mut TrainingLoop<'_>, until: u64) -> Vec<[u64; 2]> {
    let mut reports = Vec::new();
    while trainer.position().step < until {
        trainer.step().unwrap();
        if trainer.at_epoch_end() {
            let report = trainer.finish_epoch().unwrap();
            reports.push([report.train_loss.to_bits(), report.validation_loss.unwrap().to_bits()]);
        }
    }
    reports
}

/// The state as a file gives it back.
fn through_a_file(folder: &tempfile::TempDir, flow: &Flow, data: &Dataset, state: State) -> State {
    let about = About {
        spec: flow.spec().clone(),
        config: String::new(),
        data: data.fingerprint.clone(),
        device: Device::from(&flow.engine().info()),
        x: flow.units().clone(),
        y: flow.units_of_conditions().clone(),
    };
    let path = folder.path().join("c.safetensors");
    Checkpoint { about, state }.write(&path).unwrap();
    Checkpoint::read(&path).unwrap().state
}

/// Everything that the optimiser has besides the paper's Adam.
fn with_everything(config: &mut Config) {
    let train = &mut config.train;
    (train.clip_norm, train.decay, train.average) = (0.5, Some(0.3), 0.9);
    (train.schedule, train.warmup_steps, train.warmup_epochs) = (Fall::Cosine, 7, 0);
}

/// What tables have by default: splines between fixed mixings, and dropout.
fn with_splines(config: &mut Config) {
    let ours = preset::for_tables();
    config.model = Model { width: config.model.width, blocks: config.model.blocks, ..ours.model };
    (config.data.squash, config.train.dropout) = (ours.data.squash, None);
    (config.train.schedule, config.train.clip_norm) = (ours.train.schedule, ours.train.clip_norm);
}

fn stopping_changes_nothing(engine: &Engine, change: impl Fn(&mut Config)) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    change(&mut config);
    let data = Dataset::load(&config, None).unwrap();
    let whole_flow = flow(&config, &data, engine);
    let mut whole = crate::rooms::begin(&whole_flow, &config, &data).unwrap();
    let expected = advance(&mut whole, 36);
    assert!(whole.is_done());

    // Within an epoch before and after a loss was read, and between two epochs.
    for stop in [5, 11, 12, 31] {
        let first_flow = flow(&config, &data, engine);
        let mut first = crate::rooms::begin(&first_flow, &config, &data).unwrap();
        let mut reports = advance(&mut first, stop);
        let state = through_a_file(&folder, &first_flow, &data, first.state().unwrap());
        let second_flow = flow(&config, &data, engine);
        let mut second = crate::rooms::begin(&second_flow, &config, &data).unwrap();
        second.restore(&state).unwrap();
        reports.extend(advance(&mut second, 36));
        assert_eq!(reports, expected, "stopped after step {stop}");
        assert!(second.state().unwrap() == whole.state().unwrap(), "stopped after step {stop}");
    }
}

#[test]
fn stopping_changes_nothing_on_the_native_engine() {
    stopping_changes_nothing(&engines::cpu(), |_| ());
    stopping_changes_nothing(&engines::cpu(), |config| config.train.memory = Memory::Reversible);
    stopping_changes_nothing(&engines::cpu(), with_everything);
    stopping_changes_nothing(&engines::cpu(), with_splines);
    stopping_changes_nothing(&engines::cpu(), |config| (config.train.keep, config.train.average) = (Keep::Last, 0.9));
}

/// The averages are what is scored and kept; the training goes on with its own weights.
fn averages_are_the_model(engine: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    config.train.warmup_epochs = 0;
    let data = Dataset::load(&config, None).unwrap();
    let plain_flow = flow(&config, &data, engine);
    let mut plain = crate::rooms::begin(&plain_flow, &config, &data).unwrap();
    let of_plain = advance(&mut plain, 36);
    let expected = plain.state().unwrap();

    config.train.average = 0.9;
    for keep in [Keep::Last, Keep::Best] {
        config.train.keep = keep;
        let flow = flow(&config, &data, engine);
        let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
        let trained = trainer.state().unwrap().averages.len();
        // By hand, after each step.
        let mut averages: Vec<f64> = trainer.state().unwrap().averages.iter().map(|&a| a.into()).collect();
        let mut reports = Vec::new();
        for t in 1..=36u64 {
            reports.extend(advance(&mut trainer, t));
            let left = 0.9f64.min((1 + t) as f64 / (10 + t) as f64);
            let state = trainer.state().unwrap();
            averages.iter_mut().zip(&state.weights).for_each(|(a, &w)| *a += (1.0 - left) * (f64::from(w) - *a));
            let close = state.averages.iter().zip(&averages).all(|(&a, b)| (f64::from(a) - b).abs() < 1e-5);
            assert!(close, "step {t}");
        }
        let state = trainer.state().unwrap();
        assert!(state.weights[..trained] == expected.weights[..trained], "the average disturbs the training");
        assert!(state.first_moments == expected.first_moments);
        // Losses of batches are those of the weights that are trained, scores those of the averages.
        assert!(reports.iter().zip(&of_plain).all(|(a, b)| a[0] == b[0] && a[1] != b[1]));
        let best = state.best.clone().unwrap();
        let kept = trainer.finish().unwrap();
        let file = flow.to_file().unwrap();
        let again = Flow::from_file(file.clone(), engine).unwrap();
        let mut plain = config.clone();
        plain.train.average = 0.0;
        let (loss, ll) = crate::rooms::begin(&again, &plain, &data).unwrap().score().unwrap().unwrap();
        assert_eq!((Some(loss), Some(ll)), (kept.test_loss, kept.ll));
        assert_eq!(trainer.score().unwrap(), Some((loss, ll)));
        let model = if keep == Keep::Last { &state.averages } else { &best.weights };
        assert!(file.weights[..trained] == model[..trained], "{keep:?}");
    }
}

#[test]
fn averages_are_the_model_on_the_native_engine() {
    averages_are_the_model(&engines::cpu());
}

/// A second trainer on a model begins as one on a copy of it: with the weights, and without the moments.
fn trainers_follow_each_other(engine: &Engine) {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(&folder);
    let data = Dataset::load(&config, None).unwrap();
    let used = flow(&config, &data, engine);
    let mut first = crate::rooms::begin(&used, &config, &data).unwrap();
    advance(&mut first, 20);
    let fresh = Flow::from_file(used.to_file().unwrap(), engine).unwrap();
    let mut expected = crate::rooms::begin(&fresh, &config, &data).unwrap();
    let mut second = crate::rooms::begin(&used, &config, &data).unwrap();
    assert_eq!(advance(&mut second, 20), advance(&mut expected, 20));
    assert!(second.state().unwrap() == expected.state().unwrap());
}

#[test]
fn trainers_follow_each_other_on_the_native_engine() {
    trainers_follow_each_other(&engines::cpu());
}

#[test]
fn training_lowers_the_loss_on_held_out_rows() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    // Normals, and columns that follow from them.
    let mut values = vec![0.0; 2000 * 5];
    fill_normals(3, Stream::Data, 0, 0, &mut values);
    for row in values.chunks_exact_mut(5) {
        row[2] = row[0] + 0.3 * row[2];
        row[4] = row[1] * row[1] + 0.3 * row[4];
    }
    Table::new(vec![], 5, values).unwrap().write(config.data.path.as_ref().unwrap(), hintflow::Overwrite::Yes).unwrap();
    config.train.batch = Some(100);
    config.train.epochs = 30;
    let data = Dataset::load(&config, None).unwrap();
    let flow = flow(&config, &data, &engines::cpu());
    let mut trainer = crate::rooms::begin(&flow, &config, &data).unwrap();
    let (before, _) = trainer.score().unwrap().unwrap();
    advance(&mut trainer, 360);
    let (after, ll) = trainer.score().unwrap().unwrap();
    assert!(after < before - 1.0, "{before} {after}");
    // The score is the model's own log-density, without the constant, per column.
    let rows = data.x.outer(data.test.clone());
    let densities = flow.log_prob(&rows).unwrap();
    let mean = densities.iter().map(|&d| f64::from(d)).sum::<f64>() / data.test_rows() as f64;
    let own = mean / 5.0 + 0.5 * std::f64::consts::TAU.ln();
    assert!((own - ll).abs() < 1e-4, "{own} {ll}");
}

/// Breaks a file of the run folder when the training begins.
struct Breaks {
    file: &'static str,
    warnings: Vec<String>,
}

impl Observer for Breaks {
    fn started(&mut self, start: &Start<'_>) {
        let path = start.folder.join(self.file);
        std::fs::remove_file(&path).unwrap();
        // In the way of a file, and no file to read.
        std::fs::create_dir(path).unwrap();
    }

    fn warning(&mut self, text: &str) {
        self.warnings.push(text.into());
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Told(Vec<String>);

impl Observer for Told {
    fn warning(&mut self, text: &str) {
        self.0.push(text.into());
    }
}

/// What the way back loses is said, once, where it is much: networks that scale by up to exp(4) in both directions.
#[test]
fn a_reversible_training_tells_of_digits_that_it_loses() {
    let folder = tempfile::tempdir().unwrap();
    let told = |name: &str, memory: Memory, init_sigma: f64| {
        let mut config = settings(&folder);
        config.run.out = Some(folder.path().join(name));
        (config.train.memory, config.model.init_sigma, config.model.blocks) = (memory, Some(init_sigma), 3);
        (config.train.lr, config.train.lr_final) = (1e-9, 1e-9);
        let options = Options { command: &[], overwrite: hintflow::Overwrite::No, stop: &AtomicBool::new(false) };
        let mut observer = Told::default();
        assert!(run::start(config, &engines::cpu(), options, &mut observer).unwrap().finished);
        observer.0.iter().filter(|text| text.contains("decode(encode(x))")).count()
    };
    assert_eq!(told("steep", Memory::Reversible, 1.5), 1);
    assert_eq!(told("stored", Memory::Stored, 1.5), 0);
    assert_eq!(told("gentle", Memory::Reversible, 0.005), 0);
}

fn run_that_breaks(config: Config, file: &'static str) -> (hintflow::Result<Outcome>, Vec<String>) {
    let mut observer = Breaks { file, warnings: Vec::new() };
    let options = Options { command: &[], overwrite: hintflow::Overwrite::No, stop: &AtomicBool::new(false) };
    let result = run::start(config, &engines::cpu(), options, &mut observer);
    (result, observer.warnings)
}

#[cfg(unix)]
#[test]
fn a_second_failure_does_not_hide_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    config.run.out = Some(folder.path().join("good"));
    let (result, warnings) = run_that_breaks(config.clone(), "metrics.csv");
    assert!(result.unwrap().finished);
    assert!(warnings.iter().any(|text| text.contains("metrics.csv")), "{warnings:?}");

    config.run.out = Some(folder.path().join("alone"));
    let (result, _) = run_that_breaks(config.clone(), "manifest.json");
    assert!(matches!(&result, Err(Error::Io { path, .. }) if path.ends_with("manifest.json")), "{result:?}");
    assert!(folder.path().join("alone/model.safetensors").is_file());

    config.run.out = Some(folder.path().join("diverged"));
    config.model.scale = ScaleKind::Exp;
    config.train.epochs = 100;
    (config.train.lr, config.train.lr_final, config.train.warmup_epochs) = (1e6, 1e6, 0);
    config.train.grad_clamp = 1e30;
    let (result, warnings) = run_that_breaks(config, "manifest.json");
    assert!(matches!(&result, Err(Error::Diverged { .. })), "{result:?}");
    assert!(warnings.iter().any(|text| text.contains("manifest.json")), "{warnings:?}");
}

#[test]
fn states_of_other_models_and_other_settings_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = settings(&folder);
    config.train.retries = 0;
    let data = Dataset::load(&config, None).unwrap();
    let engine = engines::cpu();
    let small = flow(&config, &data, &engine);
    let mut trainer = crate::rooms::begin(&small, &config, &data).unwrap();
    advance(&mut trainer, 5);
    let state = trainer.state().unwrap();

    let mut wider = config.clone();
    wider.model.width = Some(7);
    let wide = flow(&wider, &data, &engine);
    let mut other = crate::rooms::begin(&wide, &wider, &data).unwrap();
    assert!(matches!(other.restore(&state), Err(Error::Shape { .. })));

    let mut wrong = state.clone();
    wrong.position.batch = 6;
    assert!(matches!(trainer.restore(&wrong), Err(Error::Config { .. })));
    wrong.position.epoch = u64::MAX;
    assert!(matches!(trainer.restore(&wrong), Err(Error::Config { .. })));

    let mut wrong = state.clone();
    wrong.best = Some(Best { epoch: 0, test_loss: 0.0, ll: 0.0, weights: vec![0.0; 3] });
    assert!(matches!(trainer.restore(&wrong), Err(Error::Shape { .. })));
    wrong.best = Some(Best { epoch: 9, test_loss: 0.0, ll: 0.0, weights: state.weights.clone() });
    assert!(matches!(trainer.restore(&wrong), Err(Error::Config { .. })));

    let mut broken = state;
    broken.weights[0] = f32::NAN;
    trainer.restore(&broken).unwrap();
    assert!(matches!(trainer.state(), Err(Error::Diverged { step: 5, .. })));
    let stepped = (0..10).find_map(|_| trainer.step().err());
    assert!(matches!(stepped, Some(Error::Diverged { .. })), "{stepped:?}");
}

mod gpu {
    use super::*;

    #[test]
    fn stopping_changes_nothing() {
        super::stopping_changes_nothing(&engines::gpu(), |_| ());
        super::stopping_changes_nothing(&engines::gpu(), |config| config.train.memory = Memory::Reversible);
        super::stopping_changes_nothing(&engines::gpu(), with_everything);
    }

    #[test]
    fn trainers_follow_each_other() {
        super::trainers_follow_each_other(&engines::gpu());
    }

    #[test]
    fn averages_are_the_model() {
        super::averages_are_the_model(&engines::gpu());
    }

    #[test]
    fn a_training_that_diverges_goes_back() {
        super::retry::goes_back_and_on(&engines::gpu());
    }
}

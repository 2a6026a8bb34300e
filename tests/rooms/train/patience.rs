//! Trainings that lose patience: the best epoch is kept, cooled down from, and none of it is changed by stopping.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use hintflow::Flow;
use hintflow::config::{Config, Keep};
use hintflow::data::Table;
use hintflow::flow::ModelFile;
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::checkpoint::{Checkpoint, Store};
use hintflow::train::run::{self, Observer, Options, Outcome};
use hintflow::train::{Cooldown, Dataset, Kept, Progress, State};

use super::{advance, flow, settings, through_a_file};
use crate::rooms::common::engines;

/// Settings whose best epoch is early: few rows for a wide model, and no noise to hold it back.
fn overfitting(folder: &tempfile::TempDir) -> Config {
    let mut config = settings(folder);
    config.model.width = Some(40);
    config.train.batches_per_epoch = None;
    (config.train.epochs, config.train.warmup_epochs, config.train.noise) = (200, 0, 0.0);
    (config.train.keep, config.train.patience, config.train.cooldown) = (Keep::Best, 6, 0);
    config
}

/// Trains to the end, and through a file at `stop` steps. Returns the state at the end, what was kept, and its model.
fn finished(
    folder: &tempfile::TempDir,
    config: &Config,
    data: &Dataset,
    stop: Option<u64>,
) -> (State, Kept, ModelFile) {
    let engine = engines::cpu();
    let mut flows = vec![flow(config, data, &engine)];
    let mut state = None;
    if let Some(stop) = stop {
        let mut first = crate::rooms::begin(&flows[0], config, data).unwrap();
        advance(&mut first, stop);
        assert!(!first.is_done());
        state = Some(through_a_file(folder, &flows[0], data, first.state().unwrap()));
        flows.push(flow(config, data, &engine));
    }
    let last = flows.last().unwrap();
    let mut trainer = crate::rooms::begin(last, config, data).unwrap();
    state.iter().for_each(|state| trainer.restore(state).unwrap());
    while !trainer.is_done() {
        trainer.step().unwrap();
        if trainer.at_epoch_end() {
            trainer.finish_epoch().unwrap();
        }
    }
    let state = trainer.state().unwrap();
    // It is known that no step is left, however early that is.
    let progress = trainer.progress();
    assert_eq!((progress.epochs, progress.steps), (state.position.epoch, state.position.step));
    let kept = trainer.finish().unwrap();
    assert!(trainer.is_done());
    (state, kept, last.to_file().unwrap())
}

#[test]
fn a_training_that_lost_patience_cools_down_from_the_best_epoch() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting(&folder);
    // A noisy parabola at a high rate: the best epoch is not settled.
    let mut values = vec![0.0; 400 * 2];
    fill_normals(3, Stream::Data, 0, 0, &mut values);
    values.chunks_exact_mut(2).for_each(|row| row[1] = row[0] * row[0] + 0.3 * row[1]);
    Table::new(vec![], 2, values).unwrap().write(config.data.path.as_ref().unwrap(), hintflow::Overwrite::Yes).unwrap();
    (config.data.validation, config.train.batch, config.train.lr) = (Some(0.25), Some(20), 0.02);
    let data = Dataset::load(&config, None).unwrap();
    let (_, stopped, _) = finished(&folder, &config, &data, None);
    config.train.cooldown = 9;
    let (state, kept, file) = finished(&folder, &config, &data, None);
    let cooldown = Cooldown { start: stopped.epochs, from: stopped.epoch };
    assert_eq!((kept.cooldown, kept.epochs, kept.stopped_early), (Some(cooldown), stopped.epochs + 9, true));
    // One of its epochs is better than all before it.
    assert!(kept.epoch > stopped.epochs && kept.test_loss < stopped.test_loss, "{kept:?} {stopped:?}");

    // It begins with the weights of the best epoch and ends with the smallest rate.
    let engine = engines::cpu();
    let other = flow(&config, &data, &engine);
    let mut trainer = crate::rooms::begin(&other, &config, &data).unwrap();
    let mut last = None;
    while !trainer.is_done() {
        trainer.step().unwrap();
        if trainer.at_epoch_end() {
            last = Some(trainer.finish_epoch().unwrap());
            if trainer.position().epoch == stopped.epochs {
                let state = trainer.state().unwrap();
                let best = state.best.unwrap();
                assert!(best.epoch == stopped.epoch && state.weights == best.weights);
                assert!(state.first_moments.iter().chain(&state.second_moments).all(|&m| m == 0.0));
                assert_eq!(trainer.progress().epochs, stopped.epochs + 9);
            }
        }
    }
    assert!((last.unwrap().learning_rate / config.train.lr_final - 1.0).abs() < 1e-9);

    // Stopped right before it begins, right after, and within it.
    let batches = 300 / 20;
    for stop in [batches * stopped.epochs - 1, batches * stopped.epochs, batches * (stopped.epochs + 4) + 2] {
        let (state_too, kept_too, file_too) = finished(&folder, &config, &data, Some(stop));
        assert!(state_too == state && kept_too == kept && file_too.weights == file.weights, "stopped at step {stop}");
    }
}

#[test]
fn the_best_epoch_is_kept_and_the_training_stops_after_it() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting(&folder);
    let data = Dataset::load(&config, None).unwrap();
    // The losses of all epochs, by hand.
    let engine = engines::cpu();
    let other = flow(&config, &data, &engine);
    config.train.patience = 0;
    let mut trainer = crate::rooms::begin(&other, &config, &data).unwrap();
    let mut losses = Vec::new();
    let mut models = Vec::new();
    while losses.len() < 60 {
        trainer.step().unwrap();
        if trainer.at_epoch_end() {
            losses.push(trainer.finish_epoch().unwrap().validation_loss.unwrap());
            models.push(other.to_file().unwrap().weights);
        }
    }
    // The first epoch that is not beaten by any of the six after it.
    let least = |losses: &[f64]| losses.iter().copied().fold(f64::INFINITY, f64::min);
    let stops = (7..losses.len()).find(|&e| least(&losses[..e - 6]) <= least(&losses[e - 6..e])).expect("an early end");
    let best = losses.iter().position(|&loss| loss == least(&losses[..stops])).unwrap();
    assert_eq!(stops, best + 7);

    config.train.patience = 6;
    let (state, kept, file) = finished(&folder, &config, &data, None);
    assert_eq!((kept.epoch, kept.epochs, kept.stopped_early), (best as u64 + 1, stops as u64, true));
    assert_eq!(kept.test_loss, Some(losses[best]));
    assert!(file.weights == models[best], "the model is that of another epoch");
    assert!(state.weights == models[stops - 1] && state.weights != file.weights);
    // The model scores the held-out rows as was said.
    let again = Flow::from_file(file.clone(), &engine).unwrap();
    let score = crate::rooms::begin(&again, &config, &data).unwrap().score().unwrap();
    assert_eq!(score.unzip(), (kept.test_loss, kept.ll));

    // Before the best epoch, within it, right after it, and while waiting for a better one.
    // 54 training rows in batches of 13.
    let batches = 4;
    for stop in [1, batches * best as u64 + 2, batches * (best as u64 + 1), batches * (best as u64 + 3) + 1] {
        let (state_too, kept_too, file_too) = finished(&folder, &config, &data, Some(stop));
        assert!(
            state_too == state && kept_too == kept && file_too.weights == file.weights,
            "stopped after step {stop}"
        );
    }

    config.train.keep = Keep::Last;
    let (state, kept, file) = finished(&folder, &config, &data, Some(9));
    assert_eq!((kept.epoch, kept.epochs, kept.stopped_early), (stops as u64, stops as u64, true));
    assert!(file.weights == state.weights && state.best.unwrap().weights.is_empty());
}

#[test]
fn without_held_out_rows_the_last_model_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting(&folder);
    config.data.validation = None;
    config.train.epochs = 9;
    let data = Dataset::load(&config, None).unwrap();
    let (state, kept, file) = finished(&folder, &config, &data, None);
    assert_eq!((kept.epoch, kept.epochs, kept.stopped_early, kept.ll), (9, 9, false, None));
    assert!(file.weights == state.weights && state.best.is_none());
}

/// With moments at zero Adam begins anew, so that the first step of a cool-down is the first step of a training from
/// there.
#[test]
fn the_first_step_of_a_cooldown_is_that_of_a_new_training() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting(&folder);
    config.train.cooldown = 9;
    // Every epoch takes all 54 rows in the same order.
    (config.train.batch, config.train.shuffle) = (Some(18), false);
    let data = Dataset::load(&config, None).unwrap();
    let engine = engines::cpu();
    let cooled = flow(&config, &data, &engine);
    let mut trainer = crate::rooms::begin(&cooled, &config, &data).unwrap();
    while trainer.cooldown().is_none() {
        let until = trainer.position().step + 1;
        advance(&mut trainer, until);
    }
    let begun = cooled.to_file().unwrap();
    trainer.step().unwrap();
    let stepped = trainer.state().unwrap();
    while !trainer.at_epoch_end() {
        trainer.step().unwrap();
    }
    let rate = trainer.finish_epoch().unwrap().learning_rate;

    config.train.lr = rate;
    let anew = Flow::from_file(begun, &engine).unwrap();
    let mut trainer = crate::rooms::begin(&anew, &config, &data).unwrap();
    trainer.step().unwrap();
    let expected = trainer.state().unwrap();
    assert!(stepped.first_moments == expected.first_moments);
    assert!(stepped.weights == expected.weights);
}

#[test]
fn where_the_last_model_is_kept_it_is_that_which_cooled_down() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting(&folder);
    (config.train.keep, config.train.cooldown) = (Keep::Last, 9);
    let data = Dataset::load(&config, None).unwrap();
    let (state, kept, file) = finished(&folder, &config, &data, None);
    let Some(Cooldown { start, from }) = kept.cooldown else { panic!("it did not cool down") };
    assert_eq!((kept.epoch, kept.epochs), (start + 9, start + 9));
    assert!(file.weights == state.weights);

    // Up to the cool-down, and on from it, it is the training that keeps the best model.
    config.train.keep = Keep::Best;
    let (other, ..) = finished(&folder, &config, &data, None);
    assert!(other == state && other.cooldown == Some(Cooldown { start, from }));
    config.train.keep = Keep::Last;
    let (state_too, kept_too, _) = finished(&folder, &config, &data, Some(4 * start + 2));
    assert!(state_too == state && kept_too == kept);
}

/// Stops a run in the middle of an epoch.
struct StopsIn<'a> {
    epoch: u64,
    stop: &'a AtomicBool,
}

impl Observer for StopsIn<'_> {
    fn progress(&mut self, progress: &Progress) {
        self.stop.fetch_or(progress.epoch == self.epoch, Ordering::Relaxed);
    }
}

/// Begins a run, or goes on with it where the folder is one, and stops it in an epoch; 0 is none.
fn ran(config: &Config, out: &Path, stop_in: u64) -> Outcome {
    let (stop, engine) = (AtomicBool::new(false), engines::cpu());
    let options = Options { command: &[], overwrite: hintflow::Overwrite::No, stop: &stop };
    let mut observer = StopsIn { epoch: stop_in, stop: &stop };
    let outcome = if out.exists() {
        run::resume(out, run::settings_of(out).unwrap(), &engine, options, &mut observer)
    } else {
        let mut config = config.clone();
        config.run.out = Some(out.into());
        run::start(config, &engine, options, &mut observer)
    };
    let outcome = outcome.unwrap();
    assert_eq!(outcome.finished, stop_in == 0);
    outcome
}

/// Settings of runs with epochs of 13 batches: the loss is read in the middle of an epoch, too, where a run can be
/// stopped.
fn overfitting_run(folder: &tempfile::TempDir) -> Config {
    let mut config = overfitting(folder);
    config.train.batch = Some(4);
    config
}

#[test]
fn a_run_stopped_while_it_cools_down_ends_with_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting_run(&folder);
    config.train.cooldown = 5;
    let [whole, stopped] = ["whole", "stopped"].map(|name| folder.path().join(name));
    let expected = ran(&config, &whole, 0);
    let kept = expected.kept.unwrap();
    let Some(Cooldown { start, .. }) = kept.cooldown else { panic!("it did not cool down") };
    assert_eq!((kept.epochs, kept.stopped_early), (start + 5, true));

    // Before it begins, in its first epoch, and in its third.
    for epoch in [start, start + 1, start + 3] {
        let outcome = ran(&config, &stopped, epoch);
        assert_eq!(outcome.step, 13 * (epoch - 1) + 10);
    }
    let outcome = ran(&config, &stopped, 0);
    assert_eq!((outcome.step, outcome.kept), (expected.step, expected.kept));
    let model = |run: &Path| std::fs::read(run.join("model.safetensors")).unwrap();
    assert!(model(&whole) == model(&stopped));
    let newest = |run: &Path| Store::new(run.join("checkpoints")).latest().unwrap().unwrap().0;
    assert!(newest(&whole).state == newest(&stopped).state);
}

/// Such a run had no cool-down, and none of the later settings of the optimiser, whatever tables have now.
#[test]
fn a_run_from_before_there_was_a_cooldown_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = overfitting_run(&folder);
    config.train.retries = 0;
    let [whole, old] = ["whole", "old"].map(|name| folder.path().join(name));
    let expected = ran(&config, &whole, 0);
    ran(&config, &old, 2);

    let without = |text: &str| {
        [
            "cooldown = 0",
            "retries = 0",
            "schedule = \"exponential\"",
            "warmup_steps = 0",
            "clip_norm = 0.0",
            "decay = 0.0",
            "average = 0.0",
        ]
        .iter()
        .fold(text.to_owned(), |text, line| {
            let shorter = text.replacen(&format!("{line}\n"), "", 1);
            assert!(shorter.len() < text.len(), "no {line} in {text}");
            shorter
        })
    };
    let settings = old.join("config.toml");
    std::fs::write(&settings, without(&std::fs::read_to_string(&settings).unwrap())).unwrap();
    for (_, path) in Store::new(old.join("checkpoints")).files().unwrap() {
        let mut checkpoint = Checkpoint::read(&path).unwrap();
        checkpoint.about.config = without(&checkpoint.about.config);
        checkpoint.write(&path).unwrap();
    }
    let outcome = ran(&config, &old, 0);
    assert_eq!((outcome.step, outcome.kept), (expected.step, expected.kept));
}

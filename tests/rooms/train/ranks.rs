//! Trainings that several ranks share end with the bits of one process alone. Ranks are threads here; `tests/mpi.sh` has
//! the same of processes.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use super::{flow, settings, with_everything, with_splines};
use hintflow::comm::collective::tests::on_ranks;
use hintflow::config::{Config, Given, Memory};
use hintflow::plan::{Kind, Mixing};
use hintflow::rng::{Stream, fill_normals};
use hintflow::train::run::{self, Options};
use hintflow::train::{Dataset, State};
use hintflow::{Engine, Overwrite};

/// Settings for 1800 rows of 5 columns, the last two of them conditions unless the model is a `flow`.
fn config(folder: &tempfile::TempDir, kind: Kind) -> Config {
    let mut config = settings(folder);
    let mut values = vec![0.0; 2000 * 5];
    fill_normals(3, Stream::Data, 0, 0, &mut values);
    let table = hintflow::data::Table::new(vec![], 5, values).unwrap();
    table.write(config.data.path.as_ref().unwrap(), Overwrite::Yes).unwrap();
    config.model.kind = kind;
    if kind != Kind::Flow {
        config.data.given = Some(Given::of_text("4,5"));
    }
    // Groups of unequal size, whose number is no power of two.
    (config.train.batch, config.train.batches_per_epoch, config.train.epochs) = (Some(700), Some(4), 2);
    config
}

fn one_thread() -> Engine {
    Engine::cpu_with_threads(1).unwrap()
}

/// What an epoch reports, as bits, and the state after it, on each of so many ranks.
fn trained(config: &Config, size: usize, from: Option<&State>, until: u64) -> Vec<(Vec<[u64; 2]>, State)> {
    on_ranks(size, |world| {
        let data = Dataset::load(config, None).unwrap();
        let flow = flow(config, &data, &one_thread().with_ranks(world));
        let mut trainer = crate::rooms::begin(&flow, config, &data).unwrap();
        if let Some(state) = from {
            trainer.restore(state).unwrap();
        }
        let reports = super::advance(&mut trainer, until);
        (reports, trainer.state().unwrap())
    })
}

/// A kind of model, and what is changed in its settings.
type Changed = (Kind, fn(&mut Config));

#[test]
fn weights_do_not_depend_on_the_number_of_ranks() {
    let change: [Changed; 5] = [
        (Kind::Flow, |_| ()),
        (Kind::Flow, |config| {
            with_everything(config);
            (config.train.noise, config.model.mixing) = (0.1, Mixing::Householder);
        }),
        (Kind::Flow, |config| config.train.memory = Memory::Reversible),
        (Kind::Cinn, with_splines),
        (Kind::Hint, |config| config.train.dropout = Some(0.2)),
    ];
    for (kind, change) in change {
        let folder = tempfile::tempdir().unwrap();
        let mut config = config(&folder, kind);
        change(&mut config);
        config.model.kind = kind;
        let alone = trained(&config, 1, None, 8).remove(0);
        assert!(alone.0.len() == 2 && alone.1.weights.iter().all(|weight| weight.is_finite()));
        for size in [2, 3, 4, 8] {
            let all = trained(&config, size, None, 8);
            assert!(all.iter().all(|one| one.0 == alone.0), "scores of {kind:?} on {size} ranks");
            assert!(all.iter().all(|one| one.1 == alone.1), "weights of {kind:?} on {size} ranks");
        }
        // Two ranks stop within an epoch, and three go on.
        let stopped = trained(&config, 2, None, 5).remove(1).1;
        assert!(trained(&config, 3, Some(&stopped), 8).iter().all(|one| one.1 == alone.1), "{kind:?} resumed");
    }
}

/// A batch of whole samples is not cut.
#[test]
fn an_inn_is_trained_by_every_rank() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder, Kind::Inn);
    (config.train.batch, config.data.regression, config.model.mixing) = (Some(200), false, Mixing::Fixed);
    config.model.depth = hintflow::plan::Depth::Levels(0);
    // The best epoch of a state has no LL, which is no number and not equal to itself.
    let arrays = |state: &State| [&state.weights, &state.first_moments, &state.second_moments].map(Vec::clone);
    let alone = trained(&config, 1, None, 4).remove(0);
    for one in trained(&config, 2, None, 4) {
        assert!(one.0 == alone.0, "scores");
        assert!(arrays(&one.1) == arrays(&alone.1), "weights");
    }
}

#[test]
fn a_rank_that_would_train_something_else_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(&folder, Kind::Flow);
    let refused = |change: fn(&mut Config)| {
        let told = on_ranks(3, |world| {
            let mut config = config.clone();
            if world.rank() == 2 {
                change(&mut config);
            }
            let data = Dataset::load(&config, None).unwrap();
            let flow = flow(&config, &data, &one_thread().with_ranks(world));
            crate::rooms::begin(&flow, &config, &data).unwrap_err().to_string()
        });
        assert!(told.iter().all(|text| text == &told[0] && text.starts_with("rank 2 on ")), "{told:?}");
        told[0].clone()
    };
    assert!(refused(|config| config.train.seed = 7).contains(" has another seed than rank 0 on "));
    assert!(refused(|config| config.train.lr *= 2.0).contains(" has another settings than"));
    let other = |config: &mut Config| {
        let path = config.data.path.as_mut().unwrap();
        path.set_file_name("other.npy");
        let table = hintflow::data::Table::new(vec![], 5, (0..10_000).map(|i| (i as f32).sin()).collect()).unwrap();
        table.write(path, Overwrite::Yes).unwrap();
    };
    assert!(refused(other).contains(" has another data than"));
}

/// Runs a training in a folder on so many ranks, or goes on with it.
fn run_in(folder: &Path, config: &Config, size: usize, resume: bool) -> Vec<run::Outcome> {
    on_ranks(size, |world| {
        let engine = one_thread().with_ranks(world);
        let options = Options { command: &[], overwrite: Overwrite::No, stop: &AtomicBool::new(false) };
        let config = if resume { run::settings_of(folder).unwrap() } else { config.clone() };
        match resume {
            true => run::resume(folder, config, &engine, options, &mut ()).unwrap(),
            false => run::start(config, &engine, options, &mut ()).unwrap(),
        }
    })
}

#[test]
fn one_rank_writes_the_run_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut config = config(&folder, Kind::Hint);
    let mut models = Vec::new();
    for size in [1, 3] {
        let out = folder.path().join(format!("run{size}"));
        config.run.out = Some(out.clone());
        let outcomes = run_in(&out, &config, size, false);
        assert!(outcomes.iter().all(|outcome| outcome.finished));
        assert!(outcomes.iter().all(|outcome| outcome.kept == outcomes[0].kept));
        assert!(outcomes[0].folder == out && outcomes[1..].iter().all(|outcome| outcome.folder == Path::new("")));
        models.push(std::fs::read(out.join("model.safetensors")).unwrap());
        let lines = std::fs::read_to_string(out.join("metrics.csv")).unwrap().lines().count();
        assert_eq!(lines, 1 + config.train.epochs as usize);
        // Nothing is left to do, which all ranks see.
        assert!(run_in(&out, &config, size, true).iter().all(|outcome| outcome.finished));
    }
    assert!(models[0] == models[1], "model files differ");
}

use super::*;
use crate::config::{Layers, preset};
use crate::data::Table;
use crate::engine::Engine;
use crate::eval::mmd::Mmd;
use crate::plan::Mixing;
use crate::rng::{self, Stream};

/// Little of everything.
const SMALL: Protocol = Protocol { batches: 2, batch_rows: 300, fitted: 20, correlated: 1000, draws: 2000 };

fn quiet() -> impl FnMut(&str) -> Result<()> {
    |_: &str| Ok(())
}

/// Settings of a preset with small held-out data.
fn settings(assignments: &[&str]) -> Config {
    let mut layers = Layers::new();
    let all = ["data.preset=lens", "data.test_rows=500", "model.blocks=1", "model.width=8"];
    layers.assignments(&all.map(str::to_owned)).unwrap();
    layers.assignments(&assignments.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>()).unwrap();
    layers.resolve().unwrap()
}

/// A model with random weights, as a training begins, and its scores.
fn untrained(config: &Config, dim: u32, cond_dim: u32, store: &Path) -> Scores {
    let spec = config.model.spec(dim, cond_dim).unwrap();
    let flow = crate::flow::FlowBuilder::from_spec(spec).seed(1).build(&Engine::cpu().unwrap()).unwrap();
    let data = dataset(config, &flow.to_file().unwrap()).unwrap();
    measure(&flow, config, &data, &SMALL, store, &mut quiet()).unwrap()
}

#[test]
fn a_normal_table_scores_as_the_normal_distribution_does() {
    let (rows, dim) = (20_000, 3);
    let protocol = Protocol { correlated: rows / 2, ..SMALL };
    let mut values = vec![0.0; rows * dim];
    rng::fill_normals(7, Stream::TestNoise, 0, 0, &mut values);
    let config = Config {
        data: crate::config::Data { standardize: false, squash: None, ..preset::for_tables().data },
        ..preset::for_tables()
    };
    let table = |values: &[f32]| Table::new(vec![], dim, values.to_vec()).unwrap();
    let (train, test) = values.split_at(rows / 2 * dim);
    let data = Dataset::from_tables(&config, "normal", table(train), Some(table(test))).unwrap();
    // Small weights: the model is the identity, which leaves the normal distribution as it is.
    let flow = Flow::builder(3)
        .blocks(1)
        .width(4)
        .mixing(Mixing::None)
        .seed(1)
        .init_sigma(1e-4)
        .build(&Engine::cpu().unwrap())
        .unwrap();
    let scores = measure(&flow, &config, &data, &protocol, Path::new("unused"), &mut quiet()).unwrap();

    let entropy = 1.5 * (1.0 + std::f64::consts::TAU.ln());
    assert!((scores.log_density.unwrap() + entropy).abs() < 0.1, "{scores:?}");
    assert!((scores.ll.unwrap() + 0.5).abs() < 0.03, "{scores:?}");
    assert!(scores.corr.unwrap() < 0.03 && scores.mmd.unwrap() < 0.02, "{scores:?}");
    assert_eq!((scores.iou, scores.hausdorff, scores.not_finite), (None, None, 0));

    // A model that stretches its samples is seen.
    let mut file = flow.to_file().unwrap();
    file.weights.iter_mut().for_each(|w| *w = 0.8);
    let stretched = Flow::from_file(file, flow.engine()).unwrap();
    let worse = measure(&stretched, &config, &data, &protocol, Path::new("unused"), &mut quiet()).unwrap();
    assert!(worse.ll.unwrap() < scores.ll.unwrap() && worse.mmd.unwrap() > 2.0 * scores.mmd.unwrap(), "{worse:?}");
}

#[test]
fn mmd_of_a_table_is_that_of_its_samples() {
    let (rows, dim) = (400, 2);
    let mut values = vec![0.0; 2 * rows * dim];
    rng::fill_normals(3, Stream::TestNoise, 0, 0, &mut values);
    let config = Config {
        data: crate::config::Data { standardize: false, squash: None, ..preset::for_tables().data },
        ..preset::for_tables()
    };
    let table = |values: &[f32]| Table::new(vec![], dim, values.to_vec()).unwrap();
    let (train, test) = values.split_at(rows * dim);
    let data = Dataset::from_tables(&config, "normal", table(train), Some(table(test))).unwrap();
    let flow = Flow::builder(2).blocks(1).width(4).seed(1).build(&Engine::cpu().unwrap()).unwrap();
    let one = Protocol { batches: 1, batch_rows: rows, ..SMALL };
    let scores = measure(&flow, &config, &data, &one, Path::new("unused"), &mut quiet()).unwrap();
    let by_hand = Mmd::of(&flow.sample(rows, config.train.seed).unwrap(), test, dim).unwrap().squared;
    assert!((scores.mmd.unwrap() - by_hand).abs() < 1e-12);
}

#[test]
fn shapes_have_every_measure() {
    let folder = tempfile::tempdir().unwrap();
    let scores = untrained(&settings(&[]), 20, 0, folder.path());
    for metric in Metric::ALL {
        assert!(metric.of(&scores).is_some_and(f64::is_finite), "{}: {scores:?}", metric.name());
    }
    // Coefficients from the normal distribution are no Lens.
    assert!(scores.mmd.unwrap() > 0.1 && scores.iou.unwrap() < 0.9 && scores.hausdorff.unwrap() > 0.3, "{scores:?}");
    assert!(std::fs::read_dir(folder.path()).unwrap().next().is_none(), "no draws are accepted for a flow");
}

#[test]
fn correlations_are_of_the_rows_that_are_scored() {
    let config = settings(&["model.kind=hint", "data.test_noise=0.05", "train.seed=9"]);
    let spec = config.model.spec(20, 2).unwrap();
    let flow = crate::flow::FlowBuilder::from_spec(spec).seed(1).build(&Engine::cpu().unwrap()).unwrap();
    let data = dataset(&config, &flow.to_file().unwrap()).unwrap();
    let shapes = config.data.preset.and_then(|preset| preset.shapes(config.data.outline)).unwrap();
    let (x, y) = held_out(shapes, &config, 500, true).unwrap();
    let rows =
        y.unwrap().chunks_exact(2).zip(x.chunks_exact(20)).flat_map(|(y, x)| [y, x].concat()).collect::<Vec<_>>();
    assert_eq!(rows, data.test);
    assert_eq!(held_out(shapes, &config, 500, false).unwrap(), (x, None));
}

#[test]
fn conditional_models_are_held_against_accepted_draws() {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(&["model.kind=hint"]);
    let scores = untrained(&config, 20, 2, folder.path());
    assert!(Metric::ALL.into_iter().all(|metric| metric.of(&scores).is_some()), "{scores:?}");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), SMALL.batches, "one file an observation");
    // The second time they are read.
    assert_eq!(untrained(&config, 20, 2, folder.path()), scores);
}

#[test]
fn samples_that_are_no_numbers_are_counted_and_make_nothing_better() {
    let config = settings(&[]);
    let spec = config.model.spec(20, 0).unwrap();
    let flow = crate::flow::FlowBuilder::from_spec(spec).seed(1).build(&Engine::cpu().unwrap()).unwrap();
    let mut file = flow.to_file().unwrap();
    file.weights.iter_mut().for_each(|w| *w = 1e30);
    let data = dataset(&config, &file).unwrap();
    let flow = Flow::from_file(file, flow.engine()).unwrap();
    let scores = measure(&flow, &config, &data, &SMALL, Path::new("unused"), &mut quiet()).unwrap();
    assert_eq!(scores.not_finite, SMALL.correlated, "each is counted once");
    assert_eq!((scores.mmd, scores.iou, scores.corr), (None, None, None));
}

#[test]
fn protocols_that_leave_nothing_are_refused() {
    let broken = [
        Protocol { batch_rows: 1, ..SMALL },
        Protocol { fitted: 0, ..SMALL },
        Protocol { correlated: 1, ..SMALL },
        Protocol { fitted: 1001, ..SMALL },
        Protocol { draws: 299, ..SMALL },
    ];
    for protocol in broken {
        assert!(matches!(protocol.check(true), Err(Error::Argument { .. } | Error::Config { .. })), "{protocol:?}");
    }
    Protocol { draws: 299, ..SMALL }.check(false).unwrap();
    let no_mmd = Protocol { batches: 0, draws: 0, ..SMALL };
    [SMALL, no_mmd, Protocol::QUICK, Protocol::PAPER].iter().for_each(|p| p.check(true).unwrap());
}

#[test]
fn a_measurement_ends_where_it_is_told_to() {
    let folder = tempfile::tempdir().unwrap();
    let config = settings(&["model.kind=hint"]);
    let flow = crate::flow::FlowBuilder::from_spec(config.model.spec(20, 2).unwrap());
    let flow = flow.seed(1).build(&Engine::cpu().unwrap()).unwrap();
    let data = dataset(&config, &flow.to_file().unwrap()).unwrap();
    let mut heard = Vec::new();
    let mut tell = |what: &str| {
        heard.push(what.to_owned());
        if what.starts_with("ABC") { Err(Error::Stopped) } else { Ok(()) }
    };
    let result = measure(&flow, &config, &data, &SMALL, folder.path(), &mut tell);
    assert!(matches!(result, Err(Error::Stopped)), "{result:?}");
    assert!(heard.len() == 4 && heard[3] == "ABC: 2000 draws", "{heard:?}");
}

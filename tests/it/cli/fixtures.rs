//! Three Adam steps through the real training path against the independent implementation (docs/model.md, Fixtures).

use hintflow::data::Table;

use crate::cli::tool::Place;
use crate::common::compare::{Tolerance, assert_close};
use crate::common::fixture::{Fixture, read};

/// The paper's optimiser, which the fixtures have and tables with splines have not.
const PAPER: [&str; 8] = [
    "train.beta2=0.95",
    "train.eps=1e-4",
    "train.l2=1.86e-5",
    "train.clip_norm=0",
    "train.average=0",
    "train.dropout=0",
    "train.decay=0",
    "train.schedule=exponential",
];

fn check(name: &str, device: &str) {
    let fixture = Fixture::load(name);
    let place = Place::new();
    let x: Vec<f32> = fixture.x().iter().map(|&v| v as f32).collect();
    let dim = fixture.spec.dim;
    Table::new(vec![], dim, x).and_then(|x| x.write(place.path("x.npy"), hintflow::Overwrite::No)).expect("x.npy");
    let model = fixture.model_path();
    let mut args =
        vec!["train", "x.npy", "--device", device, "--out", "out", "--init", model.to_str().expect("a path")];
    for set in [
        "train.epochs=3",
        "train.batches_per_epoch=1",
        "train.batch=24",
        "train.shuffle=false",
        "train.noise=0",
        "train.lr=0.001",
        "train.lr_final=0.001",
        "train.warmup_epochs=0",
        "data.standardize=false",
        "data.validation=0",
    ] {
        args.extend(["--set", set]);
    }
    if name.contains("spline") {
        args.extend(PAPER.iter().flat_map(|set| ["--set", set]));
    }
    place.run(&args).good();
    let manifest: serde_json::Value = serde_json::from_str(&place.text("out/manifest.json")).expect("JSON");
    assert_eq!(manifest["device"]["engine"], device);

    let (_, trained) = read(&place.path("out/model.safetensors"));
    let (_, before) = read(&model);
    for (tensor, wanted) in fixture.group("adam3.") {
        let Some(got) = trained.get(&tensor).filter(|t| !t.data.is_empty()) else { continue };
        assert_close(&tensor, &got.data, &wanted.data, Tolerance::relative(1e-3).floor(1e-6));
        let trains = !tensor.ends_with("mix.weight");
        assert_eq!(before[&tensor].data != got.data, trains, "whether {tensor} changes");
    }
}

macro_rules! fixtures {
    ($($name:ident),* $(,)?) => {
        mod cpu {
            $(#[test] fn $name() { super::check(stringify!($name), "cpu"); })*
        }
        mod gpu {
            $(#[test] fn $name() { super::check(stringify!($name), "gpu"); })*
        }
    };
}

fixtures!(
    flow_n100_depth2,
    flow_n1_nomix,
    flow_n20_depth0,
    flow_n20_full_input,
    flow_n20_full_output,
    flow_n3_exp,
    flow_n7_householder,
    flow_n1_spline,
    flow_n2_spline_reverse,
    flow_n20_spline_reverse,
    flow_n33_spline_depth1,
    flow_n7_spline_permutation_output,
);

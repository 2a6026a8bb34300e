//! The invertible network of Ardizzone et al. 2018 as a user meets it: it trains and draws samples, and says of what it has
//! no density for that it has none.

use super::tool::Place;
use hintflow::data::Table;

const SMALL: &str = "--device cpu --epochs 4 --set model.blocks=2 --set model.width=8 --set train.batch=50";

#[test]
fn an_inn_draws_samples_and_has_no_density() {
    let place = Place::new();
    place.pairs(200);
    place.line(&format!("train x.csv --given y.csv --set model.kind=inn --out inn {SMALL}")).good();
    place.line("sample inn --given y.csv -n 3 -o samples.csv --device cpu").good();
    let samples = Table::read(place.path("samples.csv")).unwrap();
    assert_eq!((samples.rows(), samples.dim()), (600, 3));
    assert!(samples.values().iter().all(|v| v.is_finite()));
    place.line("train --config inn/config.toml --out again").good();
    assert!(place.read("again/model.safetensors") == place.read("inn/model.safetensors"));
    // Forth and back.
    let checked = place.line("check inn x.csv --given y.csv --device cpu");
    // It has hardly learnt anything.
    assert!(matches!(checked.code, Some(0 | 5)), "{}", checked.stderr);
    assert!(
        checked.stdout.contains("inverse(forward(x)) - x") && checked.stdout.contains("no density"),
        "{}",
        checked.stdout
    );
    for command in ["log-prob inn x.csv --given y.csv", "encode inn x.csv --given y.csv -o z.csv"] {
        let done = place.line(&format!("{command} --device cpu"));
        assert!(done.code != Some(0) && done.stderr.contains("density"), "{command}: {}", done.stderr);
    }
}

#[test]
fn what_an_inn_cannot_be_is_told() {
    let place = Place::new();
    place.pairs(50);
    let told = |set: &str, word: &str| {
        let done = place.line(&format!("train x.csv --given y.csv --set model.kind=inn {set} --out no {SMALL}"));
        assert!(done.code != Some(0) && done.stderr.contains(word), "{set}: {}", done.stderr);
    };
    told("--set model.coupling=spline", "model.coupling");
    told("--set model.mixing=householder", "model.mixing");
    told("--set model.depth=full", "model.depth");
    told("--set data.regression=true", "data.regression");
    told("--memory reversible", "train.memory");
    told("--set train.inverse_from=2", "train.inverse_from");
    let done = place.line(&format!("train x.csv --set train.latent_loss=3 --out no {SMALL}"));
    assert!(done.code != Some(0) && done.stderr.contains("train.latent_loss"), "{}", done.stderr);
}

//! That nothing hides a bad density: the last words of every command that scores rows.

use crate::cli::tool::Place;
use crate::common::fixture::rewrite;
use crate::common::oracle::is_trained;

const TRAIN: &str = "--device cpu --epochs 2 --set model.width=8 --set model.blocks=2";

/// What is told beside the mean.
const WORDS: [&str; 4] =
    ["median", "lowest log-densities: row", "nats below a Gaussian", "samples are more than 10 times"];

fn holds(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

impl Place {
    /// A model whose networks have gone wild, as `name`.
    fn broken(&self, name: &str) {
        rewrite(&self.path("run/model.safetensors"), &self.path(name), |_, tensors| {
            for (_, tensor) in tensors.iter_mut().filter(|(name, _)| is_trained(name)) {
                tensor.data.iter_mut().for_each(|w| *w *= 300.0);
            }
        });
    }
}

#[test]
fn a_training_ends_with_its_worst_rows_and_samples() {
    let place = Place::new();
    place.table("table.csv", 120, 3);
    let done = place.line(&format!("train table.csv --out run {TRAIN}")).good();
    holds(&done.stderr, &WORDS);
    holds(&done.stderr, &["held-out rows of table.csv: log-density: rows 12  mean"]);
    let manifest: serde_json::Value = serde_json::from_str(&place.text("run/manifest.json")).unwrap();
    let density = &manifest["density"];
    assert_eq!((&density["rows"], &density["not_finite"]), (&12.into(), &0.into()));
    assert!(density["samples"]["drawn"].as_u64() >= Some(2000), "{density}");
    // Rows have their number in the table.
    let scores = place.line("log-prob run table.csv --device cpu").good().stdout;
    let scores: Vec<f64> = scores.lines().map(|line| line.parse().unwrap()).collect();
    let worst = density["worst"].as_array().unwrap();
    assert_eq!(worst.len(), 3);
    for row in worst {
        let (number, told) = (row["row"].as_u64().unwrap() as usize, row["log_prob"].as_f64().unwrap());
        assert!((scores[number - 1] - told).abs() < 1e-3, "row {number}: {told}");
    }
    let mean = density["mean"].as_f64().unwrap();
    let ll = manifest["ll"].as_f64().unwrap();
    assert!((mean - 3.0 * (ll - 0.918_938_5)).abs() < 1e-3, "{mean} {ll}");
    // A run that has nothing left to do tells it again.
    let again = place.line("train --resume run --device cpu").good().stderr;
    holds(&again, &WORDS);
    holds(&again, &["held-out rows of table.csv: log-density: rows 12  mean"]);
    // Without held-out rows it is about others, and says so.
    let done = place.line(&format!("train table.csv --out all {TRAIN} --set data.validation=0")).good();
    holds(&done.stderr, &["training rows (none are held out): log-density: rows 120"]);
}

#[test]
fn every_command_tells_more_than_a_mean() {
    let place = Place::new();
    place.trained();
    holds(&place.line("log-prob run table.csv --device cpu").good().stderr, &WORDS);
    let done = place.line("log-prob run table.csv -o s.csv --device cpu").good();
    assert!(done.stdout.starts_with("rows 120  mean"), "{}", done.stdout);
    holds(&done.stdout, &WORDS);
    holds(&place.line("check run table.csv --device cpu").good().stdout, &WORDS);
    holds(&place.line("evaluate run --quick --device cpu").good().stdout, &WORDS);
    let json = place.line("evaluate run --quick --json --device cpu").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let manifest: serde_json::Value = serde_json::from_str(&place.text("run/manifest.json")).unwrap();
    assert_eq!(json["density"]["worst"], manifest["density"]["worst"]);
    // A model of an earlier version remembers no rows: of it less is told.
    rewrite(&place.path("run/model.safetensors"), &place.path("old.safetensors"), |description, _| {
        description.as_object_mut().unwrap().remove("training").unwrap();
    });
    let text = place.line("log-prob old.safetensors table.csv --device cpu").good().stderr;
    holds(&text, &["median", "lowest log-densities: row"]);
    assert!(!text.contains("Gaussian") && !text.contains("samples"), "{text}");
    place.line("check old.safetensors table.csv --device cpu").good();
}

#[test]
fn a_broken_density_is_told_by_every_command() {
    let place = Place::new();
    place.trained_affine();
    place.broken("broken.safetensors");
    let words = ["warning: the density is broken", "row ", "train.lr"];
    holds(&place.line("log-prob broken.safetensors table.csv --device cpu").good().stderr, &words);
    let done = place.line("check broken.safetensors table.csv --device cpu");
    assert_eq!(done.code, Some(5), "{}", done.stdout);
    holds(&done.stderr, &words);
    let line = done.stdout.lines().find(|line| line.starts_with("rows more than 1,000 nats")).expect("a line");
    assert!(line.ends_with("FAILED"), "{line}");
    std::fs::rename(place.path("broken.safetensors"), place.path("run/model.safetensors")).unwrap();
    holds(&place.line("evaluate run --quick --device cpu").good().stderr, &words);
}

/// The densities of splines have bounds: such a model is far from its rows, but not by thousands of nats.
#[test]
fn splines_that_have_gone_wild_are_told_of() {
    let place = Place::new();
    place.trained();
    place.broken("broken.safetensors");
    let words = ["nats below a Gaussian fitted to the training rows (the worst: row ", "the model is wrong there"];
    holds(&place.line("log-prob broken.safetensors table.csv --device cpu").good().stderr, &words);
    let done = place.line("check broken.safetensors table.csv --device cpu");
    assert_eq!(done.code, Some(5), "{}", done.stdout);
    holds(&done.stderr, &words);
    std::fs::rename(place.path("broken.safetensors"), place.path("run/model.safetensors")).unwrap();
    holds(&place.line("evaluate run --quick --device cpu").good().stderr, &words);
}

#[test]
fn check_takes_rows_that_were_not_trained_on() {
    let place = Place::new();
    place.trained();
    let rows = |line: &str| -> (usize, String) {
        let done = place.line(&format!("check {line} --device cpu")).good();
        let (_, rest) = done.stdout.split_once("not finite, of ").expect("a number of rows");
        (rest.split_whitespace().next().unwrap().parse().unwrap(), done.stderr)
    };
    for run in ["run", "run/model.safetensors"] {
        let (count, text) = rows(&format!("{run} table.csv"));
        assert_eq!(count, 12);
        holds(&text, &["12 rows of 120 that the model was not trained on", "--all"]);
    }
    assert_eq!(rows("run table.csv --all").0, 120);
    // The same numbers in another file are the same table; another row more or less is none.
    place.write("copy.txt", place.text("table.csv").replace(',', " "));
    assert_eq!(rows("run copy.txt").0, 12);
    place.table("table.csv", 110, 3);
    assert_eq!(rows("run table.csv").0, 110);
    // Rows after those that were taken were not trained on either.
    place.table("table.csv", 120, 3);
    place.line(&format!("train table.csv --out some {TRAIN} --set data.rows=100")).good();
    assert_eq!(rows("some table.csv").0, 30);
    place.line(&format!("train table.csv --out all {TRAIN} --set data.validation=0")).good();
    let (count, text) = rows("all table.csv");
    assert_eq!(count, 120);
    holds(&text, &["was trained on rows of table.csv"]);
}

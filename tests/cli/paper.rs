//! `evaluate` and `reproduce`.

use crate::tool::Place;

/// Trainings of no use but for what is written about them.
const TINY: &str =
    "--set train.epochs=2 --set train.warmup_epochs=1 --set train.batches_per_epoch=3 --set data.test_rows=100";

#[test]
fn a_run_is_evaluated_on_its_own_data() {
    let place = Place::new();
    place.trained();
    let done = place.line("evaluate run --device cpu").good();
    for measure in ["LL", "log-likelihood", "MMD", "Corr"] {
        assert!(done.stdout.lines().any(|line| line.starts_with(measure)), "{measure}: {}", done.stdout);
    }
    assert!(!done.stdout.contains("IoU"), "a table has no shapes: {}", done.stdout);
    let json = place.line("evaluate run --device cpu --json --batches 1").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let manifest: serde_json::Value = serde_json::from_str(&place.text("run/manifest.json")).expect("JSON");
    assert_eq!(json["scores"]["ll"], manifest["ll"], "that of the training");
    assert_eq!(json["protocol"]["batches"], 1);

    place.line("evaluate run/model.safetensors").fails(1, &["run folder"]);
    place.line("evaluate missing").fails(1, &["missing"]);
    place.line("evaluate run --batch-rows 1").fails(2, &["batch_rows", "at least 2"]);
    assert!(!place.line("evaluate run --batches 0").good().stdout.contains("MMD"));
}

#[test]
fn a_figure_without_a_model_is_drawn_at_once() {
    let place = Place::new();
    let done = place.line("reproduce fourier --out paper --device cpu").good();
    assert_eq!(done.stdout.trim(), "paper/README.md");
    assert_eq!(place.names("paper/figures"), ["fourier.png", "fourier.svg"]);
    assert!(place.text("paper/README.md").contains("![fourier](figures/fourier.png)"));
    place.line("reproduce nothing").fails(2, &["nothing", "lens_unconditional", "fourier"]);
    place.line("reproduce fourier --runs 0 --out paper").fails(2, &["--runs"]);
}

#[test]
fn data_sets_without_files_are_named_in_their_rows() {
    let place = Place::new();
    place.line("reproduce uci --out paper --device cpu").good();
    let table = place.text("paper/tables/uci.md");
    let rows: Vec<_> = table.lines().filter(|line| line.contains("needs ")).collect();
    assert_eq!(rows.len(), 12, "{table}");
    assert!(
        rows[5].contains("needs MiniBooNE_PID.txt or miniboone/data.npy") && rows[5].contains("-14.547"),
        "{table}"
    );
    // A folder that holds none of them is no help.
    place.line("reproduce uci --out paper --device cpu --uci .").good();
    assert_eq!(place.text("paper/tables/uci.md"), table);
}

#[test]
fn tables_grow_and_nothing_is_trained_twice() {
    let place = Place::new();
    let command = |only: &str, more: &str| {
        format!("reproduce lens_unconditional --out paper --device cpu --only {only} {TINY} {more}")
    };
    let first = place.line(&command("rnvp-1", "")).good();
    assert!(first.stderr.contains("lens-rnvp-1-s1 (1 of 1)"), "{}", first.stderr);
    let table = place.text("paper/tables/lens_unconditional.md");
    let row = |text: &str, start: &str| {
        text.lines().find(|line| line.starts_with(start)).unwrap_or_else(|| panic!("{start}: {text}")).to_owned()
    };
    assert!(row(&table, "| 1 | RealNVP |").contains("0.370 ± 0.000"), "the paper's number: {table}");
    assert!(row(&table, "| 2 | recursive |").contains("not run"), "{table}");
    assert!(table.contains("train.epochs=2"), "what is not the experiment's own setting is told: {table}");
    let csv = place.text("paper/tables/lens_unconditional.csv");
    assert!(csv.lines().all(|line| line.split(',').count() == 11) && csv.lines().count() == 17, "{csv}");

    // The result is enough; without it the trained model is; and other models come beside it.
    let result = place.read("paper/results/lens-rnvp-1-s1.json");
    std::fs::remove_dir_all(place.path("paper/runs/lens-rnvp-1-s1")).unwrap();
    let second = place.line(&command("rnvp-1,recursive-1", "")).good();
    assert!(second.stderr.contains("lens-recursive-1-s1 (1 of 1)"), "{}", second.stderr);
    std::fs::remove_file(place.path("paper/results/lens-recursive-1-s1.json")).unwrap();
    let weights = place.read("paper/runs/lens-recursive-1-s1/model.safetensors");
    let third = place.line(&command("rnvp-1,recursive-1", "")).good();
    assert!(!third.stderr.contains("epoch"), "it is trained already: {}", third.stderr);
    assert_eq!(place.read("paper/runs/lens-recursive-1-s1/model.safetensors"), weights);
    assert_eq!(place.read("paper/results/lens-rnvp-1-s1.json"), result);

    // Other settings do not mix with these.
    let other = command("rnvp-1", "--set train.lr=0.5");
    place.line(&other).fails(1, &["lens-rnvp-1-s1.json", "train.lr", "--out"]);
}

#[test]
fn what_an_experiment_does_not_have_or_does_not_leave_open_is_refused() {
    let place = Place::new();
    let command = |more: &str| format!("reproduce lens_unconditional --out paper --device cpu {TINY} {more}");
    // Words of a name, not letters.
    place.line(&command("--only rnv-1")).fails(2, &["rnv-1", "lens-rnvp-1", "lens-recursive-2"]);
    for key in ["train.seed=7", "model.blocks=3", "data.path=x.csv", "model.init=x.safetensors"] {
        place.line(&command(&format!("--set {key}"))).fails(2, &["--set", key.split('=').next().unwrap()]);
    }
    // A setting that was given once is missed afterwards, in the result and in the run.
    place.line(&command("--only rnvp-1 --set model.slope=1")).good();
    place.line(&command("--only rnvp-1")).fails(1, &["lens-rnvp-1-s1.json", "model.slope"]);
    std::fs::remove_dir_all(place.path("paper/results")).unwrap();
    place.line(&command("--only rnvp-1")).fails(1, &["runs/lens-rnvp-1-s1", "model.slope"]);
}

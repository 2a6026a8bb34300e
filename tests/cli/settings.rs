//! Settings on the way from files, environment and flags into a run.

use crate::tool::Place;

/// The value of a key in the settings that a dry run prints.
fn resolved(place: &Place, line: &str, variables: &[(&str, &str)]) -> impl Fn(&str) -> Option<String> + use<> {
    let args: Vec<_> = line.split_whitespace().collect();
    let output = place.command(&args).envs(variables.iter().copied()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let table: toml::Table = String::from_utf8(output.stdout).unwrap().parse().unwrap();
    move |key| {
        let (section, name) = key.split_once('.')?;
        table.get(section)?.get(name).map(ToString::to_string)
    }
}

#[test]
fn sources_have_their_order() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    place.write("c.toml", "[train]\nlr = 0.5\nseed = 2\nepochs = 2\nbeta1 = 0.5\n[model]\nwidth = 9\n");
    let variables = [("HINTFLOW_TRAIN__SEED", "3"), ("HINTFLOW_TRAIN__EPOCHS", "3"), ("HINTFLOW_TRAIN__LR", "0.25")];
    let line = "train table.csv --dry-run --config c.toml --seed 4 --epochs 4 --set train.epochs=5";
    let value = resolved(&place, line, &variables);
    for (key, expected) in [
        ("train.beta1", "0.5"),
        ("train.lr", "0.25"),
        ("train.seed", "4"),
        ("train.epochs", "5"),
        ("model.width", "9"),
        ("train.beta2", "0.95"),
    ] {
        assert_eq!(value(key).as_deref(), Some(expected), "{key}");
    }
}

#[test]
fn tables_get_defaults_for_their_size() {
    let place = Place::new();
    for (rows, batch, batches) in [(20, "18", "1"), (1000, "32", "28"), (5000, "90", "50")] {
        place.table("table.csv", rows, 2);
        let value = resolved(&place, "train table.csv --dry-run", &[]);
        assert_eq!(value("train.batch").as_deref(), Some(batch));
        assert_eq!(value("train.batches_per_epoch").as_deref(), Some(batches));
        assert_eq!(value("data.standardize").as_deref(), Some("true"));
    }
}

#[test]
fn lens_is_the_papers_setting() {
    let place = Place::new();
    // One row in place of a million, but nothing else that depends on it.
    let line = "train lens --dry-run --set data.test_rows=1 --set data.rows=10000 --set train.batch=10000";
    let value = resolved(&place, line, &[]);
    for (key, expected) in [
        ("train.epochs", "50"),
        ("model.budget", "100000"),
        ("model.blocks", "2"),
        ("model.mixing", "\"householder\""),
        ("model.mix_first", "false"),
        ("train.noise", "0.01"),
        ("data.outline", "\"vertices\""),
    ] {
        assert_eq!(value(key).as_deref(), Some(expected), "{key}");
    }
    assert_eq!(value("model.width"), None);
}

#[test]
fn columns_can_be_chosen() {
    let place = Place::new();
    place.table("table.csv", 60, 4);
    let base = "train table.csv --device cpu --epochs 1 --set model.width=4 --set model.blocks=1";
    place.line(&format!("{base} --out a --set data.columns=d,2")).good();
    assert!(place.line("sample a -n 1 --device cpu").good().stdout.starts_with("d,b\n"));
    place.line(&format!("{base} --out b --set data.columns=e")).fails(2, &["`e`", "a, b, c, d"]);
}

#[test]
fn a_model_to_start_from_brings_its_choices() {
    let place = Place::new();
    place.trained();
    let value = resolved(&place, "train table.csv --dry-run --init run/model.safetensors", &[]);
    assert_eq!((value("model.width").as_deref(), value("model.blocks").as_deref()), (Some("8"), Some("2")));
    let base = "train table.csv --device cpu --init run/model.safetensors --epochs 1";
    place.line(&format!("{base} --out more")).good();
    place.line(&format!("{base} --out x --set model.width=9")).fails(2, &["model.width", "8", "9"]);
    place.line(&format!("{base} --out x --set data.standardize=false")).fails(2, &["data.standardize"]);
    place.table("wide.csv", 60, 4);
    place
        .line("train wide.csv --device cpu --init run/model.safetensors --out x")
        .fails(2, &["model.init", "3 columns", "4"]);
    assert!(!place.path("x").exists());
}

#[test]
fn misspelt_and_contradicting_settings_are_usage_errors() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    for (set, words) in [
        ("train.epoch=3", &["train.epoch", "`train.epochs`"][..]),
        ("lr=3", &["`train.lr`"]),
        ("train.lr=fast", &["train.lr", "fast"]),
        ("train.lr=-1", &["train.lr", "-1"]),
        ("train.epochs", &["key=value"]),
        ("model.kind=flaw", &["model.kind", "flaw", "flow"]),
        ("model.mixing=all", &["model.mixing", "householder"]),
        ("model.depth=deep", &["full"]),
        ("train.memory=none", &["train.memory", "stored"]),
        ("data.validation=1.5", &["data.validation", "1.5"]),
        ("data.rows=61", &["data.rows", "60 rows"]),
        ("data.test_rows=3", &["data.test_rows", "data.validation"]),
        ("train.batch=55", &["train.batch", "54", "data.validation"]),
        ("data.preset=lens", &["contradicts", "data.path"]),
    ] {
        let line = format!("train table.csv --device cpu --out out --set {set}");
        if set == "data.preset=lens" {
            // A later source: it replaces the table. Within one source it contradicts.
            place.line(&format!("{line} --set data.path=table.csv")).fails(2, words);
        } else {
            place.line(&line).fails(2, words);
        }
    }
    place
        .line("train table.csv --device cpu --out out --set model.width=4 --set model.budget=100")
        .fails(2, &["model.width", "model.budget"]);
    place.write("c.toml", "[train]\nlearning_rate = 1\n");
    place.line("train table.csv --config c.toml --out out").fails(2, &["train.learning_rate"]);
    place.write("c.toml", "[train\n");
    place.line("train table.csv --config c.toml --out out").fails(1, &["c.toml", "TOML"]);
    let output =
        place.command(&["train", "table.csv", "--out", "out"]).env("HINTFLOW_TRAIN__LRR", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.path("out").exists());
}

#[test]
fn threads_and_device_have_one_variable_each_for_every_command() {
    let place = Place::new();
    place.trained();
    let run = |line: &str, variables: &[(&str, &str)]| -> crate::tool::Done {
        let args: Vec<_> = line.split_whitespace().collect();
        place.command(&args).envs(variables.iter().copied()).output().unwrap().into()
    };
    let threads = |n| ("HINTFLOW_RUN__THREADS", n);
    let device = |d| ("HINTFLOW_RUN__DEVICE", d);
    let sample = "sample run -n 2 -v";
    assert!(run(sample, &[device("cpu"), threads("1")]).good().stderr.contains("1 threads"));
    assert!(
        run(&format!("{sample} --threads 2"), &[device("cpu"), threads("many")]).good().stderr.contains("2 threads")
    );
    run("sample run -n 2 --device cpu", &[threads("many")]).fails(2, &["HINTFLOW_RUN__THREADS", "many"]);
    run("sample run -n 2", &[device("nonesuch")]).fails(4, &["nonesuch"]);
    run("train table.csv --device cpu --out x", &[threads("many")]).fails(2, &["run.threads", "many"]);
    // The name of an earlier version says nothing.
    run("sample run -n 2 --threads 1 --device cpu", &[("HINTFLOW_THREADS", "many")]).good();
}

//! Settings on the way from files, environment and flags into a run.

use crate::cli::tool::Place;

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
        ("train.beta2", "0.999"),
    ] {
        assert_eq!(value(key).as_deref(), Some(expected), "{key}");
    }
}

#[test]
fn memory_is_a_flag_and_a_setting_that_a_run_keeps() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let memory = |line: &str| resolved(&place, line, &[])("train.memory");
    assert_eq!(memory("train table.csv --dry-run").as_deref(), Some("\"stored\""));
    assert_eq!(memory("train table.csv --dry-run --memory reversible").as_deref(), Some("\"reversible\""));
    place.line("train table.csv --memory less --out out").fails(2, &["train.memory", "less", "reversible"]);
    place.line("train table.csv --device cpu --epochs 1 --memory reversible --out run").good();
    assert!(place.text("run/config.toml").contains("memory = \"reversible\""));
    place.line("train --resume run --memory stored").fails(2, &["--memory", "--resume"]);
}

#[test]
fn tables_get_defaults_for_their_size() {
    let place = Place::new();
    let spline = [(20, "18", "32", "0.4"), (1000, "64", "32", "0.4"), (5000, "70", "64", "0.12")];
    let affine = [(20, "18", "1", "0.0"), (1000, "32", "28", "0.0"), (5000, "45", "100", "0.0")];
    for (more, sizes) in [("", spline), (" --set model.coupling=affine", affine)] {
        for (rows, batch, batches, dropout) in sizes {
            place.table("table.csv", rows, 2);
            let value = resolved(&place, &format!("train table.csv --dry-run{more}"), &[]);
            assert_eq!(value("train.batch").as_deref(), Some(batch));
            assert_eq!(value("train.batches_per_epoch").as_deref(), Some(batches));
            assert_eq!(value("train.dropout").as_deref(), Some(dropout));
            assert_eq!(value("data.standardize").as_deref(), Some("true"));
        }
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
        ("train.keep", "\"last\""),
        ("train.patience", "0"),
        ("train.lr_final", "0.0001"),
        ("data.outline", "\"vertices\""),
    ] {
        assert_eq!(value(key).as_deref(), Some(expected), "{key}");
    }
    assert_eq!(value("model.width"), None);
}

#[test]
fn cross_is_the_papers_setting() {
    let place = Place::new();
    let line = "train cross --dry-run --set data.test_rows=1 --set data.rows=10000 --set train.batch=10000";
    for (kind, budget) in [("flow", "2000000"), ("hint", "4000000"), ("cinn", "4000000")] {
        let value = resolved(&place, &format!("{line} --set model.kind={kind}"), &[]);
        for (key, expected) in [
            ("model.budget", budget),
            ("train.epochs", "50"),
            ("model.blocks", "4"),
            ("model.mixing", "\"householder\""),
            ("model.mix_first", "false"),
            ("train.noise", "0.01"),
            ("train.keep", "\"last\""),
            ("data.preset", "\"cross\""),
        ] {
            assert_eq!(value(key).as_deref(), Some(expected), "{kind}: {key}");
        }
        assert_eq!((value("model.width"), value("data.outline")), (None, None));
    }
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
fn only_the_columns_of_the_model_must_hold_numbers() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let lines = place.text("table.csv");
    let wide = lines.lines().enumerate().map(|(i, line)| match i {
        0 => format!(",{line},gap\n"),
        i => format!("row {i},{line},{}\n", if i % 3 == 0 { "nan" } else { "1" }),
    });
    place.write("wide.csv", wide.collect::<String>());
    let base = "train wide.csv --device cpu --epochs 1 --set model.width=4 --set model.blocks=1";
    place.line(&format!("{base} --out run --set data.columns=a,b")).good();
    place.line(&format!("{base} --out x --set data.columns=a,gap")).fails(1, &["wide.csv", "row 3", "`gap`"]);
    let narrow = place.line("log-prob run table.csv --device cpu").good().stdout;
    assert_eq!(place.line("log-prob run wide.csv --device cpu").good().stdout, narrow);
    assert_eq!(place.line("log-prob run wide.csv --columns 2,b --device cpu").good().stdout, narrow);
    place.line("encode run wide.csv -o z.npy --device cpu").good();
    place.line("train wide.csv --device cpu --out x").fails(1, &["wide.csv", "row 3", "`gap`"]);
    place.line("log-prob run wide.csv --columns a --device cpu").fails(2, &["--columns", "2 columns, 1"]);
    place.line("log-prob run wide.csv --columns a,q --device cpu").fails(2, &["--columns", "`q`"]);
}

#[test]
fn a_model_of_some_nameless_columns_scores_them() {
    let place = Place::new();
    let values: Vec<f32> = (0..240).map(|i| if i % 4 == 0 { f32::NAN } else { (i * 7919 % 101) as f32 }).collect();
    hintflow::data::Table::new(vec![], 4, values.clone())
        .unwrap()
        .write(place.path("t.npy"), hintflow::Overwrite::No)
        .unwrap();
    place.line("train t.npy --device cpu --out run --epochs 1 --set model.width=4 --set data.columns=[4,2]").good();
    place.line("log-prob run t.npy --device cpu").fails(1, &["t.npy"]);
    let chosen = place.line("log-prob run t.npy --columns 4,2 --device cpu").good().stdout;
    let rows: Vec<f32> = values.chunks(4).flat_map(|row| [row[3], row[1]]).collect();
    hintflow::data::Table::new(vec![], 2, rows).unwrap().write(place.path("two.npy"), hintflow::Overwrite::No).unwrap();
    assert_eq!(place.line("log-prob run two.npy --device cpu").good().stdout, chosen);
    place.line("log-prob run two.npy --columns 3,1 --device cpu").fails(2, &["--columns", "1 to 2"]);
}

#[test]
fn a_model_to_start_from_brings_its_choices() {
    let place = Place::new();
    place.trained();
    let value = resolved(&place, "train table.csv --dry-run --init run/model.safetensors", &[]);
    assert_eq!((value("model.width").as_deref(), value("model.blocks").as_deref()), (Some("8"), Some("2")));
    let base = "train table.csv --device cpu --init run/model.safetensors --epochs 1 --set train.keep=last";
    place.line(&format!("{base} --out more")).good();
    // A run folder and a checkpoint hold a model, too.
    let checkpoint = place.names("run/checkpoints").into_iter().rfind(|name| name.starts_with("step-")).unwrap();
    for (init, out) in [("run".to_owned(), "folder"), (format!("run/checkpoints/{checkpoint}"), "checkpoint")] {
        place
            .line(&format!("train table.csv --device cpu --init {init} --epochs 1 --set train.keep=last --out {out}"))
            .good();
        assert!(place.read("more/model.safetensors") == place.read(format!("{out}/model.safetensors")), "{init}");
    }
    place.line(&format!("{base} --out x --set model.width=9")).fails(2, &["model.width", "8", "9"]);
    place.line(&format!("{base} --out x --set data.standardize=false")).fails(2, &["data.standardize"]);
    place
        .line(&format!(
            "{} --out plain --set data.standardize=false",
            base.replace("--init run/model.safetensors ", "")
        ))
        .good();
    let plain = base.replace("run/model", "plain/model");
    place.line(&format!("{plain} --out x --set data.standardize=true")).fails(2, &["data.standardize", "plain/model"]);
    place.line(&format!("{plain} --out from_plain")).good();
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
        ("train.memory=none", &["train.memory", "stored", "reversible"]),
        ("data.validation=1.5", &["data.validation", "1.5"]),
        ("data.rows=61", &["data.rows", "60 rows"]),
        ("data.test_rows=3", &["data.test_rows", "data.validation"]),
        ("train.batch=55", &["train.batch", "54", "data.validation"]),
        ("data.preset=lens", &["contradicts", "data.path"]),
    ] {
        let line = format!("train table.csv --device cpu --out out --set {set}");
        place.line(&line).fails(2, words);
    }
    place.line("train table.csv --out out --set data.path=other.csv").fails(2, &["data.path", "contradicts"]);
    place.line("train lens --out out --set data.path=table.csv").fails(2, &["data.path", "contradicts"]);
    place
        .line("train table.csv --device cpu --out out --set model.width=4 --set model.budget=100")
        .fails(2, &["model.width", "model.budget"]);
    place.write("c.toml", "[train]\nlearning_rate = 1\n");
    place.line("train table.csv --config c.toml --out out").fails(2, &["train.learning_rate", "from c.toml"]);
    place.write("c.toml", "[train\n");
    place.line("train table.csv --config c.toml --out out").fails(2, &["c.toml", "TOML"]);
    let output =
        place.command(&["train", "table.csv", "--out", "out"]).env("HINTFLOW_TRAIN__LRR", "1").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(!place.path("out").exists());
}

#[test]
fn a_timed_step_keeps_what_the_setting_says() {
    let place = Place::new();
    let run = |memory: &str, more: &[&str]| -> crate::cli::tool::Done {
        let line = "bench step --case small --repeat 1 --json --device cpu".split(' ');
        let args: Vec<_> = line.chain(more.iter().copied()).collect();
        place.command(&args).env("HINTFLOW_TRAIN__MEMORY", memory).output().unwrap().into()
    };
    assert!(run("reversible", &[]).good().stdout.contains("\"memory_mode\":\"reversible\""));
    let flag = run("reversible", &["--memory", "stored"]).good().stdout;
    assert!(flag.contains("\"memory_mode\":\"stored\""), "{flag}");
    run("all", &[]).fails(2, &["HINTFLOW_TRAIN__MEMORY", "reversible", "all"]);
}

#[test]
fn threads_and_device_have_one_variable_each_for_every_command() {
    let place = Place::new();
    place.trained();
    let run = |line: &str, variables: &[(&str, &str)]| -> crate::cli::tool::Done {
        let args: Vec<_> = line.split_whitespace().collect();
        place.command(&args).envs(variables.iter().copied()).output().unwrap().into()
    };
    let threads = |n| ("HINTFLOW_RUN__THREADS", n);
    let device = |d| ("HINTFLOW_RUN__DEVICE", d);
    let sample = "sample run -n 2 -v";
    assert!(run(sample, &[device("cpu"), threads("1")]).good().stderr.contains("1 thread,"));
    assert!(
        run(&format!("{sample} --threads 2"), &[device("cpu"), threads("many")]).good().stderr.contains("2 threads")
    );
    run("sample run -n 2 --device cpu", &[threads("many")]).fails(2, &["HINTFLOW_RUN__THREADS", "many"]);
    run("bench kernels --case small --device cpu", &[threads("many")]).fails(2, &["HINTFLOW_RUN__THREADS", "many"]);
    run("sample run -n 2", &[device("nonesuch")]).fails(4, &["nonesuch"]);
    run("train table.csv --device cpu --out x", &[threads("many")]).fails(2, &["run.threads", "many"]);
    let tune = |word| ("HINTFLOW_RUN__TUNE", word);
    run("sample run -n 2 --device cpu", &[tune("maybe")]).fails(2, &["HINTFLOW_RUN__TUNE", "maybe"]);
    run("sample run -n 2 --device cpu", &[tune("false")]).good();
    run("sample run -n 2 --device cpu --no-tune", &[tune("maybe")]).good();
    run("train table.csv --device cpu --out x", &[tune("maybe")]).fails(2, &["run.tune", "maybe"]);
    // The name of an earlier version says nothing.
    run("sample run -n 2 --threads 1 --device cpu", &[("HINTFLOW_THREADS", "many")]).good();
}

#[test]
fn a_dry_run_refuses_what_a_training_would() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let line = "train table.csv --dry-run --device cpu";
    place.line(&format!("{line} --set model.width=60000 --set model.blocks=60000")).fails(2, &["model"]);
    place.line("train table.csv --dry-run --device NoneSuch").fails(4, &["NoneSuch"]);
    place.line("train table.csv --dry-run --threads 1000000000").fails(2, &["run.threads", "1024"]);
    place.line(line).good();
}

#[test]
fn devices_and_threads_have_their_limits() {
    let place = Place::new();
    place.trained();
    for command in ["sample run -n 2", "train table.csv --out x"] {
        let words: Vec<_> = command.split(' ').collect();
        for blank in ["", "  "] {
            place.run(&[&words[..], &["--device", blank]].concat()).fails(2, &["device", "names no device"]);
        }
        place.line(&format!("{command} --device cpu --threads 1025")).fails(2, &["threads", "1024", "1025"]);
    }
    let done = place.line("sample run -n 2 --device cpu --threads 1024").good();
    assert!(done.stderr.contains("more than the"), "{}", done.stderr);
    assert!(!place.path("x").exists());
}

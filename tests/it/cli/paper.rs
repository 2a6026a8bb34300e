//! `evaluate` and `reproduce`.

use crate::cli::tool::{Done, Place};

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
    assert!(done.stdout.contains("Measured on ") && done.stdout.contains("batches of"), "{}", done.stdout);
    assert!(done.stdout.contains("A model without fault would have about"), "{}", done.stdout);
    assert!(!done.stderr.contains("fewer than asked for"), "nobody asked: {}", done.stderr);
    let done = place.line("evaluate run --device cpu --correlated 1000").good();
    assert!(done.stderr.contains("rows to compare with, fewer than asked for"), "{}", done.stderr);
    let done = place.line("evaluate run --device cpu --batches 0 --draws 7").good();
    assert!(done.stderr.contains("--fitted and --draws are for shapes"), "{}", done.stderr);
    let json = place.line("evaluate run --device cpu --json --batches 1").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("JSON");
    let manifest: serde_json::Value = serde_json::from_str(&place.text("run/manifest.json")).expect("JSON");
    assert_eq!(json["scores"]["ll"], manifest["ll"], "that of the training");
    assert_eq!(json["protocol"]["batches"], 1);

    place.line("evaluate run/model.safetensors").fails(1, &["run folder"]);
    place.line("evaluate missing").fails(1, &["missing"]);
    std::fs::create_dir_all(place.path("many/runs")).unwrap();
    place.line("evaluate many").fails(1, &["many", "not a run folder", "many/runs"]);
    place.line("evaluate run --fitted 9 --correlated 8").fails(2, &["fitted", "correlated"]);
    place.line("evaluate run --batch-rows 1").fails(2, &["batch_rows", "at least 2"]);
    assert!(!place.line("evaluate run --batches 0").good().stdout.contains("MMD"));

    // Of other rows nobody knows which were held out.
    place.table("table.csv", 130, 3);
    place.line("evaluate run").fails(1, &["run", "other rows", "log-prob"]);
}

#[test]
fn a_figure_without_a_model_is_drawn_at_once() {
    let place = Place::new();
    let done = place.line("reproduce fourier --out paper --device cpu").good();
    assert_eq!(done.stdout.trim(), "paper/README.md");
    assert_eq!(place.names("paper/figures"), ["fourier.md", "fourier.png", "fourier.svg"]);
    assert!(place.text("paper/README.md").contains("![fourier](figures/fourier.png)"));
    place.line("reproduce nothing").fails(2, &["nothing", "lens_unconditional", "fourier"]);
    place.line("reproduce all nothing").fails(2, &["nothing", "lens_unconditional", "fourier"]);
    place.line("reproduce fourier --only rnvp --out paper").fails(2, &["--only", "rnvp"]);
    for runs in ["0", "18446744073709551615"] {
        place.line(&format!("reproduce fourier --runs {runs} --out paper")).fails(2, &["--runs"]);
    }
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
fn a_file_that_cannot_be_read_leaves_its_rows_out() {
    let place = Place::new();
    // Too few for the experiment's batches.
    power(&place, 20, 0);
    let done = place.line("reproduce uci --out few --uci uci --device cpu --only power-rnvp-4");
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("power/data.npy has too few rows"), "{}", done.stderr);
    power(&place, 3000, 0);
    place.write("uci/MiniBooNE_PID.txt", "no numbers\n");
    let settings =
        "--set train.epochs=2 --set train.warmup_epochs=1 --set train.batches_per_epoch=3 --set train.batch=100";
    let command = format!("reproduce uci --out paper --device cpu --only power-rnvp-4,miniboone {settings}");
    for (uci, only) in [("uci".to_owned(), ""), (place.path("uci").display().to_string(), "again")] {
        let done = place.line(&format!("{command} --uci {uci}"));
        assert_eq!(done.code, Some(1), "{only}: {}", done.stderr);
        assert_eq!(done.stderr.matches("MiniBooNE_PID.txt: is not laid out").count(), 1, "{}", done.stderr);
        assert!(!done.stderr.contains("has no files"), "gas is not asked for: {}", done.stderr);
        let table = place.text("paper/README.md");
        let row = |start: &str| table.lines().find(|line| line.starts_with(start)).expect("a row").to_owned();
        assert!(row("| MINIBOONE | 4 | RealNVP |").contains("file cannot be read"), "{table}");
        assert!(!row("| POWER | 4 | RealNVP |").contains("not run"), "{table}");
        assert!(row("| GAS | 4 | RealNVP |").contains("needs "), "{table}");
    }
}

#[test]
fn folders_and_settings_are_looked_at_before_anything_is_made() {
    let place = Place::new();
    place.write("file", "x");
    std::fs::create_dir(place.path("run")).unwrap();
    place.write("run/config.toml", "");
    let lens = "reproduce lens_unconditional --device cpu";
    for (more, words) in [
        ("--out file", ["--out", "is a file"]),
        ("--out run", ["--out", "run folder"]),
        ("--out new --uci nowhere", ["--uci", "nowhere"]),
        ("--out new --set train.epochs=abc", ["train.epochs", "abc"]),
    ] {
        place.line(&format!("{lens} {more}")).fails(2, &words);
    }
    // A setting of Lens shapes alone is not one of the Cross, which comes later.
    let both = "reproduce lens_unconditional samples_cross --device cpu --out new --set data.outline=arc";
    place.line(both).fails(2, &["data.outline"]);
    assert!(!place.path("new").exists());
    assert_eq!(place.names("run"), ["config.toml"]);
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
    assert!(csv.lines().all(|line| line.split(',').count() == 13) && csv.lines().count() == 17, "{csv}");

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

    // A model that is cut off is told of, with what to do.
    std::fs::remove_file(place.path("paper/results/lens-recursive-1-s1.json")).unwrap();
    place.write("paper/runs/lens-recursive-1-s1/model.safetensors", &weights[..100]);
    let advice = ["lens-recursive-1-s1/model.safetensors", "remove it", "last checkpoint"];
    place.line(&command("recursive-1", "")).fails(1, &advice);
    std::fs::remove_file(place.path("paper/runs/lens-recursive-1-s1/model.safetensors")).unwrap();
    place.line(&command("recursive-1", "")).good();
    assert_eq!(place.read("paper/runs/lens-recursive-1-s1/model.safetensors"), weights);

    // Other settings do not mix with these.
    let other = command("rnvp-1", "--set train.lr=0.5");
    place.line(&other).fails(1, &["lens-rnvp-1-s1.json", "train.lr", "--out"]);
}

/// Rows of POWER as the archive of the MAF paper has them: eight columns of 64-bit numbers.
fn power(place: &Place, rows: usize, shift: usize) {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({rows}, 8), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    for k in 0..rows * 8 {
        let value = ((k + shift) * 7919 % 1009) as f64 / 100.0;
        bytes.extend(value.to_le_bytes());
    }
    std::fs::create_dir_all(place.path("uci/power")).expect("a folder");
    place.write("uci/power/data.npy", bytes);
}

#[test]
fn models_are_measured_on_the_rows_they_were_trained_on_and_compared_on_the_same() {
    let place = Place::new();
    power(&place, 3000, 0);
    let command = |only: &str, more: &str| {
        format!("reproduce uci --out paper --uci uci --device cpu --only {only} --set train.batch=100 {more}")
    };
    let short = "--set train.epochs=2 --set train.warmup_epochs=1 --set train.batches_per_epoch=3";
    place.line(&command("power-rnvp-4", short)).good();
    let table = place.text("paper/tables/uci.md");
    assert!(table.lines().any(|line| line.starts_with("| POWER | 4 | RealNVP |") && line.contains(" -")), "{table}");
    // A number of batches that the rows would give by themselves is another setting all the same.
    let paper = "--scale paper --runs 1 --set train.epochs=2 --set train.warmup_epochs=1";
    place.line(&command("power-rnvp-8", paper).replace("--out paper", "--out other")).good();
    place.line(&command("power-rnvp-8", paper).replace("--out paper", "--out other")).good();
    let fewer = format!("{paper} --set train.batches_per_epoch=3");
    let done = place.line(&command("power-rnvp-8", &fewer).replace("--out paper", "--out other"));
    done.fails(1, &["power-rnvp-8-s1.json", "train.batches_per_epoch"]);
    std::fs::remove_dir_all(place.path("other/results")).unwrap();
    let done = place.line(&command("power-rnvp-8", &fewer).replace("--out paper", "--out other"));
    done.fails(1, &["runs/power-rnvp-8-s1", "train.batches_per_epoch"]);
    place.line(&command("power-rnvp-8", paper).replace("--out paper", "--out other")).good();

    // Other rows: what was trained before is not measured on them, nor compared with what is trained on them.
    power(&place, 3000, 5);
    let done = place.line(&command("power-recursive-4", short));
    done.fails(1, &["power-rnvp-4-s1", "power-recursive-4-s1", "different rows"]);
    std::fs::remove_dir_all(place.path("paper/results")).unwrap();
    place.line(&command("power-rnvp-4", short)).fails(1, &["runs/power-rnvp-4-s1", "other rows"]);
}

#[test]
fn what_an_experiment_does_not_have_or_does_not_leave_open_is_refused() {
    let place = Place::new();
    let command = |more: &str| format!("reproduce lens_unconditional --out paper --device cpu {TINY} {more}");
    // Words of a name, not letters.
    place.line(&command("--only rnv-1")).fails(2, &["rnv-1", "lens-rnvp-1", "lens-recursive-2"]);
    for key in ["train.seed=7", "model.blocks=3", "model.width=9", "data.path=x.csv", "model.init=x.safetensors"] {
        place.line(&command(&format!("--set {key}"))).fails(2, &["--set", key.split('=').next().unwrap()]);
    }
    // A setting that was given once is missed afterwards, in the result and in the run.
    place.line(&command("--only rnvp-1 --set model.slope=1")).good();
    place.line(&command("--only rnvp-1")).fails(1, &["lens-rnvp-1-s1.json", "model.slope"]);
    std::fs::remove_dir_all(place.path("paper/results")).unwrap();
    place.line(&command("--only rnvp-1")).fails(1, &["runs/lens-rnvp-1-s1", "model.slope"]);
}

#[test]
fn the_deviation_is_that_of_the_runs() {
    let place = Place::new();
    let command = format!("reproduce lens_unconditional --out paper --device cpu --only rnvp-1 {TINY}");
    let done = place.line(&format!("{command} --runs 2")).good();
    assert!(done.stderr.contains("lens-rnvp-1-s2 (2 of 2)"), "{}", done.stderr);
    let result = |run: u32| -> serde_json::Value {
        serde_json::from_str(&place.text(format!("paper/results/lens-rnvp-1-s{run}.json"))).expect("JSON")
    };
    let ll = [1, 2].map(|run| result(run)["scores"]["ll"].as_f64().expect("a number"));
    // Of two values: the root of half the square of their difference.
    let shown = format!("{:.3} ± {:.3}", (ll[0] + ll[1]) / 2.0, (ll[0] - ll[1]).abs() / 2f64.sqrt());
    let table = place.text("paper/tables/lens_unconditional.md");
    assert!(ll[0] != ll[1] && table.contains(&shown), "{shown}: {table}");
    // Fewer runs asked for later do not take away what is there, nor does one that is missing.
    place.line(&command).good();
    assert_eq!(place.text("paper/tables/lens_unconditional.md"), table);
    let first = place.read("paper/results/lens-rnvp-1-s1.json");
    std::fs::remove_file(place.path("paper/results/lens-rnvp-1-s1.json")).unwrap();
    place.line(&command.replace("--only rnvp-1", "--only recursive-1")).good();
    let shown = format!("| {:.3} |", ll[1]);
    assert!(place.text("paper/tables/lens_unconditional.md").contains(&shown), "{shown}");
    place.write("paper/results/lens-rnvp-1-s1.json", first);

    // Results of other numbers of draws are not mixed with these.
    let mut other = result(2);
    other["protocol"]["fitted"] = 7.into();
    place.write("paper/results/lens-rnvp-1-s2.json", other.to_string());
    place.line(&command).fails(1, &["lens-rnvp-1-s2.json", "other numbers of draws"]);
    place.write("paper/results/lens-rnvp-1-s2.json", "{");
    place.line(&command).fails(1, &["lens-rnvp-1-s2.json", "remove it to measure again"]);
}

#[test]
fn a_training_that_diverges_is_a_result() {
    let place = Place::new();
    let command = format!(
        "reproduce lens_unconditional samples_lens --out paper --device cpu --only rnvp-2 {TINY} \
         --set train.lr=1e9 --set train.warmup_epochs=0 --set train.epochs=30"
    );
    let done = place.line(&command).good();
    assert!(done.stderr.contains("lens-rnvp-2-s1 diverged"), "{}", done.stderr);
    let table = place.text("paper/tables/lens_unconditional.md");
    let row = table.lines().find(|line| line.starts_with("| 2 | RealNVP |")).expect("a row");
    assert!(row.contains("diverged"), "{row}");
    let csv = place.text("paper/tables/lens_unconditional.csv");
    let row = csv.lines().find(|line| line.contains("2,RealNVP,,ll")).expect("a row");
    assert!(row.contains(",ll,,,0,1,0,3.141,"), "{row}");
    // It is not tried again, neither for the table nor for the figure.
    let manifest = place.read("paper/runs/lens-rnvp-2-s1/manifest.json");
    place.line(&command).good();
    assert_eq!(place.read("paper/runs/lens-rnvp-2-s1/manifest.json"), manifest);
}

#[test]
fn figures_show_the_models_of_the_tables() {
    let place = Place::new();
    let figure = |more: &str| format!("reproduce samples_lens --out paper --device cpu {TINY} {more}");
    let done = place.line(&figure("--only rnvp-2")).good();
    assert!(done.stderr.contains("lens-recursive-2 is not trained"), "{}", done.stderr);
    assert!(!place.path("paper/figures/samples_lens.png").exists());
    place.line(&figure("")).good();
    let svg = place.text("paper/figures/samples_lens.svg");
    assert!(svg.contains("RealNVP, 2 blocks, ") && svg.contains("recursive, 2 blocks, "), "titles");
    assert!(place.text("paper/README.md").contains("figures/samples_lens.png"));
    // The table measures the same trainings.
    let weights = place.read("paper/runs/lens-rnvp-2-s1/model.safetensors");
    let done =
        place.line(&format!("reproduce lens_unconditional --out paper --device cpu --only rnvp-2 {TINY}")).good();
    assert!(!done.stderr.contains("epoch"), "{}", done.stderr);
    assert_eq!(place.read("paper/runs/lens-rnvp-2-s1/model.safetensors"), weights);
}

#[cfg(unix)]
#[test]
fn what_was_measured_before_it_was_stopped_is_in_the_table() {
    let place = Place::new();
    let settings = "--set train.epochs=15 --set train.warmup_epochs=1 --set train.batches_per_epoch=20 \
                    --set data.test_rows=100 --set train.batch=100";
    let command = format!("reproduce lens_unconditional --out paper --device cpu --only 1 {settings}");
    let mut child = place.command(&command.split_whitespace().collect::<Vec<_>>());
    let mut child = child.stderr(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let begun = std::time::Instant::now();
    // The second model is in training.
    while !place.path("paper/runs/lens-recursive-1-s1/config.toml").exists() {
        let ended = child.try_wait().unwrap();
        if ended.is_some() || begun.elapsed().as_secs() > 120 {
            let _ = child.kill();
            let done: Done = child.wait_with_output().unwrap().into();
            panic!("{ended:?}, or it takes too long: {}", done.stderr);
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let killed = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(killed.success());
    let done: Done = child.wait_with_output().unwrap().into();
    assert_eq!(done.code, Some(130), "{}", done.stderr);
    let page = place.text("paper/README.md");
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| 1 |")).collect();
    assert!(!rows[0].contains("not run") && rows[1].contains("not run"), "{page}");

    let first = place.read("paper/results/lens-rnvp-1-s1.json");
    let done = place.line(&command).good();
    assert!(done.stderr.contains("lens-recursive-1-s1 (1 of 1)"), "{}", done.stderr);
    assert_eq!(place.read("paper/results/lens-rnvp-1-s1.json"), first);
    assert!(
        !place
            .text("paper/tables/lens_unconditional.md")
            .lines()
            .any(|line| line.starts_with("| 1 |") && line.contains("not run"))
    );
}

#[test]
fn the_species_have_a_model_of_their_own() {
    let place = Place::new();
    let line = "reproduce lotka_volterra --out paper --device cpu --set model.width=8";
    place.line(line).fails(2, &["`model.width` is the experiment's own"]);
    assert!(place.line("reproduce --help").good().stdout.contains("lotka_volterra"));
}

/// The filters of species: pictures, and both tables beside the particle filter and the truth.
#[test]
#[ignore = "two minutes on two cores"]
fn the_species_are_filtered_by_all_methods() {
    let place = Place::new();
    let line = "reproduce lotka_volterra --out paper --device cpu --set train.epochs=1 --set train.batch=1000";
    place.line(line).good();
    let page = place.text("paper/README.md");
    for words in [
        "![lotka_volterra](figures/lotka_volterra.png)",
        "![lotka_volterra_posteriors](figures/lotka_volterra_posteriors.png)",
        "| particle filter | 0.000 0.000 0.000 0.000 | 1.000 1.000 1.000 1.000 |",
        "| HINT |",
        "| EnKF |",
        "in the middle 90 %",
    ] {
        assert!(page.contains(words), "no `{words}` in: {page}");
    }
    assert!(page.contains("Set besides: train.epochs=1"), "{page}");
    // What is there is not made again, and what is of other settings is not taken.
    place.line(line).good();
    place.line(&line.replace("batch=1000", "batch=999")).fails(1, &["another `method`"]);
}

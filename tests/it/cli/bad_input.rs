//! Bad files, bad places, bad arguments: a message that helps, the right exit code, nothing overwritten.

use crate::cli::tool::Place;

#[test]
fn missing_and_damaged_tables_are_named() {
    let place = Place::new();
    place.trained();
    place.write("empty.csv", "");
    place.write("header.csv", "a,b,c\n");
    place.write("text.csv", "a,b,c\n1,2,x\n");
    place.write("nan.csv", "a,b,c\n1,2,3\n1,nan,3\n");
    place.write("ragged.csv", "a,b,c\n1,2,3\n1,2\n");
    place.write("quote.csv", "a,b,c\n1,2,\"3\"\n1,2,\"3\n1,2,3\n");
    place.write("empty.npy", "");
    place.write("torn.npy", b"\x93NUMPY\x01\x00\x76\x00{'descr': '<f4'");
    for (file, words) in [
        ("missing.csv", &["missing.csv"][..]),
        ("missing.npy", &["missing.npy"]),
        ("empty.csv", &["empty.csv"]),
        ("header.csv", &["header.csv"]),
        ("text.csv", &["text.csv", "row 1", "column 3", "`c`"]),
        ("nan.csv", &["nan.csv", "row 2", "column 2", "`b`"]),
        ("ragged.csv", &["ragged.csv", "row 2"]),
        ("quote.csv", &["quote.csv", "the quote opened in line 3 is never closed"]),
        ("empty.npy", &["empty.npy"]),
        ("torn.npy", &["torn.npy"]),
        ("table.xlsx", &["table.xlsx", ".npy or .csv"]),
        (".", &["."]),
    ] {
        place.write("keep.npy", "precious");
        place.line(&format!("train {file} --device cpu --out new")).fails(1, words);
        place.line(&format!("log-prob run {file} --device cpu")).fails(1, words);
        place.line(&format!("encode run {file} -o keep.npy --force --device cpu")).fails(1, words);
        place.line(&format!("decode run {file} -o keep.npy --force --device cpu")).fails(1, words);
        place.line(&format!("check run {file} --device cpu")).fails(1, words);
        assert_eq!(place.text("keep.npy"), "precious");
        assert!(!place.path("new").exists(), "a training that cannot begin leaves no folder");
    }
}

#[test]
fn wrong_columns_tell_both_numbers() {
    let place = Place::new();
    place.trained();
    place.table("two.csv", 5, 2);
    place.write("nameless.csv", "1,2\n3,4\n");
    for command in ["log-prob run FILE", "encode run FILE -o z.npy", "check run FILE"] {
        let line = |file: &str| place.line(&format!("{} --device cpu", command.replace("FILE", file)));
        line("two.csv").fails(1, &["two.csv", "3 columns", "2", "`c`"]);
        line("nameless.csv").fails(1, &["nameless.csv", "3 columns", "2"]);
    }
    place.line("decode run two.csv -o z.npy --device cpu").fails(1, &["two.csv", "3", "2"]);
    assert!(!place.path("z.npy").exists());
}

#[test]
fn models_that_are_none_are_named() {
    let place = Place::new();
    place.trained();
    let good = place.read("run/model.safetensors");
    place.write("torn.safetensors", &good[..good.len() / 2]);
    place.write("empty.safetensors", "");
    // A header that promises 2^60 bytes.
    place.write("huge.safetensors", [&(1u64 << 60).to_le_bytes()[..], b"{}"].concat());
    std::fs::create_dir(place.path("folder")).unwrap();
    for (run, words) in [
        ("missing", &["missing"][..]),
        ("torn.safetensors", &["torn.safetensors"]),
        ("empty.safetensors", &["empty.safetensors"]),
        ("huge.safetensors", &["huge.safetensors"]),
        ("table.csv", &["table.csv"]),
        ("folder", &["folder", "model.safetensors"]),
    ] {
        place.line(&format!("sample {run} -n 3 --device cpu")).fails(1, words);
        if run != "folder" {
            place.line(&format!("train table.csv --init {run} --device cpu --out new")).fails(1, words);
        }
    }
    std::fs::remove_file(place.path("run/model.safetensors")).unwrap();
    place.line("sample run -n 3 --device cpu").fails(1, &["run", "--resume run"]);
    assert!(!place.path("new").exists());
}

#[test]
fn existing_outputs_stay_without_force() {
    let place = Place::new();
    place.trained();
    place.line("encode run table.csv -o z.npy --device cpu").good();
    for name in ["out.npy", "out.csv"] {
        for line in [
            format!("sample run -n 3 -o {name} --device cpu"),
            format!("log-prob run table.csv -o {name} --device cpu"),
            format!("encode run table.csv -o {name} --device cpu"),
            format!("encode run table.csv -o fresh.npy --log-det {name} --device cpu"),
            format!("decode run z.npy -o {name} --device cpu"),
            format!("simulate lens -n 3 -o {name}"),
            format!("simulate lens -n 3 -o fresh.npy --observations {name}"),
            format!("simulate cross -n 3 -o {name}"),
            format!("simulate cross -n 3 -o fresh.npy --observations {name}"),
        ] {
            place.write(name, "precious");
            place.line(&line).fails(1, &[name, "--force"]);
            assert_eq!(place.text(name), "precious");
            assert!(!place.path("fresh.npy").exists(), "{line}");
            place.line(&format!("{line} --force")).good();
            assert_ne!(place.read(name), b"precious");
            let _ = std::fs::remove_file(place.path("fresh.npy"));
        }
    }
}

#[test]
fn outputs_that_cannot_be_written_are_named() {
    let place = Place::new();
    place.trained();
    for (name, code, word) in [
        ("no/such/x.npy", 1, "x.npy"),
        ("run", 2, "run"),
        ("x.parquet", 2, ".npy or .csv"),
        ("x.xls", 2, "not as .xls"),
        ("x", 2, ".npy or .csv"),
    ] {
        place.line(&format!("sample run -n 3 -o {name} --device cpu")).fails(code, &[name, word]);
        place.line(&format!("simulate lens -n 3 -o {name}")).fails(code, &[name, word]);
    }
    for line in [
        "encode run table.csv -o z.npy --log-det no/such/x.npy --device cpu",
        "simulate lens -n 3 -o z.npy --observations no/such/x.npy",
    ] {
        place.line(line).fails(1, &["no/such/x.npy"]);
        assert!(!place.path("z.npy").exists(), "{line}");
    }
    for other in ["z.npy", "./z.npy", "run/../z.npy"] {
        place.line(&format!("encode run table.csv -o z.npy --log-det {other} --device cpu")).fails(2, &["--log-det"]);
        place.line(&format!("simulate lens -n 3 -o z.npy --observations {other}")).fails(2, &["--observations"]);
    }
    assert!(!place.path("z.npy").exists());
}

#[test]
fn inputs_are_not_replaced() {
    let place = Place::new();
    place.trained();
    let before = place.read("table.csv");
    for output in ["table.csv", "./table.csv", "run/../table.csv"] {
        for line in [
            format!("encode run table.csv -o {output}"),
            format!("encode run table.csv -o z.npy --log-det {output}"),
            format!("decode run table.csv -o {output}"),
            format!("log-prob run table.csv -o {output}"),
        ] {
            place.line(&format!("{line} --force --device cpu")).fails(2, &["table.csv", "another name"]);
            assert!(place.read("table.csv") == before && !place.path("z.npy").exists(), "{line}");
        }
    }
}

#[test]
fn a_new_run_does_not_remove_what_it_begins_from() {
    let place = Place::new();
    place.trained();
    let model = place.read("run/model.safetensors");
    let again = "train table.csv --device cpu --out run --force --epochs 1";
    place.line(&format!("{again} --init run/model.safetensors")).fails(2, &["model.init", "run/model.safetensors"]);
    place.line(&format!("{again} --init ./run/../run/model.safetensors")).fails(2, &["model.init"]);
    place.line("train run/metrics.csv --device cpu --out run --force").fails(2, &["data.path", "run/metrics.csv"]);
    place.line(&format!("{again} --init run")).fails(2, &["model.init", "run"]);
    for config in ["run/config.toml", "./run/../run/config.toml"] {
        place.line(&format!("{again} --config {config}")).fails(2, &["--config", "run/config.toml", "--out"]);
    }
    assert!(place.path("run/config.toml").exists());
    // What fails before the first step leaves the earlier run as it was.
    place.line(&format!("{again} --set model.width=60000 --set model.blocks=100")).fails(2, &["model"]);
    assert!(place.read("run/model.safetensors") == model && place.path("run/metrics.csv").exists());
}

#[test]
fn a_run_by_force_keeps_no_pictures_of_the_earlier_one() {
    let place = Place::new();
    place.trained();
    assert!(place.path("run/plots/pairs.png").exists());
    place.write("run/plots/mine.png", "mine");
    place
        .line("train lens --device cpu --out run --force --epochs 1 --set data.rows=50 --set data.test_rows=0 --set model.budget=3000")
        .good();
    let plots = place.names("run/plots");
    assert!(plots.contains(&"outlines.png".into()) && plots.contains(&"mine.png".into()), "{plots:?}");
    assert!(!plots.iter().any(|name| name.starts_with("pairs") || name.starts_with("marginals")), "{plots:?}");
}

#[test]
fn run_folders_are_not_overwritten() {
    let place = Place::new();
    place.trained();
    place.write("run/notes.txt", "mine");
    let model = place.read("run/model.safetensors");
    let line = "train table.csv --device cpu --out run --epochs 1 --seed 9 --set model.width=4";
    place.line(line).fails(1, &["run", "--force"]);
    assert_eq!(place.read("run/model.safetensors"), model);
    place.line(&format!("{line} --force")).good();
    assert_ne!(place.read("run/model.safetensors"), model);
    assert_eq!(place.text("run/notes.txt"), "mine");
    place.write("file", "");
    place.line("train table.csv --device cpu --out file --force").fails(1, &["file", "not a folder"]);
    place.line("train table.csv --device cpu --out file").fails(1, &["file", "not a folder"]);
    place.line("train table.csv --device cpu --out file/below").fails(1, &["file/below"]);
}

#[cfg(target_os = "linux")]
#[test]
fn special_files_are_refused_and_a_full_stdout_is_named() {
    let place = Place::new();
    place.trained();
    let pipe = std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap();
    assert!(pipe.success());
    for file in ["/dev/zero", "pipe"] {
        let words = &[file, "not a regular file"];
        place.line(&format!("sample {file} -n 3 --device cpu")).fails(1, words);
        place.line(&format!("train table.csv --init {file} --device cpu --out x")).fails(1, words);
        place.line(&format!("train table.csv --config {file} --device cpu --out x")).fails(1, words);
    }
    for line in ["sample run -n 5000 --device cpu", "log-prob run table.csv --device cpu", "devices"] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let args: Vec<_> = line.split(' ').collect();
        let done: crate::cli::tool::Done = place.command(&args).stdout(full).output().unwrap().into();
        done.fails(1, &["cannot write to stdout"]);
    }
}

#[cfg(unix)]
#[test]
fn variables_that_are_not_unicode_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::new();
    place.trained();
    let bad = std::ffi::OsStr::from_bytes(b"\xff");
    for line in ["sample run -n 2", "train table.csv --out x"] {
        let args: Vec<_> = line.split(' ').collect();
        let output = place.command(&args).env("HINTFLOW_RUN__DEVICE", bad).output().unwrap();
        crate::cli::tool::Done::from(output).fails(2, &["HINTFLOW_RUN__DEVICE", "Unicode"]);
    }
    let output = place.command(&["train", "table.csv", "--dry-run"]).env("HINTFLOW_DEVICE", "cpu").output().unwrap();
    let done = crate::cli::tool::Done::from(output).good();
    assert!(done.stderr.contains("HINTFLOW_DEVICE is no setting"), "{}", done.stderr);
}

#[test]
fn trainings_that_begin_at_once_have_folders_of_their_own() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let line = "train table.csv --device cpu --threads 1 --epochs 1 --set model.width=4";
    let mut children: Vec<_> = (0..4).map(|_| place.spawn(line)).collect();
    assert!(children.iter_mut().all(|child| child.wait().unwrap().success()));
    assert_eq!(place.names("runs").len(), 4);
}

#[test]
fn default_folders_never_meet() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let line = "train table.csv --device cpu --epochs 1 --set model.width=4";
    let first = place.line(line).good().stdout;
    let second = place.line(line).good().stdout;
    assert_eq!(format!("{}_2\n", first.trim()), second);
}

#[test]
fn nothing_and_too_much_are_refused() {
    let place = Place::new();
    place.trained();
    place.line("sample run -n 0 --device cpu").fails(2, &["0 samples"]);
    place.line("simulate lens -n 0 -o x.npy").fails(2, &["`-n`", "0 rows"]);
    place.line("simulate cross -n 0 -o x.npy").fails(2, &["`-n`", "0 rows"]);
    place.line("simulate cross -n 3 -o x.npy --outline arc").fails(2, &["--outline"]);
    place.line("sample run -n 9000000000000000000 --device cpu").fails(2, &["memory"]);
    place.line("simulate lens -n 9000000000000000000 -o x.npy").fails(2, &["memory"]);
    place
        .line("train table.csv --device cpu --out x --set model.width=60000 --set model.blocks=60000")
        .fails(2, &["model"]);
    place.write("wide.csv", format!("1{}\n2{}\n", ",1".repeat(70_000), ",2".repeat(70_000)));
    place.line("train wide.csv --device cpu --out x").fails(2, &["wide.csv", "70001", "data.columns"]);
    place.line("train --device cpu").fails(2, &["lens", "cross"]);
    place.line("train nonsense --device cpu").fails(2, &["nonsense", "lens", "cross"]);
    place.line("train cross --device cpu --set data.outline=arc --out x").fails(2, &["data.outline", "lens"]);
    place.line("train table.csv --device cpu --given y.csv --out x").fails(2, &["data.given"]);
    place.line("bench step --case lens9 --device cpu").fails(2, &["lens9", "lens1"]);
    place.line("bench kernels --seconds=-1 --device cpu").fails(2, &["seconds", "3600"]);
    place.line("bench sample --memory stored --device cpu").fails(2, &["--memory", "training steps"]);
    place.line("sample run -n many").fails(2, &["many"]);
    place.line("sample run -n 3 --device cpu --given y.csv").fails(2, &["--given"]);
}

#[test]
fn unknown_devices_are_refused() {
    let place = Place::new();
    place.trained();
    place.line("sample run -n 3 --device NoneSuch").fails(4, &["`NoneSuch`"]);
    place.line("train table.csv --device 99 --out x").fails(4, &["99"]);
    assert!(!place.path("x").exists());
}

#[cfg(target_os = "linux")]
#[test]
fn without_an_adapter_gpu_says_what_to_install() {
    let place = Place::new();
    place.table("table.csv", 60, 2);
    let args = ["train", "table.csv", "--device", "gpu", "--out", "x"];
    let none = |name: &str| (name.to_owned(), "/nonexistent".to_owned());
    let output = place.command(&args).envs(["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].map(none)).output().unwrap();
    crate::cli::tool::Done::from(output).fails(4, &["mesa-vulkan-drivers", "--device cpu"]);
    assert!(!place.path("x").exists());
    let output = place.command(&["devices"]).envs(["VK_DRIVER_FILES", "VK_ICD_FILENAMES"].map(none)).output().unwrap();
    let done = crate::cli::tool::Done::from(output).good();
    assert!(done.stdout.contains("mesa-vulkan-drivers") && done.stdout.contains("auto takes cpu"), "{}", done.stdout);
}

/// A training whose loss soon is no number.
const DIVERGES: &str = "train table.csv --device cpu --out run --epochs 200 --set model.width=8 \
                        --set model.coupling=affine --set model.scale=exp --set train.lr=1e6 --set train.lr_final=1e6 --set train.warmup_epochs=0 \
                        --set train.grad_clamp=1e30 --set run.checkpoint_every=1";

#[test]
fn a_table_in_the_place_of_the_model_is_named() {
    let place = Place::new();
    place.trained();
    for line in ["log-prob", "check", "encode -o z.npy", "diagnose"] {
        let (command, options) = line.split_once(' ').unwrap_or((line, ""));
        let words = ["table.csv: is a table, and no model", "first argument"];
        place.line(&format!("{command} table.csv table.csv {options} --device cpu")).fails(1, &words);
    }
    let words = ["table.csv", "is a table, and no model"];
    place.line("evaluate table.csv").fails(1, &["table.csv"]);
    place.line("train table.csv --init table.csv --out other").fails(1, &words);
    place.line("log-prob run run").fails(1, &["run: tables are read from", "not from a folder"]);
}

#[test]
fn divergence_stops_with_the_last_good_checkpoint() {
    let place = Place::new();
    place.table("table.csv", 200, 4);
    let done = place.line(DIVERGES);
    done.fails(3, &["step", "train.lr"]);
    let (_, rest) = done.stderr.split_once("the last good checkpoint is ").expect("a checkpoint is named");
    let (named, _) = rest.split_once(';').expect("a remedy");
    let newest = place.names("run/checkpoints").into_iter().filter(|name| name.starts_with("step-")).max();
    assert_eq!(named, format!("run/checkpoints/{}", newest.expect("a checkpoint")));
    assert!(!place.path("run/model.safetensors").exists(), "a broken model is not kept");
    let manifest: serde_json::Value = serde_json::from_str(&place.text("run/manifest.json")).unwrap();
    assert_eq!(manifest["status"], "diverged");
    // The message says how to use the checkpoint, and so does a command that looks for the model.
    assert!(done.stderr.contains(&format!("--init {named}")), "{}", done.stderr);
    let sample = place.line("sample run -n 3 --device cpu");
    sample.fails(1, &["diverged", named, "--init"]);
    assert!(!sample.stderr.contains("--resume"), "{}", sample.stderr);
    place.line(&format!("sample {named} -n 3 --device cpu")).good();
    place.line(&format!("log-prob {named} table.csv --device cpu")).good();
    place.line(&format!("train table.csv --init {named} --device cpu --dry-run --lr 1e-4")).good();
    for name in place.names("run/checkpoints").into_iter().filter(|name| name.starts_with("step-")) {
        let bytes = place.read(format!("run/checkpoints/{name}"));
        let tensors = safetensors::SafeTensors::deserialize(&bytes).unwrap();
        for (_, tensor) in tensors.iter() {
            let (values, _) = tensor.data().as_chunks::<4>();
            assert!(values.iter().all(|b| f32::from_le_bytes(*b).is_finite()));
        }
    }
}

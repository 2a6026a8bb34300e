//! Every command where all goes well.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use hintflow::data::Table;

use crate::cli::tool::Place;

#[test]
fn a_training_leaves_a_whole_run_folder() {
    let place = Place::new();
    place.table("table.csv", 120, 3);
    let done = place.line("train table.csv --device cpu --out a/run --epochs 3 --set model.width=8").good();
    assert_eq!(done.stdout, "a/run\n");
    assert_eq!(
        place.names("a/run"),
        [
            "checkpoints",
            "config.toml",
            "data.json",
            "manifest.json",
            "metrics.csv",
            "model.safetensors",
            "plots",
            "report.html"
        ]
    );
    let metrics = place.text("a/run/metrics.csv");
    let lines: Vec<_> = metrics.lines().collect();
    assert_eq!((lines.len(), lines[0]), (4, "epoch,step,train_loss,test_loss,ll,lr,rows_per_s"));
    let manifest: serde_json::Value = serde_json::from_str(&place.text("a/run/manifest.json")).unwrap();
    assert_eq!(manifest["status"], "finished");
    assert_eq!((&manifest["data"]["train_rows"], &manifest["data"]["test_rows"]), (&108.into(), &12.into()));
    assert_eq!(manifest["command"][1], "train");
    let plots = place.names("a/run/plots");
    for name in ["loss", "correlation", "marginals", "pairs"] {
        assert!(plots.contains(&format!("{name}.png")) && plots.contains(&format!("{name}.svg")), "{plots:?}");
    }
}

#[test]
fn the_written_settings_give_the_same_run_again() {
    let place = Place::new();
    place.trained();
    place.line("train --config run/config.toml --out again").good();
    assert_eq!(place.read("run/model.safetensors"), place.read("again/model.safetensors"));
    assert_eq!(place.text("run/config.toml").replace("\"auto\"", "\"cpu\""), place.text("again/config.toml"));
}

#[test]
fn lens_is_simulated_and_drawn() {
    let place = Place::new();
    let done = place.line(
        "train lens --device cpu --epochs 2 --set data.rows=300 --set data.test_rows=50 --set model.budget=3000 --seed 5",
    );
    let folder = done.good().stdout.trim().to_owned();
    assert!(folder.starts_with("runs/") && folder.ends_with("_lens_s5"), "{folder}");
    let plots = place.names(&format!("{folder}/plots"));
    for name in ["loss", "correlation", "outlines"] {
        assert!(plots.contains(&format!("{name}.png")) && plots.contains(&format!("{name}.svg")), "{plots:?}");
    }
    place.line(&format!("sample {folder} -n 4 -o s.csv")).good();
    assert_eq!(Table::read(place.path("s.csv")).unwrap().dim(), 20);
}

#[test]
fn cross_is_simulated_and_drawn() {
    let place = Place::new();
    let train = "--device cpu --epochs 1 --set data.rows=200 --set data.test_rows=20 --set model.blocks=1 --set model.budget=30000";
    let folder = place.line(&format!("train cross {train}")).good().stdout.trim().to_owned();
    assert!(folder.ends_with("_cross_s1"), "{folder}");
    let plots = place.names(&format!("{folder}/plots"));
    for name in ["loss", "correlation", "outlines"] {
        assert!(plots.contains(&format!("{name}.png")) && plots.contains(&format!("{name}.svg")), "{plots:?}");
    }
    assert!(!plots.contains(&"posterior.png".to_owned()), "{plots:?}");
    place.line(&format!("sample {folder} -n 4 -o s.csv --device cpu")).good();
    assert_eq!(Table::read(place.path("s.csv")).unwrap().dim(), 100);

    place.line("simulate cross -n 3 -o x.npy --observations y.csv --seed 2").good();
    assert_eq!(
        Table::read(place.path("y.csv")).unwrap().columns(),
        ["centre_x", "centre_y", "rotation", "thickness_ratio"]
    );
    for kind in ["hint", "cinn"] {
        place.line(&format!("train cross {train} --out {kind} --set model.kind={kind}")).good();
        let svg = place.text(format!("{kind}/plots/posterior.svg"));
        assert!(svg.contains("samples given centre and rotation (blue), ratio "), "{kind}");
        let scores = place.line(&format!("log-prob {kind} x.npy --given y.csv --device cpu")).good().stdout;
        assert_eq!(scores.lines().count(), 3, "{scores}");
    }
}

#[test]
fn samples_depend_on_their_number_only() {
    let place = Place::new();
    place.trained();
    let all = place.line("sample run --device cpu -n 40").good().stdout;
    let some = place.line("sample run/model.safetensors --device cpu -n 7").good().stdout;
    assert!(all.starts_with("a,b,c\n") && all.starts_with(&some));
    assert_eq!(all.lines().count(), 41);
    assert_ne!(all, place.line("sample run --device cpu -n 40 --seed 2").good().stdout);
    place.line("sample run --device cpu -n 40 -o s.npy").good();
    place.line("sample run --device cpu -n 40 -o s.csv").good();
    let (npy, csv) = (Table::read(place.path("s.npy")).unwrap(), Table::read(place.path("s.csv")).unwrap());
    assert_eq!(npy.values(), csv.values());
    assert_eq!(place.text("s.csv"), all);
}

#[test]
fn rows_go_to_latent_vectors_and_back() {
    let place = Place::new();
    place.trained();
    place.line("encode run table.csv -o z.npy --log-det ld.csv --device cpu").good();
    place.line("decode run z.npy -o x.csv --device cpu").good();
    let (before, after) = (Table::read(place.path("table.csv")).unwrap(), Table::read(place.path("x.csv")).unwrap());
    assert_eq!(before.columns(), after.columns());
    assert!(before.values().iter().zip(after.values()).all(|(a, b)| (a - b).abs() < 1e-4));

    // log p = log-det - |z|^2 / 2 - N/2 log 2 pi
    let (z, log_det) = (Table::read(place.path("z.npy")).unwrap(), Table::read(place.path("ld.csv")).unwrap());
    assert_eq!(log_det.columns(), ["log_det"]);
    let printed = place.line("log-prob run table.csv --device cpu").good().stdout;
    let printed: Vec<f64> = printed.lines().map(|l| l.parse().unwrap()).collect();
    assert_eq!(printed.len(), 120);
    for ((z, log_det), got) in z.iter_rows().zip(log_det.values()).zip(&printed) {
        let square: f64 = z.iter().map(|&v| f64::from(v).powi(2)).sum();
        let want = f64::from(*log_det) - 0.5 * square - 1.5 * std::f64::consts::TAU.ln();
        assert!((got - want).abs() < 1e-4, "{got} {want}");
    }
    let done = place.line("log-prob run table.csv -o lp.npy --device cpu").good();
    assert!(done.stdout.contains("rows 120") && done.stdout.contains("mean"), "{}", done.stdout);
    assert_eq!(Table::read(place.path("lp.npy")).unwrap().rows(), 120);
}

#[test]
fn columns_are_found_by_name() {
    let place = Place::new();
    place.trained();
    let straight = place.line("log-prob run table.csv --device cpu").good().stdout;
    let table = Table::read(place.path("table.csv")).unwrap();
    table.select(&["c", "a", "b"]).unwrap().write(place.path("turned.csv"), hintflow::Overwrite::No).unwrap();
    let turned = place.line("log-prob run turned.csv --device cpu").good();
    assert_eq!(straight, turned.stdout);
    assert!(turned.stderr.contains("by name"), "{}", turned.stderr);
}

#[test]
fn check_passes_a_good_model_and_fails_a_broken_one() {
    let place = Place::new();
    place.trained();
    let done = place.line("check run table.csv --device cpu").good();
    assert_eq!(done.stdout.matches("  ok").count(), 4, "{}", done.stdout);
    // One row, and columns without any deviation.
    place.write("one.csv", "a,b,c\n1,2,3\n");
    place.line("check run one.csv --device cpu").good();
    // Far away, which is drawn in.
    place.write("far.csv", "a,b,c\n1e30,-1e30,1e30\n");
    let done = place.line("check run far.csv --device cpu").good();
    assert_eq!(done.stdout.matches("  ok").count(), 4, "{}", done.stdout);
    // Where it is not, f32 cannot tell neighbours apart after the way there and back.
    let place = Place::new();
    place.trained_affine();
    place.write("far.csv", "a,b,c\n1e30,-1e30,1e30\n");
    let done = place.line("check run far.csv --device cpu");
    assert_eq!(done.code, Some(5), "{}", done.stdout);
    assert!(done.stdout.contains("FAILED"), "{}", done.stdout);
}

#[test]
fn check_measures_each_column_in_its_own_scale() {
    let place = Place::new();
    let columns = |f: &dyn Fn(f64, f64) -> String| {
        let rows = (0..300).map(|i| {
            let t = f64::from(i);
            f((17.0 * t / 300.0).sin(), f64::from(i * 7919 % 101) / 101.0)
        });
        "a,b,c\n".to_owned() + &rows.collect::<String>()
    };
    place.write("scales.csv", columns(&|a, b| format!("{},{},{}\n", 1e-9 * a, 1e5 * b, 3e5 + a * b)));
    place.write("time.csv", columns(&|a, b| format!("{},{},{a}\n", a + b, 1.7e9 + 100.0 * b)));
    let train = "--device cpu --epochs 8 --set model.width=8 --set model.blocks=2";
    place.line(&format!("train scales.csv --out scales {train}")).good();
    let done = place.line("check scales scales.csv --device cpu").good();
    assert_eq!(done.stdout.matches("  ok").count(), 4, "{}", done.stdout);
    assert!(done.stdout.contains("to the deviation; worst `"), "{}", done.stdout);

    place.line(&format!("train time.csv --out time {train}")).good();
    let done = place.line("check time time.csv --device cpu").good();
    // A column far from 0 is packed, so that its neighbouring values are apart.
    assert!(!done.stderr.contains("not checked"), "{}", done.stderr);
    assert_eq!(done.stdout.matches("  ok").count(), 4, "{}", done.stdout);

    // The same columns in units of the networks are lost in rounding, which is no fault of the derivatives.
    place.write("tiny.csv", columns(&|a, b| format!("{},{},{}\n", 1e-9 * a, 1e-9 * b, 2e-9 * a * b)));
    place.line(&format!("train tiny.csv --out tiny {train} --set data.standardize=false")).good();
    let done = place.line("check tiny tiny.csv --device cpu");
    // Nor can z be normal then.
    let failed = done.stdout.lines().filter(|line| line.ends_with("FAILED") && !line.starts_with("distance of"));
    assert_eq!((done.code, failed.count()), (Some(5), 1), "{}", done.stdout);
    assert!(done.stderr.contains("data.standardize=true"), "{}", done.stderr);

    // Without a standardisation the scale is that of the rows.
    place.table("table.csv", 120, 3);
    place.line(&format!("train table.csv --out plain {train} --set data.standardize=false")).good();
    let done = place.line("check plain table.csv --device cpu").good();
    assert_eq!(done.stdout.matches("  ok").count(), 4, "{}", done.stdout);
}

#[test]
fn one_number_a_row_is_an_array_of_one_dimension() {
    let place = Place::new();
    place.trained();
    place.line("log-prob run table.csv -o lp.npy --device cpu").good();
    place.line("encode run table.csv -o z.npy --log-det ld.npy --device cpu").good();
    for name in ["lp.npy", "ld.npy"] {
        let bytes = place.read(name);
        assert!(String::from_utf8_lossy(&bytes[..128]).contains("'shape': (120,)"), "{name}");
        let table = Table::read(place.path(name)).unwrap();
        assert_eq!((table.rows(), table.dim()), (120, 1));
    }
}

#[test]
fn a_training_ends_with_what_log_prob_reports() {
    let place = Place::new();
    place.table("table.csv", 120, 3);
    let done = place.line("train table.csv --device cpu --out run --epochs 5 --set model.width=8").good();
    assert!(!done.stderr.contains("warm-up") && !done.stderr.contains("(native"), "{}", done.stderr);
    let (_, rest) = done.stderr.split_once("mean log-density ").expect("a density");
    let told: f64 = rest.split_whitespace().next().unwrap().parse().unwrap();
    let metrics = place.text("run/metrics.csv");
    let ll: f64 = metrics.lines().last().unwrap().split(',').nth(4).unwrap().parse().unwrap();
    assert!((told - 3.0 * (ll - 0.918_938_5)).abs() < 1e-3, "{told} {ll}");
}

#[test]
fn tiny_and_short_trainings_are_warned_of() {
    let place = Place::new();
    for rows in [1, 2, 12] {
        place.table("tiny.csv", rows, 2);
        let done = place
            .line(&format!("train tiny.csv --device cpu --out run{rows} --epochs 1 --set train.warmup_epochs=1"))
            .good();
        assert!(done.stderr.contains("too few to learn"), "{}", done.stderr);
        assert!(done.stderr.contains("train.warmup_epochs"), "{}", done.stderr);
        assert!(!done.stderr.contains("pictures"), "{}", done.stderr);
    }
}

#[test]
fn simulated_shapes_are_the_training_rows_of_the_preset() {
    let place = Place::new();
    place.line("simulate lens -n 6 -o a.csv").good();
    place.line("simulate lens -n 6 -o b.npy --observations seen.csv").good();
    let (a, b) = (Table::read(place.path("a.csv")).unwrap(), Table::read(place.path("b.npy")).unwrap());
    assert_eq!(a.values(), b.values());
    assert_eq!(Table::read(place.path("seen.csv")).unwrap().columns(), ["d_h", "d_v"]);
    place.line("simulate lens -n 6 -o c.npy --outline arc").good();
    place.line("simulate lens -n 6 -o d.npy --seed 2").good();
    assert!(Table::read(place.path("c.npy")).unwrap().values() != a.values());
    assert!(Table::read(place.path("d.npy")).unwrap().values() != a.values());
    place.line("simulate cross -n 6 -o e.csv").good();
    place.line("simulate cross -n 6 -o f.npy --observations seen_of_cross.csv --seed 1").good();
    place.line("simulate cross -n 6 -o g.npy --seed 2").good();
    let [e, f, g] = ["e.csv", "f.npy", "g.npy"].map(|name| Table::read(place.path(name)).unwrap());
    assert_eq!((e.dim(), e.values()), (100, f.values()));
    assert_ne!(e.values(), g.values());
}

#[test]
fn devices_are_listed() {
    let place = Place::new();
    // Nothing but the list, whatever the graphics libraries look for.
    let output = place.command(&["devices"]).env_remove("XDG_RUNTIME_DIR").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let text = place.line("devices").good().stdout;
    assert!(text.contains("cpu") && text.contains("auto"), "{text}");
    let text_with_limits = place.line("devices --limits").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&place.line("devices --json").good().stdout).unwrap();
    assert!(json["auto"]["name"].is_string() && json["cpu"]["name"].is_string(), "{json}");
    for (index, adapter) in json["adapters"].as_array().unwrap().iter().enumerate() {
        assert_eq!(adapter["index"], index);
        for key in ["name", "backend", "driver", "kind"] {
            assert!(adapter[key].is_string(), "{adapter}");
        }
        assert!(adapter["max_array_bytes"].is_u64() && text.contains(adapter["name"].as_str().unwrap()));
        let size = adapter["limits"]["max_buffer_size"].as_u64().unwrap();
        assert!(text_with_limits.contains(&format!("max_buffer_size {size}")), "{text_with_limits}");
        assert!(adapter["features"].as_array().unwrap().iter().all(|name| name.is_string()), "{adapter}");
    }
}

#[test]
fn a_step_is_timed() {
    let place = Place::new();
    let text = place.line("bench step --case small --repeat 1 --json --device cpu").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&json["case"], &json["device"], &json["batch"]), (&"small".into(), &"cpu".into(), &500.into()));
    let object = json.as_object().unwrap();
    assert_eq!((&object["params"], &object["dispatches"]), (&100_560.into(), &serde_json::Value::Null));
    assert!(json["step_ms"].as_f64().unwrap() > 0.0 && json["peak_bytes"].as_u64().unwrap() > 0);
    assert!(json["memory"]["activations"].as_u64().unwrap() > 0, "{json}");
    assert_eq!((&json["check"]["rows"], &json["spread"]["repeats"]), (&500.into(), &1.into()));
    let text = place.line("bench sample --case small --repeat 1 --device cpu").good().stdout;
    assert!(text.contains("small on native CPU engine") && text.contains("GFLOP/s"), "{text}");
    let text = place.line("bench sample --case small --repeat 1 --json --no-tune --device gpu").good().stdout;
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert!(json["sample_ms"].as_f64().unwrap() > 0.0 && json["bytes_moved"].as_u64().unwrap() > 0);
    assert!(json["dispatches"].as_u64().unwrap() > 0 && json["tiles"].as_u64().unwrap() > 0);
    assert_eq!(json["check"]["against"], "the CPU engine and the definition in f64");
}

#[test]
fn kernels_are_timed() {
    let place = Place::new();
    for device in ["cpu", "gpu"] {
        let text = place
            .line(&format!("bench kernels --case small --repeat 1 --json --no-tune --device {device}"))
            .good()
            .stdout;
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), if device == "cpu" { 3 } else { 2 });
        for (json, part) in lines.iter().zip(["step", "sample"]) {
            assert_eq!((&json["part"], &json["device"]), (&part.into(), &device.into()));
            let kernels = json["kernels"].as_array().unwrap();
            let sum = |key: &str| kernels.iter().map(|kernel| kernel[key].as_f64().unwrap()).sum::<f64>();
            assert!((sum("share") - 1.0).abs() < 1e-9 && (sum("ms") / json["ms"].as_f64().unwrap() - 1.0).abs() < 1e-9);
            assert_eq!(sum("calls") as usize, json["each"].as_array().unwrap().len());
            let products = if part == "step" { "networks" } else { "walk" };
            // A GPU has more than one kernel for networks.
            let named = |k: &serde_json::Value| k["name"].as_str().unwrap().starts_with(products);
            assert!(kernels.iter().any(|k| named(k) && k["gflops"].as_f64() > Some(0.0)), "{json}");
        }
    }
    let text = place.line("bench kernels --case small --repeat 1 --each --device cpu").good().stdout;
    for word in ["one thread", "networks_backward", "152 x 152", "tiles", "share"] {
        assert!(text.contains(word), "no `{word}` in {text}");
    }
    // Every heading stands above its columns.
    for heading in ["  operation  ", "      operation  "] {
        let mut below = text.lines().skip_while(|line| !line.starts_with(heading)).map(str::len);
        assert!(below.next().is_some_and(|width| below.next() == Some(width)), "{heading}: {text}");
    }
}

#[test]
fn help_has_examples_and_all_settings() {
    let place = Place::new();
    for command in
        ["train", "sample", "log-prob", "encode", "decode", "simulate lens", "simulate cross", "check", "bench"]
    {
        let text = place.line(&format!("{command} --help")).good().stdout;
        assert!(text.contains("Example"), "{command}");
    }
    // That all settings are among it is a test of the command itself.
    let text = place.line("train --help").good().stdout;
    assert!(text.contains("--given") && text.contains("log-prob"), "{text}");
}

#[test]
fn a_reader_that_leaves_is_no_panic() {
    let place = Place::new();
    place.trained();
    for line in ["sample run --device cpu -n 50000", "log-prob run many.csv --device cpu"] {
        place.table("many.csv", 50_000, 3);
        let args: Vec<_> = line.split_whitespace().collect();
        let mut child = place.command(&args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(!first.is_empty());
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && !stderr.contains("panicked") && !stderr.contains("error"), "{stderr}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn messages_that_cannot_be_written_stop_nothing() {
    let place = Place::new();
    place.trained();
    let line = "train table.csv --device cpu --out unheard --epochs 2 --set model.width=8 --set model.blocks=2";
    assert_eq!(place.unheard(line).good().stdout, "unheard\n");
    assert_eq!(place.read("run/model.safetensors"), place.read("unheard/model.safetensors"));
    let done = place.unheard("log-prob run table.csv --device cpu").good();
    assert_eq!(done.stdout.lines().count(), 120);
    assert_eq!(place.unheard("log-prob run missing.csv --device cpu").code, Some(1));
}

#[test]
fn results_that_are_no_numbers_are_told() {
    let place = Place::new();
    place.trained_affine();
    place.write("far.csv", "a,b,c\n1,2,3\n3e38,-3e38,3e38\n3e38,-3e38,3e38\n");
    let done = place.line("log-prob run far.csv -o lp.csv --force --device cpu").good();
    assert!(done.stdout.starts_with("rows 3  finite 1  mean") && !done.stdout.contains("inf "), "{}", done.stdout);
    assert!(done.stderr.contains("warning: 2 of 3 log-densities") && done.stderr.contains("row 2"), "{}", done.stderr);
    place.write("z.csv", "z1,z2,z3\n0,0,0\n3e38,3e38,3e38\n");
    let done = place.line("decode run z.csv -o x.npy --device cpu").good();
    assert!(done.stderr.contains("1 of 2 rows are not finite") && done.stderr.contains("row 2"), "{}", done.stderr);
    let done = place.line("log-prob run table.csv --device cpu").good();
    assert!(!done.stderr.contains("warning"), "{}", done.stderr);
}

/// The macros of the standard library panic where stdout or stderr is gone; see `cli::logging` and `cli::output`.
#[test]
fn no_macro_that_panics_writes_to_the_terminal() {
    let mut folders = vec![std::path::PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/src"))];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            // The output of tests is that of the test harness.
            if path.is_dir() {
                folders.extend((!path.ends_with("tests")).then_some(path));
                continue;
            }
            if path.extension().is_none_or(|end| end != "rs") || path.ends_with("tests.rs") {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let line = code.into_iter().find(|line| line.contains("print!(") || line.contains("println!("));
            assert_eq!(line, None, "{}", path.display());
        }
    }
}

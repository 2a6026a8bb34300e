//! What a training says of its table before it begins, and the logs that it writes for other programs.

use std::fmt::Write as _;

use hintflow::Overwrite;
use hintflow::data::Table;

use crate::cli::tool::Place;

const TRAIN: &str = "--device cpu --epochs 2 --set model.width=4 --set model.blocks=1";

fn data(place: &Place, run: &str) -> serde_json::Value {
    serde_json::from_str(&place.text(format!("{run}/data.json"))).expect("JSON")
}

#[test]
fn a_clean_table_takes_one_line() {
    let place = Place::new();
    place.table("table.csv", 300, 3);
    let done = place.line(&format!("train table.csv {TRAIN} --out run")).good();
    let of_data: Vec<&str> = done.stderr.lines().filter(|line| line.contains("data:")).collect();
    assert!(of_data.len() == 1 && of_data[0].contains("no problem found"), "{}", done.stderr);
    assert!(!done.stderr.contains("WARN"), "{}", done.stderr);
    let found = data(&place, "run");
    assert_eq!(
        (&found["training_rows"], &found["held_out_rows"], &found["findings"]),
        (&270.into(), &30.into(), &serde_json::json!([]))
    );
    let column = &found["columns"][1];
    assert_eq!((&column["name"], &column["transform"]), (&"b".into(), &"standardize".into()));
    assert!(
        column["least"].as_f64() < column["quantiles"][0].as_f64()
            && column["quantiles"][4].as_f64() < column["greatest"].as_f64()
    );
}

#[test]
fn problems_of_a_table_are_told_with_their_options() {
    let place = Place::new();
    place.table("plain.csv", 400, 2);
    let plain = place.text("plain.csv");
    let mut text = "a,b,copy,one,count\n".to_owned();
    for (i, line) in plain.lines().skip(1).enumerate() {
        // A tenth of the rows twice.
        for _ in 0..=usize::from(i % 10 == 0) {
            let a = line.split(',').next().unwrap();
            writeln!(text, "{line},{a},7,{}", i % 3).unwrap();
        }
    }
    place.write("bad.csv", text);
    let done = place.line(&format!("train bad.csv {TRAIN} --out run")).good();
    let found = data(&place, "run");
    let findings = found["findings"].as_array().unwrap();
    let of = |problem: &str| {
        let finding = findings.iter().find(|finding| finding["problem"] == problem);
        finding.unwrap_or_else(|| panic!("no {problem} in {findings:?}"))
    };
    for (problem, columns, option) in [
        ("constant", serde_json::json!(["one"]), "data.columns"),
        ("whole_numbers", serde_json::json!(["count"]), "train.noise"),
        ("collinear", serde_json::json!(["copy"]), "data.columns=a,b"),
        ("repeated_rows", serde_json::Value::Null, "leave them out"),
    ] {
        let finding = of(problem);
        let says = finding["says"].as_str().unwrap();
        assert_eq!(finding["columns"], columns, "{finding}");
        assert!(says.contains(option), "{says}");
        // The log, the file and the report say the same.
        assert!(done.stderr.contains(says), "{says}: {}", done.stderr);
        // Of a number and its unit, which stay together there.
        let page = place.text("run/report.html").replace('\u{a0}', " ");
        assert!(page.contains(&says[1..40].replace('`', "")), "{says}");
    }
    assert!(!done.stderr.contains("no problem found"));
}

#[test]
fn invalid_rows_stop_a_training_or_are_dropped() {
    let place = Place::new();
    place.table("table.csv", 100, 2);
    let text = place.text("table.csv");
    let broken: String = text
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            3 => "NA,1\n".to_owned(),
            7 => ",1\n".into(),
            9 => "inf,2\n".into(),
            _ => format!("{line}\n"),
        })
        .collect();
    place.write("broken.csv", broken);
    let mut values = Table::read(place.path("table.csv")).unwrap().into_values();
    (values[4], values[31]) = (f32::NAN, f32::INFINITY);
    Table::new(vec![], 2, values).unwrap().write(place.path("broken.npy"), Overwrite::No).unwrap();
    for (file, left_out) in [("broken.csv", 3), ("broken.npy", 2)] {
        place.line(&format!("train {file} {TRAIN} --out no")).fails(1, &[file, "row 3"]);
        place.line(&format!("train {file} {TRAIN} --out no --on-invalid stop")).fails(1, &[file, "row 3"]);
        let done = place.line(&format!("train {file} {TRAIN} --out {file}.run --on-invalid drop")).good();
        assert!(done.stderr.contains(&format!("left out {left_out} of 100 rows")), "{}", done.stderr);
        let found = data(&place, &format!("{file}.run"));
        assert_eq!(found["left_out_rows"], left_out);
        let rows = found["training_rows"].as_u64().unwrap() + found["held_out_rows"].as_u64().unwrap();
        assert_eq!(rows, 100 - left_out);
        assert!(place.text(format!("{file}.run/report.html")).contains("have a missing value and were left out"));
        // The setting is written down, and the same training is possible again.
        place.line(&format!("train --config {file}.run/config.toml --out {file}.again")).good();
    }
    let line = format!("train broken.csv {TRAIN} --out no --on-invalid stop --config broken.csv.run/config.toml");
    place.line(&line).fails(2, &["--on-invalid", "data.missing"]);
    place.line("train broken.csv --on-invalid ignore").fails(2, &["--on-invalid", "drop", "stop"]);
}

#[test]
fn logs_for_other_programs_have_every_epoch() {
    let place = Place::new();
    place.table("table.csv", 100, 2);
    place.line(&format!("train table.csv {TRAIN} --out none")).good();
    assert!(!place.path("none/metrics.jsonl").exists() && !place.path("none/tensorboard").exists());
    place.line(&format!("train table.csv {TRAIN} --out run --set train.log=tensorboard,jsonl")).good();
    let lines = place.text("run/metrics.jsonl");
    let lines: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let metrics = place.text("run/metrics.csv");
    let metrics: Vec<Vec<&str>> = metrics.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines.len() + 1, metrics.len());
    for (line, row) in lines.iter().zip(&metrics[1..]) {
        for (name, cell) in metrics[0].iter().zip(row).filter(|(name, _)| **name != "rows_per_s") {
            assert_eq!(line[*name].as_f64(), cell.parse().ok(), "{name}");
        }
    }
    let files = place.names("run/tensorboard");
    assert!(files.len() == 1 && files[0].contains("tfevents"), "{files:?}");
    let mut events = &place.read(format!("run/tensorboard/{}", files[0]))[..];
    let mut count = 0;
    while let Some(length) = events.first_chunk::<8>() {
        events = &events[16 + u64::from_le_bytes(*length) as usize..];
        count += 1;
    }
    assert_eq!((count, events.len()), (3, 0), "the version, and an event for each epoch");
    // Another training in this folder begins anew, and leaves no log that it does not write.
    place.line(&format!("train table.csv {TRAIN} --out run --force --set train.log=jsonl")).good();
    assert_eq!(place.text("run/metrics.jsonl").lines().count(), 2);
    assert!(!place.path("run/tensorboard").exists());
    // What is not its own stays.
    std::fs::create_dir(place.path("run/tensorboard")).unwrap();
    place.write("run/tensorboard/mine", "x");
    place.line(&format!("train table.csv {TRAIN} --out run --force")).good();
    assert_eq!(place.names("run/tensorboard"), ["mine"]);
    place.line("train table.csv --set train.log=wandb --out x").fails(2, &["train.log", "`jsonl` or `tensorboard`"]);
}

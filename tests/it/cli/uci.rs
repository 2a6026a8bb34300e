//! The UCI data sets of the paper, from small files of their layouts to a trained model.

use std::fmt::Write as _;

use crate::cli::tool::Place;

/// A number with two decimals, from -50 to 50, that looks like chance.
fn cell(i: usize, j: usize) -> String {
    let x = ((i + 1) as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add((j as u64) << 32);
    let x = (x ^ x >> 31).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    format!("{:.2}", (x >> 40) as f64 / (1u64 << 24) as f64 * 100.0 - 50.0)
}

fn write_power(place: &Place) {
    let mut text = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;\
        Sub_metering_2;Sub_metering_3\n"
        .to_owned();
    for i in 0..100 {
        let measured: Vec<_> = (0..7).map(|j| if i == 7 { "?".into() } else { cell(i, j) }).collect();
        writeln!(text, "1/2/2007;{:02}:{:02}:00;{}", i % 24, i % 60, measured.join(";")).unwrap();
    }
    place.write("household_power_consumption.txt", text);
}

fn write_gas(place: &Place) {
    let mut text = "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels)\n".to_owned();
    for i in 0..400 {
        let all: Vec<_> = (0..19).map(|j| cell(i, j)).collect();
        writeln!(text, "{}", all.join("    ")).unwrap();
    }
    std::fs::create_dir_all(place.path("gas")).unwrap();
    place.write("gas/ethylene_CO.txt", text);
}

fn write_miniboone(place: &Place) {
    let mut text = " 100 20\n".to_owned();
    for i in 0..120 {
        // The last seven variables have one value more than five times.
        let all: Vec<_> = (0..50).map(|j| if j >= 43 && i % 5 == 0 { "-9e1".into() } else { cell(i, j) }).collect();
        writeln!(text, "   {}", all.join("  ")).unwrap();
    }
    place.write("MiniBooNE_PID.txt", text);
}

const SMALL: &str = "--device cpu --epochs 1 --batch 16 --set model.width=4 --set model.blocks=2";

/// The number before a word of a text.
fn number_before(text: &str, word: &str) -> f64 {
    let before = text.split_once(word).unwrap_or_else(|| panic!("no `{word}` in {text}")).0;
    before.split_whitespace().last().unwrap().parse().unwrap()
}

#[test]
fn uci_data_sets_train_from_their_files() {
    let place = Place::new();
    write_power(&place);
    write_gas(&place);
    write_miniboone(&place);
    for (name, path, columns, train, test) in [
        ("power", "household_power_consumption.txt", 6, 81, 9),
        ("power", ".", 6, 81, 9),
        ("gas", "gas", 16, 81, 10),
        ("miniboone", "MiniBooNE_PID.txt", 42, 81, 10),
    ] {
        let done = place.line(&format!("train {name} --set data.path={path} {SMALL} --out run --force")).good();
        let rows = format!("data:   {name}, {columns} columns, {train} training rows, {test} held out");
        assert!(done.stderr.contains(&rows), "{}", done.stderr);
        // The paper's number: nats of a whole row, with the constant.
        let density = number_before(&done.stderr, " nats per row");
        let metrics = place.text("run/metrics.csv");
        let fields: Vec<&str> = metrics.lines().last().unwrap().split(',').collect();
        let loss: f64 = fields[3].parse().unwrap();
        let expected = -loss - 0.5 * f64::from(columns) * std::f64::consts::TAU.ln();
        assert!((density - expected).abs() <= 1e-3, "{density}, {expected}");
    }
    // The settings of a run are those of another one.
    let config = place.text("run/config.toml");
    assert!(config.contains("preset = \"miniboone\"") && config.contains("MiniBooNE_PID.txt"), "{config}");
    place.line("train --config run/config.toml --device cpu --out again").good();
    assert!(place.read("again/model.safetensors") == place.read("run/model.safetensors"));
    assert!(place.line("train --resume run").good().stderr.contains("is finished"));
    let samples = place.line("sample run -n 3 --device cpu").good().stdout;
    assert!(samples.starts_with("variable_1,variable_2,") && samples.lines().count() == 4, "{samples}");
}

#[test]
fn uci_data_sets_say_which_file_they_need() {
    let place = Place::new();
    write_power(&place);
    place.table("table.csv", 60, 2);
    place.line("train power --out out").fails(
        2,
        &[
            "data.path",
            "household_power_consumption.txt",
            "archive.ics.uci.edu",
            "zenodo.org",
            "hintflow train power --set",
        ],
    );
    place.line("train gas --out out --set data.path=none.txt").fails(2, &["data.path", "none.txt", "ethylene_CO"]);
    place.line("train miniboone --out out --set data.path=.").fails(2, &["has none of MiniBooNE_PID.txt"]);
    place.line("train power --out out --set data.path=table.csv").fails(1, &["table.csv", "first line"]);
    let power = "train power --out out --set data.path=household_power_consumption.txt";
    for (more, words) in [
        ("", &["train.batch", "1660", "81 training rows"][..]),
        ("--batch 16 --set data.rows=82", &["data.rows", "82", "81 training rows"]),
        ("--set model.kind=hint", &["model.kind", "power has no conditions"]),
        ("--set data.validation=0.1", &["data.validation", "test rows of its own"]),
        ("--set data.test_rows=5", &["data.test_rows", "test rows of its own"]),
        ("--set data.columns=1", &["data.columns", "modelled whole"]),
        ("--set data.seed=4294967296", &["data.seed", "2^32"]),
    ] {
        place.line(&format!("{power} {more} --device cpu")).fails(2, words);
    }
    place
        .line("train table.csv --set data.preset=power --out out")
        .fails(2, &["data.preset", "hintflow train power --set data.path=table.csv"]);
    place.line("train lens --set data.path=table.csv --out out").fails(2, &["data.path", "contradicts"]);
    assert!(!place.path("out").exists());
    let help = place.line("train --help").good().stdout;
    assert!(["power", "gas", "miniboone"].iter().all(|name| help.contains(name)), "{help}");
}

#[test]
fn a_file_of_a_data_set_is_no_plain_table() {
    let place = Place::new();
    write_power(&place);
    let what = "hintflow train power --set data.path=household_power_consumption.txt";
    place.line("train household_power_consumption.txt").fails(2, &[what]);
    place.line("train POWER").fails(2, &["POWER", "power", "small letters"]);
}

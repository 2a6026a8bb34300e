//! Columns whose numbers 32-bit floats do not hold as they are.

use crate::cli::tool::Place;

/// A table of two columns, of which the second is not packed, and a condition.
fn table(first: impl Fn(f64) -> f64) -> String {
    let rows = (0..400).map(|i| {
        let (u, v) = (f64::from(i * 7919 % 401) / 401.0, f64::from(i * 104_729 % 397) / 397.0);
        format!("{:?},{v:?},{:?}\n", first(1.0 + u * u), u + 0.3 * v)
    });
    format!("a,b,c\n{}", rows.collect::<String>())
}

fn numbers(text: &str) -> Vec<f64> {
    text.lines().map(|line| line.parse().unwrap()).collect()
}

/// The first column of a table on stdout.
fn first_column(text: &str) -> Vec<f64> {
    text.lines().skip(1).map(|line| line.split(',').next().unwrap().parse().unwrap()).collect()
}

const TRAIN: &str = "--device cpu --epochs 2 --set model.width=8 --set model.blocks=2 --set train.batch=50";

#[test]
fn tiny_huge_and_distant_numbers_have_the_densities_of_usual_ones() {
    type Case = (&'static str, fn(f64) -> f64, f64, &'static str);
    let cases: [Case; 4] = [
        ("tiny", |x| 1e-46 * x, 1e-46, "in units of 1e-46"),
        ("denormal", |x| 1e-200 * x, 1e-200, "in units of 1e-200"),
        ("huge", |x| 1e51 * x, 1e51, "in units of 1e51"),
        ("far", |x| 1.7e9 + x, 1.0, "less 1700000001"),
    ];
    let place = Place::new();
    place.write("usual.csv", table(|x| x));
    place.line(&format!("train usual.csv --out usual {TRAIN}")).good();
    let usual = numbers(&place.line("log-prob usual usual.csv --device cpu").good().stdout);
    for (name, number, scale, told) in cases {
        place.write(&format!("{name}.csv"), table(number));
        let done = place.line(&format!("train {name}.csv --out {name} {TRAIN}")).good();
        assert!(done.stderr.contains("column 1 (`a`) is taken") && done.stderr.contains(told), "{}", done.stderr);
        assert!(!done.stderr.contains("warning"), "{}", done.stderr);
        let scored = place.line(&format!("log-prob {name} {name}.csv --device cpu")).good();
        assert!(!scored.stderr.contains("warning"), "{}", scored.stderr);
        let scored = numbers(&scored.stdout);
        assert_eq!(scored.len(), usual.len());
        for (row, (a, b)) in scored.iter().zip(&usual).enumerate() {
            // The last digits of packed numbers are others, and two epochs of training carry that on.
            assert!((a + scale.ln() - b).abs() < 0.05, "{name} row {row}: {a} + {} against {b}", scale.ln());
        }
        // Samples are numbers of the table's column.
        let sampled = first_column(&place.line(&format!("sample {name} -n 200 --device cpu")).good().stdout);
        let inside = sampled.iter().filter(|&&x| number(-4.0) < x && x < number(7.0)).count();
        assert!(inside == sampled.len(), "{name}: {inside} of {}", sampled.len());
    }
}

#[test]
fn packed_columns_go_through_files_and_back() {
    let place = Place::new();
    place.write("tiny.csv", table(|x| 1e-46 * x));
    place.line(&format!("train tiny.csv --out run {TRAIN}")).good();
    for extension in ["csv", "npy"] {
        place.line(&format!("sample run -n 50 -o drawn.{extension} --device cpu")).good();
        place.line(&format!("encode run drawn.{extension} -o z.npy --device cpu --force")).good();
        place.line(&format!("decode run z.npy -o back.{extension} --device cpu")).good();
    }
    // Both hold the same samples; rows by name and by place have the same densities.
    let scores = |file: &str| place.line(&format!("log-prob run {file} --device cpu")).good().stdout;
    assert_eq!(scores("drawn.csv"), scores("drawn.npy"));
    let far = |a: &str, b: &str| {
        let (a, b) = (numbers(&scores(a)), numbers(&scores(b)));
        a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max)
    };
    assert!(far("drawn.csv", "back.csv") < 1e-2, "{}", far("drawn.csv", "back.csv"));
    // Reversed columns are found by their names, packing and all.
    let reversed: String = place
        .text("drawn.csv")
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').rev().collect();
            cells.join(",") + "\n"
        })
        .collect();
    place.write("reversed.csv", reversed);
    assert_eq!(scores("drawn.csv"), scores("reversed.csv"));
    // A single row, of which nobody could tell that its numbers need an offset.
    let one: String = place.text("drawn.csv").lines().take(2).map(|line| format!("{line}\n")).collect();
    place.write("one.csv", one);
    assert_eq!(numbers(&scores("one.csv"))[0], numbers(&scores("drawn.csv"))[0]);
    place.line("check run tiny.csv --device cpu").good();
    place.line("evaluate run --device cpu").good();
}

#[test]
fn a_packed_training_resumes_to_the_same_bits_and_goes_on_elsewhere() {
    let place = Place::new();
    place.write("far.csv", table(|x| 1.7e9 + x));
    place.line(&format!("train far.csv --out whole {TRAIN}")).good();
    place.line(&format!("train far.csv --out part {TRAIN} --set run.checkpoint_every=5")).good();
    let checkpoints = place.names("part/checkpoints").into_iter().filter(|name| name.ends_with(".safetensors"));
    for later in checkpoints.skip(1) {
        std::fs::remove_file(place.path(format!("part/checkpoints/{later}"))).unwrap();
    }
    std::fs::remove_file(place.path("part/model.safetensors")).unwrap();
    place.line("train --resume part --device cpu").good();
    assert!(place.read("whole/model.safetensors") == place.read("part/model.safetensors"));
    // Another table, of other numbers, is packed as the model to start from has it.
    place.write("later.csv", table(|x| 1.7e9 + 50.0 + x));
    let done = place.line(&format!("train later.csv --init whole --out later {TRAIN}")).good();
    assert!(!done.stderr.contains("is taken"), "its packing is the model's: {}", done.stderr);
    let sampled = first_column(&place.line("sample later -n 100 --device cpu").good().stdout);
    let mut sorted = sampled.clone();
    sorted.sort_by(f64::total_cmp);
    assert!((sorted[50] - 1.7e9 - 1.0).abs() < 60.0, "{sampled:?}");
    // The model's columns by place: others in their places are no packing of these.
    let swapped: String = place
        .text("later.csv")
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            format!("{},{},{}\n", cells[1], cells[0], cells[2])
        })
        .collect();
    place.write("swapped.csv", swapped);
    place.line(&format!("train swapped.csv --init whole --out swapped {TRAIN}")).fails(2, &["model.init", "order"]);
}

#[test]
fn conditions_are_packed_too_and_bounds_are_of_numbers() {
    let place = Place::new();
    place.write("t.csv", table(|x| 1.7e9 + x));
    let lower = "--set columns.a.lower=1700000000.9 --set columns.a.upper=1700000002.5";
    place.line(&format!("train t.csv --given a --set model.kind=hint --out given {TRAIN} {lower}")).good();
    place.write("seen.csv", "a\n1700000001.25\n");
    let near = place.line("sample given --given seen.csv -n 20 --device cpu").good();
    assert!(!near.stderr.contains("warning"), "{}", near.stderr);
    place.write("seen.csv", "a\n1700000009.25\n");
    let words = ["seen.csv", "1700000009.25", "1700000000.9", "1700000002.5"];
    place.line("sample given --given seen.csv -n 20 --device cpu").fails(1, &words);
    let joint = first_column(&place.line("sample given -n 100 --device cpu").good().stdout);
    assert!(joint.iter().all(|x| (1_700_000_000.9..1_700_000_002.5).contains(x)), "{joint:?}");
    place.line("log-prob given t.csv --of joint --device cpu").good();
}

#[test]
fn single_numbers_beyond_all_floats_stay_errors_with_their_place() {
    let place = Place::new();
    let text = table(|x| x);
    let wrong: Vec<String> = text
        .lines()
        .enumerate()
        .map(|(i, line)| match i {
            7 => format!("1e60,{}", line.split_once(',').unwrap().1),
            _ => line.to_owned(),
        })
        .collect();
    place.write("wrong.csv", wrong.join("\n"));
    place.line("train wrong.csv --device cpu --out run").fails(1, &["row 7", "column 1", "(`a`)", "1e60", "too large"]);
    // A code among numbers that are tiny would make nothing of them: it has to be named.
    let coded = table(|x| if x > 1.9 { -999.0 } else { 1e-46 * x });
    place.write("coded.csv", coded);
    place.line(&format!("train coded.csv --out coded {TRAIN}")).fails(1, &["column 1", "-9.99e2", "data.missing"]);
    place.line(&format!("train coded.csv --out coded --set data.missing=-999 {TRAIN}")).good();
    // Among times it does no harm.
    place.write("times.csv", table(|x| if x > 1.9 { -999.0 } else { 1.7e9 + x }));
    let done = place.line(&format!("train times.csv --out times {TRAIN}")).good();
    assert!(done.stderr.contains("is taken less 1700000001") && done.stderr.contains("a (-1000 "), "{}", done.stderr);
    // A single row is scored as one among others.
    place.write("one.csv", "a,b,c\n1e-90,0.5,0.5\n");
    place.line("log-prob coded one.csv --device cpu").good();
}

#[test]
fn nameless_tables_are_packed_by_place() {
    let place = Place::new();
    let text = table(|x| 1e51 * x);
    place.write("t.txt", text.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>());
    place.line(&format!("train t.txt --given 2 --set model.kind=hint --out run {TRAIN}")).good();
    let scored = numbers(&place.line("log-prob run t.txt --given 2 --device cpu").good().stdout);
    assert_eq!(scored.len(), 400);
    assert!(scored.iter().all(|score| (-140.0..-90.0).contains(score)), "{:?}", &scored[..5]);
    // A picture says what its axis is.
    assert!(place.text("run/plots/marginals.svg").contains("1 [1e51]"));
}

#[test]
fn pictures_of_packed_samples_are_drawn() {
    let place = Place::new();
    place.write("a.csv", table(|x| 1e-46 * x));
    place.write("b.csv", table(|x| 1.1e-46 * x));
    place.line("plot corner a.csv b.csv -o corner.png").good();
    assert!(place.text("corner.svg").contains("a [1e-46]"));
    place.line("plot correlation a.csv b.csv -o correlation.png").good();
}

/// Lines of a table, its first cells changed where `change` says.
fn changed(text: &str, change: impl Fn(usize) -> Option<String>) -> String {
    let line = |(i, line): (usize, &str)| match change(i) {
        Some(first) => format!("{first},{}\n", line.split_once(',').unwrap().1),
        None => format!("{line}\n"),
    };
    text.lines().enumerate().map(line).collect()
}

#[test]
fn codes_that_vanish_beside_huge_numbers_are_named() {
    let place = Place::new();
    let coded = changed(&table(|x| 1e51 * x), |i| (i > 0 && i % 40 == 5).then(|| "-999".into()));
    place.write("coded.csv", &coded);
    let done = place.line(&format!("train coded.csv --out run {TRAIN}")).good();
    let told = "a (-999 10 times, first in row 5)";
    assert!(done.stderr.contains(told) && done.stderr.contains("data.missing"), "{}", done.stderr);
    let data: serde_json::Value = serde_json::from_str(&place.text("run/data.json")).unwrap();
    let finding = &data["findings"][0];
    assert_eq!((&finding["problem"], &finding["columns"]), (&"vanished".into(), &serde_json::json!(["a"])));
    assert!(place.text("run/report.html").replace('\u{a0}', " ").contains(told));
    // Named as missing, nothing is lost.
    let done = place.line(&format!("train coded.csv --out clean --set data.missing=-999 {TRAIN}")).good();
    assert!(!done.stderr.contains("taken for 0"), "{}", done.stderr);
    // Nor does a model of such numbers take them without a word.
    let done = place.line("log-prob clean coded.csv --device cpu").good();
    assert!(done.stderr.contains(told), "{}", done.stderr);
}

#[test]
fn a_row_beyond_all_floats_has_no_density_and_does_not_end_the_command() {
    let place = Place::new();
    for (name, number) in [("far", (|x| 1.7e9 + x) as fn(f64) -> f64), ("usual", |x| x)] {
        place.write(&format!("{name}.csv"), table(number));
        place.line(&format!("train {name}.csv --out {name} {TRAIN}")).good();
        let text: String = place.text(format!("{name}.csv")).lines().take(60).map(|line| format!("{line}\n")).collect();
        place.write("new.csv", changed(&text, |i| [7, 9].contains(&i).then(|| "-1e39".into())));
        let all = numbers(&place.line(&format!("log-prob {name} {name}.csv --device cpu")).good().stdout);
        let done = place.line(&format!("log-prob {name} new.csv --device cpu")).good();
        let scored = numbers(&done.stdout);
        let words = ["2 of 59 rows have", "row 7, column 1 (`a`): -1e39"];
        assert!(words.iter().all(|word| done.stderr.contains(word)), "{}", done.stderr);
        for (row, (new, old)) in scored.iter().zip(&all).enumerate() {
            assert_eq!(*new, if [6, 8].contains(&row) { f64::NEG_INFINITY } else { *old }, "row {row}");
        }
        let done = place.line(&format!("check {name} new.csv --device cpu")).good();
        assert!(done.stderr.contains("2 of 59 rows left out") && done.stderr.contains("row 7"), "{}", done.stderr);
        // What has no other answer stays an error.
        place.line(&format!("encode {name} new.csv -o z.npy --device cpu")).fails(1, &["row 7", "-1e39"]);
    }
    // Of conditions: no density of theirs, and none given them.
    place.line(&format!("train usual.csv --given a --set model.kind=hint --out given {TRAIN}")).good();
    place.write("one.csv", "a,b,c\n1e39,0.5,0.5\n1.5,0.5,0.5\n");
    place.line("log-prob given one.csv --device cpu").fails(1, &["row 1", "1e39"]);
    for of in ["joint", "evidence"] {
        let done = place.line(&format!("log-prob given one.csv --of {of} --device cpu")).good();
        assert!(done.stdout.starts_with("-inf\n") && done.stderr.contains("row 1"), "{}", done.stderr);
    }
}

#[test]
fn a_model_to_start_from_says_which_numbers_it_cannot_take() {
    let place = Place::new();
    for (name, number) in [("far", (|x| 1.7e9 + x) as fn(f64) -> f64), ("usual", |x| x), ("huge", |x| 1e51 * x)] {
        place.write(&format!("{name}.csv"), table(number));
        place.line(&format!("train {name}.csv --out {name} {TRAIN}")).good();
    }
    for (file, init, words) in [
        ("usual", "far", "takes a less 1700000001"),
        ("far", "usual", "takes a as it is"),
        ("huge", "usual", "row 1 of"),
        ("usual", "huge", "in units of 1e51"),
    ] {
        let line = format!("train {file}.csv --init {init} --out {file}-{init} {TRAIN}");
        place.line(&line).fails(2, &["--init", words, &format!("{file}.csv"), "train without --init"]);
        assert!(!place.path(format!("{file}-{init}")).exists());
    }
}

#[test]
fn a_column_of_one_number_comes_back_exactly() {
    let place = Place::new();
    for (name, number) in [("huge", "1.2345678901e51"), ("time", "1700000000.123"), ("tiny", "1.2345678901e-46")] {
        place.write(&format!("{name}.csv"), changed(&table(|x| x), |i| (i > 0).then(|| number.into())));
        place.line(&format!("train {name}.csv --out {name} {TRAIN}")).good();
        let want: f64 = number.parse().unwrap();
        let sampled = first_column(&place.line(&format!("sample {name} -n 500 --device cpu")).good().stdout);
        assert!(sampled.iter().all(|&x| x == want), "{name}: {:?}", &sampled[..5]);
        let data: serde_json::Value = serde_json::from_str(&place.text(format!("{name}/data.json"))).unwrap();
        for key in ["least", "greatest", "mean"] {
            assert_eq!(data["columns"][0][key], want, "{name} {key}");
        }
        place.line(&format!("encode {name} {name}.csv -o z.npy --force --device cpu")).good();
        place.line(&format!("decode {name} z.npy -o back.csv --force --device cpu")).good();
        assert!(first_column(&place.text("back.csv")).iter().all(|&x| x == want));
        // As it is printed.
        assert!(place.text(format!("{name}/report.html")).contains(&format!(">{number}<")), "{name}");
    }
}

#[test]
fn quantiles_of_times_are_told_apart_in_reports() {
    let place = Place::new();
    place.write("far.csv", table(|x| 1.7e9 + x));
    place.line(&format!("train far.csv --out far {TRAIN}")).good();
    let page = place.text("far/report.html");
    let cells = |from: &str| -> Vec<String> {
        let row = page.split(&format!(">{from}</td>")).nth(1).unwrap().split("</tr>").next().unwrap();
        row.split('>').filter_map(|part| part.split_once("</td").map(|(cell, _)| cell.to_owned())).collect()
    };
    let shown = cells("a");
    // Least, five quantiles and greatest, of which the first two are very near to each other.
    let mut apart = shown[1..7].to_vec();
    apart.dedup();
    assert_eq!(apart.len(), 6, "{shown:?}");
    assert!(apart.iter().all(|cell| cell.starts_with("170000000")), "{shown:?}");
}

#[test]
fn rows_at_the_edge_of_bounds_stay_inside() {
    let place = Place::new();
    // 0.7 is no 32-bit float, and the next below it is less.
    let near = changed(&table(|x| 0.7 + 0.1 * x), |i| (i == 4).then(|| "0.700000000001".into()));
    place.write("near.csv", &near);
    let bounded = "--set columns.a.lower=0.7";
    place.line(&format!("train near.csv --out near {bounded} {TRAIN}")).good();
    let scored = place.line("log-prob near near.csv --device cpu").good();
    assert!(numbers(&scored.stdout).iter().all(|score| score.is_finite()) && !scored.stderr.contains("bounds"));
    // In units of a power of ten, by number, and of conditions in a file of their own.
    let tiny = changed(&table(|x| 1e-46 * x), |i| (i == 4).then(|| "1e-120".into()));
    place.write("tiny.txt", tiny.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>());
    place.line(&format!("train tiny.txt --out tiny --set columns.1.lower=0 {TRAIN}")).good();
    let lines = "--given near.csv --set columns.a.lower=0.7 --set model.kind=hint";
    place.write("x.csv", table(|x| x).replace("a,b,c", "d,e,f"));
    place.line(&format!("train x.csv --out given {lines} {TRAIN}")).good();
    // What lies on the bound is named, as ever.
    place.write("on.csv", changed(&near, |i| (i == 9).then(|| "0.7".into())));
    let words = ["on.csv", "row 9", "column 1 (`a`)", "greater than 0.7"];
    place.line(&format!("train on.csv --out on {bounded} {TRAIN}")).fails(1, &words);
}

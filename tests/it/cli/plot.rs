//! Pictures on request: corner plots, losses, correlations, curves.

use std::fmt::Write as _;

use crate::cli::tool::Place;

fn svg(place: &Place, name: &str) -> String {
    assert!(place.read(format!("{name}.png")).starts_with(b"\x89PNG"), "{name}");
    place.text(format!("{name}.svg"))
}

/// Whether a picture has a text of its own line.
fn has(svg: &str, text: &str) -> bool {
    svg.contains(&format!("\n{text}\n"))
}

#[test]
fn samples_are_drawn_as_a_corner_plot() {
    let place = Place::new();
    place.table("a.csv", 500, 3);
    place.table("b.csv", 300, 3);
    place.line("plot corner a.csv -o one.png").good();
    let one = svg(&place, "one");
    for text in ["a", "b", "c", "lines: 50 % and 90 % regions"] {
        assert!(has(&one, text), "{text}");
    }
    // Beside each other: other names, another order, some of the columns, and true values.
    let rows = place.text("b.csv");
    let swapped: String = rows.lines().map(|line| line.split(',').rev().collect::<Vec<_>>().join(",") + "\n").collect();
    place.write("b.csv", swapped);
    place.write("theta.csv", "b,a\n0.25,0.5\n");
    place.line("plot corner a.csv b.csv --columns a,b --labels rate,dose --truth theta.csv -o both.svg").good();
    let both = svg(&place, "both");
    for text in ["a", "b", "rate", "dose", "truth"] {
        assert!(has(&both, text), "{text}");
    }
    assert!(!has(&both, "c"));
    // Two colours, and lines of the truth in each of three panels and in both directions of one.
    assert!(both.contains("#0072B2") && both.contains("#D55E00"));
    // What lies where is the same whatever the order of columns is.
    place.line("plot corner b.csv --columns a,b -o straight.png").good();
    let sorted: String = rows.lines().fold(String::new(), |mut text, line| {
        let cells: Vec<&str> = line.split(',').collect();
        writeln!(text, "{},{}", cells[0], cells[1]).unwrap();
        text
    });
    std::fs::create_dir(place.path("other")).unwrap();
    place.write("other/b.csv", sorted);
    place.line("plot corner other/b.csv -o sorted.png").good();
    assert_eq!(svg(&place, "straight"), svg(&place, "sorted"));
}

#[test]
fn weights_of_samples_are_seen() {
    let place = Place::new();
    place.table("a.csv", 400, 2);
    let rows = place.text("a.csv");
    let with = |weight: &dyn Fn(usize) -> String| -> String {
        let lines = rows.lines().enumerate();
        lines.map(|(i, line)| format!("{line},{}\n", if i == 0 { "weight".into() } else { weight(i) })).collect()
    };
    place.write("even.csv", with(&|_| "0.5".into()));
    place.write("few.csv", with(&|i| if i % 4 == 0 { "1".into() } else { "0".into() }));
    place.write("bad.csv", with(&|_| "-1".into()));
    for name in ["even", "few"] {
        place.line(&format!("plot corner {name}.csv -o {name}.png")).good();
        assert!(!has(&svg(&place, name), "weight"));
    }
    let dots = |name: &str| svg(&place, name).matches("<circle").count();
    assert_eq!((dots("even"), dots("few")), (400, 100));
    place.line("plot corner bad.csv -o bad.png").fails(1, &["bad.csv", "weight"]);
    // Weights of any size, and such as hardly differ.
    type Weight = fn(usize) -> f64;
    let sizes: [(&str, Weight); 4] = [
        ("small", |i| if i.is_multiple_of(4) { 1e-50 } else { 1e-90 }),
        ("wide", |i| if i.is_multiple_of(4) { 1e60 } else { 1e-60 }),
        ("tiny", |_| 3e-300),
        ("alike", |i| 0.002_5 * (1.0 + 1e-9 * i as f64)),
    ];
    for (name, weight) in sizes {
        place.write(&format!("{name}.csv"), with(&|i| format!("{:e}", weight(i))));
        for columns in ["", "--columns a,b"] {
            place.line(&format!("plot corner {name}.csv {columns} -o {name}.png --force")).good();
            let expected = if weight(1) == weight(4) || name == "alike" { 400 } else { 100 };
            assert_eq!(dots(name), expected, "{name} {columns}");
            assert!(!has(&svg(&place, name), "weight"));
        }
    }
    // Beside a file without weights, in any order.
    place.line("plot corner a.csv tiny.csv -o both.png").good();
}

#[test]
fn corner_plots_say_what_they_cannot_draw() {
    let place = Place::new();
    place.table("a.csv", 50, 3);
    place.table("wide.csv", 50, 20);
    place.write("groups.csv", "observation,a\n1,0.5\n2,0.25\n");
    place.write("two.csv", "a,b,c\n1,2,3\n4,5,6\n");
    for (line, words) in [
        ("plot corner wide.csv -o x.png", &["20 columns", "--columns a,b,c,d"][..]),
        ("plot corner a.csv --columns a,z -o x.png", &["--columns", "`z`", "a.csv"]),
        ("plot corner a.csv --labels x,y -o x.png", &["--labels", "3 columns"]),
        ("plot corner a.csv -o x.pdf", &["-o", ".png and .svg"]),
        ("plot corner a.csv a.csv a.csv a.csv a.csv a.csv a.csv -o x.png", &["at most 6"]),
    ] {
        place.line(line).fails(2, words);
    }
    for (line, words) in [
        ("plot corner groups.csv -o x.png", &["groups.csv", "several observations"][..]),
        ("plot corner groups.csv --columns a -o x.png", &["groups.csv", "several observations"]),
        ("plot corner a.csv wide.csv --columns 1,2 --truth two.csv -o x.png", &["two.csv", "one row"]),
        ("plot corner missing.npy -o x.png", &["missing.npy"]),
        ("plot corner wide.csv a.csv -o x.png", &["a.csv", "3 columns", "--columns"]),
    ] {
        place.line(line).fails(1, words);
    }
    assert!(!place.path("x.png").exists() && !place.path("x.svg").exists());
    place.line("plot corner wide.csv --columns 1,20 -o x.png").good();
    place.line("plot corner a.csv -o x.svg").fails(1, &["x.png", "--force"]);
    place.line("plot corner a.csv -o x.svg --force").good();
    place.line("plot corner a.csv").fails(2, &["--output"]);
}

#[test]
fn losses_of_runs_are_compared() {
    let place = Place::new();
    place.trained();
    let small = "--device cpu --epochs 3 --set model.width=8 --set model.blocks=1";
    place.line(&format!("train table.csv {small} --out other")).good();
    place.line(&format!("train table.csv {small} --out none --set data.validation=0")).good();
    place.line("plot losses run other -o losses.png").good();
    let losses = svg(&place, "losses");
    for text in ["run", "other", "Loss of the held-out rows", "epoch"] {
        assert!(has(&losses, text), "{text}");
    }
    assert!(losses.contains("in epoch"));
    place.line("plot losses run none -o x.png").fails(1, &["none", "held-out", "data.validation"]);
    place.line("plot losses table.csv -o x.png").fails(1, &["table.csv", "run folder"]);
}

#[test]
fn correlations_and_curves_are_drawn() {
    let place = Place::new();
    place.table("a.csv", 100, 3);
    place.table("b.csv", 80, 3);
    place.line("plot correlation a.csv -o one.png").good();
    assert!(has(&svg(&place, "one"), "a: correlations of 100 rows"));
    place.line("plot correlation a.csv b.csv -o two.png").good();
    let two = svg(&place, "two");
    assert!(has(&two, "a: 100 rows") && has(&two, "b: 80 rows"));
    place.line("plot correlation a.csv b.csv --columns c,a -o few.png").good();
    assert!(!has(&svg(&place, "few"), "b"));
    place.table("other.csv", 80, 2);
    place.line("plot correlation a.csv other.csv -o x.png").fails(1, &["other.csv", "2 columns"]);

    place.line("simulate lens -n 40 -o lens.npy").good();
    place.line("plot outlines lens.npy -o curves").good();
    assert!(has(&svg(&place, "curves"), "lens"));
    place.line("plot outlines a.csv -o x.png").fails(1, &["a.csv", "3 columns", "20"]);
}

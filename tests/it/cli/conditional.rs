//! Conditional models as a user meets them: conditions from a file or from columns, posteriors, densities of each kind,
//! bounds, and every kind of bad input.

use hintflow::data::Table;

use crate::cli::tool::Place;

pub(crate) const SMALL: &str = "--device cpu --epochs 4 --set model.blocks=2 --set model.width=8";

impl Place {
    /// Conditions `u`, `v` in `y.csv` and two columns of x in `x.csv`; both in `both.csv`.
    pub(crate) fn pairs(&self, rows: usize) {
        let line = |i: usize| {
            let t = i as f64 / rows as f64;
            let (u, v) = ((17.0 * t).sin(), (31.0 * t).cos());
            let noise = |k: usize| 0.2 * ((i * k) % 101) as f64 / 101.0;
            (format!("{u:.5},{v:.5}"), format!("{:.5},{:.5}", 0.5 + u * v + noise(7919), 10.0 + u + noise(104_729)))
        };
        let (y, x): (Vec<_>, Vec<_>) = (0..rows).map(line).unzip();
        let both: Vec<_> = y.iter().zip(&x).map(|(y, x)| format!("{y},{x}")).collect();
        for (name, header, lines) in [("y.csv", "u,v", y), ("x.csv", "a,b", x), ("both.csv", "u,v,a,b", both)] {
            self.write(name, format!("{header}\n{}\n", lines.join("\n")));
        }
    }

    /// Trains a model of x given y into the folder `kind`.
    fn posterior(&self, kind: &str) {
        self.pairs(200);
        self.line(&format!("train x.csv --given y.csv --set model.kind={kind} --out {kind} {SMALL}")).good();
    }

    fn table_of(&self, name: &str) -> Table {
        Table::read(self.path(name)).unwrap_or_else(|e| panic!("{e}"))
    }

    /// What `log-prob` prints, a number a row.
    pub(crate) fn densities(&self, line: &str) -> Vec<f64> {
        self.line(&format!("log-prob {line} --device cpu")).good().stdout.lines().map(|l| l.parse().unwrap()).collect()
    }
}

fn assert_close(got: impl IntoIterator<Item = f64>, expected: impl IntoIterator<Item = f64>, tolerance: f64) {
    let (got, expected): (Vec<_>, Vec<_>) = (got.into_iter().collect(), expected.into_iter().collect());
    assert_eq!(got.len(), expected.len());
    for (i, (a, b)) in got.iter().zip(&expected).enumerate() {
        assert!((a - b).abs() <= tolerance * (1.0 + b.abs()), "{i}: {a} {b}");
    }
}

#[test]
fn conditions_come_from_a_file_or_from_columns() {
    let place = Place::new();
    place.posterior("hint");
    let train = |given: &str, out: &str| {
        place.line(&format!("train both.csv --given {given} --set model.kind=hint --out {out} {SMALL}")).good();
    };
    train("u,v", "names");
    train("1,2", "numbers");
    let model = place.read("hint/model.safetensors");
    assert!(place.read("names/model.safetensors") == model && place.read("numbers/model.safetensors") == model);

    // A file of both has its columns found by name, in any order.
    let alone = place.densities("hint x.csv --given y.csv");
    assert_eq!(place.densities("names both.csv"), alone);
    place.line("train --config hint/config.toml --out again").good();
    assert_eq!(place.read("again/model.safetensors"), model);
    let manifest: serde_json::Value = serde_json::from_str(&place.text("hint/manifest.json")).unwrap();
    assert_eq!(manifest["status"], "finished");
}

#[test]
fn a_hint_knows_three_densities() {
    let place = Place::new();
    place.posterior("hint");
    let posterior = place.densities("hint x.csv --given y.csv");
    let joint = place.densities("hint x.csv --given y.csv --of joint");
    let evidence = place.densities("hint y.csv --of evidence");
    assert_eq!(posterior.len(), 200);
    assert_close(joint.iter().copied(), posterior.iter().zip(&evidence).map(|(p, e)| p + e), 1e-5);
    assert_eq!(place.densities("hint x.csv --given y.csv --of posterior"), posterior);
    assert!(posterior.iter().zip(&joint).any(|(p, j)| (p - j).abs() > 0.1));
}

#[test]
fn latent_vectors_and_log_determinants_are_those_of_both_lanes() {
    let place = Place::new();
    place.posterior("hint");
    place.line("encode hint x.csv --given y.csv -o z.csv --log-det ld.csv --device cpu").good();
    let (z, log_det) = (place.table_of("z.csv"), place.table_of("ld.csv"));
    assert_eq!(z.columns(), ["z_y1", "z_y2", "z_x1", "z_x2"]);
    assert_eq!(log_det.columns(), ["log_det_y", "log_det_x"]);
    let density = |lane: usize| {
        z.iter_rows().zip(log_det.iter_rows()).map(move |(z, ld)| {
            let square: f64 = z[2 * lane..][..2].iter().map(|&z| f64::from(z).powi(2)).sum();
            f64::from(ld[lane]) - square / 2.0 - (2.0 * std::f64::consts::PI).ln()
        })
    };
    assert_close(place.densities("hint y.csv --of evidence"), density(0), 1e-4);
    assert_close(place.densities("hint x.csv --given y.csv"), density(1), 1e-4);

    // [z_y, z_x] goes back to [y, x]; z_x with conditions to x.
    place.line("decode hint z.csv -o both_back.csv --device cpu").good();
    let (back, both) = (place.table_of("both_back.csv"), place.table_of("both.csv"));
    assert_eq!(back.columns(), both.columns());
    let wide = |values: &[f32]| values.iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    assert_close(wide(back.values()), wide(both.values()), 1e-4);
    let z_x: Vec<f32> = z.iter_rows().flat_map(|row| row[2..].to_vec()).collect();
    Table::new(vec![], 2, z_x).unwrap().write(place.path("z_x.npy"), hintflow::Overwrite::No).unwrap();
    place.line("decode hint z_x.npy --given y.csv -o back.csv --device cpu").good();
    let (back, x) = (place.table_of("back.csv"), place.table_of("x.csv"));
    assert_eq!(back.columns(), ["a", "b"]);
    assert_close(wide(back.values()), wide(x.values()), 1e-4);
}

#[test]
fn a_cinn_goes_there_and_back_and_passes_its_check() {
    let place = Place::new();
    place.posterior("cinn");
    place.line("encode cinn x.csv --given y.csv -o z.npy --log-det ld.npy --device cpu").good();
    assert_eq!((place.table_of("z.npy").dim(), place.table_of("ld.npy").dim()), (2, 1));
    place.line("decode cinn z.npy --given y.csv -o back.csv --device cpu").good();
    let wide = |name: &str| place.table_of(name).values().iter().map(|&v| f64::from(v)).collect::<Vec<_>>();
    assert_close(wide("back.csv"), wide("x.csv"), 1e-4);
    let done = place.line("check cinn x.csv --given y.csv --device cpu").good();
    assert!(done.stdout.contains("ok") && !done.stdout.contains("FAILED"), "{}", done.stdout);
    let done = place.line("train x.csv --given y.csv --set model.kind=hint --device cpu --out hint --epochs 2").good();
    assert!(!done.stderr.contains("panicked"));
    let done = place.line("check hint x.csv --given y.csv --all --device cpu").good();
    assert!(done.stdout.contains("ok") && !done.stdout.contains("FAILED"), "{}", done.stdout);
    // How well both lanes fit, as their latent vectors have it.
    place.line("encode hint x.csv --given y.csv -o both.csv --force --device cpu").good();
    let z = place.table_of("both.csv");
    for (lane, name) in ["z_y", "z_x"].iter().enumerate() {
        let values: Vec<f64> = z.iter_rows().flat_map(|row| &row[2 * lane..][..2]).map(|&v| v.into()).collect();
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let line = done.stdout.lines().find(|line| line.starts_with(&format!("mean of {name} "))).expect(name);
        let said: f64 = line.split_whitespace().last().and_then(|word| word.parse().ok()).expect(line);
        assert!((said - mean).abs() < 1e-3 * mean.abs() + 1e-6, "{line}: {mean}");
    }
}

/// Each density of a `hint` is told with what it hides, and compared with a Gaussian of the same columns.
#[test]
fn every_density_of_a_hint_is_described() {
    let place = Place::new();
    place.posterior("hint");
    let median_above = |line: &str| -> f64 {
        let text = place.line(&format!("log-prob hint {line} --device cpu")).good().stderr;
        for words in ["median", "lowest log-densities: row", "of 200 rows", "samples are more than 10 times"] {
            assert!(text.contains(words), "no `{words}` in {text}");
        }
        let (_, rest) = text.split_once("the median row is ").expect("a comparison");
        let words: Vec<_> = rest.split_whitespace().take(2).collect();
        let value: f64 = words[0].parse().unwrap();
        if words[1] == "below" { -value } else { value }
    };
    // Medians of sums are about sums of medians: the Gaussians are those of the same columns.
    let posterior = median_above("x.csv --given y.csv");
    let joint = median_above("x.csv --given y.csv --of joint");
    let evidence = median_above("y.csv --of evidence");
    assert!((posterior + evidence - joint).abs() < 2.0, "{posterior} {evidence} {joint}");
    assert!([posterior, joint, evidence].iter().all(|v| v.abs() < 8.0), "{posterior} {evidence} {joint}");
    // Held-out rows are found again with their conditions.
    let done = place.line("check hint x.csv --given y.csv --device cpu").good();
    assert!(done.stdout.contains("not finite, of 20 ") && done.stdout.contains("|z_y|^2"), "{}", done.stdout);
}

#[test]
fn samples_of_one_and_of_several_observations() {
    let place = Place::new();
    place.posterior("hint");
    place.write("one.csv", "u,v\n0.5,0.25\n");
    place.write("three.csv", "v,u\n0.25,0.5\n-0.5,0.1\n0.7,-0.9\n");
    let one = place.line("sample hint --given one.csv -n 5 --device cpu").good().stdout;
    assert!(one.starts_with("a,b\n") && one.lines().count() == 6, "{one}");

    // Rows of the first observation are the same with others beside it.
    let three = place.line("sample hint --given three.csv -n 5 --device cpu").good().stdout;
    let lines: Vec<_> = three.lines().collect();
    assert_eq!((lines[0], lines.len()), ("observation,a,b", 16));
    for (i, line) in lines[1..].iter().enumerate() {
        assert!(line.starts_with(&format!("{},", i / 5 + 1)), "{line}");
    }
    assert_eq!(
        lines[1..6].iter().map(|l| l[2..].to_owned()).collect::<Vec<_>>(),
        one.lines().skip(1).collect::<Vec<_>>()
    );
    // And whatever -n is.
    let few = place.line("sample hint --given three.csv -n 2 --device cpu").good().stdout;
    let (few, lines) = (few.lines().collect::<Vec<_>>(), &lines[1..]);
    assert_eq!(few[1..], [lines[0], lines[1], lines[5], lines[6], lines[10], lines[11]]);

    place.line("sample hint --given three.csv -n 5 -o s.npy --device cpu").good();
    let bytes = place.read("s.npy");
    assert!(String::from_utf8_lossy(&bytes[..128]).contains("'shape': (3, 5, 2)"));
    place.line("sample hint --given three.csv -n 5 -o s.csv --device cpu").good();
    assert_eq!(place.text("s.csv"), three);

    // Without observations a hint draws both; a cinn cannot.
    let joint = place.line("sample hint -n 4 --device cpu").good().stdout;
    assert!(joint.starts_with("u,v,a,b\n") && joint.lines().count() == 5, "{joint}");
    place.posterior("cinn");
    place.line("sample cinn -n 4 --device cpu").fails(2, &["--given", "2 conditions (u, v)"]);
    let drawn = place.line("sample cinn --given one.csv -n 4 --device cpu").good().stdout;
    assert_eq!(drawn.lines().count(), 5);
}

#[test]
fn unusual_observations_are_warned_of() {
    let place = Place::new();
    place.posterior("hint");
    place.write("usual.csv", "u,v\n0.5,0.25\n");
    place.write("unusual.csv", "u,v\n40,-40\n");
    place.write("mixed.csv", "u,v\n0.5,0.25\n40,-40\n0.1,0.3\n");
    let said = |file: &str| place.line(&format!("sample hint --given {file} -n 1 --device cpu")).good().stderr;
    let text = said("usual.csv");
    assert!(text.contains("log p(y) of the observation is") && !text.contains("do not trust"), "{text}");
    assert!(said("unusual.csv").contains("do not trust its posterior"));
    let text = said("mixed.csv");
    assert!(text.contains("1 of 3 observations") && text.contains("Rows 2"), "{text}");
    // Only a hint has p(y). A cinn knows how far each condition is out.
    place.posterior("cinn");
    let said = |file: &str| place.line(&format!("sample cinn --given {file} -n 1 --device cpu")).good().stderr;
    let text = said("usual.csv");
    assert!(!text.contains("log p(y)") && !text.contains("warning"), "{text}");
    place.write("far.csv", "v,u\n0.25,0.5\n-40,0\n0.3,0.1\n0.1,70\n");
    let text = said("far.csv");
    assert!(
        text.contains("2 of 4 observations") && text.contains("do not trust") && !text.contains("log p(y)"),
        "{text}"
    );
    assert!(text.contains("Row 2: `v` is -40,") && text.contains("deviations from"), "{text}");
    // Of the conditions here a deviation is 0.7.
    for (v, far) in [("4", false), ("4.6", true)] {
        place.write("near.csv", format!("u,v\n0,{v}\n"));
        assert_eq!(said("near.csv").contains("do not trust"), far, "{v}");
    }
}

#[test]
fn samples_stay_inside_bounds() {
    let place = Place::new();
    place.pairs(200);
    for kind in ["hint", "cinn"] {
        let bounds = "--set columns.a.lower=-1 --set columns.a.upper=2 --set columns.b.lower=8.5";
        place.line(&format!("train x.csv --given y.csv --set model.kind={kind} {bounds} --out {kind} {SMALL}")).good();
        place.write("far.csv", "u,v\n0.5,0.25\n30,30\n-9,9\n");
        place.line(&format!("sample {kind} --given far.csv -n 300 -o {kind}.csv --device cpu")).good();
        let samples = place.table_of(&format!("{kind}.csv"));
        assert_eq!((samples.rows(), samples.dim()), (900, 3));
        for row in samples.iter_rows() {
            assert!(row[1] > -1.0 && row[1] < 2.0 && row[2] > 8.5, "{row:?}");
        }
        // Their density is finite inside.
        assert!(place.densities(&format!("{kind} x.csv --given y.csv")).iter().all(|d| d.is_finite()));
    }
    place.write("outside.csv", "a,b\n0.5,9.5\n0.5,8\n");
    place.write("y2.csv", "u,v\n0.5,0.5\n0.2,0.2\n");
    // What would need a row outside names it.
    let named = ["outside.csv", "row 2", "column 2", "`b`", "8.5"];
    place.line("encode hint outside.csv --given y2.csv -o z.npy --device cpu").fails(1, &named);
    place.line("check hint outside.csv --given y2.csv --device cpu").fails(1, &named);
    let bounds = "--set columns.b.lower=9.5 --set model.kind=hint";
    place
        .line(&format!("train x.csv --given y.csv {bounds} --out new {SMALL}"))
        .fails(1, &["x.csv", "row ", "`b`", "9.5"]);
    place
        .line(&format!("train x.csv --given y.csv --set model.kind=hint --set columns.u.upper=0 --out new {SMALL}"))
        .fails(1, &["y.csv", "row ", "`u`"]);
    place
        .line(&format!("train x.csv --given y.csv --set model.kind=hint --set columns.w.upper=0 --out new {SMALL}"))
        .fails(2, &["columns.w", "did you mean"]);
    assert!(!place.path("new").exists());
}

#[test]
fn outside_of_bounds_the_density_is_0() {
    let place = Place::new();
    place.pairs(200);
    let bounds = "--set columns.a.lower=-1 --set columns.b.lower=8.5 --set columns.u.upper=2";
    place.line(&format!("train x.csv --given y.csv --set model.kind=hint {bounds} --out run {SMALL}")).good();
    place.write("inside.csv", "a,b\n0.5,9.5\n0.25,10\n");
    place.write("y_inside.csv", "u,v\n0.5,0.5\n0.1,0.3\n");
    place.write("some.csv", "b,a\n9.5,0.5\n8,0.5\n10,0.25\n9,-1\n");
    place.write("y_some.csv", "u,v\n0.5,0.5\n0.2,0.2\n0.1,0.3\n0.4,0.4\n");
    place.write("y_high.csv", "u,v\n0.5,0.5\n0.2,0.2\n2,0.3\n0.4,0.4\n");
    place.write("one.csv", "u,v\n0.5,0.5\n");
    let run = |line: &str| {
        let done = place.line(&format!("log-prob run {line} --device cpu")).good();
        let densities: Vec<f64> = done.stdout.lines().map(|l| l.parse().unwrap()).collect();
        (densities, done.stderr)
    };
    let none = f64::NEG_INFINITY;
    for of in ["posterior", "joint"] {
        let inside = run(&format!("inside.csv --given y_inside.csv --of {of}")).0;
        let (some, text) = run(&format!("some.csv --given y_some.csv --of {of}"));
        assert_eq!(some, [inside[0], none, inside[1], none], "{of}");
        assert_eq!(text.matches("warning").count(), 1, "{text}");
        for word in ["2 of 4 rows", "some.csv: row 2, column 1 (`b`)", "8 must be greater than 8.5"] {
            assert!(text.contains(word), "no `{word}` in {text}");
        }
        // One observation for all rows.
        assert_eq!(run(&format!("some.csv --given one.csv --of {of}")).0[..2], [inside[0], none], "{of}");
    }
    // Conditions have a density in a hint; but nothing is known given what cannot be.
    let (joint, text) = run("some.csv --given y_high.csv --of joint");
    assert!(joint[0].is_finite() && joint[1..].iter().all(|&d| d == none), "{joint:?}");
    assert!(text.contains("1 of 4 rows") && text.contains("y_high.csv: row 3, column 1 (`u`)"), "{text}");
    let (evidence, text) = run("y_high.csv --of evidence");
    assert!(evidence.iter().enumerate().all(|(i, d)| d.is_finite() == (i != 2)) && evidence[2] == none, "{evidence:?}");
    assert!(text.contains("1 of 4 rows"), "{text}");
    let line = "log-prob run some.csv --given y_high.csv --device cpu";
    place.line(line).fails(1, &["y_high.csv", "row 3", "`u`"]);
    // All of them.
    place.write("none.csv", "a,b\n-2,9\n-2,9\n");
    assert_eq!(run("none.csv --given y_inside.csv").0, [none, none]);
    place.write("high.csv", "u,v\n2,0.5\n");
    assert_eq!(run("inside.csv --given high.csv --of joint").0, [none, none]);
}

#[test]
fn constant_columns_are_named_and_kept() {
    let place = Place::new();
    place.pairs(100);
    let with_constant: String = place.text("both.csv").lines().map(|l| format!("{l},7\n")).collect();
    place.write("both.csv", with_constant.replacen(",7\n", ",seven\n", 1));
    let done = place.line(&format!("train both.csv --given u,seven --set model.kind=hint --out run {SMALL}")).good();
    assert!(done.stderr.contains("seven"), "{}", done.stderr);
    place.write("seen.csv", "u,seven\n0.2,7\n");
    let samples = place.line("sample run --given seen.csv -n 3 --device cpu").good().stdout;
    assert!(samples.starts_with("v,a,b\n"), "{samples}");
    place.line(&format!("train both.csv --given u,seven --set model.kind=cinn --out cinn {SMALL}")).good();
    let said = |file: &str| place.line(&format!("sample cinn --given {file} -n 3 --device cpu")).good().stderr;
    assert!(!said("seen.csv").contains("warning"));
    place.write("other.csv", "u,seven\n0.2,7.5\n");
    let text = said("other.csv");
    assert!(text.contains("`seven` is 7.5") && text.contains("always 7 in the training"), "{text}");
}

#[test]
fn a_stopped_conditional_training_goes_on() {
    let place = Place::new();
    place.posterior("hint");
    let line = format!("train x.csv --given y.csv --set model.kind=hint {SMALL}").replace("--epochs 4", "--epochs 2");
    place.line(&format!("{line} --out short")).good();
    place.line("train --resume short --epochs 4 --set run.device=cpu").fails(2, &["--resume"]);
    // Cut off within the third of four epochs, without and with bounds: the same bits as in one go.
    for (name, bounds) in
        [("plain", ""), ("bounded", "--set columns.a.lower=-1 --set columns.v.lower=-2 --set columns.v.upper=2")]
    {
        // Epochs of five batches.
        let every = "--batch 32 --set run.checkpoint_every=12";
        let long = format!("train x.csv --given y.csv --set model.kind=hint {SMALL} {bounds} {every}");
        place.line(&format!("{long} --out {name}")).good();
        let whole = place.read(format!("{name}/model.safetensors"));
        let mut checkpoints = place.names(&format!("{name}/checkpoints"));
        checkpoints.retain(|file| file.ends_with(".safetensors"));
        let (first, later) = checkpoints.split_first().expect("checkpoints");
        assert!(first == "step-00000012.safetensors" && later == ["step-00000020.safetensors"], "{first} {later:?}");
        for file in later {
            std::fs::remove_file(place.path(format!("{name}/checkpoints/{file}"))).unwrap();
        }
        std::fs::remove_file(place.path(format!("{name}/model.safetensors"))).unwrap();
        place.line(&format!("sample {name}/checkpoints/{first} --given y.csv -n 1 --device cpu")).good();
        // Files may have moved since, which their place in the settings says.
        if name == "bounded" {
            std::fs::rename(place.path("y.csv"), place.path("moved.csv")).unwrap();
            place.line(&format!("train --resume {name}")).fails(1, &["y.csv"]);
            let settings = place.text("bounded/config.toml");
            place.write("bounded/config.toml", settings.replace("y.csv\"", "moved.csv\""));
        }
        place.line(&format!("train --resume {name}")).good();
        assert_eq!(place.read(format!("{name}/model.safetensors")), whole, "{name}");
    }
}

#[test]
fn bad_conditions_in_training_are_named() {
    let place = Place::new();
    place.pairs(50);
    place.write("nan.csv", place.text("y.csv").replacen("0.00000", "nan", 1));
    place.write("short.csv", place.text("y.csv").lines().take(41).collect::<Vec<_>>().join("\n"));
    place.write("same.csv", place.text("y.csv").replacen("u,v", "u,a", 1));
    let hint = "--set model.kind=hint";
    for (line, code, words) in [
        ("train x.csv --given nan.csv HINT", 1, &["nan.csv", "row 1", "column 1", "`u`"][..]),
        ("train x.csv --given short.csv HINT", 1, &["short.csv", "40 rows", "x.csv", "50"]),
        ("train x.csv --given missing.csv HINT", 1, &["missing.csv"]),
        ("train x.csv --given same.csv HINT", 2, &["`a`", "rename one"]),
        ("train both.csv --given u,u HINT", 2, &["data.given", "u", "twice"]),
        ("train both.csv --given u,1 HINT", 2, &["u", "twice"]),
        ("train both.csv --given u,w HINT", 2, &["`w`", "u, v, a, b"]),
        ("train both.csv --given u,v,a,b HINT", 2, &["none is left"]),
        ("train both.csv --given u --set data.columns=u,a HINT", 2, &["u", "not both"]),
        ("train x.csv --given y.csv", 2, &["given", "flow"]),
        ("train x.csv --given y.csv --set model.kind=flow", 2, &["given", "flow"]),
        ("train x.csv HINT", 2, &["`hint` needs conditions", "--given"]),
        ("train x.csv --set model.kind=cinn", 2, &["`cinn` needs conditions", "--given"]),
        ("train lens --given y.csv HINT", 2, &["given"]),
        ("train x.csv --given y.csv --set model.kind=hints", 2, &["hint"]),
    ] {
        let line = line.replace("HINT", hint);
        println!("{line}");
        place.line(&format!("{line} --out new {SMALL}")).fails(code, words);
        assert!(!place.path("new").exists(), "{line}");
    }
}

#[test]
fn bad_conditions_of_a_trained_model_are_named() {
    let place = Place::new();
    place.posterior("hint");
    place.posterior("cinn");
    place.write("four.csv", "1,2,3,4\n5,6,7,8\n");
    place.write("names.csv", "u,w\n1,2\n");
    place.write("nan.csv", "u,v\n0.1,0.2\n0.1,nan\n");
    place.write("short.csv", "u,v\n0.1,0.2\n0.1,0.3\n");
    let before = place.read("y.csv");
    for kind in ["hint", "cinn"] {
        for (line, code, words) in [
            ("sample K --given four.csv -n 2", 1, &["four.csv", "trained with 2 conditions (u, v)", "4"][..]),
            ("sample K --given names.csv -n 2", 1, &["names.csv", "`v`"]),
            ("sample K --given nan.csv -n 2", 1, &["nan.csv", "row 2", "column 2", "`v`"]),
            ("sample K --given missing.csv -n 2", 1, &["missing.csv"]),
            ("sample K --given y.csv -n 2 -o y.csv --force", 2, &["y.csv", "would be replaced"]),
            ("log-prob K x.csv --given short.csv", 2, &["--given", "2 rows", "200 rows of x.csv"]),
            ("log-prob K x.csv", 2, &["--given", "2 conditions (u, v)"]),
            ("encode K x.csv -o z.npy", 2, &["--given", "2 conditions (u, v)"]),
            ("encode K x.csv --given four.csv -o z.npy", 1, &["four.csv", "2 conditions (u, v)"]),
            ("check K x.csv", 2, &["--given"]),
            ("decode K x.csv --given short.csv -o z.npy", 2, &["--given", "2 rows", "200"]),
        ] {
            let line = line.replace('K', kind);
            println!("{line}");
            place.line(&format!("{line} --device cpu")).fails(code, words);
            assert!(!place.path("z.npy").exists(), "{line}");
        }
    }
    assert_eq!(place.read("y.csv"), before);
    place.line("log-prob cinn x.csv --given y.csv --of evidence --device cpu").fails(2, &["--of", "`cinn`", "`hint`"]);
    place.line("sample cinn -n 3 --device cpu").fails(2, &["--given"]);
    place.line("decode cinn x.csv -o z.npy --device cpu").fails(2, &["--given"]);
    place.trained();
    place.line("sample run --given y.csv -n 3 --device cpu").fails(2, &["--given", "unconditional"]);
    place.line("log-prob run table.csv --given y.csv --device cpu").fails(2, &["--given", "unconditional"]);
    place.line("log-prob run table.csv --of joint --device cpu").fails(2, &["--of", "`flow`"]);
    place
        .line("train x.csv --given y.csv --set model.kind=hint --init run --device cpu --out new")
        .fails(2, &["model.kind"]);
}

#[test]
fn columns_named_in_another_order_are_put_in_the_models() {
    let place = Place::new();
    place.posterior("hint");
    let right = place.densities("hint both.csv");
    for line in ["hint both.csv --given u,v", "hint both.csv --given v,u", "hint both.csv --columns b,a"] {
        assert_eq!(place.densities(line), right, "{line}");
    }
    // Other names are taken as they come.
    place.write("renamed.csv", place.text("both.csv").replacen("u,v,a,b", "p,q,r,s", 1));
    assert_eq!(place.densities("hint renamed.csv --given p,q --columns r,s"), right);
    assert_ne!(place.densities("hint renamed.csv --given q,p --columns r,s"), right);
}

#[test]
fn latent_vectors_of_both_lanes_are_told_from_those_of_one() {
    let place = Place::new();
    place.posterior("hint");
    place.line("encode hint x.csv --given y.csv -o z.npy --device cpu").good();
    place
        .line("decode hint z.npy --given y.csv -o back.npy --device cpu")
        .fails(1, &["z.npy", "leave out --given", "last 2"]);
}

#[test]
fn values_right_at_a_bound_do_not_fail_a_check() {
    let place = Place::new();
    let share = |i: usize| if !i.is_multiple_of(3) { 1.0f32.next_down() } else { 1e-7 + (i % 7) as f32 / 8.0 };
    let rows: String = (0..300).map(|i| format!("{},{}\n", share(i), (i * 7919 % 101) as f32 / 101.0)).collect();
    place.write("share.csv", format!("share,b\n{rows}"));
    let bounds = "--set columns.share.lower=0 --set columns.share.upper=1";
    place.line(&format!("train share.csv {bounds} --out run {SMALL}")).good();
    let done = place.line("check run share.csv --device cpu").good();
    assert!(!done.stdout.contains("NaN"), "{}", done.stdout);
}

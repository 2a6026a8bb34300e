//! Can a posterior be trusted, and what corrects it: `diagnose` and `correct`. And tables of an unusual layout.

use std::fmt::Write as _;

use crate::cli::tool::Place;

/// x ~ N(0, 1), y = x + noise of deviation 1: x given y is N(y / 2, 1 / 2). Normal numbers by the sum of twelve uniform ones.
fn gaussian(place: &Place, name: &str, rows: usize, shift: f64) {
    let mut state = 7u64 + rows as u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut normal = || (0..12).map(|_| uniform()).sum::<f64>() - 6.0;
    let mut text = "x,y\n".to_owned();
    for _ in 0..rows {
        let (x, e) = (normal(), normal());
        writeln!(text, "{:.5},{:.5}", x + shift, x + e).unwrap();
    }
    place.write(name, text);
}

const SMALL: &str = "--device cpu --epochs 3 --set model.width=8 --set model.blocks=2";

fn report(place: &Place, folder: &str) -> serde_json::Value {
    serde_json::from_str(&place.text(format!("{folder}/diagnostics.json"))).expect("JSON")
}

#[test]
fn a_posterior_is_diagnosed() {
    let place = Place::new();
    gaussian(&place, "table.csv", 3000, 0.0);
    place.line(&format!("train table.csv --given y --set model.kind=hint {SMALL} --out run")).good();
    let done = place.line("diagnose run --samples 200 --device cpu").good();
    for name in ["calibration of x", "expected coverage", "TARP", "latent column 1", "latent vectors given y"] {
        assert!(done.stdout.contains(name), "no {name} in {}", done.stdout);
    }
    let first = report(&place, "run/diagnosis");
    assert_eq!(first["rows"], 300);
    assert!(first["verdict"].as_str().unwrap().contains("nothing speaks against"), "{first}");
    assert!(place.read("run/diagnosis/calibration.png").starts_with(b"\x89PNG"));
    assert!(place.text("run/diagnosis/calibration.svg").starts_with("<svg"));
    // The same numbers again, and others for another seed.
    place.line("diagnose run --samples 200 --device cpu --out again").good();
    assert_eq!(first, report(&place, "again"));
    place.line("diagnose run --samples 200 --device cpu --out other --seed 2").good();
    assert_ne!(first["p_value"], report(&place, "other")["p_value"]);
    // Truths that lie elsewhere.
    gaussian(&place, "shifted.csv", 400, 0.4);
    let line = "diagnose run shifted.csv --samples 200 --device cpu --out shifted";
    let done = place.line(&format!("{line} --fail-below 0.001"));
    assert_eq!(done.code, Some(5), "{}{}", done.stdout, done.stderr);
    assert!(done.stdout.contains("REJECTED") && done.stdout.contains("speak against this model"), "{}", done.stdout);
    place.line(line).fails(1, &["shifted", "--force"]);
    place.line(&format!("{line} --force")).good();
    // What is said of a table needs one.
    place.line("diagnose run --given y --device cpu").fails(2, &["DATA"]);
    // A model file does not know which rows were held out.
    place.line("diagnose run/model.safetensors --device cpu").fails(2, &["DATA", "held out"]);
    place.line("diagnose run --fail-below 2 --device cpu").fails(2, &["--fail-below"]);
}

/// What is simulated from samples of the posterior is held against the observation.
#[cfg(unix)]
#[test]
fn an_observation_lies_among_what_its_posterior_predicts() {
    let place = Place::new();
    gaussian(&place, "table.csv", 3000, 0.0);
    place.line(&format!("train table.csv --given y --set model.kind=hint {SMALL} --out run")).good();
    place.write("seen.csv", "y\n0.8\n");
    let awk = |shift: &str, more: &str| {
        format!(
            "awk 'BEGIN {{ srand(ENVIRON[\"HINTFLOW_SEED\"]) }}\n{{ s = {shift} - 6; for (i = 0; i < 12; i++) s += rand(); \
             print {more} $1 + s }}'\n"
        )
    };
    let check = |more: &[&str]| {
        let line = "diagnose run --samples 100 --observed seen.csv --device cpu --force --out";
        place.run(&line.split(' ').chain(more.iter().copied()).collect::<Vec<_>>())
    };
    let simulated = |folder: &str, script: &str| {
        place.write("simulate.sh", script);
        check(&[folder, "--simulator", "sh simulate.sh", "--format", "csv", "--predictions", "4000"])
    };
    let p_value = |folder: &str| -> f64 {
        let tests = report(&place, folder)["tests"].clone();
        let kind = |test: &&serde_json::Value| test["kind"] == "predictive";
        tests.as_array().unwrap().iter().find(kind).expect("a predictive check")["p_value"].as_f64().unwrap()
    };
    let done = simulated("right", &awk("0", "")).good();
    assert!(done.stdout.contains("prediction of each column") && p_value("right") > 0.1, "{}", done.stdout);
    assert!(place.read("right/predictions.png").starts_with(b"\x89PNG"));
    // A simulator of a filter writes the next state first.
    simulated("filter", &awk("0", "$1 \",\"")).good();
    assert!(p_value("filter") > 0.1);
    // The posterior of one simulator does not explain what another sees.
    let done = simulated("wrong", &awk("6", "")).good();
    assert!(p_value("wrong") < 1e-3 && done.stdout.contains("y was observed as 0.8000"), "{}", done.stdout);
    // The same as a table.
    place
        .write("predicted.csv", format!("y\n{}", (0..500).fold(String::new(), |text, i| format!("{text}{}\n", 5 + i))));
    check(&["table", "--predicted", "predicted.csv"]).good();
    assert!(p_value("table") < 0.01);

    simulated("columns", &awk("0", "1 \",\" 2 \",\"")).fails(1, &["3 columns", "must be 1"]);
    simulated("crash", "echo no license >&2\nexit 3\n").fails(1, &["no license", "sh simulate.sh"]);
    place.write("predicted.csv", "y\n1\n2\n");
    check(&["few", "--predicted", "predicted.csv"]).fails(2, &["predicted.csv", "at least 100"]);
    place.line("diagnose run --simulator true --device cpu").fails(2, &["--observed"]);
}

/// A density bridges a hole, and beside other conditions its value there is no longer the lowest.
#[test]
fn observations_in_a_hole_of_the_training_are_warned_of() {
    let place = Place::new();
    let row = |i: usize| {
        format!("{},{},{}\n", i % 7, i % 101, if i.is_multiple_of(2) { 3.0 } else { -3.0 } + (i % 97) as f64 / 400.0)
    };
    place.write("table.csv", (0..800).fold("a,w,y\n".to_owned(), |text, i| text + &row(i)));
    for kind in ["hint", "cinn"] {
        place.line(&format!("train table.csv --given w,y --set model.kind={kind} --out {kind} {SMALL}")).good();
        let said = |seen: &str| {
            place.write("seen.csv", format!("w,y\n{seen}\n"));
            place.line(&format!("sample {kind} --given seen.csv -n 1 --device cpu")).good().stderr
        };
        let text = said("50,3.1\n50,0");
        assert!(
            text.contains("1 of 2 observations lie where") && text.contains("Row 2: `y` is 0, and no row"),
            "{text}"
        );
        assert!(text.contains("between -2.76 and 3"), "{text}");
        assert!(!said("50,3.1").contains("lie where"), "{text}");
    }
}

#[test]
fn a_density_is_diagnosed() {
    let place = Place::new();
    gaussian(&place, "table.csv", 2000, 0.0);
    place.line(&format!("train table.csv {SMALL} --out run")).good();
    let done = place.line("diagnose run --device cpu --json").good();
    let told: serde_json::Value = serde_json::from_str(&done.stdout).expect("JSON");
    let kinds: Vec<&str> = told["tests"].as_array().unwrap().iter().map(|t| t["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["two_sample", "latent", "latent", "norm", "pairs"]);
    assert!(told["p_value"].as_f64().unwrap() > 0.01, "{told}");
}

#[test]
fn samples_are_corrected_and_their_evidence_is_known() {
    let place = Place::new();
    gaussian(&place, "table.csv", 4000, 0.0);
    place.line(&format!("train table.csv --given y --set model.kind=hint {SMALL} --out run")).good();
    place.write("seen.csv", "y\n0.8\n");
    place.line("sample run --given seen.csv -n 4000 -o drawn.csv --device cpu").good();
    let drawn: Vec<f64> = place.text("drawn.csv").lines().skip(1).map(|line| line.parse().unwrap()).collect();
    // log p(y | x) + log p(x).
    let normal = |z: f64| -0.5 * z * z - 0.5 * std::f64::consts::TAU.ln();
    let density: Vec<String> = drawn.iter().map(|x| format!("{}", normal(*x) + normal(0.8 - x))).collect();
    place.write("density.csv", density.join("\n"));
    let line = "correct run drawn.csv --given seen.csv --log-density density.csv --device cpu";
    let done = place.line(&format!("{line} -o corrected.csv")).good();
    // p(y) is that of N(0, 2).
    let want = -0.25 * 0.8f64.powi(2) - 0.5 * (2.0 * std::f64::consts::TAU).ln();
    let told: f64 = done.stdout.split("log-evidence ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
    assert!((told - want).abs() < 0.02, "{told}, not {want}: {}", done.stdout);
    let rows: Vec<Vec<f64>> = place
        .text("corrected.csv")
        .lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    let mean: f64 = rows.iter().map(|row| row[0] * row[1]).sum();
    assert!((mean - 0.4).abs() < 0.05 && (rows.iter().map(|row| row[1]).sum::<f64>() - 1.0).abs() < 1e-3, "{mean}");
    place.line(&format!("{line} --resample 100 -o few.npy")).good();
    // Of a density that is elsewhere, the weights are not to be trusted.
    let far: Vec<String> = drawn.iter().map(|x| format!("{}", normal((x - 6.0) / 0.3))).collect();
    place.write("density.csv", far.join("\n"));
    let done = place.line(line);
    assert_eq!(done.code, Some(5), "{}", done.stderr);
    assert!(done.stderr.contains("not to be trusted"), "{}", done.stderr);
    place.write("density.csv", "1\n2\n");
    place.line(line).fails(1, &["density.csv", "4000 samples"]);
    place.write("density.csv", "-inf\n".repeat(4000));
    place.line(line).fails(1, &["density.csv", "no sample has a density"]);
    // Far from 0, where float32 has no digits left for the differences.
    let far: Vec<String> = drawn.iter().map(|x| format!("{}", normal(*x) + normal(0.8 - x) - 1e9)).collect();
    place.write("density.csv", far.join("\n"));
    let done = place.line(line).good();
    assert!(done.stdout.contains("(99.") || done.stdout.contains("(98."), "{}", done.stdout);
    // Where float64 has none left, either.
    for far in [1e300, -1e300, 1e14] {
        let far: Vec<String> = drawn.iter().map(|x| format!("{:e}", normal(*x) + far)).collect();
        place.write("density.csv", far.join("\n"));
        place.line(line).fails(1, &["density.csv", "no digits", "subtract the greatest"]);
    }
    place.line(&format!("{line} --resample 18446744073709551615 -o n.npy")).fails(2, &["--resample"]);
}

/// The command draws the samples, and asks another for their densities.
#[cfg(unix)]
#[test]
fn samples_that_are_drawn_here_are_corrected() {
    let place = Place::new();
    gaussian(&place, "table.csv", 4000, 0.0);
    place.line(&format!("train table.csv --given y --set model.kind=hint {SMALL} --out run")).good();
    place.write("seen.csv", "y\n0.8\n");
    // log p(y | x) + log p(x), but for a constant.
    let correct = |more: &[&str]| {
        let line = "correct run --given seen.csv --format csv -n 3000 --device cpu";
        place
            .run(&line.split(' ').chain(["--density", "sh density.sh"]).chain(more.iter().copied()).collect::<Vec<_>>())
    };
    place.write("density.sh", "awk '{ print -0.5 * $1 * $1 - 0.5 * (0.8 - $1) * (0.8 - $1) }'\n");
    let want = -0.25 * 0.8f64.powi(2) - 0.5 * (2.0 * std::f64::consts::TAU).ln() + std::f64::consts::TAU.ln();
    for more in [&["-o", "corrected.npy"][..], &["--defensive", "0.5"]] {
        let done = correct(more).good();
        let told: f64 = done.stdout.split("log-evidence ").nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!((told - want).abs() < 0.05, "{told}, not {want}: {}", done.stdout);
        let share: f64 = done.stdout.split('(').nth(1).unwrap().split(' ').next().unwrap().parse().unwrap();
        assert!(share > 30.0, "{}", done.stdout);
    }
    place.write("density.sh", "awk '{ print \"-inf\" }'\n");
    correct(&[]).fails(2, &["--density", "no sample has a density"]);
    place.write("density.sh", "echo 1\n");
    correct(&[]).fails(1, &["sh density.sh", "wrote 1 numbers", "3000"]);
    place.write("density.sh", "echo no license >&2\nexit 3\n");
    correct(&[]).fails(1, &["no license", "sh density.sh"]);
    correct(&["--defensive", "1"]).fails(2, &["--defensive"]);
    place.line("correct run --given seen.csv --device cpu").fails(2, &["SAMPLES"]);
}

#[test]
fn layouts_may_be_said() {
    let place = Place::new();
    place.trained();
    let rows = [["0,5", "1", "0,25"], ["0,1", "0", "1"], ["2", "1", "0,5"]];
    let text: Vec<String> = rows.iter().map(|row| row.join("|")).collect();
    place.write("odd.csv", text.join("\n"));
    let plain: Vec<String> = text.iter().map(|line| line.replace(',', ".").replace('|', ",")).collect();
    place.write("plain.csv", format!("a,b,c\n{}\n", plain.join("\n")));
    let odd = place.line("log-prob run odd.csv --separator bar --decimal comma --header false --device cpu").good();
    assert_eq!(odd.stdout, place.line("log-prob run plain.csv --device cpu").good().stdout);
    place.line("log-prob run odd.csv --separator dots --device cpu").fails(2, &["--separator", "comma"]);
}

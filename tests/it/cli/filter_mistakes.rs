//! What a user of `hintflow filter` does wrong, and what the simulator does.

use super::tool::Place;

/// Runs a line on the native engine.
fn run(place: &Place, line: &str) -> super::tool::Done {
    place.line(&format!("{line} --device cpu"))
}

/// An example of the command's series, of four steps.
fn series(place: &Place) {
    place.line("simulate lotka-volterra -n 4 -o truth.csv --observations seen.csv --seed 5").good();
}

/// A table with other columns: each a name and which column of the old one it is.
fn with_columns(text: &str, columns: &[(&str, usize)]) -> String {
    let rows = text.lines().skip(1).map(|line| {
        let cells: Vec<&str> = line.split(',').collect();
        columns.iter().map(|(_, from)| cells[*from]).collect::<Vec<_>>().join(",")
    });
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    std::iter::once(names.join(",")).chain(rows).collect::<Vec<_>>().join("\n") + "\n"
}

/// Options are named as they were typed, and files where they are.
#[test]
fn mistakes_are_told() {
    let place = Place::new();
    place.write("seen.csv", "y\n1.0\n0.9\n");
    let told = |line: &str, code: i32, words: &[&str]| {
        let done = run(&place, line);
        assert_eq!(done.code, Some(code), "{line}: {}", done.stderr);
        words.iter().for_each(|word| assert!(done.stderr.contains(word), "{line}: {}", done.stderr));
    };
    told("filter", 2, &["<SYSTEM>"]);
    let columns = ["seen.csv: has 1 column (y)", "an observation has 3 (y1, y2, y3)"];
    told("filter lotka-volterra --observations seen.csv", 1, &columns);
    told("filter lotka-volterra --method enkf --samples 0", 2, &["--samples", "is 0"]);
    told("filter lotka-volterra --method enkf --samples 1", 2, &["`--samples`: is 1", "at least 2", "--method enkf"]);
    told("filter lotka-volterra --method hint --samples 1", 2, &["`--samples`: is 1", "at least 100", "--method hint"]);
    told("filter lotka-volterra --method inn --samples 99", 2, &["`--samples`: is 99", "at least 100"]);
    told("filter lotka-volterra --method enkf --quick", 2, &["--quick", "--method hint"]);
    told("filter lotka-volterra --set train.lr=-1", 2, &["train.lr"]);
    told("filter lotka-volterra --set data.rows=5", 2, &["data.rows", "the filter's own"]);
    told("filter lotka-volterra --observation-noise 0 --method enkf", 2, &["--observation-noise"]);
    told("filter --simulator true --observations seen.csv --method particle", 2, &["likelihood"]);
    told("filter --simulator true --observations seen.csv", 1, &["step 0", "empty"]);
    told("filter --simulator true --observations seen.csv --out seen.csv", 1, &["seen.csv", "a file and not a folder"]);
    told("filter --resume seen.csv", 1, &["filter.toml"]);
    place.line("simulate lotka-volterra -o x.csv -n 0").fails(2, &["-n", "0 steps"]);
}

/// The truth has to have as many rows and columns, and both files are named.
#[test]
fn truths_of_other_series_are_told() {
    let place = Place::new();
    series(&place);
    let truth = place.text("truth.csv");
    place.write("short.csv", truth.lines().take(3).collect::<Vec<_>>().join("\n"));
    place.write("narrow.csv", with_columns(&truth, &[("x1", 0), ("x2", 1)]));
    let line = "filter lotka-volterra --method enkf --samples 50 --out run --observations seen.csv --truth";
    run(&place, &format!("{line} short.csv")).fails(1, &["short.csv: has 2 rows; there are 4 observations"]);
    run(&place, &format!("{line} narrow.csv")).fails(1, &["narrow.csv: has 2 columns (x1, x2); a state has 4"]);
    assert!(!place.path("run").exists());
}

/// Advice on missing values and the layout names what this command takes.
#[test]
fn advice_on_tables_can_be_followed() {
    let place = Place::new();
    let told = |observations: &str, words: &[&str]| {
        place.write("seen.csv", observations);
        let done = run(&place, "filter lotka-volterra --method enkf --samples 50 --out run --observations seen.csv");
        done.fails(1, words);
        assert!(!done.stderr.contains("data."), "{}", done.stderr);
    };
    told("y1,y2,y3\n0.2,0.5,0.3\n0.2,,0.3\n", &["seen.csv: row 2, column 2 (`y2`)", "empty; write a number there"]);
    told("y1,y2,y3\n0.2,0.5,0.3\n0.2,NA,0.3\n", &["row 2, column 2", "write a number there", "none can be left out"]);
    told("y1;y2;y3\n0.2;0,5;0.3\n", &["row 1, column 2", "--decimal comma"]);
    told("y1,y2,5\n0.2,0.5,0.3\n", &["row 1, column 1", "--header true"]);
}

/// Columns of the names that the system has are taken by name, others by position, which is told.
#[test]
fn columns_are_matched_by_name() {
    let place = Place::new();
    series(&place);
    let (seen, truth) = (place.text("seen.csv"), place.text("truth.csv"));
    let filtered = |out: &str, seen: String, truth: String| {
        place.write("s.csv", seen);
        place.write("t.csv", truth);
        let line = "filter lotka-volterra --method enkf --samples 200 --observations s.csv --truth t.csv --out";
        let done = run(&place, &format!("{line} {out}")).good();
        (place.read(format!("{out}/samples/step-004.npy")), place.text(format!("{out}/truth.csv")), done.stderr)
    };
    let (samples, own_truth, said) = filtered("own", seen.clone(), truth.clone());
    assert!(!said.contains("columns"), "{said}");
    let turned = with_columns(&seen, &[("y3", 2), ("y1", 0), ("y2", 1)]);
    let turned_truth = with_columns(&truth, &[("x2", 1), ("x4", 3), ("x1", 0), ("x3", 2)]);
    let (by_name, by_name_truth, said) = filtered("turned", turned, turned_truth);
    assert!(by_name == samples && by_name_truth == own_truth && said.contains("taken by name"), "{said}");
    // Beside others, which may hold anything.
    let dated = with_columns(&seen, &[("date", 0), ("y2", 1), ("y1", 0), ("y3", 2)]).replace("\n0", "\nMonday 0");
    let (by_name, _, said) = filtered("dated", dated, truth.clone());
    assert!(by_name == samples && said.contains("taken by name"), "{said}");
    // Other names: by position, with a warning.
    let named = with_columns(&seen, &[("mouse", 0), ("vole", 1), ("y1", 2)]);
    let (by_position, _, said) = filtered("named", named, truth.clone());
    assert!(by_position == samples, "by position");
    assert!(said.contains("warning") && said.contains("(mouse, vole, y1)") && said.contains("y1, y2, y3"), "{said}");
    // No names at all.
    let bare = seen.lines().skip(1).collect::<Vec<_>>().join("\n");
    let (by_position, _, said) = filtered("bare", bare, truth);
    assert!(by_position == samples && !said.contains("warning"), "{said}");
}

/// States at the beginning too, and of one's own names. Those outside of bounds are refused by row and column.
#[cfg(unix)]
#[test]
fn states_at_the_beginning_are_matched_and_checked() {
    let place = Place::new();
    place.write("seen.csv", "seen\n0.8\n0.4\n");
    place.write("simulator.sh", "awk -F, '{ print $1 / 2 \",\" $2 \",\" $1 / 2 + NR % 7 / 10 }'\n");
    let rows: Vec<String> =
        (0..40).map(|i| format!("{},{}", 1.0 + 0.02 * f64::from(i), 3.0 + f64::from(i % 5))).collect();
    place.write("begin.csv", format!("level,inflow\n{}\n", rows.join("\n")));
    let turned: Vec<String> = rows.iter().map(|row| row.split(',').rev().collect::<Vec<_>>().join(",")).collect();
    place.write("turned.csv", format!("inflow,level\n{}\n", turned.join("\n")));
    place.write("bad.csv", format!("inflow,level\n3,1\n3,-0.5\n{}\n", turned.join("\n")));
    let filter = |rest: &str| {
        let own = ["filter", "--simulator", "sh simulator.sh", "--format", "csv", "--observations", "seen.csv"];
        let method = ["--method", "enkf", "--samples", "60", "--device", "cpu"];
        place.run(&own.into_iter().chain(method).chain(rest.split_whitespace()).collect::<Vec<_>>())
    };
    filter("--initial begin.csv --out a").good();
    filter("--initial turned.csv --names level,inflow --lower level=0 --out b").good();
    let samples = |run: &str| place.read(format!("{run}/samples/step-002.npy"));
    assert!(samples("a") == samples("b"));
    let other = filter("--initial begin.csv --names a,b --out c").good();
    assert!(other.stderr.contains("begin.csv: its columns (level, inflow)") && samples("a") == samples("c"));
    let bad = filter("--initial bad.csv --lower level=0 --out d");
    bad.fails(1, &["bad.csv: row 2, column 2 (`level`)", "-0.5 must be at least 0", "--lower"]);
    assert!(!place.path("d").exists());
    filter("--initial begin.csv --lower level=3 --upper level=1 --out d").fails(2, &["--upper", "level", "no room"]);
}

/// Observations that nothing of what is simulated is near to, by every method.
#[test]
fn impossible_observations_are_told() {
    let place = Place::new();
    series(&place);
    let text = place.text("seen.csv");
    let with = |value: &str| {
        let mut rows: Vec<String> = text.lines().map(str::to_owned).collect();
        let cells: Vec<&str> = rows[2].split(',').collect();
        rows[2] = [cells[0], value, cells[2]].join(",");
        place.write("far.csv", rows[..4].join("\n"));
    };
    let small = "--quick --samples 500 --set train.epochs=2 --set train.batch=100 --set model.width=8";
    let filter = |rest: &str| {
        run(&place, &format!("filter lotka-volterra --observations far.csv --seed 5 --out run --force {rest}"))
    };
    for value in ["3.5", "1e30"] {
        with(value);
        let methods =
            [format!("--method hint {small}"), format!("--method inn {small}"), "--method enkf --samples 500".into()];
        for method in methods.iter().map(String::as_str).chain(["--method particle --samples 5000"]) {
            let done = filter(method);
            let said = format!("step 2: column 2 (`y2`) of the observation is {value}, but all ");
            assert!(done.stderr.contains(&said), "{method}: {}", done.stderr);
        }
    }
    // Weights that are all nothing are an error.
    let done = filter("--method particle --samples 5000");
    done.fails(1, &["step 2: no particle can have given the observation", "1e30"]);
    assert_eq!(place.text("run/steps.csv").lines().count(), 2);
    with("3.5");
    let done = filter("--method particle --samples 5000").good();
    assert!(done.stderr.contains("step 2: the weights are worth 1.0 of 5000 particles"), "{}", done.stderr);
    let steps = place.text("run/steps.csv");
    let beyond = |step: usize| steps.lines().nth(step).unwrap().split(',').nth(6).unwrap().parse::<f64>().unwrap();
    assert!(steps.lines().next().unwrap().split(',').nth(6) == Some("beyond") && beyond(1) == 0.0 && beyond(2) > 1.0);
}

/// A flow that learned nothing, with samples of anything, is found out.
#[test]
fn a_flow_that_came_to_no_good_is_told() {
    let place = Place::new();
    for method in ["hint", "inn"] {
        // Samples of anything; losses that are no numbers; and every epoch taken back.
        for (samples, epochs, rate) in [(1000, 4, "1"), (1000, 4, "1e10"), (500, 2, "1e10")] {
            let done = run(
                &place,
                &format!(
                    "filter lotka-volterra --method {method} --quick --samples {samples} --steps 2 --seed 5 --set \
                     train.epochs={epochs} --set train.batch=100 --set model.width=8 --set train.lr={rate} --set \
                     train.lr_final={rate} --out run --force"
                ),
            );
            done.fails(3, &["step 1: the training of its flow came to no good end", "--set train.lr="]);
            // Its settings stay as they are, so that it would fail again.
            assert!(!done.stderr.contains("--resume"), "{}", done.stderr);
            assert!(!place.path("run/models/step-001.safetensors").exists());
        }
    }
}

/// What cannot be written is named, and the run goes on after that is mended.
#[cfg(unix)]
#[test]
fn a_run_folder_that_cannot_be_written_is_told() {
    let place = Place::new();
    place.write("seen.csv", "seen\n0.8\n0.4\n0.3\n");
    // A folder in the place of a file of step 2.
    place.write(
        "simulator.sh",
        "[ $HINTFLOW_STEP = 2 ] && mkdir -p $BLOCKED\nawk -F, '{ print $1 / 2 \",\" $1 / 2 + NR % 7 / 10 }'\n",
    );
    let rows: Vec<String> = (0..40).map(|i| format!("{}", 1.0 + 0.02 * f64::from(i))).collect();
    place.write("begin.csv", format!("level\n{}\n", rows.join("\n")));
    let filter = |out: &str, blocked: &str| {
        let own = ["filter", "--simulator", "sh simulator.sh", "--format", "csv", "--observations", "seen.csv"];
        let more = ["--initial", "begin.csv", "--method", "enkf", "--samples", "40", "--device", "cpu", "--out", out];
        let mut command = place.command(&own.into_iter().chain(more).collect::<Vec<_>>());
        super::tool::Done::from(command.env("BLOCKED", blocked).output().unwrap())
    };
    filter("whole", "elsewhere").good();
    for blocked in ["run/samples/step-002.npy", "run/state/step-002.npy"] {
        let _ = std::fs::remove_dir_all(place.path("run"));
        let done = filter("run", blocked);
        done.fails(1, &[blocked, "hintflow filter --resume run"]);
        std::fs::remove_dir(place.path(blocked)).unwrap();
        let mut resumed = place.command(&["filter", "--resume", "run", "--device", "cpu"]);
        super::tool::Done::from(resumed.env("BLOCKED", "elsewhere").output().unwrap()).good();
        for file in ["samples/step-003.npy", "state/step-003.npy"] {
            assert!(place.read(format!("whole/{file}")) == place.read(format!("run/{file}")), "{file}");
        }
    }
}

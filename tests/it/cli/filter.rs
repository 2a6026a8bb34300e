//! `hintflow filter` and the series that it follows.

#[cfg(unix)]
use super::tool::Moments;
use super::tool::Place;

#[test]
fn a_simulated_series_is_filtered_by_every_method() {
    let place = Place::new();
    place.line("simulate lotka-volterra -n 4 -o truth.csv --observations seen.csv --seed 5").good();
    let (truth, seen) = (place.text("truth.csv"), place.text("seen.csv"));
    assert!(truth.starts_with("x1,x2,x3,x4\n") && truth.lines().count() == 5, "{truth}");
    assert!(seen.starts_with("y1,y2,y3\n") && seen.lines().count() == 5, "{seen}");
    // The series of `filter` is that of `simulate`.
    let methods = [
        ("hint", "--quick --samples 500 --set train.epochs=2 --set train.batch=100 --set model.width=8"),
        ("inn", "--quick --samples 500 --set train.epochs=2 --set train.batch=100 --set model.width=8"),
        ("enkf", "--samples 500"),
        ("particle", "--samples 5000"),
    ];
    for (method, more) in methods {
        let given = place.line(&format!(
            "filter lotka-volterra --method {method} {more} --observations seen.csv --truth truth.csv --seed 5 --out {method} --device cpu"
        ));
        assert_eq!(given.good().stdout.trim(), method);
        place
            .line(&format!(
                "filter lotka-volterra --method {method} {more} --steps 4 --seed 5 --out own --force --device cpu"
            ))
            .good();
        for step in 0..=4 {
            let samples = |run: &str| place.read(format!("{run}/samples/step-{step:03}.npy"));
            assert!(samples(method) == samples("own"), "{method}, step {step}");
        }
        let steps = place.text(format!("{method}/steps.csv"));
        assert_eq!(steps.lines().count(), 5, "{steps}");
        for picture in ["states", "posterior_1", "posterior_4"] {
            assert!(place.path(format!("{method}/plots/{picture}.png")).is_file(), "{method}: {picture}");
        }
        let again = place.line(&format!("filter --resume {method} --device cpu")).good();
        assert_eq!(again.stdout.trim(), method);
    }
    // The flow of a step is a model like any other: of the states, given observations.
    let model = "hint/models/step-004.safetensors";
    place.line(&format!("sample {model} --given seen.csv -n 10 -o again.csv --device cpu")).good();
    let again = place.text("again.csv");
    assert!(again.lines().next().unwrap().contains("x1,x2,x3,x4") && again.lines().count() == 41, "{again}");
    place.line(&format!("log-prob {model} truth.csv --given seen.csv -o lp.csv --device cpu")).good();
    assert_eq!(place.text("lp.csv").lines().count(), 5);
}

/// A simulator that hangs at the second step is ended, the run says how to go on, and goes on.
#[cfg(unix)]
#[test]
fn a_run_goes_on_after_its_simulator_was_mended() {
    let place = Place::new();
    place.write("seen.csv", "y\n0.8\n0.4\n0.3\n");
    let healthy = "#!/bin/sh\nif [ $HINTFLOW_STEP = 0 ]; then yes 1 | head -n $HINTFLOW_ROWS | awk '{ print 1 + NR % 10 / 50 }'\n\
                   else awk '{ print $1 / 2 \",\" $1 / 2 + NR % 7 / 10 }'; fi\n";
    place.write("simulator.sh", healthy.replace("else", "elif [ $HINTFLOW_STEP = 2 ]; then sleep 1000; else"));
    let args = |timeout: &'static str| {
        [
            "filter",
            "--simulator",
            "sh simulator.sh",
            "--format",
            "csv",
            "--observations",
            "seen.csv",
            "--method",
            "enkf",
        ]
        .into_iter()
        .chain(["--samples", "70", "--names", "level", "--timeout", timeout, "--out", "run", "--device", "cpu"])
        .collect::<Vec<_>>()
    };
    let done = place.run(&args("1"));
    assert_eq!(done.code, Some(1), "{}", done.stderr);
    assert!(done.stderr.contains("step 2") && done.stderr.contains("longer than 1 s"), "{}", done.stderr);
    assert!(done.stderr.contains("hintflow filter --resume run"), "{}", done.stderr);
    place.write("simulator.sh", healthy);
    place.line("filter --resume run --device cpu").good();
    assert_eq!(place.text("run/steps.csv").lines().count(), 4);
}

/// Killed at random moments, most of them within the training of a step, it ends with the same bits.
#[cfg(unix)]
#[test]
fn a_filter_killed_at_random_moments_ends_with_the_same_bits() {
    const KILLS: usize = 8;
    let place = Place::new();
    let filter = "filter lotka-volterra --quick --samples 2000 --set train.epochs=12 --set train.batch=50 --set model.width=8 \
                  --steps 3 --checkpoint-every 5 --device cpu";
    let started = std::time::Instant::now();
    place.line(&format!("{filter} --out whole")).good();
    let whole = started.elapsed();
    let mut moments = Moments::new();
    let (mut line, mut within) = (format!("{filter} --out killed"), 0);
    for kill in 0..KILLS {
        let mut child = place.spawn(&line);
        // Less than the whole in all, whatever each start costs.
        std::thread::sleep(whole.mul_f64(0.02 + 0.16 * moments.next()));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        if ended.is_some() {
            eprintln!("it ended before kill {}", kill + 1);
            break;
        }
        let training = place.path("killed/checkpoints");
        within += usize::from(training.is_dir() && std::fs::read_dir(training).unwrap().count() > 1);
        line = match place.path("killed/filter.toml").is_file() {
            true => "filter --resume killed --device cpu".into(),
            false => format!("{filter} --out killed --force"),
        };
    }
    eprintln!("kills within a training: {within}");
    assert!(within > 0, "no kill within a training");
    place.line("filter --resume killed --device cpu").good();
    for file in ["samples/step-001.npy", "samples/step-002.npy", "samples/step-003.npy", "models/step-003.safetensors"]
    {
        assert!(place.read(format!("whole/{file}")) == place.read(format!("killed/{file}")), "{file}");
    }
}

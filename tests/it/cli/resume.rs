//! Stopped, killed, damaged: a resumed training ends with the bits of one that was never stopped.

use std::path::Path;
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::cli::tool::Moments;
use crate::cli::tool::Place;

/// A training of a few seconds: mixing that is trained, noise, shuffling, a batch that does not divide the rows.
const TRAIN: &str = "train table.csv --device cpu --threads 2 --set model.width=8 --set model.mixing=householder \
                     --set model.blocks=2 --set train.batch=23 --epochs 60 --set train.patience=0 \
                     --set run.checkpoint_every=7";

fn prepared() -> Place {
    let place = Place::new();
    place.table("table.csv", 400, 5);
    place.line(&format!("{TRAIN} --out whole")).good();
    place
}

/// The metrics without the last column, which is a matter of time.
fn metrics(place: &Place, run: &str) -> Vec<String> {
    let text = place.text(Path::new(run).join("metrics.csv"));
    text.lines().map(|line| line.rsplit_once(',').expect("columns").0.to_owned()).collect()
}

fn assert_same(place: &Place, run: &str) {
    let model = |run: &str| place.read(Path::new(run).join("model.safetensors"));
    assert!(model("whole") == model(run), "{run} has another model");
    assert_eq!(metrics(place, "whole"), metrics(place, run));
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < Duration::from_secs(60), "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(unix)]
fn signal(child: &std::process::Child, name: &str) {
    let done = std::process::Command::new("kill").args([name, &child.id().to_string()]).status().expect("kill");
    assert!(done.success());
}

#[test]
fn the_same_training_twice_gives_the_same_bits_for_any_number_of_threads() {
    let place = prepared();
    place.line(&format!("{TRAIN} --out again --threads 1").replacen("--threads 2 ", "", 1)).good();
    assert_same(&place, "again");
    // Checkpoints are no part of the result.
    place.line(&format!("{TRAIN} --out seldom --set run.checkpoint_every=100000")).good();
    assert_same(&place, "seldom");
}

/// The step of the newest checkpoint, if there is one.
#[cfg(unix)]
fn newest_step(place: &Place, run: &str) -> Option<u64> {
    let entries = std::fs::read_dir(place.path(run).join("checkpoints")).ok()?;
    let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    names.filter_map(|name| name.strip_prefix("step-")?.strip_suffix(".safetensors")?.parse().ok()).max()
}

#[cfg(unix)]
#[test]
fn killed_ten_times_at_random_moments_it_ends_with_the_same_bits() {
    const KILLS: usize = 10;
    // Moments are shares of the whole training: at most 6 % of its steps and 2 % of its time after another, so that
    // ten of them end before it does, on machines of any speed.
    const EPOCHS: u64 = 120;
    const STEPS: f64 = (EPOCHS * 15) as f64;
    let train = TRAIN.replace("--epochs 60", &format!("--epochs {EPOCHS}"));
    let place = Place::new();
    place.table("table.csv", 400, 5);
    let started = Instant::now();
    place.line(&format!("{train} --out whole")).good();
    let whole = started.elapsed();
    let mut moments = Moments::new();
    let mut line = format!("{train} --out killed");
    let mut reached = Vec::new();
    while reached.len() < KILLS {
        let before = newest_step(&place, "killed").unwrap_or(0);
        let mut child = place.spawn(&line);
        let steps = (0.06 * STEPS * moments.next()) as u64;
        // Small numbers: a moment while the process is still beginning.
        if steps > STEPS as u64 / 100 {
            let reached = || newest_step(&place, "killed").is_some_and(|step| step >= before + steps);
            wait_for("a checkpoint", || reached() || child.try_wait().unwrap().is_some());
        }
        std::thread::sleep(whole.mul_f64(0.02 * moments.next()));
        let ended = child.try_wait().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(ended.is_none(), "the training ended before kill {} with {ended:?}", reached.len() + 1);
        reached.push(newest_step(&place, "killed"));
        line = match place.path("killed/config.toml").exists() {
            true => "train --resume killed --threads 1".into(),
            // Killed before there was anything to resume.
            false => format!("{train} --out killed --force"),
        };
    }
    eprintln!("checkpoints at the kills, of {STEPS} steps: {reached:?}");
    assert!(reached.last().unwrap().is_some(), "no kill after a checkpoint: {reached:?}");
    place.line(&line).good();
    assert_same(&place, "killed");
    for folder in ["killed", "killed/checkpoints", "killed/plots"] {
        let names = place.names(folder);
        assert!(!names.iter().any(|name| name.ends_with(".tmp")), "{folder}: {names:?}");
    }
}

#[cfg(unix)]
#[test]
fn the_model_that_a_run_began_from_may_be_gone() {
    let place = Place::new();
    place.table("table.csv", 400, 5);
    place.line(&TRAIN.replace("--epochs 60", "--epochs 1 --out base")).good();
    // Other rows: columns and standardisation must stay those of the model.
    place.table("table.csv", 300, 5);
    let line = format!("{TRAIN} --init base/model.safetensors");
    place.line(&format!("{line} --out whole")).good();
    let mut child = place.spawn(&format!("{line} --out run"));
    wait_for("checkpoints", || newest_step(&place, "run") > Some(20));
    child.kill().unwrap();
    child.wait().unwrap();
    // From the beginning, too: there is a checkpoint before the first step.
    let mut child = place.spawn(&format!("{line} --out early"));
    wait_for("the settings", || place.path("early/config.toml").exists());
    child.kill().unwrap();
    child.wait().unwrap();
    std::fs::remove_dir_all(place.path("base")).unwrap();
    for run in ["run", "early"] {
        place.line(&format!("train --resume {run}")).good();
        assert_same(&place, run);
    }
}

#[cfg(unix)]
#[test]
fn ctrl_c_saves_and_says_how_to_go_on() {
    let place = prepared();
    let mut line = format!("{TRAIN} --out stopped --set run.checkpoint_every=100000");
    let lines = || if place.path("stopped/metrics.csv").exists() { metrics(&place, "stopped").len() } else { 0 };
    for _ in 0..2 {
        let before = lines();
        let args: Vec<_> = line.split_whitespace().collect();
        let mut command = place.command(&args);
        let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        // An epoch of this process, which listens for signals by then.
        wait_for("an epoch", || lines() > before + 5);
        signal(&child, "-INT");
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        assert!(stderr.contains("hintflow train --resume stopped"), "{stderr}");
        assert!(output.stdout.is_empty() && !place.path("stopped/model.safetensors").exists());
        assert!(place.path("stopped/plots/loss.png").exists());
        line = "train --resume stopped".into();
    }
    let stdout = place.line(&line).good().stdout;
    assert_eq!(stdout, "stopped\n");
    assert_same(&place, "stopped");
    let done = place.line(&line).good();
    assert!(done.stderr.contains("finished") && done.stderr.contains("--init"), "{}", done.stderr);
    assert_same(&place, "stopped");
}

#[cfg(unix)]
#[test]
fn a_terminal_that_is_closed_saves_too() {
    let place = prepared();
    let args = format!("{TRAIN} --out stopped --set run.checkpoint_every=100000");
    let mut command = place.command(&args.split_whitespace().collect::<Vec<_>>());
    // These tests may run under `nohup` themselves, whose wish the training would keep.
    // SAFETY: to take a signal as the system does is all that happens between the two processes.
    unsafe {
        std::os::unix::process::CommandExt::pre_exec(&mut command, || {
            libc::signal(libc::SIGHUP, libc::SIG_DFL);
            Ok(())
        });
    }
    let mut child = command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    // Nobody reads the messages any more.
    drop(child.stderr.take());
    wait_for("an epoch", || place.path("stopped/metrics.csv").exists() && metrics(&place, "stopped").len() > 3);
    signal(&child, "-HUP");
    signal(&child, "-HUP");
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(newest_step(&place, "stopped") > Some(0));
    place.line("train --resume stopped").good();
    assert_same(&place, "stopped");
}

/// What `nohup` asks for is not undone.
#[cfg(unix)]
#[test]
fn a_terminal_that_is_closed_is_no_matter_under_nohup() {
    let place = prepared();
    let nohup = || {
        let program = place.command::<&str>(&[]).get_program().to_owned();
        let mut command = std::process::Command::new("nohup");
        command.arg(program).args(format!("{TRAIN} --out kept").split_whitespace()).current_dir(place.path("."));
        command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .stdin(std::process::Stdio::null());
        command.spawn().unwrap()
    };
    let mut child = nohup();
    wait_for("an epoch", || place.path("kept/metrics.csv").exists() && metrics(&place, "kept").len() > 3);
    signal(&child, "-HUP");
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_same(&place, "kept");
}

/// Trains into `killed`, is killed when the newest checkpoint has come to each of these steps, and goes on to the end.
#[cfg(unix)]
fn killed_at(place: &Place, train: &str, steps: &[u64]) {
    let mut line = format!("{train} --out killed");
    for &until in steps {
        let mut child = place.spawn(&line);
        wait_for("checkpoints", || newest_step(place, "killed") >= Some(until) || child.try_wait().unwrap().is_some());
        child.kill().unwrap();
        child.wait().unwrap();
        line = "train --resume killed".into();
    }
    place.line(&line).good();
}

/// Killed before and after the rate rises anew: the second cycle begins from the best model, with less decay.
#[cfg(unix)]
#[test]
fn a_training_of_two_cycles_ends_with_the_same_bits() {
    let place = Place::new();
    place.table("table.csv", 400, 5);
    let train = "train table.csv --device cpu --threads 2 --set model.width=8 --set model.blocks=2 --epochs 40 \
                 --set run.checkpoint_every=7";
    let told = place.line(&format!("{train} --out whole")).good().stderr;
    assert!(
        told.contains("cycle 2 of 2 of the learning rate begins with epoch 21: it goes on from the model"),
        "{told}"
    );
    assert!(told.lines().any(|line| line.starts_with("kept the model") && line.contains("cycle ")), "{told}");
    let lines = metrics(&place, "whole");
    let rate = |line: &String| line.rsplit(',').next().and_then(|rate| rate.parse::<f64>().ok()).expect("a rate");
    let rates: Vec<f64> = lines[1..].iter().map(rate).collect();
    let falls = rates.windows(2).filter(|pair| pair[1] < pair[0]).count();
    assert_eq!((rates.len(), falls), (40, 38), "{rates:?}");
    assert!(rates[20] > 50.0 * rates[19], "{rates:?}");
    // Without less decay it would be another model.
    place.line(&format!("{train} --set train.cycles=1 --out one")).good();
    assert!(place.read("whole/model.safetensors") != place.read("one/model.safetensors"));

    let batches = manifest(&place, "whole")["step"].as_u64().unwrap() / 40;
    killed_at(&place, train, &[15 * batches, 20 * batches, 25 * batches]);
    assert_same(&place, "killed");
}

/// A training that stops early: many epochs at a high rate for few rows, without dropout to hold it back.
const OVERFIT: &str = "train table.csv --device cpu --threads 2 --set model.coupling=affine --set model.width=40 \
                       --set model.blocks=2 --epochs 2000 --set train.noise=0 --set train.cooldown=0 \
                       --set train.patience=12 --set run.checkpoint_every=7";

fn manifest(place: &Place, run: &str) -> serde_json::Value {
    serde_json::from_str(&place.text(Path::new(run).join("manifest.json"))).expect("JSON")
}

#[cfg(unix)]
#[test]
fn early_stops_keep_the_best_epoch_through_kills() {
    let place = Place::new();
    place.table("table.csv", 400, 5);
    let done = place.line(&format!("{OVERFIT} --out whole")).good();
    assert!(
        done.stderr.contains("kept the model of epoch") && done.stderr.contains("train.patience"),
        "{}",
        done.stderr
    );
    let facts = manifest(&place, "whole");
    let losses: Vec<f64> = metrics(&place, "whole")[1..]
        .iter()
        .map(|line| line.split(',').nth(3).and_then(|loss| loss.parse().ok()).expect("a test loss"))
        .collect();
    let best = (0..losses.len()).min_by(|&a, &b| losses[a].total_cmp(&losses[b])).unwrap() as u64 + 1;
    assert_eq!(facts["kept_epoch"], best);
    assert_eq!(losses.len() as u64, best + 12);
    assert_eq!(facts["stopped_early"], true);

    // Killed twice: about where the best epoch is, and in the epochs after it.
    let batches = facts["step"].as_u64().unwrap() / losses.len() as u64;
    killed_at(&place, OVERFIT, &[best * batches, (best + 6) * batches]);
    assert_same(&place, "killed");
    let facts = manifest(&place, "killed");
    assert_eq!((&facts["kept_epoch"], &facts["stopped_early"]), (&best.into(), &true.into()));

    // A checkpoint stands for the model that would be kept.
    let newest = checkpoints(&place, "whole").pop().unwrap();
    let scores = |model: &str| place.line(&format!("log-prob {model} table.csv --device cpu")).good().stdout;
    assert_eq!(scores(&newest), scores("whole"));

    // There is nothing left to do, and it is said how there could be.
    let model = place.read("killed/model.safetensors");
    let done = place.line("train --resume killed").good();
    assert!(done.stderr.contains("stopped after epoch") && done.stderr.contains("train.patience"), "{}", done.stderr);
    assert!(place.read("killed/model.safetensors") == model);
    let ll = metrics(&place, "whole")[best as usize].split(',').nth(4).and_then(|ll| ll.parse::<f64>().ok()).unwrap();
    assert!(done.stderr.contains(&format!("LL {ll:.4}")), "LL of the kept model: {}", done.stderr);
    // With more patience it goes on, to what it would have come to at once.
    let settings = place.text("killed/config.toml");
    place.write("killed/config.toml", settings.replace("patience = 12", "patience = 20"));
    place.line("train --resume killed").good();
    place.line(&format!("{OVERFIT} --out whole --force").replace("patience=12", "patience=20")).good();
    assert_same(&place, "killed");
}

#[cfg(unix)]
#[test]
fn a_training_killed_while_it_cools_down_ends_with_the_same_bits() {
    const COOLDOWN: usize = 8;
    let train = OVERFIT.replace("cooldown=0", &format!("cooldown={COOLDOWN}"));
    let place = Place::new();
    place.table("table.csv", 400, 5);
    let done = place.line(&format!("{train} --out whole")).good();
    for words in
        ["in 12 epochs after epoch", "went back to its model", "cooled down in 8 epochs", "kept the model of epoch"]
    {
        assert!(done.stderr.contains(words), "no `{words}` in: {}", done.stderr);
    }
    let facts = manifest(&place, "whole");
    assert_eq!(facts["stopped_early"], true);
    let lines = metrics(&place, "whole");
    let rate = |line: &String| line.rsplit(',').next().and_then(|rate| rate.parse::<f64>().ok()).expect("a rate");
    let rates: Vec<f64> = lines[1..].iter().map(rate).collect();
    let start = rates.len() - COOLDOWN;
    assert!(rates[start - 1..].windows(2).all(|pair| pair[1] < 0.9 * pair[0]), "{rates:?}");
    assert!((rates[rates.len() - 1] / 1e-5 - 1.0).abs() < 1e-9, "{rates:?}");

    let batches = facts["step"].as_u64().unwrap() / rates.len() as u64;
    let mut child = place.spawn(&format!("{train} --out killed"));
    let until = batches * (start as u64 + 2);
    wait_for("checkpoints", || newest_step(&place, "killed") >= Some(until) || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    place.line("train --resume killed").good();
    assert_same(&place, "killed");
    let again = place.line("train --resume killed").good();
    assert!(
        again.stderr.contains("is finished") && again.stderr.contains("cooled down in 8 epochs"),
        "{}",
        again.stderr
    );
}

/// A run that was stopped, with two checkpoints.
#[cfg(unix)]
fn stopped(place: &Place, run: &str) {
    let mut child = place.spawn(&format!("{TRAIN} --out {run}"));
    wait_for("checkpoints", || newest_step(place, run) >= Some(14));
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(unix)]
fn checkpoints(place: &Place, run: &str) -> Vec<String> {
    let names = place.names(&format!("{run}/checkpoints")).into_iter();
    names.filter(|name| name.starts_with("step-")).map(|name| format!("{run}/checkpoints/{name}")).collect()
}

#[cfg(unix)]
#[test]
fn a_damaged_checkpoint_is_passed_over() {
    let place = prepared();
    stopped(&place, "torn");
    let newest = checkpoints(&place, "torn").pop().unwrap();
    let bytes = place.read(&newest);
    place.write(&newest, &bytes[..bytes.len() - 5]);
    let done = place.line("train --resume torn").good();
    assert!(done.stderr.contains("warning") && done.stderr.contains(&newest), "{}", done.stderr);
    assert_same(&place, "torn");

    stopped(&place, "lost");
    for name in checkpoints(&place, "lost") {
        place.write(&name, "nonsense");
    }
    place.line("train --resume lost").fails(1, &["lost/checkpoints", "damaged", "--config"]);
    let done = place.line("train --resume lost");
    assert!(checkpoints(&place, "lost").iter().all(|name| done.stderr.contains(name)), "{}", done.stderr);
}

#[cfg(unix)]
#[test]
fn what_does_not_belong_is_refused() {
    let place = prepared();
    stopped(&place, "run");
    let table = place.read("table.csv");
    let settings = place.text("run/config.toml");

    place.table("table.csv", 401, 5);
    place.line("train --resume run").fails(1, &["other data", "table.csv"]);
    place.write("table.csv", &table);

    place.write("run/config.toml", settings.replace("width = 8", "width = 9"));
    let what = ["another model: model.width is 8 in it and 9 in config.toml;", "--init"];
    place.line("train --resume run").fails(1, &what);
    place.write("run/config.toml", settings.replace("epochs = 60", "epochs = 61"));
    place.line("train --resume run").fails(1, &["train.epochs"]);
    place.write("run/config.toml", settings.replace("epochs = 60", "epoch = 60"));
    place.line("train --resume run").fails(2, &["train.epoch"]);
    place.write("run/config.toml", &settings);

    let other = format!("{TRAIN} --out other --set model.width=4 --epochs 2").replacen("--set model.width=8 ", "", 1);
    place.line(&other.replacen("--epochs 60 ", "", 1)).good();
    let foreign = checkpoints(&place, "other").pop().unwrap();
    std::fs::copy(place.path(&foreign), place.path("run/checkpoints/step-99999999.safetensors")).unwrap();
    place.line("train --resume run").fails(1, &["another model"]);
    std::fs::remove_file(place.path("run/checkpoints/step-99999999.safetensors")).unwrap();

    place.line("train --resume missing").fails(1, &["missing"]);
    place.line("train --resume table.csv").fails(1, &["table.csv", "run folder"]);
    place.line("train table.csv --resume run").fails(2, &["--resume"]);
    place.line("train --resume run --set train.lr=1").fails(2, &["--resume"]);
    place.line("train --resume run --threads 1025").fails(2, &["run.threads", "1024"]);

    place.line("train --resume run").good();
    assert_same(&place, "run");
}

#[cfg(unix)]
#[test]
fn two_processes_do_not_train_into_one_folder() {
    let place = Place::new();
    place.table("table.csv", 400, 5);
    let mut child = place.spawn(&format!("{TRAIN} --out run --epochs 100000").replacen("--epochs 60 ", "", 1));
    wait_for("the run folder", || place.path("run/config.toml").exists());
    place.line("train --resume run").fails(1, &["another process"]);
    place.line(&format!("{TRAIN} --out run --force")).fails(1, &["another process"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[cfg(unix)]
#[test]
fn rows_may_have_moved_while_a_run_stood_still() {
    let place = prepared();
    let mut child = place.spawn(&format!("{TRAIN} --out run"));
    wait_for("checkpoints", || newest_step(&place, "run") > Some(20));
    child.kill().unwrap();
    child.wait().unwrap();
    let rename = |from: &str, to: &str| std::fs::rename(place.path(from), place.path(to)).unwrap();
    rename("table.csv", "moved.csv");
    place.line("train --resume run").fails(1, &["table.csv: is no longer there", "--set data.path=FILE"]);
    // Other rows, and settings that must stay.
    place.table("other.csv", 400, 6);
    place.line("train --resume run --set data.path=other.csv").fails(1, &["other data"]);
    place
        .line("train --resume run --set train.lr=0.1")
        .fails(2, &["--resume", "data.path", "train.lr stays as it was"]);
    place.line("train --resume run --set data.given=other.csv").fails(2, &["data.given", "no file of this run"]);
    let mut child = place.spawn("train --resume run --set data.path=moved.csv");
    let before = newest_step(&place, "run");
    wait_for("checkpoints", || newest_step(&place, "run") > before || child.try_wait().unwrap().is_some());
    child.kill().unwrap();
    child.wait().unwrap();
    // The run knows where they are now.
    place.line("train --resume run").good();
    assert_same(&place, "run");
}

#[cfg(unix)]
#[test]
fn a_run_folder_that_is_moved_or_removed_ends_the_training_with_an_error() {
    let place = prepared();
    let line = format!("{} --out run", TRAIN.replace("--epochs 60", "--epochs 100000"));
    let args: Vec<_> = line.split_whitespace().collect();
    for moved in [true, false] {
        let mut command = place.command(&args);
        let child = command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
        wait_for("a checkpoint", || newest_step(&place, "run") > Some(20));
        std::fs::rename(place.path("run"), place.path("elsewhere")).unwrap();
        if !moved {
            std::fs::remove_dir_all(place.path("elsewhere")).unwrap();
        }
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{stderr}");
        assert!(stderr.contains("removed or moved"), "{stderr}");
        assert!(!place.path("run").exists());
        if moved {
            // Where it is now, it can be gone on with.
            let mut child = place.spawn("train --resume elsewhere");
            let before = newest_step(&place, "elsewhere");
            wait_for("a checkpoint", || newest_step(&place, "elsewhere") > before);
            child.kill().unwrap();
            child.wait().unwrap();
            std::fs::remove_dir_all(place.path("elsewhere")).unwrap();
        }
    }
}

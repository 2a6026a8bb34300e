use super::*;
use crate::data::Table;
use crate::data::lotka_volterra::{LotkaVolterra, Start};
use crate::filter::external::Format;
use crate::filter::{HintSettings, Method};

/// Stops a filter at some place.
struct Stopper {
    stop: &'static AtomicBool,
    /// After that epoch of that step; at epoch 0 before the step's training.
    at: Option<(u32, u64)>,
    step: u32,
    epochs: u32,
}

impl Stopper {
    fn new(at: Option<(u32, u64)>) -> Self {
        Self { stop: Box::leak(Box::new(AtomicBool::new(false))), at, step: 0, epochs: 0 }
    }

    fn see(&self, epoch: u64) {
        if self.at == Some((self.step, epoch)) {
            self.stop.store(true, Ordering::Relaxed);
        }
    }
}

impl Watcher for Stopper {
    fn step(&mut self, step: u32, _: u32) {
        self.step = step;
        self.see(0);
    }

    fn epoch(&mut self, report: &EpochReport, _: &Progress) {
        self.epochs += 1;
        self.see(report.epoch);
    }
}

fn small() -> Method {
    let settings = HintSettings::default().rows(600).set("model.blocks", 2).set("model.width", 8);
    Method::Hint(settings.set("train.epochs", 3).set("train.batch", 100))
}

fn settings(method: &Method) -> Settings {
    let system = SystemSettings::LotkaVolterra { process_noise: 0.05, observation_noise: 0.05 };
    Settings { version: "test".into(), seed: 3, observations_sha256: None, method: method.into(), system }
}

fn series() -> Series {
    let (truth, observations) = LotkaVolterra::default().series(3, 3, Start::Paper).unwrap();
    Series::new(observations, Some(truth))
}

fn options<'a>(out: &'a Path, stopper: &Stopper) -> Options<'a> {
    Options { out: Some(out), overwrite: Overwrite::No, stop: stopper.stop, checkpoint_every: Some(4) }
}

/// A filter that is stopped once, or not; what it says of its end, and the epochs that were trained in all.
fn filtered(out: &Path, method: &Method, at: Option<(u32, u64)>) -> (Outcome, u32) {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let settings = settings(method);
    let mut stopper = Stopper::new(at);
    let first = start(&settings, Vec::new(), series(), &engine, options(out, &stopper), &mut stopper).unwrap();
    assert_eq!(first.finished, at.is_none());
    if first.finished {
        return (first, stopper.epochs);
    }
    let told = settings_of(out).unwrap();
    assert_eq!(told.observations_sha256.as_deref().map(str::len), Some(64));
    assert_eq!(Settings { observations_sha256: None, ..told }, settings);
    let mut rest = Stopper::new(None);
    // Another number of threads changes nothing.
    let engine = Engine::cpu_with_threads(2).unwrap();
    let last = resume(out, &settings, &engine, options(out, &rest), &mut rest).unwrap();
    (last, stopper.epochs + rest.epochs)
}

/// What a run left, without the times.
fn results(out: &Path) -> Vec<Vec<u8>> {
    let mut files = vec![out.join("state/step-003.npy")];
    files.extend((0..=3).map(|step| samples_of(out, step)));
    let models = (1..=3).map(|step| out.join(format!("models/step-{step:03}.safetensors")));
    files.extend(models.filter(|path| path.is_file()));
    files.iter().map(|path| std::fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))).collect()
}

#[test]
fn a_filter_that_was_stopped_comes_to_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let (outcome, epochs) = filtered(&whole, &small(), None);
    assert!(outcome.finished && epochs == 9 && outcome.rows.len() == 3);
    assert!(outcome.rows.iter().all(|row| row.step.epochs == Some(3) && row.step.usual.is_some_and(|u| u > 0.0)));
    let expected = results(&whole);
    assert_eq!(expected.len(), 8);
    // Before a training, between epochs, and after the last epoch of a step.
    for (number, at) in [(2, 0), (1, 1), (2, 2), (2, 3)].into_iter().enumerate() {
        let out = place.path().join(number.to_string());
        let (outcome, epochs) = filtered(&out, &small(), Some(at));
        assert!(outcome.finished, "{at:?}");
        assert!(results(&out) == expected, "{at:?}");
        // What was trained is not trained again.
        assert_eq!(epochs, 9, "{at:?}");
        assert_eq!(read_steps(&out.join("steps.csv"), 4).unwrap().len(), 3);
        assert!(!out.join("state/rows-003.npy").exists() && out.join("plots/states.png").is_file());
        assert!(!out.join("state/step-002.npy").exists());
    }
}

#[test]
fn other_methods_are_resumed_too() {
    let place = tempfile::tempdir().unwrap();
    for method in [Method::particle(3000), Method::ensemble_kalman(500)] {
        let name = method.update().unwrap().name();
        let (whole, parts) = (place.path().join(format!("{name}-whole")), place.path().join(name));
        filtered(&whole, &method, None);
        filtered(&parts, &method, Some((2, 0)));
        assert!(results(&whole) == results(&parts), "{name}");
        let rows = read_steps(&parts.join("steps.csv"), 4).unwrap();
        assert!(rows.iter().all(|row| row.columns.iter().all(|column| column.score.is_some())));
    }
}

#[test]
fn a_finished_filter_has_nothing_left_to_do() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let method = Method::ensemble_kalman(300);
    filtered(&out, &method, None);
    let before = results(&out);
    let mut stopper = Stopper::new(None);
    let engine = Engine::cpu().unwrap();
    let again = resume(&out, &settings(&method), &engine, options(&out, &stopper), &mut stopper).unwrap();
    assert!(again.finished && again.rows.len() == 3 && results(&out) == before);
    // And is not overwritten by mistake.
    let again = start(&settings(&method), Vec::new(), series(), &engine, options(&out, &stopper), &mut ());
    assert!(matches!(again, Err(Error::Exists { .. })));
    assert!(settings_of(place.path()).unwrap_err().to_string().contains("holds no filter.toml"));
}

/// A population that halves with noise, and is seen with more, behind a command that writes something else for all of
/// step 2 as long as there is a file.
struct Broken {
    flag: PathBuf,
    system: SystemSettings,
}

impl Broken {
    fn new(folder: &Path, rows: &str, lower: Option<f64>) -> Self {
        let flag = folder.join("broken");
        std::fs::write(&flag, "").unwrap();
        let command = format!(
            "if [ -e '{}' ] && [ $HINTFLOW_STEP = 2 ]; then cat > /dev/null; {rows}; else \
             awk -F, 'BEGIN {{ srand(ENVIRON[\"HINTFLOW_SEED\"] % 100000) }} \
             {{ x = $1 / 2 * exp((rand() - 0.5) / 5); print x \",\" x + (rand() - 0.5) / 5 }}'; fi",
            flag.display()
        );
        let columns = vec![ColumnSettings { name: "level".into(), lower, upper: None }];
        let (format, timeout_s, observations) = (Format::Csv, 60.0, 1);
        Self { flag, system: SystemSettings::Command { command, format, timeout_s, columns, observations } }
    }

    fn settings(&self, method: &Method) -> Settings {
        Settings { system: self.system.clone(), ..settings(method) }
    }

    fn mend(&self) {
        std::fs::remove_file(&self.flag).unwrap();
    }

    /// States at the beginning, and a series.
    fn series() -> (Vec<f32>, Series) {
        let begin = (0..100).map(|i| 1.0 + 0.01 * i as f32).collect();
        (begin, Series::new(Table::new(vec!["seen".into()], 1, vec![0.8, 0.4, 0.2]).unwrap(), None))
    }
}

fn begun(out: &Path, settings: &Settings, begin: Vec<f32>) -> Result<Outcome> {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let stopper = Stopper::new(None);
    start(settings, begin, Broken::series().1, &engine, options(out, &stopper), &mut ())
}

fn resumed(out: &Path) -> Result<Outcome> {
    let engine = Engine::cpu_with_threads(1).unwrap();
    let stopper = Stopper::new(None);
    resume(out, &settings_of(out).unwrap(), &engine, options(out, &stopper), &mut ())
}

/// A simulator that fails leaves a run that goes on when it is mended, to the bits of one that never failed.
#[test]
fn a_simulator_that_fails_can_be_mended() {
    for method in [Method::ensemble_kalman(100), small()] {
        let place = tempfile::tempdir().unwrap();
        let (out, whole) = (place.path().join("run"), place.path().join("whole"));
        let broken = Broken::new(place.path(), "echo 1,2; echo nan,2", None);
        let settings = broken.settings(&method);
        let error = begun(&out, &settings, Broken::series().0).unwrap_err();
        assert!(matches!(error, Error::Simulator { step: 2, row: Some(2), .. }), "{error}");
        assert_eq!(read_steps(&out.join("steps.csv"), 1).unwrap().len(), 1);
        broken.mend();
        let outcome = resumed(&out).unwrap();
        assert!(outcome.finished && outcome.rows.len() == 3);
        assert!(outcome.rows[2].columns[0].mean < outcome.rows[0].columns[0].mean);
        begun(&whole, &settings, Broken::series().0).unwrap();
        assert!(results(&out) == results(&whole), "{method:?}");
    }
}

#[test]
fn states_outside_of_their_bounds_are_refused() {
    for method in [Method::ensemble_kalman(150), small()] {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("run");
        let rows = "yes 0.5,0.5 | head -n 6; yes -- -0.25,0.5 | head -n $((HINTFLOW_ROWS - 6))";
        let broken = Broken::new(place.path(), rows, Some(0.0));
        let settings = broken.settings(&method);
        // Before anything is written.
        let mut begin = Broken::series().0;
        begin[3] = -1.5;
        let error = begun(&out, &settings, begin).unwrap_err();
        let is_told = |error: &Error, words: &[&str]| words.iter().all(|word| error.to_string().contains(word));
        assert!(matches!(error, Error::Simulator { step: 0, row: Some(4), .. }), "{error}");
        assert!(is_told(&error, &["-1.5", "column 1 (`level`)", "0, as the bounds"]) && !out.exists(), "{error}");
        // And at a step: the run stays as it was before.
        let error = begun(&out, &settings, Broken::series().0).unwrap_err();
        assert!(matches!(error, Error::Simulator { step: 2, row: Some(7), .. }), "{error}");
        assert!(is_told(&error, &["-0.25", "column 1 (`level`)", "of the next states"]), "{error}");
        broken.mend();
        assert!(resumed(&out).unwrap().finished);
    }
}

/// A member of an ensemble may have been moved onto a bound; of a flow that would be infinitely far away.
#[test]
fn states_on_bounds_are_for_ensembles_only() {
    let place = tempfile::tempdir().unwrap();
    let mut begin = Broken::series().0;
    begin[8] = 0.5;
    let begin_with = |method: &Method, name: &str| {
        let broken = Broken::new(place.path(), "true", Some(0.5));
        broken.mend();
        begun(&place.path().join(name), &broken.settings(method), begin.clone()).unwrap_err()
    };
    // Half of it is outside then, of an ensemble.
    let error = begin_with(&Method::ensemble_kalman(100), "ensemble");
    assert!(error.to_string().contains("at least 0.5") && matches!(error, Error::Simulator { step: 1, .. }), "{error}");
    let error = begin_with(&small(), "flow");
    assert!(matches!(error, Error::Simulator { step: 0, row: Some(9), .. }), "{error}");
    assert!(error.to_string().contains("greater than 0.5"), "{error}");
}

#[test]
fn bounds_without_room_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let mut broken = Broken::new(place.path(), "true", Some(3.0));
    if let SystemSettings::Command { columns, .. } = &mut broken.system {
        columns[0].upper = Some(1.0);
    }
    let error = begun(&place.path().join("run"), &broken.settings(&Method::ensemble_kalman(9)), vec![2.0]).unwrap_err();
    assert!(error.to_string().contains("`level`") && error.to_string().contains("no room"), "{error}");
}

/// What is damaged is named, and what to do.
#[test]
fn damaged_files_of_a_run_are_named() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    // Stopped within the training of step 2, with a checkpoint and its simulations.
    let mut stopper = Stopper::new(Some((2, 1)));
    let engine = Engine::cpu_with_threads(1).unwrap();
    start(&settings(&small()), Vec::new(), series(), &engine, options(&out, &stopper), &mut stopper).unwrap();
    let told = |name: &str, damage: &dyn Fn(Vec<u8>) -> Option<Vec<u8>>, words: &[&str]| {
        let path = out.join(name);
        let good = std::fs::read(&path).unwrap();
        match damage(good.clone()) {
            Some(bad) => std::fs::write(&path, bad).unwrap(),
            None => std::fs::remove_file(&path).unwrap(),
        }
        let told = settings_of(&out)
            .and_then(|settings| resume(&out, &settings, &engine, options(&out, &Stopper::new(None)), &mut ()));
        let told = told.unwrap_err().to_string();
        assert!(words.iter().all(|word| told.contains(word)), "{name}: {told}");
        std::fs::write(&path, good).unwrap();
    };
    let half = |bytes: Vec<u8>| Some(bytes[..bytes.len() / 2].to_vec());
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    let first_line = |bytes: Vec<u8>| Some(text(bytes).lines().next().unwrap().as_bytes().to_vec());
    let again = "begin the filter anew";
    told("steps.csv", &half, &["steps.csv", "line ", again]);
    told("steps.csv", &|_| None, &["steps.csv", "is missing", again]);
    told("steps.csv", &first_line, &["steps.csv", "ends with step 0", "step-001.npy is of step 1", again]);
    told("state/step-001.npy", &|_| None, &["state/step-001.npy", "is missing", "step after 1", again]);
    told("state/step-001.npy", &half, &["state/step-001.npy", again]);
    told("state/rows-002.npy", &half, &["state/rows-002.npy", "remove it, so that step 2 is simulated again"]);
    told("models/step-001.safetensors", &half, &["step-001.safetensors", "so that step 2 begins with new weights"]);
    told("observations.csv", &|_| None, &["observations.csv", "is missing", again]);
    told("observations.csv", &first_line, &["observations.csv", again]);
    let one_less = |bytes: Vec<u8>| {
        let text = text(bytes);
        let lines: Vec<&str> = text.lines().collect();
        Some(lines[..lines.len() - 1].join("\n").into_bytes())
    };
    told("observations.csv", &one_less, &["observations.csv", "other numbers than the filter began with", again]);
    told("truth.csv", &|bytes| Some(text(bytes).replace("0.", "o.").into_bytes()), &["truth.csv", "row 1", again]);
    told(
        "filter.toml",
        &|bytes| Some(text(bytes).replace("rows = 600", "rows = 5").into_bytes()),
        &["filter.toml", "is 5"],
    );
    told(
        "filter.toml",
        &|bytes| Some(text(bytes).replace("[system]", "[sytem]").into_bytes()),
        &["filter.toml", "line"],
    );
    let one_more = |bytes: Vec<u8>| {
        let text = text(bytes);
        let last = text.lines().last().unwrap();
        let more: Vec<_> = (2..=4).map(|step| format!("{step}{}\n", &last[1..])).collect();
        Some((text.clone() + &more.concat()).into_bytes())
    };
    told("steps.csv", &one_more, &["steps.csv", "has 4 steps", "observations.csv"]);
    // Without the last flow it goes on, and says so.
    struct Said(String);
    impl Watcher for Said {
        fn warning(&mut self, text: &str) {
            self.0.push_str(text);
        }
    }
    std::fs::remove_file(out.join("models/step-001.safetensors")).unwrap();
    std::fs::remove_file(out.join("state/rows-002.npy")).unwrap();
    let mut said = Said(String::new());
    let outcome = resume(&out, &settings(&small()), &engine, options(&out, &Stopper::new(None)), &mut said).unwrap();
    assert!(outcome.finished && said.0.contains("step 2 begins with new weights"), "{}", said.0);
}

#[test]
fn series_of_other_systems_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let engine = Engine::cpu().unwrap();
    let method = Method::ensemble_kalman(10);
    let narrow = Series::new(Table::new(vec![], 2, vec![0.0; 6]).unwrap(), None);
    let Series { observations, truth, .. } = series();
    let short = Series::new(observations, Some(truth.unwrap().take(&[0, 1]).unwrap()));
    for series in [narrow, short] {
        let stopper = Stopper::new(None);
        let out = place.path().join("run");
        let result = start(&settings(&method), Vec::new(), series, &engine, options(&out, &stopper), &mut ());
        assert!(matches!(result, Err(Error::Shape { .. })));
        assert!(!out.exists());
    }
}

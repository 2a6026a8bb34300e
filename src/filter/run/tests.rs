use super::*;
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
    Settings { version: "test".into(), seed: 3, method: method.into(), system }
}

fn series() -> Series {
    let (truth, observations) = LotkaVolterra::default().series(3, 3, Start::Paper).unwrap();
    Series { observations, truth: Some(truth) }
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
    assert_eq!(settings_of(out).unwrap(), settings);
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

/// A simulator that fails leaves a run that goes on when it is mended.
#[test]
fn a_simulator_that_fails_can_be_mended() {
    let place = tempfile::tempdir().unwrap();
    let (out, flag) = (place.path().join("run"), place.path().join("broken"));
    std::fs::write(&flag, "").unwrap();
    // A population that halves, and is seen.
    let command = format!(
        "if [ -e {} ] && [ $HINTFLOW_STEP = 2 ]; then cat > /dev/null; echo 1,2; echo nan,2; else \
         awk -F, '{{ print $1 / 2 \",\" $1 / 2 + (NR % 7) / 10 }}'; fi",
        flag.display()
    );
    let column = ColumnSettings { name: "level".into(), ..ColumnSettings::default() };
    let system = SystemSettings::Command {
        command,
        format: Format::Csv,
        timeout_s: 60.0,
        columns: vec![column],
        observations: 1,
    };
    let method = Method::ensemble_kalman(100);
    let settings = Settings { system, ..settings(&method) };
    let begin: Vec<f32> = (0..100).map(|i| 1.0 + 0.01 * i as f32).collect();
    let series = Series { observations: Table::new(vec![], 1, vec![0.8, 0.4, 0.2]).unwrap(), truth: None };
    let mut stopper = Stopper::new(None);
    let engine = Engine::cpu().unwrap();
    let error = start(&settings, begin, series, &engine, options(&out, &stopper), &mut stopper).unwrap_err();
    assert!(matches!(error, Error::Simulator { step: 2, row: Some(2), .. }), "{error}");
    std::fs::remove_file(&flag).unwrap();
    let outcome = resume(&out, &settings, &engine, options(&out, &stopper), &mut stopper).unwrap();
    assert!(outcome.finished && outcome.rows.len() == 3);
    assert!(outcome.rows[2].columns[0].mean < outcome.rows[0].columns[0].mean);
}

#[test]
fn series_of_other_systems_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let engine = Engine::cpu().unwrap();
    let method = Method::ensemble_kalman(10);
    let narrow = Series { observations: Table::new(vec![], 2, vec![0.0; 6]).unwrap(), truth: None };
    let short = Series { truth: Some(series().truth.unwrap().take(&[0, 1]).unwrap()), ..series() };
    for series in [narrow, short] {
        let stopper = Stopper::new(None);
        let out = place.path().join("run");
        let result = start(&settings(&method), Vec::new(), series, &engine, options(&out, &stopper), &mut ());
        assert!(matches!(result, Err(Error::Shape { .. })));
        assert!(!out.exists());
    }
}

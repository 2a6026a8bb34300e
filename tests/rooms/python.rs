//! `examples/read_model.py`, which knows model files and NumPy only, reads the models of the fixtures and ours alike.
//!
//! `HINTFLOW_PYTHON` names the interpreter, which must have NumPy; without it `python3` and `python` are tried. Where
//! there is none the tests fail, unless `HINTFLOW_PYTHON=none` says that this is wanted.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rooms::common::compare::{Tolerance, assert_close};
use crate::rooms::common::fixture::{FIXTURES, Fixture, SPLINE_FIXTURES, folder, read};
use hintflow::data::columns::units::{Regression, Wishes};
use hintflow::data::{Bounds, ColumnSetting, Units, write_table};
use hintflow::{Engine, Flow};

const VARIABLE: &str = "HINTFLOW_PYTHON";

/// The interpreter; none if the user does without.
fn python() -> Option<PathBuf> {
    let has_numpy = |python: &Path| {
        let output = Command::new(python).args(["-c", "import numpy"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    if let Some(named) = std::env::var_os(VARIABLE).map(PathBuf::from) {
        if named.as_os_str() == "none" {
            eprintln!("SKIPPED: examples/read_model.py is not tested, since {VARIABLE} is `none`");
            return None;
        }
        assert!(has_numpy(&named), "{VARIABLE} is {}, which has no NumPy or does not run", named.display());
        return Some(named);
    }
    let found = ["python3", "python"].map(PathBuf::from).into_iter().find(|python| has_numpy(python));
    Some(found.unwrap_or_else(|| {
        panic!(
            "found no Python with NumPy: install it (`python3 -m pip install numpy`), let tests/run.sh do so, name an \
             interpreter that has it ({VARIABLE}=/path/to/python), or leave these tests out with {VARIABLE}=none"
        )
    }))
}

/// The rows that the example prints for a model and tables of these columns.
fn printed(python: &Path, model: &Path, tables: &[(usize, &[f64])]) -> Vec<Vec<f64>> {
    let place = tempfile::tempdir().expect("a temporary folder");
    let script = folder().join("../../examples/read_model.py");
    let mut command = Command::new(python);
    command.arg(script).arg(model);
    for (number, (columns, values)) in tables.iter().enumerate() {
        let path = place.path().join(format!("{number}.npy"));
        let values: Vec<f32> = values.iter().map(|&v| v as f32).collect();
        write_table(&path, &Default::default(), values.len() / columns, *columns, &values, hintflow::Overwrite::No)
            .expect("a table");
        command.arg(path);
    }
    let output = command.output().expect("Python runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("text");
    text.lines().map(|line| line.split_whitespace().map(|v| v.parse().expect("a number")).collect()).collect()
}

/// One or more columns of all rows, row after row.
fn columns(rows: &[Vec<f64>], range: std::ops::Range<usize>) -> Vec<f64> {
    rows.iter().flat_map(|row| row[range.clone()].to_vec()).collect()
}

fn log_normal(z: &[f64]) -> f64 {
    -0.5 * z.iter().map(|z| z * z + std::f64::consts::TAU.ln()).sum::<f64>()
}

/// Both compute in float64 from the same weights.
const EXACT: Tolerance = Tolerance::relative(1e-12).floor(1e-12);

#[test]
fn the_example_reads_every_fixture() {
    let Some(python) = python() else { return };
    for name in FIXTURES.into_iter().chain(SPLINE_FIXTURES) {
        let fixture = Fixture::load(name);
        let (n, c) = (fixture.spec.dim, fixture.y().len() * fixture.spec.dim / fixture.x().len());
        let tables = [(n, fixture.x()), (c, fixture.y())];
        let rows = printed(&python, &fixture.model_path(), if c > 0 { &tables } else { &tables[..1] });
        assert_eq!(rows.len(), fixture.x().len() / n);
        let compare = |what: &str, range| {
            assert_close(&format!("{name}: {what}"), &columns(&rows, range), fixture.data(what), EXACT);
        };
        let (z_x, log_det) = if name.starts_with("hint") {
            compare("out.logdet_y", 1..2);
            compare("out.logdet_x", 2..3);
            compare("out.z_y", 3..3 + c);
            compare("out.z_x", 3 + c..3 + c + n);
            (3 + c, 2)
        } else {
            compare("out.logdet", 1..2);
            compare("out.z", 2..2 + n);
            (2, 1)
        };
        let densities: Vec<f64> = rows.iter().map(|row| log_normal(&row[z_x..]) + row[log_det]).collect();
        assert_close(&format!("{name}: log-density"), &columns(&rows, 0..1), &densities, EXACT);
    }
}

/// A model of ours with bounds and standardisation of both tables: densities in the user's units.
#[test]
fn the_example_agrees_with_us_in_the_users_units() {
    agrees_in_the_users_units(None, None);
}

/// And of two columns less a regression on the conditions.
#[test]
fn the_example_knows_the_regression() {
    let regression = r#"{"coefficients": [[0.8, -0.3], [], [], [-1.5, 0.2]]}"#;
    agrees_in_the_users_units(Some(serde_json::from_str(regression).unwrap()), Some(1.0));
}

fn agrees_in_the_users_units(regression: Option<Regression>, squash: Option<f64>) {
    let Some(python) = python() else { return };
    let table = |columns: usize, place: f32| -> Vec<f32> {
        let wave = |i: usize| ((i * 7919 % 997) as f32 / 90.0).sin();
        (0..40 * columns).map(|i| place + wave(i) * (1 + i % columns) as f32).collect()
    };
    let (x, y) = (table(4, 5.0), table(2, -20.0));
    let bound = |lower, upper| Bounds { lower, upper };
    let of_x = vec![bound(Some(3.5), None), Bounds::default(), bound(None, Some(9.0)), bound(Some(0.5), Some(10.0))];
    let of_y = vec![Bounds::default(), bound(None, Some(-17.0))];
    let flow = Flow::hint_builder(4, 2)
        .blocks(3)
        .width(9)
        .init_sigma(0.5)
        .seed(5)
        .units(Units { regression, squash, ..Units::fit(vec![], of_x, 4, true, &x).unwrap() })
        .units_of_conditions(Units::fit(vec![], of_y, 2, true, &y).unwrap())
        .build(&Engine::cpu().unwrap())
        .unwrap();
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("m.safetensors");
    flow.save(&model, hintflow::Overwrite::No).unwrap();
    let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
    let rows = printed(&python, &model, &[(4, &wide(&x)), (2, &wide(&y))]);
    let lanes = flow.joint().unwrap().encode(&y, &x).unwrap();
    let close = |what: &str, range, ours: &[f32]| {
        assert_close(what, &columns(&rows, range), &wide(ours), Tolerance::relative(1e-5).floor(1e-5));
    };
    close("log-density", 0..1, &flow.given(&y).unwrap().log_prob(&x).unwrap());
    close("log-determinant of y", 1..2, &lanes.y.log_det);
    close("log-determinant of x", 2..3, &lanes.x.log_det);
    close("z_y", 3..5, &lanes.y.z);
    close("z_x", 5..9, &lanes.x.z);
}

/// Every transform, on columns with bounds and without, and the squash.
#[test]
fn the_example_knows_every_transform() {
    let Some(python) = python() else { return };
    let choices =
        ["none", "standardize", "robust", "asinh", "log", "softplus", "logit", "rank", "softplus", "rank", "asinh"];
    let n = choices.len();
    let wave = |i: usize| ((i * 7919 % 997) as f32 + 0.5) / 997.0;
    let far = |i: usize| if i.is_multiple_of(97) { 500.0 } else { 1.0 };
    let x: Vec<f32> = (0..60 * n).map(|i| far(i) * (4.0 * wave(i)).exp() - 0.5).collect();
    let mut settings: Vec<ColumnSetting> = choices
        .iter()
        .map(|&name| {
            let transform = serde_json::from_value(name.into()).expect("a transform");
            ColumnSetting { transform, ..ColumnSetting::default() }
        })
        .collect();
    (settings[8].upper, settings[9].lower, settings[10].lower) = (Some(5e4), Some(-1.0), Some(-2.0));
    for squash in [None, Some(1.5)] {
        let wishes = Wishes { columns: settings.clone(), standardize: true, choose: true, squash };
        let (units, _) = Units::choose(n, &wishes, &x, &[]).unwrap();
        assert!(units.transforms.iter().filter(|transform| !transform.is_identity()).count() >= 7);
        let flow = Flow::builder(n as u32).width(9).init_sigma(0.3).seed(5).units(units).build(&Engine::cpu().unwrap());
        let flow = flow.unwrap();
        let place = tempfile::tempdir().unwrap();
        let model = place.path().join("m.safetensors");
        flow.save(&model, hintflow::Overwrite::No).unwrap();
        let wide = |values: &[f32]| values.iter().map(|&v| v.into()).collect::<Vec<f64>>();
        // Values beyond those of the fit, too.
        let rows: Vec<f32> = x.iter().map(|x| if *x > 10.0 { 1.5 * x } else { *x }).collect();
        let rows: Vec<f32> = rows.iter().enumerate().map(|(i, x)| if i % n == 6 { x.min(50.0) } else { *x }).collect();
        let printed = printed(&python, &model, &[(n, &wide(&rows))]);
        let ours = flow.encode(&rows).unwrap();
        let close = |what: &str, range, ours: &[f32]| {
            assert_close(what, &columns(&printed, range), &wide(ours), Tolerance::relative(2e-5).floor(2e-5));
        };
        close("log-density", 0..1, &flow.log_prob(&rows).unwrap());
        close("log-determinant", 1..2, &ours.log_det);
        close("z", 2..2 + n, &ours.z);
    }
}

/// Bounds of columns, before the standardisation: the log-determinant is that of what is printed as z.
#[test]
fn the_example_takes_the_jacobian_of_bounds() {
    let Some(python) = python() else { return };
    let (metadata, tensors) = read(&Fixture::load("flow_n1_nomix").model_path());
    let place = tempfile::tempdir().unwrap();
    let model = place.path().join("m.safetensors");
    for bounds in [r#"{"lower":-1.0}"#, r#"{"upper":2.5}"#, r#"{"lower":-1.0,"upper":2.5}"#, "{}"] {
        let about = metadata["hintflow"].trim_end().strip_suffix('}').expect("an object").to_owned();
        let about = format!(r#"{about}, "standardize": {{"mean": [0.3], "scale": [1.7]}}, "bounds": [{bounds}]}}"#);
        let floats = |values: &[f64]| values.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect::<Vec<u8>>();
        let bytes: Vec<_> = tensors.iter().map(|(name, t)| (name, &t.shape, floats(&t.data))).collect();
        let view = |shape: &[usize], bytes| {
            safetensors::tensor::TensorView::new(safetensors::Dtype::F32, shape.to_vec(), bytes).expect("a tensor")
        };
        let views = bytes.iter().map(|(name, shape, bytes)| (*name, view(shape, bytes)));
        let metadata = Some([("hintflow".to_owned(), about)].into());
        safetensors::serialize_to_file(views, metadata, &model).unwrap();
        // Differences that float32 holds exactly.
        let h = f64::from(2.0f32.powi(-12));
        let centres: Vec<f64> = (0..12).map(|i| -0.75 + 0.25 * f64::from(i)).collect();
        let at = |shift: f64| -> Vec<f64> { centres.iter().map(|x| x + shift).collect() };
        let [before, here, after] = [at(-h), at(0.0), at(h)].map(|x| printed(&python, &model, &[(1, &x)]));
        let slopes = before.iter().zip(&after).map(|(a, b)| ((b[2] - a[2]) / (2.0 * h)).abs().ln());
        let slopes: Vec<f64> = slopes.collect();
        assert_close(bounds, &columns(&here, 1..2), &slopes, Tolerance::relative(1e-5).floor(1e-6));
    }
}

/// `examples/my_system.py`, which the command runs as the simulator of a filter: it is read, written to, and followed.
#[test]
fn the_example_of_a_system_is_filtered() {
    use hintflow::Overwrite;
    use hintflow::data::Table;
    use hintflow::filter::external::{Command, Format};
    use hintflow::filter::run::{ColumnSettings, Options, Series, Settings, SystemSettings, start};
    use hintflow::filter::{Draws, Method};
    use std::sync::atomic::AtomicBool;

    let Some(python) = python() else { return };
    let script = folder().join("../../examples/my_system.py");
    let command = format!("'{}' '{}'", python.display(), script.display());
    let stop = AtomicBool::new(false);
    let timeout = std::time::Duration::from_secs(300);
    let simulator = Command { text: command.clone(), format: Format::Npy, timeout, stop: &stop };
    let rows = 4000;
    let (begin, columns) = simulator.start(Draws::of_ensemble(5, 0), rows).unwrap();
    assert_eq!((begin.len(), columns), (2 * rows, 2));
    assert_eq!(simulator.start(Draws::of_ensemble(5, 0), rows).unwrap().0, begin);

    let column = |name: &str, lower| ColumnSettings { name: name.into(), lower, upper: None };
    let columns = vec![column("level", Some(0.0)), column("inflow", None)];
    let system = SystemSettings::Command { command, format: Format::Npy, timeout_s: 300.0, columns, observations: 1 };
    let method = &Method::ensemble_kalman(rows);
    let settings =
        Settings { version: "test".into(), seed: 5, observations_sha256: None, method: method.into(), system };
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let options = Options { out: Some(&out), overwrite: Overwrite::No, stop: &stop, checkpoint_every: None };
    let observations = Table::new(vec![], 1, vec![1.4, 1.7, 1.9]).unwrap();
    let series = Series::new(observations, None);
    let engine = Engine::cpu().unwrap();
    let outcome = start(&settings, begin, series, &engine, options, &mut ()).unwrap();
    // More than was expected flowed in, and the level is known better than by one measurement.
    let [level, inflow] = &outcome.rows[2].columns[..] else { panic!("{:?}", outcome.rows[2]) };
    assert!((level.mean - 1.9).abs() < 0.1 && level.deviation < 0.1, "{level:?}");
    assert!(inflow.mean > 0.45 && inflow.deviation < 0.2, "{inflow:?}");
}

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::*;
use crate::rng::Stream;

static NEVER: AtomicBool = AtomicBool::new(false);

fn command(text: &str, format: Format) -> Command<'static> {
    Command { text: text.into(), format, timeout: Duration::from_secs(60), stop: &NEVER }
}

fn system(command: Command<'_>) -> External<'_> {
    let columns = Columns { names: vec!["level".into()], bounds: vec![(None, None)], counts: [1, 1] };
    External::new(command, columns, vec![0.5, 1.5])
}

/// A step of three rows.
fn step(command: Command<'_>) -> Result<(Vec<f32>, Vec<f32>)> {
    let (mut next, mut seen) = (vec![f32::NAN; 3], vec![f32::NAN; 3]);
    let states = [1.0, 2.0, 4.0];
    system(command).advance(7, Draws::new(3, Stream::Ensemble, 7), &states, &mut next, &mut seen)?;
    Ok((next, seen))
}

/// The row that an error names, and its words.
fn error(text: &str) -> (Option<usize>, String) {
    match step(command(text, Format::Csv)).unwrap_err() {
        Error::Simulator { step: 7, row, what } => (row, what),
        other => panic!("{other}"),
    }
}

#[test]
fn states_go_out_and_rows_come_back() {
    let (next, seen) =
        step(command("awk -F, '{ print $1 * 2 \", \" $1 + ENVIRON[\"HINTFLOW_STEP\"] }'", Format::Csv)).unwrap();
    assert_eq!((next, seen), (vec![2.0, 4.0, 8.0], vec![8.0, 9.0, 11.0]));
    let mut states = vec![f32::NAN; 5];
    system(command("", Format::Csv)).start(Draws::new(3, Stream::Ensemble, 0), &mut states).unwrap();
    assert_eq!(states, [0.5, 1.5, 0.5, 1.5, 0.5]);
    let (values, columns) = command("cat > /dev/null; yes 1,2,3 | head -n $HINTFLOW_ROWS", Format::Csv)
        .start(Draws::new(3, Stream::Ensemble, 0), 4)
        .unwrap();
    assert_eq!((values.len(), columns), (12, 3));
}

#[test]
fn arrays_are_the_same_in_both_formats() {
    let values = [1.5f32, -2e-7, 3e9, 0.1, 5.0, -0.0];
    for format in [Format::Npy, Format::Csv] {
        let bytes = format.encode(&values, 2, 3);
        assert!(bytes.len() as u64 <= format.longest(values.len()));
        let (back, columns) = format.decode(&bytes, Path::new("it")).unwrap();
        assert_eq!((back.as_slice(), columns), (&values[..], 3));
    }
    // What NumPy reads as an array of two rows and no columns.
    let empty = Format::Npy.encode(&[], 2, 0);
    assert!(String::from_utf8_lossy(&empty).contains("'shape': (2, 0)"));
}

#[test]
fn the_seed_is_another_one_for_each_step() {
    let text = "cat > /dev/null; for i in 1 2; do echo $HINTFLOW_SEED,0; done";
    let seed = |step: u32, seed: u64| {
        let call = command(text, Format::Csv);
        call.simulate(step, Draws::new(seed, Stream::Ensemble, step).seed(), &[0.0; 2], (2, 1), Some([1, 1]), &[])
            .unwrap()
            .0[0]
    };
    let all = [seed(1, 1), seed(2, 1), seed(1, 2)];
    assert_eq!(seed(2, 1), all[1]);
    assert!(all[0] != all[1] && all[0] != all[2] && all[1] != all[2], "{all:?}");
}

#[test]
fn whatever_goes_wrong_names_step_and_row() {
    let read = |rest: &str| format!("cat > /dev/null; {rest}");
    let (row, what) = error(&read("echo trouble >&2; exit 3"));
    assert!(row.is_none() && what.contains("exit status: 3") && what.ends_with("it said:\ntrouble"), "{what}");
    let (row, what) = error("no-such-simulator");
    assert!(row.is_none() && what.contains("exit status: 127") && what.contains("not found"), "{what}");
    let (row, what) = error(&read("printf '1,2\\n1,nan\\n1,2\\n'"));
    assert!(row == Some(2) && what.contains("column 2") && what.contains("`nan`"), "{what}");
    let (row, what) = error(&read("printf '1,2\\nfine,2\\n1,2\\n'"));
    assert!(row == Some(2) && what.contains("column 1 (`level`)") && what.contains("`fine`"), "{what}");
    let (row, what) = error(&read("printf '1,2\\n1,2\\n'; echo early >&2"));
    assert!(row == Some(3) && what.contains("2 rows") && what.ends_with("early"), "{what}");
    let (row, what) = error(&read("printf '1,2\\n1,2\\n1,2\\n1,2\\n'"));
    assert!(row == Some(4) && what.contains("4 in all"), "{what}");
    let (row, what) = error(&read("printf '1\\n1\\n1\\n'"));
    assert!(row.is_none() && what.contains("wrote 1 columns, must be 2: 1 of the next state"), "{what}");
    let (row, what) = error(&read("printf '1,2\\n1\\n1,2\\n'"));
    assert!(row.is_none() && what.contains("row 2 has 1 numbers"), "{what}");
    let (row, what) = error(&read("true"));
    assert!(row.is_none() && what.contains("empty"), "{what}");
    // Without an end: as much as can be an array is read.
    let (row, what) = error(&read("yes 1,2"));
    assert!(row.is_none() && what.contains("wrote more than"), "{what}");
    let npy = |text: &str| step(command(text, Format::Npy)).unwrap_err().to_string();
    let what = npy(&read("echo hello"));
    assert!(what.starts_with("step 7: ") && what.contains("begins with `hello\\n`"), "{what}");
    let what = npy(&read("printf '\\223NUMPY'"));
    assert!(what.contains("wrote no .npy array") && what.contains("truncated"), "{what}");
}

#[test]
fn commands_that_hang_are_ended_with_all_that_they_started() {
    let begun = Instant::now();
    // The shell waits for a process of its own, which holds the pipes.
    for text in ["sleep 1000", "sleep 1000 & wait", "cat > /dev/null; sleep 1000 | cat"] {
        let call = Command { timeout: Duration::from_millis(100), ..command(text, Format::Csv) };
        let what = step(call).unwrap_err().to_string();
        assert!(what.contains("longer than 0.1 s"), "{what}");
    }
    // One that leaves something running behind itself.
    let (next, _) = step(command("sleep 1000 & awk -F, '{ print $1 \",\" $1 }'", Format::Csv)).unwrap();
    assert_eq!(next, [1.0, 2.0, 4.0]);
    static NOW: AtomicBool = AtomicBool::new(false);
    NOW.store(true, Ordering::Relaxed);
    let call = Command { stop: &NOW, ..command("sleep 1000", Format::Csv) };
    assert!(matches!(step(call), Err(Error::Stopped)));
    assert!(begun.elapsed() < Duration::from_secs(60));
}

/// More than a pipe holds, in both directions at once.
#[test]
fn large_arrays_do_not_wait_for_each_other() {
    let rows = 50_000;
    let states: Vec<f32> = (0..rows).map(|i| i as f32).collect();
    let (mut next, mut seen) = (vec![f32::NAN; rows], vec![f32::NAN; rows]);
    let system = system(command("awk '{ print $1 \",\" (-$1) }'", Format::Csv));
    system.advance(1, Draws::new(3, Stream::Ensemble, 1), &states, &mut next, &mut seen).unwrap();
    assert_eq!(next, states);
    assert!(seen.iter().zip(&states).all(|(y, x)| *y == -x));
    // And one that reads nothing.
    let call = command("yes 1,2 | head -n 50000", Format::Csv);
    self::system(call).advance(1, Draws::new(3, Stream::Ensemble, 1), &states, &mut next, &mut seen).unwrap();
    assert!(next.iter().all(|x| *x == 1.0));
}

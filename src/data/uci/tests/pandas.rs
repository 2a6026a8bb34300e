//! GAS from pickles of pandas, whole, damaged and ill-meant.

use super::*;

/// Tables of the layout of `gas/ethylene_CO.pickle`, written by pandas of several versions: one of them by that of
/// Python 2, as the archive has it.
const PICKLES: [&str; 4] = ["python2_pandas0.19", "pandas1.2_protocol4", "pandas3_protocol2", "pandas3_protocol5"];

fn pickle(name: &str) -> Vec<u8> {
    std::fs::read(format!("{}/tests/fixtures/pandas/{name}.pickle", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[test]
fn tables_of_pandas_are_read() {
    let place = Place::new();
    // Fourteen of twenty rows of 19 columns, as `sample(frac=0.7, random_state=3)` draws them.
    let order = RandomState::new(3).permutation(20);
    let row = |&i: &u32| (3..19).map(move |j| h(i as usize, j, 1009) as f64 / 8.0);
    write_npy(&place.path("t.npy"), 16, &order[..14].iter().flat_map(row).collect::<Vec<_>>());
    let expected = Uci::Gas.read(&place.path("t.npy"), 42).unwrap();
    assert_eq!(expected.columns.len(), 16);
    for name in PICKLES {
        std::fs::create_dir_all(place.path("gas")).unwrap();
        std::fs::write(place.path("gas/ethylene_CO.pickle"), pickle(name)).unwrap();
        assert_eq!(Uci::Gas.read(&place.path(""), 42).unwrap(), expected, "{name}");
    }
}

#[test]
fn damaged_tables_of_pandas_are_errors() {
    let place = Place::new();
    let path = place.path("t.pickle");
    let read = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Uci::Gas.read(&path, 42)
    };
    let find = |bytes: &[u8], part: &[u8]| bytes.windows(part.len()).position(|window| window == part).unwrap();
    for name in PICKLES {
        let whole = pickle(name);
        for end in (0..whole.len()).step_by(97) {
            let text = read(&whole[..end]).unwrap_err().to_string();
            assert!(text.contains("t.pickle: ") && text.contains("to_numpy()"), "{name}, {end}: {text}");
        }
        // Whatever is wrong: an answer or an error, and no panic.
        for at in (0..whole.len()).step_by(7) {
            let mut bytes = whole.clone();
            bytes[at] ^= 0x41;
            let _ = read(&bytes);
        }
        let mut bytes = whole.clone();
        bytes[find(&whole, b"Time")] = b'D';
        assert!(read(&bytes).unwrap_err().to_string().contains("no names of 19 columns, `Time`"), "{name}");
        let mut bytes = whole.clone();
        bytes[find(&whole, b"Meth")] = b'N';
        assert!(read(&bytes).unwrap_err().to_string().contains("17 columns besides Time, Meth, Eth"), "{name}");
    }
    // The first reading of the first sensor, 84.5.
    let whole = pickle(PICKLES[0]);
    let mut bytes = whole.clone();
    let at = find(&whole, &84.5f64.to_le_bytes());
    bytes[at..at + 8].copy_from_slice(&f64::NAN.to_le_bytes());
    let text = read(&bytes).unwrap_err().to_string();
    assert!(text.contains("row 1, column 4 (`R1`)") && text.contains("NaN"), "{text}");
    assert!(read(b"cos\nsystem\n(X\x01\x00\x00\x00xtR.").unwrap_err().to_string().contains("no table of numbers"));
}

/// A pickle of many blocks that refer to the same values or to the same places.
fn repeated(blocks: usize, values_once: bool) -> Vec<u8> {
    let text = |s: &str| [b"X", &(s.len() as u32).to_le_bytes()[..], s.as_bytes()].concat();
    let int = |i: i32| [b"J", &i.to_le_bytes()[..]].concat();
    let call = |function: &str, arguments: &[Vec<u8>]| {
        [b"c", function.replace(' ', "\n").as_bytes(), b"\n(", &arguments.concat(), b"tR"].concat()
    };
    let (rows, columns) = if values_once { (100, 16) } else { (1, 60_000) };
    let data = call("_codecs encode", &[text(&"\0".repeat(rows * columns)), text("latin1")]);
    let state =
        [b"(".to_vec(), int(3), text("<"), b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffJ\0\0\0\0tb".to_vec()].concat();
    let dtype = [call("numpy dtype", &[text("i1"), int(0), int(1)]), state].concat();
    let shape = [b"(".to_vec(), int(columns as i32), int(rows as i32), b"t".to_vec()].concat();
    let values = call("numpy.core.numeric _frombuffer", &[data, dtype, shape, text("C")]);
    let places = call("builtins slice", &[int(0), int(columns as i32), int(1)]);
    let block = call("pandas._libs.internals _unpickle_block", &[b"h\0".to_vec(), b"h\x01".to_vec(), int(2)]);
    let once = [values, b"q\x000".to_vec(), places, b"q\x010".to_vec()].concat();
    [b"\x80\x02".to_vec(), once, block.repeat(blocks), b".".to_vec()].concat()
}

#[test]
fn a_table_of_pandas_is_no_larger_than_its_file() {
    let place = Place::new();
    let path = place.path("t.pickle");
    let message = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        Uci::Gas.read(&path, 42).unwrap_err().to_string()
    };
    for values_once in [true, false] {
        // A single one is read as far as its names, which are not there.
        for (blocks, says) in [(1, "no names of"), (2000, "larger than the file")] {
            let text = message(&repeated(blocks, values_once));
            assert!(text.contains(says), "{text}");
        }
    }
}

//! Data sets and files from outside: what a user can hold in his hands, and what he can get wrong.

use std::fs;
use std::path::{Path, PathBuf};

use hintflow::data::shapes::cross::Cross;
use hintflow::data::shapes::lens::{self, Lens, Outline};
use hintflow::data::{Shapes, TEST_FIRST_ROW, Table, write_csv, write_npy};
use hintflow::error::Error;
use hintflow::rng::{Counter, Stream};
use proptest::prelude::*;

fn pool(threads: usize) -> rayon::ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    fn read(&self, name: &str, content: impl AsRef<[u8]>) -> Result<Table, Error> {
        Table::read(self.put(name, content))
    }

    fn csv(&self, text: impl AsRef<[u8]>) -> Result<Table, Error> {
        self.read("t.csv", text)
    }
}

// Lens

#[test]
fn lens_rows_depend_on_seed_and_row_alone() {
    for outline in [Outline::Vertices, Outline::Arc] {
        let whole = pool(1).install(|| Shapes::Lens(outline).generate(300, 4, 0)).unwrap();
        let threads = pool(3).install(|| Shapes::Lens(outline).generate(300, 4, 0)).unwrap();
        assert_eq!(whole, threads);
        let part = Shapes::Lens(outline).generate(37, 4, 100).unwrap();
        assert_eq!(part.values(), &whole.values()[100 * 20..137 * 20]);
        let (shapes, seen) = Shapes::Lens(outline).generate_with_observations(300, 4, 0).unwrap();
        assert_eq!(shapes, whole);
        assert_eq!((seen.rows, seen.dim()), (300, 2));
        let (_, later) = pool(3).install(|| Shapes::Lens(outline).generate_with_observations(5, 4, 100)).unwrap();
        assert_eq!(later.values(), &seen.values()[200..210]);
        assert_eq!(whole.row(17), Lens::of_row(4, 17).coefficients(outline));
        assert_ne!(whole.row(0), Shapes::Lens(outline).generate(1, 5, 0).unwrap().row(0));
    }
}

#[test]
fn test_rows_are_not_training_rows() {
    let train = Shapes::Lens(Outline::Arc).generate(2000, 0, 0).unwrap();
    let test = Shapes::Lens(Outline::Arc).generate(2000, 0, TEST_FIRST_ROW).unwrap();
    let key = |row: &[f32]| (row[2].to_bits(), row[7].to_bits());
    let seen: std::collections::HashSet<_> = train.iter_rows().map(key).collect();
    assert_eq!(seen.len(), 2000);
    assert!(test.iter_rows().all(|row| !seen.contains(&key(row))));
}

#[test]
fn lens_tables_have_the_moments_of_the_family() {
    for outline in [Outline::Vertices, Outline::Arc] {
        let n = 20_000;
        let table = Shapes::Lens(outline).generate(n, 1, 0).unwrap();
        assert_eq!(table.columns[7], "re_y_0");
        let moments: Vec<(f64, f64)> = (0..20)
            .map(|j| {
                let column = || table.iter_rows().map(|row| f64::from(row[j]));
                let mean = column().sum::<f64>() / n as f64;
                (mean, (column().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt())
            })
            .collect();
        for (j, (mean, deviation)) in moments.iter().enumerate() {
            println!("{outline} {:8} mean {mean:8.4} deviation {deviation:8.4}", table.columns[j]);
        }
        // a_0 is the offset: N(0, 0.5). Im a_0 is 0. Nothing else is constant or larger than a Lens.
        for (j, (mean, deviation)) in moments.into_iter().enumerate() {
            match j {
                2 | 7 => assert!(mean.abs() < 0.018 && (deviation - 0.5).abs() < 0.0125, "{j}: {mean} {deviation}"),
                12 | 17 => assert_eq!((mean, deviation), (0.0, 0.0)),
                _ => assert!(mean.abs() < 1.0 && deviation > 1e-3 && deviation < 2.0, "{j}: {mean} {deviation}"),
            }
        }
        // An outline is real: a_-m is the conjugate of a_m.
        for row in table.iter_rows().take(100) {
            for axis in 0..2 {
                for m in 0..5 {
                    assert_eq!(row[5 * axis + m], row[5 * axis + 4 - m]);
                    assert_eq!(row[10 + 5 * axis + m], -row[10 + 5 * axis + 4 - m]);
                }
            }
        }
    }
}

#[test]
fn observation_noise_has_deviation_one_twentieth() {
    let n = 20_000;
    let (shapes, seen) = Shapes::Lens(Outline::Vertices).generate_with_observations(n, 2, 0).unwrap();
    for axis in 0..2 {
        let noise: Vec<f64> = shapes
            .iter_rows()
            .zip(seen.iter_rows())
            .map(|(row, seen)| f64::from(seen[axis]) - lens::observe(row).unwrap()[axis])
            .collect();
        let mean = noise.iter().sum::<f64>() / n as f64;
        let deviation = (noise.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        assert!(mean.abs() < 5.0 * 0.05 / (n as f64).sqrt(), "{mean}");
        assert!((deviation - 0.05).abs() < 0.0013, "{deviation}");
    }
    // d_h and d_v hold the tips' distance, which is 1.636 radii for the true Lens and less for a curve of order 2.
    let longest = seen.iter_rows().map(|s| f64::from(s[0]).hypot(f64::from(s[1]))).fold(0.0, f64::max);
    assert!((2.7..3.6).contains(&longest), "{longest}");
}

// Cross

#[test]
fn cross_tables_have_the_moments_of_the_family() {
    let n = 20_000;
    let (table, seen) = Shapes::Cross.generate_with_observations(n, 1, 0).unwrap();
    assert_eq!(table, pool(1).install(|| Shapes::Cross.generate(n, 1, 0)).unwrap());
    assert_eq!((table.dim(), seen.dim(), table.columns[62].as_str()), (100, 4, "im_x_0"));
    assert_eq!(seen.columns, ["centre_x", "centre_y", "rotation", "thickness_ratio"]);
    assert_eq!(table.row(17), Cross::of_row(1, 17).coefficients());
    for (j, name) in table.columns.iter().enumerate() {
        let column = || table.iter_rows().map(|row| f64::from(row[j]));
        let mean = column().sum::<f64>() / n as f64;
        let deviation = (column().map(|v| (v - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        // a_0 is the offset: N(0, 0.5). Im a_0 is 0. Nothing else is constant or larger than a Cross.
        match j {
            12 | 37 => assert!(mean.abs() < 0.018 && (deviation - 0.5).abs() < 0.0125, "{name}: {mean} {deviation}"),
            62 | 87 => assert_eq!((mean, deviation), (0.0, 0.0), "{name}"),
            _ => assert!(mean.abs() < 1.0 && deviation > 1e-3 && deviation < 2.0, "{name}: {mean} {deviation}"),
        }
    }
    // An outline is real: a_-m is the conjugate of a_m.
    for row in table.iter_rows().take(100) {
        for axis in 0..2 {
            for m in 0..25 {
                assert_eq!(row[25 * axis + m], row[25 * axis + 24 - m]);
                assert_eq!(row[50 + 25 * axis + m], -row[50 + 25 * axis + 24 - m]);
            }
        }
    }
    // Widths are U(0.5, 2) each: their ratio is below 1 as often as above, and its mean is 1.25 ln(4) / 1.5. Noise has
    // mean 0.
    let ratio = || seen.iter_rows().map(|row| f64::from(row[3]));
    let mean = ratio().sum::<f64>() / n as f64;
    assert!((mean - 1.25 * 4f64.ln() / 1.5).abs() < 0.03, "{mean}");
    let below = ratio().filter(|&r| r < 1.0).count() as f64 / n as f64;
    assert!((below - 0.5).abs() < 0.02, "{below}");
}

// Text tables

#[test]
fn csv_reads_what_people_write() {
    let f = Folder::new();
    let expected = [1.0f32, 2.5, -3.0, 4e5];
    let variants: [&[u8]; 11] = [
        b"1,2.5\n-3,4e5\n",
        b"a,b\n1,2.5\n-3,4e5",
        b"a;b\r\n1;2.5\r\n-3;4e5\r\n",
        b"a\tb\n1\t2.5\n-3\t4e5\n",
        b"\xef\xbb\xbfa,b\n1,2.5\n-3,4e5\n",
        b"\xef\xbb\xbf1,2.5\n-3,4e5\n",
        b"\n\na , b\n\n1, 2.5 \n   \n-3,+4e5\n\n",
        b"\"a\",\"b\"\n\"1\",\"2.5\"\n\"-3\",4e5\n",
        b"a,b\r1,2.5\r-3,4e5\r",
        b"y2020,b\n1,2.5\n-3,4e5\n",
        b"\"a,b\";\"c\nd\"\n1;2.5\n-3;4e5\n",
    ];
    for text in variants {
        let table = f.csv(text).unwrap_or_else(|e| panic!("{}: {e}", text.escape_ascii()));
        assert_eq!((table.rows, table.dim(), table.values()), (2, 2, &expected[..]), "{}", text.escape_ascii());
    }
    assert_eq!(f.csv("\u{feff}\u{e4}, b\n1,2").unwrap().columns, ["\u{e4}", "b"]);
    assert_eq!(f.csv("1,2").unwrap().columns, [""; 0]);
    assert_eq!(f.csv("x\n1\n\n2\n").unwrap().values(), [1.0, 2.0]);
    assert_eq!(f.csv("5").unwrap().values(), [5.0]);
}

#[test]
fn csv_errors_name_the_place() {
    let f = Folder::new();
    let cases: [(&[u8], &str); 27] = [
        (b"1.0,1.o,3\n1,2,3\n", "row 1, column 2: `1.o` is not a number"),
        (b"1.0,1.o,3\n1,2,3\n", "if the line holds names, none of them may be a number"),
        (b"2020,b\n1,2\n", "row 1, column 2: `b` is not a number"),
        (b"x;1,5;7\n1;2;3\n", "row 1, column 1: `x` is not a number"),
        (b"", "the file is empty"),
        (b"\n\n", "no rows"),
        (b"\xef\xbb\xbf", "no rows"),
        (b"a,b\n", "line of names and no row"),
        (b"a,b\n1,2\n3,\n", "row 2, column 2 (`b`): the cell is empty"),
        (b"a,b\n1,2\n\nNaN,4\n", "row 2, column 1 (`a`): the value is NaN"),
        (b"1,2\n3,inf\n", "row 2, column 2: the value is infinite"),
        (b"1,2\n3,x\n", "row 2, column 2: `x` is not a number"),
        (b"1,1e39\n", "row 1, column 2: 1e39 is too large"),
        (b"1,,3\n4,5,6\n", "row 1, column 2: the cell is empty"),
        (b"nan,2\n3,4\n", "row 1, column 1: the value is NaN"),
        (b"1,NA\n3,4\n", "row 1, column 2: `NA` is not a number"),
        (b"a,b\n1,2\n3\n", "row 2 (line 3) has 1 cell where 2"),
        (b"a,b\n1,2,3\n", "row 1 (line 2) has 3 cells where 2"),
        (b"a,a\n1,2\n", "two columns have the name `a`"),
        (b"a, a \n1,2\n", "two columns have the name `a`"),
        (b",a\n0,2\n", "column 1 has no name"),
        (b"x\n\"\"\n", "row 1, column 1 (`x`): the cell is empty"),
        (b"a,b\n\"1,5\",2\n", "row 1, column 1 (`a`): `1,5` is not a number; decimals need a point"),
        (b"1,2\n3,4.0 5.0\n", "`4.0 5.0` is not a number; cells are separated by"),
        (b"1.0 2.0\n3.0  x\n", "row 2, column 2: `x` is not a number"),
        (b"a,\xff\n1,2\n", "name of column 2 is not UTF-8"),
        (b"\xff\xfe1\0,\0", "UTF-16"),
    ];
    for (text, expected) in cases {
        let error = f.csv(text).expect_err(&text.escape_ascii().to_string()).to_string();
        assert!(error.contains(expected) && error.contains("t.csv"), "{}: {error}", text.escape_ascii());
    }
}

#[test]
fn csv_round_trips_every_float() {
    let f = Folder::new();
    let path = f.path("out.csv");
    let values = [0.1f32, -1e-45, f32::MAX, 16_777_217.0, 1.0 / 3.0, 1e-10];
    let names = ["a, b", "c \"quoted\"", "line\nbreak"].map(String::from);
    write_csv(&path, &names[..].into(), 2, 3, &values, hintflow::Overwrite::No).unwrap();
    let table = Table::read(&path).unwrap();
    assert_eq!(table.values().iter().map(|v| v.to_bits()).collect::<Vec<_>>(), values.map(f32::to_bits));
    assert_eq!(table.columns, names);
    assert!(matches!(table.write(&path, hintflow::Overwrite::No), Err(Error::Exists { .. })));
    write_csv(&path, &Default::default(), 6, 1, &values, hintflow::Overwrite::Yes).unwrap();
    assert_eq!(Table::read(&path).unwrap().dim(), 1);
    let write = |dim| write_csv(&path, &names[..].into(), 3, dim, &values, hintflow::Overwrite::Yes);
    assert!(matches!(write(2), Err(Error::Shape { .. })));
    assert!(matches!(write(3), Err(Error::Shape { got: 6, .. })));
    assert_eq!(fs::read_dir(f.0.path()).unwrap().count(), 1);
}

// NumPy files

/// A file by the format's description, independent of the writer.
fn npy(version: u8, descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY".to_vec();
    bytes.extend([version, 0]);
    match version {
        1 => bytes.extend((header.len() as u16).to_le_bytes()),
        _ => bytes.extend((header.len() as u32).to_le_bytes()),
    }
    bytes.extend(header.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn npy_reads_every_type_and_order() {
    let f = Folder::new();
    macro_rules! case {
        ($kind:ty, $name:literal) => {
            let numbers: [$kind; 6] = [1 as $kind, 2 as $kind, 3 as $kind, 4 as $kind, 5 as $kind, 100 as $kind];
            let little: Vec<u8> = numbers.iter().flat_map(|v| v.to_le_bytes()).collect();
            let big: Vec<u8> = numbers.iter().flat_map(|v| v.to_be_bytes()).collect();
            for (order, data) in [('<', little), ('>', big)] {
                for version in 1..=3 {
                    let descr = format!("{order}{}", $name);
                    let t = f.read("a.npy", npy(version, &descr, "False", "(2, 3)", &data)).unwrap();
                    assert_eq!((t.rows, t.values()), (2, &[1.0f32, 2.0, 3.0, 4.0, 5.0, 100.0][..]), "{descr}");
                    let t = f.read("a.npy", npy(version, &descr, "True", "(2, 3)", &data)).unwrap();
                    assert_eq!(t.values(), [1.0f32, 3.0, 5.0, 2.0, 4.0, 100.0], "{descr}");
                    let t = f.read("a.npy", npy(version, &descr, "False", "(6,)", &data)).unwrap();
                    assert_eq!((t.rows, t.dim()), (6, 1));
                }
            }
        };
    }
    case!(f32, "f4");
    case!(f64, "f8");
    case!(i8, "i1");
    case!(u8, "u1");
    case!(i16, "i2");
    case!(u16, "u2");
    case!(i32, "i4");
    case!(u32, "u4");
    case!(i64, "i8");
    case!(u64, "u8");
    assert_eq!(f.read("a.npy", npy(1, "|i1", "False", "(2,)", &[0xff, 0x80])).unwrap().values(), [-1.0, -128.0]);
    assert_eq!(f.read("a.npy", npy(1, "|b1", "False", "(2,)", &[1, 0])).unwrap().values(), [1.0, 0.0]);
    assert_eq!(f.read("a.npy", npy(1, "<f2", "False", "(2,)", &[0, 0x3c, 0, 0xc0])).unwrap().values(), [1.0, -2.0]);
    assert_eq!(f.read("a.npy", npy(1, ">f2", "False", "(1,)", &[0x3c, 0])).unwrap().values(), [1.0]);
}

#[test]
fn npy_is_read_across_chunks() {
    let f = Folder::new();
    let count = 3 * 50_021;
    let data: Vec<u8> = (0..count).flat_map(|i| f64::from(i).to_le_bytes()).collect();
    for (fortran, at) in [("False", [4i32, 5]), ("True", [50_022, 100_043])] {
        let t = f.read("a.npy", npy(1, "<f8", fortran, "(50021, 3)", &data)).unwrap();
        assert_eq!(t.row(1)[1..], at.map(|v| v as f32));
        assert_eq!(t.row(50_020)[2], (count - 1) as f32);
    }
}

#[test]
fn npy_errors_say_what_is_wrong() {
    let f = Folder::new();
    let data = [0u8; 24];
    let nan = f64::NAN.to_le_bytes();
    let large = 1e300f64.to_be_bytes();
    let good = npy(1, "<f4", "False", "(2, 3)", &data);
    let cases: Vec<(Vec<u8>, &str)> = vec![
        (vec![], "the file is empty"),
        (good[..4].to_vec(), "does not begin with"),
        (b"PK\x03\x04 not numpy at all".to_vec(), "does not begin with"),
        (good[..8].to_vec(), "truncated"),
        (good[..30].to_vec(), "truncated"),
        (good[..good.len() - 1].to_vec(), "only 23 bytes follow; the file is truncated"),
        (npy(4, "<f4", "False", "(2, 3)", &data), "version 4.0"),
        (npy(1, "<f4", "False", "(2, 3)", &[0; 25]), "1 byte follows after"),
        (npy(1, "<f4", "False", "()", &data[..4]), "0 dimensions"),
        (npy(1, "<f4", "False", "(1, 2, 3)", &data), "3 dimensions"),
        (npy(1, "<f4", "False", "(0, 3)", &[]), "0 rows and 3 columns"),
        (npy(1, "<f4", "False", "(3, 0)", &[]), "3 rows and 0 columns"),
        (npy(1, "<f4", "False", "(4611686018427387904, 4)", &data), "truncated"),
        (npy(1, "<f4", "False", "(18446744073709551615,)", &data), "truncated"),
        (npy(1, "<f4", "False", "(1000000000000,)", &data), "truncated"),
        (npy(1, "<c8", "False", "(3,)", &data), "'<c8' are not supported"),
        (npy(1, "|O", "False", "(3,)", &data), "'|O' are not supported"),
        (npy(1, "<f8", "False", "(1, 1)", &nan), "row 1, column 1: the value is NaN"),
        (npy(1, ">f8", "True", "(1, 2)", &[[0; 8], large].concat()), "row 1, column 2: 1e300 is too large"),
        (npy(1, "<f8", "True", "(2, 1)", &[[0; 8], nan].concat()), "row 2, column 1"),
        ([b"\x93NUMPY\x02\x00\xff\xff\xff\xff".as_slice(), &data].concat(), "claims 4294967295 bytes"),
    ];
    for (bytes, expected) in cases {
        let error = f.read("a.npy", &bytes).expect_err(expected).to_string();
        assert!(error.contains(expected) && error.contains("a.npy"), "{error} / {expected}");
    }
    let missing = Table::read(f.path("missing.npy")).unwrap_err();
    assert!(matches!(&missing, Error::Io { path, .. } if path == &f.path("missing.npy")), "{missing}");
    fs::create_dir(f.path("folder.npy")).unwrap();
    assert!(matches!(Table::read(f.path("folder.npy")), Err(Error::Io { .. })));
}

#[test]
fn npy_round_trips_and_an_independent_library_agrees() {
    let f = Folder::new();
    let mut rng = Counter::new(1, Stream::Data, 0, 0);
    for (rows, columns) in [(1, 1), (1, 37), (257, 1), (33_000, 5)] {
        let values: Vec<f32> = (0..rows * columns).map(|_| rng.normal_pair()[0] as f32).collect();
        let path = f.path("a.npy");
        write_npy(&path, rows, columns, &values, hintflow::Overwrite::Yes).unwrap();
        let table = Table::read(&path).unwrap();
        assert_eq!((table.rows, table.dim(), table.values()), (rows, columns, &values[..]));

        let bytes = fs::read(&path).unwrap();
        assert!((bytes.len() - 4 * values.len()).is_multiple_of(64));
        let theirs = npyz::NpyFile::new(&bytes[..]).unwrap();
        assert_eq!((theirs.shape(), theirs.order()), (&[rows as u64, columns as u64][..], npyz::Order::C));
        assert_eq!(theirs.into_vec::<f32>().unwrap(), values);
    }
    let path = f.path("a.npy");
    assert!(matches!(write_npy(&path, 1, 1, &[1.0], hintflow::Overwrite::No), Err(Error::Exists { .. })));
    assert!(matches!(write_npy(&path, 2, 1, &[1.0], hintflow::Overwrite::Yes), Err(Error::Shape { .. })));
    assert!(matches!(write_npy(&f.path("no/a.npy"), 1, 1, &[1.0], hintflow::Overwrite::Yes), Err(Error::Io { .. })));
}

// Files that are damaged anywhere

/// Reads a damaged file. It may be a table or an error, never a panic; a table is finite and no larger than the file.
fn survives(folder: &Folder, name: &str, bytes: &[u8]) {
    match folder.read(name, bytes) {
        Ok(table) => {
            assert!(table.values().len() <= bytes.len());
            assert_eq!(table.values().len(), table.rows * table.dim());
            assert!(table.values().iter().all(|v| v.is_finite()));
        }
        Err(error) => assert!(error.to_string().contains(name), "{error}"),
    }
}

#[derive(Debug, Clone)]
enum Damage {
    Flip(prop::sample::Index, u8),
    Cut(prop::sample::Index),
    Insert(prop::sample::Index, u8),
    Remove(prop::sample::Index),
}

fn damage() -> impl Strategy<Value = Damage> {
    prop_oneof![
        4 => (any::<prop::sample::Index>(), 1u8..).prop_map(|(i, b)| Damage::Flip(i, b)),
        1 => any::<prop::sample::Index>().prop_map(Damage::Cut),
        2 => (any::<prop::sample::Index>(), any::<u8>()).prop_map(|(i, b)| Damage::Insert(i, b)),
        2 => any::<prop::sample::Index>().prop_map(Damage::Remove),
    ]
}

fn damaged(mut bytes: Vec<u8>, damages: &[Damage]) -> Vec<u8> {
    for damage in damages {
        if bytes.is_empty() {
            break;
        }
        let length = bytes.len();
        match damage {
            Damage::Flip(i, bits) => bytes[i.index(length)] ^= bits,
            Damage::Cut(i) => bytes.truncate(i.index(length)),
            Damage::Insert(i, byte) => bytes.insert(i.index(length), *byte),
            Damage::Remove(i) => drop(bytes.remove(i.index(length))),
        }
    }
    bytes
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_npy_never_panics(
        version in 1u8..=3,
        descr in prop::sample::select(vec!["<f4", ">f8", "|u1", "<f2", ">i8"]),
        fortran in prop::sample::select(vec!["False", "True"]),
        damages in prop::collection::vec(damage(), 1..4),
    ) {
        let size: usize = descr[2..].parse().unwrap();
        let original = npy(version, descr, fortran, "(3, 4)", &vec![0x3f; 12 * size]);
        let folder = Folder::new();
        prop_assert!(folder.read("d.npy", &original).is_ok());
        survives(&folder, "d.npy", &damaged(original, &damages));
    }

    #[test]
    fn damaged_csv_never_panics(damages in prop::collection::vec(damage(), 1..6)) {
        let original = b"a,\"b;b\",c\r\n1,2.5,-3e7\r\n\"4\",5,6\r\n7,8,9\n".to_vec();
        survives(&Folder::new(), "d.csv", &damaged(original, &damages));
    }

    #[test]
    fn noise_never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), header in any::<bool>()) {
        let folder = Folder::new();
        survives(&folder, "d.csv", &bytes);
        let start: &[u8] = if header { b"\x93NUMPY\x01\x00\x60\x00" } else { b"" };
        survives(&folder, "d.npy", &[start, &bytes].concat());
    }
}

#[test]
fn every_truncation_and_every_byte_of_a_header_is_survived() {
    let folder = Folder::new();
    let original = npy(1, "<f4", "False", "(2, 3)", &[0x22; 24]);
    for length in 0..original.len() {
        assert!(folder.read("d.npy", &original[..length]).is_err(), "{length}");
    }
    for i in 0..original.len() {
        for bit in 0..8 {
            let mut bytes = original.clone();
            bytes[i] ^= 1 << bit;
            survives(&folder, "d.npy", &bytes);
        }
    }
}

#[cfg(unix)]
#[test]
fn folders_without_permission_are_errors() {
    use std::os::unix::fs::PermissionsExt;
    let f = Folder::new();
    let locked = f.path("locked");
    fs::create_dir(&locked).unwrap();
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).unwrap();
    let path = locked.join("a.npy");
    // The administrator may write anywhere.
    let may_write = fs::write(locked.join("probe"), "").is_ok();
    let result = write_npy(&path, 1, 1, &[1.0], hintflow::Overwrite::No);
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o700)).unwrap();
    if may_write {
        result.unwrap();
    } else {
        assert!(
            matches!(&result, Err(Error::Io { action: "create", path: p, .. }) if p == Path::new(&path)),
            "{result:?}"
        );
    }
}

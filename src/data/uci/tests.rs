//! The data sets from small files of the published layouts. Expected values are those of the public preprocessing in
//! NumPy 2.4 and pandas 3.1 on the same files.

use std::path::{Path, PathBuf};

use super::random_state::RandomState;
use super::*;

mod pandas;

/// Some whole number below `m`.
fn h(i: usize, j: usize, m: usize) -> usize {
    ((i + 1) * 7919 + (j + 1) * 104_729 + (i + 1) * (j + 3) * 31) % m
}

/// The measurements and the minute of row `i` of POWER, in thousandths.
fn power_row(i: usize) -> [usize; 8] {
    let t = |j, m| h(i, j, m);
    [
        1000 * t(0, 8) + t(1, 1000),
        t(2, 500),
        1000 * (230 + t(3, 20)) + 10 * t(4, 100),
        1000 * t(5, 30) + 100 * t(6, 10),
        1000 * t(7, 3),
        1000 * t(8, 40),
        1000 * t(9, 19),
        1000 * ((17 * 60 + 24 + i * 37) % 1440),
    ]
}

const POWER_HEADER: &str = "Date;Time;Global_active_power;Global_reactive_power;Voltage;Global_intensity;Sub_metering_1;\
    Sub_metering_2;Sub_metering_3\n";

/// Sixty rows, every seventh of them without measurements.
fn power_text() -> String {
    let mut text = POWER_HEADER.to_owned();
    for i in 0..60 {
        let row = power_row(i);
        let minute = row[7] / 1000;
        text += &format!("16/12/2006;{:02}:{:02}:00", minute / 60, minute % 60);
        match i % 7 {
            3 => text += ";?;?;?;?;?;?;",
            _ => row[..7].iter().for_each(|v| text += &format!(";{}.{:03}", v / 1000, v % 1000)),
        }
        text.push('\n');
    }
    text
}

/// Sensor `j` of row `i` of GAS in hundredths: `j` and `j + 8` agree for `j < 5`, 6 and 7 are opposite.
fn gas_value(i: usize, j: usize) -> i64 {
    let base = j % 8;
    let mut value = if base == 7 { 9970 - 10 * h(i, 6, 997) } else { 10 * h(i, base, 997) };
    if j >= 8 {
        value += h(i, 20 + j, if base < 5 { 300 } else { 9000 });
    }
    value as i64 - 3000
}

fn gas_text() -> String {
    let mut text = "Time (seconds), CO conc (ppm), Ethylene conc (ppm), sensor readings (16 channels) \n".to_owned();
    for i in 0..400 {
        text += &format!("{}.{:02}   {}.00    0.00  ", i / 100, i % 100, h(i, 1, 500));
        for value in (0..16).map(|j| gas_value(i, j)) {
            let sign = if value < 0 { "-" } else { "" };
            text += &format!(" {sign}{}.{:02}", value.abs() / 100, value.abs() % 100);
        }
        text.push('\n');
    }
    text
}

/// Variable `j` of event `i` of MINIBOONE, as it is written: the least value of every seventh comes often.
fn miniboone_cell(i: usize, j: usize) -> String {
    let value = h(i, j, 100_003) as f64;
    match (j % 7, i % 4) {
        _ if i == 5 || i == 17 => "-0.999000E+03".into(),
        (2, 1) => "-2.500000e+00".into(),
        (2, _) => format!("{:.6e}", value / 25_000.0 + 0.1),
        _ => format!("{:.6e}", (value - 50_000.0) / 25_000.0),
    }
}

fn miniboone_text() -> String {
    let mut text = " 60 5\n".to_owned();
    for i in 0..65 {
        (0..50).for_each(|j| text += &format!(" {:>14}", miniboone_cell(i, j)));
        text.push('\n');
    }
    text
}

fn write_npy(path: &Path, dim: usize, values: &[f64]) {
    let shape = format!("({}, {dim})", values.len() / dim);
    let mut header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}");
    header += &" ".repeat(127 - 10 - header.len());
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, bytes).unwrap();
}

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        std::fs::write(self.path(name), text).unwrap();
        self.path(name)
    }
}

/// Rows of a part, its first six and last six values, its sum and its sum of squares.
struct Expected {
    rows: usize,
    first: [f64; 6],
    last: [f64; 6],
    sum: f64,
    squares: f64,
}

fn assert_part(name: &str, values: &[f32], dim: usize, expected: &Expected) {
    let near = |what: &str, got: f64, expected: f64, tolerance: f64| {
        assert!((got - expected).abs() <= tolerance, "{name}, {what}: {got} and not {expected}");
    };
    assert_eq!(values.len(), expected.rows * dim, "{name}");
    let wide: Vec<f64> = values.iter().map(|&v| f64::from(v)).collect();
    let last = &wide[wide.len() - 6..];
    for (i, (got, expected)) in wide.iter().zip(&expected.first).chain(last.iter().zip(&expected.last)).enumerate() {
        near(&format!("value {i}"), *got, *expected, 3e-7);
    }
    near("sum", wide.iter().sum(), expected.sum, 2e-5);
    near("squares", wide.iter().map(|v| v * v).sum(), expected.squares, 1e-4);
}

fn assert_parts(parts: &Parts, expected: [Expected; 3]) {
    let dim = parts.columns.len();
    let of = [("train", &parts.train), ("validation", &parts.validation), ("test", &parts.test)];
    of.iter().zip(&expected).for_each(|((name, values), expected)| assert_part(name, values, dim, expected));
}

#[test]
fn power_is_that_of_the_public_preprocessing() {
    let place = Place::new();
    let path = place.write("household_power_consumption.txt", &power_text());
    let parts = Uci::Power.read(&path, 42).unwrap();
    let names = ["Global_active_power", "Voltage", "Sub_metering_1", "Sub_metering_2", "Sub_metering_3", "Minute"];
    assert_eq!(parts.columns, names);
    assert_eq!(parts.notes, ["9 of 60 rows lack measurements and are left out"]);
    assert_parts(&parts, POWER);
    assert_ne!(Uci::Power.read(&path, 43).unwrap().train, parts.train);

    // Lines as another system ends them, and the preprocessed array in a folder.
    place.write("t.txt", &power_text().replace('\n', "\r\n"));
    assert_eq!(Uci::Power.read(&place.path("t.txt"), 42).unwrap(), parts);
    let rows = (0..60).filter(|i| i % 7 != 3).flat_map(power_row).map(|v| v as f64 / 1000.0);
    write_npy(&place.path("power/data.npy"), 8, &rows.collect::<Vec<_>>());
    let archived = Uci::Power.read(&place.path(""), 42).unwrap();
    assert_eq!(archived, Parts { notes: Vec::new(), ..parts });
}

#[test]
fn gas_is_that_of_the_public_preprocessing() {
    let place = Place::new();
    let path = place.write("ethylene_CO.txt", &gas_text());
    let parts = Uci::Gas.read(&path, 42).unwrap();
    assert_eq!(parts.columns, (6..=16).map(|j| format!("sensor_{j}")).collect::<Vec<_>>());
    assert!(parts.notes[0].contains("100 of 400 rows") && parts.notes[1].contains("11 sensors"), "{:?}", parts.notes);
    assert_parts(&parts, GAS);

    // The quarter as arrays, with the other columns and without.
    let order = RandomState::new(42).permutation(400);
    let sensors = |i: usize| (0..16).map(move |j| gas_value(i, j) as f64 / 100.0);
    let quarter = || order[..100].iter().map(|&i| i as usize);
    let narrow: Vec<f64> = quarter().flat_map(sensors).collect();
    let wide: Vec<f64> = quarter().flat_map(|i| [i as f64, 7.0, 0.0].into_iter().chain(sensors(i))).collect();
    write_npy(&place.path("gas/ethylene_CO.npy"), 16, &narrow);
    write_npy(&place.path("wide.npy"), 19, &wide);
    for path in ["", "gas", "gas/ethylene_CO.npy", "wide.npy"] {
        let archived = Uci::Gas.read(&place.path(path), 1).unwrap();
        assert_eq!(archived, Parts { notes: parts.notes[1..].to_vec(), ..parts.clone() }, "{path}");
    }
}

#[test]
fn miniboone_is_that_of_the_public_preprocessing() {
    let place = Place::new();
    let path = place.write("MiniBooNE_PID.txt", &miniboone_text());
    let parts = Uci::Miniboone.read(&path, 42).unwrap();
    // Every seventh variable from the third on is taken out, and of the others the last.
    let kept = (0..49).filter(|j| j % 7 != 2).map(|j| format!("variable_{}", j + 1));
    assert_eq!(parts.columns, kept.collect::<Vec<_>>());
    assert_eq!(parts.notes, [""; 0]);
    assert_parts(&parts, MINIBOONE);

    let events = (0..60).filter(|i| ![5, 17].contains(i));
    let rows = events.flat_map(|i| (0..50).filter(|j| j % 7 != 2).map(move |j| miniboone_cell(i, j).parse().unwrap()));
    write_npy(&place.path("data/miniboone/data.npy"), 43, &rows.collect::<Vec<_>>());
    let archived = Uci::Miniboone.read(&place.path(""), 42).unwrap();
    assert_eq!((&archived.train, &archived.test), (&parts.train, &parts.test));
}

#[test]
fn files_that_are_not_there_are_described() {
    let place = Place::new();
    for (set, words) in [
        (
            Uci::Power,
            [
                "household_power_consumption.txt",
                "dataset/235",
                "power/data.npy",
                "hintflow train power --set data.path=",
            ],
        ),
        (Uci::Gas, ["ethylene_CO.txt", "dataset/322", "gas/ethylene_CO.pickle", "hintflow train gas --set data.path="]),
        (
            Uci::Miniboone,
            ["MiniBooNE_PID.txt", "dataset/199", "miniboone/data.npy", "hintflow train miniboone --set data.path="],
        ),
    ] {
        let missing = [set.read(&place.path("none.txt"), 42), set.read(&place.path(""), 42), Err(set.unnamed())];
        for text in missing.map(|result| result.unwrap_err().to_string()) {
            assert!(text.starts_with("`data.path`") && text.contains("zenodo.org/records/1161203"), "{text}");
            assert!(words.iter().all(|word| text.contains(word)), "{text}");
        }
        let text = set.read(&place.write("a.zip", "x"), 42).unwrap_err().to_string();
        assert!(text.contains("unpack"), "{text}");
        let text = set.read(&place.write("a.png", "x"), 42).unwrap_err().to_string();
        assert!(text.contains(words[0]), "{text}");
        assert!(set.read(&place.write("empty.txt", ""), 42).unwrap_err().to_string().contains("is empty"));
        assert!(set.read(&place.path("none.txt"), 1 << 32).unwrap_err().to_string().contains("data.seed"));
    }
}

/// The message for a text in which `from` is replaced by `to`.
fn message(set: Uci, text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from}");
    let place = Place::new();
    let path = place.write("t.txt", &text.replacen(from, to, 1));
    set.read(&path, 42).unwrap_err().to_string()
}

#[test]
fn damaged_texts_are_errors_with_file_and_row() {
    let power = power_text();
    let rest = |text: &str, from: &str| text.split_once(from).map(|(_, rest)| format!("{from}{rest}")).unwrap();
    // Row 2 begins with its time.
    for (from, to, words) in [
        (POWER_HEADER, "", &["t.txt", "first line is Date;Time;"][..]),
        (
            ";18:01:00;1.544",
            ";18:01:00;1.5x4",
            &["t.txt: row 2, column 3 (`Global_active_power`)", "`1.5x4`", "line 3"],
        ),
        (";18:01:00;1.544", ";18:01:00;nan", &["row 2, column 3", "NaN"]),
        (";18:01:00;1.544", ";18:01;1.544", &["row 2, column 2 (`Time`)", "`18:01`"]),
        (";18:01:00;1.544", ";18:01:00", &["row 2 (line 3)", "8 cells where 9"]),
        (";18:01:00;1.544", ";18:01:00;1;1.544", &["row 2 (line 3)", "10 cells where 9"]),
        (&rest(&power, ";18:01:00;1.544"), ";18:01:00;1.5", &["row 2 (line 3)", "3 cells where 9", "truncated"]),
        (&rest(&power, ";18:38:00"), ";18:38:00;1;1;1;1;1;1;1", &["3 rows are left", "12 are needed"]),
        (&rest(&power, "16/12/2006;17:24"), "", &["no row of 0"]),
    ] {
        let text = message(Uci::Power, &power, from, to);
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    }
    let gas = gas_text();
    for (from, to, words) in [
        ("Time (seconds)", "time", &["t.txt", "begins with `Time (seconds)`"][..]),
        ("0.01   44.00", "0.01   44.0.0", &["t.txt: row 2, column 2", "`44.0.0`", "line 3"]),
        ("0.01   44.00", "0.01   inf", &["row 2, column 2", "infinite"]),
        ("0.01   44.00", "0.01", &["row 2 (line 3)", "18 cells where 19"]),
        ("0.01   44.00", "0.01 1 2", &["row 2 (line 3)", "20 cells where 19"]),
        ("0.01   44.00", "\n0.01   44.00", &["400 of 401 lines", "blank"]),
        (&rest(&gas, "\n3.99 "), "\n3.99   1.0", &["row 400 (line 401)", "2 cells where 19", "truncated"]),
    ] {
        let text = message(Uci::Gas, &gas, from, to);
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    }
    let miniboone = miniboone_text();
    let (_, second) = miniboone.split_once("\n").and_then(|(_, rest)| rest.split_once('\n')).unwrap();
    for (from, to, words) in [
        (" 60 5\n", "", &["t.txt", "first line has two numbers"][..]),
        (" 60 5", " 60 5 1", &["first line has two numbers"]),
        (" 60 5", " 66 5", &["ends after 65 of 66 signal events", "truncated"]),
        (&second[..15], " x", &["t.txt: row 2, column 1", "`x`", "line 3"]),
        (&second[..15], "", &["row 2 (line 3)", "49 cells where 50"]),
        (second, " 1 2 3", &["row 2 (line 3)", "3 cells where 50"]),
        (second, "", &["ends after 1 of 60"]),
    ] {
        let text = message(Uci::Miniboone, &miniboone, from, to);
        assert!(words.iter().all(|word| text.contains(word)), "{words:?}: {text}");
    }
    let long = "1".repeat(1 << 17);
    assert!(message(Uci::Gas, &long, "1", "Time (seconds)").contains("line 1 has more than"));
}

#[test]
fn damaged_arrays_are_errors() {
    let place = Place::new();
    let path = place.path("data.npy");
    for (set, columns) in [(Uci::Power, 8), (Uci::Gas, 16), (Uci::Miniboone, 43)] {
        let mut values: Vec<f64> = (0..100 * columns).map(|i| h(i, 1, 1009) as f64).collect();
        write_npy(&path, columns, &values);
        set.read(&path, 42).unwrap();
        write_npy(&path, columns * 2, &values);
        let text = set.read(&path, 42).unwrap_err().to_string();
        assert!(text.contains(&format!("has {} columns", columns * 2)), "{text}");
        values[2 * columns] = f64::NAN;
        write_npy(&path, columns, &values);
        let text = set.read(&path, 42).unwrap_err().to_string();
        assert!(text.contains("data.npy: row 3, column 1") && text.contains("NaN"), "{text}");
        values.chunks_exact_mut(columns).for_each(|row| row[0] = 0.1);
        if set != Uci::Power {
            // POWER has noise there.
            write_npy(&path, columns, &values);
            let text = set.read(&path, 42).unwrap_err().to_string();
            assert!(text.contains("_1 is constant"), "{text}");
        }
        write_npy(&path, columns, &values[..11 * columns]);
        assert!(set.read(&path, 42).unwrap_err().to_string().contains("12 are needed"));
    }
}

const POWER: [Expected; 3] = [
    Expected {
        rows: 42,
        first: [1.039_026_98, 0.434_579_79, 1.515_461_21, 1.044_943_93, -0.672_888_46, -1.477_457_4],
        last: [0.727_269_47, -1.504_724_5, -1.179_044_25, 1.000_538_59, -0.551_971_73, -1.402_328_37],
        sum: -0.139_940_7,
        squares: 260.909_663,
    },
    Expected {
        rows: 4,
        first: [1.023_070_1, 0.318_371_44, 0.767_032_09, 1.018_404_6, -0.005_923, -0.257_715_61],
        last: [-1.006_122_11, 1.212_367_53, 0.023_745_31, -1.000_853_66, -0.373_972_24, -0.502_989_77],
        sum: 0.139_939_9,
        squares: 15.090_337_4,
    },
    Expected {
        rows: 5,
        first: [1.134_393_69, -1.403_548_84, 0.472_846_36, 1.018_899_68, 1.365_100_15, 1.452_574_49],
        last: [0.911_978_36, -1.409_771_44, 0.281_276_94, 0.951_762_68, -1.487_471_1, 1.213_929_41],
        sum: 1.828_455_4,
        squares: 37.516_256_7,
    },
];

const GAS: [Expected; 3] = [
    Expected {
        rows: 81,
        first: [0.019_383_04, -1.709_355_35, 1.709_355_35, 0.541_334_69, -1.111_624_24, 0.917_327_34],
        last: [0.040_661_77, 0.841_507_14, 1.216_533_18, -0.810_444_95, -1.328_010_56, 2.061_602_35],
        sum: -4.788_609_8,
        squares: 894.558_752_2,
    },
    Expected {
        rows: 9,
        first: [1.478_475_69, 0.003_725_68, -0.003_725_68, 0.843_855_68, -0.577_816_55, -1.763_219_59],
        last: [-1.488_309_5, 1.852_744_1, 1.091_497_06, 1.509_316_44, 1.170_627, 0.908_096_31],
        sum: 4.687_330_3,
        squares: 90.081_640_7,
    },
    Expected {
        rows: 10,
        first: [-1.414_676_19, -0.456_505_03, 0.456_505_03, 0.003_914_98, 0.995_164_69, -1.257_717_37],
        last: [0.315_571_9, -1.855_641_13, -0.460_155_31, 1.685_182_81, 0.012_773_4, 1.430_698_51],
        sum: 0.101_279,
        squares: 104.359_608_6,
    },
];

const MINIBOONE: [Expected; 3] = [
    Expected {
        rows: 48,
        first: [-1.192_071_44, -1.100_979_92, -0.844_833_55, -0.611_905_34, -0.507_989_29, -0.335_272_1],
        last: [0.681_686_04, 0.973_553_48, 1.370_018_84, 1.612_359_76, -1.684_788_7, -1.596_167_21],
        sum: -0.632_309,
        squares: 2_024.151_033_2,
    },
    Expected {
        rows: 5,
        first: [-1.171_673_66, -1.026_123_4, -0.658_292_41, -0.368_018_51, -0.207_866_18, 0.020_887_86],
        last: [-1.136_468_53, -0.862_876_06, -0.490_425_5, -0.266_202_39, 0.031_974_42, 0.130_378_74],
        sum: 0.632_309_1,
        squares: 201.848_970_1,
    },
    Expected {
        rows: 5,
        first: [0.218_014_64, 0.381_901_77, 0.784_926_35, 1.093_577_74, 1.261_973_86, 1.497_323_63],
        last: [0.448_160_05, 0.747_679_29, 1.161_628_6, 1.412_349_22, 1.748_737_45, -1.778_017_88],
        sum: 11.181_566_6,
        squares: 222.932_790_4,
    },
];

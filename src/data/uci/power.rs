//! POWER: electric power consumption of one household in minutes of 47 months, each row taken for itself.
//!
//! Raw, `household_power_consumption.txt` has a header and nine cells between semicolons: date, time, global active
//! power (kW), global reactive power (kW), voltage (V), global intensity (A) and three sub-meterings (Wh). Rows without
//! measurements (`?`, 25,979 of 2,075,259) are left out. `power/data.npy` holds the rest as eight columns, the last of
//! them the time in minutes since midnight.
//!
//! Reactive power and intensity are taken out: the one is often exactly 0, the other follows from the first.
//! Measurements are multiples of a step, so that a density needs uniform noise of that step: 0.001 kW, 0.01 V, 1 Wh.
//! Paper and code of the preprocessing differ on the time, to which the code adds none; so does this.

use std::path::Path;

use super::lines::{Line, Lines};
use super::random_state::RandomState;
use super::source::Layout;
use super::{Uci, Values};
use crate::counted::{are, counted};
use crate::data::files::npy;
use crate::error::{Error, Result};

const HEADER: [&str; 9] = [
    "Date",
    "Time",
    "Global_active_power",
    "Global_reactive_power",
    "Voltage",
    "Global_intensity",
    "Sub_metering_1",
    "Sub_metering_2",
    "Sub_metering_3",
];
/// Measurements in the header.
const FIRST: usize = 2;
/// Columns of the preprocessed array: all measurements, and the time.
const ARRAY_COLUMNS: usize = 8;
/// Of these, the columns that are modelled.
const KEPT: [usize; DIM] = [0, 2, 4, 5, 6, 7];
const DIM: usize = 6;
/// Places of modelled columns.
const ACTIVE_POWER: usize = 0;
const VOLTAGE: usize = 1;
const SUB_METERING: std::ops::Range<usize> = 2..5;

/// Rows of the data set, shuffled and with noise.
pub(super) fn read(path: &Path, seed: u32) -> Result<Values> {
    let (mut values, notes) = match Layout::of(path, Uci::Power)? {
        Layout::Raw => raw(path)?,
        _ => (array(path)?, Vec::new()),
    };
    let Ok(rows) = u32::try_from(values.len() / DIM) else {
        return Err(Error::format(path, "has 2^32 rows or more"));
    };
    let mut rng = RandomState::new(seed);
    rng.shuffle(rows, |i, j| (0..DIM).for_each(|c| values.swap(i * DIM + c, j * DIM + c)));
    add_noise(&mut values, &mut rng);
    let names = KEPT.map(|c| HEADER.get(FIRST + c).copied().unwrap_or("Minute"));
    Ok(Values { columns: names.map(String::from).to_vec(), values, notes })
}

/// In the order of the draws: first all voltages, then all powers, then the sub-meterings row by row.
fn add_noise(values: &mut [f64], rng: &mut RandomState) {
    for row in values.chunks_exact_mut(DIM) {
        row[VOLTAGE] += 0.01 * rng.uniform01();
    }
    for row in values.chunks_exact_mut(DIM) {
        row[ACTIVE_POWER] += 0.001 * rng.uniform01();
    }
    for row in values.chunks_exact_mut(DIM) {
        row[SUB_METERING].iter_mut().for_each(|value| *value += rng.uniform01());
    }
}

fn array(path: &Path) -> Result<Vec<f64>> {
    let (_, values) = npy::read_unrounded(path, |dim| match dim {
        ARRAY_COLUMNS => Ok(KEPT.to_vec()),
        other => {
            let what = format!(
                "has {}; power/data.npy has {ARRAY_COLUMNS}: seven measurements and the time",
                counted(other, "column")
            );
            Err(Error::format(path, what))
        }
    })?;
    Ok(values)
}

fn raw(path: &Path) -> Result<(Vec<f64>, Vec<String>)> {
    let mut lines = Lines::open(path)?;
    let is_header = |line: Line<'_>| line.text.split(|&b| b == b';').eq(HEADER.iter().map(|name| name.as_bytes()));
    if !lines.next()?.is_some_and(is_header) {
        let what =
            format!("is not laid out as household_power_consumption.txt, whose first line is {}", HEADER.join(";"));
        return Err(Error::format(path, what));
    }
    let mut values = Vec::new();
    let (mut row, mut missing) = (0, 0);
    while let Some(line) = lines.next()? {
        row += 1;
        match measurements(line, row)? {
            Some(all) => values.extend(KEPT.map(|c| all[c])),
            None => missing += 1,
        }
    }
    if values.is_empty() {
        return Err(Error::format(path, format!("no row of {row} has all measurements")));
    }
    let note = || {
        format!(
            "{missing} of {} {} measurements and {} left out",
            counted(row, "row"),
            if missing == 1 { "lacks" } else { "lack" },
            are(missing)
        )
    };
    Ok((values, (missing > 0).then(note).into_iter().collect()))
}

/// The measurements of a row and the minute of its day; `None` where one is missing.
fn measurements(line: Line<'_>, row: usize) -> Result<Option<[f64; ARRAY_COLUMNS]>> {
    let mut cells: [&[u8]; HEADER.len()] = [&[]; HEADER.len()];
    let mut count = 0;
    for cell in line.text.split(|&byte| byte == b';') {
        if let Some(place) = cells.get_mut(count) {
            *place = cell.trim_ascii();
        }
        count += 1;
    }
    if count != HEADER.len() {
        return Err(line.wrong_cells(row, count, HEADER.len()));
    }
    let mut all = [0.0; ARRAY_COLUMNS];
    all[ARRAY_COLUMNS - 1] = minute(cells[1]).ok_or_else(|| {
        let what = format!("`{}` is no time of a day", cells[1].escape_ascii());
        line.wrong_cell(row, 1, Some(HEADER[1]), &what)
    })?;
    let mut is_missing = false;
    for (column, name) in HEADER.iter().enumerate().skip(FIRST) {
        match cells[column] {
            b"?" | b"" => is_missing = true,
            cell => all[column - FIRST] = line.number_in(cell, row, column, Some(name))?,
        }
    }
    Ok((!is_missing).then_some(all))
}

/// Minutes since midnight of `hh:mm:ss`.
fn minute(time: &[u8]) -> Option<f64> {
    let two = |digits: &[u8]| match digits {
        [a @ b'0'..=b'9', b @ b'0'..=b'9'] => Some(10 * u32::from(a - b'0') + u32::from(b - b'0')),
        _ => None,
    };
    let [h1, h2, b':', m1, m2, b':', s1, s2] = *time else { return None };
    let [hours, minutes, seconds] = [two(&[h1, h2])?, two(&[m1, m2])?, two(&[s1, s2])?];
    (hours < 24 && minutes < 60 && seconds < 60).then(|| f64::from(60 * hours + minutes))
}

#[cfg(test)]
mod tests {
    use super::minute;

    #[test]
    fn times_of_a_day_become_minutes() {
        assert_eq!(
            ["00:00:00", "17:24:00", "23:59:59"].map(|t| minute(t.as_bytes())),
            [Some(0.0), Some(1044.0), Some(1439.0)]
        );
        for time in ["", "24:00:00", "1:02:03", "12:60:00", "12:00", "aa:bb:cc", "12-00-00"] {
            assert_eq!(minute(time.as_bytes()), None, "{time}");
        }
    }
}

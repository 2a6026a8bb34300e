//! GAS: 16 chemical sensors in changing mixtures of ethylene and carbon monoxide in air, each reading taken for itself.
//!
//! Raw, `ethylene_CO.txt` has a header and 4,208,261 rows of 19 numbers between blanks: time (s), two concentrations
//! (ppm), 16 sensors. The preprocessed table, `gas/ethylene_CO.pickle`, is a quarter of them, 1,052,065 rows in random
//! order. Which ones was not recorded, so the quarter of a raw file is another one: that of
//! `DataFrame.sample(frac=0.25, random_state=seed)` of pandas.
//!
//! Time and concentrations are taken out, then sensors that say the same as another: while two columns have a
//! correlation of more than 0.98, the first of the columns that have such a partner goes.

use std::io::Read;
use std::path::Path;

use super::frame::Frame;
use super::lines::{self, Lines};
use super::pickle::Pickle;
use super::random_state::RandomState;
use super::source::Layout;
use super::{Uci, Values};
use crate::counted::{are, counted};
use crate::data::files::npy;
use crate::data::files::open_regular;
use crate::error::{Error, Result};

/// Columns that are no sensors.
const OTHERS: usize = 3;
const SENSORS: usize = 16;
const COLUMNS: usize = OTHERS + SENSORS;
/// Share of the raw rows that are used.
const SHARE: f64 = 0.25;
/// Columns that correlate more say the same.
const CORRELATED: f64 = 0.98;
/// Columns that are left of the published data.
const LEFT: usize = 8;

/// Rows of the data set.
pub(super) fn read(path: &Path, seed: u32) -> Result<Values> {
    let mut notes = Vec::new();
    let mut values = match Layout::of(path, Uci::Gas)? {
        Layout::Raw => {
            let (values, rows) = raw(path, seed)?;
            notes.push(format!(
                "{} of {rows} rows are used, drawn with data.seed = {seed}; the rows of published results were drawn otherwise",
                values.len() / SENSORS
            ));
            values
        }
        Layout::Array => array(path)?,
        Layout::Pickle => pickled(path)?,
    };
    let kept = uncorrelated(&correlations(&values));
    if kept.len() != LEFT {
        notes.push(format!(
            "{} {} left after those are taken out that say the same as another; {LEFT} are in published results",
            counted(kept.len(), "sensor"),
            are(kept.len())
        ));
    }
    keep(&mut values, SENSORS, &kept);
    let columns = kept.iter().map(|c| format!("sensor_{}", c + 1)).collect();
    Ok(Values { columns, values, notes })
}

/// What to do with a table of pandas that is not understood.
const CONVERT: &str = "convert it with: python -c \"import numpy, pandas; numpy.save('ethylene_CO.npy', \
    pandas.read_pickle('ethylene_CO.pickle').drop(columns=['Time', 'Meth', 'Eth']).to_numpy())\" (pandas before 2.0), and set \
    data.path to ethylene_CO.npy";

/// Columns of the table that are no sensors.
const OTHER_NAMES: [&str; OTHERS] = ["Time", "Meth", "Eth"];

fn pickled(path: &Path) -> Result<Vec<f64>> {
    let (mut file, length) = open_regular(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(length).unwrap_or(0));
    file.read_to_end(&mut bytes).map_err(|e| Error::io("read", path, e))?;
    let bad = |what: String| Error::format(path, format!("{what}; {CONVERT}"));
    let pickle = Pickle::read(&bytes).map_err(bad)?;
    let frame = Frame::of(&pickle, bytes.len(), OTHER_NAMES[0]).map_err(bad)?;
    let sensors: Vec<_> =
        frame.columns.iter().enumerate().filter(|(_, column)| !OTHER_NAMES.contains(&column.name)).collect();
    if sensors.len() != SENSORS {
        let what =
            format!("has {} besides {}; GAS has {SENSORS}", counted(sensors.len(), "column"), OTHER_NAMES.join(", "));
        return Err(Error::format(path, what));
    }
    let mut values = vec![0.0; frame.rows * SENSORS];
    for (place, (number, column)) in sensors.into_iter().enumerate() {
        let from = values.get_mut(place..).unwrap_or_default();
        frame.write(column, from, SENSORS).map_err(|(row, what)| Error::Cell {
            path: path.into(),
            row: row + 1,
            column: number + 1,
            name: Some(column.name.into()),
            what,
        })?;
    }
    Ok(values)
}

fn array(path: &Path) -> Result<Vec<f64>> {
    let (_, values) = npy::read_unrounded(path, |dim| match dim {
        COLUMNS => Ok((OTHERS..COLUMNS).collect()),
        SENSORS => Ok((0..SENSORS).collect()),
        other => {
            let what = format!(
                "has {}; GAS has {SENSORS} sensors, or {COLUMNS} columns with time and concentrations first",
                counted(other, "column")
            );
            Err(Error::format(path, what))
        }
    })?;
    Ok(values)
}

/// The sensors of a random quarter of the rows, in random order; and the number of all rows.
fn raw(path: &Path, seed: u32) -> Result<(Vec<f64>, usize)> {
    // Counted first, so that the rows that are not used take no memory.
    let rows = lines::count(path)?.saturating_sub(1);
    let mut lines = Lines::open(path)?;
    if !lines.next()?.is_some_and(|line| line.text.starts_with(b"Time (seconds)")) {
        return Err(Error::format(
            path,
            "is not laid out as ethylene_CO.txt, whose first line begins with `Time (seconds)`",
        ));
    }
    let Ok(count) = u32::try_from(rows) else {
        return Err(Error::format(path, "has 2^32 rows or more"));
    };
    let used = (SHARE * f64::from(count)).round_ties_even() as usize;
    /// The place of a row that is not used.
    const NOWHERE: u32 = u32::MAX;
    let mut places = vec![NOWHERE; rows];
    for (place, &row) in (0..).zip(&RandomState::new(seed).permutation(count)[..used]) {
        places[row as usize] = place;
    }
    let mut values = vec![0.0; used * SENSORS];
    let mut row = 0;
    while let Some(line) = lines.next()? {
        let numbers: [f64; COLUMNS] = line.numbers(row + 1)?;
        if let Some(&place) = places.get(row).filter(|&&place| place != NOWHERE) {
            values[place as usize * SENSORS..][..SENSORS].copy_from_slice(&numbers[OTHERS..]);
        }
        row += 1;
    }
    if row != rows {
        let what = format!("{row} of {rows} lines are rows of numbers; there must be no blank lines between them");
        return Err(Error::format(path, what));
    }
    Ok((values, rows))
}

/// Correlation of each two columns. NaN if one is constant.
fn correlations(values: &[f64]) -> [[f64; SENSORS]; SENSORS] {
    let rows = || values.chunks_exact(SENSORS);
    let count = rows().len() as f64;
    let mut mean = [0.0; SENSORS];
    for row in rows() {
        mean.iter_mut().zip(row).for_each(|(mean, x)| *mean += x / count);
    }
    let mut products = [[0.0; SENSORS]; SENSORS];
    let mut centred = [0.0; SENSORS];
    for row in rows() {
        for (c, (x, mean)) in centred.iter_mut().zip(row.iter().zip(&mean)) {
            *c = x - mean;
        }
        for (products, a) in products.iter_mut().zip(&centred) {
            products.iter_mut().zip(&centred).for_each(|(product, b)| *product += a * b);
        }
    }
    std::array::from_fn(|i| std::array::from_fn(|j| products[i][j] / (products[i][i].sqrt() * products[j][j].sqrt())))
}

/// The columns that are left when, again and again, the first one that correlates with another is taken out.
fn uncorrelated(correlations: &[[f64; SENSORS]; SENSORS]) -> Vec<usize> {
    let mut left: Vec<usize> = (0..SENSORS).collect();
    let has_partner = |left: &[usize], i: usize| left.iter().any(|&j| j != i && correlations[i][j] > CORRELATED);
    while let Some(place) = left.iter().position(|&i| has_partner(&left, i)) {
        left.remove(place);
    }
    left
}

/// Takes all columns out of rows of `dim` but those, in place.
pub(super) fn keep(values: &mut Vec<f64>, dim: usize, columns: &[usize]) {
    let rows = values.len() / dim;
    for row in 0..rows {
        for (place, &column) in columns.iter().enumerate() {
            // Never after the value it comes from.
            values[row * columns.len() + place] = values[row * dim + column];
        }
    }
    values.truncate(rows * columns.len());
    values.shrink_to_fit();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_columns_that_agree_goes() {
        let mut c = [[0.0; SENSORS]; SENSORS];
        let mut pair = |i: usize, j: usize, value: f64| (c[i][j], c[j][i]) = (value, value);
        // 0 with 1 and 5, 1 with 5; 2 and 3 opposite; 7 and 8 just not; 10 is constant.
        for (i, j, value) in
            [(0, 1, 0.99), (0, 5, 0.985), (1, 5, 0.999), (2, 3, -0.99), (7, 8, 0.98), (10, 11, f64::NAN)]
        {
            pair(i, j, value);
        }
        let expected: Vec<usize> = (0..SENSORS).filter(|i| ![0, 1].contains(i)).collect();
        assert_eq!(uncorrelated(&c), expected);
    }

    #[test]
    fn columns_are_kept_in_place() {
        let mut values: Vec<f64> = (0..12).map(f64::from).collect();
        keep(&mut values, 4, &[1, 3]);
        assert_eq!(values, [1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
    }
}

//! MINIBOONE: electron neutrinos (the signal) among muon neutrinos, 50 particle-identification variables an event.
//!
//! Raw, `MiniBooNE_PID.txt` says in its first line how many events are signal and how many background (36,499 and
//! 93,565); a row of 50 numbers between blanks for each follows, signal first. The background is left out, then events
//! without measurements, whose variables are -999 (11 have a first variable below -100), then variables whose smallest
//! value comes more than five times (7). What is left is `miniboone/data.npy`, 43 columns.
//!
//! The paper's code takes out the last column, too: 42 are modelled, and log-likelihoods are not those of other papers,
//! which have 43.

use std::path::Path;

use super::gas::keep;
use super::lines::Lines;
use super::source::Layout;
use super::{Uci, Values};
use crate::counted::counted;
use crate::data::files::npy;
use crate::error::{Error, Result};

const VARIABLES: usize = 50;
/// First variables below this are none.
const OUTLIER: f64 = -100.0;
/// A variable whose smallest value comes more often is no density.
const MOST_EQUAL: usize = 5;
/// Columns of the preprocessed array.
const ARRAY_COLUMNS: usize = 43;

/// Rows of the data set.
pub(super) fn read(path: &Path) -> Result<Values> {
    let (values, kept, notes) = match Layout::of(path, Uci::Miniboone)? {
        Layout::Raw => selected(raw(path)?, path)?,
        _ => (array(path)?, (0..ARRAY_COLUMNS - 1).collect(), Vec::new()),
    };
    let columns = kept.iter().map(|column| format!("variable_{}", column + 1)).collect();
    Ok(Values { columns, values, notes })
}

fn array(path: &Path) -> Result<Vec<f64>> {
    let (_, values) = npy::read_unrounded(path, |dim| match dim {
        ARRAY_COLUMNS => Ok((0..ARRAY_COLUMNS - 1).collect()),
        other => Err(Error::format(
            path,
            format!("has {}; miniboone/data.npy has {ARRAY_COLUMNS}", counted(other, "column")),
        )),
    })?;
    Ok(values)
}

/// Values without the variables that are taken out, the numbers (from 0) of the others, and what to tell.
fn selected(mut values: Vec<f64>, path: &Path) -> Result<(Vec<f64>, Vec<usize>, Vec<String>)> {
    let mut kept: Vec<_> = (0..VARIABLES).filter(|&column| count_of_least(&values, column) <= MOST_EQUAL).collect();
    let note = match kept.len() {
        ARRAY_COLUMNS => None,
        0 | 1 => return Err(Error::format(path, "all variables have many equal values")),
        count => Some(format!(
            "{count} variables are left after those with many equal values are taken out; {ARRAY_COLUMNS} are in published \
             results"
        )),
    };
    kept.pop();
    keep(&mut values, VARIABLES, &kept);
    Ok((values, kept, note.into_iter().collect()))
}

/// The signal without outliers.
fn raw(path: &Path) -> Result<Vec<f64>> {
    let mut lines = Lines::open(path)?;
    let counts = lines.next()?.and_then(|line| {
        let mut cells = line.text.split(u8::is_ascii_whitespace).filter(|cell| !cell.is_empty());
        let mut whole = || std::str::from_utf8(cells.next()?).ok()?.parse::<u64>().ok();
        let counts = (whole()?, whole()?);
        cells.next().is_none().then_some(counts)
    });
    let Some((signal, _)) = counts else {
        let what = "is not laid out as MiniBooNE_PID.txt, whose first line has two numbers: of signal events, and of background events";
        return Err(Error::format(path, what));
    };
    let mut values = Vec::new();
    let mut row = 0;
    while row < signal {
        let Some(line) = lines.next()? else {
            let what = format!("ends after {row} of {signal} signal events; it is truncated");
            return Err(Error::format(path, what));
        };
        row += 1;
        let event: [f64; VARIABLES] = line.numbers(row as usize)?;
        if event[0] >= OUTLIER {
            values.extend(event);
        }
    }
    if values.is_empty() {
        return Err(Error::format(path, "there are no signal events"));
    }
    Ok(values)
}

/// How often the smallest value of a column comes.
fn count_of_least(values: &[f64], column: usize) -> usize {
    let column = || values.iter().skip(column).step_by(VARIABLES);
    let least = column().copied().fold(f64::INFINITY, f64::min);
    column().filter(|&&value| value == least).count()
}

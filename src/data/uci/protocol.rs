//! Split and normalisation, as in the public preprocessing.

use std::path::Path;

use super::{Parts, Uci, Values};
use crate::counted::{are, counted};
use crate::error::{Error, Result};

/// Fewer rows leave a part empty.
const LEAST_ROWS: usize = 12;

/// Which rows mean and deviation come from, and what the sum of squares is divided by.
struct Norm {
    with_test: bool,
    /// Taken off the number of rows.
    freedom: usize,
}

fn norm(set: Uci) -> Norm {
    match set {
        Uci::Power | Uci::Miniboone => Norm { with_test: false, freedom: 0 },
        Uci::Gas => Norm { with_test: true, freedom: 1 },
    }
}

/// Rows of training, validation and test part: the last tenth is the test part, the last tenth of the others the
/// validation part, each rounded down.
fn sizes(rows: usize) -> [usize; 3] {
    let tenth = |rows: usize| (0.1 * rows as f64) as usize;
    let test = tenth(rows);
    let validation = tenth(rows - test);
    [rows - test - validation, validation, test]
}

/// Splits rows, and brings their columns to mean 0 and deviation 1.
pub(super) fn split(rows: Values, set: Uci, path: &Path) -> Result<Parts> {
    let Values { columns, values, notes } = rows;
    let dim = columns.len();
    let count = values.len() / dim;
    if count < LEAST_ROWS {
        let what = format!(
            "{} {} left; {LEAST_ROWS} are needed for a training, a validation and a test part",
            counted(count, "row"),
            are(count)
        );
        return Err(Error::format(path, what));
    }
    let [train, validation, test] = sizes(count);
    let Norm { with_test, freedom } = norm(set);
    let measured = if with_test { count } else { count - test };
    let (mean, deviation) = moments(&values[..measured * dim], dim, freedom);
    if let Some(column) = deviation.iter().position(|s| s.is_nan() || *s <= 0.0) {
        let what = format!("column {} is constant: no density has it", columns[column]);
        return Err(Error::format(path, what));
    }
    let normalised = |rows: &[f64]| -> Vec<f32> {
        let mut out = Vec::with_capacity(rows.len());
        for row in rows.chunks_exact(dim) {
            out.extend(row.iter().zip(mean.iter().zip(&deviation)).map(|(x, (mean, s))| ((x - mean) / s) as f32));
        }
        out
    };
    let (seen, of_test) = values.split_at((train + validation) * dim);
    let (of_train, of_validation) = seen.split_at(train * dim);
    Ok(Parts {
        train: normalised(of_train),
        validation: normalised(of_validation),
        test: normalised(of_test),
        columns,
        notes,
    })
}

/// Mean and deviation of each column; the deviation of equal values is 0.
fn moments(values: &[f64], dim: usize, freedom: usize) -> (Vec<f64>, Vec<f64>) {
    let rows = || values.chunks_exact(dim);
    let count = rows().len() as f64;
    let mut mean = vec![0.0; dim];
    let mut varies = vec![false; dim];
    for row in rows() {
        for j in 0..dim {
            mean[j] += row[j];
            varies[j] |= row[j] != values[j];
        }
    }
    mean.iter_mut().for_each(|mean| *mean /= count);
    let mut squares = vec![0.0; dim];
    for row in rows() {
        for j in 0..dim {
            squares[j] += (row[j] - mean[j]).powi(2);
        }
    }
    let deviation =
        |(squares, varies): (f64, bool)| if varies { (squares / (count - freedom as f64)).sqrt() } else { 0.0 };
    (mean, squares.into_iter().zip(varies).map(deviation).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_the_published_sizes() {
        assert_eq!(sizes(2_049_280), [1_659_917, 184_435, 204_928]);
        assert_eq!(sizes(1_052_065), [852_174, 94_685, 105_206]);
        assert_eq!(sizes(36_488), [29_556, 3_284, 3_648]);
        assert_eq!(sizes(LEAST_ROWS), [10, 1, 1]);
    }
}

//! `steps.csv`: one line for each step of a filter, with what it found out.

use std::path::Path;

use crate::atomic::{Overwrite, write_atomic};
use crate::error::{Error, Result};
use crate::filter::Step;
use crate::filter::measure::{Column, SHARES, Score};

/// A step that is done.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Row {
    pub step: Step,
    /// Time that it took since the run began or was resumed.
    pub seconds: f64,
    /// Of each column of the state.
    pub columns: Vec<Column>,
}

/// What comes before the columns of the state.
const FACTS: [&str; 8] =
    ["step", "seconds", "simulations", "log_evidence", "effective", "usual", "epochs", "validation_loss"];
/// Of each column of the state, the last three only if the truth is known.
const OF_COLUMN: usize = 2 + SHARES.len() + 4;

/// Names of the columns of the file.
fn header(names: &[String]) -> String {
    let of = |name: &String| {
        let quantiles = SHARES.map(|share| format!("q{:02}_{name}", (share * 100.0) as u32));
        let first = ["mean", "sd"].map(|what| format!("{what}_{name}"));
        let last = ["truth", "crps", "in50", "in90"].map(|what| format!("{what}_{name}"));
        [&first[..], &quantiles, &last].concat()
    };
    FACTS.map(str::to_owned).into_iter().chain(names.iter().flat_map(of)).collect::<Vec<_>>().join(",")
}

/// Writes all rows.
///
/// # Errors
/// [`Error::Io`].
pub(crate) fn write(path: &Path, names: &[String], rows: &[Row]) -> Result<()> {
    write_atomic(path, Overwrite::Yes, |file| {
        writeln!(file, "{}", header(names))?;
        rows.iter().try_for_each(|row| writeln!(file, "{}", line(row)))
    })
}

fn line(row: &Row) -> String {
    fn known(value: Option<impl ToString>) -> String {
        value.map_or(String::new(), |value| value.to_string())
    }
    let Step { step, simulations, log_evidence, effective, usual, epochs, validation_loss } = row.step;
    let mut cells = vec![step.to_string(), format!("{:.2}", row.seconds), simulations.to_string()];
    cells.extend([log_evidence, effective, usual].map(known));
    cells.extend([known(epochs), known(validation_loss)]);
    for column in &row.columns {
        cells.extend([column.mean, column.deviation].map(|v| v.to_string()));
        cells.extend(column.quantiles.map(|v| v.to_string()));
        cells.extend([column.score.map(|s| s.truth), column.score.map(|s| s.crps)].map(known));
        cells.extend([0, 1].map(|which| known(column.score.map(|s| u8::from(s.inside[which])))));
    }
    cells.join(",")
}

/// Reads all rows of a system whose state has `n` columns.
///
/// # Errors
/// [`Error::Io`], [`Error::Format`] naming the line if the file is another one.
pub(crate) fn read(path: &Path, n: usize) -> Result<Vec<Row>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
    let parsed = text.lines().enumerate().skip(1).map(|(number, text)| {
        parse(text, n).ok_or_else(|| Error::format(path, format!("line {} is none of a filter", number + 1)))
    });
    let rows = parsed.collect::<Result<Vec<_>>>()?;
    match rows.iter().zip(1..).find(|(row, number)| row.step.step != *number) {
        None => Ok(rows),
        Some((_, number)) => Err(Error::format(path, format!("step {number} is missing"))),
    }
}

fn parse(text: &str, n: usize) -> Option<Row> {
    let cells: Vec<&str> = text.split(',').collect();
    if cells.len() != FACTS.len() + n * OF_COLUMN {
        return None;
    }
    let (facts, of_columns) = cells.split_at(FACTS.len());
    // An empty cell is nothing known.
    fn known<T: std::str::FromStr>(cell: &str) -> Option<Option<T>> {
        if cell.is_empty() { Some(None) } else { cell.parse().ok().map(Some) }
    }
    let step = Step {
        step: facts[0].parse().ok()?,
        simulations: facts[2].parse().ok()?,
        log_evidence: known(facts[3])?,
        effective: known(facts[4])?,
        usual: known(facts[5])?,
        epochs: known(facts[6])?,
        validation_loss: known(facts[7])?,
    };
    let column = |cells: &[&str]| {
        let number = |at: usize| cells[at].parse::<f64>().ok();
        let quantiles = [number(2)?, number(3)?, number(4)?, number(5)?, number(6)?];
        let score = match (known(cells[7])?, known(cells[8])?, known::<u8>(cells[9])?, known::<u8>(cells[10])?) {
            (Some(truth), Some(crps), Some(half), Some(most)) => {
                Some(Score { truth, crps, inside: [half == 1, most == 1] })
            }
            _ => None,
        };
        Some(Column { mean: number(0)?, deviation: number(1)?, quantiles, score })
    };
    let columns = of_columns.chunks_exact(OF_COLUMN).map(column).collect::<Option<_>>()?;
    Some(Row { step, seconds: facts[1].parse().ok()?, columns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_back() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("steps.csv");
        let score = Score { truth: 0.3, crps: 1e-3, inside: [false, true] };
        let column = |score| Column { mean: 0.1 + 0.2, deviation: 1e-9, quantiles: [-1.0, 0.0, 0.5, 2.0, 3.0], score };
        let step = |step| Step { step, simulations: 7, log_evidence: Some(-1.5), epochs: Some(3), ..Step::default() };
        let rows =
            [None, Some(score)].map(|score| Row { step: step(1), seconds: 1.25, columns: vec![column(score); 2] });
        for row in rows {
            let all = [row.clone(), Row { step: step(2), ..row }];
            write(&path, &["a".into(), "b".into()], &all).unwrap();
            assert_eq!(read(&path, 2).unwrap(), all);
            assert!(read(&path, 3).is_err());
            let text = std::fs::read_to_string(&path).unwrap();
            let cells = |line: &str| line.split(',').count();
            assert!(text.lines().all(|line| cells(line) == cells(text.lines().next().unwrap())));
            assert!(text.starts_with("step,seconds,") && text.contains("q05_a") && text.contains("in90_b"), "{text}");
            write(&path, &["a".into(), "b".into()], &all[1..]).unwrap();
            assert!(read(&path, 2).unwrap_err().to_string().contains("step 1 is missing"));
        }
    }
}

//! `steps.csv`: one line for each step of a filter, with what it found out.

use std::io::ErrorKind;
use std::path::Path;
use std::str::FromStr;

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
const FACTS: [&str; 9] =
    ["step", "seconds", "simulations", "log_evidence", "effective", "usual", "beyond", "epochs", "validation_loss"];
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
    let Step { step, simulations, log_evidence, effective, usual, beyond, epochs, validation_loss } = row.step;
    let mut cells = vec![step.to_string(), format!("{:.2}", row.seconds), simulations.to_string()];
    cells.extend([log_evidence, effective, usual, beyond].map(known));
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
/// [`Error::Io`], [`Error::Format`] naming the line if the file is missing or another one.
pub(crate) fn read(path: &Path, n: usize) -> Result<Vec<Row>> {
    let damaged = |what: String| {
        let what =
            format!("{what}; put back a copy of the file, which says what steps are done, or begin the filter anew");
        Error::format(path, what)
    };
    let text = std::fs::read_to_string(path).map_err(|e| match e.kind() {
        ErrorKind::NotFound => damaged("is missing".into()),
        ErrorKind::InvalidData => damaged("holds no text".into()),
        _ => Error::io("read", path, e),
    })?;
    let mut lines = text.lines().zip(1..);
    let header: Vec<&str> = lines.next().map(|(line, _)| line.split(',').collect()).unwrap_or_default();
    let is_fact = |fact: &&&str| header.contains(*fact);
    // An older file lacks what was added later.
    let facts = FACTS.iter().filter(is_fact).count();
    let cells = facts + n * OF_COLUMN;
    if header.first() != Some(&FACTS[0]) || header.len() != cells {
        let what =
            format!("line 1 is not that of a filter with {n} columns, which begins with `step,` and has {cells} names");
        return Err(damaged(what));
    }
    let mut rows = Vec::new();
    for (line, number) in lines {
        let row = parse(line, &header, n).map_err(|what| damaged(format!("line {number}: {what}")))?;
        let (expected, got) = (rows.len() as u32 + 1, row.step.step);
        if got != expected {
            return Err(damaged(format!("line {number} is of step {got}, must be of step {expected}")));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// A line, or what is wrong with it.
fn parse(line: &str, header: &[&str], n: usize) -> Result<Row, String> {
    let cells: Vec<&str> = line.split(',').collect();
    if cells.len() != header.len() {
        return Err(format!("has {} cells, must have {}", cells.len(), header.len()));
    }
    let wrong = |at: usize| format!("`{}` is `{}`, which is none of its values", header[at], cells[at]);
    // An empty cell is nothing known.
    fn known<T: FromStr>(cells: &[&str], at: usize) -> Option<Option<T>> {
        if cells[at].is_empty() { Some(None) } else { cells[at].parse().ok().map(Some) }
    }
    let place = |name: &str| header.iter().position(|cell| *cell == name);
    let number = |name: &str| match place(name) {
        Some(at) => known::<f64>(&cells, at).ok_or_else(|| wrong(at)),
        None => Ok(None),
    };
    let count = |name: &str| match place(name) {
        Some(at) => known::<u64>(&cells, at).ok_or_else(|| wrong(at)),
        None => Ok(None),
    };
    let needed = |name: &str| format!("`{name}` is empty");
    let step = Step {
        step: count("step")?.and_then(|step| step.try_into().ok()).ok_or_else(|| needed("step"))?,
        simulations: count("simulations")?.ok_or_else(|| needed("simulations"))?,
        log_evidence: number("log_evidence")?,
        effective: number("effective")?,
        usual: number("usual")?,
        beyond: number("beyond")?,
        epochs: count("epochs")?,
        validation_loss: number("validation_loss")?,
    };
    let seconds = number("seconds")?.ok_or_else(|| needed("seconds"))?;
    let first = header.len() - n * OF_COLUMN;
    let column = |start: usize| -> Result<Column, String> {
        let at = |k: usize| cells[start + k].parse::<f64>().map_err(|_| wrong(start + k));
        let known_at = |k: usize| known::<f64>(&cells, start + k).ok_or_else(|| wrong(start + k));
        let quantiles = [at(2)?, at(3)?, at(4)?, at(5)?, at(6)?];
        let score = match (known_at(7)?, known_at(8)?, known_at(9)?, known_at(10)?) {
            (Some(truth), Some(crps), Some(half), Some(most)) => {
                Some(Score { truth, crps, inside: [half == 1.0, most == 1.0] })
            }
            _ => None,
        };
        Ok(Column { mean: at(0)?, deviation: at(1)?, quantiles, score })
    };
    let columns = (0..n).map(|k| column(first + k * OF_COLUMN)).collect::<Result<_, _>>()?;
    Ok(Row { step, seconds, columns })
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
        let known =
            Step { simulations: 7, log_evidence: Some(-1.5), beyond: Some(0.0), epochs: Some(3), ..Step::default() };
        let step = |step| Step { step, ..known };
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
            assert!(read(&path, 2).unwrap_err().to_string().contains("line 2 is of step 2, must be of step 1"));
            // Of an older version.
            let older = text.lines().map(|line| {
                let cells = line.split(',').enumerate().filter(|(i, _)| *i != 6).map(|(_, cell)| cell);
                cells.collect::<Vec<_>>().join(",")
            });
            let older: Vec<String> = older.collect();
            std::fs::write(&path, older.join("\n")).unwrap();
            let before = |row: &Row| Row { step: Step { beyond: None, ..row.step }, ..row.clone() };
            assert_eq!(read(&path, 2).unwrap(), all.each_ref().map(before));
        }
    }

    /// Each message says what is damaged, and what can be done.
    #[test]
    fn damage_is_told() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("steps.csv");
        let column = Column { mean: 0.5, deviation: 1.0, quantiles: [0.0; 5], score: None };
        let row = |step| Row { step: Step { step, ..Step::default() }, seconds: 1.0, columns: vec![column] };
        write(&path, &["a".into()], &[row(1), row(2)]).unwrap();
        let good = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = good.lines().collect();
        let told = |text: Option<&[u8]>| {
            match text {
                Some(text) => std::fs::write(&path, text).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            let told = read(&path, 1).unwrap_err().to_string();
            assert!(told.contains("steps.csv") && told.contains("put back a copy"), "{told}");
            told
        };
        let cases = [
            (String::new(), "line 1 is not that of a filter"),
            (lines[1..].join("\n"), "line 1 is not that of a filter"),
            (good[..good.len() - 9].to_owned(), "line 3: has"),
            ([lines[0], lines[2]].join("\n"), "line 2 is of step 2, must be of step 1"),
            (good.replace("0.5", "o.5"), "line 2: `mean_a` is `o.5`"),
            (good.replacen("\n1,", "\n,", 1), "line 2: `step` is empty"),
        ];
        for (text, expected) in &cases {
            let told = told(Some(text.as_bytes()));
            assert!(told.contains(expected), "{expected}: {told}");
        }
        assert!(told(Some(b"\xff\xfe\x00")).contains("no text"));
        assert!(told(None).contains("is missing"));
    }
}

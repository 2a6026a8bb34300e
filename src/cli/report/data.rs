//! The data report: what the table is like, and what is wrong with it.

use crate::counted;
use crate::report::html::{Cell, Html, Row};
use crate::report::{beside, grouped, short};
use crate::train::data_report::Column;
use crate::train::folder::data_of;

use super::facts::Facts;
use super::verdict::sentence;

/// Columns of which numbers are shown; those of the others are in `data.json`.
const SHOWN: usize = 60;

pub(super) fn write(facts: &Facts, html: &mut Html) {
    html.part("The data");
    for (path, _) in facts.files().iter().filter(|(_, is_there)| !is_there) {
        let path = path.display();
        html.paragraph(&format!(
            "The file `{path}` is no longer there: the run can be used as it is, but not be resumed or trained again without it."
        ));
    }
    let Some(profile) = &facts.profile else {
        html.paragraph(match facts.is_damaged(&data_of(&facts.run)) {
            true => "What the rows are like is not known: data.json is damaged.",
            false => "What the rows are like was not written down (data.json): the run is older than that, or was stopped early.",
        });
        return;
    };
    if profile.left_out_rows > 0 {
        let left_out = profile.left_out_rows;
        html.paragraph(&format!(
            "{} {} of the file {} a missing value and {} left out (`data.missing`).",
            grouped(left_out as u64),
            counted::of(&left_out, "row"),
            counted::have(left_out),
            if left_out == 1 { "was" } else { "were" }
        ));
    }
    if profile.columns.is_empty() {
        html.paragraph(&format!("{} is simulated; there is nothing to look for in its columns.", profile.name));
        return;
    }
    let rows = profile.training_rows + profile.held_out_rows;
    let columns = counted::counted(profile.columns.len(), "column");
    let size = format!("{} {} of {columns}", grouped(rows as u64), counted::of(&rows, "row"));
    match profile.findings.len() {
        0 => html.paragraph(&format!("{size}, and no problem was found in them.")),
        _ => {
            html.paragraph(&format!("{size}. To know of them:"));
            html.list(&profile.findings.iter().map(|finding| sentence(&finding.says)).collect::<Vec<_>>());
        }
    }
    if !profile.choices.is_empty() {
        html.smaller_part("What was chosen for them");
        html.list(&profile.choices.iter().map(|choice| sentence(choice)).collect::<Vec<_>>());
    }
    let is_conditional = profile.columns.iter().any(|column| column.is_condition);
    let is_found = |column: &Column| profile.findings.iter().any(|finding| finding.columns.contains(&column.name));
    let shown = profile.columns.iter().take(SHOWN);
    let rows: Vec<Row> = shown.map(|column| row(column, is_found(column), is_conditional)).collect();
    let mut inner = Html::default();
    let head = [
        "column",
        "least",
        "1 %",
        "25 %",
        "median",
        "75 %",
        "99 %",
        "greatest",
        "mean",
        "deviation",
        "different",
        "transform",
    ];
    inner.table(&head, &rows);
    if profile.columns.len() > SHOWN {
        inner.paragraph(&format!("The first {SHOWN} of {} columns; data.json has all.", profile.columns.len()));
    }
    inner.paragraph(
        "Quantiles, and how many values are different, are those of at most 20,000 rows. The transform is the column's way to \
         the networks (`columns.NAME.transform`).",
    );
    html.details("Ranges and quantiles of the columns", inner);
}

fn row(column: &Column, is_found: bool, is_conditional: bool) -> Row {
    // As many digits as tell values of the column apart.
    let number = |value: f64| Cell::Number(beside(value, column.deviation));
    let condition = if is_conditional && column.is_condition { " (condition)" } else { "" };
    let [low, quarter, median, three, high] = column.quantiles.map(number);
    let cells = vec![
        Cell::Text(format!("{}{condition}", column.name)),
        number(column.least),
        low,
        quarter,
        median,
        three,
        high,
        number(column.greatest),
        number(column.mean),
        Cell::Number(short(column.deviation)),
        Cell::Number(grouped(column.distinct as u64)),
        Cell::Text(column.transform.clone()),
    ];
    Row { cells, is_bad: is_found }
}

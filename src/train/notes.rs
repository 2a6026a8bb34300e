//! What the user should know about the rows of a table before a model is trained on them.

mod relations;

use super::columns::RowColumns;
use super::profile::{Finding, Problem};
pub(super) use relations::of_relations;

use crate::counted::{are, counted, times};
use crate::data::Table;
use crate::data::columns::units::{Choice, Chosen, Regressed};
use crate::plan::Kind;

/// Fewer training rows than these teach nothing.
const FEW_ROWS: usize = 20;

/// Notes on rows [y, x] in the user's units. Columns that rounding made `coarse` are told elsewhere.
pub(super) fn of_rows(values: &[f32], columns: &RowColumns, coarse: &[usize], kind: Kind) -> Vec<Finding> {
    let mut notes = Vec::new();
    let dim = columns.row();
    let rows = values.len() / dim;
    if rows < FEW_ROWS {
        let says =
            format!("there {} only {}: too few to learn a density from", are(rows), counted(rows, "training row"));
        notes.push(Finding::of_rows(Problem::FewRows, says));
    }
    let whole = (0..dim).filter(|j| !coarse.contains(j) && is_whole(values, dim, *j));
    let (of_y, of_x): (Vec<_>, Vec<_>) = whole.partition(|&j| j < columns.cond_dim);
    if !of_x.is_empty() {
        let says = format!(
            "whole numbers only: {}; their density is one of the numbers plus the noise added in training \
             (train.noise), and samples are not whole",
            columns.list(&of_x)
        );
        notes.push(Finding::new(Problem::WholeNumbers, columns.labels(&of_x), says));
    }
    // Other kinds have no density of their conditions.
    if !of_y.is_empty() && kind == Kind::Hint {
        let says = format!(
            "whole numbers only among the conditions: {}; they have no density, so that log p(y) and with it log p(y, x) \
             mean little; posteriors are not affected",
            columns.list(&of_y)
        );
        notes.push(Finding::new(Problem::WholeNumbers, columns.labels(&of_y), says));
    }
    notes
}

/// That rounding to 32-bit floats changed a column, or made numbers of it zero, if it did.
pub(super) fn of_rounding(table: &Table) -> Vec<Finding> {
    let labels = |columns: &[usize]| columns.iter().map(|&j| table.column_label(j)).collect();
    let coarse = table.coarse_note().map(|says| Finding::new(Problem::Rounded, labels(table.coarse()), says));
    let vanished = table.vanished_note();
    let vanished = vanished.map(|(columns, says)| Finding::new(Problem::Vanished, labels(&columns), says));
    coarse.into_iter().chain(vanished).collect()
}

/// Notes on columns that are constant.
pub(super) fn of_constants(constant: impl Iterator<Item = usize>, columns: &RowColumns) -> Vec<Finding> {
    let (of_y, of_x): (Vec<_>, Vec<_>) = constant.partition(|&c| c < columns.cond_dim);
    let mut notes = Vec::new();
    if !of_x.is_empty() {
        let are = if of_x.len() == 1 { "column {} is" } else { "columns {} are" };
        let says = format!(
            "{} constant: the density there is arbitrary, that of the noise added in training (train.noise); leave out \
             with --set data.columns=...",
            are.replace("{}", &columns.names_or_numbers(&of_x))
        );
        notes.push(Finding::new(Problem::Constant, columns.labels(&of_x), says));
    }
    if !of_y.is_empty() {
        let are = if of_y.len() == 1 { "condition {} is" } else { "conditions {} are" };
        let says = format!(
            "{} constant: nothing can be learnt from it, and for any other value the model is arbitrary; leave it out of \
             the conditions",
            are.replace("{}", &columns.names_or_numbers(&of_y))
        );
        notes.push(Finding::new(Problem::Constant, columns.labels(&of_y), says));
    }
    notes
}

/// Columns that are described; others are named.
const DESCRIBED: usize = 3;
/// Columns that are named; others are counted.
const NAMED: usize = 12;

/// Notes on columns that are not simply standardised, where nobody asked for it. `held_out` says which rows of the table
/// the training rows are not; it is empty where they are all.
pub(super) fn of_units(chosen: &[Chosen], columns: &RowColumns, held_out: &[bool]) -> Vec<Finding> {
    let described = |chosen: &&Chosen| {
        let Chosen { column, extreme, usual: [low, high], .. } = chosen;
        let times = times(extreme.times);
        let [value, low, high] = [extreme.value, *low, *high].map(|value| columns.number_of(*column, value));
        let (name, row) = (columns.label(*column), file_row(held_out, extreme.row));
        match chosen.choice {
            Choice::Softplus => name,
            Choice::Robust => format!("{name} ({value} {times}, first in row {row}; the others from {low} to {high})"),
            _ => format!("{name} (as far as {value}, {times}, first in row {row})"),
        }
    };
    let of = |choice: Choice, problem: Problem, why: &str| {
        let all: Vec<&Chosen> = chosen.iter().filter(|chosen| chosen.choice == choice).collect();
        let mut list: Vec<String> = all.iter().take(DESCRIBED).map(described).collect();
        list.extend(all.iter().take(NAMED).skip(DESCRIBED).map(|chosen| columns.label(chosen.column)));
        if all.len() > NAMED {
            list.push(format!("and {} more", all.len() - NAMED));
        }
        let names: Vec<usize> = all.iter().map(|chosen| chosen.column).collect();
        (!all.is_empty()).then(|| {
            let says =
                format!("{why}: {}; columns.NAME.transform=standardize keeps mean and deviation", list.join(", "));
            Finding::new(problem, columns.labels(&names), says)
        })
    };
    let notes = [
        of(
            Choice::Robust,
            Problem::FarValues,
            "values far from all others (codes for missing values? errors?) would hide the rest, so these columns are \
             scaled by quantiles (robust)",
        ),
        of(Choice::Asinh, Problem::HeavyTail, "heavy tails: these columns are drawn together by asinh"),
        of(
            Choice::Softplus,
            Problem::FarFromBound,
            "nearly linear far from their bound, so taken by softplus and not by the logarithm",
        ),
    ];
    notes.into_iter().flatten().collect()
}

/// A note on columns that are regressed on the conditions.
pub(super) fn of_regression(regressed: &[Regressed], columns: &RowColumns) -> Option<String> {
    let described = |Regressed { column, r_squared }: &Regressed| {
        format!("{} (R² {:.0} %)", columns.label(columns.cond_dim + column), 100.0 * r_squared)
    };
    let mut list: Vec<String> = regressed.iter().take(NAMED).map(described).collect();
    if regressed.len() > NAMED {
        list.push(format!("and {} more", regressed.len() - NAMED));
    }
    (!list.is_empty()).then(|| {
        format!(
            "subtracted inside the model: the linear regression on the conditions, of {}; data.regression=false turns this off",
            list.join(", ")
        )
    })
}

/// The number in the table, from 1, of a training row, from 0.
fn file_row(held_out: &[bool], row: usize) -> usize {
    match held_out.is_empty() {
        true => row + 1,
        false => held_out.iter().enumerate().filter(|(_, out)| !**out).nth(row).map_or(0, |(number, _)| number + 1),
    }
}

/// Whether a column holds few different numbers, all of them whole.
fn is_whole(values: &[f32], dim: usize, column: usize) -> bool {
    let most = values.len() / dim / 10;
    let mut seen = std::collections::HashSet::new();
    let few_and_whole = values.iter().skip(column).step_by(dim).all(|v| {
        // Negative zero is zero.
        v.fract() == 0.0
            && {
                seen.insert((v + 0.0).to_bits());
                true
            }
            && seen.len() <= most
    });
    few_and_whole && seen.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Given;
    use crate::config::preset::for_tables;
    use crate::train::dataset::Dataset;

    /// Two columns of 400 rows: of one a few values are far, the other has a heavy tail.
    #[test]
    fn columns_with_other_units_are_told_with_value_row_and_number() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = for_tables();
        let path = folder.path().join("t.csv");
        let waves = |i: i32, far: bool| {
            let wave = f64::from(i * 7919 % 401) / 401.0 + 0.001;
            let mag = if far { -9999.0 } else { 20.0 + (f64::from(i) * 0.37).sin() };
            format!("{mag},{},{wave}\n", (8.0 * wave).exp())
        };
        let rows: String = (0..400).map(|i| waves(i, i % 40 == 5)).collect();
        std::fs::write(&path, "mag,flux,u\n".to_owned() + &rows).unwrap();
        config.data.path = Some(path);
        let data = Dataset::load(&config, None).unwrap();
        let notes = data.notes.join("\n");
        let of = |name: &str| data.notes.iter().find(|note| note.contains(name)).cloned().unwrap_or_default();
        assert_eq!(data.notes.len(), 2, "{notes}");
        let mag = of("mag");
        assert!(mag.contains("(robust): mag (-9999 ") && mag.contains("times, first in row 6;"), "{mag}");
        assert!(mag.contains("from 19") && mag.contains("columns.NAME.transform=standardize"), "{mag}");
        assert!(of("flux").contains("asinh: flux (as far as 29"), "{notes}");
        for (name, setting) in [("mag", "standardize"), ("flux", "log")] {
            let transform = serde_json::from_value(setting.into()).unwrap();
            config.columns.insert(name.into(), crate::data::ColumnSetting { transform, ..Default::default() });
        }
        assert!(Dataset::load(&config, None).unwrap().notes.is_empty());
    }

    #[test]
    fn columns_of_whole_numbers_and_constants_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = for_tables();
        let path = folder.path().join("t.csv");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        config.data.path = Some(path.clone());
        write(&(0..100).map(|i| format!("{},{}\n", 2 * i, i * i)).collect::<String>());
        assert!(Dataset::load(&config, None).unwrap().notes.is_empty(), "all numbers are different");
        let rows = (0..100i32).map(|i| format!("{},{},7\n", i % 4, f64::from((i % 4).pow(2)) + 0.5));
        write(&("count,half,seven\n".to_owned() + &rows.collect::<String>()));
        let notes = Dataset::load(&config, None).unwrap().notes;
        assert!(notes.len() == 2 && notes[0].contains("only: count;"), "{notes:?}");
        assert!(notes[1].contains("column seven is constant") && notes[1].contains("data.columns"), "{notes:?}");

        // Conditions have no noise, and what is said of them differs.
        config.model.kind = Kind::Hint;
        config.data.given = Some(Given::of_text("seven,count"));
        let notes = Dataset::load(&config, None).unwrap().notes;
        assert!(notes.len() == 2 && notes[0].contains("conditions: count;"), "{notes:?}");
        assert!(notes[1].contains("condition seven is constant") && !notes[1].contains("data.columns"), "{notes:?}");
        config.model.kind = Kind::Cinn;
        assert_eq!(Dataset::load(&config, None).unwrap().notes, notes[1..]);

        (config.model.kind, config.data.given) = (Kind::Flow, None);
        config.data.rows = Some(15);
        let notes = Dataset::load(&config, None).unwrap().notes.join("; ");
        assert!(notes.contains("only 13 training rows") || notes.contains("only 14 training rows"), "{notes}");
        config.data.rows = Some(2);
        let notes = Dataset::load(&config, None).unwrap().notes.join("; ");
        assert!(notes.contains("there is only 1 training row:"), "{notes}");
    }
}

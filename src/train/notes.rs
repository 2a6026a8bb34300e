//! What the user should know about the rows of a table before a model is trained on them: found here, as facts.

mod relations;

use super::columns::RowColumns;
use super::found::{Chose, Drawn, Found, Lane, Unusual, What};
pub(super) use relations::of_relations;

use crate::data::Table;
use crate::data::columns::units::{Chosen, Regressed};
use crate::plan::Kind;

/// Fewer training rows than these teach nothing.
const FEW_ROWS: usize = 20;

/// Notes on rows [y, x] in the user's units. Columns that rounding made `coarse` are told elsewhere.
pub(super) fn of_rows(values: &[f32], columns: &RowColumns, coarse: &[usize], kind: Kind) -> Vec<Found> {
    let mut notes = Vec::new();
    let dim = columns.row();
    let rows = values.len() / dim;
    if rows < FEW_ROWS {
        notes.push(Found::of_rows(What::FewRows(rows)));
    }
    let whole = (0..dim).filter(|j| !coarse.contains(j) && is_whole(values, dim, *j));
    let (of_y, of_x): (Vec<_>, Vec<_>) = whole.partition(|&j| j < columns.cond_dim);
    if !of_x.is_empty() {
        notes.push(Found { columns: columns.labels(&of_x), what: What::Whole(Lane::X) });
    }
    // Other kinds have no density of their conditions.
    if !of_y.is_empty() && kind == Kind::Hint {
        notes.push(Found { columns: columns.labels(&of_y), what: What::Whole(Lane::Y) });
    }
    notes
}

/// That rounding to 32-bit floats changed a column, or made numbers of it zero, if it did.
pub(super) fn of_rounding(table: &Table) -> Vec<Found> {
    let labels = |columns: &[usize]| columns.iter().map(|&j| table.column_label(j)).collect();
    let coarse = table.coarse_note().map(|says| Found { columns: labels(table.coarse()), what: What::Rounded(says) });
    let vanished = table.vanished_note();
    let vanished = vanished.map(|(columns, says)| Found { columns: labels(&columns), what: What::Vanished(says) });
    coarse.into_iter().chain(vanished).collect()
}

/// Notes on columns that are constant.
pub(super) fn of_constants(constant: impl Iterator<Item = usize>, columns: &RowColumns) -> Vec<Found> {
    let (of_y, of_x): (Vec<_>, Vec<_>) = constant.partition(|&c| c < columns.cond_dim);
    let of = |lane, constant: &[usize]| Found {
        columns: columns.labels(constant),
        what: What::Constant(lane, constant.iter().map(|&c| columns.name_or_number(c)).collect()),
    };
    let all = [(Lane::X, of_x), (Lane::Y, of_y)];
    all.iter().filter(|(_, constant)| !constant.is_empty()).map(|(lane, constant)| of(*lane, constant)).collect()
}

/// Notes on columns that are not simply standardised, where nobody asked for it. `held_out` says which rows of the table
/// the training rows are not; it is empty where they are all.
pub(super) fn of_units(chosen: &[Chosen], columns: &RowColumns, held_out: &[bool]) -> Vec<Found> {
    if chosen.is_empty() {
        return Vec::new();
    }
    let file_row = file_rows(held_out);
    let unusual = |chosen: &Chosen| {
        let Chosen { column, extreme, usual, .. } = chosen;
        Unusual {
            name: columns.label(*column),
            value: columns.number_of(*column, extreme.value),
            times: extreme.times,
            row: file_row(extreme.row),
            usual: usual.map(|value| columns.number_of(*column, value)),
        }
    };
    let of = |drawn: Drawn| {
        let all: Vec<&Chosen> = chosen.iter().filter(|chosen| chosen.choice == drawn.choice()).collect();
        let names: Vec<usize> = all.iter().map(|chosen| chosen.column).collect();
        let unusual = all.into_iter().map(unusual).collect();
        (!names.is_empty()).then(|| Found { columns: columns.labels(&names), what: What::Drawn(drawn, unusual) })
    };
    Drawn::ALL.into_iter().filter_map(of).collect()
}

/// A note on columns that are regressed on the conditions.
pub(super) fn of_regression(regressed: &[Regressed], columns: &RowColumns) -> Option<Chose> {
    let of = |Regressed { column, r_squared }: &Regressed| (columns.label(columns.cond_dim + column), *r_squared);
    (!regressed.is_empty()).then(|| Chose::Regressed(regressed.iter().map(of).collect()))
}

/// The numbers in the table, from 1, of training rows, from 0.
fn file_rows(held_out: &[bool]) -> impl Fn(usize) -> usize {
    let numbers: Vec<usize> = held_out.iter().zip(1..).filter(|(out, _)| !**out).map(|(_, number)| number).collect();
    move |row| if numbers.is_empty() { row + 1 } else { numbers.get(row).copied().unwrap_or(0) }
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
    use crate::config::preset::for_tables;
    use crate::data::Table;
    use crate::train::dataset::Dataset;

    #[test]
    fn columns_are_found_by_what_they_hold() {
        let values = (0..60i16).flat_map(|i| [f32::from(i % 3), (f32::from(i) * 0.37).sin(), 7.0]).collect();
        let table = Table::new(vec!["a".into(), "b".into(), "c".into()], 3, values).unwrap();
        let found = Dataset::from_tables(&for_tables(), "t", table, None).unwrap().found;
        let whole = Found { columns: vec!["a".into()], what: What::Whole(Lane::X) };
        let constant = Found { columns: vec!["c".into()], what: What::Constant(Lane::X, vec!["c".into()]) };
        assert_eq!(found, [whole, constant]);
    }

    #[test]
    fn training_rows_have_their_numbers_in_the_table() {
        assert_eq!([0, 3].map(file_rows(&[])), [1, 4]);
        assert_eq!([0, 1, 2].map(file_rows(&[true, false, false, true, false])), [2, 3, 5]);
    }
}

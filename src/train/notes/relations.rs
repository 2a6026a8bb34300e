//! Columns that others give, and rows that repeat.

use std::collections::HashSet;

use super::super::columns::RowColumns;
use super::super::found::{Found, Lane, Relation, Repeated, What};
use super::file_rows;
use crate::data::columns::dependence::{self, Dependent};
use crate::plan::Kind;

/// A smaller share of rows that repeat is not told.
const REPEATED: f64 = 0.01;

/// Notes on rows [y, x] in the user's units. `held_out` says which rows of the table these are not.
pub(in crate::train) fn of_relations(
    values: &[f32],
    columns: &RowColumns,
    kind: Kind,
    held_out: &[bool],
) -> Vec<Found> {
    let dim = columns.row();
    let found = dependence::find(values, dim);
    let (of_y, of_x): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.column < columns.cond_dim);
    let mut notes = Vec::new();
    let of = |lane, found: &[Dependent]| {
        let out: HashSet<usize> = found.iter().map(|found| found.column).collect();
        let kept = (columns.cond_dim..columns.row()).filter(|c| !out.contains(c)).map(|c| columns.name_or_number(c));
        Found {
            columns: columns.labels(&found.iter().map(|found| found.column).collect::<Vec<_>>()),
            what: What::Given(lane, found.iter().map(|found| relation(found, columns)).collect(), kept.collect()),
        }
    };
    if !of_x.is_empty() {
        notes.push(of(Lane::X, &of_x));
    }
    // Other kinds have no density of their conditions.
    if !of_y.is_empty() && kind == Kind::Hint {
        notes.push(of(Lane::Y, &of_y));
    }
    notes.extend(of_repeated(values, columns, held_out));
    notes
}

/// Rows that are the same as others, in tables whose values could be any.
fn of_repeated(values: &[f32], columns: &RowColumns, held_out: &[bool]) -> Option<Found> {
    let dim = columns.row();
    let rows = values.len() / dim;
    if dim == 1 || (0..dim).all(|c| has_few(values, dim, c)) {
        return None;
    }
    let (count, [first, again]) = dependence::repeated_rows(values, dim)?;
    (count as f64 >= REPEATED * rows as f64).then(|| {
        let [row, first] = [again, first].map(file_rows(held_out));
        Found::of_rows(What::Repeated(Repeated { count, of: rows, row, first }))
    })
}

/// A relation with the names of its columns.
fn relation(found: &Dependent, columns: &RowColumns) -> Relation {
    let terms = found.terms.iter().map(|&(c, factor)| (columns.label(c), factor)).collect();
    Relation { column: columns.label(found.column), terms, constant: found.constant }
}

/// Whether a column holds few different values, so that rows repeat by chance.
fn has_few(values: &[f32], dim: usize, column: usize) -> bool {
    let most = values.len() / dim / 10;
    let mut seen = HashSet::new();
    values.iter().skip(column).step_by(dim).all(|v| {
        seen.insert(v.to_bits());
        seen.len() <= most
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_tables;
    use crate::data::Table;
    use crate::rng::{Stream, fill_normals};
    use crate::train::dataset::Dataset;

    #[test]
    fn relations_and_repeats_are_found_with_their_names() {
        let mut z = vec![0.0; 2 * 500];
        fill_normals(5, Stream::Data, 0, 0, &mut z);
        let values = z.chunks_exact(2).flat_map(|z| [z[0], z[1], z[0] + z[1]]).collect();
        let table = Table::new(["a", "b", "total"].map(String::from).into(), 3, values).unwrap();
        let found = Dataset::from_tables(&for_tables(), "t", table, None).unwrap().found;
        let [Found { columns, what: What::Given(Lane::X, relations, kept) }] = &found[..] else { panic!("{found:?}") };
        assert_eq!((&columns[..], &kept[..]), (&["total".to_owned()][..], &["a".to_owned(), "b".into()][..]));
        assert_eq!(relations[0].terms.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["a", "b"]);
        assert!(relations[0].terms.iter().all(|(_, factor)| (factor - 1.0).abs() < 1e-3), "{relations:?}");

        z.chunks_exact_mut(2).skip(1).step_by(10).for_each(|z| z.copy_from_slice(&[0.5, 7.25]));
        let table = Table::new(vec![], 2, z).unwrap();
        let found = Dataset::from_tables(&for_tables(), "t", table, None).unwrap().found;
        let repeated = Repeated { count: 49, of: 500, row: 12, first: 2 };
        assert!(found.contains(&Found::of_rows(What::Repeated(repeated))), "{found:?}");
    }
}

//! Columns that others give, and rows that repeat: named, with what a density then means and what to leave out.

use std::collections::HashSet;

use super::super::columns::RowColumns;
use super::super::profile::{Finding, Problem};
use super::{NAMED, file_row};
use crate::counted::counted;
use crate::data::columns::dependence::{self, Dependent};
use crate::plan::Kind;

/// Relations that are written out.
const WRITTEN: usize = 4;
/// Terms of a relation that are written out.
const TERMS: usize = 4;
/// Columns that are listed as those to keep.
const LISTED: usize = 20;
/// A smaller share of rows that repeat is not told.
const REPEATED: f64 = 0.01;
/// A factor or constant within this share of a round number is one.
const ROUND: f64 = 2e-3;

/// Notes on rows [y, x] in the user's units. `held_out` says which rows of the table these are not.
pub(in crate::train) fn of_relations(
    values: &[f32],
    columns: &RowColumns,
    kind: Kind,
    held_out: &[bool],
) -> Vec<Finding> {
    let dim = columns.row();
    let found = dependence::find(values, dim);
    let (of_y, of_x): (Vec<_>, Vec<_>) = found.into_iter().partition(|found| found.column < columns.cond_dim);
    let mut notes = Vec::new();
    let labels = |found: &[Dependent]| columns.labels(&found.iter().map(|found| found.column).collect::<Vec<_>>());
    if !of_x.is_empty() {
        let (n, left) = (columns.dim, columns.dim - of_x.len());
        let says = format!(
            "columns that others give to within 0.1 % of their deviation: {}. The rows have no density in {}: across \
             these relations it is that of the noise added in training (train.noise), and grows without limit as that \
             falls; {}",
            written(&of_x, columns),
            counted(n, "column"),
            keep(&of_x, columns, left)
        );
        notes.push(Finding::new(Problem::Collinear, labels(&of_x), says));
    }
    // Other kinds have no density of their conditions.
    if !of_y.is_empty() && kind == Kind::Hint {
        let says = format!(
            "conditions that others give: {}. They have no density together, so that log p(y) and with it log p(y, x) mean \
             little; leave them out of data.given",
            written(&of_y, columns)
        );
        notes.push(Finding::new(Problem::Collinear, labels(&of_y), says));
    }
    notes.extend(of_repeated(values, columns, held_out));
    notes
}

/// Rows that are the same as others, in tables whose values could be any.
fn of_repeated(values: &[f32], columns: &RowColumns, held_out: &[bool]) -> Option<Finding> {
    let dim = columns.row();
    let rows = values.len() / dim;
    if dim == 1 || (0..dim).all(|c| has_few(values, dim, c)) {
        return None;
    }
    let (count, [first, again]) = dependence::repeated_rows(values, dim)?;
    (count as f64 >= REPEATED * rows as f64).then(|| {
        let says = format!(
            "{count} of {} {} others (row {} is row {} again): they have no density, and repeats among the held-out rows make the test loss better than it is; leave them out of the table",
            counted(rows, "training row"),
            if count == 1 { "repeats" } else { "repeat" },
            file_row(held_out, again),
            file_row(held_out, first)
        );
        Finding::of_rows(Problem::RepeatedRows, says)
    })
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

/// Relations in words, some of them in full.
fn written(found: &[Dependent], columns: &RowColumns) -> String {
    let name = |c: usize| columns.label(c);
    let full = found.iter().take(WRITTEN).map(|relation| in_full(relation, &name));
    let others = found.iter().take(NAMED).skip(WRITTEN).map(|relation| name(relation.column));
    let more = (found.len() > NAMED).then(|| format!("and {} more", found.len() - NAMED));
    full.chain(others).chain(more).collect::<Vec<_>>().join("; ")
}

/// `total = a + b`, or, where all parts have the same weight, `p1 + p2 + p3 = 1`.
fn in_full(relation: &Dependent, name: &dyn Fn(usize) -> String) -> String {
    let Dependent { column, terms, constant, .. } = relation;
    if terms.len() > TERMS {
        let some = terms.iter().take(TERMS - 1).map(|&(c, _)| name(c)).collect::<Vec<_>>().join(", ");
        return format!("{} from {} columns ({some}, ...)", name(*column), terms.len());
    }
    let size = terms.iter().fold(constant.abs(), |most, (_, factor)| most.max(factor.abs()));
    // What is nothing beside the rest is rounding.
    let constant = if constant.abs() < ROUND * size { 0.0 } else { *constant };
    if constant != 0.0 && terms.iter().all(|(_, factor)| (factor + 1.0).abs() < ROUND) {
        let parts = terms.iter().map(|&(c, _)| name(c)).chain([name(*column)]).collect::<Vec<_>>().join(" + ");
        return format!("{parts} = {}", number(constant));
    }
    let mut text = format!("{} =", name(*column));
    let mut first = true;
    let mut add = |factor: f64, what: Option<String>| {
        let sign = match (factor < 0.0, first) {
            (true, true) => " -",
            (false, true) => " ",
            (true, false) => " - ",
            (false, false) => " + ",
        };
        first = false;
        let size = number(factor.abs());
        text.push_str(sign);
        text.push_str(&match what {
            Some(name) if size == "1" => name,
            Some(name) => format!("{size} {name}"),
            None => size,
        });
    };
    terms.iter().for_each(|&(c, factor)| add(factor, Some(name(c))));
    if constant != 0.0 {
        add(constant, None);
    }
    text
}

/// A number in about three digits, a whole one where it nearly is one.
fn number(x: f64) -> String {
    if x.round() != 0.0 && (x - x.round()).abs() < ROUND * x.abs() && x.abs() < 1e6 {
        return x.round().to_string();
    }
    let text = format!("{x:.3e}");
    text.parse::<f64>().map_or(text, |short| short.to_string())
}

/// What to do about it.
fn keep(of_x: &[Dependent], columns: &RowColumns, left: usize) -> String {
    let out: HashSet<usize> = of_x.iter().map(|found| found.column).collect();
    let kept: Vec<usize> = (columns.cond_dim..columns.row()).filter(|c| !out.contains(c)).collect();
    let named: Vec<String> = kept.iter().map(|&c| columns.names_or_numbers(&[c])).collect();
    let plain = |name: &String| !name.contains([',', '"', ' ', '\'']);
    if left == 0 {
        "the conditions give all columns".into()
    } else if left <= LISTED && named.iter().all(plain) {
        format!("leave them out with --set data.columns={}", named.join(","))
    } else {
        "leave them out with --set data.columns=...".into()
    }
}

#[cfg(test)]
mod tests {
    use crate::config::Given;
    use crate::config::preset::for_tables;
    use crate::plan::Kind;
    use crate::rng::{Stream, fill_normals};
    use crate::train::dataset::Dataset;

    /// Notes on a table of some functions of normals.
    fn notes<const N: usize>(
        header: &str,
        rows: usize,
        kind: Kind,
        given: Option<&str>,
        f: impl Fn(&[f32]) -> [f32; N],
    ) -> Vec<String> {
        let mut z = vec![0.0; 4 * rows];
        fill_normals(5, Stream::Data, 0, 0, &mut z);
        let line = |z: &[f32]| f(z).map(|v| v.to_string()).join(",") + "\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv");
        std::fs::write(&path, format!("{header}\n") + &z.chunks_exact(4).map(line).collect::<String>()).unwrap();
        let mut config = for_tables();
        config.model.kind = kind;
        config.data.path = Some(path);
        config.data.given = given.map(Given::of_text);
        Dataset::load(&config, None).unwrap().notes
    }

    fn one<const N: usize>(header: &str, f: impl Fn(&[f32]) -> [f32; N]) -> String {
        let notes = notes(header, 500, Kind::Flow, None, f);
        assert_eq!(notes.len(), 1, "{notes:?}");
        notes[0].clone()
    }

    #[test]
    fn relations_are_written_with_what_to_leave_out() {
        let text = one("a,b,a2,b2", |z| [z[0], z[1], z[0], 1.5 - 2.5 * z[1]]);
        assert!(text.contains("a2 = a; b2 = -2.5 b + 1.5") && text.contains("data.columns=a,b"), "{text}");
        assert!(text.contains("no density in 4 columns") && text.contains("train.noise"), "{text}");
        let text = one("a,b,total", |z| [z[0], z[1], z[0] + z[1]]);
        assert!(text.contains("total = a + b.") && text.ends_with("data.columns=a,b"), "{text}");
        let text = one("p1,p2,p3", |z| {
            let e = [z[0].exp(), z[1].exp(), z[2].exp()];
            e.map(|part| part / (e[0] + e[1] + e[2]))
        });
        assert!(text.contains("p1 + p2 + p3 = 1") && text.ends_with("data.columns=p1,p2"), "{text}");
        assert_eq!(notes("a,b,c", 500, Kind::Flow, None, |z| [z[0], z[1], z[0].abs()]), Vec::<String>::new());
    }

    #[test]
    fn conditions_are_told_of_where_they_have_a_density() {
        let of = |kind| notes("a,b,c,d", 500, kind, Some("c,d"), |z| [z[0], z[1], z[2], 2.0 * z[2]]);
        assert!(
            of(Kind::Hint)[0].contains("d = 2 c") && of(Kind::Hint)[0].contains("data.given"),
            "{:?}",
            of(Kind::Hint)
        );
        assert_eq!(of(Kind::Cinn), Vec::<String>::new());
        let text = notes("a,b,c", 500, Kind::Cinn, Some("c"), |z| [z[0], z[0] + z[2], z[2]]).join(" ");
        assert!(text.contains("b = c + a") && text.ends_with("data.columns=a"), "{text}");
    }

    #[test]
    fn rows_that_repeat_are_told() {
        let repeated = |z: &[f32]| if z[3] > 1.0 { [0.5, 7.25] } else { [z[0], z[1]] };
        let text = notes("a,b", 500, Kind::Flow, None, repeated).join(" ");
        assert!(text.contains("training rows repeat others") && text.contains("again"), "{text}");
        // Of whole numbers that is no wonder.
        let whole = |z: &[f32]| [(2.0 * z[0]).round(), (2.0 * z[1]).round()];
        assert!(notes("a,b", 500, Kind::Flow, None, whole).iter().all(|note| !note.contains("repeat")));
    }
}

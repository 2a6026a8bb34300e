//! What the user should know about the rows of a table before a model is trained on them.

use super::columns::RowColumns;
use crate::plan::Kind;

/// Fewer training rows than these teach nothing.
const FEW_ROWS: usize = 20;

/// Notes on rows [y, x] in the user's units. Columns that rounding made `coarse` are told elsewhere.
pub(super) fn of_rows(values: &[f32], columns: &RowColumns, coarse: &[usize], kind: Kind) -> Vec<String> {
    let mut notes = Vec::new();
    let dim = columns.row();
    let rows = values.len() / dim;
    if rows < FEW_ROWS {
        notes.push(format!("there are only {rows} training rows: too few to learn a density from"));
    }
    let whole = (0..dim).filter(|j| !coarse.contains(j) && is_whole(values, dim, *j));
    let (of_y, of_x): (Vec<_>, Vec<_>) = whole.partition(|&j| j < columns.cond_dim);
    if !of_x.is_empty() {
        notes.push(format!(
            "whole numbers only: {}; their density is one of the numbers plus the noise added in training \
             (train.noise), and samples are not whole",
            columns.list(&of_x)
        ));
    }
    // Other kinds have no density of their conditions.
    if !of_y.is_empty() && kind == Kind::Hint {
        notes.push(format!(
            "whole numbers only among the conditions: {}; they have no density, so that log p(y) and with it log p(y, x) \
             mean little; posteriors are not affected",
            columns.list(&of_y)
        ));
    }
    notes
}

/// Notes on columns that are constant.
pub(super) fn of_constants(constant: impl Iterator<Item = usize>, columns: &RowColumns) -> Vec<String> {
    let (of_y, of_x): (Vec<_>, Vec<_>) = constant.partition(|&c| c < columns.cond_dim);
    let mut notes = Vec::new();
    if !of_x.is_empty() {
        let are = if of_x.len() == 1 { "column {} is" } else { "columns {} are" };
        notes.push(format!(
            "{} constant: the density there is arbitrary, that of the noise added in training (train.noise); leave out \
             with --set data.columns=...",
            are.replace("{}", &columns.names_or_numbers(&of_x))
        ));
    }
    if !of_y.is_empty() {
        let are = if of_y.len() == 1 { "condition {} is" } else { "conditions {} are" };
        notes.push(format!(
            "{} constant: nothing can be learnt from it, and for any other value the model is arbitrary; leave it out of \
             the conditions",
            are.replace("{}", &columns.names_or_numbers(&of_y))
        ));
    }
    notes
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

    #[test]
    fn columns_of_whole_numbers_and_constants_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let mut config = for_tables();
        let path = folder.path().join("t.csv");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        config.data.path = Some(path.clone());
        write(&(0..100).map(|i| format!("{},{}\n", 2 * i, 2 * i + 1)).collect::<String>());
        assert!(Dataset::load(&config, None).unwrap().notes.is_empty(), "all numbers are different");
        let rows = (0..100).map(|i| format!("{},{},7\n", i % 4, f64::from(i % 4) + 0.5));
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
    }
}

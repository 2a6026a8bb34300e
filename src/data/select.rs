//! Columns of a table by name or number, and its parts: conditions and what is modelled.

use super::table::Table;
use crate::error::{Error, Result};

/// Columns of one table: conditions and the others.
pub(crate) struct Parts {
    /// The columns that are conditions.
    pub(crate) given: Table,
    /// Those that are modelled.
    pub(crate) modelled: Table,
}

impl Table {
    /// The table of some columns in the given order. Each is a name, or a number counted from 1 as in error messages;
    /// a name wins over a number.
    pub fn select<S: AsRef<str>>(&self, wanted: &[S]) -> Result<Self> {
        self.take(&self.numbers(wanted)?)
    }

    /// The columns, from 0, that [`Table::select`] means.
    pub(crate) fn numbers<S: AsRef<str>>(&self, wanted: &[S]) -> Result<Vec<usize>> {
        choose(&self.columns, self.dim(), wanted, "data.columns")
    }

    /// The columns `given`, and `modelled` or, where that is `None`, all others; all as [`Table::select`] chooses them.
    ///
    /// # Errors
    /// [`Error::Config`] for `data.given` or `data.columns` if a column is unknown, named twice or in both lists, or none
    /// is left.
    #[cfg(test)]
    pub(crate) fn parts(&self, given: &[String], modelled: Option<&[String]>) -> Result<Parts> {
        let (y, x) = parts(&self.columns, self.dim(), given, modelled)?;
        Ok(Parts { given: self.take(&y)?, modelled: self.take(&x)? })
    }
}

/// Indices of the columns that [`Table::select`] means; `key` is the setting that names them.
pub(super) fn choose<S: AsRef<str>>(names: &[String], dim: usize, wanted: &[S], key: &str) -> Result<Vec<usize>> {
    if wanted.is_empty() {
        return Err(Error::config(key, "no column is chosen; name at least one"));
    }
    let mut chosen = Vec::with_capacity(wanted.len());
    for name in wanted {
        let index = find(names, dim, name.as_ref()).map_err(|what| Error::config(key, what))?;
        if chosen.contains(&index) {
            return Err(Error::config(key, format!("{} is chosen twice", label(names, index))));
        }
        chosen.push(index);
    }
    Ok(chosen)
}

/// Indices of the columns that [`Table::read_parts`] means.
pub(super) fn parts(
    names: &[String],
    dim: usize,
    given: &[String],
    modelled: Option<&[String]>,
) -> Result<(Vec<usize>, Vec<usize>)> {
    const GIVEN: &str = "data.given";
    let y = choose(names, dim, given, GIVEN)?;
    let x = match modelled {
        Some(modelled) => choose(names, dim, modelled, "data.columns")?,
        None => (0..dim).filter(|i| !y.contains(i)).collect(),
    };
    if let Some(&both) = y.iter().find(|i| x.contains(i)) {
        let what = "is in data.columns too; a column is a condition or modelled, not both";
        return Err(Error::config(GIVEN, format!("{} {what}", label(names, both))));
    }
    if x.is_empty() {
        return Err(Error::config(GIVEN, "names all columns of the table, so that none is left to be modelled"));
    }
    Ok((y, x))
}

/// Index of a column by its name, or by its number from 1.
fn find(names: &[String], dim: usize, wanted: &str) -> Result<usize, String> {
    if let Some(index) = names.iter().position(|name| name == wanted) {
        return Ok(index);
    }
    if let Ok(number @ 1..) = wanted.parse::<usize>()
        && number <= dim
    {
        return Ok(number - 1);
    }
    let known = match names {
        [] => "have no names".to_owned(),
        names if names.len() <= 30 => format!("are named {}", names.join(", ")),
        names => format!("are named {}, ...", names[..30].join(", ")),
    };
    Err(format!("there is no column `{wanted}`; the columns have numbers 1 to {dim} and {known}"))
}

fn label(names: &[String], i: usize) -> String {
    names.get(i).cloned().unwrap_or_else(|| format!("column {}", i + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let names = ["a", "b", "2"].map(String::from).to_vec();
        Table::new(names, 3, vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap()
    }

    #[test]
    fn parts_are_apart_and_keep_their_numbers() {
        let list = |names: &[&str]| names.iter().map(|&n| n.to_owned()).collect::<Vec<_>>();
        let parts = table().parts(&list(&["b"]), None).unwrap();
        assert_eq!((parts.given.values(), parts.modelled.values()), (&[2.0, 5.0][..], &[1.0, 3.0, 4.0, 6.0][..]));
        assert_eq!((parts.given.file_numbers(), parts.modelled.file_numbers()), (&[2][..], &[1, 3][..]));
        let parts = table().parts(&list(&["2", "1"]), Some(&list(&["b"]))).unwrap();
        assert_eq!((parts.given.columns, parts.modelled.columns), (list(&["2", "a"]), list(&["b"])));
        let message = |given: &[&str], modelled: Option<&[&str]>| {
            let modelled = modelled.map(list);
            let result = table().parts(&list(given), modelled.as_deref());
            result.err().map(|e| e.to_string()).unwrap_or_default()
        };
        // By name and by number it is the same column.
        for (given, modelled, key, what) in [
            (&["a", "1"][..], None, "data.given", "a is chosen twice"),
            (&["a"][..], Some(&["b", "1"][..]), "data.given", "a is in data.columns too"),
            (&["a"][..], Some(&["b", "b"][..]), "data.columns", "b is chosen twice"),
            (&["q"][..], Some(&["b"][..]), "data.given", "no column `q`"),
            (&["a"][..], Some(&["q"][..]), "data.columns", "no column `q`"),
            (&["a", "b", "2"][..], None, "data.given", "none is left"),
        ] {
            let text = message(given, modelled);
            assert!(text.contains(key) && text.contains(what), "{text}");
        }
    }

    #[test]
    fn columns_are_chosen_by_name_before_number() {
        let t = table();
        assert_eq!(t.select(&["2", "1"]).unwrap().values(), [3.0, 1.0, 6.0, 4.0]);
        assert_eq!(t.select(&["2", "1"]).unwrap().columns, ["2", "a"]);
        assert_eq!(t.select(&["b"]).unwrap().values(), [2.0, 5.0]);
        assert_eq!(t.select(&["3", "b", "a"]).unwrap().row(1), [6.0, 5.0, 4.0]);
        let cases = [
            (vec!["c"], "no column `c`"),
            (vec!["0"], "no column `0`"),
            (vec!["4"], "1 to 3"),
            (vec![], "no column"),
            (vec!["a", "1"], "a is chosen twice"),
        ];
        for (wanted, message) in cases {
            let error = t.select(&wanted).unwrap_err();
            assert!(error.to_string().contains(message), "{error}");
            assert!(matches!(error, Error::Config { .. }), "{error}");
        }
        let nameless = Table::new(vec![], 2, vec![1.0, 2.0]).unwrap();
        assert_eq!(nameless.select(&["2"]).unwrap().values(), [2.0]);
        assert!(nameless.select(&["x"]).unwrap_err().to_string().contains("no names"));
        assert_eq!((nameless.column_label(1), t.column_label(1)), ("column 2".to_owned(), "b".to_owned()));
    }
}

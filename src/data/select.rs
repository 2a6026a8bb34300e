//! Columns of a table by name or number, and its parts: conditions and what is modelled.

use std::path::Path;

use super::table::{Table, read};
use crate::error::{Error, Result};

/// Columns of one table: conditions and the others.
pub(crate) struct Parts {
    /// The columns that are conditions.
    pub(crate) given: Table,
    /// Those that are modelled.
    pub(crate) modelled: Table,
}

impl Table {
    /// Reads the columns `given`, and `modelled` or, where that is `None`, all others; all as [`Table::select`] chooses
    /// them.
    ///
    /// # Errors
    /// Those of reading; [`Error::Config`] for `data.given` or `data.columns` where a column is unknown, named twice or
    /// in both lists, or none is left.
    pub(crate) fn read_parts(path: &Path, given: &[String], modelled: Option<&[String]>) -> Result<Parts> {
        let table = read(path, &|names, dim| parts(names, dim, given, modelled).map(|(y, x)| Some([y, x].concat())))?;
        // As many as were chosen: none was named twice.
        let at = given.len();
        Ok(Parts {
            given: table.take(&(0..at).collect::<Vec<_>>())?,
            modelled: table.take(&(at..table.dim()).collect::<Vec<_>>())?,
        })
    }

    /// As [`Table::read_parts`], of a table in memory.
    ///
    /// # Errors
    /// Those of [`Table::read_parts`] that are not of reading.
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
fn parts(
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
        // Cells of columns that are in neither part may hold anything.
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.tsv");
        std::fs::write(&path, "id\tu\tv\nx\t1\t2\ny\t3\t4\n").unwrap();
        let parts = Table::read_parts(&path, &list(&["v"]), Some(&list(&["u"]))).unwrap();
        assert_eq!((parts.given.values(), parts.modelled.values()), (&[2.0, 4.0][..], &[1.0, 3.0][..]));
        assert_eq!((parts.given.file_numbers(), parts.modelled.file_numbers()), (&[3][..], &[2][..]));
    }
}

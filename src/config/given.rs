//! Where the conditions of a conditional model come from: a file of their own, or columns of the table.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::Columns;
use crate::data::files;

/// `data.given`: a text that ends like a table file is one, or names a file that exists and has an extension; other
/// texts and lists name columns of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// A table with as many rows as the data.
    File(PathBuf),
    /// Columns of the data, by name or number from 1; they are conditions and not modelled.
    Columns(Columns),
}

impl Given {
    /// What a text on the command line means: a file, or columns with commas between them.
    pub(crate) fn of_text(text: &str) -> Self {
        let path = Path::new(text);
        // A column may have the name of a file by chance, but hardly one with an extension. What cannot be read is told
        // when it is.
        if files::is_table_file(path) || (path.extension().is_some() && path.is_file()) {
            Self::File(text.into())
        } else {
            Self::Columns(Columns::of_text(text))
        }
    }

    /// The file, if it is one.
    pub(crate) fn file(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Columns(_) => None,
        }
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::File(path) => path.serialize(serializer),
            Self::Columns(columns) => columns.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Given {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = toml::Value::deserialize(deserializer)?;
        if let toml::Value::String(text) = &value {
            return Ok(Self::of_text(text));
        }
        Columns::deserialize(value).map(Self::Columns).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(toml: &str) -> Given {
        let table: toml::Table = toml.parse().unwrap();
        table["given"].clone().try_into().unwrap()
    }

    #[test]
    fn files_and_columns_are_told_apart() {
        let columns = |names: &[&str]| Given::Columns(Columns(names.iter().map(|&n| n.into()).collect()));
        assert_eq!(read("given = \"dir/y.CSV\""), Given::File("dir/y.CSV".into()));
        assert_eq!(read("given = \"a, b\""), columns(&["a", "b"]));
        assert_eq!(read("given = [\"y.csv\", 2]"), columns(&["y.csv", "2"]));
        assert_eq!(read("given = 3"), columns(&["3"]));
        assert_eq!(read("given = \"y.txt\""), Given::File("y.txt".into()));
        assert_eq!(read("given = \"no/such.parquet\""), columns(&["no/such.parquet"]));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("y.parquet");
        std::fs::write(&path, "").unwrap();
        assert_eq!(Given::of_text(path.to_str().unwrap()), Given::File(path));
        for given in [Given::File("y.npy".into()), columns(&["y.csv"]), columns(&["a", "b"])] {
            let table = toml::Table::from_iter([("given".to_owned(), toml::Value::try_from(&given).unwrap())]);
            assert_eq!(read(&table.to_string()), given);
        }
    }
}

//! Columns of a table, as settings name them.

use std::fmt;

use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Columns by name or number. In settings either a list or one text with commas.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Columns(pub Vec<String>);

impl Columns {
    /// The columns of a text with commas between them.
    pub(crate) fn of_text(text: &str) -> Self {
        Self(text.split(',').map(|name| name.trim().to_owned()).collect())
    }
}

impl<'de> Deserialize<'de> for Columns {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct List;
        impl<'de> Visitor<'de> for List {
            type Value = Columns;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of column names or numbers, or one text with commas")
            }
            fn visit_i64<E: de::Error>(self, v: i64) -> std::result::Result<Columns, E> {
                Ok(Columns(vec![v.to_string()]))
            }
            fn visit_f64<E: de::Error>(self, v: f64) -> std::result::Result<Columns, E> {
                Ok(Columns(vec![v.to_string()]))
            }
            fn visit_str<E: de::Error>(self, v: &str) -> std::result::Result<Columns, E> {
                Ok(Columns::of_text(v))
            }
            fn visit_seq<A: de::SeqAccess<'de>>(self, mut seq: A) -> std::result::Result<Columns, A::Error> {
                let mut names = Vec::new();
                while let Some(value) = seq.next_element::<toml::Value>()? {
                    names.push(match value {
                        toml::Value::String(name) => name,
                        toml::Value::Integer(number) => number.to_string(),
                        toml::Value::Float(number) => number.to_string(),
                        other => return Err(de::Error::invalid_type(de::Unexpected::Other(other.type_str()), &self)),
                    });
                }
                Ok(Columns(names))
            }
        }
        deserializer.deserialize_any(List)
    }
}

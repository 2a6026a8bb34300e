//! What was measured of a run, as a file.

use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic::{Overwrite, write_atomic};
use crate::error::{Error, Result};
use crate::measure::{Protocol, Scores};

/// Measures of one run of a model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Measured {
    /// Name of the model.
    pub model: String,
    /// Number of the run, which is the seed of its training.
    pub run: u64,
    /// Trained parameters.
    pub parameters: usize,
    /// SHA-256 of the rows, where they are read from files; none of simulated rows, which the settings tell.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data: Option<String>,
    /// What was measured; null if the training diverged.
    #[serde(deserialize_with = "Option::deserialize")]
    pub scores: Option<Scores>,
    /// How much was drawn.
    pub protocol: Protocol,
    /// The settings of the training that matter to its result.
    pub settings: Value,
    /// The device of the measurement.
    pub device: String,
    /// Version of hintflow.
    pub version: String,
    /// Day of the measurement, UTC.
    pub date: String,
}

impl Measured {
    /// Reads a result; none if there is no file.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] if the file is no result, or one of other settings or another protocol.
    pub(super) fn read(path: &Path, settings: &Value, protocol: &Protocol) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io("read", path, e)),
        };
        let found: Self = serde_json::from_str(&text).map_err(|e| {
            Error::format(path, format!("is no result of a measurement: {e}; remove it to measure again"))
        })?;
        if let Some(key) = difference(settings, &found.settings) {
            return Err(Error::format(path, other_settings(&key)));
        }
        if found.protocol != *protocol {
            let what = "was measured with other numbers of draws; choose another --out, or remove it to measure again";
            return Err(Error::format(path, what));
        }
        Ok(Some(found))
    }

    pub(super) fn write(&self, path: &Path) -> Result<()> {
        let json = serde_json::to_string_pretty(self).map_err(|e| Error::format(path, e.to_string()))?;
        write_atomic(path, Overwrite::Yes, |file| writeln!(file, "{json}"))
    }
}

/// What is wrong with a file of results, or a run folder, whose training differs in `key`, and what to do.
pub(super) fn other_settings(key: &str) -> String {
    format!(
        "is of a training with another `{key}` than --scale, --set or this version gives it; choose another --out, or \
         remove it and what results/ and runs/ have of the same name"
    )
}

/// The first key that `wanted` and `found` do not agree in.
pub(super) fn difference(wanted: &Value, found: &Value) -> Option<String> {
    let (Value::Object(wanted), Value::Object(found)) = (wanted, found) else {
        return (wanted != found).then(String::new);
    };
    let other = wanted.iter().find_map(|(key, wanted)| {
        let inner = difference(wanted, found.get(key).unwrap_or(&Value::Null))?;
        Some(if inner.is_empty() { key.clone() } else { format!("{key}.{inner}") })
    });
    other.or_else(|| found.keys().find(|key| !wanted.contains_key(*key)).cloned())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn differences_are_named() {
        let wanted = json!({ "train": { "epochs": 50, "lr": 0.01 }, "model": { "blocks": 2 } });
        let mut found = json!({ "train": { "epochs": 50, "lr": 0.01 }, "model": { "blocks": 2 } });
        assert_eq!(difference(&wanted, &found), None);
        found["train"]["lr"] = json!(0.02);
        assert_eq!(difference(&wanted, &found).unwrap(), "train.lr");
        assert_eq!(difference(&wanted, &json!({ "train": wanted["train"] })).unwrap(), "model");
        let more = json!({ "train": wanted["train"], "model": { "blocks": 2, "slope": 1.0 } });
        assert_eq!(difference(&wanted, &more).unwrap(), "model.slope");
    }
}

//! Which logs a training writes for other programs.

use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Deserializer, Serialize};

use super::Columns;

/// A log beside `metrics.csv`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Log {
    /// A line of JSON for each epoch.
    Jsonl,
    /// Events for TensorBoard.
    Tensorboard,
}

/// `train.log`: a list, or one text with commas.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Logs(pub Vec<Log>);

impl Logs {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'de> Deserialize<'de> for Logs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut logs = Vec::new();
        for name in Columns::deserialize(deserializer)?.0.iter().filter(|name| !name.is_empty()) {
            let name: StrDeserializer<'_, D::Error> = name.as_str().into_deserializer();
            let log = Log::deserialize(name)?;
            if !logs.contains(&log) {
                logs.push(log);
            }
        }
        Ok(Self(logs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logs_are_a_list_or_a_text() {
        let read = |text: &str| -> Result<Logs, String> {
            let table: toml::Table = text.parse().unwrap();
            table["log"].clone().try_into().map_err(|e: toml::de::Error| e.to_string())
        };
        let both = Logs(vec![Log::Tensorboard, Log::Jsonl]);
        assert_eq!(read("log = [\"tensorboard\", \"jsonl\"]"), Ok(both.clone()));
        assert_eq!(read("log = \"tensorboard, jsonl,jsonl\""), Ok(both));
        assert_eq!(read("log = \"\""), Ok(Logs::default()));
        let text = read("log = \"wandb\"").unwrap_err();
        assert!(text.contains("wandb") && text.contains("`jsonl` or `tensorboard`"), "{text}");
    }
}

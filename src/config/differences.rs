//! Which settings of a run differ from the defaults.

use std::path::Path;

use toml::{Table, Value};

use super::{Config, KnownRows, Layers};
use crate::error::Result;

/// A setting that is not the default.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Difference {
    /// Its name.
    pub key: String,
    /// Its value; none if the default has one and the run has not.
    pub value: Option<String>,
    /// The default, if there is one.
    pub default: Option<String>,
}

/// What says which defaults there are: those of a preset, of a table, or of a kind of model.
const BASE: [&str; 5] = ["data.preset", "data.path", "data.given", "model.kind", "model.coupling"];

/// How many rows are simulated, or taken of a table.
const ROWS: &str = "data.rows";

/// What belongs to a place and not to a training.
const OF_A_PLACE: [&str; 4] = ["data.path", "run.device", "run.threads", "run.out"];

impl Config {
    /// The settings that differ from the defaults for such data and such a model. `rows` say what the defaults
    /// choose by them, where they are known.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a setting has no place in TOML.
    pub(crate) fn beside_defaults(&self, rows: Option<KnownRows>) -> Result<Vec<Difference>> {
        let own = flat(&self.to_toml()?);
        let defaults = |keys: &[&str]| -> Result<Vec<(String, Value)>> {
            let mut base = Table::new();
            for (key, value) in own.iter().filter(|(key, _)| keys.contains(&key.as_str())) {
                if let Some((section, name)) = key.split_once('.')
                    && let Value::Table(section) = base.entry(section).or_insert_with(|| Value::Table(Table::new()))
                {
                    section.insert(name.into(), value.clone());
                }
            }
            let mut layers = Layers::new();
            layers.toml(&base.to_string(), Path::new("config.toml"))?;
            Ok(flat(&layers.resolve_complete()?.on(rows).to_toml()?))
        };
        let find = |settings: &[(String, Value)], key: &str| {
            settings.iter().find(|(known, _)| known == key).map(|(_, value)| value.clone())
        };
        let plain = defaults(&BASE)?;
        let of_data = find(&plain, ROWS);
        // A simulated data set of another size has other batches, which then are its defaults.
        let mut all = if find(&own, ROWS) == of_data { plain } else { defaults(&[&BASE[..], &[ROWS]].concat())? };
        all.retain(|(key, _)| key != ROWS);
        all.extend(of_data.map(|value| (ROWS.to_owned(), value)));
        let mut keys: Vec<&String> = own.iter().chain(&all).map(|(key, _)| key).collect();
        keys.sort_unstable();
        keys.dedup();
        let differences = keys.into_iter().filter(|key| !OF_A_PLACE.contains(&key.as_str())).filter_map(|key| {
            let (value, default) = (find(&own, key), find(&all, key));
            let text = |value: Option<Value>| value.map(|value| value.to_string());
            (value != default).then(|| Difference { key: key.clone(), value: text(value), default: text(default) })
        });
        Ok(differences.collect())
    }
}

/// The settings of a TOML text by their dotted names.
fn flat(text: &str) -> Vec<(String, Value)> {
    fn add(prefix: &str, table: Table, to: &mut Vec<(String, Value)>) {
        for (name, value) in table {
            let key = if prefix.is_empty() { name } else { format!("{prefix}.{name}") };
            match value {
                Value::Table(inner) => add(&key, inner, to),
                value => to.push((key, value)),
            }
        }
    }
    let mut settings = Vec::new();
    let table = text.parse().unwrap_or_else(|e| unreachable!("settings that do not read back: {e}"));
    add("", table, &mut settings);
    settings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::{Preset, for_tables};
    use crate::data::columns::units::Bounds;

    fn keys(config: &Config) -> Vec<String> {
        config.beside_defaults(None).unwrap().into_iter().map(|difference| difference.key).collect()
    }

    #[test]
    fn settings_that_nobody_set_do_not_differ() {
        let mut table = for_tables();
        table.data.path = Some("t.csv".into());
        table.run.device = "cpu".into();
        for config in Preset::ALL.iter().map(|preset| preset.config()).chain([table.clone()]) {
            let config = match config.data.preset.and_then(Preset::uci) {
                Some(_) => Config { data: super::super::Data { path: Some("p".into()), ..config.data }, ..config },
                None => config,
            };
            assert_eq!(keys(&config), [""; 0], "{:?}", config.data.preset);
        }
        // What was chosen by the number of rows is a default, too.
        let rows = Some(KnownRows { training: 5000, validates: true });
        let table = table.on(rows);
        let chosen = ["batch", "batches_per_epoch", "cycles", "decay", "dropout"].map(|name| format!("train.{name}"));
        assert_eq!(keys(&table), chosen);
        assert_eq!(table.beside_defaults(rows).unwrap(), []);
    }

    #[test]
    fn settings_that_were_set_are_told_with_their_defaults() {
        let mut config = for_tables();
        config.data.path = Some("t.csv".into());
        (config.train.epochs, config.model.blocks) = (5, 2);
        config.data.squash = None;
        config.columns.insert("a.b".into(), Bounds { lower: Some(0.0), upper: None }.into());
        let told = config.beside_defaults(None).unwrap();
        let told: Vec<_> = told
            .iter()
            .map(|d| (d.key.as_str(), d.value.as_deref().unwrap_or("-"), d.default.as_deref().unwrap_or("-")))
            .collect();
        let want = [
            ("columns.a.b.lower", "0.0", "-"),
            ("data.squash", "-", "3.0"),
            ("model.blocks", "2", "4"),
            ("train.epochs", "5", "60"),
        ];
        assert_eq!(told, want);
        let mut lens = Preset::Lens.config();
        lens.data.rows = Some(1000);
        (lens.train.batch, lens.train.batches_per_epoch) = (None, None);
        assert_eq!(keys(&lens), ["data.rows"]);
    }
}

//! Whether a checkpoint belongs to a training: same model, same rows, same settings but for those of its surroundings.

use std::path::Path;

use super::checkpoint::Checkpoint;
use super::dataset::Rows;
use crate::config::{Config, Given};
use crate::error::{Error, Result};
use crate::plan::Spec;

/// Whether a checkpoint is one of this training.
pub(super) fn belongs(checkpoint: &Checkpoint, file: &Path, config: &Config, rows: &Rows) -> Result<()> {
    let other = |what: String| Err(Error::format(file, what));
    let (theirs, ours) =
        (&checkpoint.about.spec, config.model.spec(checkpoint.about.spec.dim, checkpoint.about.spec.cond_dim)?);
    if *theirs != ours {
        let table = |spec: &Spec| match serde_json::to_value(spec) {
            Ok(serde_json::Value::Object(fields)) => fields,
            _ => serde_json::Map::new(),
        };
        let (theirs, ours) = (table(theirs), table(&ours));
        let differing = ours.iter().filter(|(name, value)| theirs.get(*name) != Some(value));
        let list: Vec<_> = differing
            .map(|(name, ours)| {
                let theirs = theirs.get(name).unwrap_or(&serde_json::Value::Null);
                format!("model.{name} is {theirs} in it and {ours} in config.toml")
            })
            .collect();
        let list = list.join(", ");
        return other(format!(
            "is a checkpoint of another model: {list}; restore config.toml, or start a new run with --init {}",
            file.display()
        ));
    }
    if checkpoint.about.data != rows.fingerprint() {
        return other(format!(
            "was made on other data: the rows of {} have changed since; restore them, or start a new run with --init",
            config.data.path.as_ref().map_or("the simulated data set".into(), |p| p.display().to_string())
        ));
    }
    let ours = settings_that_matter(config)?;
    if let Ok(theirs) = checkpoint.about.config.parse::<toml::Table>()
        && let Some(key) = difference(&with_later_settings(theirs), &ours)
    {
        return other(format!(
            "was made with another `{key}` than config.toml has; restore it, or start a new run with --init"
        ));
    }
    Ok(())
}

/// All settings but those that may change when a run goes on.
pub(crate) fn settings_that_matter(config: &Config) -> Result<toml::Table> {
    let mut table: toml::Table =
        config.to_toml()?.parse().unwrap_or_else(|e| unreachable!("settings that do not read back: {e}"));
    table.remove("run");
    // Where the same rows lie is no matter: the fingerprint is that of the rows. Nor does the file that the weights
    // came from matter: the checkpoint holds them. Patience decides when a training ends and, unless it cools down, not
    // which way it takes. Logs change nothing.
    let patience = (config.train.cooldown == 0).then_some(("train", "patience"));
    let given = config.data.given.as_ref().and_then(Given::file).map(|_| ("data", "given"));
    for (section, name) in
        [("data", "path"), ("model", "init"), ("train", "log")].into_iter().chain(given).chain(patience)
    {
        if let Some(toml::Value::Table(values)) = table.get_mut(section) {
            values.remove(name);
        }
    }
    Ok(table)
}

/// Settings that a run may be older than, and what there was before: nothing of the kind.
pub(super) const BEFORE_IT_EXISTED: [(&str, &str); 11] = [
    ("model.coupling", "\"affine\""),
    ("data.regression", "false"),
    ("train.dropout", "0.0"),
    ("train.cooldown", "0"),
    ("train.schedule", "\"exponential\""),
    ("train.warmup_steps", "0"),
    ("train.cycles", "1"),
    ("train.clip_norm", "0.0"),
    ("train.decay", "0.0"),
    ("train.average", "0.0"),
    ("train.retries", "0"),
];

/// The settings of a checkpoint with those that it is older than.
fn with_later_settings(mut table: toml::Table) -> toml::Table {
    for (key, value) in BEFORE_IT_EXISTED {
        let before = format!("{key} = {value}").parse::<toml::Table>().unwrap_or_default();
        for (section, values) in before {
            if let (Some(toml::Value::Table(ours)), toml::Value::Table(values)) = (table.get_mut(&section), values) {
                for (name, value) in values {
                    ours.entry(name).or_insert(value);
                }
            }
        }
    }
    table
}

fn difference(a: &toml::Table, b: &toml::Table) -> Option<String> {
    let keys = |t: &toml::Table| t.keys().cloned().collect::<Vec<_>>();
    for key in keys(a).into_iter().chain(keys(b)) {
        match (a.get(&key), b.get(&key)) {
            (Some(toml::Value::Table(a)), Some(toml::Value::Table(b))) => {
                if let Some(inner) = difference(a, b) {
                    return Some(format!("{key}.{inner}"));
                }
            }
            (a, b) if a == b => {}
            _ => return Some(key),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::preset::for_affine_tables;

    /// What a checkpoint that is older than them says is what a training without them does.
    #[test]
    fn later_settings_are_off_in_older_checkpoints() {
        let mut config = for_affine_tables();
        (config.train.cooldown, config.train.retries) = (0, 0);
        let ours = settings_that_matter(&config).unwrap();
        let mut older = ours.clone();
        for (key, _) in BEFORE_IT_EXISTED {
            let (section, name) = key.split_once('.').unwrap();
            assert!(older[section].as_table_mut().unwrap().remove(name).is_some(), "{key}");
        }
        assert!(difference(&older, &ours).is_some());
        assert_eq!(difference(&with_later_settings(older.clone()), &ours), None);
        config.train.clip_norm = 1.0;
        let clipped = settings_that_matter(&config).unwrap();
        assert_eq!(difference(&with_later_settings(older), &clipped).as_deref(), Some("train.clip_norm"));
    }

    /// A setting that every training has is in the list, or was there before the first checkpoint: runs that are older than
    /// it would otherwise be refused, or go on in another way.
    #[test]
    fn a_new_setting_has_a_value_for_older_runs() {
        const FROM_THE_BEGINNING: [(&str, &[&str]); 3] = [
            ("data", &["seed", "standardize", "test_noise", "validation"]),
            (
                "model",
                &["blocks", "condition_on", "depth", "init_sigma", "kind", "mix_first", "mixing", "scale", "width"],
            ),
            ("train", FIRST_OF_TRAIN),
        ];
        const FIRST_OF_TRAIN: &[&str] = &[
            "batch",
            "batches_per_epoch",
            "beta1",
            "beta2",
            "epochs",
            "eps",
            "grad_clamp",
            "keep",
            "l2",
            "lr",
            "lr_final",
            "memory",
            "noise",
            "patience",
            "seed",
            "shuffle",
            "warmup_epochs",
            "warmup_factor",
        ];
        // Absent unless it is given, here and in older runs alike.
        const OF_SOME: [&str; 2] = ["model.max_log_scale", "train.batch"];
        let ours = settings_that_matter(&for_affine_tables()).unwrap();
        for (section, first) in FROM_THE_BEGINNING {
            for name in ours[section].as_table().unwrap().keys() {
                let key = format!("{section}.{name}");
                let known = first.contains(&name.as_str()) || OF_SOME.contains(&key.as_str());
                assert!(
                    known || BEFORE_IT_EXISTED.iter().any(|(later, _)| *later == key),
                    "{key} has no value for older runs"
                );
            }
        }
    }
}

//! Collects settings from their sources: presets < configuration file < environment < flags < `--set`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Config, Preset, keys, preset};
use crate::error::{Error, Result};
use crate::flow::ModelFile;
use crate::plan::Kind;

/// Settings that exclude each other: the later source wins, within one source it is an error.
const RIVALS: [(&str, &str); 2] = [("model.width", "model.budget"), ("data.preset", "data.path")];

/// Prefix of settings in the environment: `HINTFLOW_TRAIN__LR` is `train.lr`.
const PREFIX: &str = "HINTFLOW_";

/// Beginnings of a variable's name that look like a setting. Others are not ours.
const SECTIONS: [&str; 4] = ["MODEL_", "TRAIN_", "DATA_", "RUN_"];

/// Settings and where each came from, lowest precedence added first.
#[derive(Clone, Debug, Default)]
pub struct Layers {
    settings: BTreeMap<String, Setting>,
    layer: usize,
}

#[derive(Clone, Debug)]
struct Setting {
    value: Value,
    layer: usize,
    source: String,
}

impl Layers {
    /// No settings yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a configuration file. A relative path in it is relative to the working directory, as everywhere.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownKey`], [`Error::Config`] where it is no TOML or a value does not fit.
    pub fn file(&mut self, path: &Path) -> Result<()> {
        let failed = |e| Error::io("read", path, e);
        let metadata = std::fs::metadata(path).map_err(failed)?;
        if !metadata.is_file() && !metadata.is_dir() {
            // A device may have no end, and a pipe no writer.
            return Err(failed(std::io::Error::new(std::io::ErrorKind::InvalidInput, "not a regular file")));
        }
        self.toml(&std::fs::read_to_string(path).map_err(failed)?, path)
    }

    /// Adds the text of a configuration file; `path` is for messages.
    ///
    /// # Errors
    /// As [`Layers::file`].
    pub fn toml(&mut self, text: &str, path: &Path) -> Result<()> {
        self.layer += 1;
        let table: Table = text
            .parse()
            .map_err(|e: toml::de::Error| Error::config(path.display().to_string(), format!("is not TOML: {e}")))?;
        for (section, values) in table {
            let Value::Table(values) = values else {
                return Err(unknown(&section, &path.display().to_string()));
            };
            for (name, value) in values {
                let source = path.display().to_string();
                match value {
                    Value::Table(bounds) if section == keys::COLUMNS => {
                        for (which, bound) in bounds {
                            self.set(&format!("{section}.{name}.{which}"), bound, &source)?;
                        }
                    }
                    value => self.set(&format!("{section}.{name}"), value, &source)?,
                }
            }
        }
        Ok(())
    }

    /// Adds the environment: every variable `HINTFLOW_TABLE__NAME`. Returns the names that begin like settings and are
    /// none, for a warning.
    ///
    /// # Errors
    /// [`Error::UnknownKey`], [`Error::Config`].
    pub fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) -> Result<Vec<String>> {
        self.layer += 1;
        let mut strange = Vec::new();
        for (variable, text) in variables {
            let Some(rest) = variable.strip_prefix(PREFIX) else { continue };
            match rest.split_once("__") {
                Some((section, name)) => {
                    let key = format!("{section}.{name}").to_lowercase();
                    self.set_text(&key, &text, &format!("environment variable {variable}"))?;
                }
                None if SECTIONS.iter().any(|section| rest.starts_with(section)) || is_last_part(rest) => {
                    strange.push(variable);
                }
                None => {}
            }
        }
        Ok(strange)
    }

    /// Adds flags of the command line: key, value as text, the flag's name.
    ///
    /// # Errors
    /// [`Error::Config`] where a value does not fit.
    pub fn flags<'a>(&mut self, flags: impl IntoIterator<Item = (&'a str, String, &'a str)>) -> Result<()> {
        self.layer += 1;
        for (key, value, flag) in flags {
            self.set_text(key, &value, flag)?;
        }
        Ok(())
    }

    /// Adds `--set key=value` assignments. A value is TOML where it can be read as such, otherwise text.
    ///
    /// # Errors
    /// [`Error::UnknownKey`], [`Error::Config`] where there is no `=` or the value does not fit.
    pub fn assignments(&mut self, assignments: &[String]) -> Result<()> {
        self.layer += 1;
        for assignment in assignments {
            let Some((key, value)) = key_and_value(assignment) else {
                return Err(Error::config(assignment, "`--set` takes key=value, for example --set train.lr=0.001"));
            };
            self.set_text(key.trim(), value.trim(), "--set")?;
        }
        Ok(())
    }

    /// The value of a setting that some source gave, as text.
    pub fn given(&self, key: &str) -> Option<String> {
        self.settings.get(key).map(|s| match &s.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// All choices made: what the sources gave on top of the starting values of the preset, of the model file
    /// (`model.init`) or of tables.
    ///
    /// # Errors
    /// [`Error::Config`] where a value is out of range or contradicts another one; errors of reading the model file.
    pub fn resolve(&self) -> Result<Config> {
        self.resolve_with(ModelFile::read)
    }

    /// As [`Layers::resolve`], with another way to read the model that `model.init` names.
    ///
    /// # Errors
    /// As [`Layers::resolve`].
    pub fn resolve_with(&self, read: impl Fn(&Path) -> Result<ModelFile>) -> Result<Config> {
        let init = self.given("model.init").map(PathBuf::from);
        self.resolve_from(init.map(|path| read(&path).map(|file| (path, file))).transpose()?)
    }

    /// As [`Layers::resolve`], but does not read the model file: for settings that hold its choices already, as those
    /// of a run folder do. The file may be gone.
    ///
    /// # Errors
    /// [`Error::Config`] where a value is out of range or contradicts another one.
    pub fn resolve_complete(&self) -> Result<Config> {
        self.resolve_from(None)
    }

    fn resolve_from(&self, init: Option<(PathBuf, ModelFile)>) -> Result<Config> {
        let mut base = match self.given("data.preset").as_deref().and_then(Preset::named) {
            Some(preset) => preset.config(),
            None => preset::for_tables(),
        };
        if let Some(preset) = base.data.preset
            && self.given("model.kind").is_some_and(|kind| kind != Kind::Flow.name())
        {
            base.model.budget = preset.conditional_budget().or(base.model.budget);
        }
        if base.data.preset.is_some() && self.given("data.rows").is_some() {
            // The paper's batches are those of the paper's number of rows.
            base.train.batches_per_epoch = None;
            base.train.batch = None;
        }
        if let Some((_, file)) = &init {
            base.model.adopt(&file.plan.spec);
            base.data.standardize = file.x.standardize.is_some();
        }
        let mut table = to_table(&base);
        let is_read = base.data.preset.is_some_and(|preset| preset.uci().is_some());
        for (key, setting) in &self.settings {
            if let Some((rival, _)) = rival_of(key).filter(|_| !(is_read && is_of_data(key))) {
                remove(&mut table, rival);
            }
            insert(&mut table, key, setting.value.clone());
        }
        let config: Config =
            Value::Table(table).try_into().unwrap_or_else(|e| unreachable!("each setting fits, but not all: {e}"));
        config.validate()?;
        if let Some((path, file)) = &init {
            agrees(&config, file, path)?;
        }
        Ok(config)
    }

    fn set_text(&mut self, key: &str, text: &str, source: &str) -> Result<()> {
        let literal = format!("value = {text}").parse::<Table>().ok().filter(|t| t.len() == 1);
        let value = literal.and_then(|mut table| table.remove("value")).unwrap_or_else(|| Value::String(text.into()));
        let key = &keys::without_quotes(key);
        match self.set(key, value, source) {
            // A file may be called 5, and a text may look like a number.
            Err(Error::Config { .. }) if self.set(key, Value::String(text.into()), source).is_ok() => Ok(()),
            result => result,
        }
    }

    fn set(&mut self, key: &str, value: Value, source: &str) -> Result<()> {
        if !keys::is_known(key) {
            return Err(unknown(key, source));
        }
        let value = fitting(key, value, source)?;
        if let Some((rival, message)) = rival_of(key)
            && let Some(other) = self.settings.get(rival)
            && !(is_of_data(key) && [&value, &other.value].into_iter().any(is_read_from_a_file))
        {
            if other.layer == self.layer {
                let sources =
                    if other.source == source { source.into() } else { format!("{} and {source}", other.source) };
                return Err(Error::config(key, format!("{message} ({sources}); give only one of them")));
            }
            self.settings.remove(rival);
        }
        // The function `exp` has no slope, so it displaces the one that an earlier source gave.
        if (key, value.as_str()) == ("model.scale", Some("exp"))
            && self.settings.get("model.slope").is_some_and(|slope| slope.layer < self.layer)
        {
            self.settings.remove("model.slope");
        }
        self.settings.insert(key.into(), Setting { value, layer: self.layer, source: source.into() });
        Ok(())
    }
}

/// What is before and after the sign of an assignment; a column's name in quotes may have such a sign.
fn key_and_value(assignment: &str) -> Option<(&str, &str)> {
    let quoted = keys::quoted(assignment).map_or(0, |(column, _)| assignment.len() - column.len());
    let sign = quoted + assignment[quoted..].find('=')?;
    Some((&assignment[..sign], &assignment[sign + 1..]))
}

fn unknown(key: &str, origin: &str) -> Error {
    Error::UnknownKey { key: key.into(), origin: origin.into(), nearest: keys::nearest(key) }
}

fn rival_of(key: &str) -> Option<(&'static str, String)> {
    RIVALS.iter().find_map(|&(a, b)| {
        let rival = if key == a { b } else { a };
        (key == a || key == b).then(|| (rival, format!("contradicts `{rival}`, which is set too")))
    })
}

/// Whether a setting says which data there is.
fn is_of_data(key: &str) -> bool {
    key == "data.preset" || key == "data.path"
}

/// Whether a value names a preset that is read from `data.path`, so that the two go together.
fn is_read_from_a_file(value: &Value) -> bool {
    value.as_str().and_then(Preset::named).is_some_and(|preset| preset.uci().is_some())
}

/// The value in the type of its setting, or an error that says what is expected.
fn fitting(key: &str, value: Value, source: &str) -> Result<Value> {
    let fits = |value: &Value| -> Result<(), String> {
        let mut table = to_table(&preset::for_tables());
        insert(&mut table, key, value.clone());
        Value::Table(table).try_into::<Config>().map(|_| ()).map_err(|e| e.message().trim().to_owned())
    };
    let why = match fits(&value) {
        Ok(()) => return Ok(value),
        Err(why) => why,
    };
    // 1e4 is a float in TOML; where a whole number is expected it is meant as one.
    if let Value::Float(number) = value
        && number.fract() == 0.0
        && number.abs() < 9e15
    {
        let whole = Value::Integer(number as i64);
        if fits(&whole).is_ok() {
            return Ok(whole);
        }
    }
    Err(Error::config(key, format!("{} (from {source})", in_words(&why, &value))))
}

/// What the reader of settings says, without the names of its types.
fn in_words(why: &str, value: &Value) -> String {
    let Some((_, expected)) = why.rsplit_once("expected ") else { return why.into() };
    let expected = match expected {
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number from 0 to 9223372036854775807",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a string" | "path string" => "a text",
        other => other,
    };
    let value = match value {
        Value::String(text) => format!("`{text}`"),
        other => other.to_string(),
    };
    format!("must be {expected}, is {value}")
}

/// Whether a variable is named like a setting without its table.
fn is_last_part(variable: &str) -> bool {
    let name = variable.to_lowercase();
    keys::KEYS.iter().any(|key| key.name.split_once('.').is_some_and(|(_, last)| last == name))
}

/// Starting values as a table.
fn to_table(base: &Config) -> Table {
    Table::try_from(base).unwrap_or_else(|e| unreachable!("starting values that TOML has no place for: {e}"))
}

fn insert(table: &mut Table, key: &str, value: Value) {
    if let Some((column, which)) = keys::bound(key) {
        let columns = table.entry(keys::COLUMNS).or_insert_with(|| Value::Table(Table::new()));
        if let Value::Table(columns) = columns
            && let Value::Table(bounds) = columns.entry(column).or_insert_with(|| Value::Table(Table::new()))
        {
            bounds.insert(which.into(), value);
        }
    } else if let Some((section, name)) = key.split_once('.')
        && let Some(Value::Table(section)) = table.get_mut(section)
    {
        section.insert(name.into(), value);
    }
}

fn remove(table: &mut Table, key: &str) {
    if let Some((section, name)) = key.split_once('.')
        && let Some(Value::Table(section)) = table.get_mut(section)
    {
        section.remove(name);
    }
}

/// Whether the settings describe the model of the file that training starts from.
fn agrees(config: &Config, file: &ModelFile, path: &Path) -> Result<()> {
    let spec = &file.plan.spec;
    let differs = |key: &str, file: String, wanted: String| {
        let what = format!("is {wanted}, but {} has {file}; leave it out to take the file's", path.display());
        Err(Error::config(key, what))
    };
    // First, as a model of another kind may not have the file's conditions.
    if config.model.kind != spec.kind {
        return differs("model.kind", spec.kind.name().into(), config.model.kind.name().into());
    }
    let wanted = config.model.spec(spec.dim, spec.cond_dim)?;
    macro_rules! same {
        ($($field:ident),*) => {
            $(if wanted.$field != spec.$field {
                let key = concat!("model.", stringify!($field));
                return differs(key, format!("{:?}", spec.$field), format!("{:?}", wanted.$field));
            })*
        };
    }
    same!(blocks, condition_on, mixing, mix_first, scale, width);
    if wanted.depth != spec.depth.min(crate::plan::spec::FULL_DEPTH) {
        return differs("model.depth", spec.depth.to_string(), wanted.depth.to_string());
    }
    // Its columns stay as they are.
    let standardize = file.x.standardize.is_some();
    if config.data.standardize != standardize {
        return differs("data.standardize", standardize.to_string(), config.data.standardize.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(assignments: &[&str]) -> Result<Config> {
        let mut layers = Layers::new();
        layers.assignments(&assignments.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>())?;
        layers.resolve()
    }

    fn message(assignments: &[&str]) -> String {
        set(assignments).unwrap_err().to_string()
    }

    #[test]
    fn columns_of_any_name_have_bounds() {
        let columns = set(&[
            "columns.theta_1.lower=0",
            "columns.theta_1.upper = 2.5",
            "columns.a.b.lower=1",
            "columns.\"a b\".lower=2",
            "columns.\"rate = 1/s\".upper=3",
            "columns.3.lower=-1e-30",
        ]);
        let columns = columns.unwrap().columns;
        let bounds = |name: &str| (columns[name].lower, columns[name].upper);
        assert_eq!(bounds("theta_1"), (Some(0.0), Some(2.5)));
        assert_eq!((bounds("a.b"), bounds("a b")), ((Some(1.0), None), (Some(2.0), None)));
        assert_eq!((bounds("rate = 1/s"), bounds("3")), ((None, Some(3.0)), (Some(-1e-30), None)));
        let mut layers = Layers::new();
        layers.toml("[columns.\"a.b\"]\nlower = 1\n[columns.c]\nupper = 2", Path::new("c.toml")).unwrap();
        let config = layers.resolve().unwrap();
        assert_eq!((config.columns["a.b"].lower, config.columns["c"].upper), (Some(1.0), Some(2.0)));
        let mut again = Layers::new();
        again.toml(&config.to_toml().unwrap(), Path::new("c.toml")).unwrap();
        assert_eq!(again.resolve().unwrap().columns, config.columns);
        for (wrong, what) in [
            ("columns.a.lower=x", "a number"),
            ("columns.a.lower=inf", "finite"),
            ("columns.a.upper=1e39", "leave it out"),
            ("columns.a.least=0", "columns.a.least"),
        ] {
            assert!(message(&[wrong]).contains(what), "{}", message(&[wrong]));
        }
        assert!(message(&["columns.a.lower=2", "columns.a.upper=2"]).contains("no room"));
    }

    #[test]
    fn values_are_toml_or_text() {
        let c = set(&[
            "train.lr=1e-3",
            "train.batch=1e4",
            "model.depth=full",
            "train.epochs=3",
            "data.path=dir/x.npy",
            "run.device=0",
            "train.shuffle=false",
            "data.columns=a, b",
            "train.noise=0",
        ]);
        let c = c.unwrap();
        assert_eq!((c.train.lr, c.train.batch, c.train.epochs, c.train.noise), (1e-3, Some(10_000), 3, 0.0));
        assert_eq!((c.run.device.as_str(), c.train.shuffle), ("0", false));
        assert_eq!(c.data.columns.unwrap().0, ["a", "b"]);
        assert_eq!(set(&["model.depth=2"]).unwrap().model.depth, super::super::Depth::Levels(2));
    }

    #[test]
    fn errors_name_key_value_and_source() {
        let text = message(&["train.lr=fast"]);
        assert!(text.contains("train.lr") && text.contains("fast") && text.contains("--set"), "{text}");
        let text = message(&["train.epochs=-1"]);
        assert!(text.contains("train.epochs") && text.contains("-1"), "{text}");
        let text = message(&["model.depth=deep"]);
        assert!(text.contains("\"full\" or a number"), "{text}");
        assert!(message(&["train.lrate=1"]).contains("did you mean `train.lr`"));
        assert!(message(&["train.lr"]).contains("key=value"));
        assert!(message(&["train.batch=1.5"]).contains("train.batch"));
        for (set, words) in [
            ("model.width=-1", "must be a whole number from 0 to 4294967295, is -1"),
            ("train.seed=18446744073709551615", "must be a whole number from 0 to 9223372036854775807, is"),
            ("train.lr=fast", "must be a number, is `fast`"),
            ("train.shuffle=maybe", "must be true or false, is `maybe`"),
            ("model.kind=flaw", "must be one of `flow`, `cinn`, `hint`, is `flaw`"),
        ] {
            assert!(message(&[set]).contains(words), "{}", message(&[set]));
        }
        let text = message(&["optimizer.momentum=1"]);
        assert!(text.contains("(from --set)") && !text.contains("did you mean"), "{text}");
    }

    #[test]
    fn later_sources_win_and_rivals_within_one_do_not() {
        assert!(message(&["model.width=3", "model.budget=100"]).contains("model.width"));
        let mut layers = Layers::new();
        layers.toml("[model]\nbudget = 5000\n[train]\nlr = 0.5\nseed = 4", Path::new("c.toml")).unwrap();
        let env = [("HINTFLOW_TRAIN__LR", "0.25"), ("HINTFLOW_TRAIN_LR", "1"), ("HINTFLOW_LOG", "1"), ("LR", "/")];
        let env = env.into_iter().chain([("HINTFLOW_LR", "1")]);
        let strange = layers.environment(env.map(|(k, v)| (k.into(), v.into()))).unwrap();
        assert_eq!(strange, ["HINTFLOW_TRAIN_LR", "HINTFLOW_LR"]);
        layers.flags([("train.seed", "9".to_owned(), "--seed")]).unwrap();
        layers.assignments(&["model.width=7".into()]).unwrap();
        let c = layers.resolve().unwrap();
        assert_eq!((c.model.width, c.model.budget, c.train.lr, c.train.seed), (Some(7), None, 0.25, 9));
    }

    #[test]
    fn a_later_exp_displaces_a_slope_and_one_beside_it_is_an_error() {
        assert!(message(&["model.slope=3", "model.scale=exp"]).contains("leave it out"));
        assert!(message(&["model.scale=exp", "model.slope=3"]).contains("leave it out"));
        for (scale, slope) in [("exp", None), ("atan", Some(3.0))] {
            let mut layers = Layers::new();
            layers.flags([("model.slope", "3".to_owned(), "the experiment")]).unwrap();
            layers.assignments(&[format!("model.scale={scale}")]).unwrap();
            assert_eq!(layers.resolve().unwrap().model.slope, slope);
        }
    }

    #[test]
    fn unknown_keys_of_files_and_environment_are_errors() {
        let mut layers = Layers::new();
        assert!(matches!(layers.toml("lr = 1", Path::new("c")), Err(Error::UnknownKey { .. })));
        assert!(matches!(layers.toml("[train]\nlrr = 1", Path::new("c")), Err(Error::UnknownKey { .. })));
        assert!(matches!(layers.toml("[train", Path::new("c")), Err(Error::Config { .. })));
        let env = [("HINTFLOW_TRAIN__LRR".to_owned(), "1".to_owned())];
        assert!(matches!(layers.environment(env), Err(Error::UnknownKey { .. })));
    }

    #[test]
    fn a_written_config_reads_back_equal() {
        for start in [&["data.preset=lens"][..], &["data.path=x.npy", "model.slope=1.5", "data.columns=[1, \"b\"]"]] {
            let config = set(start).unwrap();
            let mut layers = Layers::new();
            layers.toml(&config.to_toml().unwrap(), Path::new("c")).unwrap();
            assert_eq!(layers.resolve().unwrap(), config);
        }
    }
}

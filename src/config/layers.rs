//! Collects settings from their sources: presets < configuration file < environment < flags < `--set`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

use super::{Config, Preset, keys, preset, whole};
use crate::error::{Error, Result};
use crate::flow::ModelFile;
use crate::plan::Kind;

/// Settings that exclude each other: the later source wins, within one source it is an error.
const RIVALS: [(&str, &str); 3] =
    [("model.width", "model.budget"), ("model.slope", "model.max_log_scale"), ("data.preset", "data.path")];

/// Prefix of settings in the environment: `HINTFLOW_TRAIN__LR` is `train.lr`.
const PREFIX: &str = "HINTFLOW_";

/// Beginnings of a variable's name that look like a setting. Others are not ours.
const SECTIONS: [&str; 4] = ["MODEL_", "TRAIN_", "DATA_", "RUN_"];

/// Settings and where each came from, lowest precedence added first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Layers {
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
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Adds a configuration file. A relative path in it is relative to the working directory, as everywhere.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::UnknownKey`], [`Error::Config`] if it is no TOML or a value does not fit.
    pub(crate) fn file(&mut self, path: &Path) -> Result<()> {
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
    pub(crate) fn toml(&mut self, text: &str, path: &Path) -> Result<()> {
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
    pub(crate) fn environment(&mut self, variables: impl IntoIterator<Item = (String, String)>) -> Result<Vec<String>> {
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
    /// [`Error::Config`] if a value does not fit.
    pub(crate) fn flags<'a>(&mut self, flags: impl IntoIterator<Item = (&'a str, String, &'a str)>) -> Result<()> {
        self.layer += 1;
        for (key, value, flag) in flags {
            self.set_text(key, &value, flag)?;
        }
        Ok(())
    }

    /// Adds `--set key=value` assignments. A value is TOML where it can be read as such, otherwise text.
    ///
    /// # Errors
    /// [`Error::UnknownKey`], [`Error::Config`] if there is no `=` or the value does not fit.
    pub(crate) fn assignments(&mut self, assignments: &[String]) -> Result<()> {
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
    pub(crate) fn given(&self, key: &str) -> Option<String> {
        self.settings.get(key).map(|s| match &s.value {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        })
    }

    /// All choices made: what the sources gave on top of the starting values of the preset, of the model file
    /// (`model.init`) or of tables.
    ///
    /// # Errors
    /// [`Error::Config`] if a value is out of range or contradicts another one; errors of reading the model file.
    pub(crate) fn resolve(&self) -> Result<Config> {
        self.resolve_with(ModelFile::read)
    }

    /// As [`Layers::resolve`], with another way to read the model that `model.init` names.
    ///
    /// # Errors
    /// As [`Layers::resolve`].
    pub(crate) fn resolve_with(&self, read: impl Fn(&Path) -> Result<ModelFile>) -> Result<Config> {
        let init = self.given("model.init").map(PathBuf::from);
        self.resolve_from(init.map(|path| read(&path).map(|file| (path, file))).transpose()?)
    }

    /// As [`Layers::resolve`], but does not read the model file: for settings that hold its choices already, as those
    /// of a run folder do. The file may be gone.
    ///
    /// # Errors
    /// [`Error::Config`] if a value is out of range or contradicts another one.
    pub(crate) fn resolve_complete(&self) -> Result<Config> {
        self.resolve_from(None)
    }

    fn resolve_from(&self, init: Option<(PathBuf, ModelFile)>) -> Result<Config> {
        let mut base = match self.given("data.preset").as_deref().and_then(Preset::named) {
            Some(preset) => preset.config(),
            None => {
                let of_init = init.as_ref().map(|(_, file)| file.plan.spec.coupling.name().to_owned());
                // Settings of a whole run that is older than splines.
                let is_older = ["model.scale", "model.init_sigma"].iter().all(|key| self.given(key).is_some());
                let kind_of_init = init.as_ref().map(|(_, file)| file.plan.spec.kind.name().to_owned());
                let kind = self.given("model.kind").or(kind_of_init);
                match self.given("model.coupling").or(of_init).as_deref() {
                    _ if kind.as_deref() == Some(Kind::Inn.name()) => preset::for_inn_tables(),
                    Some("affine") => preset::for_affine_tables(),
                    None if is_older => preset::before_splines(),
                    _ => preset::for_tables(),
                }
            }
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
        // Splines begin by the inputs of each layer, on the data sets of the paper too.
        if self.given("model.coupling").as_deref() == Some("spline") {
            base.model.init_sigma = None;
        }
        if let Some((_, file)) = &init {
            base.model.adopt(&file.plan.spec);
            base.data.standardize = file.x.standardize.is_some();
            base.data.squash = file.x.squash;
            base.data.regression = file.x.regression.is_some();
        }
        let mut table = to_table(&base);
        let is_read = base.data.preset.is_some_and(|preset| preset.uci().is_some());
        for (key, setting) in &self.settings {
            if let Some((rival, _)) = rival_of(key).filter(|_| !(is_read && is_of_data(key))) {
                remove(&mut table, rival);
            }
            insert(&mut table, key, setting.value.clone());
        }
        // The function `exp` has no slope, so it displaces that of an earlier source or of the model file.
        let layer = |key| self.settings.get(key).map_or(0, |setting: &Setting| setting.layer);
        if self.given("model.scale").as_deref() == Some("exp") && layer("model.slope") < layer("model.scale") {
            remove(&mut table, "model.slope");
        }
        if self.given("model.scale").as_deref() == Some("exp") && self.given("model.max_log_scale").is_none() {
            remove(&mut table, "model.max_log_scale");
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
    Err(Error::config(key, format!("{} (from {source})", in_words(key, &why, &value))))
}

/// What the reader of settings says, without the names of its types.
fn in_words(key: &str, why: &str, value: &Value) -> String {
    let Some((_, expected)) = why.rsplit_once("expected ") else { return why.into() };
    let whole = whole::expected(key);
    let expected = match expected {
        "u32" | "u64" | "usize" => &whole,
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
    if let Some((column, which)) = keys::of_column(key) {
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
    if wanted.depth != spec.depth {
        return differs("model.depth", spec.depth.to_string(), wanted.depth.to_string());
    }
    // Its columns stay as they are.
    let standardize = file.x.standardize.is_some();
    if config.data.standardize != standardize {
        return differs("data.standardize", standardize.to_string(), config.data.standardize.to_string());
    }
    // That there is none may be since no column gained by it.
    if file.x.regression.is_some() && !config.data.regression {
        return differs("data.regression", "true".into(), "false".into());
    }
    let squash = file.x.squash.unwrap_or(0.0);
    if let Some(wanted) = config.data.squash.filter(|&wanted| wanted != squash) {
        return differs("data.squash", squash.to_string(), wanted.to_string());
    }
    Ok(())
}

#[cfg(test)]
mod tests;

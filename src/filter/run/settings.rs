//! What a run of a filter was asked for, as the file `filter.toml` of its folder.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::atomic::{Overwrite, write_atomic};
use crate::data::lotka_volterra::LotkaVolterra;
use crate::error::{Error, Result};
use crate::filter::external::{Columns, Command, External, Format};
use crate::filter::{HintSettings, Method, System};

/// Everything that decides a filter's results, but for the observations and the states at the beginning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Settings {
    /// Version of hintflow.
    pub version: String,
    pub seed: u64,
    /// SHA-256 of the observations that it began with; older runs have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observations_sha256: Option<String>,
    pub method: MethodSettings,
    pub system: SystemSettings,
}

/// A [`Method`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase", tag = "name")]
pub(crate) enum MethodSettings {
    Hint { rows: usize, validation: usize, warm: bool, quick: bool, set: Vec<String> },
    Inn { rows: usize, validation: usize, warm: bool, quick: bool, set: Vec<String> },
    Enkf { members: usize },
    Particle { particles: usize },
}

/// A system that the command knows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", tag = "name")]
pub(crate) enum SystemSettings {
    LotkaVolterra { process_noise: f64, observation_noise: f64 },
    Command { command: String, format: Format, timeout_s: f64, columns: Vec<ColumnSettings>, observations: usize },
}

/// A column of the state of a command's system.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnSettings {
    pub name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
}

impl From<&Method> for MethodSettings {
    fn from(method: &Method) -> Self {
        match method {
            Method::Hint(HintSettings { rows, validation, warm, quick, set }) => {
                Self::Hint { rows: *rows, validation: *validation, warm: *warm, quick: *quick, set: set.clone() }
            }
            Method::Inn(HintSettings { rows, validation, warm, quick, set }) => {
                Self::Inn { rows: *rows, validation: *validation, warm: *warm, quick: *quick, set: set.clone() }
            }
            Method::EnsembleKalman { members } => Self::Enkf { members: *members },
            Method::Particle { particles } => Self::Particle { particles: *particles },
        }
    }
}

impl MethodSettings {
    /// Its name for readers.
    pub(crate) fn label(&self) -> &'static str {
        match self {
            Self::Hint { .. } => "HINT",
            Self::Inn { .. } => "INN",
            Self::Enkf { .. } => "EnKF",
            Self::Particle { .. } => "particle filter",
        }
    }

    /// Whether a step begins with the weights of the step before.
    pub(super) fn is_warm(&self) -> bool {
        matches!(self, Self::Hint { warm: true, .. } | Self::Inn { warm: true, .. })
    }

    /// The method.
    pub(crate) fn method(&self) -> Method {
        match self.clone() {
            Self::Hint { rows, validation, warm, quick, set } => {
                Method::Hint(HintSettings { rows, validation, warm, quick, set })
            }
            Self::Inn { rows, validation, warm, quick, set } => {
                Method::Inn(HintSettings { rows, validation, warm, quick, set })
            }
            Self::Enkf { members } => Method::EnsembleKalman { members },
            Self::Particle { particles } => Method::Particle { particles },
        }
    }
}

impl SystemSettings {
    /// Its name in names of folders.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::LotkaVolterra { .. } => "lotka-volterra",
            Self::Command { .. } => "filter",
        }
    }

    /// The system; `start` are states at the beginning of a command's, `stop` ends it.
    pub(crate) fn system<'s>(&self, start: Vec<f32>, stop: &'s AtomicBool) -> Result<Box<dyn System + 's>> {
        Ok(match self {
            Self::LotkaVolterra { process_noise, observation_noise } => {
                Box::new(LotkaVolterra::new(*process_noise, *observation_noise)?)
            }
            Self::Command { command, format, timeout_s, columns, observations } => {
                let timeout = timeout(*timeout_s)?;
                let command = Command { text: command.clone(), format: *format, timeout, stop };
                let known = Columns {
                    names: columns.iter().map(|column| column.name.clone()).collect(),
                    bounds: columns.iter().map(|column| (column.lower, column.upper)).collect(),
                    counts: [columns.len(), *observations],
                };
                Box::new(External::new(command, known, start))
            }
        })
    }
}

/// A timeout from seconds.
pub(crate) fn timeout(seconds: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|timeout| !timeout.is_zero())
        .ok_or_else(|| Error::config("--timeout", format!("must be a number of seconds greater than 0, is {seconds}")))
}

impl Settings {
    /// Reads the settings of a run.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Format`] if the file holds something else.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|e| Error::io("read", path, e))?;
        toml::from_str(&text).map_err(|e| {
            let line = e.span().map(|span| 1 + text[..span.start].matches('\n').count());
            let line = line.map(|line| format!("line {line}: ")).unwrap_or_default();
            let what = "correct it or put back a copy of it, or begin the filter anew";
            Error::format(path, format!("is no settings of a filter: {line}{}; {what}", e.message()))
        })
    }

    /// Writes them.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let text = toml::to_string(self).map_err(|e| Error::format(path, e.to_string()))?;
        let head = "# All settings of this filter; `hintflow filter --resume` goes on by them.\n\n";
        write_atomic(path, Overwrite::Yes, |file| write!(file, "{head}{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_come_back() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("filter.toml");
        let column = |name: &str, lower| ColumnSettings { name: name.into(), lower, upper: None };
        let systems = [
            SystemSettings::LotkaVolterra { process_noise: 0.05, observation_noise: 0.1 },
            SystemSettings::Command {
                command: "python3 \"my system.py\"".into(),
                format: Format::Csv,
                timeout_s: 0.5,
                columns: vec![column("a", Some(0.0)), column("b", None)],
                observations: 3,
            },
        ];
        let quick = Method::Hint(HintSettings::quick().set("model.width", 8));
        let methods = [
            Method::Hint(HintSettings::default().set("train.epochs", 3)),
            Method::particle(9),
            Method::Inn(HintSettings::quick().set("train.epochs", 3)),
            Method::ensemble_kalman(7),
            quick,
        ];
        for system in systems {
            for method in &methods {
                let method_settings = MethodSettings::from(method);
                assert_eq!(method_settings.method(), *method);
                let settings = Settings {
                    version: "1".into(),
                    seed: 5,
                    observations_sha256: Some("0a".into()),
                    method: method_settings,
                    system: system.clone(),
                };
                settings.write(&path).unwrap();
                assert_eq!(Settings::read(&path).unwrap(), settings);
            }
        }
        std::fs::write(&path, "seed = 1").unwrap();
        assert!(matches!(Settings::read(&path), Err(Error::Format { .. })));
        assert!([0.0, -1.0, f64::NAN, f64::INFINITY].iter().all(|seconds| timeout(*seconds).is_err()));
    }
}

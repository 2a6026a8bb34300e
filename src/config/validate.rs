//! Ranges of all settings, and settings that do not go together.

use super::{Config, CouplingKind, Given, Preset, ScaleKind, Train, whole};
use crate::error::{Error, Result};
use crate::plan::Kind;

impl Train {
    /// Checks every range.
    pub(crate) fn validate(&self) -> Result<()> {
        let t = self;
        for (key, value) in [
            ("train.epochs", Some(t.epochs)),
            ("train.batch", t.batch),
            ("train.batches_per_epoch", t.batches_per_epoch),
            ("train.cycles", t.cycles),
            ("train.retries", Some(t.retries)),
        ] {
            value.map_or(Ok(()), |value| whole::check(key, value))?;
        }
        for (key, value) in [
            ("train.lr", t.lr),
            ("train.lr_final", t.lr_final),
            ("train.warmup_factor", t.warmup_factor),
            ("train.eps", t.eps),
            ("train.grad_clamp", t.grad_clamp),
        ] {
            number(key, value, "more than 0", |v| v > 0.0)?;
        }
        for (key, value) in [("train.beta1", t.beta1), ("train.beta2", t.beta2)] {
            number(key, value, "at least 0 and less than 1", |v| v >= 0.0 && (v as f32) < 1.0)?;
        }
        let share = |v| (0.0..=0.9).contains(&v);
        t.dropout.map_or(Ok(()), |v| number("train.dropout", v, "at least 0 and at most 0.9", share))?;
        for (key, value) in [("train.l2", t.l2), ("train.noise", t.noise)] {
            number(key, value, "0 or more", |v| v >= 0.0)?;
        }
        number("train.clip_norm", t.clip_norm, "more than 0, or 0 to leave it out", |v| v == 0.0 || v as f32 > 0.0)?;
        // More than the whole of a weight would turn its sign.
        let decays = |v: f64| v >= 0.0 && v * t.lr.max(t.lr_final) < 1.0;
        let what = "0 or more, and less than 1 / train.lr";
        t.decay.map_or(Ok(()), |v| number("train.decay", v, what, decays))?;
        number("train.average", t.average, "at least 0 and less than 1 (0: no average)", |v| {
            v >= 0.0 && (v as f32) < 1.0
        })
    }
}

impl Config {
    /// Checks every range, and that no two settings contradict each other.
    ///
    /// # Errors
    /// [`Error::Config`] naming the setting, its value and the values it may have.
    pub(crate) fn validate(&self) -> Result<()> {
        self.model_ranges()?;
        self.train.validate()?;
        self.data_ranges()?;
        self.has_a_place_in_toml()
    }

    /// TOML has no integers of 2^63 or more and no text that is not Unicode, and the resolved settings are written as
    /// TOML.
    pub(super) fn has_a_place_in_toml(&self) -> Result<()> {
        let (m, t, d, r) = (&self.model, &self.train, &self.data, &self.run);
        for (key, value) in [
            ("model.budget", m.budget),
            ("train.epochs", Some(t.epochs)),
            ("train.batches_per_epoch", t.batches_per_epoch),
            ("train.batch", t.batch),
            ("train.warmup_epochs", Some(t.warmup_epochs)),
            ("train.warmup_steps", Some(t.warmup_steps)),
            ("train.seed", Some(t.seed)),
            ("train.patience", Some(t.patience)),
            ("train.cooldown", Some(t.cooldown)),
            ("train.retries", Some(t.retries)),
            ("train.cycles", t.cycles),
            ("data.rows", d.rows),
            ("data.test_rows", d.test_rows),
            ("data.seed", Some(d.seed)),
            ("run.threads", Some(r.threads)),
            ("run.checkpoint_every", r.checkpoint_every),
        ] {
            value.map_or(Ok(()), |value| whole::check(key, value))?;
        }
        let given = d.given.as_ref().and_then(Given::file);
        let paths = [
            ("model.init", m.init.as_deref()),
            ("data.path", d.path.as_deref()),
            ("data.given", given),
            ("run.out", r.out.as_deref()),
        ];
        for (key, path) in paths {
            if let Some(path) = path.filter(|p| p.to_str().is_none()) {
                let what = format!("{} is not Unicode, which settings must be; rename it", path.display());
                return Err(Error::config(key, what));
            }
        }
        Ok(())
    }

    fn model_ranges(&self) -> Result<()> {
        let m = &self.model;
        let sizes = [
            ("model.blocks", Some(m.blocks)),
            ("model.width", m.width),
            ("model.latent", m.latent),
            ("model.bins", m.bins),
        ];
        for (key, value) in sizes {
            value.map_or(Ok(()), |value| whole::check(key, value))?;
        }
        m.budget.map_or(Ok(()), |v| whole::check("model.budget", v))?;
        m.init_sigma.map_or(Ok(()), |v| number("model.init_sigma", v, "0 or more", |v| v >= 0.0))?;
        if m.coupling != CouplingKind::Spline {
            let of_splines = [
                ("model.bins", m.bins.is_some()),
                ("model.box", m.half_width.is_some()),
                ("model.min_slope", m.min_slope.is_some()),
            ];
            if let Some((key, _)) = of_splines.into_iter().find(|(_, set)| *set) {
                let what = "belongs to model.coupling = \"spline\"; set that too, or leave this out";
                return Err(Error::config(key, what));
            }
        }
        if let Some(most) = m.max_log_scale {
            number("model.max_log_scale", most, "more than 0", |v| v > 0.0)?;
            if m.scale == ScaleKind::Exp {
                let what = "belongs to model.scale = \"atan\": with \"exp\" nothing is bounded; leave one of them out";
                return Err(Error::config("model.max_log_scale", what));
            }
        }
        if let Some(slope) = m.slope {
            number("model.slope", slope, "more than 0", |v| v > 0.0)?;
            if m.scale == ScaleKind::Exp {
                return Err(Error::config(
                    "model.slope",
                    "belongs to model.scale = \"atan\"; with \"exp\" leave it out, or set model.scale = \"atan\" too",
                ));
            }
        }
        if m.width.is_some() && m.budget.is_some() {
            return Err(Error::config(
                "model.width",
                "contradicts `model.budget`, which is set too; give only one of them",
            ));
        }
        // Everything else about the model, with the smallest number of columns.
        m.spec(1, u32::from(m.kind != Kind::Flow)).map(|_| ()).or_else(|e| match e {
            // Whether a budget suffices depends on the data.
            Error::Config { key, .. } if key == "model.budget" => Ok(()),
            other => Err(other),
        })
    }

    fn data_ranges(&self) -> Result<()> {
        let d = &self.data;
        number("data.test_noise", d.test_noise, "0 or more", |v| v >= 0.0)?;
        if let Some(share) = d.validation {
            number("data.validation", share, "a share of the rows, at least 0 and less than 1", |v| {
                (0.0..1.0).contains(&v)
            })?;
        }
        d.rows.map_or(Ok(()), |v| whole::check("data.rows", v))?;
        whole::check("run.threads", self.run.threads)?;
        if self.run.device.trim().is_empty() {
            return Err(Error::config("run.device", "names no device; give auto, cpu, gpu or an adapter"));
        }
        self.run.checkpoint_every.map_or(Ok(()), |v| whole::check("run.checkpoint_every", v))?;
        self.conditions()?;
        self.of_inn()?;
        for (name, column) in &self.columns {
            if let Some((which, mistake)) = column.mistake() {
                return Err(Error::config(format!("columns.{name}{which}"), mistake));
            }
        }
        if let Some(squash) = d.squash {
            let range = "0, or at least 0.001 and at most 1000000";
            number("data.squash", squash, range, |v| v == 0.0 || (1e-3..=1e6).contains(&v))?;
        }
        let only = |key: &str, what: &str, set: bool| if set { Err(Error::config(key, what)) } else { Ok(()) };
        if d.preset != Some(Preset::Lens) {
            only("data.outline", "is for the simulated data set lens", d.outline.is_some())?;
        }
        if let Some(preset) = d.preset.filter(|preset| preset.uci().is_some()) {
            let name = preset.name();
            only(
                "data.validation",
                &format!("is for tables; {name} has test rows of its own"),
                d.validation.is_some(),
            )?;
            only("data.columns", &format!("is for tables; {name} is modelled whole"), d.columns.is_some())?;
            only(
                "data.test_rows",
                &format!("is for simulated data sets; {name} has test rows of its own"),
                d.test_rows.is_some(),
            )?;
            only("model.kind", &format!("must be `flow`: {name} has no conditions"), self.model.kind != Kind::Flow)
        } else if d.preset.is_some() {
            let simulated = "is for tables; a simulated data set has test rows of its own (data.test_rows)";
            only("data.validation", simulated, d.validation.is_some())?;
            only("data.columns", "is for tables; a simulated data set is modelled whole", d.columns.is_some())
        } else {
            only("data.test_rows", "is for simulated data sets; for a table set data.validation", d.test_rows.is_some())
        }
    }
}

impl Config {
    /// Whether there are conditions where the model needs some, and none where it has none.
    fn conditions(&self) -> Result<()> {
        let d = &self.data;
        match (self.model.kind, &d.given) {
            (Kind::Flow, Some(_)) => {
                let what = "a `flow` has no conditions; take --set model.kind=hint or cinn, or leave it out";
                Err(Error::config("data.given", what))
            }
            (Kind::Cinn | Kind::Hint | Kind::Inn, Some(_)) if d.preset.is_some() => {
                let what = "is for tables; the simulated data set has observations of its own; leave it out";
                Err(Error::config("data.given", what))
            }
            (kind @ (Kind::Cinn | Kind::Hint | Kind::Inn), None) if d.preset.is_none() => {
                let what = format!(
                    "a `{}` needs conditions: --given with a table of as many rows, or with the names of columns",
                    kind.name()
                );
                Err(Error::config("data.given", what))
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn number(key: &str, value: f64, range: &str, within: impl Fn(f64) -> bool) -> Result<()> {
    // The engines compute in f32, where a huge number would be infinite.
    let fits = value.is_finite() && (value as f32).is_finite() && within(value);
    if fits { Ok(()) } else { Err(Error::config(key, format!("must be {range}, is {value}"))) }
}

#[cfg(test)]
mod tests {
    use super::super::Given;
    use super::super::preset::{Preset, for_tables};
    use crate::data::columns::units::{Choice, ColumnSetting};

    #[test]
    fn starting_values_are_valid() {
        for_tables().validate().unwrap();
        for preset in Preset::ALL {
            preset.config().validate().unwrap();
        }
    }

    #[test]
    fn out_of_range_values_are_named() {
        type Change = fn(&mut super::Config);
        let cases: [(&str, Change); 26] = [
            ("train.clip_norm", |c| c.train.clip_norm = -1.0),
            ("train.clip_norm", |c| c.train.clip_norm = f64::INFINITY),
            ("train.decay", |c| c.train.decay = Some(-0.1)),
            ("train.decay", |c| c.train.decay = Some(1e4)),
            ("train.average", |c| c.train.average = 1.0),
            ("train.average", |c| c.train.average = f64::NAN),
            ("train.average", |c| c.train.average = 1.0 - 1e-12),
            ("train.retries", |c| c.train.retries = 31),
            ("train.warmup_steps", |c| c.train.warmup_steps = 1 << 63),
            ("data.squash", |c| c.data.squash = Some(-1.0)),
            ("data.squash", |c| c.data.squash = Some(f64::NAN)),
            ("columns.a.transform", |c| {
                let column = ColumnSetting { lower: Some(0.0), upper: Some(1.0), transform: Some(Choice::Log) };
                c.columns.insert("a".into(), column);
            }),
            ("train.seed", |c| c.train.seed = 1 << 63),
            ("data.seed", |c| c.data.seed = u64::MAX),
            ("run.checkpoint_every", |c| c.run.checkpoint_every = Some(1 << 63)),
            ("train.warmup_epochs", |c| c.train.warmup_epochs = 1 << 63),
            ("run.threads", |c| c.run.threads = 1025),
            ("run.device", |c| c.run.device = " ".into()),
            ("train.epochs", |c| c.train.epochs = 0),
            ("train.lr", |c| c.train.lr = f64::NAN),
            ("train.beta2", |c| c.train.beta2 = 1.0),
            ("train.noise", |c| c.train.noise = -1.0),
            ("data.validation", |c| c.data.validation = Some(1.0)),
            ("data.test_rows", |c| c.data.test_rows = Some(1)),
            ("model.width", |c| c.model.width = Some(0)),
            ("data.given", |c| c.data.given = Some(Given::of_text("y.npy"))),
        ];
        for (key, change) in cases {
            let mut config = for_tables();
            change(&mut config);
            let text = config.validate().unwrap_err().to_string();
            assert!(text.contains(key), "{key}: {text}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn paths_that_are_not_unicode_are_named() {
        use std::os::unix::ffi::OsStrExt;
        let mut config = for_tables();
        config.data.path = Some(std::ffi::OsStr::from_bytes(b"\xff.npy").into());
        assert!(config.to_toml().unwrap_err().to_string().contains("data.path"));
    }
}

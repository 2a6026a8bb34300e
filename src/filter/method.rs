//! The methods by name. Each has a file of its own; another one is a variant here.

use super::hint::{self, Hint};
use super::kalman::EnsembleKalman;
use super::particle::Particles;
use super::update::Update;
use crate::config::{Config, Train};
use crate::error::{Error, Result};
use crate::plan::Kind;

/// How a filter makes of prior states and an observation the states of the posterior.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Method {
    /// A flow is trained on simulated states and observations, and its posterior sampled.
    Hint(HintSettings),
    /// The same with an `inn`, the paper's baseline: it has no evidence, and tells the observation from the state, so that
    /// noisy observations are not to its taste.
    Inn(HintSettings),
    /// The stochastic ensemble Kalman filter: exact for linear-Gaussian systems.
    EnsembleKalman {
        /// Rows of the ensemble, at least 2.
        members: usize,
    },
    /// The bootstrap particle filter, which needs a likelihood.
    Particle {
        /// Number of particles, at least 2.
        particles: usize,
    },
}

impl Method {
    /// HINT with the paper's settings.
    pub fn hint() -> Self {
        Self::Hint(HintSettings::default())
    }

    /// An INN with the paper's settings.
    pub fn inn() -> Self {
        Self::Inn(HintSettings::default())
    }

    /// The ensemble Kalman filter with so many members.
    pub fn ensemble_kalman(members: usize) -> Self {
        Self::EnsembleKalman { members }
    }

    /// The particle filter with so many particles.
    pub fn particle(particles: usize) -> Self {
        Self::Particle { particles }
    }

    /// What carries out its steps.
    pub(crate) fn update(&self) -> Result<Box<dyn Update>> {
        let update: Box<dyn Update> = match self {
            Self::Hint(settings) => Box::new(settings.filter(Kind::Hint)?),
            Self::Inn(settings) => Box::new(settings.filter(Kind::Inn)?),
            Self::EnsembleKalman { members } => Box::new(EnsembleKalman { members: *members }),
            Self::Particle { particles } => Box::new(Particles { particles: *particles }),
        };
        let (name, rows, least) = match self {
            Self::Hint(settings) | Self::Inn(settings) => ("rows", settings.rows, hint::LEAST_ROWS),
            Self::EnsembleKalman { members } => ("members", *members, 2),
            Self::Particle { particles } => ("particles", *particles, 2),
        };
        if rows < least || u32::try_from(update.members()).is_err() {
            return Err(Error::argument(name, format!("is {rows}, must be at least {least} and less than 2^32")));
        }
        Ok(update)
    }
}

/// How HINT filters: the paper's settings, unless others are chosen.
#[derive(Clone, Debug, PartialEq)]
#[must_use = "settings do nothing until they are given to a method"]
pub struct HintSettings {
    pub(crate) rows: usize,
    pub(crate) validation: usize,
    pub(crate) warm: bool,
    /// Whether the settings below go on top of the quick ones, and not of the paper's.
    pub(crate) quick: bool,
    /// Settings of model and training, `key=value`.
    pub(crate) set: Vec<String>,
}

impl Default for HintSettings {
    /// 64,000 simulations a step, ten blocks without recursion of 10^6 weights together, 50 epochs of batches of 500.
    fn default() -> Self {
        let rows = hint::PAPER_ROWS;
        Self { rows, validation: rows / 16, warm: true, quick: false, set: Vec::new() }
    }
}

impl HintSettings {
    /// A tenth of the weights, fewer simulations and epochs: a step in seconds.
    pub fn quick() -> Self {
        Self { quick: true, ..Self::default().rows(hint::QUICK_ROWS) }
    }

    /// Simulations that a step is trained on, at least 100; a sixteenth more judge the training.
    pub fn rows(self, rows: usize) -> Self {
        Self { rows, validation: rows / 16, ..self }
    }

    /// Whether a step begins with the weights of the step before.
    pub fn warm(self, warm: bool) -> Self {
        Self { warm, ..self }
    }

    /// A setting of the model or its training, as `hintflow train --set` takes it: `("train.epochs", 10)`.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.set.push(format!("{key}={}", value.to_string()));
        self
    }

    /// All settings of model and training, for a kind of model.
    pub(crate) fn config(&self, kind: Kind) -> Result<Config> {
        let quick = if self.quick { &hint::QUICK[..] } else { &[] };
        let paper = if kind == Kind::Inn { &hint::PAPER_INN[..] } else { &hint::PAPER[..] };
        let config = hint::settings(&[paper, quick].concat(), &self.set)?;
        let (batch, rows) = (config.train.batch.unwrap_or(1), self.rows as u64);
        // A small ensemble is one batch.
        let train = Train { batch: Some(batch.min(rows.max(1))), ..config.train };
        Ok(Config { train, ..config })
    }

    fn filter(&self, kind: Kind) -> Result<Hint> {
        let Self { rows, validation, warm, .. } = *self;
        Ok(Hint { config: self.config(kind)?, rows, validation, warm, weights: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_go_on_top_of_the_papers_and_the_quick_ones() {
        let model = |settings: HintSettings| settings.config(Kind::Hint).unwrap().model;
        let (paper, quick) = (model(HintSettings::default()), model(HintSettings::quick()));
        assert_eq!((paper.blocks, paper.budget, quick.budget), (10, Some(1_000_000), Some(100_000)));
        // A width takes the place of either budget.
        for settings in [HintSettings::default(), HintSettings::quick()] {
            let own = model(settings.set("model.width", 8));
            assert_eq!((own.width, own.budget), (Some(8), None));
        }
        let train = HintSettings::default().config(Kind::Hint).unwrap().train;
        assert_eq!((train.epochs, train.batch, train.lr, train.lr_final), (50, Some(500), 0.01, 0.001));
        assert_eq!(HintSettings::default().rows(100).config(Kind::Hint).unwrap().train.batch, Some(100));
        assert!(HintSettings::default().set("train.seed", 3).config(Kind::Hint).is_err());
    }

    #[test]
    fn too_few_rows_are_told_by_the_name_of_their_setting() {
        let rows = |rows| HintSettings::default().rows(rows);
        for (method, name, least) in [
            (Method::Hint(rows(99)), "rows", "is 99, must be at least 100"),
            (Method::Inn(rows(1)), "rows", "is 1,"),
            (Method::ensemble_kalman(1), "members", "at least 2"),
            (Method::particle(0), "particles", "is 0"),
        ] {
            let Err(Error::Argument { name: told, what }) = method.update().map(drop) else { panic!("{method:?}") };
            assert!(told == name && what.contains(least), "{told}: {what}");
        }
        let fine = [Method::Hint(rows(100)), Method::ensemble_kalman(2), Method::particle(2)];
        assert!(fine.iter().all(|method| method.update().is_ok()));
    }
}

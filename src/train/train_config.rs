//! How a library asks for a training.

use crate::config::preset::{for_affine_tables, for_inn_tables, for_tables};
use crate::config::{CouplingKind, Keep, Memory, Train};
use crate::error::{Error, Result};
use crate::plan::Kind;

/// How a flow is trained. What is not set is chosen by what the flow's couplings are and by the number of rows, as the
/// command line does for tables.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "settings do nothing until they are given to a trainer"]
pub struct TrainConfig {
    epochs: Option<u64>,
    batch: Option<u64>,
    learning_rate: Option<f64>,
    noise: Option<f64>,
    dropout: Option<f64>,
    weight_decay: Option<f64>,
    cycles: Option<u64>,
    average: Option<f64>,
    clip_norm: Option<f64>,
    patience: Option<u64>,
    retries: Option<u64>,
    keep_last: bool,
    memory: Option<Memory>,
    seed: Option<u64>,
}

impl TrainConfig {
    /// Epochs: passes over the training rows, or several of small tables. 60 of splines; 400 of affine couplings, at most.
    pub fn epochs(mut self, epochs: u64) -> Self {
        self.epochs = Some(epochs);
        self
    }

    /// Rows of a batch. A 64th of the training rows of splines, a hundredth of affine couplings, within bounds.
    pub fn batch(mut self, rows: u64) -> Self {
        self.batch = Some(rows);
        self
    }

    /// The learning rate at the start; its fall is that of the defaults, in proportion. 0.003.
    pub fn learning_rate(mut self, rate: f64) -> Self {
        self.learning_rate = Some(rate);
        self
    }

    /// Standard deviation of the noise that is added to x of each batch, in standard deviations of its column. 0.003.
    pub fn noise(mut self, sigma: f64) -> Self {
        self.noise = Some(sigma);
        self
    }

    /// Probability of a hidden unit to be dropped in a step, of which the nearest multiple of 1/256 counts. By the number
    /// of rows.
    pub fn dropout(mut self, probability: f64) -> Self {
        self.dropout = Some(probability);
        self
    }

    /// Decoupled decay of the weight matrices, times the rate. By the number of rows.
    pub fn weight_decay(mut self, decay: f64) -> Self {
        self.weight_decay = Some(decay);
        self
    }

    /// Falls of the learning rate in all; each begins from the best model so far, with a ninth of the weight decay of the
    /// one before. 2 of small tables, of which validation rows then say how much decay is good; else 1.
    pub fn cycles(mut self, cycles: u64) -> Self {
        self.cycles = Some(cycles);
        self
    }

    /// Decay of the moving average of the weights, which is then the model that is scored and kept; 0: no average. 0.99
    /// of splines, none of affine couplings.
    pub fn average(mut self, decay: f64) -> Self {
        self.average = Some(decay);
        self
    }

    /// Bound on the length of the whole gradient; 0: none. 5 for splines, none for affine couplings.
    pub fn clip_norm(mut self, length: f64) -> Self {
        self.clip_norm = Some(length);
        self
    }

    /// Epochs without a better score of the validation rows after which the training cools down and ends; 0: never. 40.
    pub fn patience(mut self, epochs: u64) -> Self {
        self.patience = Some(epochs);
        self
    }

    /// How often a training that diverges goes back to its last good model and on with half the rate. 3.
    pub fn retries(mut self, times: u64) -> Self {
        self.retries = Some(times);
        self
    }

    /// Keeps the last model, instead of that which scored the validation rows best.
    pub fn keep_last(mut self) -> Self {
        self.keep_last = true;
        self
    }

    /// What is kept for the backward pass: everything ([`Memory::Stored`], the default), or what cannot be computed again.
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Seed of the order of rows, of noise and dropout. 1.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// All settings, for a kind of model with a kind of couplings.
    pub(super) fn settings(&self, kind: Kind, coupling: CouplingKind) -> Result<Train> {
        let mut train = match (kind, coupling) {
            (Kind::Inn, _) => for_inn_tables(),
            (_, CouplingKind::Affine) => for_affine_tables(),
            (_, CouplingKind::Spline) => for_tables(),
        }
        .train;
        if let Some(rate) = self.learning_rate {
            train.lr_final *= rate / train.lr;
            train.lr = rate;
        }
        fn take<T>(to: &mut T, from: Option<T>) {
            if let Some(value) = from {
                *to = value;
            }
        }
        take(&mut train.epochs, self.epochs);
        take(&mut train.noise, self.noise);
        take(&mut train.average, self.average);
        take(&mut train.clip_norm, self.clip_norm);
        take(&mut train.patience, self.patience);
        take(&mut train.retries, self.retries);
        take(&mut train.memory, self.memory);
        take(&mut train.seed, self.seed);
        if self.keep_last {
            train.keep = Keep::Last;
        }
        train.batch = self.batch.or(train.batch);
        train.dropout = self.dropout.or(train.dropout);
        train.decay = self.weight_decay.or(train.decay);
        train.cycles = self.cycles.or(train.cycles);
        train.validate().map_err(as_argument)?;
        Ok(train)
    }
}

/// An error that names a setting of a training, as one of the argument that stands for it.
pub(super) fn as_argument(error: Error) -> Error {
    let Error::Config { key, what } = error else { return error };
    let name = match key.trim_start_matches("train.") {
        "lr" | "lr_final" => "learning_rate",
        "decay" => "weight_decay",
        other => other,
    };
    let what = what.replace("train.lr", "the learning rate").replace(", see data.validation", " for validation");
    Error::argument(name, what)
}

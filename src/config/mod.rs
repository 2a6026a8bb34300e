//! Settings of a training: one tree of tables, the same names in TOML files, in the environment and on the command
//! line.
//!
//! [`Config`] is the whole tree, in which what depends on the rows may be absent until it is [`Resolved`]; [`Layers`] collects settings from their sources in order of
//! precedence and names the source in every error; [`keys`] lists all names with their meaning; [`preset`] holds the
//! starting values: the paper's for a named data set, sensible ones for a table of any size.

mod columns;
mod differences;
mod given;
mod inn;
pub(crate) mod keys;
mod layers;
mod log;
pub(crate) mod preset;
mod resolved;
mod validate;
mod whole;

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub(crate) use columns::Columns;
pub(crate) use differences::Difference;
pub(crate) use given::Given;
pub(crate) use layers::Layers;
pub(crate) use log::{Log, Logs};
pub(crate) use preset::Preset;
pub(crate) use resolved::{KnownRows, Resolved, Training};
pub(crate) use whole::MOST_THREADS;

use crate::data::columns::units::ColumnSetting;
use crate::data::files::Advice;
use crate::data::files::text::{Decimal, Separator, TextSettings};
use crate::data::shapes::lens::Outline;
use crate::error::Result;
pub(crate) use crate::optim::Fall;
use crate::optim::{Adam, Schedule};
pub(crate) use crate::plan::Depth;
use crate::plan::budget::{scale_within, width_for};
use crate::plan::spec::DEFAULT_SLOPE;
use crate::plan::{ConditionOn, Kind, Mixing, Scale, Spec, Spline, Transform};
pub(crate) use crate::tape::Memory;

/// All settings of a training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// What the model is.
    pub model: Model,
    /// How it is trained.
    pub train: Train,
    /// On what.
    pub data: Data,
    /// Where, and what is kept.
    pub run: Run,
    /// Bounds and transforms of columns of x or y, by name; by number from 1 where the table has no names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub columns: BTreeMap<String, ColumnSetting>,
}

/// Table `[model]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    /// Kind of model.
    pub kind: Kind,
    /// L, the number of latent columns of an `inn`; absent: as many as x has more columns than y, at least one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent: Option<u32>,
    /// K, the number of blocks.
    pub blocks: u32,
    /// D, the recursion depth.
    pub depth: Depth,
    /// H, the hidden width of the root's networks; or a budget.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub width: Option<u32>,
    /// The number of parameters that the width is chosen for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<u64>,
    /// What the networks of a node see.
    pub condition_on: ConditionOn,
    /// Orthogonal map of each block.
    pub mixing: Mixing,
    /// Whether the first block has a mixing too.
    pub mix_first: bool,
    /// What couplings do to their columns.
    #[serde(default)]
    pub coupling: CouplingKind,
    /// Bins of a spline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bins: Option<u32>,
    /// Half the width of the box in which a spline is not the identity.
    #[serde(rename = "box", skip_serializing_if = "Option::is_none")]
    pub half_width: Option<f64>,
    /// Smallest slope of a spline at a knot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_slope: Option<f64>,
    /// Log-scale function.
    pub scale: ScaleKind,
    /// Slope of the soft clamp `atan`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slope: Option<f64>,
    /// Instead of a slope: bound on the sum of the log-scales of all affine maps that a column goes through.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_log_scale: Option<f64>,
    /// Deviation of the initial weights; absent: by the number of inputs of each layer, see
    /// [`crate::flow::FlowBuilder::init_by_inputs`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init_sigma: Option<f64>,
    /// A model file whose weights training starts from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub init: Option<PathBuf>,
}

/// Table `[train]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Train {
    /// Number of epochs.
    pub epochs: u64,
    /// Batches of an epoch; absent: as many whole batches as the training rows give.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches_per_epoch: Option<u64>,
    /// Rows of a batch; absent: chosen from the number of training rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// Learning rate at the start.
    pub lr: f64,
    /// Learning rate that the schedule would reach after the last epoch.
    pub lr_final: f64,
    /// How the rate falls.
    pub schedule: Fall,
    /// Epochs at the start with a reduced rate.
    pub warmup_epochs: u64,
    /// Factor on the rate in these epochs.
    pub warmup_factor: f64,
    /// Steps at the start in which the rate rises from 0; 0: none.
    pub warmup_steps: u64,
    /// Falls of the learning rate in the whole training (warm restarts, Loshchilov and Hutter 2017). Each begins from the
    /// best model so far, with [`Train::RELAX`] of the decay of the one before; absent: chosen from the number of training
    /// rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cycles: Option<u64>,
    /// Decay of Adam's first moment.
    pub beta1: f64,
    /// Decay of Adam's second moment.
    pub beta2: f64,
    /// Added to the root of Adam's second moment.
    pub eps: f64,
    /// L2 strength, added to the gradient.
    pub l2: f64,
    /// Bound on each element of the gradient.
    pub grad_clamp: f64,
    /// Bound on the length of the whole gradient; 0: none.
    pub clip_norm: f64,
    /// Decoupled decay of the weight matrices, times the rate; 0: none; absent: chosen from the number of training rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decay: Option<f64>,
    /// Decay of the moving average of the weights, which is then the model that is scored and kept; 0: no average.
    pub average: f64,
    /// Deviation of the noise added to x of each batch, in the units of the (standardised) columns.
    pub noise: f64,
    /// Probability of a hidden unit to be dropped in a training step, of which the nearest multiple of 1/256 counts;
    /// absent: chosen from the number of training rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropout: Option<f64>,
    /// Of an `inn`: factor of the discrepancy of its latent columns; absent: [`Train::LATENT_LOSS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latent_loss: Option<f64>,
    /// Of an `inn`: factor of the discrepancy of x on the way back; absent: [`Train::INVERSE_LOSS`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse_loss: Option<f64>,
    /// Of an `inn`: share of the epochs without a way back; absent: [`Train::INVERSE_FROM`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inverse_from: Option<f64>,
    /// Whether each epoch takes the rows in a new random order; otherwise in the order of the data.
    pub shuffle: bool,
    /// Seed of initial weights, order and noise.
    pub seed: u64,
    /// What is kept for the backward pass.
    pub memory: Memory,
    /// Which model a training leaves. Where no rows are held out, the last.
    pub keep: Keep,
    /// Epochs without a better score of the held-out rows after which the training stops, or cools down; 0: never.
    pub patience: u64,
    /// Epochs that are trained when patience is lost, from the best epoch's model on, while the rate falls to
    /// `lr_final`; 0: none.
    pub cooldown: u64,
    /// How often a training that diverges goes back to its last good model and on with half the rate, before it fails.
    pub retries: u64,
    /// Logs for other programs.
    #[serde(default, skip_serializing_if = "Logs::is_empty")]
    pub log: Logs,
}

/// Which model a training leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Keep {
    /// That of the epoch after which the mean loss of the held-out rows was least.
    Best,
    /// That after the last epoch.
    Last,
}

/// Table `[data]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    /// A data set of the paper; or a path. Those of UCI have both.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub preset: Option<Preset>,
    /// The table to train on; the file of a UCI data set, or a folder that holds it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// The conditions of a conditional model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub given: Option<Given>,
    /// The columns to model, by name or number (from 1); absent: all that are not conditions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub columns: Option<Columns>,
    /// Whether the first line of a text table holds names; absent, as with the next two: found out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header: Option<bool>,
    /// What separates the cells of a text table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub separator: Option<Separator>,
    /// What stands before the fractions of a text table.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decimal: Option<Decimal>,
    /// What stands for a missing value; rows that have one are left out. Absent: such a cell is an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<Columns>,
    /// Whether columns are brought to mean 0 and deviation 1, as a part of the model.
    pub standardize: bool,
    /// Whether columns that gain by it have their linear regression on the conditions subtracted, as a part of the model.
    pub regression: bool,
    /// Beyond so many deviations, distances are drawn in by a logarithm, as a part of the model; 0: they are not.
    /// Absent: [`Config::squash`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub squash: Option<f64>,
    /// Share of a table's rows that are held out, chosen at random.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub validation: Option<f64>,
    /// Which points of a Lens outline are transformed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outline: Option<Outline>,
    /// Training rows of a simulated data set; of a table or a UCI training part, how many of its first rows are taken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Test rows of a simulated data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub test_rows: Option<u64>,
    /// Deviation of the noise added to the held-out rows, once, before they are scored.
    pub test_noise: f64,
    /// Seed of simulated data and of the choice of held-out rows; see [`crate::data::uci::Uci::read`] for UCI data
    /// sets.
    pub seed: u64,
}

/// Table `[run]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    /// "auto", "cpu", "gpu", the number of an adapter or a part of its name.
    pub device: String,
    /// Threads of the native CPU engine; 0: one per processor.
    pub threads: u64,
    /// Whether a GPU times variants of its kernels when it meets a model for the first time. No result depends on it.
    #[serde(default = "yes")]
    pub tune: bool,
    /// The run folder; absent: a new one below `runs`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out: Option<PathBuf>,
    /// Steps between checkpoints; absent: at the end of an epoch, at most one in ten seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_every: Option<u64>,
}

fn yes() -> bool {
    true
}

/// Name of the log-scale function; its slope is a setting of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ScaleKind {
    /// `slope * atan(a)`.
    #[default]
    Atan,
    /// `a`.
    Exp,
}

/// Name of a transformation of columns; the settings of splines are their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum CouplingKind {
    /// Affine, the paper's.
    #[default]
    Affine,
    /// Rational-quadratic splines.
    Spline,
}

impl Data {
    /// What is said of the layout of text tables.
    pub(crate) fn text(&self) -> TextSettings {
        let missing = self.missing.as_ref().map(|missing| missing.0.clone()).unwrap_or_default();
        TextSettings {
            header: self.header,
            separator: self.separator,
            decimal: self.decimal,
            missing,
            advice: Advice::Settings,
        }
    }
}

impl Model {
    /// The model these settings ask for, for data of `dim` columns and `cond_dim` conditions. A budget is turned into
    /// its width.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a setting is out of range.
    pub(crate) fn spec(&self, dim: u32, cond_dim: u32) -> Result<Spec> {
        let spec = self.shape(dim, cond_dim);
        spec.validate()?;
        match self.budget {
            Some(budget) if self.width.is_none() => {
                let width = width_for(&spec, budget)?;
                Ok(Spec { width, ..spec })
            }
            _ => Ok(spec),
        }
    }

    /// The same with any width where a budget asks for one, and nothing checked.
    pub(crate) fn shape(&self, dim: u32, cond_dim: u32) -> Spec {
        let coupling = match self.coupling {
            CouplingKind::Affine => Transform::Affine,
            CouplingKind::Spline => {
                let default = Spline::default();
                Transform::Spline(Spline {
                    bins: self.bins.unwrap_or(default.bins),
                    half_width: self.half_width.map_or(default.half_width, |v| v as f32),
                    min_slope: self.min_slope.map_or(default.min_slope, |v| v as f32),
                })
            }
        };
        let spec = Spec {
            coupling,
            kind: self.kind,
            dim,
            cond_dim,
            latent: match (self.latent, self.kind) {
                (Some(latent), _) => latent,
                // As many as y leaves open, so that there is no padding if y has fewer columns than x.
                (None, Kind::Inn) => dim.saturating_sub(cond_dim).max(1),
                (None, _) => 0,
            },
            blocks: self.blocks,
            depth: self.depth,
            width: self.width.unwrap_or(1),
            condition_on: self.condition_on,
            mixing: self.mixing,
            mix_first: self.mix_first,
            scale: match self.scale {
                ScaleKind::Atan => Scale::Atan { slope: self.slope.map_or(DEFAULT_SLOPE, |s| s as f32) },
                ScaleKind::Exp => Scale::Exp,
            },
        };
        match self.max_log_scale {
            Some(most) if self.scale == ScaleKind::Atan => {
                // The least f32 would be 0 for a bound of no sense, which is then refused by the name of the slope.
                Spec { scale: scale_within(&spec, most), ..spec }
            }
            _ => spec,
        }
    }

    /// Takes over the choices of a model that exists.
    pub(crate) fn adopt(&mut self, spec: &Spec) {
        self.kind = spec.kind;
        self.latent = (spec.kind == Kind::Inn).then_some(spec.latent);
        self.blocks = spec.blocks;
        self.depth = spec.depth;
        self.width = Some(spec.width);
        self.budget = None;
        self.condition_on = spec.condition_on;
        self.mixing = spec.mixing;
        self.mix_first = spec.mix_first;
        self.max_log_scale = None;
        (self.scale, self.slope) = match spec.scale {
            // Through text, so that 2.544 stays 2.544 and not its nearest f32 in 17 digits.
            Scale::Atan { slope } => (ScaleKind::Atan, slope.to_string().parse().ok()),
            Scale::Exp => (ScaleKind::Exp, None),
        };
        // Through text, as the slope.
        let number = |v: f32| v.to_string().parse().ok();
        (self.coupling, self.bins, self.half_width, self.min_slope) = match spec.coupling {
            Transform::Affine => (CouplingKind::Affine, None, None, None),
            Transform::Spline(Spline { bins, half_width, min_slope }) => {
                (CouplingKind::Spline, Some(bins), number(half_width), number(min_slope))
            }
        };
    }
}

impl Train {
    /// What a cycle has of the decay of the one before.
    pub(crate) const RELAX: f64 = 1.0 / 9.0;

    /// Constants of the optimiser.
    pub(crate) fn adam(&self) -> Adam {
        Adam {
            beta1: self.beta1 as f32,
            beta2: self.beta2 as f32,
            eps: self.eps as f32,
            l2: self.l2 as f32,
            grad_clamp: self.grad_clamp as f32,
            clip_norm: self.clip_norm as f32,
            decay: self.decay.unwrap_or(0.0) as f32,
            average: self.average as f32,
        }
    }

    /// Whether a training may go back to its best epoch, at its end, to cool down or for another cycle, so that its weights are
    /// remembered.
    pub(crate) fn goes_back(&self) -> bool {
        self.keep == Keep::Best
            || (self.cooldown > 0 && self.patience > 0)
            || self.cycles.is_some_and(|cycles| cycles > 1)
    }

    /// Learning rate by epoch and step.
    pub(crate) fn schedule(&self) -> Schedule {
        let steps = self.epochs.saturating_mul(self.batches_per_epoch.unwrap_or(u64::MAX));
        Schedule {
            fall: self.schedule,
            lr: self.lr,
            lr_final: self.lr_final,
            epochs: self.epochs,
            cycles: self.cycles.unwrap_or(1).min(self.epochs).max(1),
            warmup_epochs: self.warmup_epochs,
            warmup_factor: self.warmup_factor,
            warmup_steps: self.warmup_steps.min(steps / 10),
        }
    }
}

impl Config {
    /// Where standardised columns begin to be drawn in; None where they are not.
    pub(crate) fn squash(&self) -> Option<f64> {
        /// Where nothing is set.
        const DEFAULT: f64 = 0.0;
        Some(self.data.squash.unwrap_or(DEFAULT)).filter(|&squash| squash != 0.0)
    }

    /// The settings as a TOML file that gives the same run again.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a value has no place in TOML: a number of 2^63 or more, a path that is not
    /// Unicode.
    pub(crate) fn to_toml(&self) -> Result<String> {
        self.has_a_place_in_toml()?;
        Ok(toml::to_string(self).unwrap_or_else(|e| unreachable!("settings that TOML has no place for: {e}")))
    }
}

//! Builder of a new model with initial weights.

use std::sync::Arc;

use super::init::{self, Init};
use super::{Flow, Memory, ModelFile};
use crate::data::columns::units::Units;
use crate::engine::Engine;
use crate::error::{Error, Result};
use crate::plan::{ConditionOn, Depth, Mixing, Plan, Scale, Spec, Transform, budget};

/// Bound on the sum of the log-scales of affine couplings for data: those of each map compound, and single rows of real
/// tables had log-densities of -1e23 without it.
pub(crate) const MAX_LOG_SCALE: f64 = 15.0;

/// Collects the choices of a new model; see [`Flow::builder`]. The defaults are two blocks, full recursion, width 64,
/// fixed mixing, affine maps with the soft clamp, and initial weights of deviation 0.005 (docs/model.md).
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until `build`"]
pub struct FlowBuilder {
    spec: Spec,
    budget: Option<u64>,
    seed: u64,
    init: Option<Init>,
    x: Units,
    y: Units,
    memory: Memory,
    /// Bound on the sum of the log-scales of all affine maps of a column, unless a scale was chosen.
    max_log_scale: Option<f64>,
}

impl FlowBuilder {
    pub(super) fn new(dim: u32) -> Self {
        Self::from_spec(Spec { dim, ..Spec::default() })
    }

    /// Starts from a whole spec.
    pub(crate) fn from_spec(spec: Spec) -> Self {
        Self {
            spec,
            budget: None,
            seed: 0,
            init: None,
            x: Units::default(),
            y: Units::default(),
            memory: Memory::default(),
            max_log_scale: None,
        }
    }

    /// Starts from a spec for the columns of a data set, whose units become the model's.
    pub(crate) fn for_data(spec: Spec, [x, y]: [&Units; 2]) -> Self {
        Self { max_log_scale: Some(MAX_LOG_SCALE), x: x.clone(), y: y.clone(), ..Self::from_spec(spec) }
    }

    /// Bounds the sum of the log-scales of all affine maps of a column.
    pub(crate) fn max_log_scale(mut self, most: f64) -> Self {
        self.max_log_scale = Some(most);
        self
    }

    /// K, the number of blocks.
    pub fn blocks(mut self, blocks: u32) -> Self {
        self.spec.blocks = blocks;
        self
    }

    /// D, the recursion depth: a number of levels, of which 0 is RealNVP, or [`Depth::Full`].
    pub fn depth(mut self, depth: impl Into<Depth>) -> Self {
        self.spec.depth = depth.into();
        self
    }

    /// H, the hidden width of the root's networks.
    pub fn width(mut self, width: u32) -> Self {
        self.spec.width = width;
        self.budget = None;
        self
    }

    /// Chooses the width whose parameter count is nearest to `parameters`.
    pub fn budget(mut self, parameters: u64) -> Self {
        self.budget = Some(parameters);
        self
    }

    /// What the networks of a node see.
    pub fn condition_on(mut self, condition_on: ConditionOn) -> Self {
        self.spec.condition_on = condition_on;
        self
    }

    /// Orthogonal map of each block.
    pub fn mixing(mut self, mixing: Mixing) -> Self {
        self.spec.mixing = mixing;
        self
    }

    /// Whether the first block has a mixing too.
    pub fn mix_first(mut self, mix_first: bool) -> Self {
        self.spec.mix_first = mix_first;
        self
    }

    /// Log-scale function.
    pub fn scale(mut self, scale: Scale) -> Self {
        self.spec.scale = scale;
        self.max_log_scale = None;
        self
    }

    /// Seed of the initial weights and of fixed mixing matrices.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Initial weights and biases ~ N(0, sigma^2), as the paper's; 0.005 unless couplings are splines.
    pub fn init_sigma(mut self, sigma: f32) -> Self {
        self.init = Some(Init::Sigma(sigma));
        self
    }

    /// Initial weights by the number of inputs of each layer, N(0, (g^2 / n_in)) with g = 0.58, in the last layer of a
    /// network 0.1, so that blocks begin near to the identity; biases are zero. The default of splines.
    pub fn init_by_inputs(mut self) -> Self {
        self.init = Some(Init::Inputs);
        self
    }

    /// What couplings do to their columns.
    pub fn coupling(mut self, coupling: Transform) -> Self {
        self.spec.coupling = coupling;
        self
    }

    /// Names, bounds and standardisation of the columns of x, which become part of the model.
    pub(crate) fn units(mut self, x: Units) -> Self {
        self.x = x;
        self
    }

    /// The same of the conditions y.
    pub(crate) fn units_of_conditions(mut self, y: Units) -> Self {
        self.y = y;
        self
    }

    /// What gradients keep for their backward pass, see [`Flow::with_memory`].
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// The spec with the width that the budget asks for.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a choice is out of range.
    pub fn spec(&self) -> Result<Spec> {
        let mut spec = self.spec.clone();
        if let (Transform::Affine, Some(most)) = (spec.coupling, self.max_log_scale) {
            spec.scale = budget::scale_within(&spec, most);
        }
        spec.validate()?;
        if let Some(budget) = self.budget {
            spec.width = budget::width_for(&spec, budget)?;
        }
        Ok(spec)
    }

    /// Makes the weights and puts the model on a device.
    ///
    /// # Errors
    /// [`crate::Error::Config`] if a choice is out of range, [`crate::Error::OutOfMemory`] or
    /// [`crate::Error::UnsupportedLimit`] if the device cannot hold the model.
    pub fn build(self, engine: &Engine) -> Result<Flow> {
        let init = self.init.unwrap_or(match self.spec.coupling {
            Transform::Affine => Init::Sigma(0.005),
            Transform::Spline(_) => Init::Inputs,
        });
        if let Init::Sigma(sigma) = init
            && !(sigma.is_finite() && sigma >= 0.0)
        {
            return Err(Error::config("model.init_sigma", format!("must be a number of at least 0, is {sigma}")));
        }
        let plan = Arc::new(Plan::new(&self.spec()?)?);
        let weights = init::weights(&plan, self.seed, init);
        let file = ModelFile { plan, weights, x: self.x, y: self.y, evidence: None, training: None };
        Ok(Flow::from_file(file, engine)?.with_memory(self.memory))
    }
}

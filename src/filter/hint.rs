//! Filtering with HINT (paper, appendix "Bayesian filtering using HINT"): states and observations of a step are
//! simulated, a flow of two lanes learns them together, and its posterior given the observation made is sampled. So the
//! posterior needs no likelihood and no functional form of the prior, only simulations. An INN can take the place of the
//! flow, as it does in the paper for comparison.

use super::observed::{beyond, unusual};
use super::simulated::all_vary;
use super::system::Draws;
use super::trained::{are_near, diverged, has_learned};
use super::update::{Keeper, Moment, Step, Update, forecast};
use crate::config::{Config, Layers};
use crate::data::columns::units::Gains;
use crate::data::side_by_side;
use crate::engine::Values;
use crate::error::{Error, Result};
use crate::flow::{Flow, FlowBuilder, ModelFile};
use crate::plan::{Kind, Plan};
use crate::train::{Dataset, Kept, TrainingLoop, density};

/// The filter.
#[derive(Clone, Debug)]
pub(crate) struct Hint {
    /// Model and training.
    pub config: Config,
    /// Simulations that are trained on in a step.
    pub rows: usize,
    /// Simulations besides, which judge the training.
    pub validation: usize,
    /// Whether a step begins with the weights of the step before.
    pub warm: bool,
    /// Those weights.
    pub weights: Option<Vec<f32>>,
}

/// The paper's settings of the filter: ten blocks without recursion, 10^6 weights, 50 epochs of batches of 500, the rate
/// from 1e-2 to 1e-3.
pub(crate) const PAPER: [&str; 15] = [
    "model.kind=hint",
    "model.coupling=affine",
    "model.blocks=10",
    "model.depth=0",
    "model.budget=1000000",
    "train.epochs=50",
    "train.batch=500",
    "train.lr=0.01",
    "train.lr_final=0.001",
    "train.warmup_epochs=0",
    "train.warmup_steps=100",
    "train.average=0.99",
    "train.patience=0",
    "data.regression=true",
    "data.validation=0",
];

/// The same of an INN: the rate goes down to 1e-4.
pub(crate) const PAPER_INN: [&str; 12] = [
    "model.kind=inn",
    "model.blocks=10",
    "model.budget=1000000",
    "train.epochs=50",
    "train.batch=500",
    "train.lr=0.01",
    "train.lr_final=0.0001",
    "train.warmup_epochs=0",
    "train.warmup_steps=100",
    "train.average=0.99",
    "data.regression=false",
    "data.validation=0",
];

/// What a quick filter changes of them.
pub(crate) const QUICK: [&str; 3] = ["model.budget=100000", "train.epochs=20", "train.batch=250"];

/// Simulations of a step of a quick filter.
pub(crate) const QUICK_ROWS: usize = 16_000;

/// Least simulations of a step: of fewer no flow learns anything.
pub(crate) const LEAST_ROWS: usize = 100;

/// Simulations of a step in the paper.
pub(crate) const PAPER_ROWS: usize = 64_000;

/// The settings of model and training: the filter's own, then others as `key=value`.
///
/// # Errors
/// [`Error::UnknownKey`], and [`Error::Config`] for a value that is out of range, or a setting that the filter has no
/// use for.
pub(crate) fn settings(own: &[&str], set: &[String]) -> Result<Config> {
    const FIXED: [&str; 9] = [
        "model.kind",
        "model.init",
        "train.seed",
        "data.preset",
        "data.path",
        "data.given",
        "data.columns",
        "data.rows",
        "data.validation",
    ];
    let key = |assignment: &String| assignment.split('=').next().unwrap_or_default().trim().to_owned();
    if let Some(key) = set.iter().map(key).find(|key| key.starts_with("run.") || FIXED.contains(&key.as_str())) {
        return Err(Error::config(key, "is the filter's own; leave it out"));
    }
    let mut layers = Layers::new();
    // Names of no files: the rows are in memory.
    let rows = [("data.path", "states"), ("data.given", "observations")];
    layers.flags(rows.map(|(key, name)| (key, format!("{name}.npy"), "the filter")))?;
    // Who sets the width means it instead of the budget.
    let has_width = set.iter().any(|assignment| key(assignment) == "model.width");
    let own =
        own.iter().filter_map(|own| own.split_once('=')).filter(|(key, _)| !(has_width && *key == "model.budget"));
    layers.flags(own.map(|(key, v)| (key, v.to_owned(), "the filter")))?;
    layers.assignments(set)?;
    layers.resolve()
}

impl Hint {
    /// Rows [x, y] as a data set: the first are trained on, the others judge.
    fn data(&self, at: &Moment<'_>, states: &[f32], seen: &[f32]) -> Result<Dataset> {
        let (n, c) = (at.system.state_columns(), at.system.observation_columns());
        let ([x, held_x], [y, held_y]) = (split(states, self.rows * n), split(seen, self.rows * c));
        let mut data = Dataset::from_rows(x, n)
            .conditions(y, c)
            .standardize(self.config.data.standardize)
            .regression(self.config.data.regression)
            .gains(Gains::Any);
        data = if held_x.is_empty() {
            data.validation(0.0)
        } else {
            data.validation_rows(held_x).validation_conditions(held_y)
        };
        let names = at.system.state_names();
        if !names.is_empty() {
            data = data.names(names);
        }
        for column in 0..n {
            let (lower, upper) = at.system.bounds(column);
            if lower.is_some() || upper.is_some() {
                data = data.bounds(column, lower, upper);
            }
        }
        data.build()
    }

    /// The flow of a step, with the weights of the step before if it begins with them.
    fn flow(&self, at: &Moment<'_>, data: &Dataset) -> Result<Flow> {
        let Config { model, train, .. } = &self.config;
        let spec = model.spec(data.dim as u32, data.cond_dim as u32)?;
        if let Some(weights) = self.weights.as_ref().filter(|_| self.warm) {
            let plan = Plan::new(&spec)?.into();
            let (weights, x, y) = (weights.clone(), data.x.clone(), data.y.clone());
            return Flow::from_file(ModelFile { plan, weights, x, y, evidence: None, training: None }, at.engine);
        }
        let builder = FlowBuilder::from_spec(spec)
            .seed(train.seed)
            .units(data.x.clone())
            .units_of_conditions(data.y.clone())
            .memory(train.memory);
        match model.init_sigma {
            Some(sigma) => builder.init_sigma(sigma as f32),
            None => builder.init_by_inputs(),
        }
        .build(at.engine)
    }
}

impl Update for Hint {
    fn name(&self) -> &'static str {
        self.config.model.kind.name()
    }

    fn members(&self) -> usize {
        self.rows.saturating_add(self.validation)
    }

    /// A flow sees the logarithm of the distance from a bound.
    fn takes_bounds(&self) -> bool {
        false
    }

    fn update(
        &mut self,
        at: &Moment<'_>,
        prior: &[f32],
        observed: &[f32],
        keeper: &mut dyn Keeper,
    ) -> Result<(Vec<f32>, Step)> {
        let (n, c) = (at.system.state_columns(), at.system.observation_columns());
        let members = prior.len() / n;
        let (states, seen) = match keeper.rows((members, c + n))? {
            Some(rows) => {
                let (seen, states): (Vec<_>, Vec<_>) = rows.chunks_exact(c + n).map(|row| row.split_at(c)).unzip();
                (states.concat(), seen.concat())
            }
            None => {
                let (states, seen) = forecast(self, at, prior)?;
                keeper.keep_rows(&side_by_side(&seen, &states, members), c + n)?;
                (states, seen)
            }
        };
        all_vary(at.step, &states, n, &at.system.state_names())?;
        let beyond = beyond(at, observed, &seen, keeper);
        // Weights, order and noise differ from step to step.
        self.config.train.seed = Draws::new(at.seed, self.stream(), at.step).seed();
        let data = self.data(at, &states, &seen)?;
        let flow = self.flow(at, &data)?;
        let kept = self.train(at.step, &flow, &data, keeper)?;
        let posterior = flow.given(observed)?.numbered_from(at.step).sample(members, at.seed)?;
        are_near(at, observed, (&posterior, &states), beyond, keeper)?;
        density::remember(&flow, &data, self.config.train.noise)?;
        keeper.keep_flow(&flow)?;
        let log_evidence = match flow.spec().kind {
            Kind::Hint => Some(f64::from(flow.joint()?.log_evidence(observed)?[0])),
            _ => None,
        };
        let usual = log_evidence.and_then(|evidence| Some(flow.evidence()?.share_below(evidence)));
        unusual(usual, beyond, keeper);
        self.weights = Some(flow.to_file()?.weights);
        let simulations = members as u64;
        let (epochs, validation_loss) = (Some(kept.epochs), kept.test_loss);
        let (step, beyond, effective) = (at.step, Some(beyond), None);
        let report = Step { step, simulations, log_evidence, effective, usual, beyond, epochs, validation_loss };
        Ok((posterior, report))
    }

    fn begin_from(&mut self, weights: Vec<f32>) {
        self.weights = Some(weights);
    }
}

impl Hint {
    /// Trains the flow, or goes on with its training, and leaves in it the model that is kept.
    fn train(&self, step: u32, flow: &Flow, data: &Dataset, keeper: &mut dyn Keeper) -> Result<Kept> {
        let Config { model, train, .. } = &self.config;
        let mut steps = TrainingLoop::new(flow, data.resolve(train, model.kind, model.coupling)?, data)?;
        let weights = || flow.with_session(|session| session.read(Values::Weights));
        let (begin, before) = (weights()?, steps.score()?.map(|(loss, _)| loss));
        if let Some(state) = keeper.state(flow, data)? {
            steps.restore(&state)?;
        }
        let of_step = |error| match error {
            Error::Diverged { step: at, loss, .. } => {
                diverged(step, format_args!("the loss became {loss} at its step {at}"))
            }
            other => other,
        };
        while !steps.is_done() {
            if steps.step().map_err(of_step)? {
                keeper.progress(&steps.progress());
            }
            let ended = steps.at_epoch_end();
            if ended {
                let report = steps.finish_epoch().map_err(of_step)?;
                keeper.epoch(&report, &steps.progress());
            }
            if let Some(text) = steps.went_back() {
                keeper.warning(&text);
            }
            let stopped = keeper.stopped() && !steps.is_done();
            if keeper.wants_state(ended, steps.position().step) || stopped {
                keeper.keep_state(flow, data, steps.state()?)?;
            }
            if stopped {
                return Err(Error::Stopped);
            }
        }
        let kept = steps.finish()?;
        if weights()? == begin {
            return Err(diverged(step, "every epoch of it was taken back, so that nothing was learned"));
        }
        has_learned(step, before, kept.test_loss, data.dim + data.cond_dim)?;
        Ok(kept)
    }
}

/// Two parts of a slice; the second may be empty.
fn split(values: &[f32], at: usize) -> [&[f32]; 2] {
    let (first, second) = values.split_at(at.min(values.len()));
    [first, second]
}

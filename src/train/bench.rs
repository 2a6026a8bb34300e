//! Times of a training step and of sampling, on models of fixed sizes.

use std::time::Instant;

use serde::Serialize;

use crate::engine::{Engine, StepJob};
use crate::error::{Error, Result};
use crate::flow::{Flow, FlowBuilder, programs};
use crate::optim::Adam;
use crate::plan::spec::FULL_DEPTH;
use crate::plan::{ConditionOn, Mixing, Spec};
use crate::rng::{self, Stream};

/// A model and a batch to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name on the command line.
    pub name: &'static str,
    /// N, the columns.
    pub dim: u32,
    /// H, the width.
    pub width: u32,
    /// K, the blocks.
    pub blocks: u32,
    /// D, the recursion depth.
    pub depth: u32,
    /// B, the rows of a batch.
    pub batch: usize,
}

const fn case(name: &'static str, dim: u32, width: u32, blocks: u32, depth: u32, batch: usize) -> Case {
    Case { name, dim, width, blocks, depth, batch }
}

/// The cases. Widths come from budgets of 100,000 (Lens) and 2,000,000 (Cross) parameters; all blocks have fixed mixing.
pub const CASES: [Case; 9] = [
    case("lens1", 20, 152, 1, FULL_DEPTH, 10_000),
    case("lens1d0", 20, 213, 1, 0, 10_000),
    case("lens2", 20, 104, 2, FULL_DEPTH, 10_000),
    case("lens2d0", 20, 147, 2, 0, 10_000),
    case("cross4", 100, 263, 4, FULL_DEPTH, 10_000),
    case("cross4d1", 100, 360, 4, 1, 10_000),
    case("cross4d2", 100, 330, 4, 2, 10_000),
    case("cross4d0", 100, 452, 4, 0, 10_000),
    case("small", 20, 152, 1, FULL_DEPTH, 500),
];

/// The time of a training step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTime {
    /// Name of the case.
    pub case: &'static str,
    /// "cpu" or "gpu".
    pub device: &'static str,
    /// Name of the adapter, or of the native engine.
    pub adapter: String,
    /// Trained parameters.
    pub params: usize,
    /// Rows of a batch.
    pub batch: usize,
    /// What the networks of a node see.
    pub condition_on: ConditionOn,
    /// Median milliseconds of a step: forward, backward, update.
    pub step_ms: f64,
    /// Dispatches of a step, 0 on the native engine.
    pub dispatches: usize,
    /// Bytes held on the device.
    pub peak_bytes: usize,
    /// Steps that were timed.
    pub steps: usize,
}

/// The time of sampling.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleTime {
    /// Name of the case.
    pub case: &'static str,
    /// "cpu" or "gpu".
    pub device: &'static str,
    /// Name of the adapter, or of the native engine.
    pub adapter: String,
    /// Trained parameters.
    pub params: usize,
    /// Samples drawn at a time.
    pub batch: usize,
    /// What the networks of a node see.
    pub condition_on: ConditionOn,
    /// Median milliseconds of drawing a batch, with the copy to the host.
    pub sample_ms: f64,
    /// Bytes held on the device.
    pub peak_bytes: usize,
}

impl Case {
    /// The case of that name.
    ///
    /// # Errors
    /// [`Error::Config`] listing the cases.
    pub fn named(name: &str) -> Result<Self> {
        CASES.into_iter().find(|case| case.name == name).ok_or_else(|| {
            let names = CASES.map(|case| case.name).join(", ");
            Error::config("case", format!("there is no case `{name}`; there are {names}"))
        })
    }

    fn flow(&self, engine: &Engine, condition_on: ConditionOn) -> Result<Flow> {
        let Self { dim, width, blocks, depth, .. } = *self;
        let spec = Spec { dim, width, blocks, depth, condition_on, mixing: Mixing::Fixed, ..Spec::default() };
        FlowBuilder::from_spec(spec).seed(1).build(engine)
    }

    /// Times `repeat` groups of steps on random rows, after a warm-up. A group is one step, or as many as take a
    /// twentieth of a second, with one wait for the device: as in a training.
    ///
    /// # Errors
    /// [`Error::Device`] where the model does not fit, [`Error::DeviceLost`].
    pub fn step(&self, engine: &Engine, condition_on: ConditionOn, repeat: usize) -> Result<StepTime> {
        let flow = self.flow(engine, condition_on)?;
        let mut rows = vec![0.0; self.batch * self.dim as usize];
        rng::fill_normals(1, Stream::Data, 0, 0, &mut rows);
        let order: Vec<u32> = (0..self.batch as u32).collect();
        let program = flow.compiled(programs::Name::Step, self.batch)?;
        flow.with_session(|session| {
            session.set_data(rows.into())?;
            session.set_order(&order)
        })?;
        let mut step = 0;
        let mut group = |count: usize| {
            let started = Instant::now();
            flow.with_session(|session| {
                for _ in 0..count {
                    let adam = Adam::default().step(1e-3, u64::from(step) + 1);
                    session.step(program, &StepJob { first: 0, rows: self.batch, noise: 0.01, seed: 1, step, adam })?;
                    step += 1;
                }
                session.loss()
            })?;
            Ok(started.elapsed().as_secs_f64() * 1e3 / count as f64)
        };
        let warm = group(1).and_then(|_| group(1))?;
        let count = (50.0 / warm).clamp(1.0, 50.0) as usize;
        let step_ms = median(repeat, || group(count))?;
        let (dispatches, peak_bytes) =
            flow.with_session(|session| Ok((session.dispatches(program), session.memory())))?;
        let info = engine.info();
        Ok(StepTime {
            case: self.name,
            device: info.engine,
            adapter: info.name,
            params: flow.parameters(),
            batch: self.batch,
            condition_on,
            step_ms,
            dispatches,
            peak_bytes,
            steps: repeat * count,
        })
    }

    /// Times the drawing of a batch of samples, after a warm-up.
    ///
    /// # Errors
    /// As [`Case::step`].
    pub fn sample(&self, engine: &Engine, condition_on: ConditionOn, repeat: usize) -> Result<SampleTime> {
        let flow = self.flow(engine, condition_on)?;
        let draw = || {
            let started = Instant::now();
            flow.sample(self.batch, 1)?;
            Ok(started.elapsed().as_secs_f64() * 1e3)
        };
        draw().and_then(|_| draw())?;
        let sample_ms = median(repeat, draw)?;
        let info = engine.info();
        Ok(SampleTime {
            case: self.name,
            device: info.engine,
            adapter: info.name,
            params: flow.parameters(),
            batch: self.batch,
            condition_on,
            sample_ms,
            peak_bytes: flow.with_session(|session| Ok(session.memory()))?,
        })
    }
}

fn median(repeat: usize, mut time: impl FnMut() -> Result<f64>) -> Result<f64> {
    let mut times = (0..repeat.max(1)).map(|_| time()).collect::<Result<Vec<_>>>()?;
    times.sort_by(f64::total_cmp);
    Ok((times[times.len() / 2] * 1e3).round() / 1e3)
}

//! Timing of training steps and sampling on any engine: what `hintflow bench` and the benches measure.

use std::sync::Arc;
use std::time::Instant;

use serde::Serialize;

use crate::engine::{Engine, StepJob};
use crate::error::{Error, Result};
use crate::flow::{Flow, programs};
use crate::optim::Adam;
use crate::plan::spec::FULL_DEPTH;
use crate::plan::{ConditionOn, Mixing, Spec};
use crate::rng::{self, Stream};
use crate::tape::Memory;

/// A model and batch size to time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// Name, the same as in other people's scripts for the same model.
    pub name: &'static str,
    /// N.
    pub dim: u32,
    /// H.
    pub width: u32,
    /// K.
    pub blocks: u32,
    /// D.
    pub depth: u32,
    /// B.
    pub batch: usize,
}

/// The timed models: recursive and plain coupling at equal parameters (100,000 for Lens, 2 million for Cross).
pub const CASES: [Case; 9] = [
    Case { name: "lens1", dim: 20, width: 152, blocks: 1, depth: FULL_DEPTH, batch: 10_000 },
    Case { name: "lens1d0", dim: 20, width: 213, blocks: 1, depth: 0, batch: 10_000 },
    Case { name: "lens2", dim: 20, width: 104, blocks: 2, depth: FULL_DEPTH, batch: 10_000 },
    Case { name: "lens2d0", dim: 20, width: 147, blocks: 2, depth: 0, batch: 10_000 },
    Case { name: "cross4", dim: 100, width: 263, blocks: 4, depth: FULL_DEPTH, batch: 10_000 },
    Case { name: "cross4d1", dim: 100, width: 360, blocks: 4, depth: 1, batch: 10_000 },
    Case { name: "cross4d2", dim: 100, width: 330, blocks: 4, depth: 2, batch: 10_000 },
    Case { name: "cross4d0", dim: 100, width: 452, blocks: 4, depth: 0, batch: 10_000 },
    Case { name: "small", dim: 20, width: 152, blocks: 1, depth: FULL_DEPTH, batch: 500 },
];

impl Case {
    /// The case of that name.
    ///
    /// # Errors
    /// [`Error::Config`] listing the cases.
    pub fn named(name: &str) -> Result<Self> {
        CASES.iter().find(|case| case.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = CASES.iter().map(|case| case.name).collect();
            Error::config("--case", format!("there is no case `{name}`; the cases are {}", names.join(", ")))
        })
    }
}

/// Time of one training step: gather, noise, forward, backward, clamp, Adam.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StepTiming {
    /// Name of the case.
    pub case: &'static str,
    /// "cpu" or "gpu".
    pub device: &'static str,
    /// Name of the adapter.
    pub adapter: String,
    /// P.
    pub params: usize,
    /// B.
    pub batch: usize,
    /// Median, milliseconds.
    pub step_ms: f64,
    /// Fastest step, milliseconds.
    pub step_ms_min: f64,
    /// Slowest step, milliseconds.
    pub step_ms_max: f64,
    /// Number of steps timed.
    pub repeats: usize,
    /// 6 P B floating-point operations over the median, 10^9 per second.
    pub gflops: f64,
    /// Dispatches of one step; 0 on the native engine.
    pub dispatches: usize,
    /// Bytes held on the device: weights, moments, gradients, activations, data.
    pub peak_bytes: usize,
}

/// Times training steps of a case: two to warm up, then `repeats`.
///
/// # Errors
/// [`Error::Device`] where the model does not fit, [`Error::DeviceLost`] where the device fails.
pub fn step(case: Case, condition_on: ConditionOn, engine: &Engine, repeats: usize) -> Result<StepTiming> {
    let flow = flow(case, condition_on, engine)?;
    let n = case.dim as usize;
    let mut data = vec![0.0; case.batch * n];
    rng::fill_normals(1, Stream::Data, 0, 0, &mut data);
    let id = flow.compiled(programs::Name::Step(Memory::Stored), case.batch)?;
    let adam = Adam::default();
    let repeats = repeats.max(1);
    flow.with_session(|session| {
        session.set_data(Arc::from(data))?;
        session.set_order(&(0..case.batch as u32).collect::<Vec<_>>())?;
        let mut times = Vec::with_capacity(repeats);
        for i in 0..repeats + 2 {
            let job = StepJob {
                first: 0,
                rows: case.batch,
                noise: 0.01,
                seed: 1,
                step: i as u32,
                adam: adam.step(1e-3, i as u64 + 1),
            };
            let start = Instant::now();
            session.step(id, &job)?;
            let loss = session.loss()?;
            times.push(start.elapsed().as_secs_f64() * 1e3);
            if !loss.is_finite() {
                return Err(Error::Diverged { step: i as u64 + 1, loss, remedy: "the bench is broken".into() });
            }
        }
        let mut times = times.split_off(2);
        times.sort_by(f64::total_cmp);
        let info = engine.info();
        let params = flow.parameters();
        let median = times[times.len() / 2];
        Ok(StepTiming {
            case: case.name,
            device: info.engine,
            adapter: info.name,
            params,
            batch: case.batch,
            step_ms: median,
            step_ms_min: times[0],
            step_ms_max: times[times.len() - 1],
            repeats,
            gflops: 6.0 * params as f64 * case.batch as f64 / (median * 1e6),
            dispatches: session.dispatches(id),
            peak_bytes: session.footprint().total(),
        })
    })
}

/// Time of drawing one batch of samples, with their copy to the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SampleTiming {
    /// Name of the case.
    pub case: &'static str,
    /// "cpu" or "gpu".
    pub device: &'static str,
    /// Name of the adapter.
    pub adapter: String,
    /// P.
    pub params: usize,
    /// B.
    pub batch: usize,
    /// Median, milliseconds.
    pub sample_ms: f64,
    /// Fastest draw, milliseconds.
    pub sample_ms_min: f64,
    /// Slowest draw, milliseconds.
    pub sample_ms_max: f64,
    /// Number of draws timed.
    pub repeats: usize,
    /// Bytes held on the device.
    pub peak_bytes: usize,
}

/// Times the drawing of batches of samples of a case: two to warm up, then `repeats`.
///
/// # Errors
/// As [`step`].
pub fn sample(case: Case, condition_on: ConditionOn, engine: &Engine, repeats: usize) -> Result<SampleTiming> {
    let flow = flow(case, condition_on, engine)?;
    let repeats = repeats.max(1);
    let mut times = Vec::with_capacity(repeats);
    for i in 0..repeats + 2 {
        let start = Instant::now();
        flow.sample_from(case.batch, 1, (i * case.batch) as u64)?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    let mut times = times.split_off(2);
    times.sort_by(f64::total_cmp);
    let info = engine.info();
    Ok(SampleTiming {
        case: case.name,
        device: info.engine,
        adapter: info.name,
        params: flow.parameters(),
        batch: case.batch,
        sample_ms: times[times.len() / 2],
        sample_ms_min: times[0],
        sample_ms_max: times[times.len() - 1],
        repeats: times.len(),
        peak_bytes: flow.with_session(|session| Ok(session.footprint().total()))?,
    })
}

/// The model of a case, with a fixed mixing before every block.
fn flow(case: Case, condition_on: ConditionOn, engine: &Engine) -> Result<Flow> {
    let Case { dim, width, blocks, depth, .. } = case;
    let spec = Spec { dim, width, blocks, depth, condition_on, mixing: Mixing::Fixed, ..Spec::default() };
    crate::flow::FlowBuilder::from_spec(spec).seed(1).build(engine)
}

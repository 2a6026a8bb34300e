//! Timing on any engine: training steps, sampling, and the kernels of both. `hintflow bench` and the benches measure
//! with it.
//!
//! A `Bench` is a model of a `Case` on a device whose results have been compared with those of another way of
//! computing them: nothing is timed before that. `check` is that comparison (`definition` its f64 side), `spread`
//! repeats and sums up, `timing` has whole steps and draws, `kernels` their parts, `products` the matrix products of
//! the CPU engine one by one, and `cost` counts operations and bytes. `model` predicts, and measures nothing.

mod case;
mod check;
mod cost;
pub(crate) mod definition;
mod kernels;
mod model;
mod products;
mod ranks;
mod spread;
mod timing;

use serde::Serialize;

pub use case::{CASES, Case};
pub use check::{Agreement, Deviation};
pub use kernels::{DispatchTime, KernelRow, KernelTimes, Part};
pub use model::{CARDS, Card, PredictedKernel, Prediction};
pub use products::{Product, ProductKind, ProductTime};
pub use ranks::Exchange;
pub use spread::{Effort, Spread};
pub use timing::{SampleTiming, StepTiming};

use crate::engine::Engine;
use crate::error::Result;
use crate::flow::{Flow, Memory};
use crate::plan::ConditionOn;

/// A model to time, on a device that was seen to compute it right.
pub struct Bench {
    case: Case,
    flow: Flow,
    memory: Memory,
    agreement: Agreement,
}

/// What was timed, and where.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Subject {
    /// Version of hintflow.
    pub version: &'static str,
    /// Name of the case.
    pub case: &'static str,
    /// "cpu" or "gpu".
    pub device: &'static str,
    /// Name of the adapter.
    pub adapter: String,
    /// Its driver.
    pub driver: String,
    /// What the networks see.
    pub condition_on: ConditionOn,
    /// What training steps keep of their activations; none where samples are drawn.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_mode: Option<Memory>,
    /// P.
    pub params: usize,
    /// B.
    pub batch: usize,
    /// How the device's results were checked before.
    pub check: Agreement,
}

impl Bench {
    /// Puts a case on a device and checks what the device computes; `memory` is that of training steps.
    ///
    /// # Errors
    /// [`crate::Error::CheckFailed`] if the device computes something else, [`crate::Error::OutOfMemory`] if the model
    /// does not fit, [`crate::Error::DeviceLost`] if the device fails.
    pub fn new(case: Case, condition_on: ConditionOn, memory: Memory, engine: &Engine) -> Result<Self> {
        let agreement = check::check(&case, condition_on, memory, engine)?;
        Ok(Self { case, flow: case.builder(condition_on).build(engine)?, memory, agreement })
    }

    /// The case.
    pub fn case(&self) -> &Case {
        &self.case
    }

    /// The device.
    pub fn engine(&self) -> &Engine {
        self.flow.engine()
    }

    fn subject(&self, part: Part) -> Subject {
        let info = self.engine().info();
        Subject {
            version: env!("CARGO_PKG_VERSION"),
            case: self.case.name,
            device: info.engine,
            adapter: info.name,
            driver: info.driver,
            condition_on: self.flow.spec().condition_on,
            memory_mode: (part == Part::Step).then_some(self.memory),
            params: self.flow.parameters(),
            batch: self.case.batch,
            check: self.agreement.clone(),
        }
    }

    fn on_gpu(&self) -> bool {
        self.engine().info().engine == "gpu"
    }
}

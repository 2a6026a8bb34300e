//! Which weights are the model: those that are trained, or their moving averages (`train.average`).

use super::TrainingLoop;
use crate::engine::Values;
use crate::error::Result;

/// The weight arena with averages of its trained part in their place. What is computed from these weights is computed
/// again by every program.
pub(in crate::train) fn averaged(mut weights: Vec<f32>, averages: &[f32]) -> Vec<f32> {
    weights.iter_mut().zip(averages).for_each(|(weight, average)| *weight = *average);
    weights
}

impl TrainingLoop<'_> {
    /// Whether the model is the average.
    pub(super) fn averages(&self) -> bool {
        self.adam.average > 0.0
    }

    /// The averages begin with the weights.
    pub(super) fn begin_averages(&self) -> Result<()> {
        if !self.averages() {
            return Ok(());
        }
        let trained = self.flow.plan().layout.trained;
        self.flow.with_session(|session| {
            let weights = session.read(Values::Weights)?;
            session.write(Values::Averages, &weights[..trained])
        })
    }

    /// The weight arena of the model.
    pub(super) fn model(&self) -> Result<Vec<f32>> {
        self.flow.with_session(|session| {
            let weights = session.read(Values::Weights)?;
            if self.averages() { Ok(averaged(weights, &session.read(Values::Averages)?)) } else { Ok(weights) }
        })
    }

    /// Runs something on the model, and brings the weights that are trained back.
    pub(super) fn with_model<R>(&self, run: impl FnOnce() -> Result<R>) -> Result<R> {
        // A finished training has left its model in the flow.
        if !self.averages() || self.finished {
            return run();
        }
        let model = self.model()?;
        let own = self.flow.with_session(|session| {
            let own = session.read(Values::Weights)?;
            session.write(Values::Weights, &model)?;
            Ok(own)
        })?;
        let result = run();
        self.flow.with_session(|session| session.write(Values::Weights, &own))?;
        result
    }
}

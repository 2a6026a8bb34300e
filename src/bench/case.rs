//! The timed models.

use crate::error::{Error, Result};
use crate::flow::FlowBuilder;
use crate::plan::spec::FULL_DEPTH;
use crate::plan::{ConditionOn, Mixing, Spec};

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
            Error::config("--case", format!("there is no case `{name}`; the cases are all, {}", names.join(", ")))
        })
    }

    /// What the model is made of: a fixed mixing before every block.
    pub fn spec(&self, condition_on: ConditionOn) -> Spec {
        let Self { dim, width, blocks, depth, .. } = *self;
        Spec { dim, width, blocks, depth, condition_on, mixing: Mixing::Fixed, ..Spec::default() }
    }

    pub(super) fn builder(&self, condition_on: ConditionOn) -> FlowBuilder {
        FlowBuilder::from_spec(self.spec(condition_on)).seed(1)
    }
}

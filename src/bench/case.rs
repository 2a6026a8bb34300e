//! The timed models.

use crate::error::{Error, Result};
use crate::flow::FlowBuilder;
use crate::plan::{ConditionOn, Depth, Mixing, Spec, Spline, Transform};

/// A model and batch size to time.
#[derive(Clone, Copy, Debug, PartialEq)]
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
    pub depth: Depth,
    /// B.
    pub batch: usize,
    /// What couplings do to their columns.
    pub coupling: Transform,
}

/// A case with affine couplings.
pub(super) const fn affine(name: &'static str, dim: u32, width: u32, blocks: u32, depth: Depth, batch: usize) -> Case {
    Case { name, dim, width, blocks, depth, batch, coupling: Transform::Affine }
}

/// A case with splines of eight bins.
const fn spline(name: &'static str, dim: u32, width: u32, blocks: u32, depth: Depth, batch: usize) -> Case {
    let spline = Spline { bins: 8, half_width: 5.0, min_slope: 1e-3 };
    Case { coupling: Transform::Spline(spline), ..affine(name, dim, width, blocks, depth, batch) }
}

/// The timed models: recursive and plain coupling, and splines, at equal parameters (100,000 for Lens, 2 million for
/// Cross).
pub const CASES: [Case; 13] = [
    affine("lens1", 20, 152, 1, Depth::Full, 10_000),
    affine("lens1d0", 20, 213, 1, Depth::Levels(0), 10_000),
    affine("lens2", 20, 104, 2, Depth::Full, 10_000),
    affine("lens2d0", 20, 147, 2, Depth::Levels(0), 10_000),
    affine("cross4", 100, 263, 4, Depth::Full, 10_000),
    affine("cross4d1", 100, 360, 4, Depth::Levels(1), 10_000),
    affine("cross4d2", 100, 330, 4, Depth::Levels(2), 10_000),
    affine("cross4d0", 100, 452, 4, Depth::Levels(0), 10_000),
    spline("lens2s", 20, 79, 2, Depth::Full, 10_000),
    spline("lens2d0s", 20, 132, 2, Depth::Levels(0), 10_000),
    spline("cross4s", 100, 159, 4, Depth::Full, 10_000),
    spline("cross4d0s", 100, 327, 4, Depth::Levels(0), 10_000),
    affine("small", 20, 152, 1, Depth::Full, 500),
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
        let Self { dim, width, blocks, depth, coupling, .. } = *self;
        Spec { dim, width, blocks, depth, coupling, condition_on, mixing: Mixing::Fixed, ..Spec::default() }
    }

    pub(super) fn builder(&self, condition_on: ConditionOn) -> FlowBuilder {
        FlowBuilder::from_spec(self.spec(condition_on)).seed(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::budget::parameters;

    #[test]
    fn splines_have_as_many_parameters_as_affine_maps() {
        let count = |name: &str| parameters(&Case::named(name).unwrap().spec(ConditionOn::Input));
        for name in ["lens2", "lens2d0", "cross4", "cross4d0"] {
            let (affine, spline) = (count(name), count(&format!("{name}s")));
            assert!(affine.abs_diff(spline) * 50 < affine, "{name}: {affine} and {spline}");
        }
    }
}

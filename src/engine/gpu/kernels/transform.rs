//! What couplings do to a column, as kernels know it: the shared shaders that complete one, and the constants that
//! these leave open. A further transformation is a file in `shaders/shared/` with the functions that `chain.wgsl` lists,
//! an arm of each function here, and its costs in `compile/cost.rs`.

use crate::kernel::couple::Form;
use crate::plan::{Scale, Spec, Transform};

/// A constant of a pipeline, which is known by its bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Constant(u64);

impl Constant {
    fn new(value: impl Into<f64>) -> Self {
        Self(value.into().to_bits())
    }

    fn value(self) -> f64 {
        f64::from_bits(self.0)
    }
}

/// The transformation of all columns of a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum ColumnMaps {
    /// A chain of affine maps.
    Affine {
        /// Of the log-scale; 0 stands for the identity.
        slope: Constant,
    },
    /// One spline.
    Spline { bins: u32, half_width: Constant, least: Constant, rest: Constant, min_slope: Constant, shift: Constant },
}

impl ColumnMaps {
    pub(crate) fn of(spec: &Spec) -> Self {
        match spec.coupling {
            Transform::Affine => {
                let slope = match spec.scale {
                    Scale::Atan { slope } => slope,
                    Scale::Exp => 0.0,
                };
                Self::Affine { slope: Constant::new(slope) }
            }
            Transform::Spline(spline) => {
                let Form { bins, half_width, least, rest, min_slope, shift } = Form::of(spline);
                let [half_width, least, rest, min_slope, shift] =
                    [half_width, least, rest, min_slope, shift].map(Constant::new);
                Self::Spline { bins: bins as u32, half_width, least, rest, min_slope, shift }
            }
        }
    }

    /// The WGSL text of its functions.
    pub(crate) fn text(self) -> &'static str {
        match self {
            Self::Affine { .. } => include_str!("../../../../shaders/shared/affine.wgsl"),
            Self::Spline { .. } => concat!(
                include_str!("../../../../shaders/shared/spline.wgsl"),
                "\n",
                include_str!("../../../../shaders/shared/bins.wgsl")
            ),
        }
    }

    /// The constants that the text leaves open, by name.
    pub(crate) fn constants(self) -> Vec<(&'static str, f64)> {
        match self {
            Self::Affine { slope } => vec![("SLOPE", slope.value())],
            Self::Spline { bins, half_width, least, rest, min_slope, shift } => vec![
                ("BINS", bins.into()),
                ("HALF_WIDTH", half_width.value()),
                ("LEAST", least.value()),
                ("REST", rest.value()),
                ("MIN_SLOPE", min_slope.value()),
                ("SHIFT", shift.value()),
            ],
        }
    }
}

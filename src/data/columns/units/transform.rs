//! Transforms of a column after its bounds: increasing functions of the whole line, with their parameters.
//!
//! A new one is a file with a type that is a [`Map`], a variant here, and a line in [`super::choice::Choice`].

use serde::{Deserialize, Serialize};

use super::asinh::Asinh;
use super::rank::Rank;
use super::robust::Robust;
use super::softplus::Softplus;

/// An increasing function of the whole line onto itself, in f64.
pub(super) trait Map {
    /// Its value.
    fn map(&self, x: f64) -> f64;
    /// Its derivative, positive.
    fn slope(&self, x: f64) -> f64;
    /// Its inverse; may overflow to infinity.
    fn unmap(&self, u: f64) -> f64;
    /// What is wrong with its parameters, in words that follow the name of the transform.
    fn mistake(&self) -> Option<String>;
}

/// What happens to a column between its bounds and its standardisation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub(crate) enum Transform {
    /// Nothing.
    #[default]
    Identity,
    /// Median and quantiles for a scale; far values are drawn in.
    Robust(Robust),
    /// Linear about a centre, logarithmic far away.
    Asinh(Asinh),
    /// Of a column with one bound: logarithmic at the bound, linear far away.
    Softplus(Softplus),
    /// Empirical quantiles to those of the normal distribution.
    Rank(Rank),
}

impl Transform {
    /// Whether it is none.
    pub(crate) fn is_identity(&self) -> bool {
        matches!(self, Self::Identity)
    }

    /// Whether it draws in all far values, on both sides, so that no squash is needed after it.
    pub(super) fn draws_in(&self) -> bool {
        matches!(self, Self::Asinh(_) | Self::Rank(_))
    }

    fn inside(&self) -> Option<&dyn Map> {
        match self {
            Self::Identity => None,
            Self::Robust(map) => Some(map),
            Self::Asinh(map) => Some(map),
            Self::Softplus(map) => Some(map),
            Self::Rank(map) => Some(map),
        }
    }

    /// Its value.
    pub(super) fn map(&self, x: f64) -> f64 {
        self.inside().map_or(x, |map| map.map(x))
    }

    /// Its derivative.
    pub(super) fn slope(&self, x: f64) -> f64 {
        self.inside().map_or(1.0, |map| map.slope(x))
    }

    /// Its inverse.
    pub(super) fn unmap(&self, u: f64) -> f64 {
        self.inside().map_or(u, |map| map.unmap(u))
    }

    /// What is wrong with its parameters, in words that follow the column's name.
    pub(super) fn mistake(&self) -> Option<String> {
        let mistake = self.inside()?.mistake()?;
        Some(format!("its transform {mistake}"))
    }
}

/// Whether a number can be a place or a scale of a column of 32-bit floats.
pub(super) fn is_place(x: f64) -> bool {
    x.abs() <= 1e39
}

/// Whether a number can be a scale of a column of 32-bit floats.
pub(super) fn is_scale(x: f64) -> bool {
    (1e-60..=1e39).contains(&x)
}

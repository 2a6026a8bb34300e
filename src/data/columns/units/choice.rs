//! What a user can say of a column: bounds, and a transform by name.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Bounds;
use crate::data::packing::Packing;

/// Transforms by the names that settings have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Choice {
    /// Bounds alone, if there are any: no standardisation.
    None,
    /// Mean and deviation.
    Standardize,
    /// Median and quantiles, far values drawn in.
    Robust,
    /// Linear about the centre, logarithmic in the tails.
    Asinh,
    /// `ln(x - lower)`, or `-ln(upper - x)`.
    Log,
    /// Logarithmic at one bound, linear far from it.
    Softplus,
    /// `ln((x - lower) / (upper - x))`.
    Logit,
    /// Quantiles to those of the normal distribution.
    Rank,
}

impl Choice {
    /// Its name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Standardize => "standardize",
            Self::Robust => "robust",
            Self::Asinh => "asinh",
            Self::Log => "log",
            Self::Softplus => "softplus",
            Self::Logit => "logit",
            Self::Rank => "rank",
        }
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The settings of a column, `columns.NAME.*`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ColumnSetting {
    /// No value is as small as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lower: Option<f64>,
    /// No value is as large as this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub upper: Option<f64>,
    /// How the column is brought to the networks; absent: chosen from the data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transform: Option<Choice>,
}

impl ColumnSetting {
    /// Where the values can lie.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { lower: self.lower, upper: self.upper }
    }

    /// The same of a column that is packed.
    pub(crate) fn packed(self, packing: Packing) -> Self {
        let pack = |bound: f64| packing.pack(bound);
        Self { lower: self.lower.map(pack), upper: self.upper.map(pack), ..self }
    }

    /// What is wrong with the setting whatever the column is: the key after the column's name, if it is one of them, and the
    /// words after it. Whether the bounds leave room depends on how it is packed, see [`Bounds::mistake`].
    pub(crate) fn mistake(&self) -> Option<(&'static str, String)> {
        if let Some(mistake) = self.bounds().mistake_of_numbers() {
            return Some(("", mistake));
        }
        match (self.transform, self.lower, self.upper) {
            (Some(choice @ (Choice::Log | Choice::Softplus)), Some(_), Some(_)) => {
                let what =
                    format!("is `{choice}`, which is for one bound, but there are two; take `logit` or leave it out");
                Some((".transform", what))
            }
            _ => None,
        }
    }
}

impl From<Bounds> for ColumnSetting {
    fn from(Bounds { lower, upper }: Bounds) -> Self {
        Self { lower, upper, transform: None }
    }
}

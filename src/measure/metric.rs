//! The measures by name.

use serde::{Deserialize, Serialize};

use super::Scores;

/// A measure of the paper's tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Metric {
    /// Squared maximum mean discrepancy.
    Mmd,
    /// Log-likelihood per column without the constant.
    Ll,
    /// Mean log-density of a row.
    LogDensity,
    /// Intersection over union.
    Iou,
    /// Hausdorff distance.
    Hausdorff,
    /// Mean absolute difference of correlations.
    Corr,
}

impl Metric {
    /// Every measure, in the order in which the paper lists them.
    pub(crate) const ALL: [Self; 6] = [Self::Mmd, Self::Ll, Self::LogDensity, Self::Iou, Self::Hausdorff, Self::Corr];

    /// Its name in the paper's tables.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Mmd => "MMD",
            Self::Ll => "LL",
            Self::LogDensity => "log-likelihood",
            Self::Iou => "IoU",
            Self::Hausdorff => "H-dist",
            Self::Corr => "Corr",
        }
    }

    /// Its name in files.
    pub(crate) fn key(self) -> &'static str {
        match self {
            Self::Mmd => "mmd",
            Self::Ll => "ll",
            Self::LogDensity => "log_density",
            Self::Iou => "iou",
            Self::Hausdorff => "hausdorff",
            Self::Corr => "corr",
        }
    }

    /// What it says, with its unit.
    pub(crate) fn meaning(self) -> &'static str {
        match self {
            Self::Mmd => "squared maximum mean discrepancy of samples and data (inverse multiquadric kernels)",
            Self::Ll => "log-likelihood of held-out rows, nats per column, without the constant",
            Self::LogDensity => "mean log-density of held-out rows, nats per row",
            Self::Iou => "intersection over union of sampled shapes and the true shapes that fit them best",
            Self::Hausdorff => "Hausdorff distance of their contours, in the unit of the shapes",
            Self::Corr => {
                "mean absolute difference of the correlations of samples and data, both with the noise of the training"
            }
        }
    }

    /// Whether a larger value is better.
    pub(crate) fn rises(self) -> bool {
        matches!(self, Self::Ll | Self::LogDensity | Self::Iou)
    }

    /// Its value in what was measured.
    pub(crate) fn of(self, scores: &Scores) -> Option<f64> {
        match self {
            Self::Mmd => scores.mmd,
            Self::Ll => scores.ll,
            Self::LogDensity => scores.log_density,
            Self::Iou => scores.iou,
            Self::Hausdorff => scores.hausdorff,
            Self::Corr => scores.corr,
        }
    }

    /// Digits after the point in the paper's tables.
    pub(crate) fn decimals(self) -> usize {
        if self == Self::Corr { 4 } else { 3 }
    }
}

//! The paper's figures: what each shows, and how it is drawn.

mod curves;
mod data;
mod jacobian;
mod samples;

pub(super) use jacobian::models as models_without_table;

use std::path::Path;

use super::lab::Lab;
use crate::error::Result;

/// A figure of the paper.
pub(super) struct Figure {
    /// Its name on the command line and of its files.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) title: &'static str,
    /// What a reader needs to know of it.
    pub(super) caption: &'static str,
    /// Draws it into a path without extension. False where a model that it shows is not there.
    pub(super) draw: fn(&mut Lab<'_>, &Path) -> Result<bool>,
}

/// Every figure.
pub(super) const ALL: &[Figure] = &[
    Figure {
        name: "fourier",
        title: "A natural shape as Fourier curves",
        caption: "A polygon from the segmentation of an image, the points of its outline, and the curves through them with \
                  different numbers M of Fourier terms (black) over the polygon (red).",
        draw: curves::fourier,
    },
    Figure {
        name: "data_sets",
        title: "The data sets",
        caption: "Rows of the Lens and Cross data sets (black) over the shapes that they approximate (red), and the \
                  correlation of their Fourier coefficients; grey: coefficients that do not vary.",
        draw: data::data_sets,
    },
    Figure {
        name: "samples_lens",
        title: "Samples of Lens models",
        caption: "Models of two blocks. Black: samples; red: the true Lens that fits each best.",
        draw: samples::lens,
    },
    Figure {
        name: "samples_cross",
        title: "Samples of Cross models",
        caption: "Models of four blocks. Black: samples; red: the true Cross that fits each best.",
        draw: samples::cross,
    },
    Figure {
        name: "conditional_lens",
        title: "Samples of Lens models given observations",
        caption: "Each sample (black) is given another observation of the test set, the distances d_h and d_v of the tips. Green, \
                  dashed: its largest diameter; red: the diameter that was observed.",
        draw: samples::lens_given,
    },
    Figure {
        name: "conditional_cross",
        title: "Samples of Cross models given observations",
        caption: "Each sample (black) is given another observation of the test set: centre, rotation and ratio of the bars. \
                  Green, dashed: the observed axes; red: the true Cross that fits the sample best.",
        draw: samples::cross_given,
    },
    Figure {
        name: "deep_cross",
        title: "Samples of deeper models of Cross shapes",
        caption: "Plain coupling in more and more blocks, and recursive coupling in four, with about the same number of parameters.",
        draw: samples::deep,
    },
    Figure {
        name: "sensitivity_lens",
        title: "Sensitivity of a Lens curve to its coefficients",
        caption: "One coefficient of a Lens changed by 0.1 more in every column (black), over the original (red).",
        draw: curves::sensitivity_lens,
    },
    Figure {
        name: "sensitivity_cross",
        title: "Sensitivity of a Cross curve to its coefficients",
        caption: "One coefficient of a Cross changed by 0.1 more in every column (black), over the original (red).",
        draw: curves::sensitivity_cross,
    },
    Figure {
        name: "jacobians",
        title: "Jacobians of trained Lens models",
        caption: "Mean size of dz/dx over rows of the test set. Models of one block have no orthogonal map here: a plain \
                  coupling block leaves half of the columns as they are; a recursive one fills the triangle. Of HINT, y \
                  comes before x, and z_y does not depend on x. With orthogonal maps every z depends on every x.",
        draw: jacobian::jacobians,
    },
];

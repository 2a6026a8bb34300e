//! The paper's figures: what each shows, and how it is drawn.

mod curves;
mod data;
mod jacobian;
mod samples;

use std::path::Path;

use super::lab::Lab;
use super::model::Model;
use crate::error::Result;

/// A figure of the paper.
pub(super) struct Figure {
    /// Its name on the command line and of its files.
    pub(super) name: &'static str,
    /// What it shows.
    pub(super) title: &'static str,
    /// What a reader needs to know of it.
    pub(super) caption: &'static str,
    /// What a reader needs to know of all figures of its kind.
    pub(super) note: &'static str,
    /// The models that it shows.
    pub(super) models: fn() -> Vec<Model>,
    /// Draws it, with its models, into a path without extension. False if one of them is not there.
    pub(super) draw: fn(&mut Lab<'_>, &[Model], &Path) -> Result<bool>,
}

/// Of figures of samples.
const SAMPLES: &str = "All samples have one scale; one too large for it is grey, with the factor by which it was shrunk. Right: how far the \
     correlations of the samples are from those of the data; where the colour bar ends in a point, some are further off \
     than it reaches.";

/// Every figure.
pub(super) const ALL: &[Figure] = &[
    Figure {
        name: "fourier",
        title: "A natural shape as Fourier curves",
        caption: "A polygon from the segmentation of an image, the points of its outline, and the curves through them with \
                  different numbers M of Fourier terms (black) over the polygon (red).",
        note: "",
        models: Vec::new,
        draw: curves::fourier,
    },
    Figure {
        name: "data_sets",
        title: "The data sets",
        caption: "Rows of the Lens and Cross data sets (black) over the shapes that they approximate (red), and the \
                  correlation of their Fourier coefficients; grey: coefficients that do not vary.",
        note: "",
        models: Vec::new,
        draw: data::data_sets,
    },
    Figure {
        name: "samples_lens",
        title: "Samples of Lens models",
        caption: "Models of two blocks. Black: samples; red: the true Lens that fits each best.",
        note: SAMPLES,
        models: samples::lens_models,
        draw: samples::over_best_fits,
    },
    Figure {
        name: "samples_cross",
        title: "Samples of Cross models",
        caption: "Models of four blocks. Black: samples; red: the true Cross that fits each best.",
        note: SAMPLES,
        models: samples::cross_models,
        draw: samples::over_best_fits,
    },
    Figure {
        name: "conditional_lens",
        title: "Samples of Lens models given observations",
        caption: "Each sample (black) is given another observation of the test set: width and height of its largest \
                  diameter. Green, dashed: the sample's own largest diameter; blue: a line of the observed width and height, in its \
                  middle and on the same slant, neither of which is observed.",
        note: SAMPLES,
        models: samples::lens_given_models,
        draw: samples::lens_given,
    },
    Figure {
        name: "conditional_cross",
        title: "Samples of Cross models given observations",
        caption: "Each sample (black) is given another observation of the test set: centre, rotation and ratio of the bars. \
                  Blue: the observed axes; red: the true Cross that fits the sample best.",
        note: SAMPLES,
        models: samples::cross_given_models,
        draw: samples::cross_given,
    },
    Figure {
        name: "deep_cross",
        title: "Samples of deeper models of Cross shapes",
        caption: "Plain coupling in more and more blocks, and recursive coupling in four, with about the same number of parameters.",
        note: SAMPLES,
        models: samples::deep_models,
        draw: samples::over_best_fits,
    },
    Figure {
        name: "sensitivity_lens",
        title: "Sensitivity of a Lens curve to its coefficients",
        caption: "One coefficient of a Lens changed by 0.1 more in every column (black), over the original (red).",
        note: "",
        models: Vec::new,
        draw: curves::sensitivity_lens,
    },
    Figure {
        name: "sensitivity_cross",
        title: "Sensitivity of a Cross curve to its coefficients",
        caption: "One coefficient of a Cross changed by 0.1 more in every column (black), over the original (red).",
        note: "",
        models: Vec::new,
        draw: curves::sensitivity_cross,
    },
    Figure {
        name: "jacobians",
        title: "Jacobians of trained Lens models",
        caption: "Mean size of dz/dx over rows of the test set. Models of one block have no orthogonal map here: a plain \
                  coupling block leaves half of the columns as they are; a recursive one fills the triangle, but for parts of \
                  three columns and less, which are not split again. Of HINT, y comes before x (the lines part them), \
                  and z_y does not depend on x. With orthogonal maps every z depends on every x.",
        note: "",
        models: jacobian::models,
        draw: jacobian::jacobians,
    },
];

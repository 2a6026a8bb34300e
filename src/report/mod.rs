//! Pictures: what training did, how samples compare with data, what a model's Jacobian looks like, and how outlines
//! depend on their coefficients.
//!
//! Every function takes plain vectors and a path without extension, and writes the same picture twice: a PNG at twice
//! the size, for sharp screens and print, and an SVG. Fonts of the system are never looked at; one is embedded.
//!
//! Values that are not finite never break a picture: they are left out, and the title says how many. Inputs from which
//! nothing can be drawn are an [`Error`](crate::error::Error).

mod approximations;
mod correlation;
mod file;
mod gallery;
mod heat;
mod jacobians;
mod losses;
mod number;
mod observed;
mod outlines;
mod page;
mod panel;
mod posteriors;
mod sensitivity;
mod table;
mod tracks;
mod uniformity;

pub(crate) use approximations::approximations;
pub(crate) use correlation::{correlation, fourier_blocks};
pub(crate) use gallery::{ACROSS, DOWN, GalleryMap, GalleryRow, GalleryScale, Ink, gallery};
pub(crate) use jacobians::{JacobianMap, jacobians};
pub(crate) use losses::{LossHistory, LossPoint, loss_curves};
pub(crate) use number::grouped;
pub(crate) use observed::{cross_axes, lens_diameters, single_precision};
pub(crate) use outlines::{Outline, Segment, outlines};
pub(crate) use posteriors::{PosteriorRow, posteriors};
pub(crate) use sensitivity::{PAPER_OFFSET, sensitivity};
pub(crate) use table::{marginals, pairs};
pub(crate) use tracks::{Track, tracks};
pub(crate) use uniformity::{Uniform, uniformity};

#[cfg(test)]
mod tests;

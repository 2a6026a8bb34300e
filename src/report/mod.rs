//! Pictures: what training did, how samples compare with data, what a model's Jacobian looks like, and how outlines
//! depend on their coefficients. And [`html`], for pages that hold them.
//!
//! Every function takes plain vectors and a path without extension, and writes the same picture twice: a PNG at twice
//! the size, for sharp screens and print, and an SVG. Fonts of the system are never looked at; one is embedded.
//!
//! Values that are not finite never break a picture: they are left out, and the title says how many. Inputs from which
//! nothing can be drawn are an [`Error`](crate::error::Error).

mod approximations;
mod contour;
mod corner;
mod correlation;
mod file;
mod gallery;
mod heat;
mod histogram;
pub(crate) mod html;
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
pub(crate) use corner::{CornerSample, MOST_COLUMNS, MOST_SAMPLES, corner};
pub(crate) use correlation::{correlation, correlation_map, correlations, fourier_blocks};
pub(crate) use gallery::{ACROSS, DOWN, GalleryMap, GalleryRow, GalleryScale, Ink, gallery};
pub(crate) use jacobians::{JacobianMap, jacobians};
pub(crate) use losses::{Course, LossHistory, LossPoint, MOST_COURSES, compared_losses, loss_curves};
pub(crate) use number::{beside, grouped, short};
pub(crate) use observed::{cross_axes, lens_diameters, single_precision};
pub(crate) use outlines::{Outline, Segment, outlines};
pub(crate) use posteriors::{PosteriorRow, posteriors};
pub(crate) use sensitivity::{PAPER_OFFSET, sensitivity};
pub(crate) use table::{marginals, pairs};
pub(crate) use tracks::{Track, tracks};
pub(crate) use uniformity::{Uniform, uniformity};

#[cfg(test)]
mod tests;

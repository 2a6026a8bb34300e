//! Pictures of a run: what training did, and how samples compare with data.
//!
//! Every function takes plain vectors and a path without extension, and writes the same picture twice: a PNG at twice
//! the size, for sharp screens and print, and an SVG. Fonts of the system are never looked at; one is embedded.
//!
//! Values that are not finite never break a picture: they are left out, and the title says how many. Inputs from which
//! nothing can be drawn are an [`Error`](crate::error::Error).

mod correlation;
mod file;
mod losses;
mod outlines;
mod page;
mod panel;
mod table;

pub use correlation::{correlation, fourier_blocks};
pub use losses::{LossHistory, LossPoint, loss_curves};
pub use outlines::{Outline, outlines};
pub use table::{marginals, pairs};

#[cfg(test)]
mod tests;

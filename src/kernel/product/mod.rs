//! The three matrix products of a linear layer on feature-major tiles.
//!
//! In a tile (features, samples) the samples are contiguous; `w` is row-major `[n_out, n_in]`. Forward and data gradient
//! are the same loop with other strides ([`linear`]); the gradient of the weights is a product of its own
//! ([`weights`]).

mod linear;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use linear::{End, Start, data_gradient, forward};
pub(crate) use weights::weight_gradient;

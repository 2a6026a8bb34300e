//! Metrics: numbers that say how close samples are to data. Plain vectors in, plain numbers out.
//!
//! [`correlation`] is the paper's `Corr`, [`mmd`] its maximum mean discrepancy, and [`abc`] makes the posterior samples
//! that a conditional model's discrepancy is measured against. [`fit`] finds the true shape most like a curve, which
//! [`polygon`] (IoU) and [`hausdorff`] compare it with. [`density`] says whether densities can be trusted, and [`normal`]
//! whether latent vectors have the shape they should.

#[cfg(feature = "cli")]
pub(crate) mod abc;
#[cfg(feature = "cli")]
pub(crate) mod correlation;
pub(crate) mod density;
#[cfg(feature = "cli")]
pub(crate) mod fit;
#[cfg(feature = "cli")]
pub(crate) mod hausdorff;
#[cfg(feature = "cli")]
pub(crate) mod mmd;
#[cfg(feature = "cli")]
mod nearest;
#[cfg(feature = "cli")]
pub(crate) mod normal;
#[cfg(feature = "cli")]
pub(crate) mod polygon;

//! The last words about densities, of every command that scores rows.

use crate::eval::density::Density;

/// Samples drawn to go with some rows, at most.
pub(super) const SAMPLES: usize = 10_000;

/// Tells on stderr what densities are like, then warns of what is wrong with them.
pub(super) fn tell(density: &Density) {
    density.in_words().iter().for_each(|line| tracing::info!("{line}"));
    warn(density);
}

/// Warns of what is wrong with densities.
pub(super) fn warn(density: &Density) {
    density.of_not_finite().into_iter().chain(density.warnings()).for_each(|text| tracing::warn!("{text}"));
}

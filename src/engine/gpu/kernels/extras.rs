//! The array that clipping shares with the averages of the weights ([`super::shader::Role::Extras`]).
//!
//! One array for both, since the update binds seven and a device need not allow more than eight: the factor of the
//! gradient, two counters of updates left out, one float unused; sums of squares; the averages.

use crate::engine::Skips;

/// Where the counters of updates left out lie, all and in a row.
pub(crate) const SKIPPED: u64 = 1;
/// Most sums of squares: what one workgroup adds up.
pub(crate) const MOST_SUMS: u32 = 256;
/// Where the averages begin.
pub(crate) const AVERAGES: u64 = 4 + MOST_SUMS as u64;

/// The counters as the device keeps them: exact up to 2^24.
pub(crate) fn to_floats(skips: Skips) -> [f32; 2] {
    [skips.total as f32, skips.in_a_row as f32]
}

/// The counters of the device.
pub(crate) fn from_floats(floats: &[f32]) -> Skips {
    let count = |at: usize| floats.get(at).map_or(0, |&count| count as u32);
    Skips { total: count(0), in_a_row: count(1) }
}

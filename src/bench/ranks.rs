//! The share of messages in training steps that several ranks share.

use serde::Serialize;

use super::Spread;
use crate::comm::World;
use crate::comm::collective::any;
use crate::engine::ranks::Ranks;
use crate::error::Result;

/// Repeats of the messages alone.
const REPEATS: usize = 20;

/// What messages between ranks take of a training step.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exchange {
    /// Number of ranks.
    pub ranks: usize,
    /// Median, milliseconds, that a step of this rank spends with messages, and with waiting for ranks that are slower.
    pub in_step_ms: f64,
    /// Median, milliseconds, of the same messages alone, when all ranks have just met.
    pub alone_ms: f64,
    /// Bytes that this rank sends in a step.
    pub bytes: u64,
}

impl Exchange {
    /// `in_steps` are the milliseconds that steps spent with messages; the gradient has `len` values, and a batch `parts`.
    ///
    /// # Errors
    /// [`crate::Error::Ranks`] if a rank is gone.
    pub(super) fn measure(world: &World, len: usize, in_steps: Vec<f64>) -> Result<Self> {
        let size = world.size();
        let mut ranks = Ranks::new(world.clone());
        let (mut partials, mut losses) = (vec![0.0; len * size], vec![0.0; size]);
        let mut alone = Vec::new();
        for repeat in 0..=REPEATS {
            any(&**world, [false])?;
            let before = ranks.exchanged();
            ranks.add_up(&mut partials, len, &mut losses)?;
            // The first makes room.
            if repeat > 0 {
                alone.push((ranks.exchanged() - before).as_secs_f64() * 1e3);
            }
        }
        let to_each = 2 * len as u64 * 4 / size as u64;
        Ok(Self {
            ranks: size,
            in_step_ms: Spread::of(in_steps).median,
            alone_ms: Spread::of(alone).median,
            bytes: to_each * (size as u64 - 1),
        })
    }
}

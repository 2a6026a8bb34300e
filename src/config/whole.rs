//! Ranges of the settings that are whole numbers. A number is told the same range, whatever is wrong with it.

use crate::error::{Error, Result};
use crate::plan::{MAX_SIZE, Spline};

/// Most threads of the native CPU engine.
pub(crate) const MOST_THREADS: u64 = crate::engine::cpu::MOST_THREADS as u64;

/// Most halvings of a rate: after as many there is nothing left of it.
const MOST_RETRIES: u64 = 30;

/// TOML has no integers beyond, and settings are written as TOML.
const MOST: u64 = i64::MAX as u64;

/// Settings whose range is not that of all numbers from 0 on.
const RANGES: [(&str, u64, u64); 13] = [
    ("model.latent", 1, MAX_SIZE as u64),
    ("model.blocks", 1, MAX_SIZE as u64),
    ("model.width", 1, MAX_SIZE as u64),
    ("model.budget", 1, MOST),
    ("model.bins", 2, Spline::MOST_BINS as u64),
    ("train.epochs", 1, MOST),
    ("train.batches_per_epoch", 1, MOST),
    ("train.batch", 1, MOST),
    ("train.cycles", 1, MOST),
    ("train.retries", 0, MOST_RETRIES),
    ("data.rows", 1, MOST),
    ("run.threads", 0, MOST_THREADS),
    ("run.checkpoint_every", 1, MOST),
];

fn range(key: &str) -> [u64; 2] {
    RANGES.iter().find(|(name, ..)| *name == key).map_or([0, MOST], |&(_, least, most)| [least, most])
}

/// What a setting must be.
pub(super) fn expected(key: &str) -> String {
    let [least, most] = range(key);
    format!("a whole number from {least} to {most}")
}

/// Whether a setting is in its range.
pub(super) fn check(key: &str, value: impl Into<u64>) -> Result<()> {
    let (value, [least, most]) = (value.into(), range(key));
    if (least..=most).contains(&value) {
        return Ok(());
    }
    let more = if key == "run.threads" { "; 0 takes one per core" } else { "" };
    Err(Error::config(key, format!("must be {}, is {value}{more}", expected(key))))
}

#[cfg(test)]
mod tests {
    use super::super::keys::KEYS;
    use super::*;

    #[test]
    fn ranges_are_those_of_settings() {
        for (key, least, most) in RANGES {
            assert!(KEYS.iter().any(|known| known.name == key), "{key}");
            assert!(check(key, least).is_ok() && check(key, most).is_ok());
            assert!(check(key, most + 1).unwrap_err().to_string().contains(&expected(key)), "{key}");
        }
        assert!(check("train.seed", 0u64).is_ok() && check("train.seed", 1u64 << 63).is_err());
    }
}

//! Repeating work for a while, and what the times look like.

use std::time::{Duration, Instant};

use serde::Serialize;

use crate::comm::collective::any;
use crate::comm::{Communicator, Single};
use crate::error::Result;

/// How long to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Effort {
    /// Time to spend, in seconds; a tenth of it more, and at least 0.2 s, for warming up.
    pub seconds: f64,
    /// Repeats instead of a time; with 0.2 s for warming up.
    pub repeats: Option<usize>,
}

impl Default for Effort {
    fn default() -> Self {
        Self { seconds: 3.0, repeats: None }
    }
}

/// Runs before the first that counts, whatever they take.
const WARM_UP: usize = 2;
/// Seconds of them: until then a system may not have spread threads over cores, nor a device raised its clock.
const WARM_UP_SECONDS: f64 = 0.2;
/// The fewest repeats that a time is worth.
const LEAST: usize = 5;
/// Beyond that, more tell nothing new.
const MOST: usize = 1_000;

impl Effort {
    /// Repeats work, first to warm up, and returns how long each repeat took that counts. The work gets its number.
    pub(super) fn times(&self, work: impl FnMut(u32) -> Result<()>) -> Result<Vec<Duration>> {
        self.times_on(&Single, work)
    }

    /// The same on several ranks, which meet before each repeat; the clock of the first says how many there are.
    pub(super) fn times_on(
        &self,
        world: &dyn Communicator,
        mut work: impl FnMut(u32) -> Result<()>,
    ) -> Result<Vec<Duration>> {
        let mut number = 0;
        let mut timed = || {
            let start = Instant::now();
            let done = work(number).map(|()| start.elapsed());
            number += 1;
            done
        };
        let (least, most) = self.repeats.map_or((LEAST, MOST), |repeats| (repeats, repeats));
        let seconds = if self.repeats.is_some() { 0.0 } else { self.seconds };
        let repeat = |least: usize, most: usize, seconds: f64, timed: &mut dyn FnMut() -> Result<Duration>| {
            let (start, mut times) = (Instant::now(), Vec::new());
            loop {
                let more = times.len() < least || times.len() < most && start.elapsed().as_secs_f64() < seconds;
                if any(world, [more && world.rank() == 0])? == [false] {
                    return Ok(times);
                }
                times.push(timed()?);
            }
        };
        repeat(WARM_UP, usize::MAX, WARM_UP_SECONDS.max(seconds / 10.0), &mut timed)?;
        repeat(least, most, seconds, &mut timed)
    }
}

/// Median and spread of repeated times, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// Half took no longer.
    pub median: f64,
    /// The shortest.
    pub min: f64,
    /// A quarter took no longer.
    pub lower_quartile: f64,
    /// Three quarters took no longer.
    pub upper_quartile: f64,
    /// The longest.
    pub max: f64,
    /// How many there are.
    pub repeats: usize,
}

impl Spread {
    /// Of at least one number; quartiles between two of them are interpolated.
    pub fn of(mut values: Vec<f64>) -> Self {
        assert!(!values.is_empty(), "a spread is one of values");
        values.sort_by(f64::total_cmp);
        let at = |part: f64| {
            let place = part * (values.len() - 1) as f64;
            let (low, high) = (values[place.floor() as usize], values[place.ceil() as usize]);
            low + (high - low) * place.fract()
        };
        Self {
            median: at(0.5),
            min: at(0.0),
            lower_quartile: at(0.25),
            upper_quartile: at(0.75),
            max: at(1.0),
            repeats: values.len(),
        }
    }

    pub(super) fn of_times(times: &[Duration]) -> Self {
        Self::of(times.iter().map(|time| time.as_secs_f64() * 1e3).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quartiles_of_known_numbers() {
        let spread = Spread::of(vec![9.0, 1.0, 5.0, 3.0, 7.0]);
        let expected = Spread { median: 5.0, min: 1.0, lower_quartile: 3.0, upper_quartile: 7.0, max: 9.0, repeats: 5 };
        assert_eq!(spread, expected);
        let two = Spread::of(vec![2.0, 4.0]);
        assert_eq!((two.median, two.lower_quartile, two.upper_quartile), (3.0, 2.5, 3.5));
        let one = Spread::of(vec![2.0]);
        assert_eq!((one.min, one.median, one.max), (2.0, 2.0, 2.0));
    }

    #[test]
    fn repeats_follow_the_effort() {
        // How many count of all, and how long the others took.
        let count = |effort: Effort, work: Duration| {
            let mut starts = Vec::new();
            let times = effort.times(|i| {
                assert_eq!(i as usize, starts.len());
                starts.push(Instant::now());
                std::thread::sleep(work);
                Ok(())
            });
            let counted = times.unwrap().len();
            let warm = starts.len() - counted;
            (counted, warm, starts[warm].duration_since(starts[0]).as_secs_f64())
        };
        let long = Duration::from_millis(150);
        assert_eq!(count(Effort { seconds: 9.0, repeats: Some(3) }, long).0, 3);
        let (counted, warm, _) = count(Effort { seconds: 0.0, repeats: None }, long);
        assert_eq!((counted, warm), (LEAST, WARM_UP));
        let short = Duration::from_micros(50);
        let (counted, _, seconds) = count(Effort { seconds: 0.0, repeats: Some(1) }, short);
        assert!(counted == 1 && seconds >= WARM_UP_SECONDS, "{seconds} s");
        let (counted, _, seconds) = count(Effort { seconds: 9.0, repeats: None }, short);
        assert!(counted == MOST && seconds >= 0.9, "{counted} after {seconds} s");
        let mut calls = 0;
        let failing = Effort::default().times(|_| {
            calls += 1;
            Err(crate::Error::config("x", "y"))
        });
        assert!(failing.is_err() && calls == 1);
    }
}

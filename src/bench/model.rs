//! What a training step would take on GPUs that nobody has measured yet: a model of time to be confronted with the first
//! measurement.
//!
//! A kernel takes as long as its arithmetic or as its bytes, whichever is more, and every dispatch a fixed time besides.
//! Assumed:
//!
//! - A lane does one instruction at a time, and of those of a kernel's main loop the share [`share`] are multiply-adds, as
//!   AMD's compiler makes them (`benches/compilers.sh`, navi21); so it is on the other cards, whose compilers are not so
//!   well known.
//! - Of the time in which instructions could begin, [`Card::busy`] is used; the rest goes to waiting.
//! - Padding and idle lanes are counted, in the shape that the tuner tries first.
//! - Activations come from memory and go there; caches help nobody. Memory reaches [`REACHED`] of its nominal rate.
//! - A batch is large enough to fill the card. `small` is not.

use serde::Serialize;

use super::Case;
use crate::engine;
use crate::error::{Error, Result};
use crate::flow::Memory;
use crate::flow::programs::{self, Name};
use crate::plan::{ConditionOn, Plan};

/// Part of the nominal rate of memory that long reads and writes reach.
const REACHED: f64 = 0.85;

/// A graphics card as its maker describes it, and what is assumed of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Card {
    /// Name.
    pub name: &'static str,
    /// Words of its adapter's name, in lower case.
    words: &'static str,
    /// 10^12 floating-point operations per second at its boost clock.
    tflops: f64,
    /// 10^9 bytes per second.
    gb_per_s: f64,
    /// Threads that run in step.
    step: u32,
    /// Microseconds from one dispatch to the next that needs its results.
    dispatch_us: f64,
    /// Part of the time in which instructions could begin that is used.
    busy: f64,
}

/// The cards that times are predicted for.
pub const CARDS: [Card; 7] = [
    Card { words: "rx 6800", tflops: 16.2, gb_per_s: 512.0, step: 64, dispatch_us: 5.0, busy: 0.8, name: "RX 6800" },
    // Two instructions at a time if the compiler finds two: the networks' 128 multiply-adds take 68 of 99 slots.
    Card {
        words: "7900 xtx",
        tflops: 61.4,
        gb_per_s: 960.0,
        step: 64,
        dispatch_us: 5.0,
        busy: 0.55,
        name: "RX 7900 XTX",
    },
    Card { words: "rtx 3060", tflops: 12.7, gb_per_s: 360.0, step: 32, dispatch_us: 4.0, busy: 0.8, name: "RTX 3060" },
    Card { words: "h100", tflops: 66.9, gb_per_s: 3350.0, step: 32, dispatch_us: 4.0, busy: 0.8, name: "H100" },
    Card { words: "h200", tflops: 66.9, gb_per_s: 4800.0, step: 32, dispatch_us: 4.0, busy: 0.8, name: "H200" },
    // Intel's compiler gives the networks 8 lanes and spills registers of some.
    Card { words: "a770", tflops: 19.7, gb_per_s: 560.0, step: 32, dispatch_us: 8.0, busy: 0.5, name: "Arc A770" },
    Card { words: "m2", tflops: 3.6, gb_per_s: 100.0, step: 32, dispatch_us: 8.0, busy: 0.8, name: "M2" },
];

/// Multiply-adds among the instructions of a kernel's main loop.
fn share(kernel: &str) -> f64 {
    match kernel {
        "networks_packed" => 0.79,
        "networks_packed_backward" => 0.78,
        "weight_gradient" => 0.67,
        "narrow_backward" => 0.57,
        _ => 0.6,
    }
}

/// What a training step would take.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Prediction {
    /// Name of the case.
    pub case: &'static str,
    /// Name of the card.
    pub gpu: &'static str,
    /// Milliseconds.
    pub predicted_ms: f64,
    /// Dispatches of a step.
    pub dispatches: usize,
    /// Its kernels, the longest first.
    pub kernels: Vec<PredictedKernel>,
}

/// What a kernel would take of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PredictedKernel {
    /// Its name; of operations that share a kernel, that of each.
    pub name: &'static str,
    /// Milliseconds of arithmetic.
    pub arithmetic_ms: f64,
    /// Milliseconds of reading and writing.
    pub memory_ms: f64,
}

impl PredictedKernel {
    fn ms(&self) -> f64 {
        self.arithmetic_ms.max(self.memory_ms)
    }
}

impl Card {
    /// The card with that name, or that an adapter with that name is.
    ///
    /// # Errors
    /// [`Error::Config`] listing the cards.
    pub fn named(name: &str) -> Result<&'static Self> {
        let lower = name.to_lowercase();
        CARDS.iter().find(|card| card.is(&lower)).ok_or_else(|| {
            let names: Vec<&str> = CARDS.iter().map(|card| card.name).collect();
            Error::config("--gpu", format!("there is no model of `{name}`; there are all, {}", names.join(", ")))
        })
    }

    /// Whether the words are in that name, whole ones and not those of a card with a longer name.
    fn is(&self, name: &str) -> bool {
        let words = |text: &str| -> Vec<String> {
            text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).map(str::to_owned).collect()
        };
        let (own, all) = (words(self.words), words(name));
        let longer = ["xt", "ti", "super", "pro", "max", "ultra"];
        all.windows(own.len())
            .enumerate()
            .any(|(i, part)| part == own && all.get(i + own.len()).is_none_or(|next| !longer.contains(&next.as_str())))
    }

    /// A training step of a case.
    ///
    /// # Errors
    /// [`Error::Device`] in a build without GPU engine.
    pub fn predict(&self, case: &Case, condition_on: ConditionOn) -> Result<Prediction> {
        let plan = std::sync::Arc::new(Plan::new(&case.spec(condition_on))?);
        let program = programs::record(Name::Step(Memory::default()), &plan);
        let (work, dispatches) = engine::work(&program, case.batch, self.step)?;
        let mut kernels: Vec<PredictedKernel> = work
            .iter()
            .map(|work| PredictedKernel {
                name: work.kernel,
                arithmetic_ms: work.flops / (self.tflops * 1e9 * self.busy * share(work.kernel)),
                memory_ms: work.bytes / (self.gb_per_s * 1e6 * REACHED),
            })
            .collect();
        kernels.sort_by(|a, b| b.ms().total_cmp(&a.ms()));
        let busy: f64 = kernels.iter().map(PredictedKernel::ms).sum();
        let predicted_ms = busy + dispatches as f64 * self.dispatch_us * 1e-3;
        Ok(Prediction { case: case.name, gpu: self.name, predicted_ms, dispatches, kernels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_found_by_the_names_of_adapters() {
        let found = |name: &str| Card::named(name).map(|card| card.name).ok();
        assert_eq!(found("AMD Radeon RX 6800 (RADV NAVI21)"), Some("RX 6800"));
        assert_eq!(found("NVIDIA H100 80GB HBM3"), Some("H100"));
        assert_eq!(found("Intel(R) Arc(tm) A770 Graphics (DG2)"), Some("Arc A770"));
        assert_eq!((found("Apple M2"), found("Apple M2 Max"), found("RX 6800 XT")), (Some("M2"), None, None));
        assert!(Card::named("llvmpipe").unwrap_err().to_string().contains("RTX 3060"));
        assert!(CARDS.iter().all(|card| found(card.name) == Some(card.name)));
    }

    #[test]
    fn a_faster_card_takes_less_and_no_card_more_than_it_has() {
        let case = Case::named("cross4").unwrap();
        let ms = |name: &str| Card::named(name).unwrap().predict(&case, ConditionOn::Input).unwrap().predicted_ms;
        assert!(ms("h200") < ms("h100") && ms("h100") < ms("rx 6800") && ms("rx 6800") < ms("m2"));
        // 6 operations for each of two million parameters and 10,000 samples.
        assert!(ms("m2") > 120e9 / 3.6e9);
    }
}

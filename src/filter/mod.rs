//! Filtering over time: what is known of a state that moves and is observed with noise, step by step, when only a
//! simulator says how it moves and what is seen of it.
//!
//! A filter is an ensemble of states, equally likely ones. In each step they move on as the [`System`] does, and the
//! observation of that step makes of them the ensemble of its posterior. How it does is the method's own file: `hint`
//! trains a flow on simulated pairs and draws from its posterior, `kalman` (EnKF) moves every member along a line,
//! `particle` weighs and draws again. What a step needs of the one before are its states (and weights, if a flow is to
//! begin with them), so any method can be stopped and resumed between steps; HINT within steps too.
//!
//! [`Filter`] filters in memory. `run` is the command's filter with a run folder, `external` a system behind a command
//! that reads and writes arrays, `measure` judges a filter by the truth and by a filter of particles.
//!
//! ```
//! use hintflow::filter::{Filter, Method, RowRng, StateSpace};
//! use hintflow::Engine;
//!
//! # fn main() -> hintflow::Result<()> {
//! let walk = StateSpace::new(
//!     (1, 1), // columns of the state, and of an observation
//!     |rng: &mut RowRng, x: &mut [f32]| x[0] = rng.normal() as f32,
//!     |_step, x: &[f32], rng: &mut RowRng, next: &mut [f32]| next[0] = x[0] + 0.5 * rng.normal() as f32,
//!     |_step, x: &[f32], rng: &mut RowRng, y: &mut [f32]| y[0] = x[0] + 0.1 * rng.normal() as f32,
//! );
//! let mut filter = Filter::new(&walk, Method::ensemble_kalman(10_000), &Engine::cpu()?, 1)?;
//! for observed in [0.3, 0.7] {
//!     let step = filter.step(&[observed])?;
//!     assert!(step.log_evidence.is_some());
//! }
//! let states = filter.states(); // samples of the posterior, row after row
//! let mean = states.iter().sum::<f32>() / states.len() as f32;
//! assert!((mean - 0.69).abs() < 0.02);
//! # Ok(())
//! # }
//! ```

mod closures;
mod ensemble;
#[cfg(feature = "cli")]
pub(crate) mod external;
mod hint;
mod kalman;
mod lotka_volterra;
#[cfg(feature = "cli")]
pub(crate) mod measure;
mod method;
mod observed;
mod particle;
#[cfg(feature = "cli")]
pub(crate) mod run;
pub(crate) mod simulated;
mod system;
mod trained;
pub(crate) mod update;

pub use closures::StateSpace;
pub use ensemble::Filter;
pub use method::{HintSettings, Method};
pub use system::{Draws, RowRng, System};
pub use update::Step;

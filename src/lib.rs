//! Normalizing flows with recursive coupling (HINT: Kruse, Detommaso, Köthe, Scheichl, AAAI 2021), on GPUs through
//! wgpu and natively on the CPU.
//!
//! A normalizing flow is an invertible map z = T(x) with a tractable Jacobian, trained so that z is standard normal. It
//! gives exact densities and samples. A *recursive* coupling block applies itself to both halves of its columns, which
//! fills the Jacobian's triangle and lets few blocks model what takes plain couplings (RealNVP) many.
//!
//! ```
//! use hintflow::{Engine, Flow};
//!
//! # fn main() -> hintflow::Result<()> {
//! let engine = Engine::cpu()?; // Engine::auto() takes a real GPU where there is one
//! let flow = Flow::builder(4).blocks(2).width(32).seed(1).build(&engine)?;
//!
//! let x = flow.sample(3, 7)?; // three rows of four columns, one after the other
//! let density = flow.log_prob(&x)?; // nats, one per row
//! let latent = flow.encode(&x)?; // z and log |det dz/dx|
//! let back = flow.decode(&latent.z)?;
//!
//! assert_eq!((x.len(), density.len()), (12, 3));
//! assert!(x.iter().zip(&back).all(|(a, b)| (a - b).abs() < 1e-4));
//! # Ok(())
//! # }
//! ```
//!
//! A conditional model takes its conditions first and is then used like an unconditional one:
//!
//! ```
//! # use hintflow::{Engine, Flow};
//! # fn main() -> hintflow::Result<()> {
//! let flow = Flow::hint_builder(4, 2).width(32).build(&Engine::cpu()?)?; // x of four columns, two conditions y
//! let observed = [0.3, -1.2];
//! let posterior = flow.given(&observed)?;
//! let x = posterior.sample(100, 7)?; // a hundred rows of x
//! let density = posterior.log_prob(&x)?; // log p(x | y)
//! let evidence = flow.joint()?.log_evidence(&observed)?; // log p(y), which only a `hint` knows
//! # assert_eq!((x.len(), density.len(), evidence.len()), (400, 100, 1));
//! # Ok(())
//! # }
//! ```
//!
//! A data set makes the builder of its flow, and a trainer borrows the flow as long as it trains:
//!
//! ```
//! use std::ops::ControlFlow;
//! use hintflow::{Dataset, Engine, TrainConfig, Trainer};
//!
//! # fn main() -> hintflow::Result<()> {
//! # let rows: Vec<f32> = (0..600).map(|i| ((i * 37 % 101) as f32).sin()).collect();
//! let data = Dataset::from_rows(&rows, 3).build()?; // rows of three columns; a tenth of them judge the training
//! let mut flow = data.flow().blocks(2).width(16).build(&Engine::cpu()?)?;
//! Trainer::new(&mut flow, &data, TrainConfig::default().epochs(2))?.fit(|_| ControlFlow::Continue(()))?;
//! let x = flow.sample(10, 1)?; // in the units of the rows
//! # assert_eq!(x.len(), 30);
//! # Ok(())
//! # }
//! ```
//!
//! `examples/train_on_rows.rs` is a whole program. Without the features `gpu` and `cli` it needs neither wgpu
//! nor what the program needs.
//!
//! # The rooms, in the order data flows
//!
//! | room | what it is for |
//! |---|---|
//! | [`data`], `rng` | rows: simulated shapes, UCI data sets, npy and csv files; random numbers by counter |
//! | `config` | settings and where they come from |
//! | `plan` | WHAT a model is: recursion to tables of nodes, names and offsets of weights. No weights, no devices |
//! | `tape`, `program`, `buffer` | a computation recorded once as a list of operations, with its backward pass |
//! | `kernel` | HOW each operation is computed on the CPU; `shaders/` holds the twin of each for the GPU |
//! | [`engine`] | WHERE programs run: `engine::cpu` and `engine::gpu` |
//! | [`flow`] | models: encode, decode, density, samples, gradients; given conditions, or of both lanes |
//! | `optim`, [`train`] | Adam and its schedule; data sets, trainer, checkpoints, run folder |
//! | `words` | what a training found and decided, as sentences |
//! | [`filter`] | filtering over time: a system, and the methods that follow it |
//! | `eval`, `diagnose`, `report`, `bench` | metrics, tests of what can be trusted, pictures and pages, timing |
//! | `measure`, `paper`, `cli` | the metrics of a trained model; the paper's tables and figures; the commands |
//!
//! Kernels know nodes and not recursion; `flow` and `tape` know operations and not devices; nothing but `engine` calls
//! wgpu. Letters everywhere: B rows of a batch, N columns of x, C conditions y, K blocks, D recursion depth, H hidden
//! width, P trained parameters. Densities are in nats. Values on the device are `f32`.
//!
//! # Numbers you can trust
//!
//! Same seed and same engine give the same bits, on the CPU for any number of threads and a given instruction set (the
//! best of the processor, or a lower one that `HINTFLOW_SIMD` names: `avx512`, `avx2`, `portable`). Both engines are
//! tested against an independent implementation in `f64` (`tests/it/common/oracle.rs`) for every operation and whole
//! models.

#![cfg_attr(
    not(all(feature = "cli", feature = "gpu")),
    allow(dead_code, unused_imports, reason = "rooms that a library needs have parts that only the program uses")
)]

mod atomic;
/// What `benches/cpu.rs` times. Not a part of the interface that is kept.
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod bench;
mod buffer;
#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
mod config;
mod counted;
pub mod data;
#[cfg(feature = "cli")]
mod diagnose;
pub mod engine;
mod error;
mod eval;
pub mod filter;
pub mod flow;
mod kernel;
#[cfg(feature = "cli")]
mod measure;
mod memory;
mod optim;
#[cfg(feature = "cli")]
mod paper;
mod plan;
#[cfg(feature = "cli")]
mod printable;
mod program;
#[cfg(feature = "cli")]
mod report;
mod rng;
mod tape;
pub mod train;
mod words;

#[cfg(test)]
#[path = "../tests/rooms/mod.rs"]
mod rooms;

#[cfg(doctest)]
mod wrong_uses;

/// The README's example compiles.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

// Tests of rooms name the crate as everyone else does.
#[cfg(test)]
extern crate self as hintflow;

pub use atomic::Overwrite;
pub use engine::Engine;
pub use error::{Error, Result};
pub use flow::Flow;
pub use train::{Dataset, TrainConfig, Trainer};
/// The wgpu whose devices [`Engine::from_wgpu`] takes.
#[cfg(feature = "gpu")]
pub use wgpu;

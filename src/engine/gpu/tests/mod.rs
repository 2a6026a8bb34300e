//! Tests of the GPU engine on a device: every operation against its definition in f64 ([`reference`]).
//!
//! They run on the device named by `HINTFLOW_TEST_DEVICE`, else on the best GPU, else on a software adapter. A machine
//! without any adapter fails them with what to install.

mod backward;
mod elementary;
mod embedding;
mod forward;
mod random;
mod reference;
mod training;

use std::sync::Arc;

use super::adapter;
use super::device::Device;
use super::session::GpuSession;
use crate::buffer::{Arena, Buffer};
use crate::engine::{Job, Session, Values};
use crate::plan::{Plan, Spec};
use crate::program::{Op, Program, StepOp};
use reference::Reference;

/// Awkward numbers of samples.
const ROWS: [usize; 3] = [1, 37, 257];
/// Awkward dimensions.
const DIMS: [u32; 7] = [1, 2, 3, 5, 7, 20, 33];

fn device() -> Arc<Device> {
    let adapter = match std::env::var("HINTFLOW_TEST_DEVICE") {
        Ok(name) => adapter::named(&name),
        Err(_) => adapter::best_or_software(),
    };
    Arc::new(Device::open(&adapter.unwrap()).unwrap())
}

fn plan(spec: Spec) -> Arc<Plan> {
    Arc::new(Plan::new(&spec).unwrap())
}

/// Numbers in [-1, 1) without pattern: splitmix64.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f32 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1 << 23) as f32 - 1.0
    }

    fn take(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| scale * self.next()).collect()
    }
}

/// Weights of a size that keeps activations near 1.
fn weights(plan: &Plan) -> Vec<f32> {
    Numbers(7).take(plan.layout.len(), 0.4)
}

/// The values agree up to `tolerance` times the largest expected one. Fails on NaN and on a different length.
#[track_caller]
fn assert_close(got: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}: length");
    let largest = expected.iter().fold(0.0f64, |m, v| m.max(v.abs()));
    for (i, (&g, &e)) in got.iter().zip(expected).enumerate() {
        let difference = (f64::from(g) - e).abs();
        assert!(difference <= tolerance * largest + 1e-30, "{what}: element {i} is {g}, not {e} (largest {largest})");
    }
}

/// A few operations on buffers that the test fills, recorded by hand.
struct Case {
    plan: Arc<Plan>,
    arena: Arena,
    inputs: Vec<Buffer>,
    outputs: Vec<Buffer>,
    ops: Vec<Op>,
    prepare: Vec<StepOp>,
    finish: Vec<StepOp>,
}

impl Case {
    fn new(plan: &Arc<Plan>) -> Self {
        Self {
            plan: plan.clone(),
            arena: Arena::default(),
            inputs: vec![],
            outputs: vec![],
            ops: vec![],
            prepare: vec![],
            finish: vec![],
        }
    }

    /// A buffer filled with random numbers before the operations and compared after them.
    fn buffer(&mut self, rows: u32) -> Buffer {
        let buffer = self.arena.alloc(rows);
        if rows > 0 {
            self.inputs.push(buffer);
            self.outputs.push(buffer);
        }
        buffer
    }

    /// A buffer that the operations may leave in any state.
    fn scratch(&mut self, rows: u32) -> Buffer {
        self.arena.alloc(rows)
    }

    fn program(&self) -> Program {
        Program {
            plan: self.plan.clone(),
            name: "test",
            arena_rows: self.arena.rows(),
            inputs: self.inputs.clone(),
            outputs: self.outputs.clone(),
            prepare: self.prepare.clone(),
            rows: self.ops.clone(),
            finish: self.finish.clone(),
        }
    }

    fn inputs(&self, rows: usize) -> Vec<Vec<f32>> {
        let mut numbers = Numbers(3);
        self.inputs.iter().map(|b| numbers.take(rows * b.rows as usize, 1.5)).collect()
    }

    /// Runs on the device in tiles of at most `tile` samples; returns outputs and gradients.
    fn run(&self, session: &mut GpuSession, rows: usize, tile: usize) -> (Vec<Vec<f32>>, Vec<f32>) {
        session.write(Values::Weights, &weights(&self.plan)).unwrap();
        session.limit_tiles(tile);
        let id = session.compile(self.program(), rows).unwrap();
        let inputs = self.inputs(rows);
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs = session.run(id, &Job { rows, inputs: &inputs, seed: 1, first_row: 0 }).unwrap();
        (outputs, session.gradients().unwrap())
    }

    /// Runs in f64.
    fn expect(&self, rows: usize) -> (Vec<Vec<f64>>, Vec<f64>) {
        let mut reference = Reference::new(&self.plan, &weights(&self.plan));
        let outputs = reference.run(&self.program(), rows, &self.inputs(rows));
        (outputs, reference.gradients)
    }

    /// Device and f64 agree, in one tile and in several, and the device gives the same bits twice.
    #[track_caller]
    fn check(&self, session: &mut GpuSession, rows: usize, tolerance: f64, what: &str) {
        let (expected, expected_gradients) = self.expect(rows);
        let (outputs, gradients) = self.run(session, rows, usize::MAX);
        for ((got, want), buffer) in outputs.iter().zip(&expected).zip(&self.outputs) {
            assert_close(got, want, tolerance, &format!("{what}, {rows} samples, {buffer:?}"));
        }
        assert_close(&gradients, &expected_gradients, tolerance, &format!("{what}, {rows} samples, gradients"));
        assert!(self.run(session, rows, usize::MAX) == (outputs.clone(), gradients), "{what}: not the same bits twice");
        if rows > 30 {
            let (tiled, gradients) = self.run(session, rows, 28);
            assert!(tiled == outputs, "{what}: tiles change the outputs");
            assert_close(&gradients, &expected_gradients, tolerance, &format!("{what}: gradients over tiles"));
        }
    }
}

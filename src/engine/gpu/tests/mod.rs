//! Tests of the GPU engine on a device: every operation against its definition in f64 ([`reference`]).
//!
//! They run on the device named by `HINTFLOW_TEST_DEVICE`, else on the best GPU, else on a software adapter. A machine
//! without any adapter fails them with what to install.

mod backward;
mod compilers;
mod conditional;
mod dropout;
mod elementary;
mod embedding;
mod forward;
mod optimizer;
mod profile;
mod random;
mod reference;
mod reflections;
mod spline;
mod training;

// Tested in `tests/it/helpers.rs`.
use crate::rooms::common::compare;

use std::sync::Arc;

use super::compile::bounds::KernelVariants;
use super::device::adapter;
use super::device::open::Device;
use super::session::GpuSession;
use super::session::options::Options;
use crate::buffer::{Arena, Buffer};
use crate::engine::{Footprint, Job, Session, Values};
use crate::plan::{ConditionOn, Kind, Plan, Scale, Spec, Spline, Transform};
use crate::program::{Op, Program, StepOp};
use crate::rng::{Counter, Stream};
use compare::{Tolerance, assert_close};
use reference::Reference;

/// Awkward numbers of samples.
const ROWS: [usize; 3] = [1, 37, 257];
/// Awkward dimensions.
const DIMS: [u32; 7] = [1, 2, 3, 5, 7, 20, 33];

/// The adapter of every test: bits are compared between devices of one adapter only.
fn test_adapter() -> wgpu::Adapter {
    let adapter = match std::env::var("HINTFLOW_TEST_DEVICE") {
        Ok(name) => adapter::named(&name),
        Err(_) => adapter::best_or_software(),
    };
    adapter.unwrap()
}

fn device() -> Arc<Device> {
    Arc::new(Device::open(&test_adapter()).unwrap())
}

fn plan(spec: Spec) -> Arc<Plan> {
    Arc::new(Plan::new(&spec).unwrap())
}

/// Bytes that a session holds on its device and objects made there, but for the buffers that take turns carrying values
/// to the device: how many of those there come to be depends on how far the device lags behind.
fn held(session: &GpuSession) -> (Footprint, u64) {
    let (made, bytes) = session.arrays.commands.upload_buffers();
    let mut footprint = session.footprint();
    footprint.transfer -= bytes as usize;
    (footprint, session.device.created() - made)
}

/// Numbers in [-scale, scale).
fn take(rng: &mut Counter, count: usize, scale: f32) -> Vec<f32> {
    (0..count).map(|_| rng.uniform(-f64::from(scale), scale.into()) as f32).collect()
}

/// The first numbers of a sequence of its own.
fn numbers(seed: u64, count: usize, scale: f32) -> Vec<f32> {
    take(&mut Counter::new(seed, Stream::Data, 0, 0), count, scale)
}

/// Weights of a size that keeps activations near 1.
fn weights(plan: &Plan) -> Vec<f32> {
    numbers(7, plan.layout.len(), 0.4)
}

/// Within that part of the largest expected value.
fn within(relative: f64) -> Tolerance {
    Tolerance::relative(relative).floor(1e-30)
}

/// Small affine models of all kinds: both ways of conditioning, both scales.
fn specs(dim: u32) -> [Spec; 4] {
    let base = Spec { dim, blocks: 1, width: 21, ..Spec::default() };
    let by_level = Spec { condition_on: ConditionOn::Output, scale: Scale::Exp, ..base.clone() };
    let of_both = if dim.is_multiple_of(2) { &base } else { &by_level };
    [
        Spec { kind: Kind::Cinn, cond_dim: 1 + dim % 5, ..of_both.clone() },
        Spec { kind: Kind::Hint, cond_dim: 1 + dim % 4, ..of_both.clone() },
        base,
        by_level,
    ]
}

/// The same with splines, of other numbers of bins: two values in three lie in the box, or all.
fn spline_specs(dim: u32) -> [Spec; 4] {
    let bins = [2, 3, 8, 5, 8, 16][dim as usize % 6];
    let half_width = if dim.is_multiple_of(3) { 4.0 } else { 1.0 };
    let coupling = Transform::Spline(Spline { bins, half_width, min_slope: 1e-3 });
    specs(dim).map(|spec| Spec { coupling, ..spec })
}

/// Random rows for each input of a program.
fn inputs_of(program: &Program, rows: usize) -> Vec<Vec<f32>> {
    (0..).zip(&program.inputs).map(|(i, buffer)| numbers(11 + i, rows * buffer.rows as usize, 1.0)).collect()
}

/// A session with these options.
fn session_with(device: &Arc<Device>, plan: &Arc<Plan>, options: Options) -> GpuSession {
    GpuSession::new(device.clone(), plan.clone(), options).unwrap()
}

/// Tiles of at most that many samples.
fn tiles(most_samples: usize) -> Options {
    Options { most_samples, ..Options::default() }
}

/// A data set that stays on the device, or one that is streamed to it.
fn streaming(streamed: bool) -> Options {
    Options { most_data: if streamed { 0 } else { u64::MAX }, ..Options::default() }
}

/// Calls `each` with every stage of models of all dimensions.
fn for_stages(each: impl Fn(&Arc<Device>, &Arc<Plan>, usize)) {
    for_stages_of(specs, each);
}

fn for_stages_of(specs: fn(u32) -> [Spec; 4], each: impl Fn(&Arc<Device>, &Arc<Plan>, usize)) {
    let device = device();
    for dim in DIMS {
        for spec in specs(dim) {
            let plan = plan(spec);
            for stage in 0..plan.stages.len() {
                each(&device, &plan, stage);
            }
        }
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
    /// Inputs are numbers up to this one.
    scale: f32,
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
            scale: 1.5,
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
        let mut rng = Counter::new(3, Stream::Data, 0, 0);
        self.inputs.iter().map(|b| take(&mut rng, rows * b.rows as usize, self.scale)).collect()
    }

    /// Runs on the device; returns outputs and gradients.
    fn run(&self, session: &mut GpuSession, rows: usize) -> (Vec<Vec<f32>>, Vec<f32>) {
        session.write(Values::Weights, &weights(&self.plan)).unwrap();
        let id = session.compile(self.program(), rows).unwrap();
        let inputs = self.inputs(rows);
        let inputs: Vec<&[f32]> = inputs.iter().map(Vec::as_slice).collect();
        let outputs = session.run(id, &Job { rows, inputs: &inputs, seed: 1, first_row: 0, ..Job::default() }).unwrap();
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
    fn check(&self, device: &Arc<Device>, rows: usize, tolerance: f64, what: &str) {
        let (expected, expected_gradients) = self.expect(rows);
        let mut session = session_with(device, &self.plan, Options::default());
        let (outputs, gradients) = self.run(&mut session, rows);
        for ((got, want), buffer) in outputs.iter().zip(&expected).zip(&self.outputs) {
            assert_close(&format!("{what}, {rows} samples, {buffer:?}"), got, want, within(tolerance));
        }
        assert_close(&format!("{what}, {rows} samples, gradients"), &gradients, &expected_gradients, within(tolerance));
        let whole = (outputs, gradients);
        assert!(self.run(&mut session, rows) == whole, "{what}: not the same bits twice");
        if rows > 32 {
            let mut session = session_with(device, &self.plan, tiles(32));
            assert!(self.run(&mut session, rows) == whole, "{what}: tiles change the bits");
        }
        if self.ops.iter().any(|op| matches!(op, Op::Networks { .. } | Op::NetworksBackward { .. })) {
            // Other shapes of packs; the last stands for activations in the arena.
            for number in [Some(1), Some(2), None] {
                let variants = KernelVariants { forward: number, backward: number, recompute: None };
                let mut session = session_with(device, &self.plan, Options { variants, ..Options::default() });
                assert!(self.run(&mut session, rows) == whole, "{what}: variant {number:?} changes the bits");
            }
        }
    }
}

//! Devices as programs that embed the library may have them: few features, WebGPU's default limits, gone.

use super::*;
use crate::engine::Engine;
use crate::engine::gpu::compile::bounds::SOFTWARE_ITERATIONS;
use crate::engine::gpu::device::open::Failure;
use crate::error::Error;
use crate::tape::{Memory, Tape, Then};

fn raw(limits: impl Fn(&wgpu::Adapter) -> wgpu::Limits, features: wgpu::Features) -> (wgpu::Device, wgpu::Queue) {
    let adapter = test_adapter();
    let descriptor =
        wgpu::DeviceDescriptor { required_limits: limits(&adapter), required_features: features, ..Default::default() };
    pollster::block_on(adapter.request_device(&descriptor)).unwrap()
}

/// Loss and gradients of a small model, and a decoded sample.
fn results(device: Device) -> (Vec<Vec<f32>>, Vec<f32>) {
    let plan = plan(Spec { dim: 7, width: 20, ..Spec::default() });
    let mut session = GpuSession::new(Arc::new(device), plan.clone(), Options::default()).unwrap();
    session.write(Values::Weights, &weights(&plan)).unwrap();
    let mut tape = Tape::training(plan.clone(), Memory::Stored);
    let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
    let mixed = tape.mix(0..1, false, x);
    let z = tape.couple(0, mixed, Buffer::EMPTY, log_det);
    let loss = tape.loss(z, log_det);
    tape.backward();
    let id = session.compile(tape.finish("test", vec![z, loss], Then::Gradients), 50).unwrap();
    let rows = numbers(2, 50 * 7, 1.0);
    let mut outputs =
        session.run(id, &Job { rows: 50, inputs: &[&rows], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    let gradients = session.gradients().unwrap();

    let mut tape = Tape::inference(plan.clone());
    let x = tape.normal(plan.spec.dim);
    tape.uncouple(0, x, Buffer::EMPTY, false);
    let id = session.compile(tape.finish("sample", vec![x], Then::Nothing), 50).unwrap();
    outputs.extend(session.run(id, &Job { rows: 50, inputs: &[], seed: 8, first_row: 0, ..Job::default() }).unwrap());
    (outputs, gradients)
}

/// WebGPU's defaults without any feature.
pub(super) fn poor() -> Device {
    let (device, queue) = raw(|_| wgpu::Limits::default(), wgpu::Features::empty());
    Device::adopt(device, queue).unwrap()
}

#[test]
fn webgpu_defaults_without_any_feature_give_the_same_bits() {
    let poor = poor();
    assert_eq!(poor.passing, crate::engine::gpu::kernels::shader::Passing::Buffer);
    let rich = super::device();
    assert!(results(poor) == results(Arc::into_inner(rich).unwrap()));
}

/// Release builds leave out the checks of indices and loops that wgpu adds.
#[test]
fn checks_of_the_kernels_change_nothing() {
    let [checked, unchecked] = [true, false].map(|checked| {
        let mut device = Arc::into_inner(super::device()).unwrap();
        device.checked = checked;
        results(device)
    });
    assert!(checked == unchecked);
}

#[test]
fn a_limit_that_is_too_low_is_named() {
    let limits = |_: &wgpu::Adapter| wgpu::Limits { max_compute_invocations_per_workgroup: 128, ..Default::default() };
    let (device, queue) = raw(limits, wgpu::Features::empty());
    let error = Engine::from_wgpu(device, queue).unwrap_err();
    let Error::UnsupportedLimit { name, needed, available, .. } = error else { panic!("{error}") };
    assert_eq!((name, needed, available), ("max_compute_invocations_per_workgroup", 256, 128));
}

#[test]
fn models_too_large_for_the_limits_are_refused_with_numbers() {
    let limits = |_: &wgpu::Adapter| wgpu::Limits { max_storage_buffer_binding_size: 1 << 16, ..Default::default() };
    let (device, queue) = raw(limits, wgpu::Features::empty());
    let device = Arc::new(Device::adopt(device, queue).unwrap());
    let wide = plan(Spec { dim: 20, width: 200, ..Spec::default() });
    let message = GpuSession::new(device.clone(), wide, Options::default()).err().unwrap().to_string();
    assert!(message.contains("65536") && message.contains("weights"), "{message}");
    // One that fits works in small tiles.
    let plan = plan(Spec { dim: 4, width: 8, blocks: 1, ..Spec::default() });
    let mut session = GpuSession::new(device, plan.clone(), Options::default()).unwrap();
    let mut tape = Tape::inference(plan.clone());
    let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
    let z = tape.couple(0, x, Buffer::EMPTY, log_det);
    let id = session.compile(tape.finish("test", vec![z], Then::Nothing), 5000).unwrap();
    let rows = numbers(1, 5000 * 4, 1.0);
    // All weights are zero, so the model is the identity.
    let outputs =
        session.run(id, &Job { rows: 5000, inputs: &[&rows], seed: 0, first_row: 0, ..Job::default() }).unwrap();
    assert_eq!(outputs[0], rows);
    assert!(session.footprint().total() < 1 << 20);
}

/// llvmpipe would leave the loops early and give wrong numbers.
#[test]
fn loops_that_would_end_early_are_refused() {
    let plan = plan(Spec { dim: 2, width: 400, blocks: 1, ..Spec::default() });
    let device = device();
    let session =
        |iterations: u64| session_with(&device, &plan, Options { iterations: Some(iterations), ..Options::default() });
    let mut tape = Tape::inference(plan.clone());
    let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
    let z = tape.couple(0, x, Buffer::EMPTY, log_det);
    let program = tape.finish("test", vec![z], Then::Nothing);
    let error = session(100).compile(program.clone(), 4).unwrap_err();
    assert!(
        matches!(error, Error::UnsupportedLimit { name: "loop iterations", available: 100, needed: 101.., .. }),
        "{error}"
    );
    session(SOFTWARE_ITERATIONS).compile(program, 4).unwrap();
}

#[test]
fn a_lost_device_is_an_error() {
    let device = device();
    let plan = plan(Spec { dim: 3, ..Spec::default() });
    let mut session = GpuSession::new(device.clone(), plan.clone(), Options::default()).unwrap();
    let mut tape = Tape::inference(plan.clone());
    let (x, log_det) = (tape.input(plan.spec.dim), tape.log_det());
    let z = tape.couple(0, x, Buffer::EMPTY, log_det);
    let id = session.compile(tape.finish("test", vec![z], Then::Nothing), 4).unwrap();
    device.device.destroy();
    for _ in 0..2 {
        let error = session
            .run(id, &Job { rows: 1, inputs: &[&[0.0; 3]], seed: 0, first_row: 0, ..Job::default() })
            .unwrap_err();
        assert!(matches!(error, Error::DeviceLost { .. }), "{error}");
        assert!(session.read(Values::Weights).is_err());
    }
}

/// wgpu's words for a lost device, by which an error that follows from it is known.
#[test]
fn the_text_of_a_lost_device() {
    let source = || Box::<dyn std::error::Error + Send + Sync>::from("cause");
    for (text, lost) in [("In Device::x\n  Parent device is lost\n", true), ("In Device::x\n  too large\n", false)] {
        let error = wgpu::Error::Validation { source: source(), description: text.to_owned() };
        assert_eq!(matches!(Failure::from(error), Failure::Lost(_)), lost, "{text}");
    }
}

#[test]
fn adapters_can_be_listed_and_named() {
    let all = crate::engine::gpu::adapters();
    assert!(!all.is_empty());
    for adapter in &all {
        let engine = Engine::named(&adapter.index.to_string()).unwrap();
        assert_eq!(engine.info(), adapter.device);
    }
    let message = Engine::named("no such adapter").unwrap_err().to_string();
    assert!(all.iter().all(|a| message.contains(&a.device.name)), "{message}");
    if let Some(engine) = Engine::real_gpu().unwrap() {
        assert_ne!(engine.info().kind, "software");
    }
    assert!(Engine::gpu().is_ok());
}

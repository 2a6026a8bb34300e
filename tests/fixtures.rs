//! Every fixture of kind flow, on every engine, within the bounds of the spec (section 7).

mod common;

use common::compare::{Tolerance, assert_close};
use common::engines;
use common::fixture::Fixture;
use hintflow::{Engine, Flow};

const VALUES: Tolerance = Tolerance::relative(1e-4);
const GRADIENTS: Tolerance = Tolerance::relative(1e-3).floor(1e-7);

fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn check(name: &str, engine: &Engine) {
    let fixture = Fixture::load(name);
    let flow = Flow::load(&fixture.model_path(), engine).expect("model");
    let x = f32s(fixture.x());

    let encoded = flow.encode(&x).expect("encode");
    assert_close("z", &encoded.z, fixture.data("out.z"), VALUES);
    assert_close("log-det", &encoded.log_det, fixture.data("out.logdet"), VALUES);

    let decoded = flow.decode(&f32s(fixture.data("in.latent"))).expect("decode");
    assert_close("inverse", &decoded, fixture.data("out.inverse"), VALUES);

    let (loss, gradients) = flow.loss_gradients(&x).expect("gradients");
    assert_close("loss", &[loss], fixture.data("out.loss"), VALUES);
    let mut seen = 0;
    for (tensor, got) in gradients.tensors.iter().filter(|(_, g)| !g.is_empty()) {
        assert_close(&format!("gradient of {tensor}"), got, fixture.data(&format!("grad.{tensor}")), GRADIENTS);
        seen += 1;
    }
    let wanted = fixture.group("grad.").values().filter(|t| !t.data.is_empty()).count();
    assert_eq!(seen, wanted, "tensors with a gradient");
}

macro_rules! fixtures {
    ($($name:ident),* $(,)?) => {
        mod cpu {
            $(#[test] fn $name() { super::check(stringify!($name), &super::engines::cpu()); })*
        }
        mod gpu {
            $(#[test] fn $name() { super::check(stringify!($name), &super::engines::gpu()); })*
        }
    };
}

fixtures!(
    flow_n100_depth2,
    flow_n1_nomix,
    flow_n20_depth0,
    flow_n20_full_input,
    flow_n20_full_output,
    flow_n3_exp,
    flow_n7_householder,
);

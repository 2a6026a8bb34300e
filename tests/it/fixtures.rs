//! Every fixture, on every engine, within the bounds of docs/model.md, Fixtures.

use crate::common::compare::{Tolerance, assert_close};
use crate::common::engines;
use crate::common::fixture::Fixture;
use crate::common::oracle::Kind;
use hintflow::flow::Encoded;
use hintflow::{Engine, Flow};

const VALUES: Tolerance = Tolerance::relative(1e-4);
const GRADIENTS: Tolerance = Tolerance::relative(1e-3).floor(1e-7);

fn f32s(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&v| v as f32).collect()
}

fn check(name: &str, engine: &Engine) {
    let fixture = Fixture::load(name);
    let flow = Flow::load(fixture.model_path(), engine).expect("model");
    let (x, y, latent) = (f32s(fixture.x()), f32s(fixture.y()), f32s(fixture.data("in.latent")));

    let assert_lane = |lane: &str, encoded: &Encoded| {
        assert_close(&format!("z{lane}"), &encoded.z, fixture.data(&format!("out.z{lane}")), VALUES);
        assert_close(&format!("log-det{lane}"), &encoded.log_det, fixture.data(&format!("out.logdet{lane}")), VALUES);
    };
    if fixture.spec.kind == Kind::Hint {
        let lanes = flow.joint().unwrap().encode(&y, &x).expect("encode");
        assert_lane("_y", &lanes.y);
        assert_lane("_x", &lanes.x);
    }
    let (decoded, (loss, gradients)) = match fixture.spec.kind {
        Kind::Flow => {
            assert_lane("", &flow.encode(&x).expect("encode"));
            (flow.decode(&latent), flow.loss_gradients(&x).expect("gradients"))
        }
        Kind::Cinn | Kind::Hint => {
            let given = flow.given(&y).expect("observations");
            let lane = if fixture.spec.kind == Kind::Hint { "_x" } else { "" };
            assert_lane(lane, &given.encode(&x).expect("encode"));
            (given.decode(&latent), given.loss_gradients(&x).expect("gradients"))
        }
    };
    assert_close("inverse", &decoded.expect("decode"), fixture.data("out.inverse"), VALUES);
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
    cinn_n20_c2,
    cinn_n7_c4_full_output,
    flow_n100_depth2,
    flow_n1_nomix,
    flow_n20_depth0,
    flow_n20_full_input,
    flow_n20_full_output,
    flow_n3_exp,
    flow_n7_householder,
    hint_n20_c2,
    hint_n5_c1_householder,
    cinn_n5_c3_spline,
    flow_n1_spline,
    flow_n20_spline_reverse,
    flow_n2_spline_reverse,
    flow_n33_spline_depth1,
    flow_n7_spline_permutation_output,
    hint_n1_c1_spline,
    hint_n5_c2_spline_output,
    hint_n7_c4_spline_reverse,
);

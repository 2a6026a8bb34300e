//! The curve itself, by a model of one column whose networks are constants: the biases of the last layer.

use crate::common::compare::{Tolerance, assert_close};
use crate::common::oracle::{Mixing, Model, Spec, SplineSettings, Tensors, Transform};

const CLOSE: Tolerance = Tolerance::relative(1e-12).floor(1e-12);

fn model(settings: SplineSettings, raw: &[f64]) -> Model {
    let spec = Spec { coupling: Transform::Spline(settings), blocks: 1, mixing: Mixing::None, ..Spec::flow(1) };
    let zeros = |shape: Vec<usize>| crate::common::oracle::Tensor::zeros(&shape);
    let mut params: Tensors = spec.shapes().into_iter().map(|(name, shape)| (name, zeros(shape))).collect();
    params.get_mut("blocks.0.tree.1.spline.2.bias").expect("a bias").data.copy_from_slice(raw);
    Model::new(spec, params)
}

const SETTINGS: SplineSettings = SplineSettings { bins: 3, half_width: 2.0, min_slope: 0.25 };

/// 3 widths, 3 heights, 2 slopes.
const RAW: [f64; 8] = [0.5, -1.0, 1.5, -0.5, 1.0, 0.25, 2.0, -1.5];

#[test]
fn raw_zeros_are_the_identity() {
    for bins in [1, 2, 8] {
        for min_slope in [1e-3, 0.5] {
            let settings = SplineSettings { bins, min_slope, ..SplineSettings::default() };
            let model = model(settings, &vec![0.0; 3 * bins - 1]);
            let x = [-7.0, -5.0, -4.9, -1.25, -0.1, 0.0, 0.7, 2.5, 4.99, 5.0, 6.0];
            let encoded = model.forward(&x, &[]);
            assert_close("z", &encoded.z, &x, CLOSE);
            assert_close("log-det", &encoded.log_det, &[0.0; 11], CLOSE);
            assert_close("inverse", &model.inverse(&x, &[]), &x, CLOSE);
        }
    }
}

#[test]
fn beyond_the_box_is_the_identity_to_the_bit() {
    let model = model(SETTINGS, &RAW);
    let x = [-1e30, -2.5, -2.0, 2.0, 3.0, 1e30];
    let encoded = model.forward(&x, &[]);
    assert_eq!(encoded.z, x);
    assert_eq!(encoded.log_det, [0.0; 6]);
    assert_eq!(model.inverse(&x, &[]), x);
    let gradients = model.vjp(&x, &[], &[3.0; 6], &[1.0; 6]);
    assert_eq!(gradients.x, [3.0; 6]);
    assert!(gradients.params.values().all(|gradient| gradient.data.iter().all(|&g| g == 0.0)));
}

/// Bins, knots and slopes from the definition, one by one.
#[test]
fn it_goes_through_its_knots_at_their_slopes() {
    let size = |raw: &[f64], i: usize| {
        let sum: f64 = raw.iter().map(|a| a.exp()).sum();
        4.0 * (0.001 + (1.0 - 0.003) * raw[i].exp() / sum)
    };
    let (x_1, x_2) = (-2.0 + size(&RAW[..3], 0), 2.0 - size(&RAW[..3], 2));
    let (y_1, y_2) = (-2.0 + size(&RAW[3..6], 0), 2.0 - size(&RAW[3..6], 2));
    let slope = |e: f64| 0.25 + (1.0 + e.exp() * (0.75_f64.exp() - 1.0)).ln();
    let (d_1, d_2) = (slope(RAW[6]), slope(RAW[7]));

    let model = model(SETTINGS, &RAW);
    let encoded = model.forward(&[x_1, x_2], &[]);
    assert_close("knots", &encoded.z, &[y_1, y_2], CLOSE);
    assert_close("slopes", &encoded.log_det, &[d_1.ln(), d_2.ln()], CLOSE);
    let encoded = model.forward(&[-2.0 + 1e-9, x_1 - 1e-9, 2.0 - 1e-9], &[]);
    let near = Tolerance::relative(1e-7);
    assert_close("from the left", &encoded.z, &[-2.0, y_1, 2.0], near);
    assert_close("slopes from the left", &encoded.log_det, &[0.0, d_1.ln(), 0.0], near);

    // The middle of the middle bin, where t = 1 - t = 1/2.
    let (w, h) = (x_2 - x_1, y_2 - y_1);
    let s = h / w;
    let below = s + (d_1 + d_2 - 2.0 * s) / 4.0;
    let encoded = model.forward(&[(x_1 + x_2) / 2.0], &[]);
    assert_close("middle", &encoded.z, &[y_1 + h * (s + d_1) / 4.0 / below], CLOSE);
    let slope = s * s * (d_1 + 2.0 * s + d_2) / 4.0 / (below * below);
    assert_close("slope of the middle", &encoded.log_det, &[slope.ln()], CLOSE);
}

#[test]
fn the_margin_is_the_distance_to_the_nearest_knot() {
    let model = model(SplineSettings { bins: 4, half_width: 2.0, ..SETTINGS }, &[0.0; 11]);
    let encoded = model.forward(&[-2.125, -0.75, 0.0625, 1.5], &[]);
    assert_close("margins", &encoded.knot_margin, &[0.125, 0.25, 0.0625, 0.5], CLOSE);
}

#[test]
fn model_files_name_it_and_absent_keys_take_the_defaults() {
    let spec = |coupling: &str| -> Spec {
        let head = r#"{"kind":"flow","dim":2,"blocks":1,"depth":99,"width":8,"mixing":"reverse""#;
        serde_json::from_str(&format!("{head}{coupling}}}")).expect("a spec")
    };
    let default = SplineSettings { bins: 8, half_width: 5.0, min_slope: 1e-3 };
    assert_eq!(spec("").coupling, Transform::Affine);
    assert_eq!(spec(r#","coupling":{"kind":"affine"}"#).coupling, Transform::Affine);
    assert_eq!(spec(r#","coupling":{"kind":"spline"}"#).coupling, Transform::Spline(default));
    let other = SplineSettings { bins: 4, half_width: 3.0, min_slope: 0.01 };
    let text = r#","coupling":{"kind":"spline","bins":4,"box":3.0,"min_slope":0.01}"#;
    assert_eq!(spec(text).coupling, Transform::Spline(other));
    let written = serde_json::to_value(spec(text)).expect("plain data");
    let keys = serde_json::json!({"kind": "spline", "bins": 4, "box": 3.0, "min_slope": 0.01});
    assert_eq!((&written["coupling"], &written["mixing"]), (&keys, &"reverse".into()));
    assert!(serde_json::to_value(spec("")).expect("plain data").get("coupling").is_none());
}

/// One network a node, its outputs column by column.
#[test]
fn tensors_have_the_names_and_shapes_of_the_model_file() {
    let coupling = Transform::Spline(SplineSettings::default());
    let shapes = Spec { coupling, width: 8, mixing: Mixing::Permutation, ..Spec::hint(5, 2) }.shapes();
    assert_eq!(shapes["blocks.0.x.tree.1.spline.2.weight"], [3 * 23, 8]);
    assert_eq!(shapes["blocks.1.x.tree.3.spline.2.bias"], [2 * 23]);
    assert_eq!(shapes["blocks.1.y.tree.1.spline.0.weight"], [8, 1]);
    assert_eq!(shapes["blocks.0.cross.spline.2.weight"], [5 * 23, 8]);
    assert_eq!(shapes["blocks.1.y.mix.weight"], [2, 2]);
    // Two blocks of five networks (root and two children, y, cross) with six tensors, and two mixings.
    assert_eq!(shapes.len(), 2 * (5 * 6 + 2));
}

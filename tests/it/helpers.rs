//! The shared helpers are themselves tested: the comparison, Jacobians, determinants, random models and rows.

/// The comparison helper fails if it must.
mod comparison {
    use crate::common::compare::{Tolerance, assert_close};

    const TIGHT: Tolerance = Tolerance::relative(1e-3);

    #[test]
    fn accepts_both_precisions_within_the_tolerance_of_the_largest_entry() {
        assert_close("f64", &[100.05, 0.05, -3.0], &[100.0, 0.0, -3.05], TIGHT);
        assert_close("f32", &[100.05_f32, 0.05, -3.0], &[100.0, 0.0, -3.05], TIGHT);
        assert_close::<f64>("nothing", &[], &[], TIGHT);
    }

    #[test]
    #[should_panic(expected = "probe: at index 1 got 2.1e0, expected 2e0")]
    fn one_wrong_element_fails_and_the_worst_is_named() {
        assert_close("probe", &[1.003, 2.1, 3.004], &[1.0, 2.0, 3.0], TIGHT);
    }

    #[test]
    #[should_panic(expected = "at index 2 got NaN, expected 3e0")]
    fn a_nan_fails_however_wrong_the_others_are() {
        assert_close("probe", &[1.0, 500.0, f64::NAN], &[1.0, 2.0, 3.0], Tolerance::relative(1e9));
    }

    #[test]
    #[should_panic(expected = "at index 0 got inf")]
    fn an_infinity_fails() {
        assert_close("probe", &[f32::INFINITY, 2.0], &[1.0, 2.0], Tolerance::relative(1e9).floor(1e300));
    }

    #[test]
    #[should_panic(expected = "at index 0 got inf")]
    fn an_infinity_fails_even_an_infinite_tolerance() {
        assert_close("probe", &[f64::INFINITY, 2.0], &[1.0, 2.0], Tolerance::relative(f64::INFINITY));
    }

    #[test]
    #[should_panic(expected = "exceeds NaN")]
    fn a_tolerance_that_is_nan_lets_nothing_pass() {
        assert_close("probe", &[1.0], &[1.0], Tolerance::relative(f64::NAN).floor(f64::NAN));
    }

    #[test]
    #[should_panic(expected = "the expected value at index 1 is NaN")]
    fn a_nan_is_never_expected() {
        assert_close("probe", &[1.0, f64::NAN], &[1.0, f64::NAN], TIGHT);
    }

    #[test]
    #[should_panic(expected = "probe: 2 elements, expected 3")]
    fn another_length_fails() {
        assert_close("probe", &[1.0, 2.0], &[1.0, 2.0, 3.0], TIGHT);
    }

    #[test]
    #[should_panic(expected = "at index 1 got 1e-12, expected 0e0")]
    fn zeros_are_exact_without_a_floor() {
        assert_close("probe", &[0.0, 1e-12], &[0.0, 0.0], TIGHT);
    }

    #[test]
    fn a_floor_lets_rounding_pass_where_zeros_are_expected() {
        assert_close("probe", &[0.0, 1e-12], &[0.0, 0.0], TIGHT.floor(1e-9));
    }

    #[test]
    #[should_panic(expected = "exceeds 1e-9")]
    fn a_floor_is_a_limit_too() {
        assert_close("probe", &[0.0, 1e-8], &[0.0, 0.0], TIGHT.floor(1e-9));
    }
}

/// Jacobians, determinants, random numbers, kinks.
mod models {
    use crate::common::compare::{Tolerance, assert_close};
    use crate::common::jacobian::{block_dependence, log_abs_det, numerical_jacobian};
    use crate::common::oracle::{Mixing, Model, Spec, SplineSettings, Transform};
    use crate::common::random::{Rng, random_model, random_orthogonal, random_rows};

    #[test]
    fn a_jacobian_has_a_row_for_every_output() {
        let f = |x: &[f64]| vec![x[0] * x[1], x[1].sin(), 3.0 * x[0]];
        let got = numerical_jacobian(f, &[2.0, 0.5], 1e-6);
        assert_close("J", &got, &[0.5, 2.0, 0.0, 0.5_f64.cos(), 3.0, 0.0], Tolerance::relative(1e-9));
    }

    #[test]
    fn determinants_need_pivots_and_know_singular_matrices() {
        let tolerance = Tolerance::relative(1e-12);
        // Zero in the first pivot; det = -(1 * (4 * 1 - 0)) + 2 * (4 * 5 - 3 * 0) = 36, by the first row.
        let matrix = [0.0, 1.0, 2.0, 4.0, 3.0, 0.0, 0.0, 5.0, 1.0];
        assert_close("det", &[log_abs_det(&matrix, 3)], &[36.0_f64.ln()], tolerance);
        // A tiny pivot would lose the other entries to rounding.
        let matrix = [1e-20, 1.0, 1.0, 1.0];
        assert_close("det", &[log_abs_det(&matrix, 2).exp()], &[1.0], tolerance);
        assert_eq!(log_abs_det(&[1.0, 2.0, 2.0, 4.0], 2), f64::NEG_INFINITY);
        assert_eq!(log_abs_det(&[], 0), 0.0);
        let q = random_orthogonal(&mut Rng::new(1), 20);
        assert_close("det Q", &[log_abs_det(&q, 20)], &[0.0], Tolerance::relative(0.0).floor(1e-6));
    }

    #[test]
    fn dependence_is_that_of_real_nvp_without_recursion() {
        let pattern = |depth, dim| {
            let may = block_dependence(&Spec { depth, ..Spec::flow(dim) });
            may.chunks(dim)
                .map(|row| row.iter().map(|&m| if m { 'x' } else { '.' }).collect::<String>())
                .collect::<Vec<_>>()
        };
        assert_eq!(pattern(0, 5), ["x....", ".x...", "xxx..", "xx.x.", "xx..x"]);
        assert_eq!(pattern(99, 5), ["x....", "xx...", "xxx..", "xxxx.", "xxx.x"]);
        assert_eq!(pattern(1, 8)[7], "xxxxxx.x");
        assert_eq!(pattern(2, 8)[7], "xxxxxxxx");
    }

    #[test]
    fn random_numbers_have_the_moments_of_their_distribution() {
        let values = Rng::new(9).normals(100_000, 2.0);
        let moment = |power| values.iter().map(|v: &f64| v.powi(power)).sum::<f64>() / values.len() as f64;
        assert_close("moments", &[moment(1), moment(2), moment(4)], &[0.0, 4.0, 48.0], Tolerance::relative(0.03));
        let uniforms = Rng::new(9).uniforms(100_000, 2.0);
        let variance = uniforms.iter().map(|v| v * v).sum::<f64>() / uniforms.len() as f64;
        assert_close("variance", &[variance], &[4.0], Tolerance::relative(0.03));
        assert!(values.iter().all(|&v| f64::from(v as f32) == v), "every value is a float32");
    }

    #[test]
    fn the_margin_is_the_distance_to_the_nearest_kink() {
        let spec = Spec { blocks: 1, width: 1, mixing: Mixing::None, ..Spec::flow(2) };
        let mut params = random_model(1, spec.clone()).params;
        // s has its first kink at x_0 = 0.25 with slope 2, everything else is far from its own.
        for network in ["s", "t"] {
            for (name, value) in [("0.weight", 2.0), ("0.bias", -0.5), ("1.weight", 1.0), ("1.bias", 50.0)] {
                let name = format!("blocks.0.tree.1.{network}.{name}");
                params.get_mut(&name).expect("a tensor of the root").data[0] = value;
            }
        }
        params.get_mut("blocks.0.tree.1.t.0.bias").expect("a bias").data[0] = 40.0;
        let model = Model::new(spec, params);
        assert_close("margin", &[model.min_relu_margin(&[0.3, 9.0], &[])], &[0.1], Tolerance::relative(1e-12));
        let two_rows = model.forward(&[1.25, 0.0, 0.25, 0.0], &[]).relu_margin;
        assert_close("margins", &two_rows, &[2.0, 0.0], Tolerance::relative(1e-12));
        let (x, _) = random_rows(&model, 1, 50, 0.5);
        assert!(x.chunks(2).all(|x| (2.0 * x[0] - 0.5).abs() > 0.5), "rows keep the margin they were asked for");
    }

    #[test]
    fn the_margin_sees_every_network() {
        let coupling = Transform::Spline(SplineSettings::default());
        let mut specs = vec![Spec::flow(8), Spec::cinn(5, 2), Spec::hint(8, 5)];
        specs.extend(specs.clone().into_iter().map(|spec| Spec { coupling, ..spec }));
        for spec in specs {
            let model = random_model(3, spec);
            let (x, y) = random_rows(&model, 3, 1, 1e-5);
            for name in model.params.keys().filter(|name| name.ends_with(".1.bias")) {
                // One unit of the second layer always hands 1e-9 to its ReLU.
                let mut params = model.params.clone();
                params.get_mut(name).expect("a bias").data[0] = 1e-9;
                let weight = params.get_mut(&name.replace("bias", "weight")).expect("a weight");
                let columns = weight.shape[1];
                weight.data[..columns].fill(0.0);
                let margin = Model::new(model.spec.clone(), params).min_relu_margin(&x, &y);
                assert!(margin <= 1e-9, "{name}: {margin}");
            }
        }
    }

    #[test]
    fn random_models_are_nonlinear_and_tame() {
        let coupling = Transform::Spline(SplineSettings::default());
        let mut specs = vec![Spec::flow(2), Spec::flow(20), Spec::cinn(7, 2), Spec::hint(20, 4)];
        specs.extend(specs.clone().into_iter().map(|spec| Spec { coupling, ..spec }));
        for (seed, spec) in specs.into_iter().enumerate() {
            let model = random_model(seed as u64, Spec { width: 32, blocks: 4, ..spec });
            let (x, y) = random_rows(&model, 1, 20, 0.0);
            let encoded = model.forward(&x, &y);
            let largest = encoded.z.iter().fold(0.0_f64, |largest, z| largest.max(z.abs()));
            assert!((1.0..200.0).contains(&largest), "largest z {largest} of {:?}", model.spec);
            let spread = encoded.log_det.iter().fold(0.0_f64, |s, l| s.max((l - encoded.log_det[0]).abs()));
            assert!(spread > 0.5, "a log-det that hardly varies ({spread}) would hide mistakes: {:?}", model.spec);
        }
    }
}

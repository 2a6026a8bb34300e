//! The oracle is itself tested: against the fixtures of an independent implementation, against finite differences,
//! and against what any correct flow must fulfil.

mod spline;

/// Every fixture, one test each.
mod fixtures {
    use crate::common::compare::{Tolerance, assert_close};
    use crate::common::fixture::{FIXTURES, Fixture, SPLINE_FIXTURES, folder, read_model, write_model};
    use crate::common::oracle::{Adam, Encoded, Kind, Tensors};
    use crate::common::random::random_model;

    /// Both sides are float64; what differs is the order of sums.
    const CLOSE: Tolerance = Tolerance::relative(1e-10).floor(1e-13);

    macro_rules! one_test_each {
        ($($name:ident)*) => {
            $(#[test]
            fn $name() {
                agrees(stringify!($name));
            })*

            #[test]
            fn every_fixture_has_a_test() {
                let mut files: Vec<String> = std::fs::read_dir(folder())
                    .expect("the folder of the fixtures")
                    .map(|entry| entry.expect("an entry").file_name().into_string().expect("an ASCII name"))
                    .filter_map(|name| name.strip_suffix(".fixture.safetensors").map(str::to_owned))
                    .collect();
                files.sort();
                assert_eq!(files, [$(stringify!($name)),*]);
                let mut named = [&FIXTURES[..], &SPLINE_FIXTURES].concat();
                named.sort();
                assert_eq!(files, named);
            }
        };
    }

    one_test_each! {
        cinn_n20_c2
        cinn_n5_c3_spline
        cinn_n7_c4_full_output
        flow_n100_depth2
        flow_n1_nomix
        flow_n1_spline
        flow_n20_depth0
        flow_n20_full_input
        flow_n20_full_output
        flow_n20_spline_reverse
        flow_n2_spline_reverse
        flow_n33_spline_depth1
        flow_n3_exp
        flow_n7_householder
        flow_n7_spline_permutation_output
        hint_n1_c1_spline
        hint_n20_c2
        hint_n5_c1_householder
        hint_n5_c2_spline_output
        hint_n7_c4_spline_reverse
    }

    fn agrees(name: &str) {
        let fixture = Fixture::load(name);
        let mut model = fixture.model();
        assert_eq!(read_model(&fixture.model_path()), model, "the model file and param.*");
        let (x, y) = (fixture.x(), fixture.y());

        let Encoded { z, log_det, .. } = model.forward(x, y);
        assert_close("z", &z, &expected(&fixture, "out.z", fixture.spec.cond_dim), CLOSE);
        assert_close("log-det", &log_det, &expected(&fixture, "out.logdet", 1), CLOSE);
        assert_close("loss", &[model.loss(x, y)], fixture.data("out.loss"), CLOSE);
        let inverse = model.inverse(fixture.data("in.latent"), y);
        assert_close("inverse", &inverse, fixture.data("out.inverse"), CLOSE);
        all_close("grad", &model.loss_gradients(x, y).params, &fixture.group("grad."));

        let mut adam = Adam::new(fixture.adam);
        for _ in 0..3 {
            let gradients = model.loss_gradients(x, y);
            adam.step(&mut model.params, &gradients.params);
        }
        let mut trained = model.params;
        trained.retain(|name, _| crate::common::oracle::is_trained(name));
        all_close("adam3", &trained, &fixture.group("adam3."));
    }

    /// A result as the oracle lays it out: with two lanes `[y, x]` in every row, y of `y_columns`.
    fn expected(fixture: &Fixture, name: &str, y_columns: usize) -> Vec<f64> {
        if fixture.spec.kind != Kind::Hint {
            return fixture.data(name).to_vec();
        }
        let (y, x) = (fixture.data(&format!("{name}_y")), fixture.data(&format!("{name}_x")));
        let x_columns = x.len() / (y.len() / y_columns);
        y.chunks(y_columns).zip(x.chunks(x_columns)).flat_map(|(y, x)| [y, x].concat()).collect()
    }

    fn all_close(what: &str, got: &Tensors, want: &Tensors) {
        // A fixture leaves out what has no elements.
        let names = |tensors: &Tensors| -> Vec<String> {
            tensors.iter().filter(|(_, tensor)| !tensor.data.is_empty()).map(|(name, _)| name.clone()).collect()
        };
        assert_eq!(names(got), names(want), "names of {what}.*");
        for (name, want) in want {
            assert_eq!(got[name].shape, want.shape, "shape of {what}.{name}");
            assert_close(&format!("{what}.{name}"), &got[name].data, &want.data, CLOSE);
        }
    }

    #[test]
    fn a_written_model_reads_back_equal() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("model.safetensors");
        for name in FIXTURES.iter().chain(&SPLINE_FIXTURES) {
            let model = random_model(1, Fixture::load(name).spec);
            write_model(&path, &model);
            assert_eq!(read_model(&path), model, "{name}");
        }
    }
}

/// Small models that cover every option and the awkward sizes.
fn awkward_specs() -> Vec<crate::common::oracle::Spec> {
    use crate::common::oracle::{ConditionOn, Mixing, Scale, Spec};

    let mut specs = Vec::new();
    for (dim, condition_on) in
        [1, 2, 3, 4, 5, 9].into_iter().flat_map(|n| [(n, ConditionOn::Input), (n, ConditionOn::Output)])
    {
        specs.push(Spec { width: 3, condition_on, ..Spec::flow(dim) });
    }
    let output = ConditionOn::Output;
    specs.extend([
        Spec { mix_first: false, width: 1, ..Spec::flow(5) },
        Spec { mixing: Mixing::Fixed, ..Spec::flow(4) },
        Spec { mixing: Mixing::None, blocks: 3, ..Spec::flow(7) },
        Spec { depth: 0, ..Spec::flow(7) },
        Spec { depth: 1, ..Spec::flow(9) },
        Spec { scale: Scale::Exp, ..Spec::flow(5) },
        Spec { scale: Scale::Atan { slope: 1.5 }, ..Spec::flow(4) },
        Spec { width: 4, ..Spec::cinn(5, 2) },
        Spec { width: 4, condition_on: output, ..Spec::cinn(4, 1) },
        Spec { ..Spec::cinn(1, 3) },
        Spec { width: 4, ..Spec::hint(5, 1) },
        Spec { width: 4, condition_on: output, ..Spec::hint(4, 5) },
        Spec { mixing: Mixing::Fixed, mix_first: false, ..Spec::hint(1, 2) },
        Spec { mixing: Mixing::Reverse, ..Spec::flow(4) },
        Spec { mixing: Mixing::Permutation, ..Spec::hint(5, 3) },
    ]);
    specs.extend(spline_specs());
    specs
}

/// The same of splines. Rows are N(0, 1), so a small box leaves some columns of most rows beyond it.
fn spline_specs() -> Vec<crate::common::oracle::Spec> {
    use crate::common::oracle::{ConditionOn, Mixing, Spec, SplineSettings, Transform};

    let with = |bins, half_width, spec: Spec| {
        let settings = SplineSettings { bins, half_width, ..SplineSettings::default() };
        Spec { coupling: Transform::Spline(settings), width: 3, mixing: Mixing::Reverse, ..spec }
    };
    let steep = Transform::Spline(SplineSettings { bins: 5, half_width: 2.0, min_slope: 0.5 });
    let mut specs = Vec::new();
    for condition_on in [ConditionOn::Input, ConditionOn::Output] {
        let dims = [(1, 8, 1.5), (2, 1, 5.0), (3, 2, 1.0), (5, 3, 2.0), (7, 2, 1.0), (20, 2, 1.5), (33, 2, 1.5)];
        specs.extend(
            dims.map(|(dim, bins, half_width)| with(bins, half_width, Spec { condition_on, ..Spec::flow(dim) })),
        );
        specs.extend([
            Spec { condition_on, coupling: steep, ..with(8, 5.0, Spec::flow(4)) },
            Spec { condition_on, mixing: Mixing::Permutation, depth: 1, ..with(2, 1.5, Spec::flow(9)) },
            Spec { condition_on, mixing: Mixing::Fixed, depth: 0, ..with(3, 1.5, Spec::flow(5)) },
            Spec { condition_on, mixing: Mixing::None, ..with(8, 5.0, Spec::flow(4)) },
            Spec { condition_on, mixing: Mixing::Householder, ..with(2, 1.5, Spec::cinn(5, 2)) },
            Spec { condition_on, mix_first: false, ..with(3, 1.5, Spec::cinn(1, 3)) },
            Spec { condition_on, ..with(3, 1.5, Spec::hint(1, 1)) },
            Spec { condition_on, ..with(2, 2.0, Spec::hint(7, 4)) },
            Spec { condition_on, mixing: Mixing::Householder, ..with(2, 1.5, Spec::hint(2, 5)) },
        ]);
    }
    specs
}

/// Reverse mode against central finite differences.
mod gradients {
    use super::awkward_specs;
    use crate::common::compare::{Tolerance, assert_close};
    use crate::common::oracle::{Encoded, Gradients, Model};
    use crate::common::random::{Rng, random_model, random_rows};

    const STEP: f64 = 1e-6;
    const CLOSE: Tolerance = Tolerance::relative(1e-7).floor(1e-7);

    /// Central difference of `f` as the `i`-th value moves.
    fn slope(values: &mut [f64], i: usize, f: impl Fn(&[f64]) -> f64) -> f64 {
        let middle = values[i];
        let mut at = |value: f64| {
            values[i] = value;
            f(values)
        };
        let slope = (at(middle + STEP) - at(middle - STEP)) / (2.0 * STEP);
        values[i] = middle;
        slope
    }

    fn slopes(values: &[f64], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let mut values = values.to_vec();
        (0..values.len()).map(|i| slope(&mut values, i, &f)).collect()
    }

    /// Compares gradients with the slopes of `objective(model, x, y)`.
    fn assert_gradients(
        model: &Model,
        (x, y): (&[f64], &[f64]),
        gradients: &Gradients,
        objective: impl Fn(&Model, &[f64], &[f64]) -> f64,
    ) {
        let spec = &model.spec;
        assert_close(&format!("dx of {spec:?}"), &gradients.x, &slopes(x, |x| objective(model, x, y)), CLOSE);
        assert_close(&format!("dy of {spec:?}"), &gradients.y, &slopes(y, |y| objective(model, x, y)), CLOSE);
        for (name, gradient) in &gradients.params {
            let want = slopes(&model.params[name].data, |values| {
                let mut moved = model.clone();
                moved.params.get_mut(name).expect("a trained tensor").data.copy_from_slice(values);
                objective(&moved, x, y)
            });
            assert_close(&format!("{name} of {spec:?}"), &gradient.data, &want, CLOSE);
        }
    }

    #[test]
    fn vjp_is_the_slope_of_any_weighted_sum_of_the_outputs() {
        for (seed, spec) in awkward_specs().into_iter().enumerate() {
            let seed = seed as u64;
            let model = random_model(seed, spec);
            let (x, y) = random_rows(&model, seed, 2, 1e-4);
            let mut rng = Rng::new(seed + 1000);
            let d_z = rng.normals(2 * model.spec.latent_dim(), 1.0);
            let d_log_det = rng.normals(2 * model.spec.lanes(), 1.0);
            let weighted = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
            let gradients = model.vjp(&x, &y, &d_z, &d_log_det);
            assert_gradients(&model, (&x, &y), &gradients, |model, x, y| {
                let Encoded { z, log_det, .. } = model.forward(x, y);
                weighted(&d_z, &z) + weighted(&d_log_det, &log_det)
            });
        }
    }

    #[test]
    fn loss_gradients_are_the_slopes_of_the_loss() {
        for (seed, spec) in awkward_specs().into_iter().enumerate().filter(|(seed, _)| seed % 6 == 3) {
            let model = random_model(seed as u64, spec);
            let (x, y) = random_rows(&model, seed as u64, 3, 1e-4);
            assert_gradients(&model, (&x, &y), &model.loss_gradients(&x, &y), Model::loss);
        }
    }

    #[test]
    fn every_trained_tensor_has_a_gradient_and_only_those() {
        for (seed, spec) in awkward_specs().into_iter().enumerate() {
            let model = random_model(seed as u64, spec);
            let (x, y) = random_rows(&model, 5, 2, 0.0);
            let gradients = model.loss_gradients(&x, &y).params;
            for (name, tensor) in &model.params {
                assert_eq!(gradients.contains_key(name), !name.ends_with(".mix.weight"), "{name}");
                if let Some(gradient) = gradients.get(name) {
                    assert_eq!(gradient.shape, tensor.shape, "{name}");
                }
            }
        }
    }
}

/// What every flow must fulfil.
mod contract {
    use super::awkward_specs;
    use crate::common::compare::{Tolerance, assert_close};
    use crate::common::jacobian::{block_dependence, log_abs_det, numerical_jacobian};
    use crate::common::oracle::{ConditionOn, Kind, Mixing, Model, Spec, SplineSettings, Transform};
    use crate::common::random::{random_model, random_rows};

    /// Fixed mixing matrices are orthogonal only up to the rounding of float32.
    const CLOSE: Tolerance = Tolerance::relative(1e-6);

    /// The map of one row, two lanes as `[y, x] -> [z_y, z_x]`.
    fn row_map(model: &Model, y: &[f64]) -> impl Fn(&[f64]) -> Vec<f64> {
        move |row| match model.spec.kind {
            Kind::Hint => {
                let (y, x) = row.split_at(model.spec.cond_dim);
                model.forward(x, y).z
            }
            _ => model.forward(row, y).z,
        }
    }

    /// The point of that map that a row is.
    fn point(model: &Model, x: &[f64], y: &[f64]) -> Vec<f64> {
        if model.spec.kind == Kind::Hint { [y, x].concat() } else { x.to_vec() }
    }

    #[test]
    fn decode_undoes_encode() {
        for (seed, spec) in awkward_specs().into_iter().chain([Spec::flow(33)]).enumerate() {
            let model = random_model(seed as u64, spec);
            let (n, c) = (model.spec.dim, model.spec.cond_dim);
            let (x, y) = random_rows(&model, seed as u64, 5, 0.0);
            let z = model.forward(&x, &y).z;
            let z_x: Vec<f64> = z.chunks(model.spec.latent_dim()).flat_map(|z| &z[z.len() - n..]).copied().collect();
            assert_close(&format!("x of {:?}", model.spec), &model.inverse(&z_x, &y), &x, CLOSE);
            if model.spec.kind == Kind::Hint {
                let rows: Vec<f64> = y.chunks(c).zip(x.chunks(n)).flat_map(|(y, x)| [y, x].concat()).collect();
                assert_close(&format!("[y, x] of {:?}", model.spec), &model.inverse_joint(&z), &rows, CLOSE);
            }
        }
    }

    #[test]
    fn log_det_is_that_of_the_numerical_jacobian() {
        for (seed, spec) in awkward_specs().into_iter().chain([Spec::flow(33)]).enumerate() {
            let model = random_model(seed as u64, spec);
            let (x, y) = random_rows(&model, seed as u64, 1, 1e-5);
            let jacobian = numerical_jacobian(row_map(&model, &y), &point(&model, &x, &y), 1e-6);
            let want = log_abs_det(&jacobian, model.spec.latent_dim());
            let got: f64 = model.forward(&x, &y).log_det.iter().sum();
            assert_close(&format!("log-det of {:?}", model.spec), &[got], &[want], CLOSE.floor(1e-6));
        }
    }

    #[test]
    fn the_jacobian_of_a_block_is_the_triangle_of_the_paper() {
        let mut kinds = vec![Spec::flow(20), Spec::flow(7), Spec::flow(1), Spec::cinn(9, 2), Spec::hint(6, 5)];
        let coupling = Transform::Spline(SplineSettings::default());
        kinds.extend(kinds.clone().into_iter().map(|kind| Spec { coupling, ..kind }));
        for (kind, depth) in kinds.iter().flat_map(|kind| [0, 1, 2, 99].map(|depth| (kind, depth))) {
            for condition_on in [ConditionOn::Input, ConditionOn::Output] {
                let spec = Spec { blocks: 1, depth, width: 64, mixing: Mixing::None, condition_on, ..kind.clone() };
                let model = random_model(7, spec);
                let (x, y) = random_rows(&model, 7, 1, 1e-6);
                let jacobian = numerical_jacobian(row_map(&model, &y), &point(&model, &x, &y), 1e-7);
                let n = model.spec.latent_dim();
                for (index, (entry, may)) in jacobian.iter().zip(block_dependence(&model.spec)).enumerate() {
                    let (i, j) = (index / n, index % n);
                    // Networks this wide let no dependence vanish by chance, so the pattern is exact both ways.
                    assert_eq!(*entry != 0.0, may, "entry ({i}, {j}) is {entry} for {:?}", model.spec);
                    assert!(i != j || *entry > 0.0, "the diagonal is positive");
                }
            }
        }
    }

    #[test]
    fn rows_do_not_depend_on_their_batch() {
        for (seed, spec) in awkward_specs().into_iter().enumerate() {
            let model = random_model(seed as u64, spec);
            let (n, c) = (model.spec.dim, model.spec.cond_dim);
            let (x, y) = random_rows(&model, 3, 3, 0.0);
            let batch = model.forward(&x, &y);
            let alone = model.forward(&x[n..2 * n], &y[c..2 * c]);
            assert_eq!(batch.z[model.spec.latent_dim()..][..model.spec.latent_dim()], alone.z);
            assert_eq!(batch.log_det[model.spec.lanes()..][..model.spec.lanes()], alone.log_det);
        }
    }

    #[test]
    fn the_density_integrates_to_one_in_two_dimensions() {
        let affine = Spec { blocks: 1, width: 4, ..Spec::flow(2) };
        let coupling = Transform::Spline(SplineSettings { bins: 4, half_width: 3.0, ..SplineSettings::default() });
        integrates_to_one(&random_model(2, Spec { coupling, ..affine.clone() }));
        integrates_to_one(&random_model(2, affine));
    }

    fn integrates_to_one(model: &Model) {
        let (half, steps) = (10.0, 400_usize);
        let cell = 2.0 * half / steps as f64;
        let centre = |i: usize| (i as f64 + 0.5) * cell - half;
        let grid: Vec<f64> = (0..steps).flat_map(|i| (0..steps).flat_map(move |j| [centre(i), centre(j)])).collect();
        let mass: f64 = model.log_prob(&grid, &[]).iter().map(|log_p| log_p.exp() * cell * cell).sum();
        assert_close("mass", &[mass], &[1.0], Tolerance::relative(1e-3));
    }

    #[test]
    fn the_lanes_multiply_to_the_joint_density() {
        let model = random_model(4, Spec::hint(4, 3));
        let (x, y) = random_rows(&model, 4, 4, 0.0);
        let (posterior, evidence) = (model.log_prob(&x, &y), model.evidence_log_prob(&y));
        let product: Vec<f64> = posterior.iter().zip(&evidence).map(|(a, b)| a + b).collect();
        assert_close("log p(y, x)", &model.joint_log_prob(&x, &y), &product, CLOSE);

        // The joint density is that of 7 dimensions and the loss its negative mean without the constant.
        let constant = 7.0 / 2.0 * (2.0 * std::f64::consts::PI).ln();
        let mean = product.iter().sum::<f64>() / 4.0;
        assert_close("loss", &[model.loss(&x, &y)], &[-mean - constant], CLOSE);
    }

    #[test]
    fn mix_first_decides_about_the_first_block_only() {
        let names = |mix_first| {
            let shapes = Spec { blocks: 3, mix_first, ..Spec::flow(4) }.shapes();
            shapes.into_keys().filter(|name| name.ends_with("mix.reflections")).collect::<Vec<_>>()
        };
        assert_eq!(names(false), ["blocks.1.mix.reflections", "blocks.2.mix.reflections"]);
        assert_eq!(names(true).len(), 3);
    }
}

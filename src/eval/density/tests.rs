use super::*;

/// Rows of a column of usual values, and the log-densities of a model that is right about all but the last rows.
fn most_right(rows: usize, wrong: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let x: Vec<f32> = (0..rows).map(|i| (i as f32 * 0.7).sin()).collect();
    let training = TrainingRows::fit(&x, 1, |_, _| 0.0);
    let gaussian = training.gaussian().unwrap();
    let mut log_prob: Vec<f32> = x.chunks_exact(1).map(|row| gaussian.log_prob(row, 0) as f32).collect();
    log_prob[rows - wrong.len()..].copy_from_slice(wrong);
    (x, log_prob)
}

fn compared(x: &[f32], log_prob: &[f32]) -> Density {
    let training = TrainingRows::fit(x, 1, |_, _| 0.0);
    Density::of("held-out rows", log_prob, None).against(&training.gaussian().unwrap(), x, [1, 0], log_prob, None)
}

#[test]
fn a_single_bad_row_is_named_and_warned_of() {
    let (x, log_prob) = most_right(1000, &[-5e26]);
    let density = compared(&x, &log_prob);
    assert_eq!(density.worst[0], Row { row: 1000, log_prob: f64::from(-5e26f32) });
    let below = density.gaussian.clone().unwrap();
    assert_eq!((below.rows, below.below, below.broken, below.furthest.unwrap().row), (1000, 1, 1, 1000));
    let carried = density.carried.unwrap();
    assert!(carried.rows == 1 && carried.lowest && (carried.without - density.middle.unwrap().median).abs() < 1.0);
    let text = density.in_words().join("\n");
    for words in
        ["mean -5.000e23", "row 1000 (-5.000e26)", "carried by few rows: without its lowest row", "1 of 1000 rows"]
    {
        assert!(text.contains(words), "no `{words}` in {text}");
    }
    let warnings = density.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("broken: 1 of 1000 held-out rows"), "{warnings:?}");
    // One that is bad, and not absurd.
    let (x, log_prob) = most_right(500, &[-30.0]);
    let density = compared(&x, &log_prob);
    let warnings = density.warnings();
    assert!(warnings.len() == 1 && warnings[0].contains("1 of 500 held-out rows (0.2%)"), "{warnings:?}");
    // As few as chance allows.
    let (x, log_prob) = most_right(50_000, &[-30.0]);
    assert_eq!((compared(&x, &log_prob).warnings(), compared(&x, &log_prob).gaussian.unwrap().below), (vec![], 1));
}

#[test]
fn a_good_model_is_not_warned_of() {
    let (x, log_prob) = most_right(1000, &[]);
    let density = compared(&x, &log_prob);
    assert!(density.warnings().is_empty() && density.carried.is_none() && density.of_not_finite().is_none());
    let below = density.gaussian.as_ref().unwrap();
    assert!(below.below == 0 && below.median.abs() < 1e-6, "{below:?}");
    assert!(density.in_words().join("\n").contains("0 of 1000 rows (0.0%) are more than 10 nats below"));
}

#[test]
fn what_is_no_number_is_counted_and_comes_first() {
    let log_prob = [1.0, f32::NEG_INFINITY, -3.0, f32::NAN, f32::INFINITY, 2.0];
    let density = Density::of("rows", &log_prob, Some(&[11, 12, 13, 14, 15, 16]));
    assert_eq!((density.rows, density.not_finite), (6, 3));
    assert_eq!(density.worst.iter().map(|w| w.row).collect::<Vec<_>>(), [12, 14, 15]);
    assert_eq!(density.middle, Some(Middle { mean: 0.0, median: 1.0, least: -3.0, greatest: 2.0 }));
    assert!(density.of_not_finite().unwrap().contains("3 of 6 rows"));
    let x = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let density = compared(&x, &log_prob);
    assert_eq!(density.gaussian.unwrap().rows, 3);
    // None at all.
    let none = Density::of("rows", &[f32::NAN], None);
    assert_eq!((none.middle, none.summary()), (None, "rows 1  finite 0".into()));
    let (_, log_prob) = most_right(10, &[]);
    let known = compared(&log_prob, &log_prob);
    assert_eq!(serde_json::from_str::<Density>(&serde_json::to_string(&known).unwrap()).unwrap(), known);
    let json = serde_json::to_value(&none).unwrap();
    assert!(json["worst"][0]["log_prob"].is_null() && json.get("mean").is_none(), "{json}");
    let back: Density = serde_json::from_value(json).unwrap();
    assert!(back.worst[0].log_prob.is_nan() && back.middle.is_none() && back.in_words() == none.in_words());
    assert_eq!(Density::of("rows", &[], None).in_words(), ["rows: log-density: rows 0"]);
}

#[test]
fn one_row_is_its_own_mean() {
    let density = compared(&[2.5], &[-1.0]);
    assert_eq!(density.middle, Some(Middle { mean: -1.0, median: -1.0, least: -1.0, greatest: -1.0 }));
    assert_eq!(density.summary(), "rows 1  mean -1.000000  median -1.000000  min -1.000000  max -1.000000");
    assert!(!density.in_words().join("\n").contains("lowest"));
}

/// A Gaussian that is not a number anywhere is above no row.
#[test]
fn comparisons_with_nan_count_as_below() {
    let x = [1.0, f32::NAN];
    let training = TrainingRows::fit(&[0.0, 1.0], 1, |_, _| 0.0);
    let gaussian = training.gaussian().unwrap();
    let density = Density::of("rows", &[0.0, 0.0], None).against(&gaussian, &x, [1, 0], &[0.0, 0.0], None);
    let below = density.gaussian.unwrap();
    assert_eq!((below.below, below.broken), (1, 1));
}

#[test]
fn a_mean_is_carried_by_few_rows_at_either_end() {
    let with = |values: &[f32]| -> Option<Carried> {
        let usual = (0..200).map(|i| (i as f32 * 0.37).sin());
        Density::of("rows", &usual.chain(values.iter().copied()).collect::<Vec<_>>(), None).carried
    };
    assert_eq!(with(&[]), None);
    assert_eq!(with(&[-20.0]), None, "a low row that hardly moves the mean");
    let low = with(&[-1e4, -1e4]).unwrap();
    assert!(low.rows == 2 && low.lowest, "{low:?}");
    let high = with(&[1e5]).unwrap();
    assert!(high.rows == 1 && !high.lowest && high.without.abs() < 0.1, "{high:?}");
    // A tail like that of |z|^2 in one column is no few rows.
    let mut z = vec![0.0; 2000];
    crate::rng::fill_normals(1, crate::rng::Stream::Data, 0, 0, &mut z);
    assert_eq!(Density::of("rows", &z.iter().map(|z| -0.5 * z * z).collect::<Vec<_>>(), None).carried, None);
    assert_eq!(Density::of("rows", &[-3.0; 50], None).carried, None);
}

#[test]
fn conditions_are_known_and_not_scored() {
    // x is y with a little noise: given y it is sharp, and by itself it is wide.
    let rows: Vec<f32> =
        (0..400).flat_map(|i| [(i as f32).sin(), (i as f32).sin() + 0.01 * (i as f32 * 1.7).cos()]).collect();
    let training = TrainingRows::fit(&rows, 2, |_, _| 0.0);
    let gaussian = training.gaussian().unwrap();
    let flat = vec![-1.5f32; 400];
    let compare = |columns: [usize; 2], rows: &[f32]| {
        let density = Density::of("rows", &flat, None).against(&gaussian, rows, columns, &flat, None);
        density.gaussian.unwrap().median
    };
    let posterior = compare([2, 1], &rows);
    let y: Vec<f32> = rows.iter().step_by(2).copied().collect();
    let evidence = compare([1, 0], &y);
    let joint = compare([2, 0], &rows);
    // A model of -1.5 nats is about as good as a Gaussian of deviation 0.7, and far worse than one of 0.007.
    assert!(posterior < -4.0 && evidence.abs() < 1.0 && joint < -2.0, "{posterior} {evidence} {joint}");
}

#[test]
fn samples_are_held_against_the_range() {
    let training = TrainingRows::fit(&[0.0, -1.0, 5.0, 2.0, 1.0, 5.0, 1.0, 1.0, 5.0], 3, |_, _| 0.01);
    let mut samples = Samples::default();
    // The middle of the first column is 1, and half its range is 1; the last column is constant.
    samples.add(&training, &[11.0, 0.0, 5.0, -10.0, 0.0, 900.0, 2.0, 1.0, 5.0], [3, 0]);
    assert_eq!((samples.drawn, samples.beyond, samples.column), (3, 1, 0));
    assert!((samples.farthest - 11.0).abs() < 1e-9 && !samples.fails(), "{samples:?}");
    // Of the second column alone, as x given y has it; the middle is 0, and half the range 1.
    samples.add(&training, &[1e9, f32::NAN], [1, 1]);
    assert_eq!((samples.drawn, samples.beyond, samples.not_finite, samples.column), (5, 2, 1, 1));
    assert!(samples.fails());
    samples.name = "b".into();
    let density = Density { samples: Some(samples.clone()), ..Density::of("rows", &[0.0], None) };
    let warnings = density.warnings();
    assert!(
        warnings.len() == 1 && warnings[0].contains("3 of 5 samples") && warnings[0].contains("1.000e9"),
        "{warnings:?}"
    );
    assert!(density.in_words().last().unwrap().contains("in `b`"));
    // What helps depends on the couplings.
    assert!(!warnings[0].contains("model.") && warnings[0].contains("train.lr"), "{warnings:?}");
    let affine = Density { is_affine: true, ..density.clone() };
    assert!(affine.warnings()[0].contains("model.max_log_scale"), "{:?}", affine.warnings());
    // Only what is no number.
    let mut none = Samples::default();
    none.add(&training, &[f32::INFINITY], [1, 1]);
    assert!(none.fails() && none.farthest == 0.0);
    // Columns that are constant say nothing.
    let constant = TrainingRows::fit(&[3.0, 3.0], 1, |_, _| 0.0);
    let mut samples = Samples::default();
    samples.add(&constant, &[1e9], [1, 0]);
    assert_eq!((samples.drawn, samples.beyond), (1, 0));
}

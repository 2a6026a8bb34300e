//! Units as a whole: there and back, Jacobians, bounds, what files hold.

use approx::assert_relative_eq;

use super::*;

fn bounds(lower: Option<f64>, upper: Option<f64>) -> Bounds {
    Bounds { lower, upper }
}

const ALL: [(Option<f64>, Option<f64>); 4] =
    [(None, None), (Some(-1.0), None), (None, Some(3.0)), (Some(-1.0), Some(3.0))];

fn units() -> Units {
    let rows: Vec<f32> = (0..400).map(|i| (i as f32 * 0.37).sin() * 0.9 + 0.5).collect();
    let bounds = ALL.map(|(lower, upper)| bounds(lower, upper)).to_vec();
    Units::fit(vec![], bounds, 4, true, &rows).unwrap()
}

#[test]
fn rows_go_there_and_back_and_the_jacobian_is_that_of_the_way() {
    let units = units();
    let row = [0.3f32, -0.2, 2.5, 0.9];
    let inner = units.inner(&row).unwrap().into_owned();
    for (back, x) in units.outer(inner.clone()).iter().zip(row) {
        assert_relative_eq!(*back, x, max_relative = 1e-6);
    }
    let mut slopes = vec![1.0; 4];
    units.given(&[]).outer_gradient(&row, &mut slopes, &mut []);
    for c in 0..4 {
        let moved = |by: f32| {
            let mut row = row;
            row[c] += by;
            (f64::from(units.inner(&row).unwrap()[c]), f64::from(row[c]))
        };
        let ((high, b), (low, a)) = (moved(1e-2), moved(-1e-2));
        assert_relative_eq!((high - low) / (b - a), f64::from(slopes[c]), max_relative = 1e-3);
        assert!(slopes[c] > 0.0);
    }
    let want: f64 = slopes.iter().map(|&s| f64::from(s).ln()).sum();
    assert_relative_eq!(units.given(&[]).log_jacobian(&row, 4).next().unwrap(), want, max_relative = 1e-6);
}

/// However far out a latent is, what comes back is inside and finite.
#[test]
fn samples_never_leave_the_bounds() {
    for (lower, upper) in [
        (Some(0.0), Some(1.0)),
        (Some(1e-30), Some(1e-29)),
        (Some(0.1), Some(1e30)),
        (Some(-5.0), None),
        (None, Some(0.3)),
        (Some(-1e-30), None),
        (None, Some(1e-30)),
        (Some(-3.4e38), Some(3.4e38)),
        (Some(3.4e38), None),
        (Some(0.0), Some(1e-44)),
    ] {
        let bounds = bounds(lower, upper);
        assert!(bounds.mistake().is_none());
        let units = Units { bounds: vec![bounds], ..Units::default() };
        let far = vec![-1e30, -800.0, -90.0, -20.0, -1.0, 0.0, 1.0, 20.0, 90.0, 800.0, 1e30];
        let rows = units.outer(far);
        assert!(rows.iter().all(|x| x.is_finite()) && rows.is_sorted(), "{rows:?}");
        assert_eq!(units.outside(&rows), None, "{rows:?}");
        assert!(units.inner(&rows).unwrap().iter().all(|u| u.is_finite()));
        assert!(units.outer(vec![f32::NAN])[0].is_nan());
    }
}

#[test]
fn values_outside_are_named() {
    let units = Units {
        columns: vec!["a".into(), "rate".into()],
        bounds: vec![Bounds::default(), bounds(Some(0.0), Some(1.0))],
        ..Units::default()
    };
    let message = |rows: &[f32]| units.inner(rows).unwrap_err().to_string();
    let text = message(&[5.0, 0.5, -5.0, 1.0]);
    assert!(text.contains("columns.rate") && text.contains("row 2"), "{text}");
    assert!(text.contains("1 must be greater than 0 and less than 1"), "{text}");
    assert!(message(&[0.0, f32::NAN]).contains("NaN"));
    let text = units.outside(&[1.0, 0.0]).unwrap().in_file(Path::new("t.csv"), &[4, 7]).to_string();
    assert!(text.contains("t.csv: row 1, column 7 (`rate`)"), "{text}");
}

#[test]
fn bounds_that_make_no_sense_are_told() {
    assert!(bounds(Some(1.0), Some(1.0)).mistake().unwrap().contains("no room"));
    assert!(bounds(Some(2.0), Some(1.0)).mistake().is_some());
    assert!(bounds(Some(f64::NAN), None).mistake().unwrap().contains("finite"));
    assert!(bounds(None, Some(f64::INFINITY)).mistake().is_some());
    for huge in [1e39, 1e300, f64::MAX, f64::from(f32::MAX)] {
        for none in [bounds(Some(huge), None), bounds(None, Some(-huge))] {
            assert!(none.mistake().unwrap().contains("no 32-bit float lies inside"), "{none:?}");
        }
        for all in [bounds(Some(-huge), None), bounds(None, Some(huge)), bounds(Some(-huge), Some(huge))] {
            assert!(all.mistake().unwrap().contains("leave it out"), "{all:?}");
        }
    }
    // No 32-bit float lies between these.
    assert!(bounds(Some(1.0), Some(1.0 + 1e-12)).mistake().is_some());
    assert!(Units { bounds: vec![Bounds::default()], ..Units::default() }.check(2, 0, "x").is_err());
}

#[test]
fn without_bounds_units_are_what_they_were() {
    let json = r#"{"columns":["a"],"standardize":{"mean":[1.0],"scale":[2.0]}}"#;
    let units: Units = serde_json::from_str(json).unwrap();
    assert!(units.bounds.is_empty());
    assert_eq!(units.inner(&[5.0]).unwrap()[0], 2.0);
    assert_eq!(Units::default().inner(&[5.0]).unwrap()[0], 5.0);
    assert_eq!(serde_json::to_string(&Units::default()).unwrap(), "{}");
}

/// A column of each kind, with rows that lie about its middle.
fn transforms() -> Vec<(Bounds, Transform)> {
    let none = Bounds::default();
    let rank = Rank { x: vec![-2.0, -1.9, 0.0, 0.5, 7.0], z: vec![-2.0, -0.5, 0.1, 0.7, 2.5] };
    vec![
        (none, Transform::Robust(Robust::new(0.4, 0.3, 9999.0))),
        (none, Transform::Robust(Robust::new(0.4, 0.3, 0.5))),
        (none, Transform::Asinh(Asinh { center: -0.5, scale: 0.02 })),
        (bounds(Some(-3.0), None), Transform::Softplus(Softplus { scale: 0.7, upper: false })),
        (bounds(None, Some(90.0)), Transform::Softplus(Softplus { scale: 0.7, upper: true })),
        (none, Transform::Rank(rank.clone())),
        (bounds(Some(-3.0), Some(90.0)), Transform::Rank(rank)),
        (bounds(Some(-3.0), None), Transform::Asinh(Asinh { center: 0.0, scale: 0.3 })),
    ]
}

fn units_of(column: (Bounds, Transform), squash: Option<f64>) -> Units {
    let standardize = Some(Standardizer { mean: vec![0.2], scale: vec![0.35], constant: vec![] });
    Units { bounds: vec![column.0], transforms: vec![column.1], standardize, squash, ..Units::default() }
}

#[test]
fn every_transform_increases_comes_back_and_has_its_slope() {
    for column in transforms() {
        for squash in [None, Some(3.0), Some(0.1)] {
            let units = units_of(column.clone(), squash);
            units.check(1, 0, "x").unwrap();
            // None is a knot, an end of a linear part or a bound.
            let places: Vec<f64> = (0..400).map(|i| -2.97 + 0.211 * f64::from(i)).filter(|x| *x < 81.0).collect();
            let way = units.column(0);
            let inner: Vec<f64> = places.iter().map(|&x| way.inner(x, 0.0)).collect();
            assert!(inner.is_sorted_by(|a, b| a < b) && inner.iter().all(|u| u.is_finite()), "{column:?}");
            for (&x, &u) in places.iter().zip(&inner) {
                // The spacing of f32 about x.
                assert_relative_eq!(f64::from(way.outer(u, 0.0)), x, max_relative = 1e-7, epsilon = 1e-7);
                let h = 1e-6;
                let slope = (way.inner(x + h, 0.0) - way.inner(x - h, 0.0)) / (2.0 * h);
                assert_relative_eq!(way.slope(x, 0.0) / way.scale, slope, max_relative = 2e-5);
            }
            let rows: Vec<f32> = places.iter().map(|&x| x as f32).collect();
            let mut gradient = vec![1.0; rows.len()];
            units.given(&[]).outer_gradient(&rows, &mut gradient, &mut []);
            for (slope, log) in gradient.iter().zip(units.given(&[]).log_jacobian(&rows, 1)) {
                assert_relative_eq!(f64::from(*slope).ln(), log, max_relative = 1e-5, epsilon = 1e-6);
            }
            // What networks see is f32, so a row comes back within its rounding by the slope.
            let seen = units.inner(&rows).unwrap();
            for ((back, &x), (&u, &slope)) in
                units.outer(seen.to_vec()).iter().zip(&rows).zip(seen.iter().zip(&gradient))
            {
                let rounding = 2.0 * f32::EPSILON * (x.abs() + u.abs().max(1e-3) / slope);
                assert!((back - x).abs() <= rounding, "{column:?} {squash:?}: {x} {back} {rounding}");
            }
        }
    }
}

/// Values as large as any f32, and latents that no training gives.
#[test]
fn nothing_overflows() {
    let far = [-f32::MAX, -1e30, -1e5, -2.999, 0.0, 1e-40, 50.0, 1e30, f32::MAX];
    for column in transforms() {
        for squash in [None, Some(3.0)] {
            let units = units_of(column.clone(), squash);
            let rows: Vec<f32> = far.into_iter().filter(|x| column.0.holds(f64::from(*x))).collect();
            let inner = units.inner(&rows).unwrap().into_owned();
            assert!(units.given(&[]).log_jacobian(&rows, 1).all(f64::is_finite), "{column:?}");
            if squash.is_some() || !matches!(column.1, Transform::Softplus(_) | Transform::Robust(_)) {
                assert!(inner.iter().all(|u| u.is_finite()), "{column:?}: {inner:?}");
                assert!(inner.is_sorted(), "{column:?}: {inner:?}");
            }
            let latents = vec![-f32::MAX, -800.0, -40.0, -5.0, 0.0, 5.0, 40.0, 800.0, f32::MAX];
            let back = units.outer(latents);
            assert!(back.iter().all(|x| x.is_finite()) && back.is_sorted(), "{column:?}: {back:?}");
            assert_eq!(units.outside(&back), None, "{column:?}");
            assert!(units.outer(vec![f32::NAN])[0].is_nan());
        }
    }
    // A model that has failed is seen.
    let units = Units { squash: Some(3.0), ..Units::default() };
    assert_eq!(units.outer(vec![f32::INFINITY, 1.0]), [f32::INFINITY, 1.0]);
    assert_eq!(units.inner(&[7.0, -2.0]).unwrap()[..], [3.0 + 5f32.ln(), -2.0]);
}

#[test]
fn transforms_survive_files_splits_and_joins() {
    let (bounds, transforms): (Vec<_>, Vec<_>) = transforms().into_iter().unzip();
    let dim = bounds.len();
    let standardize = Some(Standardizer { mean: vec![0.1; dim], scale: vec![1.0 / 3.0; dim], constant: vec![] });
    let units = Units { bounds, transforms, standardize, squash: Some(3.0), ..Units::default() };
    let text = serde_json::to_string(&units).unwrap();
    assert_eq!(serde_json::from_str::<Units>(&text).unwrap(), units);
    for at in [0, 1, 3] {
        let [first, second] = units.split_at(at);
        assert_eq!(Units::join([&first, &second], [at, dim - at]), units, "{at}");
    }
    let asinh = Transform::Asinh(Asinh { center: 1.5, scale: 2.0 });
    assert_eq!(serde_json::to_string(&asinh).unwrap(), r#"{"kind":"asinh","center":1.5,"scale":2.0}"#);
    let short = Units { transforms: vec![asinh], ..Units::default() };
    assert!(short.check(2, 0, "x").unwrap_err().to_string().contains("transforms of x"));
}

#[test]
fn parameters_that_make_no_sense_are_told() {
    let wrong = [
        Transform::Asinh(Asinh { center: f64::NAN, scale: 1.0 }),
        Transform::Asinh(Asinh { center: 0.0, scale: 0.0 }),
        Transform::Softplus(Softplus { scale: -1.0, upper: false }),
        Transform::Robust(Robust { center: 0.0, scale: 1.0, knee: 4.0, pull: 0.0 }),
        Transform::Robust(Robust { center: 0.0, scale: 1.0, knee: -1.0, pull: 1.0 }),
        Transform::Rank(Rank { x: vec![0.0, 1.0, 1.0], z: vec![0.0, 1.0, 2.0] }),
        Transform::Rank(Rank { x: vec![0.0, 1.0], z: vec![0.0, f64::NAN] }),
        Transform::Rank(Rank { x: vec![0.0], z: vec![0.0] }),
    ];
    for transform in wrong {
        let units = Units { columns: vec!["a".into()], transforms: vec![transform.clone()], ..Units::default() };
        let text = units.check(1, 0, "x").unwrap_err().to_string();
        assert!(text.contains("columns.a") && text.contains("transform"), "{transform:?}: {text}");
    }
    for squash in [0.0, -1.0, f64::NAN] {
        assert!(Units { squash: Some(squash), ..Units::default() }.check(1, 0, "x").is_err());
    }
}

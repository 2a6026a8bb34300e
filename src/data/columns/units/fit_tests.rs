//! What the rule finds for columns of known distributions, and units as they are fitted.

use super::*;
use crate::rng;

/// Uniform numbers in (0, 1), the same each time.
fn uniform(n: usize, seed: u64) -> impl Iterator<Item = f64> {
    (0..n as u64).map(move |i| rng::uniform01(seed, rng::Stream::Data, 0, i).clamp(1e-12, 1.0 - 1e-12))
}

fn normal(n: usize, seed: u64) -> Vec<f64> {
    let mut z = vec![0.0; n];
    rng::fill_normals(seed, rng::Stream::Data, 1, 0, &mut z);
    z.into_iter().map(f64::from).collect()
}

fn chosen(values: &[f64], bounds: Bounds) -> (Units, Choice) {
    let rows: Vec<f32> = values.iter().map(|&x| x as f32).collect();
    let wishes = Wishes { columns: vec![bounds.into()], standardize: true, choose: true, squash: None };
    let (units, chosen) = Units::choose(1, &wishes, &rows, &[]).unwrap();
    units.check(1, 0, "x").unwrap();
    let usual = if bounds.is_none() { Choice::Standardize } else { Choice::Log };
    (units, chosen.first().map_or(usual, |chosen| chosen.choice))
}

fn mixed(mut values: Vec<f64>, share: f64, far: f64) -> Vec<f64> {
    let n = values.len();
    for (x, u) in values.iter_mut().zip(uniform(n, 77)) {
        if u < share {
            *x = far;
        }
    }
    values
}

/// Student's t by a normal over a root of squares.
fn student(n: usize, degrees: u64, seed: u64) -> Vec<f64> {
    let mut squares = vec![0.0; n];
    for d in 0..degrees {
        normal(n, 100 + seed * 10 + d).iter().zip(&mut squares).for_each(|(z, sum)| *sum += z * z);
    }
    normal(n, seed).iter().zip(squares).map(|(z, sum)| z / (sum / degrees as f64).sqrt()).collect()
}

#[test]
fn ordinary_columns_are_standardised() {
    for n in [200, 3000, 20_000] {
        for seed in 1..4 {
            let u = || uniform(n, seed);
            let columns: Vec<(&str, Vec<f64>)> = vec![
                ("normal", normal(n, seed).iter().map(|z| 1e6 + 3.0 * z).collect()),
                ("uniform", u().collect()),
                ("exponential", u().map(|u| -u.ln()).collect()),
                ("laplace", u().map(|u| if u < 0.5 { (2.0 * u).ln() } else { -(2.0 - 2.0 * u).ln() }).collect()),
                ("arcsine", u().map(|u| (6.0 * u).cos()).collect()),
                ("0/1", u().map(|u| f64::from(u8::from(u < 0.3))).collect()),
                ("rare 1", u().map(|u| f64::from(u8::from(u < 0.02))).collect()),
                ("few whole", u().map(|u| (-3.0 * u.ln()).floor()).collect()),
                ("constant", vec![7.0; n]),
                (
                    "far modes",
                    normal(n, seed).iter().zip(u()).map(|(z, u)| z + if u < 0.4 { 1e3 } else { 0.0 }).collect(),
                ),
                (
                    "small far mode",
                    normal(n, seed).iter().zip(u()).map(|(z, u)| z + if u < 0.1 { 50.0 } else { 0.0 }).collect(),
                ),
                ("zeros and uniform", u().map(|u| (u - 0.6).max(0.0)).collect()),
                ("zeros and exponential", u().map(|u| (-u.ln() - 0.5).max(0.0)).collect()),
                ("lognormal 0.4", normal(n, seed).iter().map(|z| (0.4 * z).exp()).collect()),
            ];
            for (name, values) in columns {
                assert_eq!(chosen(&values, Bounds::default()).1, Choice::Standardize, "{name} {n} {seed}");
            }
        }
    }
}

#[test]
fn heavy_tails_are_taken_by_asinh() {
    for n in [500, 3000, 20_000] {
        for seed in 1..4 {
            let columns: Vec<(&str, Vec<f64>)> = vec![
                ("cauchy", uniform(n, seed).map(|u| (std::f64::consts::PI * (u - 0.5)).tan()).collect()),
                ("lognormal 1.5", normal(n, seed).iter().map(|z| (1.5 * z).exp()).collect()),
                ("lognormal 3", normal(n, seed).iter().map(|z| (3.0 * z).exp()).collect()),
                ("minus lognormal", normal(n, seed).iter().map(|z| 5.0 - (2.0 * z).exp()).collect()),
                ("pareto 1", uniform(n, seed).map(|u| 1.0 / u).collect()),
                ("student 1", student(n, 1, seed)),
                (
                    "zeros and lognormal",
                    normal(n, seed).iter().map(|z| if *z < 0.0 { 0.0 } else { (5.0 * z).exp() }).collect(),
                ),
            ];
            for (name, values) in columns {
                let (units, choice) = chosen(&values, Bounds::default());
                assert_eq!(choice, Choice::Asinh, "{name} {n} {seed}");
                // All of it is within a few deviations now, both ways.
                let rows: Vec<f32> = values.iter().map(|&x| x as f32).collect();
                let inner = units.inner(&rows).unwrap();
                assert!(inner.iter().all(|u| u.abs() < 12.0), "{name} {n} {seed}");
            }
        }
    }
}

#[test]
fn strays_and_codes_are_taken_by_quantiles() {
    for n in [500, 3000, 20_000] {
        let body = || normal(n, 5).iter().map(|z| 20.0 + z).collect::<Vec<f64>>();
        let whole = || body().iter().map(|x| (2.0 * x).round() / 2.0).collect::<Vec<f64>>();
        let with = |mut values: Vec<f64>, far: &[f64]| {
            values.iter_mut().skip(17).step_by(31).zip(far).for_each(|(x, far)| *x = *far);
            values
        };
        let columns: Vec<(&str, Vec<f64>)> = vec![
            ("-999 in 3 %", mixed(body(), 0.03, -999.0)),
            ("1e30 in 3 %", mixed(body(), 0.03, 1e30)),
            ("-999 in 15 %", mixed(body(), 0.15, -999.0)),
            ("one 1e30", with(body(), &[1e30])),
            ("a few", with(body(), &[1e6, -3e5, 9e5, 9.1e5])),
            ("halves and -99999", mixed(whole(), 0.02, -99_999.0)),
            ("both sides", with(mixed(body(), 0.03, 1e9), &[-1e9])),
        ];
        for (name, values) in columns {
            let (units, choice) = chosen(&values, Bounds::default());
            assert_eq!(choice, Choice::Robust, "{name} {n}");
            let rows: Vec<f32> = values.iter().map(|&x| x as f32).collect();
            let inner = units.inner(&rows).unwrap();
            assert!(inner.iter().all(|u| u.abs() < 5.6), "{name} {n}");
            // The body is what it was, in its own deviations.
            let body: Vec<f64> = inner
                .iter()
                .zip(&values)
                .filter(|(_, x)| (10.0..30.0).contains(*x))
                .map(|(u, _)| f64::from(*u))
                .collect();
            let deviation = (body.iter().map(|u| u * u).sum::<f64>() / body.len() as f64).sqrt();
            assert!((0.8..1.45).contains(&deviation), "{name} {n}: {deviation}");
        }
    }
}

#[test]
fn one_bound_is_crossed_by_what_makes_the_column_normal() {
    let lower = Bounds { lower: Some(2.0), upper: None };
    let upper = Bounds { lower: None, upper: Some(2.0) };
    let exponential: Vec<f64> = uniform(4000, 1).map(|u| 2.0 - 3.0 * u.ln()).collect();
    let mirrored: Vec<f64> = exponential.iter().map(|x| 4.0 - x).collect();
    assert_eq!(chosen(&exponential, lower).1, Choice::Softplus);
    assert_eq!(chosen(&mirrored, upper).1, Choice::Softplus);
    let lognormal: Vec<f64> = normal(4000, 1).iter().map(|z| 2.0 + z.exp()).collect();
    assert_eq!(chosen(&lognormal, lower).1, Choice::Log);
    // Mirrored columns have mirrored units.
    let ((units, _), (other, _)) = (chosen(&exponential, lower), chosen(&mirrored, upper));
    for x in [2.001f32, 2.5, 4.0, 30.0] {
        let (u, v) = (units.inner(&[x]).unwrap()[0], other.inner(&[4.0 - x]).unwrap()[0]);
        assert!((u + v).abs() < 1e-3, "{u} {v}");
    }
    // The logistic distribution has the kurtosis 4.2.
    let rows: Vec<f32> = exponential.iter().map(|&x| x as f32).collect();
    let inner = units.inner(&rows).unwrap();
    let kurtosis = inner.iter().map(|u| f64::from(*u).powi(4)).sum::<f64>() / inner.len() as f64;
    assert!((3.5..5.0).contains(&kurtosis), "{kurtosis}");
}

#[test]
fn transforms_that_are_asked_for_are_taken() {
    let values: Vec<f32> = normal(2000, 3).iter().flat_map(|&z| [z as f32, z.exp() as f32]).collect();
    let test = [0.0f32, 1e-6, 0.0, 50.0];
    for (choice, standardized) in [
        (Choice::None, false),
        (Choice::Standardize, true),
        (Choice::Robust, false),
        (Choice::Asinh, true),
        (Choice::Log, true),
        (Choice::Softplus, true),
        (Choice::Logit, true),
        (Choice::Rank, true),
    ] {
        for standardize in [true, false] {
            let setting = ColumnSetting { transform: Some(choice), ..ColumnSetting::default() };
            let columns = vec![ColumnSetting::default(), setting];
            let wishes = Wishes { columns, standardize, choose: false, squash: Some(3.0) };
            let (units, told) = Units::choose(2, &wishes, &values, &test).unwrap();
            assert!(told.is_empty(), "what was asked for is no news");
            assert!(units.agrees(1, &setting), "{choice}");
            assert_eq!(units.squash, Some(3.0));
            units.check(2, 0, "x").unwrap();
            // Bounds that were found hold the rows that are held out, too.
            assert_eq!(units.outside(&test), None, "{choice}");
            let scales = units.standardize.as_ref().map_or(vec![1.0; 2], |s| s.scale.clone());
            assert_eq!((scales[0] != 1.0, scales[1] != 1.0), (standardize, standardized), "{choice} {standardize}");
            if choice == Choice::Rank {
                let column: Vec<f32> = values.iter().skip(1).step_by(2).copied().collect();
                let rank = Units { transforms: units.transforms[1..].to_vec(), ..Units::default() };
                let inner = rank.inner(&column).unwrap();
                let far = inner.iter().zip(normal(2000, 3)).map(|(u, z)| (f64::from(*u) - z).abs()).fold(0.0, f64::max);
                assert!(far < 0.5, "{far}");
            }
        }
    }
}

/// Where nothing can be learnt of a scale, and tables of a row or two.
#[test]
fn columns_without_a_scale_keep_finite_units() {
    for rows in [vec![5.0f32], vec![5.0, 5.0], vec![1.0, 2.0], vec![0.0, 0.0, 0.0, 1e30]] {
        for choice in [
            None,
            Some(Choice::Robust),
            Some(Choice::Asinh),
            Some(Choice::Log),
            Some(Choice::Softplus),
            Some(Choice::Logit),
            Some(Choice::Rank),
        ] {
            let setting = ColumnSetting { transform: choice, ..ColumnSetting::default() };
            let wishes = Wishes { columns: vec![setting], standardize: true, choose: true, squash: Some(3.0) };
            let (units, _) = Units::choose(1, &wishes, &rows, &[]).unwrap();
            units.check(1, 0, "x").unwrap();
            assert!(units.inner(&rows).unwrap().iter().all(|u| u.is_finite()), "{choice:?} {rows:?} {units:?}");
        }
    }
}

#[test]
fn extremes_have_their_row_and_their_number() {
    let mut rows: Vec<f32> = normal(1000, 9).iter().map(|&z| z as f32).collect();
    for row in [40, 41, 700] {
        rows[row] = -999.0;
    }
    let wishes = Wishes { standardize: true, choose: true, ..Wishes::default() };
    let (_, told) = Units::choose(1, &wishes, &rows, &[]).unwrap();
    assert_eq!(told[0].extreme, Extreme { value: -999.0, row: 40, times: 3 });
    assert!(told[0].usual[0] > -6.0 && told[0].usual[1] < 6.0);
    // Asked for nothing, columns stay as they are.
    let (units, told) = Units::choose(1, &Wishes::default(), &rows, &[]).unwrap();
    assert!(units == Units::default() && told.is_empty());
    let (units, _) = Units::choose(1, &Wishes { standardize: true, ..Wishes::default() }, &rows, &[]).unwrap();
    assert_eq!(units, Units::fit(vec![], vec![], 1, true, &rows).unwrap());
}

//! Which columns are regressed, and the way of those that are.

use approx::assert_relative_eq;

use super::*;
use crate::data::columns::standardize::Standardizer;
use crate::data::columns::units::{Asinh, Bounds, Transform};
use crate::rng::fill_normals;

/// Rows [y, x] of two conditions: a column that is linear in them, one of few values and one of ends that do not move
/// though both follow y, one of noise, and one that follows y through the logarithm of its bound.
fn rows(n: usize) -> Vec<f32> {
    let mut z = vec![0.0f32; 8 * n];
    fill_normals(3, Stream::Mixing, 0, 0, &mut z);
    let row = |z: &[f32]| {
        let [a, b] = [3.0 * z[0] + 50.0, 0.01 * z[1] + 0.005 * z[0]];
        let linear = 2.0 * a - 400.0 * b + 2.0 * z[2];
        let few = (z[0] + 0.5 * z[3]).round();
        let ends = (z[0] + 0.8 * z[4]).clamp(-1.0, 1.0);
        [a, b, linear, few, ends, z[5], (0.5 * z[0] + 0.2 * z[6]).exp()]
    };
    z.chunks_exact(8).flat_map(row).collect()
}

const DIMS: [usize; 2] = [2, 5];

fn units(rows: &[f32]) -> [Units; 2] {
    let [c, n] = DIMS;
    let mut units = Units { bounds: vec![Bounds::default(); c + n], ..Units::default() };
    units.bounds[6].lower = Some(0.0);
    units.standardize = Some(Standardizer::fit(&units.inner(rows).unwrap(), c + n).unwrap());
    units.split_at(c)
}

fn parts(rows: &[f32]) -> [Vec<f32>; 2] {
    let of = |columns: std::ops::Range<usize>| rows.chunks_exact(7).flat_map(move |row| &row[columns.clone()]).copied();
    [of(0..2).collect(), of(2..7).collect()]
}

#[test]
fn columns_that_gain_by_it_are_regressed() {
    let rows = rows(4000);
    let [y, x] = units(&rows);
    let (x, told) = x.regressed(5, &y, 2, &rows, Gains::Clear).unwrap();
    assert_eq!(told.iter().map(|told| told.column).collect::<Vec<_>>(), [0, 4]);
    // What is left of the first column are 2 z[2]: its deviation was 6 at first.
    let scale = x.standardize.as_ref().unwrap().scale[0];
    assert!((scale - 2.0).abs() < 0.1, "{scale}");
    assert!((told[0].r_squared - 8.0 / 9.0).abs() < 0.02 && (told[1].r_squared - 25.0 / 29.0).abs() < 0.03, "{told:?}");
    let [of_y, of_x] = parts(&rows);
    let inner = x.given(&y.inner(&of_y).unwrap()).inner(&of_x).unwrap().into_owned();
    for c in 0..5 {
        let column: Vec<f64> = inner.iter().skip(c).step_by(5).map(|&v| f64::from(v)).collect();
        assert_relative_eq!(deviation(&column), 1.0, max_relative = 0.05);
    }
    // Nothing is left of the conditions.
    let standardize = Some(Standardizer::none(5));
    let left = Units { standardize: standardize.map(|s| Standardizer { mean: vec![0.5; 5], ..s }), ..Units::default() };
    let rows: Vec<f32> = of_y.chunks_exact(2).zip(inner.chunks_exact(5)).flat_map(|(y, x)| [y, x].concat()).collect();
    let (again, told) = left.regressed(5, &y, 2, &rows, Gains::Clear).unwrap();
    assert!(told.is_empty() && again.regression.is_none(), "{told:?}");
}

/// What the conditions give exactly: a copy, a scaled copy and a sum. What is left of them is no unit.
#[test]
fn what_the_conditions_give_exactly_keeps_a_scale() {
    let mut z = vec![0.0f32; 2 * 500];
    fill_normals(3, Stream::Mixing, 0, 0, &mut z);
    let rows: Vec<f32> = z.chunks_exact(2).flat_map(|z| [z[0], z[1], z[0], 0.1 * z[1] + 3.0, z[0] + z[1]]).collect();
    let units = Units { standardize: Some(Standardizer::fit(&rows, 5).unwrap()), ..Units::default() };
    let [y, x] = units.split_at(2);
    let before = x.standardize.clone().unwrap().scale;
    let (x, told) = x.regressed(3, &y, 2, &rows, Gains::Clear).unwrap();
    assert_eq!(told.len(), 3);
    let after = &x.standardize.as_ref().unwrap().scale;
    for (before, after) in before.iter().zip(after) {
        assert_relative_eq!(LEAST * before, after, max_relative = 1e-6);
    }
    let moved = [1.0f32, -2.0, 1.0, 2.8, -1.0];
    let inner = x.given(&y.inner(&moved[..2]).unwrap()).inner(&moved[2..]).unwrap().into_owned();
    assert!(inner.iter().all(|u| u.abs() < 1e-3), "{inner:?}");
}

/// More conditions than a tenth of the rows: the first ones take part, and columns of noise are left alone.
#[test]
fn many_conditions_of_few_rows_fit_no_chance() {
    let (n, c) = (200, 150);
    let mut rows = vec![0.0f32; n * (c + 2)];
    fill_normals(4, Stream::Mixing, 0, 0, &mut rows);
    rows.chunks_exact_mut(c + 2).for_each(|row| row[c + 1] = row[0] + 0.3 * row[c + 1]);
    let units = Units { standardize: Some(Standardizer::fit(&rows, c + 2).unwrap()), ..Units::default() };
    let [y, x] = units.split_at(c);
    let told = x.regressed(2, &y, c, &rows, Gains::Clear).unwrap().1;
    assert_eq!(told.iter().map(|told| told.column).collect::<Vec<_>>(), [1]);
}

#[test]
fn few_rows_no_conditions_and_no_standardisation_are_left_alone() {
    let all = rows(4000);
    let [y, x] = units(&all);
    assert!(x.clone().regressed(5, &y, 2, &all[..7 * 99], Gains::Clear).unwrap().1.is_empty());
    assert!(x.clone().regressed(5, &Units::default(), 0, &parts(&all)[1], Gains::Clear).unwrap().1.is_empty());
    let plain = Units { standardize: None, ..x };
    assert_eq!(plain.clone().regressed(5, &y, 2, &all, Gains::Clear).unwrap(), (plain, vec![]));
}

/// There and back, Jacobian, and the gradients with respect to x and to y, with a transform and a squash.
#[test]
fn a_shifted_column_is_a_function_of_x_and_y_with_its_gradients() {
    let rows = rows(1000);
    let [y, mut x] = units(&rows);
    x.transforms = vec![Transform::Identity; 5];
    x.transforms[0] = Transform::Asinh(serde_json::from_str::<Asinh>(r#"{"center": 60.0, "scale": 30.0}"#).unwrap());
    let standardize = Units { standardize: None, ..x.clone() }.inner(&parts(&rows)[1]).unwrap().into_owned();
    x.standardize = Some(Standardizer::fit(&standardize, 5).unwrap());
    x.squash = Some(0.5);
    let (x, told) = x.regressed(5, &y, 2, &rows, Gains::Clear).unwrap();
    assert_eq!(told.len(), 2);
    x.check(5, 2, "x").unwrap();
    assert!(x.check(5, 3, "x").unwrap_err().to_string().contains("2 coefficients"));
    assert!(y.check(2, 0, "y").is_ok() && x.check(5, 0, "x").is_err());

    assert!(x.inner(&rows[2..7]).unwrap_err().to_string().contains("conditions of the rows"));

    let inner = |row: &[f32]| x.given(&y.inner(&row[..2]).unwrap()).inner(&row[2..]).unwrap().into_owned();
    let mut bent = 0;
    for row in rows.chunks_exact(7).take(40) {
        let of_y = y.inner(&row[..2]).unwrap();
        let lane = x.given(&of_y);
        for (back, x) in lane.outer(inner(row)).iter().zip(&row[2..]) {
            assert_relative_eq!(back, x, max_relative = 1e-4, epsilon = 1e-5);
        }
        let mut log_jacobian = 0.0;
        for (c, drawn_in) in inner(row).iter().enumerate().map(|(c, u)| (c, u.abs() > 0.5)) {
            let mut of_x = vec![0.0; 5];
            of_x[c] = 1.0;
            let mut gradient_y = vec![0.0; 2];
            lane.outer_gradient(&row[2..], &mut of_x, &mut gradient_y);
            y.given(&[]).outer_gradient(&row[..2], &mut gradient_y, &mut []);
            log_jacobian += f64::from(of_x[c]).ln();
            bent += usize::from(drawn_in);
            for (j, got) in gradient_y.iter().chain(&of_x).enumerate() {
                let step = if j < 2 { y.unit(j, row[j].into()) } else { x.unit(j - 2, row[j].into()) };
                let moved = |by: f64| {
                    let mut row = row.to_vec();
                    row[j] += (by * step) as f32;
                    (f64::from(inner(&row)[c]), f64::from(row[j]))
                };
                let ((high, to), (low, from)) = (moved(3e-3), moved(-3e-3));
                assert_relative_eq!((high - low) / (to - from) * step, f64::from(*got) * step, epsilon = 1e-2);
            }
        }
        assert_relative_eq!(lane.log_jacobian(&row[2..], 5).next().unwrap(), log_jacobian, max_relative = 1e-5);
    }
    assert!(bent > 20);
}

#[test]
fn weak_dependence_counts_if_any_gain_does() {
    // Of three hundredths of the variance, and none.
    let n = 20_000;
    let mut z = vec![0.0; 3 * n];
    fill_normals(8, crate::rng::Stream::Data, 0, 0, &mut z);
    let rows: Vec<f32> = z.chunks_exact(3).flat_map(|z| [z[0], 5.0 + 0.17 * z[0] + z[1], z[2]]).collect();
    let units = |columns: std::ops::Range<usize>| -> Units {
        let dim = columns.len();
        let values: Vec<f32> = rows.chunks_exact(3).flat_map(|row| row[columns.clone()].to_vec()).collect();
        Units { standardize: Some(Standardizer::fit(&values, dim).unwrap()), ..Units::default() }
    };
    let regressed = |gains| units(1..3).regressed(2, &units(0..1), 1, &rows, gains).unwrap();
    assert!(regressed(Gains::Clear).1.is_empty());
    let (x, told) = regressed(Gains::Any);
    assert!(told[0].column == 0 && (0.01..0.05).contains(&told[0].r_squared), "{told:?}");
    // In deviations, up to five standard errors; of the other column by chance or not at all.
    let mut shifts = [0.0; 2];
    x.regression.unwrap().of_row(&[1.0], &mut shifts);
    assert!((shifts[0] - 0.17).abs() < 0.035 && shifts[1].abs() < 0.035, "{shifts:?}");
}

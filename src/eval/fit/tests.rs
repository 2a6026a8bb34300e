//! Fits of true shapes against the best that curves of their order allow, and of curves that are no shapes.

use super::*;
use crate::data::shapes::fourier::{coefficients, dim};
use crate::data::shapes::lens::{self, Lens, Outline};
use crate::rng::{Counter, Stream, fill_normals};

const LENS: Shapes = Shapes::Lens(Outline::Vertices);

/// Likeness of a row to the shape that it was made from: the ceiling of the fit.
fn ceiling(row: &[f32], boundary: &[Point]) -> (f64, f64) {
    let traced = Curve::new(row).unwrap().trace(512);
    (iou(&traced, boundary).unwrap(), hausdorff(&traced, boundary).unwrap())
}

/// Means of (fit IoU, ceiling IoU, least fit IoU, fit Hausdorff, ceiling Hausdorff).
fn against_the_ceiling(rows: &[Vec<f32>], boundaries: &[Vec<Point>], family: Shapes) -> [f64; 5] {
    let found = Likenesses::of(&rows.concat(), rows[0].len(), family, Rules::Data).unwrap();
    assert_eq!(found.skipped(), 0);
    let mean = found.mean().unwrap();
    let least = found.rows.iter().flatten().map(|l| l.iou).fold(1.0, f64::min);
    let ceilings: Vec<(f64, f64)> = rows.iter().zip(boundaries).map(|(row, b)| ceiling(row, b)).collect();
    let n = rows.len() as f64;
    let [ceiling_iou, ceiling_hausdorff] =
        [ceilings.iter().map(|c| c.0).sum::<f64>() / n, ceilings.iter().map(|c| c.1).sum::<f64>() / n];
    [mean.iou, ceiling_iou, least, mean.hausdorff, ceiling_hausdorff]
}

fn lens_shapes(n: u64, outline: Outline) -> (Vec<Vec<f32>>, Vec<Vec<Point>>) {
    let shapes = (0..n).map(|row| Lens::of_row(1, row));
    shapes.map(|l| (l.coefficients(outline).to_vec(), l.boundary(outline, 64))).unzip()
}

fn cross_shapes(n: u32) -> (Vec<Vec<f32>>, Vec<Vec<Point>>) {
    let shapes = (0..n).map(|part| cross::tests::draw(1, part));
    shapes.map(|(cross, outline)| (coefficients(&outline, 12), cross.corners())).unzip()
}

#[test]
fn true_lenses_reach_the_ceiling() {
    for (outline, known_ceiling, part, least) in
        [(Outline::Vertices, 0.9505, 0.99, 0.93), (Outline::Arc, 0.9126, 0.97, 0.885)]
    {
        let (rows, boundaries) = lens_shapes(300, outline);
        let [found, ceiling, worst, far, ceiling_far] = against_the_ceiling(&rows, &boundaries, Shapes::Lens(outline));
        assert!((ceiling - known_ceiling).abs() <= 0.002, "{outline}: {ceiling}");
        assert!(found >= part * ceiling && worst >= least, "{outline}: {found} of {ceiling}, at least {worst}");
        assert!(far <= 1.1 * ceiling_far, "{outline}: {far} {ceiling_far}");
    }
}

#[test]
fn true_crosses_reach_the_ceiling() {
    let (rows, boundaries) = cross_shapes(100);
    let [found, ceiling, worst, far, ceiling_far] = against_the_ceiling(&rows, &boundaries, Shapes::Cross);
    assert!((ceiling - 0.963).abs() <= 0.004, "{ceiling}");
    assert!(found >= 0.97 * ceiling && worst >= 0.87, "{found} of {ceiling}, at least {worst}");
    assert!(far <= 1.2 * ceiling_far, "{far} {ceiling_far}");
}

/// The figures of the module's documentation, to their last digit.
#[test]
#[ignore = "takes half a minute; to be run when a fit or a measure changes"]
fn figures_of_the_documentation() {
    let check = |rows: Vec<Vec<f32>>, boundaries: Vec<Vec<Point>>, family, expected: [f64; 6]| {
        let [found, ceiling, _, far, ceiling_far] = against_the_ceiling(&rows, &boundaries, family);
        // What a perfect model of the noisy training rows would be measured at.
        let mut noisy = rows.concat();
        let mut noise = vec![0.0; noisy.len()];
        fill_normals(1, Stream::Noise, 0, 0, &mut noise);
        for (value, z) in noisy.iter_mut().zip(noise) {
            *value += 0.01 * z;
        }
        let noisy = Likenesses::of(&noisy, rows[0].len(), family, Rules::Data).unwrap().mean().unwrap();
        let got = [ceiling, found, ceiling_far, far, noisy.iou, noisy.hausdorff];
        println!("{family:?}: {got:.4?}");
        for (got, expected) in got.into_iter().zip(expected) {
            assert!((got - expected).abs() <= 6e-4, "{got:?} {expected:?}");
        }
    };
    let (rows, boundaries) = lens_shapes(1000, Outline::Vertices);
    check(rows, boundaries, LENS, [0.950, 0.949, 0.068, 0.070, 0.939, 0.078]);
    let (rows, boundaries) = lens_shapes(1000, Outline::Arc);
    check(rows, boundaries, Shapes::Lens(Outline::Arc), [0.913, 0.891, 0.193, 0.154, 0.889, 0.165]);
    let (rows, boundaries) = cross_shapes(1000);
    check(rows, boundaries, Shapes::Cross, [0.963, 0.942, 0.103, 0.118, 0.913, 0.161]);
}

fn scaled(row: &[f32], factor: f32) -> Vec<f32> {
    row.iter().map(|v| factor * v).collect()
}

#[test]
fn rules_say_whether_a_small_shape_is_a_true_one() {
    let lens = Lens { radius: 1.5, angle: 2.0, offset: [0.3, -0.4] };
    let row = lens.coefficients(Outline::Vertices);
    let (_, outline) = cross::tests::draw(1, 3);
    let cross_row = coefficients(&outline, 12);
    for (row, family) in [(&row[..], LENS), (&cross_row[..], Shapes::Cross)] {
        let whole = likeness(family, row, Rules::Data).unwrap();
        for factor in [1e-3, 0.1, 20.0, 1e4] {
            let small = scaled(row, factor);
            let within = likeness(family, &small, Rules::Data).unwrap();
            assert!(within.iou <= 0.5 && within.hausdorff > 0.5, "{family:?} {factor}: {within:?}");
            let any = likeness(family, &small, Rules::AnySize).unwrap();
            assert!((any.iou - whole.iou).abs() <= 0.03, "{family:?} {factor}: {any:?} {whole:?}");
            let expected = whole.hausdorff * f64::from(factor);
            assert!((any.hausdorff - expected).abs() <= 0.5 * expected, "{family:?} {factor}: {any:?} {whole:?}");
        }
        let within = fit_lens(&Curve::new(&scaled(row, 1e-3)).unwrap(), Outline::Arc, Rules::Data).unwrap();
        assert_eq!(within.shape.radius, 1.0);
        let within = fit_cross(&Curve::new(&scaled(row, 1e4)).unwrap(), Rules::Data).unwrap();
        let cross = within.shape;
        for bar in 0..2 {
            assert!((3.0..=5.0).contains(&cross.lengths[bar]) && (0.5..=2.0).contains(&cross.widths[bar]), "{cross:?}");
            assert!((-1.5..=1.5).contains(&cross.shifts[bar]), "{cross:?}");
        }
    }
}

/// Curves of bad models.
fn wild(order: usize) -> Vec<Vec<f32>> {
    let mut rows = vec![vec![0.0; dim(order)]];
    for (part, scale) in (0..).zip([1e-44, 1e-6, 1.0, 1e6, 1e36]) {
        let mut rng = Counter::new(5, Stream::Data, 0, part);
        let noise: Vec<f32> = (0..dim(order)).map(|_| scale * rng.normal_pair()[0] as f32).collect();
        let mut point = vec![0.0; dim(order)];
        point[order] = scale;
        let mut line = point.clone();
        line[order + 1] = scale;
        let mut far = noise.clone();
        far[order] = 1e8;
        // An ellipse run through twice, half of it as wide as long.
        let mut twice = vec![0.0; dim(order)];
        twice[order + 2.min(order)] = scale;
        twice[dim(order) * 3 / 4 + order + 2.min(order)] = 0.5 * scale;
        rows.extend([noise, point, line, far, twice]);
    }
    rows
}

#[test]
fn wild_curves_have_measures_that_are_numbers() {
    for order in [0, 2, 12] {
        for row in wild(order) {
            for family in [LENS, Shapes::Lens(Outline::Arc), Shapes::Cross] {
                for rules in [Rules::Data, Rules::AnySize] {
                    let got = likeness(family, &row, rules).unwrap();
                    assert!((0.0..=1.0).contains(&got.iou), "{family:?} {rules:?} {got:?} {row:?}");
                    assert!(got.hausdorff >= 0.0 && got.hausdorff.is_finite(), "{family:?} {rules:?} {got:?} {row:?}");
                    assert!(got.loss >= 0.0 && got.loss.is_finite(), "{family:?} {rules:?} {got:?} {row:?}");
                }
            }
        }
    }
}

#[test]
fn rows_that_are_no_curves_are_counted_and_left_out() {
    let mut table = vec![0.0; 3 * lens::DIM];
    crate::data::Shapes::Lens(Outline::Vertices).fill(&mut table, 1, 0);
    let good = Likenesses::of(&table, lens::DIM, LENS, Rules::Data).unwrap();
    assert_eq!(good.skipped(), 0);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut table = table.clone();
        table[lens::DIM + 7] = bad;
        let row = &table[lens::DIM..2 * lens::DIM];
        for family in [LENS, Shapes::Cross] {
            assert!(matches!(likeness(family, row, Rules::Data), Err(Error::NotFinite { .. })));
        }
        let found = Likenesses::of(&table, lens::DIM, LENS, Rules::Data).unwrap();
        assert_eq!((found.skipped(), found.rows[1]), (1, None));
        assert_eq!((found.rows[0], found.rows[2]), (good.rows[0], good.rows[2]));
        let mean = found.mean().unwrap().iou;
        let expected = 0.5 * (good.rows[0].unwrap().iou + good.rows[2].unwrap().iou);
        assert!((mean - expected).abs() <= 1e-12, "{mean} {expected}");
    }
    assert!(Likenesses::of(&[], lens::DIM, LENS, Rules::Data).unwrap().mean().is_none());
    for (length, dim) in [(20, 0), (21, 20), (20, 19), (20, 5)] {
        assert!(Likenesses::of(&vec![0.0; length], dim, LENS, Rules::Data).is_err(), "{length} {dim}");
    }
}

#[test]
fn measures_do_not_depend_on_the_threads() {
    let (rows, _) = cross_shapes(6);
    let table = rows.concat();
    let of = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| Likenesses::of(&table, 100, Shapes::Cross, Rules::Data).unwrap())
    };
    assert_eq!(of(1), of(3));
    let alone = likeness(Shapes::Cross, &rows[4], Rules::Data).unwrap();
    assert_eq!(of(2).rows[4], Some(alone));
}

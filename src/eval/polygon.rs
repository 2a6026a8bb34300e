//! Areas of closed curves and of what two of them share.
//!
//! A curve is the list of its points, joined by straight lines, the last one to the first; it may cross itself and run
//! either way around. What it encloses is decided by the *non-zero* rule: a point is inside if the curve winds around
//! it a number of times other than 0. So a loop that a curve makes within itself is inside (a five-pointed star drawn
//! in one stroke has no hole), and so is the loop of an eight that runs the other way around.
//!
//! The plane is cut up by `i_overlay` on a grid of 2^-61 of the larger extent of both curves together, so that areas
//! are good to the rounding of `f64` and no input is special.

use i_overlay::core::extract::BooleanExtractionBuffer;
use i_overlay::core::fill_rule::FillRule;
use i_overlay::core::overlay_rule::OverlayRule;
use i_overlay::float::overlay::FloatOverlay;

use crate::data::shapes::fourier::Point;
use crate::error::{Error, Result};

/// Coordinates up to here have areas that are numbers.
const LARGEST: f64 = 1e150;

/// What two curves enclose together, see [`overlap`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Overlap {
    /// Area that both enclose.
    pub intersection: f64,
    /// Area that at least one of them encloses.
    pub union: f64,
    /// Intersection over union, from 0 to 1; 0 if neither encloses anything.
    pub iou: f64,
}

/// The area that a closed curve encloses by the non-zero rule. Not negative, whichever way the curve runs.
///
/// Fewer than three points enclose nothing. A coordinate that is not finite, or beyond 1e150, is an error.
#[cfg(test)]
pub(crate) fn area(curve: &[Point]) -> Result<f64> {
    Ok(overlap(curve, curve)?.union)
}

/// Intersection and union of what two closed curves enclose, errors as [`area`].
pub(crate) fn overlap(first: &[Point], second: &[Point]) -> Result<Overlap> {
    for (name, curve) in [("first curve", first), ("second curve", second)] {
        check_finite(name, curve)?;
    }
    let (centre, extent) = frame(first.iter().chain(second));
    if extent == 0.0 {
        return Ok(Overlap { intersection: 0.0, union: 0.0, iou: 0.0 });
    }
    // Around the origin and of size 1: the sums of products below would cancel far from it.
    let normalize = |curve: &[Point]| -> Vec<Point> {
        curve.iter().map(|p| [0, 1].map(|axis| (p[axis] - centre[axis]) / extent)).collect()
    };
    let (first, second) = (normalize(first), normalize(second));
    let mut overlay = FloatOverlay::<Point, i64>::from_subj_and_clip(&first, &second);
    let (mut intersection, mut union) = (0.0, 0.0);
    if let Some(graph) = overlay.build_graph_view(FillRule::NonZero) {
        let mut buffer = BooleanExtractionBuffer::default();
        let mut extract = |rule| {
            // Outer boundaries run counter-clockwise and holes clockwise, so the signed areas add up.
            let sum: f64 = graph.extract_shapes(rule, &mut buffer).iter().flatten().map(|c| signed_area(c)).sum();
            sum.max(0.0)
        };
        intersection = extract(OverlayRule::Intersect);
        union = extract(OverlayRule::Union).max(intersection);
    }
    let iou = if union > 0.0 { intersection / union } else { 0.0 };
    let square = extent * extent;
    Ok(Overlap { intersection: intersection * square, union: union * square, iou })
}

/// Intersection over union of what two closed curves enclose, from 0 to 1, errors as [`area`].
pub(crate) fn iou(first: &[Point], second: &[Point]) -> Result<f64> {
    Ok(overlap(first, second)?.iou)
}

/// The shoelace formula: positive for a simple polygon that runs counter-clockwise.
fn signed_area(polygon: &[Point]) -> f64 {
    let next = polygon.iter().cycle().skip(1);
    polygon.iter().zip(next).map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0])).sum()
}

/// Refuses points that have no place in the plane.
pub(super) fn check_finite(what: &str, curve: &[Point]) -> Result<()> {
    // Written so that a NaN is refused too.
    match curve.iter().position(|p| !p.iter().all(|c| c.abs() <= LARGEST)) {
        Some(index) => Err(Error::NotFinite { what: format!("point {index} of the {what}") }),
        None => Ok(()),
    }
}

/// Centre of the bounding box of some points and its larger extent; 0 for no points.
pub(super) fn frame<'a>(points: impl Iterator<Item = &'a Point>) -> (Point, f64) {
    let mut low = [f64::INFINITY; 2];
    let mut high = [f64::NEG_INFINITY; 2];
    for p in points {
        for axis in 0..2 {
            low[axis] = low[axis].min(p[axis]);
            high[axis] = high[axis].max(p[axis]);
        }
    }
    if low[0] > high[0] {
        return ([0.0; 2], 0.0);
    }
    let centre = [0, 1].map(|axis| 0.5 * low[axis] + 0.5 * high[axis]);
    (centre, (high[0] - low[0]).max(high[1] - low[1]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::{PI, TAU};

    /// Fails on NaN too.
    #[track_caller]
    fn assert_near(got: f64, expected: f64, relative: f64) {
        assert!((got - expected).abs() <= relative * expected.abs(), "got {got}, expected {expected}");
    }

    fn rectangle(x: [f64; 2], y: [f64; 2]) -> Vec<Point> {
        vec![[x[0], y[0]], [x[1], y[0]], [x[1], y[1]], [x[0], y[1]]]
    }

    fn regular(count: usize, stride: usize, phase: f64) -> Vec<Point> {
        let angle = |k| phase + TAU * (k * stride) as f64 / count as f64;
        (0..count).map(|k| [angle(k).cos(), angle(k).sin()]).collect()
    }

    #[test]
    fn squares_that_overlap_share_a_seventh() {
        // Two squares of area 4, one moved by 1 in each axis: they share 1 of 7.
        let (a, mut b) = (rectangle([0., 2.], [0., 2.]), rectangle([1., 3.], [1., 3.]));
        for reversed in [false, true] {
            if reversed {
                b.reverse();
            }
            let got = overlap(&a, &b).unwrap();
            assert_near(got.intersection, 1.0, 1e-12);
            assert_near(got.union, 7.0, 1e-12);
            assert_near(got.iou, 1.0 / 7.0, 1e-12);
            assert_near(iou(&b, &a).unwrap(), 1.0 / 7.0, 1e-12);
        }
    }

    #[test]
    fn shapes_apart_touching_inside_and_equal() {
        let a = rectangle([0., 2.], [0., 2.]);
        for other in [rectangle([5., 6.], [0., 1.]), rectangle([2., 3.], [0., 2.])] {
            assert_eq!(overlap(&a, &other).unwrap().iou, 0.0);
        }
        assert_near(overlap(&a, &rectangle([5., 6.], [0., 1.])).unwrap().union, 5.0, 1e-12);
        assert_near(iou(&a, &rectangle([0.5, 1.5], [0.5, 1.5])).unwrap(), 0.25, 1e-12);
        assert_near(iou(&a, &a).unwrap(), 1.0, 1e-12);
        // Two bars that cross: each of 4 x 1, the square where they cross is shared.
        let got = overlap(&rectangle([-2., 2.], [-0.5, 0.5]), &rectangle([-0.5, 0.5], [-2., 2.])).unwrap();
        assert_near(got.intersection, 1.0, 1e-12);
        assert_near(got.union, 7.0, 1e-12);
    }

    #[test]
    fn a_star_drawn_in_one_stroke_is_filled() {
        // Ten triangles from the centre: tip at radius 1, notch at radius phi^-2, 36 degrees apart.
        let notch = ((5f64.sqrt() - 1.0) / 2.0).powi(2);
        let star = 10.0 * 0.5 * notch * (PI / 5.0).sin();
        let pentagon = 5.0 * 0.5 * notch * notch * (TAU / 5.0).sin();
        let stroke = regular(5, 2, 0.3);
        assert_near(area(&stroke).unwrap(), star, 1e-12);
        // The pentagon in the middle, wound twice: the even-odd rule would leave it out.
        let inner: Vec<Point> = regular(5, 1, 0.3 + PI / 5.0).iter().map(|p| p.map(|c| c * notch)).collect();
        assert_near(overlap(&stroke, &inner).unwrap().intersection, pentagon, 1e-12);
        // The shoelace formula alone counts it twice.
        assert_near(signed_area(&stroke).abs(), star + pentagon, 1e-12);
    }

    #[test]
    fn both_loops_of_an_eight_count() {
        let eight = [[-1., -1.], [1., 1.], [1., -1.], [-1., 1.]];
        assert_near(area(&eight).unwrap(), 2.0, 1e-12);
        assert!(signed_area(&eight).abs() < 1e-15);
    }

    #[test]
    fn area_of_a_circle_and_of_curves_far_away_tiny_and_huge() {
        let count = 400;
        let polygon = 0.5 * count as f64 * (TAU / count as f64).sin();
        let circle = regular(count, 1, 0.0);
        assert_near(area(&circle).unwrap(), polygon, 1e-12);
        for (scale, shift, relative) in [(1e40, 0.0, 1e-12), (1e-30, 0.0, 1e-12), (1e149, 0.0, 1e-12), (1.0, 1e8, 1e-6)]
        {
            let moved: Vec<Point> = circle.iter().map(|p| [scale * p[0] + shift, scale * p[1] - shift]).collect();
            assert_near(area(&moved).unwrap(), polygon * scale * scale, relative);
            assert_near(iou(&moved, &moved).unwrap(), 1.0, 1e-12);
        }
        // One part in 10^12 of the larger one's area.
        let small: Vec<Point> = circle.iter().map(|p| p.map(|c| 1e-6 * c)).collect();
        assert_near(iou(&circle, &small).unwrap(), 1e-12, 1e-6);
    }

    #[test]
    fn what_encloses_nothing_has_no_area() {
        let line = [[0., 0.], [1., 1.], [3., 3.], [1., 1.]];
        for curve in [&[][..], &[[1., 2.]], &[[1., 2.], [3., 4.]], &[[5., 5.]; 9], &line] {
            assert_eq!(area(curve).unwrap(), 0.0);
            let got = overlap(curve, &rectangle([0., 1.], [0., 1.])).unwrap();
            assert_eq!((got.intersection, got.iou), (0.0, 0.0));
            assert_near(got.union, 1.0, 1e-12);
        }
        let nothing = overlap(&[[1., 2.]], &[]).unwrap();
        assert_eq!(nothing, Overlap { intersection: 0.0, union: 0.0, iou: 0.0 });
    }

    #[test]
    fn points_that_are_no_numbers_are_errors() {
        let square = rectangle([0., 1.], [0., 1.]);
        for bad in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e151] {
            let mut curve = square.clone();
            curve[2][1] = bad;
            let error = overlap(&square, &curve).unwrap_err();
            assert!(error.to_string().contains("point 2 of the second curve"), "{error}");
            assert!(area(&curve).is_err() && iou(&curve, &square).is_err());
        }
    }
}

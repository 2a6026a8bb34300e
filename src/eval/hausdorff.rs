//! Hausdorff distance of closed curves: how far the farthest point of either one is from the other.

use super::nearest::{Nearest, Polyline};
use super::polygon::{check_finite, frame};
use crate::data::shapes::fourier::Point;
use crate::error::{Error, Result};

/// Error of a distance, against the larger extent of both curves together.
const TOLERANCE: f64 = 1e-9;
/// Halvings of a line: after these a piece is below the rounding of its ends.
const DEEPEST: u32 = 52;

/// The symmetric Hausdorff distance of two closed curves, in the units of their points.
///
/// Curves are points joined by straight lines, the last to the first; the distance is that of the lines and not of the
/// points alone, to 1e-9 of the larger extent of both together. It is that of the contours: what they enclose plays no
/// part, so a small circle in the middle of a large one is far from it.
///
/// A curve without points, or with one that is not finite or beyond 1e150, is an error.
pub(crate) fn hausdorff(first: &[Point], second: &[Point]) -> Result<f64> {
    for (name, curve) in [("first curve", first), ("second curve", second)] {
        if curve.is_empty() {
            return Err(Error::Shape { what: format!("points of the {name} (at least)"), expected: 1, got: 0 });
        }
        check_finite(name, curve)?;
    }
    let tolerance = TOLERANCE * frame(first.iter().chain(second)).1;
    let (a, b) = (Polyline::new(first), Polyline::new(second));
    let farthest = raise(first, &b, 0.0, tolerance);
    Ok(raise(second, &a, farthest, tolerance))
}

/// A point of the curve and where the other curve is nearest to it.
#[derive(Clone, Copy)]
struct End {
    point: Point,
    nearest: Nearest,
}

/// The largest distance of a point of `curve` to `other`, or `known` if that is larger.
///
/// Branch and bound: a line is halved only while its points could be farther than the farthest one found.
fn raise(curve: &[Point], other: &Polyline, known: f64, tolerance: f64) -> f64 {
    let end = |point: Point| End { point, nearest: other.nearest(point) };
    let ends: Vec<End> = curve.iter().map(|&p| end(p)).collect();
    let mut farthest = ends.iter().map(|e| e.nearest.square.sqrt()).fold(known, f64::max);
    let mut pieces: Vec<(End, End, u32)> =
        ends.iter().zip(ends.iter().cycle().skip(1)).map(|(&a, &b)| (a, b, 0)).collect();
    while let Some((a, b, depth)) = pieces.pop() {
        if bound(a, b, other) <= farthest + tolerance || depth == DEEPEST {
            continue;
        }
        let middle = end([0, 1].map(|axis| 0.5 * a.point[axis] + 0.5 * b.point[axis]));
        farthest = farthest.max(middle.nearest.square.sqrt());
        pieces.push((a, middle, depth + 1));
        pieces.push((middle, b, depth + 1));
    }
    farthest
}

/// No point between `a` and `b` is farther from `other` than this.
fn bound(a: End, b: End, other: &Polyline) -> f64 {
    let length = (a.point[0] - b.point[0]).hypot(a.point[1] - b.point[1]);
    let [from_a, from_b] = [a, b].map(|end| end.nearest.square.sqrt());
    // The distance changes by no more than the point moves.
    let by_length = 0.5 * (from_a + from_b + length);
    // The distance to one line is convex, so it is largest at an end; the distance to all lines is no larger.
    let to_line = |from: End, line: usize| other.to_line(from.point, line).0.sqrt();
    let by_line_of_a = from_a.max(to_line(b, a.nearest.line));
    let by_line_of_b = from_b.max(to_line(a, b.nearest.line));
    by_length.min(by_line_of_a).min(by_line_of_b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};
    use std::f64::consts::{PI, TAU};

    /// Fails on NaN too.
    #[track_caller]
    fn assert_distance(a: &[Point], b: &[Point], expected: f64, tolerance: f64) {
        for got in [hausdorff(a, b).unwrap(), hausdorff(b, a).unwrap()] {
            assert!((got - expected).abs() <= tolerance, "got {got}, expected {expected}");
        }
    }

    fn circle(count: usize, radius: f64) -> Vec<Point> {
        (0..count)
            .map(|k| {
                let angle = TAU * k as f64 / count as f64;
                [radius * angle.cos(), radius * angle.sin()]
            })
            .collect()
    }

    fn square(side: f64, shift: Point) -> Vec<Point> {
        [[0., 0.], [1., 0.], [1., 1.], [0., 1.]].map(|p| [0, 1].map(|axis| side * p[axis] + shift[axis])).to_vec()
    }

    #[test]
    fn shifted_squares_are_as_far_as_the_shift() {
        assert_distance(&square(1.0, [0., 0.]), &square(1.0, [0.25, 0.]), 0.25, 1e-9);
        // Diagonally the outer corner is the farthest point: it looks at a corner.
        assert_distance(&square(1.0, [0., 0.]), &square(1.0, [0.3, 0.4]), 0.5, 1e-9);
        assert_distance(&square(1.0, [0., 0.]), &square(1.0, [10., 0.]), 10.0, 1e-8);
        assert_distance(&square(1.0, [0., 0.]), &square(1.0, [0., 0.]), 0.0, 1e-9);
    }

    #[test]
    fn the_farthest_point_may_lie_between_corners() {
        // From corner to corner.
        assert_distance(&square(1.0, [1., 1.]), &square(3.0, [0., 0.]), 2f64.sqrt(), 1e-9);
        // A line of length 4 between two towers that touch its ends: only its middle is far from them.
        let line = [[-2., 0.], [2., 0.]];
        let towers = [[-2., 0.], [-2., 1.], [-2., 0.], [-2., -9.], [2., -9.], [2., 0.], [2., -9.], [-2., -9.]];
        let directed = raise(&line, &Polyline::new(&towers), 0.0, 1e-9);
        assert!((directed - 2.0).abs() <= 1e-8, "{directed}");
        // The other way around it is the foot of the towers.
        assert_distance(&line, &towers, 9.0, 1e-8);
    }

    #[test]
    fn concentric_circles_are_as_far_as_their_radii() {
        for (inner, outer) in [(1.0, 1.5), (1.0, 3.0)] {
            // Corners of the outer polygon look at corners of the inner one.
            assert_distance(&circle(64, inner), &circle(64, outer), outer - inner, 1e-8);
            // The circles themselves differ from polygons by no more than the sagitta.
            let sagitta = outer * (1.0 - (PI / 48.0).cos());
            assert_distance(&circle(200, inner), &circle(48, outer), outer - inner, sagitta);
        }
    }

    #[test]
    fn agrees_with_dense_sampling_of_random_curves() {
        for part in 0..10 {
            let mut rng = Counter::new(1, Stream::Data, 4, part);
            let [a, b] = [5, 9].map(|count| (0..count).map(|_| rng.normal_pair()).collect::<Vec<Point>>());
            let steps = 200;
            let dense = |curve: &[Point]| -> Vec<Point> {
                let next = curve.iter().cycle().skip(1);
                let piece = |(p, q): (&Point, &Point)| {
                    let (p, q) = (*p, *q);
                    (0..steps).map(move |k| {
                        let at = k as f64 / steps as f64;
                        [0, 1].map(|axis| p[axis] + at * (q[axis] - p[axis]))
                    })
                };
                curve.iter().zip(next).flat_map(piece).collect()
            };
            let directed = |from: &[Point], to: &[Point]| {
                let nearest = |p: &Point| to.iter().map(|q| (p[0] - q[0]).hypot(p[1] - q[1])).fold(f64::MAX, f64::min);
                dense(from).iter().map(nearest).fold(0.0, f64::max)
            };
            let (dense_a, dense_b) = (dense(&a), dense(&b));
            let expected = directed(&a, &dense_b).max(directed(&b, &dense_a));
            assert_distance(&a, &b, expected, 0.02);
        }
    }

    #[test]
    fn points_tiny_and_huge_curves() {
        assert_distance(&[[1., 2.]], &[[4., 6.]], 5.0, 1e-8);
        assert_distance(&[[0., 0.]; 7], &circle(64, 2.0), 2.0, 1e-8);
        assert_distance(&circle(64, 1e-30), &circle(64, 2e-30), 1e-30, 1e-38);
        assert_distance(&circle(64, 1e140), &circle(64, 2.0), 1e140, 1e132);
        assert_distance(&circle(64, 1.0), &[[1e30, 0.0]], 1e30, 1e22);
    }

    #[test]
    fn curves_without_a_place_are_errors() {
        let good = circle(8, 1.0);
        assert!(matches!(hausdorff(&good, &[]), Err(Error::Shape { expected: 1, got: 0, .. })));
        for bad in [f64::NAN, f64::INFINITY, -1e151] {
            let error = hausdorff(&[[0., 0.], [0., bad]], &good).unwrap_err();
            assert!(error.to_string().contains("point 1 of the first curve"), "{error}");
        }
    }
}

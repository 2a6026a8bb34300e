//! Points and polygons of the plane: what the shapes of the paper are built from.

/// A point of the plane.
pub(crate) type Point = [f64; 2];

/// The point of the unit circle at an angle: a direction.
pub(crate) fn on_circle(angle: f64) -> Point {
    let (sin, cos) = angle.sin_cos();
    [cos, sin]
}

/// A point turned around the origin so that direction 0 becomes `direction`, a point of the unit circle.
pub(crate) fn turn([x, y]: Point, [cos, sin]: Point) -> Point {
    [cos * x - sin * y, sin * x + cos * y]
}

/// Mean of some points, at least one.
pub(crate) fn mean(points: &[Point]) -> Point {
    [0, 1].map(|axis| points.iter().map(|p| p[axis]).sum::<f64>() / points.len() as f64)
}

/// A closed polygon with points added at equal distances on each side, so that no segment is longer than `longest`
/// (paper, appendix on the Cross). The first point stays the first; sides of length 0 are left out.
pub(crate) fn subdivide(polygon: &[Point], longest: f64) -> Vec<Point> {
    let mut points = Vec::with_capacity(2 * polygon.len());
    for (p, q) in polygon.iter().zip(polygon.iter().cycle().skip(1)) {
        let along = [q[0] - p[0], q[1] - p[1]];
        let length = along[0].hypot(along[1]);
        if length == 0.0 {
            continue;
        }
        let pieces = ((length / longest).ceil() as usize).max(1);
        points.extend((0..pieces).map(|k| [0, 1].map(|axis| p[axis] + along[axis] * (k as f64 / pieces as f64))));
    }
    points
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn points_turn_counter_clockwise() {
        let [x, y] = turn([2.0, 1.0], on_circle(0.5 * PI));
        assert!((x + 1.0).abs() < 1e-15 && (y - 2.0).abs() < 1e-15, "{x} {y}");
        assert_eq!(mean(&[[1.0, 2.0], [3.0, 8.0]]), [2.0, 5.0]);
    }

    #[test]
    fn sides_are_divided_as_little_as_possible() {
        // Sides of length 3, 4 and 5, one of them without length.
        let triangle = [[0.0, 0.0], [3.0, 0.0], [3.0, 0.0], [3.0, 4.0]];
        let points = subdivide(&triangle, 1.0);
        assert_eq!(points.len(), 12);
        assert_eq!(&points[..5], [[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0], [3.0, 1.0]]);
        assert_eq!(subdivide(&triangle, 0.9).len(), 4 + 5 + 6);
        assert_eq!(subdivide(&triangle, 9.0), [[0.0, 0.0], [3.0, 0.0], [3.0, 4.0]]);
    }
}

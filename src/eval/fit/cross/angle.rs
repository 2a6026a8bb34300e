//! The dominant straight line of a curve.

use super::super::super::polygon::frame;
use crate::data::shapes::fourier::Point;

/// Points that propose lines; every two of them propose one.
const PROPOSING: usize = 64;
/// A point is on a line if it is nearer than this part of the extent of the curve.
const NEAR: f64 = 0.0125;

/// Direction of the line that most of the points are near to, in (-pi, pi].
///
/// This is RANSAC without chance: the lines through all pairs of 64 points are few enough to try them all, which is
/// sure to try the best one and needs no seed.
pub(super) fn dominant(points: &[Point]) -> f64 {
    let (centre, extent) = frame(points.iter());
    if extent == 0.0 {
        return 0.0;
    }
    // In units of the extent: products of huge coordinates stay numbers.
    let [x, y] = [0, 1].map(|axis| points.iter().map(|p| (p[axis] - centre[axis]) / extent).collect::<Vec<f64>>());
    let stride = points.len().div_ceil(PROPOSING);
    let proposing: Vec<usize> = (0..points.len()).step_by(stride).collect();
    let (mut best, mut direction) = (0, 0.0);
    for (i, &a) in proposing.iter().enumerate() {
        for &b in &proposing[..i] {
            let [u, v] = [x[a] - x[b], y[a] - y[b]];
            let length = u.hypot(v);
            // Neighbours say little about a direction.
            if length < 8.0 * NEAR {
                continue;
            }
            let normal = [-v / length, u / length];
            let offset = normal[0] * x[a] + normal[1] * y[a];
            let near = |(x, y): (&f64, &f64)| u32::from((normal[0] * x + normal[1] * y - offset).abs() < NEAR);
            let count: u32 = x.iter().zip(&y).map(near).sum();
            if count > best {
                (best, direction) = (count, v.atan2(u));
            }
        }
    }
    direction
}

#[cfg(test)]
mod tests {
    use super::super::tests::spread;
    use super::*;
    use std::f64::consts::PI;

    #[test]
    fn the_long_side_of_a_box_gives_the_direction_at_any_size() {
        for angle in [-1.3, 0.0, 0.4, 1.5] {
            let (sin, cos) = f64::sin_cos(angle);
            for scale in [1e-30, 1.0, 1e30] {
                let corner = |[u, v]: Point| [scale * (cos * u - sin * v + 0.3), scale * (sin * u + cos * v)];
                let points = spread(&[[0., 0.], [4., 0.], [4., 1.], [0., 1.]].map(corner), 0.02 * scale);
                let turn = (dominant(&points) - angle).rem_euclid(PI);
                assert!(turn.min(PI - turn) <= 0.02, "{angle} {scale}: {turn}");
            }
        }
    }

    #[test]
    fn a_point_has_some_direction() {
        assert_eq!(dominant(&[[1.0, 2.0]; 9]), 0.0);
    }
}

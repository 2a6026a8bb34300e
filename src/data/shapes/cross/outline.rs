//! Geometry of the Cross in the frame of its bars: they cross at the origin, bar 1 lies along x and bar 2 along y.

use super::Bar;
use crate::data::shapes::plane::Point;

/// Corners of the union of two bars, counter-clockwise from the one nearest to the upper corner of bar 1's right end.
///
/// Both bars hold the origin, so the union is that of each quadrant's, and no general clipping is needed. A quadrant
/// lies between two of the four arms, counter-clockwise: right and left end of bar 1, upper and lower end of bar 2.
/// There both bars are rectangles with a corner at the origin, and what counts is which of them reaches beyond the
/// other's side.
pub(super) fn corners(bars: &[Bar; 2]) -> Vec<Point> {
    const DIRECTIONS: [Point; 4] = [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]];
    let reach = |bar: &Bar, side: f64| (0.5 * bar.length + side * bar.shift).max(0.0);
    let reaches = [reach(&bars[0], 1.0), reach(&bars[1], 1.0), reach(&bars[0], -1.0), reach(&bars[1], -1.0)];
    let half_widths = [0.5 * bars[0].width, 0.5 * bars[1].width];

    let mut corners = Vec::with_capacity(12);
    for quadrant in 0..4 {
        let next = (quadrant + 1) % 4;
        let (along, across) = (DIRECTIONS[quadrant], DIRECTIONS[next]);
        let mut push = |a: f64, b: f64| corners.push([0, 1].map(|axis| a * along[axis] + b * across[axis]));
        // The rectangle of this arm is `a` by `half_a`, that of the next one `half_b` by `b`.
        let ([a, b], [half_a, half_b]) =
            ([reaches[quadrant], reaches[next]], [quadrant, next].map(|k| half_widths[k % 2]));
        match (a > half_b, b > half_a) {
            (true, true) => {
                push(a, half_a);
                push(half_b, half_a);
                push(half_b, b);
            }
            // One end lies inside the other bar.
            (true, false) => push(a, half_a),
            (false, true) => push(half_b, b),
            // Both do, as in the corner of an L.
            (false, false) => {
                push(half_b, b);
                push(a, b);
                push(a, half_a);
            }
        }
    }
    corners.dedup();
    let end = [reaches[0], half_widths[0]];
    let distance = |p: &Point| (p[0] - end[0]).hypot(p[1] - end[1]);
    let start = (0..corners.len()).min_by(|&i, &j| distance(&corners[i]).total_cmp(&distance(&corners[j])));
    corners.rotate_left(start.unwrap_or(0));
    corners
}

//! Geometry of the Lens for radius 1: the two arcs, and the intersection of the two polygons.

use std::f64::consts::{PI, TAU};
use std::ops::Range;
use std::sync::LazyLock;

use super::Outline;
use crate::data::shapes::plane::{Point, on_circle, turn};

/// Distance of the centres and radius of circle 2, both in radii of circle 1.
pub(crate) const DISTANCE: f64 = 2.4;
pub(crate) const SECOND: f64 = 2.0;
/// From centre 1 to the line through both tips, and from that line to a tip, in radii of circle 1.
pub(crate) const CHORD: f64 = (DISTANCE * DISTANCE + 1.0 - SECOND * SECOND) / (2.0 * DISTANCE);
pub(crate) static HALF_CHORD: LazyLock<f64> = LazyLock::new(|| (1.0 - CHORD * CHORD).sqrt());

/// Corners of a circle's polygon. A bit mask of corners fills a `u64` exactly.
const SIDES: usize = 64;
/// Points of the arc outline.
const ARC_POINTS: usize = 64;
/// Points nearer than this (in radii) are one point: a corner that lies on the other polygon.
const SAME: f64 = 1e-9;

/// Corners of the regular polygon in the unit circle, the first at angle 0.
static CORNERS: LazyLock<[Point; SIDES]> =
    LazyLock::new(|| std::array::from_fn(|k| on_circle(TAU * k as f64 / SIDES as f64)));
/// Outward normals of its sides; side k goes from corner k to corner k + 1.
static NORMALS: LazyLock<[Point; SIDES]> =
    LazyLock::new(|| std::array::from_fn(|k| on_circle(TAU * (k as f64 + 0.5) / SIDES as f64)));

/// The arc outline with circle 2 in direction 0.
static ARC: LazyLock<[Point; ARC_POINTS]> = LazyLock::new(|| {
    let arcs = Arcs::new();
    let step = (arcs.first + arcs.second) / ARC_POINTS as f64;
    std::array::from_fn(|k| arcs.at(step * k as f64))
});

/// The outline for radius 1 with the centre of circle 1 at the origin and circle 2 in a direction (a unit vector).
pub(super) fn unit_points(outline: Outline, direction: Point) -> Vec<Point> {
    match outline {
        Outline::Vertices => intersection(direction.map(|c| DISTANCE * c)),
        Outline::Arc => ARC.iter().map(|p| turn(*p, direction)).collect(),
    }
}

/// The two arcs of the unit Lens with circle 2 in direction 0, as one path from the upper tip counter-clockwise.
pub(super) struct Arcs {
    /// Length of circle 2's arc, which comes first.
    pub(super) second: f64,
    /// Length of circle 1's arc.
    pub(super) first: f64,
}

impl Arcs {
    pub(super) fn new() -> Self {
        Self { second: SECOND * 2.0 * (*HALF_CHORD / SECOND).asin(), first: 2.0 * CHORD.acos() }
    }

    /// The point after a length of path.
    pub(super) fn at(&self, length: f64) -> Point {
        if length < self.second {
            let [x, y] = on_circle(PI + (length - 0.5 * self.second) / SECOND);
            [DISTANCE + SECOND * x, SECOND * y]
        } else {
            on_circle(length - self.second - 0.5 * self.first)
        }
    }
}

/// Corners of the intersection of the unit polygon with the polygon of circle 2 around `centre`, in the order that
/// [`Outline::Vertices`] promises.
///
/// The boundaries cross exactly twice and nearly at a right angle, so each polygon gives one unbroken run of corners
/// and the crossings lie on the sides just before and after the runs. No general clipping is needed.
fn intersection(centre: Point) -> Vec<Point> {
    let first = |k: usize| CORNERS[k % SIDES];
    let second = |k: usize| [0, 1].map(|axis| centre[axis] + SECOND * CORNERS[k % SIDES][axis]);
    let first_run = run(|k| inside_polygon([0, 1].map(|axis| (first(k)[axis] - centre[axis]) / SECOND)));
    let second_run = run(|k| inside_polygon(second(k)));

    let mut points: Vec<Point> = Vec::with_capacity(40);
    let push = |points: &mut Vec<Point>, p: Point| {
        if points.last().is_none_or(|last| !same(*last, p)) {
            points.push(p);
        }
    };
    let before = |run: &Range<usize>| run.start + SIDES - 1;
    let side = |corner: &dyn Fn(usize) -> Point, k: usize| [corner(k), corner(k + 1)];

    // Where circle 1's arc begins: circle 2 leaves, circle 1 enters.
    push(&mut points, crossing(side(&first, before(&first_run)), side(&second, second_run.end - 1)));
    let mut start = 0;
    for k in first_run.clone() {
        push(&mut points, first(k));
        if k % SIDES == 0 {
            start = points.len() - 1;
        }
    }
    push(&mut points, crossing(side(&first, first_run.end - 1), side(&second, before(&second_run))));
    for k in second_run {
        push(&mut points, second(k));
    }
    if points.len() > 1 && same(points[0], points[points.len() - 1]) {
        points.pop();
    }
    points.rotate_left(start);
    points
}

fn same(p: Point, q: Point) -> bool {
    (p[0] - q[0]).abs() < SAME && (p[1] - q[1]).abs() < SAME
}

/// Whether a point lies in the unit polygon or on its boundary.
fn inside_polygon(p: Point) -> bool {
    let inner = NORMALS[0][0]; // cos(pi / 64), the radius of the inscribed circle
    let square = p[0] * p[0] + p[1] * p[1];
    if square <= inner * inner {
        return true;
    }
    if square > 1.0 {
        return false;
    }
    let sector = (p[1].atan2(p[0]).rem_euclid(TAU) * SIDES as f64 / TAU) as usize % SIDES;
    p[0] * NORMALS[sector][0] + p[1] * NORMALS[sector][1] <= inner
}

/// The corners for which `inside` holds, which are neighbours; the range may go past the last corner and on from 0.
fn run(inside: impl Fn(usize) -> bool) -> Range<usize> {
    let mask = (0..SIDES).fold(0u64, |mask, k| mask | u64::from(inside(k)) << k);
    let starts = mask & !mask.rotate_left(1);
    assert_eq!(starts.count_ones(), 1, "the polygons of a Lens cross exactly twice");
    let start = starts.trailing_zeros() as usize;
    start..start + mask.count_ones() as usize
}

/// Where the lines through two segments meet.
fn crossing([p, p2]: [Point; 2], [q, q2]: [Point; 2]) -> Point {
    let [along, other] = [[p2[0] - p[0], p2[1] - p[1]], [q2[0] - q[0], q2[1] - q[1]]];
    let cross = |a: Point, b: Point| a[0] * b[1] - a[1] * b[0];
    let t = cross([q[0] - p[0], q[1] - p[1]], other) / cross(along, other);
    [0, 1].map(|axis| p[axis] + t * along[axis])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn distance(p: Point, q: Point) -> f64 {
        (p[0] - q[0]).hypot(p[1] - q[1])
    }

    fn area(points: &[Point]) -> f64 {
        let next = points.iter().cycle().skip(1);
        points.iter().zip(next).map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0])).sum()
    }

    /// Clips a convex polygon by another, half-plane by half-plane (Sutherland-Hodgman): slow, general, independent.
    fn clip(mut subject: Vec<Point>, clipper: &[Point]) -> Vec<Point> {
        for (a, b) in clipper.iter().zip(clipper.iter().cycle().skip(1)) {
            let side = |p: Point| (b[0] - a[0]) * (p[1] - a[1]) - (b[1] - a[1]) * (p[0] - a[0]);
            let mut kept = Vec::new();
            for (i, &p) in subject.iter().enumerate() {
                let q = subject[(i + 1) % subject.len()];
                if side(p) >= 0.0 {
                    kept.push(p);
                }
                if (side(p) >= 0.0) != (side(q) >= 0.0) {
                    let t = side(p) / (side(p) - side(q));
                    kept.push([0, 1].map(|axis| p[axis] + t * (q[axis] - p[axis])));
                }
            }
            subject = kept;
        }
        subject
    }

    fn clipped(angle: f64) -> Vec<Point> {
        let centre = on_circle(angle).map(|c| DISTANCE * c);
        let second: Vec<Point> = CORNERS.iter().map(|v| [0, 1].map(|axis| centre[axis] + SECOND * v[axis])).collect();
        clip(CORNERS.to_vec(), &second)
    }

    #[test]
    fn the_polygon_ends_at_its_sides_and_corners() {
        for k in 0..SIDES {
            let inner = NORMALS[0][0];
            for (boundary, scale) in [(CORNERS[k], 1.0), (NORMALS[k], inner)] {
                assert!(inside_polygon(boundary.map(|c| c * scale * (1.0 - 1e-12))), "{k}");
                assert!(!inside_polygon(boundary.map(|c| c * scale * (1.0 + 1e-12))), "{k}");
            }
        }
    }

    #[test]
    fn vertices_are_the_clipped_polygon_in_the_promised_order() {
        let mut at_corner = 0;
        for i in 0..2000 {
            let angle = TAU * (f64::from(i) + 0.377) / 2000.0;
            let got = intersection(on_circle(angle).map(|c| DISTANCE * c));
            let expected = clipped(angle);
            assert_eq!(got.len(), expected.len(), "angle {angle}");
            let shift =
                expected.iter().position(|p| distance(*p, got[0]) < 1e-9).expect("the first point is one of them");
            for (k, p) in got.iter().enumerate() {
                let q = expected[(k + shift) % expected.len()];
                assert!(distance(*p, q) < 1e-9, "angle {angle} point {k}: {p:?} {q:?}");
            }
            assert!((28..=32).contains(&got.len()), "{}", got.len());
            // The start: corner 0 if it is on the outline, else a crossing followed by a corner of circle 1.
            if expected.iter().any(|p| distance(*p, [1.0, 0.0]) < 1e-9) {
                assert_eq!(got[0], [1.0, 0.0]);
                at_corner += 1;
            } else {
                assert!(got[0][0].hypot(got[0][1]) < 1.0 - 1e-12 && (got[1][0].hypot(got[1][1]) - 1.0).abs() < 1e-12);
                let last = got[got.len() - 1];
                assert!((distance(last, on_circle(angle).map(|c| DISTANCE * c)) - SECOND).abs() < 1e-9);
            }
        }
        // The corner is on the outline for angles within about 55 degrees of 0.
        let expected = 2000.0 * CHORD.acos() / PI;
        assert!((f64::from(at_corner) - expected).abs() < 40.0, "{at_corner} {expected}");
    }

    #[test]
    fn corners_on_the_other_polygon_are_not_doubled() {
        // Angles at which a corner of one polygon falls on the other's boundary, to the last bit or nearly:
        // bisect on the number of corners of each run.
        let counts = |angle: f64| {
            let centre = on_circle(angle).map(|c| DISTANCE * c);
            (0..SIDES).filter(|&k| inside_polygon([0, 1].map(|a| (CORNERS[k][a] - centre[a]) / SECOND))).count()
                + 100
                    * (0..SIDES).filter(|&k| inside_polygon([0, 1].map(|a| centre[a] + SECOND * CORNERS[k][a]))).count()
        };
        let mut edges = 0;
        for i in 0..640 {
            let [mut low, mut high] = [0.01 * f64::from(i), 0.01 * f64::from(i + 1)];
            if counts(low) == counts(high) {
                continue;
            }
            for _ in 0..60 {
                let middle = 0.5 * (low + high);
                if counts(middle) == counts(low) { low = middle } else { high = middle }
            }
            for angle in [low, high] {
                let got = intersection(on_circle(angle).map(|c| DISTANCE * c));
                for (p, q) in got.iter().zip(got.iter().cycle().skip(1)) {
                    assert!(distance(*p, *q) > SAME, "angle {angle}: {got:?}");
                }
                assert!((area(&got) - area(&clipped(angle))).abs() < 1e-9);
            }
            edges += 1;
        }
        assert!(edges > 50, "{edges}");
        // Exactly on the axes everything is symmetric.
        for quarter in 0..5 {
            let angle = 0.5 * PI * f64::from(quarter);
            let got = intersection(on_circle(angle).map(|c| DISTANCE * c));
            assert!((area(&got) - area(&clipped(angle))).abs() < 1e-12);
        }
    }
}

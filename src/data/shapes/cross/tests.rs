//! The Cross against independent computations: areas and perimeters of unions, a raster, the distribution of its
//! parameters.

use std::collections::BTreeMap;

use super::*;
use crate::data::shapes::fourier::Curve;

fn area(points: &[Point]) -> f64 {
    let next = points.iter().cycle().skip(1);
    points.iter().zip(next).map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0])).sum()
}

fn distance(p: Point, q: Point) -> f64 {
    (p[0] - q[0]).hypot(p[1] - q[1])
}

fn segments(points: &[Point]) -> impl Iterator<Item = (Point, Point)> + '_ {
    points.iter().copied().zip(points.iter().copied().cycle().skip(1))
}

/// Left, right, lower and upper side of each bar in the frame of the bars.
fn sides(cross: &Cross) -> [[f64; 4]; 2] {
    let [a, b] = cross.bars;
    [
        [a.shift - 0.5 * a.length, a.shift + 0.5 * a.length, -0.5 * a.width, 0.5 * a.width],
        [-0.5 * b.width, 0.5 * b.width, b.shift - 0.5 * b.length, b.shift + 0.5 * b.length],
    ]
}

/// Area of the union of two rectangles: the sum without what they share.
fn union_area(cross: &Cross) -> f64 {
    let [a, b] = sides(cross);
    let of = |[left, right, lower, upper]: [f64; 4]| (right - left).max(0.0) * (upper - lower).max(0.0);
    of(a) + of(b) - of([a[0].max(b[0]), a[1].min(b[1]), a[2].max(b[2]), a[3].min(b[3])])
}

fn is_in_a_bar(cross: &Cross, [x, y]: Point) -> bool {
    sides(cross).iter().any(|[left, right, lower, upper]| x > *left && x < *right && y > *lower && y < *upper)
}

/// Even-odd rule.
fn is_inside(polygon: &[Point], [x, y]: Point) -> bool {
    let crosses =
        |(p, q): &(Point, Point)| (p[1] > y) != (q[1] > y) && x < p[0] + (y - p[1]) / (q[1] - p[1]) * (q[0] - p[0]);
    segments(polygon).filter(crosses).count() % 2 == 1
}

fn cross(shifts: [f64; 2]) -> Cross {
    let bar = |length, width, shift| Bar { length, width, shift };
    Cross { bars: [bar(4.0, 1.0, shifts[0]), bar(3.0, 2.0, shifts[1])], rotation: 0.4, offset: [0.7, -0.2] }
}

/// Shapes enough for each of the nine layouts, which differ in the ends that lie inside the other bar.
fn rows() -> impl Iterator<Item = Cross> {
    (0..4000).map(|row| Cross::of_row(6, row))
}

#[test]
fn unions_have_the_area_of_both_bars_less_what_they_share() {
    let mut layouts = BTreeMap::new();
    for cross in rows() {
        let [a, b] = sides(&cross);
        let hidden = [a[1] < b[1], a[0] > b[0], b[3] < a[3], b[2] > a[2]];
        *layouts.entry(hidden).or_insert(0) += 1;
        let corners = cross.corners_in_frame();
        let expected = union_area(&cross);
        assert!((area(&corners) - expected).abs() < 1e-12 * expected, "{cross:?}: {} {expected}", area(&corners));
        assert_eq!(corners.len(), if hidden.contains(&true) { 8 } else { 12 }, "{cross:?}");
        // Placing and added points change nothing of it; counter-clockwise it is positive.
        for polygon in [cross.corners(), cross.points()] {
            assert!((area(&polygon) - expected).abs() < 1e-12 * expected, "{cross:?}");
        }
    }
    // X, four kinds of T, four kinds of L.
    assert_eq!(layouts.len(), 9, "{layouts:?}");
    assert!(layouts.values().all(|&count| count > 5), "{layouts:?}");
}

#[test]
fn sides_alternate_and_every_corner_is_one() {
    for cross in rows() {
        let corners = cross.corners_in_frame();
        let mut turns = 0;
        for (i, (p, q)) in segments(&corners).enumerate() {
            let r = corners[(i + 2) % corners.len()];
            let ([ax, ay], [bx, by]) = ([q[0] - p[0], q[1] - p[1]], [r[0] - q[0], r[1] - q[1]]);
            assert!(distance(p, q) > 0.0 && ax * bx + ay * by == 0.0, "{cross:?}");
            turns += if ax * by - ay * bx > 0.0 { 1 } else { -1 };
        }
        // Four left turns more than right ones: once around, counter-clockwise.
        assert_eq!(turns, 4, "{cross:?}");
        // Its length is that of the surrounding box and of the notches: an end inside the other bar is no side.
        let perimeter: f64 = segments(&corners).map(|(p, q)| distance(p, q)).sum();
        let box_of = |axis: usize| {
            let values = || corners.iter().map(|p| p[axis]);
            values().fold(f64::MIN, f64::max) - values().fold(f64::MAX, f64::min)
        };
        assert!((perimeter - 2.0 * (box_of(0) + box_of(1))).abs() < 1e-9, "{cross:?}");
    }
}

#[test]
fn insides_of_the_outline_are_the_bars() {
    for cross in rows().take(300) {
        let corners = cross.corners_in_frame();
        let mut rng = Counter::new(1, Stream::Data, 1, 0);
        for _ in 0..200 {
            let p = [rng.uniform(-4.1, 4.1), rng.uniform(-4.1, 4.1)];
            assert_eq!(is_inside(&corners, p), is_in_a_bar(&cross, p), "{cross:?} {p:?}");
        }
    }
}

#[test]
fn outlines_start_at_the_vertex_nearest_to_the_upper_right_end_of_bar_1() {
    let mut elsewhere = 0;
    for cross in rows() {
        let [[_, right, _, upper], _] = sides(&cross);
        let corners = cross.corners_in_frame();
        let nearest = corners.iter().map(|p| distance(*p, [right, upper])).fold(f64::INFINITY, f64::min);
        assert_eq!(distance(corners[0], [right, upper]), nearest);
        elsewhere += usize::from(nearest > 0.0);
        assert_eq!(cross.points()[0], cross.corners()[0]);
    }
    // Where bar 2 covers that corner.
    assert!(elsewhere > 20, "{elsewhere}");

    // Counter-clockwise from the upper right: along the upper side of the right arm to the notch.
    let x = cross([0.0, 0.0]).corners_in_frame();
    assert_eq!(&x[..4], [[2.0, 0.5], [1.0, 0.5], [1.0, 1.5], [-1.0, 1.5]]);
    // A T whose right arm is inside of bar 2, and an L whose upper one is, too.
    let t = cross([-1.4, 0.0]).corners_in_frame();
    assert_eq!((t.len(), t[0], t[1]), (8, [1.0, 1.5], [-1.0, 1.5]));
    let l = cross([-1.4, -1.2]).corners_in_frame();
    assert_eq!(l.len(), 8);
    for (p, q) in l.iter().zip([[0.6, 0.5], [-3.4, 0.5], [-3.4, -0.5], [-1.0, -0.5], [-1.0, -2.7], [1.0, -2.7]]) {
        assert!(distance(*p, q) < 1e-12, "{l:?}");
    }
}

#[test]
fn added_points_leave_no_segment_longer_than_a_fifth() {
    for cross in rows().take(500) {
        let (points, corners) = (cross.points(), cross.corners());
        let lengths: Vec<f64> = segments(&points).map(|(p, q)| distance(p, q)).collect();
        assert!(lengths.iter().all(|length| *length <= 0.2 + 1e-12), "{cross:?}");
        // No more than needed, equally spaced, corners among them and in their order.
        let mut at = 0;
        for (p, q) in segments(&corners) {
            let pieces = (distance(p, q) / 0.2 - 1e-9).ceil() as usize;
            assert!(distance(points[at], p) < 1e-12, "{cross:?}");
            for length in &lengths[at..at + pieces] {
                assert!((length - distance(p, q) / pieces as f64).abs() < 1e-12, "{cross:?}");
            }
            at += pieces;
        }
        assert_eq!(at, points.len());
    }
}

#[test]
fn the_mean_of_the_points_is_the_offset_and_the_centre_where_the_axes_meet() {
    for cross in rows().take(200) {
        let (points, row) = (cross.points(), cross.coefficients());
        for axis in 0..2 {
            let mean = points.iter().map(|p| p[axis]).sum::<f64>() / points.len() as f64;
            assert!((mean - cross.offset[axis]).abs() < 1e-12);
            assert!((f64::from(row[25 * axis + 12]) - mean).abs() < 1e-6);
            assert_eq!(row[62 + 25 * axis].to_bits(), 0);
        }
        // Each corner of the frame is turned around the centre, which is the image of the origin.
        let [cx, cy] = cross.centre();
        let (sin, cos) = cross.rotation.sin_cos();
        for ([x, y], placed) in cross.corners_in_frame().into_iter().zip(cross.corners()) {
            let expected = [cx + cos * x - sin * y, cy + sin * x + cos * y];
            assert!(distance(expected, placed) < 1e-12);
        }
        let again = Cross::with_centre(cross.bars, cross.rotation, [cx, cy]);
        assert!(distance(again.offset, cross.offset) < 1e-12 && again.bars == cross.bars);
        let ratio = cross.bars[0].width / cross.bars[1].width;
        assert_eq!(cross.observe(), [cx, cy, cross.rotation, ratio]);
    }
}

#[test]
fn a_bar_far_from_the_crossing_is_lengthened_to_it() {
    let far = cross([2.5, 0.0]);
    let mut near = far;
    near.bars[0] = Bar { length: 4.5, shift: 2.25, ..far.bars[0] };
    assert_eq!(far.corners_in_frame(), near.corners_in_frame());
    // Bars that end exactly at the other one's side, or at the crossing, have no corner twice.
    for shifts in [[1.0, 0.0], [-1.0, 1.0], [-2.0, 1.5], [2.0, -1.5], [1.0, -1.0]] {
        let shape = cross(shifts);
        let corners = shape.corners_in_frame();
        assert!(segments(&corners).all(|(p, q)| distance(p, q) > 0.0), "{corners:?}");
        assert!((area(&corners) - union_area(&shape)).abs() < 1e-12);
    }
}

#[test]
fn traced_curves_follow_the_outline() {
    for cross in rows().take(40) {
        let curve = Curve::new(&cross.coefficients()).unwrap().trace(300);
        let corners = cross.corners();
        let to_outline = |p: &Point| {
            let to_segment = |(a, b): (Point, Point)| {
                let d = [b[0] - a[0], b[1] - a[1]];
                let t = (((p[0] - a[0]) * d[0] + (p[1] - a[1]) * d[1]) / (d[0] * d[0] + d[1] * d[1])).clamp(0.0, 1.0);
                distance(*p, [a[0] + t * d[0], a[1] + t * d[1]])
            };
            segments(&corners).map(to_segment).fold(f64::INFINITY, f64::min)
        };
        let mean = curve.iter().map(to_outline).sum::<f64>() / 300.0;
        let worst = curve.iter().map(to_outline).fold(0.0, f64::max);
        assert!(mean < 0.06 && worst < 0.35, "{cross:?}: {mean} {worst}");
        assert!((area(&curve) - union_area(&cross)).abs() < 0.03 * union_area(&cross), "{cross:?}");
    }
}

#[test]
fn enough_coefficients_give_the_points_back() {
    // As many as points: order L / 2 where L is odd. Rows are f32.
    let cross = rows().find(|cross| cross.points().len() % 2 == 1).unwrap();
    let points = cross.points();
    let row = fourier::coefficients(&points, points.len() / 2);
    for (p, q) in points.iter().zip(Curve::new(&row).unwrap().trace(points.len())) {
        assert!(distance(*p, q) < 1e-5, "{p:?} {q:?}");
    }
}

#[test]
fn parameters_have_their_distribution() {
    let n = 40_000u64;
    let shapes: Vec<Cross> = (0..n).map(|row| Cross::of_row(5, row)).collect();
    let check = |value: &dyn Fn(&Cross) -> f64, mean: f64, deviation: f64| {
        let got_mean = shapes.iter().map(value).sum::<f64>() / n as f64;
        let variance = shapes.iter().map(|s| (value(s) - got_mean).powi(2)).sum::<f64>() / n as f64;
        let error = 5.0 * deviation / (n as f64).sqrt();
        assert!((got_mean - mean).abs() < error, "{got_mean} {mean}");
        assert!((variance.sqrt() - deviation).abs() < error, "{} {deviation}", variance.sqrt());
    };
    let uniform = |value: &dyn Fn(&Cross) -> f64, [low, high]: [f64; 2]| {
        check(value, 0.5 * (low + high), (high - low) / 12f64.sqrt());
        assert!(shapes.iter().all(|s| (low..high).contains(&value(s))));
    };
    for bar in 0..2 {
        uniform(&|s| s.bars[bar].length, [3.0, 5.0]);
        uniform(&|s| s.bars[bar].width, [0.5, 2.0]);
        uniform(&|s| s.bars[bar].shift, [-1.5, 1.5]);
        check(&|s| s.offset[bar], 0.0, 0.5);
    }
    uniform(&|s| s.rotation, [0.0, FRAC_PI_2]);
    // Independent of each other: lengths, widths and shifts of the two bars, and a bar's own.
    let standard = |value: &dyn Fn(&Cross) -> f64, [low, high]: [f64; 2]| {
        shapes.iter().map(|s| (value(s) - 0.5 * (low + high)) / ((high - low) / 12f64.sqrt())).collect::<Vec<f64>>()
    };
    let columns: Vec<Vec<f64>> = (0..2)
        .flat_map(|bar| {
            [
                standard(&|s| s.bars[bar].length, [3.0, 5.0]),
                standard(&|s| s.bars[bar].width, [0.5, 2.0]),
                standard(&|s| s.bars[bar].shift, [-1.5, 1.5]),
            ]
        })
        .chain([standard(&|s| s.rotation, [0.0, FRAC_PI_2])])
        .collect();
    for (i, a) in columns.iter().enumerate() {
        for b in &columns[..i] {
            let correlation = a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / n as f64;
            assert!(correlation.abs() < 5.0 / (n as f64).sqrt(), "{correlation}");
        }
    }
}

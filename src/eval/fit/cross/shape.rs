//! Geometry of the Cross: the union of two bars that cross at a right angle.
//!
//! The union is put together from four quadrants around the crossing of the bars' axes. In each of them two rectangles
//! share the corner in the crossing, the half of bar 1 and the half of bar 2, and their union has one corner (an arm
//! hides in the other bar) or three.

use std::f64::consts::{FRAC_PI_2, TAU};

use crate::data::shapes::fourier::Point;

/// The nine parameters of a Cross. Of each pair the first is bar 1's.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Cross {
    /// Lengths of the bars.
    pub lengths: [f64; 2],
    /// Widths of the bars.
    pub widths: [f64; 2],
    /// From the crossing of the axes to the middle of each bar, along it. A bar holds the crossing: a shift is at most
    /// half the length.
    pub shifts: [f64; 2],
    /// Direction of bar 1, counter-clockwise from the x axis; bar 2 is a quarter turn further.
    pub angle: f64,
    /// The crossing of the axes.
    pub centre: Point,
}

/// Numbers of the parameters as a vector.
pub(super) const LENGTHS: usize = 0;
pub(super) const WIDTHS: usize = 2;
pub(super) const SHIFTS: usize = 4;
pub(super) const ANGLE: usize = 6;
pub(super) const CENTRE: usize = 7;
pub(super) const PARAMETERS: usize = 9;

/// A coordinate of a corner: a side or an end of a bar, which is `half` of its width or length away from its middle.
#[derive(Debug, Clone, Copy)]
pub(super) struct Edge {
    pub(super) value: f64,
    /// Number of the parameter that is the width or length.
    pub(super) size: usize,
    /// 1/2 or -1/2.
    pub(super) half: f64,
    /// Number of the parameter that shifts it.
    pub(super) shift: Option<usize>,
}

impl Cross {
    /// From the vector of parameters.
    pub(super) fn from_place(p: &[f64; PARAMETERS]) -> Self {
        Self {
            lengths: [p[LENGTHS], p[LENGTHS + 1]],
            widths: [p[WIDTHS], p[WIDTHS + 1]],
            shifts: [p[SHIFTS], p[SHIFTS + 1]],
            angle: p[ANGLE],
            centre: [p[CENTRE], p[CENTRE + 1]],
        }
    }

    /// The same shape with an angle in [0, pi/2): bars are exchanged and ends swapped where that takes it.
    #[must_use]
    pub(crate) fn normalized(mut self) -> Self {
        self.angle = self.angle.rem_euclid(TAU);
        // At most four quarter turns, the last one where rounding made 2 pi of a small negative angle.
        while self.angle >= FRAC_PI_2 {
            self.angle -= FRAC_PI_2;
            self.lengths.reverse();
            self.widths.reverse();
            // The new axes are -y and x of the old ones.
            self.shifts = [-self.shifts[1], self.shifts[0]];
        }
        self
    }

    /// The corners of the boundary, counter-clockwise: 12 where all four arms show, fewer where some do not.
    pub(crate) fn corners(&self) -> Vec<Point> {
        let (sin, cos) = self.angle.sin_cos();
        let [x, y] = self.centre;
        let place = |[u, v]: [Edge; 2]| [x + cos * u.value - sin * v.value, y + sin * u.value + cos * v.value];
        self.edges().into_iter().map(place).collect()
    }

    /// The corners in the frame of the bars: bar 1 along x, the crossing at the origin.
    pub(super) fn edges(&self) -> Vec<[Edge; 2]> {
        // An end of a bar, and a side of it seen along the other bar.
        let end = |bar: usize, half: f64| Edge {
            value: self.shifts[bar] + half * self.lengths[bar],
            size: LENGTHS + bar,
            half,
            shift: Some(SHIFTS + bar),
        };
        let side =
            |bar: usize, half: f64| Edge { value: half * self.widths[bar], size: WIDTHS + bar, half, shift: None };
        let mut corners = Vec::with_capacity(12);
        for [h, v] in [[0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5], [0.5, -0.5]] {
            let (end1, side1) = (end(0, h), side(0, v));
            let (end2, side2) = (end(1, v), side(1, h));
            let beyond = |a: Edge, b: Edge| a.half * (a.value - b.value) >= 0.0;
            let quadrant = match (beyond(end1, side2), beyond(end2, side1)) {
                // Both arms show: the corner of arm 1, the inner corner, the corner of arm 2.
                (true, true) => vec![[end1, side1], [side2, side1], [side2, end2]],
                (true, false) => vec![[end1, side1]],
                (false, true) => vec![[side2, end2]],
                // Neither: the corner of the square in which the bars cross is cut out.
                (false, false) => vec![[side2, end2], [end1, end2], [end1, side1]],
            };
            // Every other quadrant is a mirror image and runs from bar 2 to bar 1.
            if h * v > 0.0 { corners.extend(quadrant) } else { corners.extend(quadrant.into_iter().rev()) }
        }
        corners
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::ops::Range;

    use super::*;
    use crate::data::shapes::cross::{LENGTH, SHIFT, WIDTH};
    use crate::eval::polygon::{area, iou, overlap};
    use crate::rng::{Counter, Stream};

    /// Parameters from the distribution of the data set, with the crossing at the origin.
    pub(in crate::eval::fit) fn draw(rng: &mut Counter) -> Cross {
        let mut two = |range: &Range<f64>| [0, 1].map(|_| rng.uniform(range.start, range.end));
        let (lengths, widths, shifts) = (two(&LENGTH), two(&WIDTH), two(&SHIFT));
        Cross { lengths, widths, shifts, angle: rng.uniform(0.0, FRAC_PI_2), centre: [0.0; 2] }
    }

    /// The four corners of a bar.
    fn bar(cross: &Cross, which: usize) -> Vec<Point> {
        let turn = cross.angle + FRAC_PI_2 * which as f64;
        let (sin, cos) = turn.sin_cos();
        [[0.5, -0.5], [0.5, 0.5], [-0.5, 0.5], [-0.5, -0.5]]
            .map(|[a, b]| {
                let (u, v) = (cross.shifts[which] + a * cross.lengths[which], b * cross.widths[which]);
                [cross.centre[0] + cos * u - sin * v, cross.centre[1] + sin * u + cos * v]
            })
            .to_vec()
    }

    #[test]
    fn corners_are_the_union_of_the_bars() {
        let mut counts = [0; 13];
        for part in 0..1000 {
            let mut rng = Counter::new(7, Stream::Data, 0, part);
            let mut cross = draw(&mut rng);
            cross.centre = rng.normal_pair();
            let corners = cross.corners();
            counts[corners.len()] += 1;
            let bars = overlap(&bar(&cross, 0), &bar(&cross, 1)).unwrap();
            let signed: f64 = corners
                .iter()
                .zip(corners.iter().cycle().skip(1))
                .map(|(p, q)| 0.5 * (p[0] * q[1] - p[1] * q[0]))
                .sum();
            // Simple and counter-clockwise: the signed area is the area.
            assert!((signed - bars.union).abs() <= 1e-9, "{cross:?}: {signed} {bars:?}");
            for which in 0..2 {
                let within = overlap(&bar(&cross, which), &corners).unwrap().intersection;
                let whole = cross.lengths[which] * cross.widths[which];
                assert!((within - whole).abs() <= 1e-9, "{cross:?}: {within} {whole}");
            }
        }
        // Each arm that does not show takes two corners away, one that ends inside the other bar next to another such
        // arm four and gives back two: 12 for a cross, 8 for a T or an L with its corner cut out.
        assert!(counts[12] > 100 && counts[8] > 100 && counts[12] + counts[8] == 1000, "{counts:?}");
    }

    #[test]
    fn a_plus_has_its_twelve_corners_in_order() {
        let plus = Cross { lengths: [4.0, 6.0], widths: [1.0, 2.0], shifts: [0.0, 1.0], angle: 0.0, centre: [0.0; 2] };
        let expected = [
            [2.0, 0.5],
            [1.0, 0.5],
            [1.0, 4.0],
            [-1.0, 4.0],
            [-1.0, 0.5],
            [-2.0, 0.5],
            [-2.0, -0.5],
            [-1.0, -0.5],
            [-1.0, -2.0],
            [1.0, -2.0],
            [1.0, -0.5],
            [2.0, -0.5],
        ];
        assert_eq!(plus.corners(), expected);
    }

    #[test]
    fn any_angle_has_a_twin_in_the_first_quarter() {
        for quarter in -3..6 {
            let cross = Cross {
                lengths: [3.1, 4.7],
                widths: [0.6, 1.9],
                shifts: [0.9, -1.2],
                angle: 0.3 + FRAC_PI_2 * f64::from(quarter),
                centre: [0.4, -0.7],
            };
            let twin = cross.normalized();
            assert!((twin.angle - 0.3).abs() <= 1e-12, "{twin:?}");
            assert!(iou(&cross.corners(), &twin.corners()).unwrap() >= 1.0 - 1e-9, "quarter {quarter}: {twin:?}");
        }
        let tiny = Cross { angle: -1e-18, ..draw(&mut Counter::new(0, Stream::Data, 0, 0)) };
        assert!((0.0..FRAC_PI_2).contains(&tiny.normalized().angle));
        assert!((area(&tiny.corners()).unwrap() - area(&tiny.normalized().corners()).unwrap()).abs() <= 1e-9);
    }
}

//! Where the fit of a Cross begins: the paper's nine layouts, and those that share most area with the curve.

use std::f64::consts::FRAC_PI_2;

use super::angle::dominant;
use super::shape::PARAMETERS;
use crate::data::shapes::cross::{LENGTH, WIDTH};
use crate::data::shapes::fourier::Point;

/// Angles at which a layout by area is tried, besides that of the dominant line: even steps of a quarter turn.
const ANGLES: usize = 12;
/// The best layouts by area at other angles than that of the dominant line.
const OTHERS: usize = 2;
/// Cells along either side of the box of the curve.
const CELLS: usize = 24;

/// Vectors of parameters in the order of `Cross::from_place`; they need not be within the bounds.
pub(super) fn starts(traced: &[Point]) -> Vec<[f64; PARAMETERS]> {
    let angle = dominant(traced);
    let frame = Frame::new(traced, angle);
    let mut starts = layouts(&frame);
    starts.push(by_area(&frame).1);
    // A curve without straight lines, or one that is straight where a Cross is not, has better angles than that.
    let mut others: Vec<_> =
        (1..ANGLES).map(|k| by_area(&Frame::new(traced, angle + FRAC_PI_2 * k as f64 / ANGLES as f64))).collect();
    others.sort_by(|a, b| b.0.total_cmp(&a.0));
    starts.extend(others.iter().take(OTHERS).map(|(_, start)| *start));
    starts
}

/// A curve in a turned frame, with its box there.
struct Frame {
    angle: f64,
    points: Vec<Point>,
    low: Point,
    high: Point,
}

impl Frame {
    fn new(traced: &[Point], angle: f64) -> Self {
        let (sin, cos) = angle.sin_cos();
        let points: Vec<Point> = traced.iter().map(|[x, y]| [cos * x + sin * y, cos * y - sin * x]).collect();
        let fold =
            |axis: usize, start: f64, choose: fn(f64, f64) -> f64| points.iter().map(|p| p[axis]).fold(start, choose);
        let low = [0, 1].map(|axis| fold(axis, f64::INFINITY, f64::min));
        let high = [0, 1].map(|axis| fold(axis, f64::NEG_INFINITY, f64::max));
        Self { angle, points, low, high }
    }

    fn lengths(&self) -> [f64; 2] {
        [0, 1].map(|axis| self.high[axis] - self.low[axis])
    }

    /// Bars as long as the box; `widths` of bars 1 and 2 and the crossing, from the middle of the box.
    fn start(&self, widths: [f64; 2], [x, y]: Point) -> [f64; PARAMETERS] {
        let [l, w] = [self.lengths(), widths];
        let (sin, cos) = self.angle.sin_cos();
        let [u, v] = [0, 1].map(|axis| [x, y][axis] + 0.5 * (self.low[axis] + self.high[axis]));
        [l[0], l[1], w[0], w[1], -x, -y, self.angle, cos * u - sin * v, sin * u + cos * v]
    }
}

/// The paper's nine: either bar in the middle or at an end of the other.
fn layouts(frame: &Frame) -> Vec<[f64; PARAMETERS]> {
    let lengths = frame.lengths();
    // The mean width of the data set against its mean length. Bar 1's width is seen along bar 2's length.
    let ratio = (WIDTH.start + WIDTH.end) / (LENGTH.start + LENGTH.end);
    let widths = [ratio * lengths[1], ratio * lengths[0]];
    let places = |axis: usize| {
        let far = 0.5 * (lengths[axis] - widths[1 - axis]);
        [-far, 0.0, far]
    };
    places(0).into_iter().flat_map(|x| places(1).map(|y| frame.start(widths, [x, y]))).collect()
}

/// Of all pairs of bars as long as the box, cell by cell, the one that shares most with what the curve encloses, and
/// its intersection over union in cells.
///
/// Bars that end inside the other one, which the nine layouts are far from, and bars of very different widths are found
/// here: there are only 90,000 pairs, and sums over the cells of either bar make each a few additions.
fn by_area(frame: &Frame) -> (f64, [f64; PARAMETERS]) {
    let inside = enclosed(frame);
    // sums[i][j]: enclosed cells with x < i and y < j.
    let mut sums = [[0i32; CELLS + 1]; CELLS + 1];
    for i in 0..CELLS {
        for j in 0..CELLS {
            sums[i + 1][j + 1] = sums[i][j + 1] + sums[i + 1][j] - sums[i][j] + i32::from(inside[i][j]);
        }
    }
    let total = sums[CELLS][CELLS];
    let (mut best, mut bars) = (-1.0, [[0, CELLS]; 2]);
    for x1 in 0..CELLS {
        for x2 in x1 + 1..=CELLS {
            let columns = sums[x2][CELLS] - sums[x1][CELLS];
            for y1 in 0..CELLS {
                for y2 in y1 + 1..=CELLS {
                    let rows = sums[CELLS][y2] - sums[CELLS][y1];
                    let both = sums[x2][y2] - sums[x1][y2] - sums[x2][y1] + sums[x1][y1];
                    let shared = columns + rows - both;
                    let [x, y] = [x2 - x1, y2 - y1];
                    let area = ((x + y) * CELLS - x * y) as i32;
                    let iou = f64::from(shared) / f64::from(total + area - shared);
                    if iou > best {
                        (best, bars) = (iou, [[x1, x2], [y1, y2]]);
                    }
                }
            }
        }
    }
    let lengths = frame.lengths();
    let size = |axis: usize| (bars[axis][1] - bars[axis][0]) as f64 / CELLS as f64 * lengths[axis];
    let middle = |axis: usize| ((bars[axis][0] + bars[axis][1]) as f64 / (2 * CELLS) as f64 - 0.5) * lengths[axis];
    (best, frame.start([size(1), size(0)], [middle(0), middle(1)]))
}

/// Which cells of the box have their middle inside the curve, by the non-zero rule; first index along x.
fn enclosed(frame: &Frame) -> [[bool; CELLS]; CELLS] {
    let lengths = frame.lengths();
    // In cells.
    let scaled = |p: &Point| [0, 1].map(|axis| (p[axis] - frame.low[axis]) / lengths[axis] * CELLS as f64);
    let points: Vec<Point> = frame.points.iter().map(scaled).collect();
    let mut inside = [[false; CELLS]; CELLS];
    // Row by row, so the second index is the outer one.
    for (j, y) in (0..CELLS).map(|j| (j, j as f64 + 0.5)) {
        // Changes of the winding number along the row.
        let mut winding = [0; CELLS + 1];
        for (p, q) in points.iter().zip(points.iter().cycle().skip(1)) {
            if (p[1] <= y) != (q[1] <= y) {
                let x = p[0] + (y - p[1]) / (q[1] - p[1]) * (q[0] - p[0]);
                let first = (x + 0.5).clamp(0.0, CELLS as f64) as usize;
                winding[first] += if q[1] > p[1] { 1 } else { -1 };
            }
        }
        let mut turns = 0;
        for (column, change) in inside.iter_mut().zip(winding) {
            turns += change;
            column[j] = turns != 0;
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::super::shape::Cross;
    use super::*;
    use crate::eval::polygon::{area, iou};

    #[test]
    fn a_cross_on_the_cells_is_found_by_area_alone() {
        // Sides on the lines between cells: 24 cells on 4.8 are 0.2 each.
        for (widths, shifts) in [([0.8, 0.4], [0.0, 0.4]), ([0.4, 2.0], [1.4, -1.2]), ([2.0, 0.4], [0.4, 1.4])] {
            let cross = Cross { lengths: [4.8; 2], widths, shifts, angle: 0.0, centre: [0.7, 0.1] };
            let (score, start) = by_area(&Frame::new(&cross.corners(), 0.0));
            assert!(score >= 0.97, "{score} {cross:?}");
            let found = Cross::from_place(&start);
            assert!(iou(&found.corners(), &cross.corners()).unwrap() >= 0.97, "{found:?} {cross:?}");
        }
    }

    #[test]
    fn the_nine_layouts_fill_the_box() {
        let cross = Cross { lengths: [4.0; 2], widths: [1.0; 2], shifts: [0.0; 2], angle: 0.0, centre: [3.0, -1.0] };
        let frame = Frame::new(&cross.corners(), 0.0);
        let layouts = layouts(&frame);
        assert_eq!(layouts.len(), 9);
        for start in &layouts {
            let corners = Cross::from_place(start).corners();
            let again = Frame::new(&corners, 0.0);
            for axis in 0..2 {
                assert!((again.low[axis] - frame.low[axis]).abs() <= 1e-12, "{start:?}");
                assert!((again.high[axis] - frame.high[axis]).abs() <= 1e-12, "{start:?}");
            }
            // All nine are two bars of 4 x 1.25 that share a square.
            let expected = 2.0 * 4.0 * 1.25 - 1.25 * 1.25;
            assert!((area(&corners).unwrap() - expected).abs() <= 1e-9, "{start:?}");
        }
    }
}

//! The point of a closed polyline that is nearest to a given one.

use crate::data::shapes::fourier::Point;

/// Where a closed polyline is nearest to a point.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Nearest {
    /// Squared distance.
    pub(super) square: f64,
    /// Number of the line; line k goes from point k to point k + 1, the last one to point 0.
    pub(super) line: usize,
    /// Place on the line, from 0 to 1.
    pub(super) at: f64,
}

/// A closed polyline, prepared for many questions: the lines as separate arrays, which compilers make vectors of.
#[derive(Debug, Clone)]
pub(super) struct Polyline {
    start: [Vec<f64>; 2],
    along: [Vec<f64>; 2],
    /// 1 / squared length; 0 for a line without length, which is then its first point.
    inverse: Vec<f64>,
}

impl Polyline {
    /// The lines between neighbours of at least one point, closed.
    pub(super) fn new(points: &[Point]) -> Self {
        assert!(!points.is_empty(), "a polyline has at least one point");
        let next = |k: usize| points[(k + 1) % points.len()];
        let start = [0, 1].map(|axis| points.iter().map(|p| p[axis]).collect());
        let along = [0, 1].map(|axis| points.iter().enumerate().map(|(k, p)| next(k)[axis] - p[axis]).collect());
        let [x, y]: &[Vec<f64>; 2] = &along;
        let inverse = x
            .iter()
            .zip(y)
            .map(|(x, y)| {
                let inverse = 1.0 / (x * x + y * y);
                if inverse.is_finite() { inverse } else { 0.0 }
            })
            .collect();
        Self { start, along, inverse }
    }

    /// Number of lines.
    pub(super) fn len(&self) -> usize {
        self.inverse.len()
    }

    /// The point at a place of a line.
    pub(super) fn point(&self, line: usize, at: f64) -> Point {
        [0, 1].map(|axis| self.start[axis][line] + at * self.along[axis][line])
    }

    /// Squared distance of a point to a line, and the place on the line that is nearest.
    #[inline(always)]
    pub(super) fn to_line(&self, p: Point, line: usize) -> (f64, f64) {
        let [x, y] = [0, 1].map(|axis| p[axis] - self.start[axis][line]);
        let [u, v] = [0, 1].map(|axis| self.along[axis][line]);
        let at = ((x * u + y * v) * self.inverse[line]).clamp(0.0, 1.0);
        let (dx, dy) = (x - at * u, y - at * v);
        (dx * dx + dy * dy, at)
    }

    /// The nearest place to a point; of several at the same distance the one on the first line.
    pub(super) fn nearest(&self, p: Point) -> Nearest {
        // Four minima side by side, so that one comparison need not wait for the one before.
        let count = self.len();
        let mut best = [f64::INFINITY; 4];
        let mut which = [0; 4];
        for first in (0..count - count % 4).step_by(4) {
            for lane in 0..4 {
                let square = self.to_line(p, first + lane).0;
                let nearer = square < best[lane];
                best[lane] = if nearer { square } else { best[lane] };
                which[lane] = if nearer { first + lane } else { which[lane] };
            }
        }
        let (mut square, mut line) = (f64::INFINITY, 0);
        for lane in 0..4 {
            if best[lane] < square || (best[lane] == square && which[lane] < line) {
                (square, line) = (best[lane], which[lane]);
            }
        }
        for last in count - count % 4..count {
            let other = self.to_line(p, last).0;
            if other < square {
                (square, line) = (other, last);
            }
        }
        let (square, at) = self.to_line(p, line);
        Nearest { square, line, at }
    }

    /// The signed distance of a point from the polyline as a residual of least squares, and its derivative by the
    /// point, a unit vector.
    pub(super) fn residual(&self, p: Point) -> (f64, Point) {
        let Nearest { square, line, at } = self.nearest(p);
        let q = self.point(line, at);
        let distance = square.sqrt();
        // On the line there is no direction towards it, but still one across it.
        if distance > 1e-9 * (p[0].abs() + p[1].abs()) {
            return (distance, [(p[0] - q[0]) / distance, (p[1] - q[1]) / distance]);
        }
        (distance, self.normal(line))
    }

    /// The unit vector across a line, to its left; zero for a line without length.
    pub(super) fn normal(&self, line: usize) -> Point {
        let [u, v] = [0, 1].map(|axis| self.along[axis][line]);
        let scale = self.inverse[line].sqrt();
        [-v * scale, u * scale]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    /// By trying many points of every line.
    fn by_trying(points: &[Point], p: Point) -> f64 {
        let mut best = f64::INFINITY;
        for (a, b) in points.iter().zip(points.iter().cycle().skip(1)) {
            for step in 0..=4000 {
                let at = f64::from(step) / 4000.0;
                let q = [0, 1].map(|axis| a[axis] + at * (b[axis] - a[axis]));
                best = best.min((p[0] - q[0]).hypot(p[1] - q[1]));
            }
        }
        best
    }

    #[test]
    fn nearest_places_agree_with_trying_every_point() {
        for count in [1, 2, 3, 4, 5, 8, 11] {
            let mut rng = Counter::new(3, Stream::Data, 0, count);
            let points: Vec<Point> = (0..count).map(|_| rng.normal_pair()).collect();
            let polyline = Polyline::new(&points);
            assert_eq!(polyline.len(), count as usize);
            for _ in 0..20 {
                let p = rng.normal_pair();
                let found = polyline.nearest(p);
                let q = polyline.point(found.line, found.at);
                let distance = (p[0] - q[0]).hypot(p[1] - q[1]);
                assert!((distance - found.square.sqrt()).abs() <= 1e-12, "{distance} {found:?}");
                let tried = by_trying(&points, p);
                assert!(distance <= tried + 1e-12 && tried - distance <= 1e-3, "{distance} {tried}");
            }
        }
    }

    #[test]
    fn equal_distances_go_to_the_first_line() {
        let square = [[0., 0.], [2., 0.], [2., 2.], [0., 2.]];
        let found = Polyline::new(&square).nearest([1.0, 1.0]);
        assert_eq!(found, Nearest { square: 1.0, line: 0, at: 0.5 });
    }
}

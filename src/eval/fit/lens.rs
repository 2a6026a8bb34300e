//! The Lens that is most like a curve.
//!
//! The loss is the paper's (appendix, "Shape Fitting Algorithm"): the mean squared distance of the points of the fitted
//! outline from the curve plus that of the points of the curve from the fitted outline. So are the starts: the line
//! through the farthest two points of the curve, with the bulge on either side.
//!
//! The distances are to lines and arcs, which is what the paper's distances between points become with many points. The
//! way down is not gradient descent but Levenberg-Marquardt, which needs no rates, that of the angle least of all:
//! every parameter is measured by how far it moves the outline.

use std::f64::consts::{FRAC_PI_2, TAU};
use std::sync::LazyLock;

use super::super::nearest::Polyline;
use super::super::polygon::frame;
use super::least_squares::{Minimum, Problem, Squares, minimize};
use super::{Fit, Rules, check_curve};
use crate::data::shapes::fourier::{Curve, Point};
use crate::data::shapes::lens::{CHORD, DISTANCE, HALF_CHORD, Lens, Outline, RADIUS, SECOND};
use crate::error::Result;

/// Points of the curve that are compared.
const TRACED: usize = 128;
/// Lines of each arc of the outline that [`Fit`] holds.
const SEGMENTS: usize = 64;
/// Evaluations of the loss from each start.
const STEPS: usize = 40;

/// Points of the outline in its own frame (see [`nearest`]), equally spaced.
static OUTLINE: LazyLock<Vec<Point>> = LazyLock::new(|| {
    let lens = Lens { radius: 1.0, angle: 0.0, offset: [0.0; 2] };
    let [tip, _] = lens.tips(Outline::Arc);
    lens.points(Outline::Arc).iter().map(|p| [p[0] - tip[0], p[1] - tip[1] + *HALF_CHORD]).collect()
});

/// Fits a Lens to a curve of any order.
///
/// `outline` is the data set's: it says what the offset of the Lens means and which boundary [`Fit`] holds. A curve
/// that is not finite is an error.
pub(crate) fn fit_lens(curve: &Curve, outline: Outline, rules: Rules) -> Result<Fit<Lens>> {
    let traced = curve.trace(TRACED);
    check_curve(&traced)?;
    let [p, q] = curve.farthest_pair();
    let apart = [q[0] - p[0], q[1] - p[1]];
    let along = apart[1].atan2(apart[0]);
    let radius = 0.5 * apart[0].hypot(apart[1]) / *HALF_CHORD;
    let mean = [0, 1].map(|axis| traced.iter().map(|p| p[axis]).sum::<f64>() / TRACED as f64);
    let problem = LensProblem::new(&traced, rules);
    let best = [FRAC_PI_2, -FRAC_PI_2]
        .map(|turn| minimize(&problem, [along + turn, radius, mean[0], mean[1]], STEPS))
        .into_iter()
        .reduce(|best, other| if other.loss < best.loss { other } else { best })
        .expect("there are two starts");
    let Minimum { place: [angle, radius, x, y], loss } = best;
    let mut shape = Lens { radius, angle: angle.rem_euclid(TAU), offset: [0.0; 2] };
    // The middle of the tips is where it has to be: that is what the offset is for.
    let [left, right] = shape.tips(outline);
    shape.offset = [0, 1].map(|axis| [x, y][axis] - 0.5 * (left[axis] + right[axis]));
    Ok(Fit { outline: shape.boundary(outline, SEGMENTS), shape, loss })
}

/// Parameters: angle, radius of circle 1, middle of the tips.
struct LensProblem<'a> {
    points: &'a [Point],
    curve: Polyline,
    radii: [f64; 2],
}

impl<'a> LensProblem<'a> {
    fn new(points: &'a [Point], rules: Rules) -> Self {
        let radii = match rules {
            Rules::Data => [RADIUS.start, RADIUS.end],
            Rules::AnySize => {
                let (centre, extent) = frame(points.iter());
                let smallest = 1e-6 * extent + 1e-12 * (centre[0].abs() + centre[1].abs());
                [smallest.max(1e-60), f64::INFINITY]
            }
        };
        Self { points, curve: Polyline::new(points), radii }
    }
}

impl Problem<4> for LensProblem<'_> {
    fn squares(&self, &[angle, radius, x, y]: &[f64; 4]) -> Squares<4> {
        let (sin, cos) = angle.sin_cos();
        let turned = |[u, v]: Point| [cos * u - sin * v, sin * u + cos * v];
        // A point of the boundary in the plane, and how it moves with (angle, radius).
        let place = |unit: Point| {
            let out = turned(unit);
            ([x + radius * out[0], y + radius * out[1]], [-radius * out[1], radius * out[0]], out)
        };
        let dot = |a: Point, b: Point| a[0] * b[0] + a[1] * b[1];
        let mut squares = Squares::new();

        let weight = 1.0 / OUTLINE.len() as f64;
        for &unit in OUTLINE.iter() {
            let (boundary, by_angle, by_radius) = place(unit);
            let (residual, n) = self.curve.residual(boundary);
            squares.add(weight, residual, &[dot(n, by_angle), dot(n, by_radius), n[0], n[1]]);
        }
        let weight = 1.0 / self.points.len() as f64;
        for p in self.points {
            let [u, v] = [p[0] - x, p[1] - y];
            let (unit, normal) = nearest([(cos * u + sin * v) / radius, (cos * v - sin * u) / radius]);
            let (boundary, by_angle, by_radius) = place(unit);
            let away = [boundary[0] - p[0], boundary[1] - p[1]];
            if let Some(normal) = normal {
                let n = turned(normal);
                squares.add(weight, dot(n, away), &[dot(n, by_angle), dot(n, by_radius), n[0], n[1]]);
            } else {
                squares.add(weight, away[0], &[by_angle[0], by_radius[0], 1.0, 0.0]);
                squares.add(weight, away[1], &[by_angle[1], by_radius[1], 0.0, 1.0]);
            }
        }
        squares
    }

    fn bounds(&self, _: &[f64; 4]) -> [[f64; 2]; 4] {
        let any = [f64::NEG_INFINITY, f64::INFINITY];
        [any, self.radii, any, any]
    }
}

/// The point of the Lens that is nearest to another one, with the normal there; none at a tip.
///
/// Frame: radius 1, middle of the tips at the origin, circle 2 in direction 0.
fn nearest(p: Point) -> (Point, Option<Point>) {
    let arc = |centre: f64, radius: f64| {
        let [u, v] = [p[0] - centre, p[1]];
        let length = u.hypot(v);
        // In the centre of a circle every point of it is as near.
        let normal = if length > 0.0 { [u / length, v / length] } else { [-centre.signum(), 0.0] };
        ([centre + radius * normal[0], radius * normal[1]], Some(normal))
    };
    let square = |(q, _): &(Point, Option<Point>)| (p[0] - q[0]).powi(2) + (p[1] - q[1]).powi(2);
    let mut best = ([0.0, HALF_CHORD.copysign(p[1])], None);
    let first = arc(-CHORD, 1.0);
    if first.0[0] > 0.0 && square(&first) < square(&best) {
        best = first;
    }
    let second = arc(DISTANCE - CHORD, SECOND);
    if second.0[0] < 0.0 && square(&second) < square(&best) {
        best = second;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::super::least_squares::gradient_error;
    use super::*;
    use crate::data::shapes::fourier::coefficients;
    use crate::rng::{Counter, Stream};

    fn turn_between(a: f64, b: f64) -> f64 {
        let turn = (a - b).rem_euclid(TAU);
        turn.min(TAU - turn)
    }

    #[test]
    fn slopes_are_the_derivatives_of_the_loss() {
        for row in 0..20 {
            let lens = Lens::of_row(2, row);
            let traced = Curve::new(&lens.coefficients(Outline::Arc)).unwrap().trace(TRACED);
            let mut rng = Counter::for_row(3, Stream::Data, row);
            let mut place = [lens.angle, lens.radius, lens.offset[0], lens.offset[1]];
            for value in &mut place {
                *value += 0.1 * rng.normal_pair()[0];
            }
            let error = gradient_error(&LensProblem::new(&traced, Rules::AnySize), &place);
            assert!(error <= 1e-4, "{error} at {place:?}");
        }
    }

    #[test]
    fn the_nearest_point_is_nearer_than_any_other() {
        let outline: Vec<Point> = {
            let lens = Lens { radius: 1.0, angle: 0.0, offset: [0.0; 2] };
            let [left, right] = lens.tips(Outline::Arc);
            let middle = [0, 1].map(|axis| 0.5 * (left[axis] + right[axis]));
            let boundary = lens.boundary(Outline::Arc, 5000);
            boundary.iter().map(|p| [p[0] - middle[0], p[1] - middle[1]]).collect()
        };
        let centres = [[-CHORD, 0.0], [DISTANCE - CHORD, 0.0], [0.0, 0.0], [0.0, -3.0]];
        let mut rng = Counter::new(1, Stream::Data, 0, 0);
        let random: Vec<Point> = (0..200).map(|_| rng.normal_pair()).collect();
        for p in centres.into_iter().chain(random) {
            let (q, normal) = nearest(p);
            let found = (p[0] - q[0]).hypot(p[1] - q[1]);
            let tried = outline.iter().map(|q| (p[0] - q[0]).hypot(p[1] - q[1])).fold(f64::MAX, f64::min);
            assert!((found - tried).abs() <= 1e-3, "{p:?}: {q:?} {found} {tried}");
            if let Some(n) = normal {
                let across = n[0] * (p[1] - q[1]) - n[1] * (p[0] - q[0]);
                assert!(across.abs() <= 1e-9 && (n[0].hypot(n[1]) - 1.0).abs() <= 1e-12, "{p:?}: {n:?}");
            }
        }
    }

    #[test]
    fn a_curve_with_sharp_tips_gives_its_lens_back() {
        for row in 0..20 {
            for outline in [Outline::Vertices, Outline::Arc] {
                let lens = Lens::of_row(6, row);
                let curve = Curve::new(&coefficients(&lens.boundary(Outline::Arc, 300), 120)).unwrap();
                // The boundary of the arcs is centred as the arcs are.
                let arcs = fit_lens(&curve, Outline::Arc, Rules::Data).unwrap();
                assert!((arcs.shape.radius - lens.radius).abs() <= 3e-3, "{arcs:?} {lens:?}");
                assert!(turn_between(arcs.shape.angle, lens.angle) <= 1e-3, "{arcs:?} {lens:?}");
                assert!(arcs.loss <= 1e-5, "{}", arcs.loss);
                // What the offset means differs, where the tips are does not.
                let other = fit_lens(&curve, outline, Rules::Data).unwrap();
                for (p, q) in other.shape.tips(outline).iter().zip(lens.tips(Outline::Arc)) {
                    assert!((p[0] - q[0]).hypot(p[1] - q[1]) <= 5e-3, "{outline}: {other:?} {lens:?}");
                }
            }
        }
    }

    #[test]
    fn rows_of_the_data_set_give_their_parameters_back() {
        // What is left is the order of the curve: it does not reach the tips.
        for (outline, radius, angle, offset) in
            [(Outline::Vertices, 0.03, 0.03, 0.08), (Outline::Arc, 0.08, 0.002, 0.02)]
        {
            for row in 0..200 {
                let lens = Lens::of_row(1, row);
                let curve = Curve::new(&lens.coefficients(outline)).unwrap();
                let Fit { shape, loss, .. } = fit_lens(&curve, outline, Rules::Data).unwrap();
                // No worse than the shape behind the row.
                let [left, right] = lens.tips(outline);
                let [x, y] = [0, 1].map(|axis| 0.5 * (left[axis] + right[axis]));
                let traced = curve.trace(TRACED);
                let truth = LensProblem::new(&traced, Rules::Data).squares(&[lens.angle, lens.radius, x, y]).loss;
                assert!(loss <= truth, "{outline}: {loss} {truth} {lens:?}");
                assert!((shape.radius - lens.radius).abs() <= radius, "{outline}: {shape:?} {lens:?}");
                assert!(turn_between(shape.angle, lens.angle) <= angle, "{outline}: {shape:?} {lens:?}");
                let away = [0, 1].map(|axis| shape.offset[axis] - lens.offset[axis]);
                assert!(away[0].hypot(away[1]) <= offset, "{outline}: {shape:?} {lens:?}");
            }
        }
    }
}

//! Lines that show beside a curve what was observed of its shape.

use super::Segment;
use crate::data::shapes::fourier::Curve;
use crate::data::shapes::plane::{self, Point, on_circle};

/// Points of a curve that is looked at.
const TRACED: usize = 256;

/// Of a Lens: the curve's own largest diameter, and one as long as it was observed, in the middle of it and in the
/// direction that is nearer.
pub(crate) fn lens_diameters(curve: &Curve, seen: &[f32]) -> (Vec<Segment>, Vec<Segment>) {
    let [from, to] = curve.farthest_pair();
    let half = [0, 1].map(|axis| 0.5 * f64::from(seen[axis]) * (to[axis] - from[axis]).signum());
    let middle = [0, 1].map(|axis| 0.5 * (from[axis] + to[axis]));
    let observed = [-1.0, 1.0].map(|side| single([0, 1].map(|axis| middle[axis] + side * half[axis])));
    (vec![[from, to].map(single)], vec![observed])
}

/// Of a Cross: the long axes of both bars through the observed centre, in the observed rotation, each as far as the
/// curve reaches in its direction.
pub(crate) fn cross_axes(curve: &Curve, seen: &[f32]) -> Vec<Segment> {
    let [x, y, rotation] = [0, 1, 2].map(|k| f64::from(seen[k]));
    let points = curve.trace(TRACED);
    let along = on_circle(rotation);
    [along, plane::turn(along, [0.0, 1.0])]
        .map(|[dx, dy]| {
            let reach = |side: f64| {
                let along = points.iter().map(|p| side * ((p[0] - x) * dx + (p[1] - y) * dy));
                side * along.fold(0.0, f64::max)
            };
            [-1.0, 1.0].map(|side| single([x + reach(side) * dx, y + reach(side) * dy]))
        })
        .to_vec()
}

fn single(p: Point) -> [f32; 2] {
    p.map(|v| v as f32)
}

/// Points as they are drawn.
pub(crate) fn single_precision(points: Vec<Point>) -> Vec<[f32; 2]> {
    points.into_iter().map(single).collect()
}

//! Closed curves as Fourier coefficients: outline to coefficients, coefficients to curve.
//!
//! `a_m = (1/L) sum_l p_l exp(-2 pi i m l / L)` for `m = -M..M`, and back `g(t) = sum_m a_m exp(2 pi i m t)`.
//! A row holds `[Re a^x, Re a^y, Im a^x, Im a^y]`, each for `m = -M..M`: `N = 4 (2M + 1)` columns. An outline is real,
//! so `a_-m` is the conjugate of `a_m` and `Im a_0 = 0`; rows that a model made need not be, and [`Curve`] takes the
//! real part of `g`. Sums are in f64, rows in f32.

use std::borrow::Cow;
use std::f64::consts::TAU;
use std::sync::OnceLock;

pub(crate) use super::plane::Point;
use crate::error::{Error, Result};

/// Number of columns of a curve of an order.
pub(crate) fn dim(order: usize) -> usize {
    4 * (2 * order + 1)
}

/// Order of a row with `dim` columns; none if no order has that many.
pub(crate) fn order_of(dim: usize) -> Option<usize> {
    let harmonics = dim / 4;
    (dim.is_multiple_of(4) && !harmonics.is_multiple_of(2)).then_some(harmonics / 2)
}

/// Names of the columns: `re_x_-2`, ..., `re_y_0`, ..., `im_y_2`.
pub(crate) fn column_names(order: usize) -> Vec<String> {
    let order = order as i64;
    ["re_x", "re_y", "im_x", "im_y"]
        .into_iter()
        .flat_map(|part| (-order..=order).map(move |m| format!("{part}_{m}")))
        .collect()
}

/// `exp(2 pi i l / count)` as (cos, sin) for `l = 0..count`. The counts that come up for every row of a data set are
/// computed once.
fn roots_of_unity(count: usize) -> Cow<'static, [[f64; 2]]> {
    const KEPT: usize = 256;
    static ROOTS: [OnceLock<Vec<[f64; 2]>>; KEPT] = [const { OnceLock::new() }; KEPT];
    let compute = || {
        let root = |l| {
            let (sin, cos) = (TAU * l as f64 / count as f64).sin_cos();
            [cos, sin]
        };
        (0..count).map(root).collect()
    };
    match ROOTS.get(count) {
        Some(kept) => Cow::Borrowed(kept.get_or_init(compute)),
        None => Cow::Owned(compute()),
    }
}

/// `a + b` modulo `count`, both below it. A division here would be a third of the time of a row.
fn add_modulo(a: usize, b: usize, count: usize) -> usize {
    let sum = a + b;
    if sum < count { sum } else { sum - count }
}

/// Writes the coefficients of an outline to a row of `dim(order)` columns.
///
/// # Panics
///
/// If there is no point or the row has another length: both are decided by the caller and never by a user.
pub(crate) fn coefficients_into(outline: &[Point], order: usize, row: &mut [f32]) {
    assert!(!outline.is_empty(), "an outline has at least one point");
    assert_eq!(row.len(), dim(order), "columns of a curve of order {order}");
    let count = outline.len();
    let roots = roots_of_unity(count);
    let width = 2 * order + 1;
    for m in 0..=order {
        let [mut re, mut im] = [[0.0; 2]; 2];
        let mut turn = 0; // m * l modulo L
        for point in outline {
            let [cos, sin] = roots[turn];
            for axis in 0..2 {
                re[axis] += point[axis] * cos;
                im[axis] -= point[axis] * sin;
            }
            turn = add_modulo(turn, m % count, count);
        }
        for axis in 0..2 {
            let [re, im] = [(re[axis] / count as f64) as f32, (im[axis] / count as f64) as f32];
            let (re_row, im_row) = (axis * width + order, (2 + axis) * width + order);
            row[re_row + m] = re;
            row[re_row - m] = re;
            row[im_row - m] = -im;
            // Second, so that the two constant columns hold 0 and not -0.
            row[im_row + m] = if m == 0 { 0.0 } else { im };
        }
    }
}

/// The coefficients of an outline as a new row.
pub(crate) fn coefficients(outline: &[Point], order: usize) -> Vec<f32> {
    let mut row = vec![0.0; dim(order)];
    coefficients_into(outline, order, &mut row);
    row
}

/// A curve `g(t)`, made from a row of coefficients.
#[derive(Debug, Clone)]
pub(crate) struct Curve {
    centre: Point,
    /// For `k = 1..=M`: factors of `cos(2 pi k t)` and `sin(2 pi k t)`.
    harmonics: Vec<[Point; 2]>,
}

/// Position and the first two derivatives of a curve by the angle `2 pi t`.
struct Jet {
    position: Point,
    velocity: Point,
    acceleration: Point,
}

impl Curve {
    /// The curve of a row; the number of columns must be that of some order.
    pub(crate) fn new(row: &[f32]) -> Result<Self> {
        let order = order_of(row.len()).ok_or_else(|| Error::Shape {
            what: "columns of a Fourier curve (4, 12, 20, 28, ...)".into(),
            expected: dim(row.len() / 8),
            got: row.len(),
        })?;
        let width = 2 * order + 1;
        let at = |part: usize, m: isize| f64::from(row[part * width + order.wrapping_add_signed(m)]);
        // Re(a_k e^{ik} + a_-k e^{-ik}) = (re_k + re_-k) cos k - (im_k - im_-k) sin k
        let harmonics = (1..=order as isize)
            .map(|k| {
                let cos = [0, 1].map(|axis| at(axis, k) + at(axis, -k));
                let sin = [2, 3].map(|axis| at(axis, -k) - at(axis, k));
                [cos, sin]
            })
            .collect();
        Ok(Self { centre: [at(0, 0), at(1, 0)], harmonics })
    }

    /// The point `g(t)`; `t` runs from 0 to 1.
    #[cfg(test)]
    pub(crate) fn at(&self, t: f64) -> Point {
        self.jet(TAU * t).position
    }

    /// The points at `t = 0, 1/count, ...`, without a closing duplicate.
    pub(crate) fn trace(&self, count: usize) -> Vec<Point> {
        let roots = roots_of_unity(count);
        (0..count)
            .map(|j| {
                let mut point = self.centre;
                let mut turn = 0;
                for [cos_factor, sin_factor] in &self.harmonics {
                    turn = add_modulo(turn, j, count);
                    let [cos, sin] = roots[turn];
                    for axis in 0..2 {
                        point[axis] += cos_factor[axis] * cos + sin_factor[axis] * sin;
                    }
                }
                point
            })
            .collect()
    }

    fn jet(&self, angle: f64) -> Jet {
        let mut jet = Jet { position: self.centre, velocity: [0.0; 2], acceleration: [0.0; 2] };
        for (k, [cos_factor, sin_factor]) in (1..).map(f64::from).zip(&self.harmonics) {
            let (sin, cos) = (k * angle).sin_cos();
            for axis in 0..2 {
                let value = cos_factor[axis] * cos + sin_factor[axis] * sin;
                jet.position[axis] += value;
                jet.velocity[axis] += k * (sin_factor[axis] * cos - cos_factor[axis] * sin);
                jet.acceleration[axis] -= k * k * value;
            }
        }
        jet
    }

    /// The two points of the continuous curve that are farthest from each other.
    ///
    /// The best pair of a grid, moved to the top by Newton steps: on the grid alone the ends would be off by half a
    /// step along the curve, which is as much as the noise of the paper's observations.
    pub(crate) fn farthest_pair(&self) -> [Point; 2] {
        let count = (16 * self.harmonics.len()).max(64);
        let points = self.trace(count);
        let square = |p: &Point, q: &Point| (p[0] - q[0]) * (p[0] - q[0]) + (p[1] - q[1]) * (p[1] - q[1]);
        let (mut first, mut second, mut best) = (0, 0, 0.0);
        for (i, p) in points.iter().enumerate() {
            // Without a branch, so that the compiler can take several at a time; most rows do not raise the best.
            let longest = points[i..].iter().map(|q| square(p, q)).fold(0.0, |most, d| if d > most { d } else { most });
            if longest > best {
                best = longest;
                first = i;
            }
        }
        for (j, q) in points.iter().enumerate() {
            if square(&points[first], q) > square(&points[first], &points[second]) {
                second = j;
            }
        }
        let step = TAU / count as f64;
        self.climb([step * first as f64, step * second as f64], step)
    }

    /// Newton's method on half the squared distance of two points of the curve. Each step is at most `limit` in either
    /// angle and must not shorten the distance.
    fn climb(&self, mut angles: [f64; 2], limit: f64) -> [Point; 2] {
        let dot = |a: Point, b: Point| a[0] * b[0] + a[1] * b[1];
        let mut ends = angles.map(|angle| self.jet(angle));
        for _ in 0..12 {
            let [p, q] = &ends;
            let apart = [p.position[0] - q.position[0], p.position[1] - q.position[1]];
            let slope = [dot(apart, p.velocity), -dot(apart, q.velocity)];
            let pp = dot(p.velocity, p.velocity) + dot(apart, p.acceleration);
            let qq = dot(q.velocity, q.velocity) - dot(apart, q.acceleration);
            let pq = -dot(p.velocity, q.velocity);
            let determinant = pp * qq - pq * pq;
            // Not a hill (a circle, a point): the grid's answer is as good as any.
            if !(pp < 0.0 && determinant > 1e-9 * pp * qq) {
                break;
            }
            let change = [(pq * slope[1] - qq * slope[0]) / determinant, (pq * slope[0] - pp * slope[1]) / determinant]
                .map(|c| c.clamp(-limit, limit));
            let moved = [angles[0] + change[0], angles[1] + change[1]];
            let jets = moved.map(|angle| self.jet(angle));
            let [dx, dy] = [0, 1].map(|axis| jets[0].position[axis] - jets[1].position[axis]);
            let no_shorter = dx * dx + dy * dy >= dot(apart, apart);
            if !no_shorter {
                break;
            }
            (angles, ends) = (moved, jets);
            if change[0].abs().max(change[1].abs()) < 1e-9 {
                break;
            }
        }
        ends.map(|end| end.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Counter, Stream};

    fn random_outline(count: usize, seed: u64) -> Vec<Point> {
        let mut rng = Counter::new(seed, Stream::Data, 0, 0);
        (0..count).map(|_| rng.normal_pair()).collect()
    }

    /// The paper's sum, complex arithmetic written out, one coefficient at a time.
    fn by_the_equation(outline: &[Point], m: i32) -> [[f64; 2]; 2] {
        let count = outline.len() as f64;
        let mut sum = [[0.0; 2]; 2];
        for (l, p) in outline.iter().enumerate() {
            let phase = -TAU * f64::from(m) * l as f64 / count;
            for axis in 0..2 {
                sum[axis][0] += p[axis] * phase.cos() / count;
                sum[axis][1] += p[axis] * phase.sin() / count;
            }
        }
        sum
    }

    #[test]
    fn coefficients_follow_the_equation_in_the_specified_order() {
        for (count, order) in [(1, 2), (3, 2), (31, 2), (64, 12), (7, 0)] {
            let outline = random_outline(count, 5);
            let row = coefficients(&outline, order);
            let width = 2 * order + 1;
            for (column, m) in (-(order as i32)..=order as i32).enumerate() {
                let [x, y] = by_the_equation(&outline, m);
                for (part, expected) in [x[0], y[0], x[1], y[1]].into_iter().enumerate() {
                    let got = f64::from(row[part * width + column]);
                    assert!((got - expected).abs() < 1e-6, "L {count} m {m} part {part}: {got} {expected}");
                }
            }
        }
    }

    #[test]
    fn constant_columns_are_plain_zero() {
        let row = coefficients(&random_outline(17, 1), 2);
        for column in [12, 17] {
            assert_eq!(row[column].to_bits(), 0);
        }
    }

    #[test]
    fn names_and_sizes() {
        assert_eq!((dim(2), dim(12), dim(0)), (20, 100, 4));
        let names = column_names(2);
        assert_eq!(names.len(), 20);
        let expected = [(0, "re_x_-2"), (4, "re_x_2"), (5, "re_y_-2"), (12, "im_x_0"), (19, "im_y_2")];
        for (i, name) in expected {
            assert_eq!(names[i], name);
        }
        let orders: Vec<_> = (0..30).filter_map(|n| order_of(n).map(|order| (n, order))).collect();
        assert_eq!(orders, [(4, 0), (12, 1), (20, 2), (28, 3)]);
        assert!(matches!(Curve::new(&[0.0; 21]), Err(Error::Shape { got: 21, .. })));
        assert!(Curve::new(&[]).is_err());
    }

    #[test]
    fn enough_coefficients_reproduce_the_outline_exactly() {
        // Five points and order 2: as many coefficients as points.
        let outline = random_outline(5, 3);
        let curve = Curve::new(&coefficients(&outline, 2)).unwrap();
        for (j, (p, q)) in outline.iter().zip(curve.trace(5)).enumerate() {
            let r = curve.at(j as f64 / 5.0);
            for axis in 0..2 {
                assert!((p[axis] - q[axis]).abs() < 1e-6 && (q[axis] - r[axis]).abs() < 1e-12);
            }
        }
    }

    #[test]
    fn a_row_that_is_not_symmetric_traces_its_real_part() {
        // Only a^x_1 = 1 + 2i: Re(a e^{i s}) = cos s - 2 sin s.
        let mut row = [0.0f32; 12];
        row[2] = 1.0;
        row[8] = 2.0;
        let curve = Curve::new(&row).unwrap();
        for t in [0.0, 0.1, 0.37, 0.9] {
            let [x, y] = curve.at(t);
            assert!((x - ((TAU * t).cos() - 2.0 * (TAU * t).sin())).abs() < 1e-12 && y == 0.0);
        }
    }

    #[test]
    fn farthest_pair_beats_a_fine_grid() {
        for seed in 0..40 {
            let mut rng = Counter::new(seed, Stream::Data, 1, 0);
            let row: Vec<f32> = (0..20).map(|_| rng.normal_pair()[0] as f32).collect();
            let curve = Curve::new(&row).unwrap();
            let [p, q] = curve.farthest_pair();
            let found = (p[0] - q[0]).hypot(p[1] - q[1]);
            let points = curve.trace(1200);
            let mut best = 0.0f64;
            for (i, a) in points.iter().enumerate() {
                for b in &points[..i] {
                    best = best.max((a[0] - b[0]).hypot(a[1] - b[1]));
                }
            }
            // The grid's best can win only where two hills are nearly level; then the lengths still agree.
            assert!(found >= best - 0.02 * best && found <= best * (1.0 + 1e-4), "seed {seed}: {found} {best}");
        }
    }

    #[test]
    fn farthest_pair_of_an_ellipse_is_its_long_axis_to_the_last_digit() {
        // x = 3 cos s, y = sin s, turned by 0.3 and started off the grid.
        let outline: Vec<Point> = (0..100)
            .map(|l| {
                let s = TAU * f64::from(l) / 100.0 + 0.0123;
                let [x, y] = [3.0 * s.cos(), s.sin()];
                [x * 0.3f64.cos() - y * 0.3f64.sin(), x * 0.3f64.sin() + y * 0.3f64.cos()]
            })
            .collect();
        let [p, q] = Curve::new(&coefficients(&outline, 2)).unwrap().farthest_pair();
        let [dx, dy] = [(p[0] - q[0]).abs(), (p[1] - q[1]).abs()];
        assert!((dx - 6.0 * 0.3f64.cos()).abs() < 1e-5, "{dx}");
        assert!((dy - 6.0 * 0.3f64.sin()).abs() < 1e-5, "{dy}");
    }

    #[test]
    fn farthest_pair_of_degenerate_curves_is_finite() {
        let point = Curve::new(&[0.0; 20]).unwrap().farthest_pair();
        assert_eq!(point, [[0.0; 2]; 2]);
        let circle = roots_of_unity(64);
        let [p, q] = Curve::new(&coefficients(&circle, 2)).unwrap().farthest_pair();
        assert!(((p[0] - q[0]).hypot(p[1] - q[1]) - 2.0).abs() < 1e-6);
    }
}

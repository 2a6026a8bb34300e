//! Monotone rational-quadratic splines (Durkan, Bekasov, Murray, Papamakarios 2019, section 3.1 and appendix A): every
//! column goes through one, whose parameters are summed over the nodes that transform it.
//!
//! Parameters of a column, in rows side by side: K widths and K heights before a softmax, K - 1 slopes before a
//! softplus. A sample needs one bin of K, so a column is searched bin by bin with sixteen samples side by side: every
//! sample takes along what belongs to the last bin that begins before it. Nothing is gathered, and only the slopes of
//! the bin itself go through the softplus.
//!
//! The backward pass computes the bin once more instead of keeping it: of K = 8 it reads the 23 rows that it needs
//! anyway, and to keep softmax and bin would write and read twice as many.

mod bins;

use super::super::math::{LaneArray, fma, lanes, lanes_mut, select};
use super::super::simd::{self, Kernel, Simd};
use super::super::{LANES, Shape};
use super::Gradients;
use crate::plan::{Node, Spline, Stage};
pub(crate) use bins::Form;
use bins::{Parameters, Point, Side, Slopes, Softmax, bin_of};

/// Runs a kernel with room for the bins of `$spline`, which lie on the stack.
macro_rules! run_with {
    ($spline:expr, $kernel:ident { $($fields:tt)* }) => {
        match $spline.bins {
            0..=8 => simd::run($kernel::<8> { $($fields)* }),
            9..=16 => simd::run($kernel::<16> { $($fields)* }),
            _ => simd::run($kernel::<{ Spline::MOST_BINS as usize }> { $($fields)* }),
        }
    };
}

/// `to` = every column of `x` through its spline; adds the log-derivatives to `log_det`.
pub(super) fn forward(
    shape: Shape,
    stage: &Stage,
    spline: Spline,
    x: &[f32],
    sums: &[f32],
    to: &mut [f32],
    log_det: &mut [f32],
) {
    let form = Form::of(spline);
    for (c, first) in stage.sums.iter().enumerate() {
        let (x, to) = (shape.row(x, c), shape.row_mut(to, c));
        match *first {
            None => to.copy_from_slice(x),
            Some(first) => run_with!(spline, Forward { shape, form, first, x, sums, to, log_det }),
        }
    }
    // What was computed in places without a sample must not reach the gradients.
    shape.clear_padding(to);
}

struct Forward<'a, const ROOM: usize> {
    shape: Shape,
    form: Form,
    first: u32,
    x: &'a [f32],
    sums: &'a [f32],
    to: &'a mut [f32],
    log_det: &'a mut [f32],
}

impl<const ROOM: usize> Kernel for Forward<'_, ROOM> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, form, first, x, sums, to, log_det } = self;
        for at in (0..shape.width).step_by(LANES) {
            let parameters = Parameters { shape, values: sums, first, at, bins: form.bins };
            let x = lanes(x, at);
            let (number, width) = bin_of::<S, ROOM, true>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Widths), x);
            let (_, height) =
                bin_of::<S, ROOM, false>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Heights), &number);
            let Slopes { slope: [d0, d1], .. } = Slopes::of::<S>(form, parameters, &number);
            let (to, log_det) = (lanes_mut(to, at), lanes_mut(log_det, at));
            for i in 0..LANES {
                let t = ((x[i] - width.start[i]) / width.size[i]).clamp(0.0, 1.0);
                let point = Point::new::<S>(t, height.size[i] / width.size[i], d0[i], d1[i]);
                let y = fma::<S>(height.size[i], point.num / point.den, height.start[i]);
                let log_slope = point.log_slope::<S>();
                let inside = form.holds(x[i]);
                to[i] = select(inside, y, x[i]);
                log_det[i] += select(inside, log_slope, 0.0);
            }
        }
    }
}

/// Inverts the splines of all columns in place.
pub(super) fn inverse(shape: Shape, stage: &Stage, spline: Spline, x: &mut [f32], sums: &[f32]) {
    for (c, first) in stage.sums.iter().enumerate() {
        if let Some(first) = *first {
            column_inverse(shape, spline, first, shape.row_mut(x, c), sums);
        }
    }
}

/// Inverts in place the splines of the lower columns of a node that no later node of the walk has parameters for.
pub(super) fn node_inverse(shape: Shape, stage: &Stage, node: &Node, spline: Spline, x: &mut [f32], sums: &[f32]) {
    for j in 0..node.lower {
        let c = (node.lower_first + j) as usize;
        // The deepest node of a column comes first in its chain and last in the walk.
        let deepest = stage.chains[c].first().map(|link| link.first);
        if deepest == Some(node.st + j * spline.parameters())
            && let Some(first) = stage.sums[c]
        {
            column_inverse(shape, spline, first, shape.row_mut(x, c), sums);
        }
    }
}

fn column_inverse(shape: Shape, spline: Spline, first: u32, column: &mut [f32], sums: &[f32]) {
    run_with!(spline, Inverse { shape, form: Form::of(spline), first, column, sums });
    column[shape.rows..].fill(0.0);
}

struct Inverse<'a, const ROOM: usize> {
    shape: Shape,
    form: Form,
    first: u32,
    column: &'a mut [f32],
    sums: &'a [f32],
}

impl<const ROOM: usize> Kernel for Inverse<'_, ROOM> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, form, first, column, sums } = self;
        for at in (0..shape.width).step_by(LANES) {
            let parameters = Parameters { shape, values: sums, first, at, bins: form.bins };
            let y = lanes_mut(column, at);
            let (number, height) =
                bin_of::<S, ROOM, true>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Heights), y);
            let (_, width) =
                bin_of::<S, ROOM, false>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Widths), &number);
            let Slopes { slope: [d0, d1], .. } = Slopes::of::<S>(form, parameters, &number);
            for i in 0..LANES {
                // The root of a t^2 + b t + c in the form that does not cancel.
                let (h, w) = (height.size[i], width.size[i]);
                let s = h / w;
                // As `clamp`, which would panic if a parameter is no number: then the result is none.
                let v = y[i] - height.start[i];
                let v = if v < 0.0 { 0.0 } else { v };
                let v = if v > h { h } else { v };
                let q = d0[i] + d1[i] - 2.0 * s;
                let a = fma::<S>(v, q, h * (s - d0[i]));
                let b = fma::<S>(-v, q, h * d0[i]);
                let c = -s * v;
                let root = fma::<S>(b, b, -4.0 * a * c).max(0.0).sqrt();
                let t = (2.0 * c / (-b - root)).clamp(0.0, 1.0);
                y[i] = select(form.holds(y[i]), fma::<S>(t, w, width.start[i]), y[i]);
            }
        }
    }
}

/// Writes the gradients of `x` and of the parameters.
pub(super) fn backward(shape: Shape, stage: &Stage, spline: Spline, buffers: Gradients<'_>) {
    let Gradients { x, st, d_to, d_log_det, d_x, d_st } = buffers;
    let form = Form::of(spline);
    for (c, first) in stage.sums.iter().enumerate() {
        let (x, d_to, d_x) = (shape.row(x, c), shape.row(d_to, c), shape.row_mut(d_x, c));
        match *first {
            None => d_x.copy_from_slice(d_to),
            Some(first) => {
                let buffers = Gradients { x, st, d_to, d_log_det, d_x, d_st: &mut *d_st };
                run_with!(spline, Backward { shape, form, first, buffers });
            }
        }
    }
    // See `forward`: padding has no gradient.
    shape.clear_padding(d_x);
    shape.clear_padding(d_st);
}

/// One column.
struct Backward<'a, const ROOM: usize> {
    shape: Shape,
    form: Form,
    first: u32,
    buffers: Gradients<'a>,
}

/// Gradients of a sample's bin.
#[derive(Clone, Copy)]
struct OfBin {
    /// Of where it begins, along x.
    start: f32,
    width: f32,
    height: f32,
    slopes: [f32; 2],
}

impl Point {
    /// Gradients of the bin (that of where it begins is minus that of x, along y that of y itself) for those of y and
    /// of the log-derivative.
    #[inline(always)]
    fn backward<S: Simd>(&self, w: f32, h: f32, [d0, d1]: [f32; 2], d_y: f32, d_log: f32) -> OfBin {
        let Self { t, tt, s, q, den, num, slope_num } = *self;
        let rest = 1.0 - t;
        let (by_den, by_slope) = (1.0 / den, 1.0 / slope_num);
        let ratio = num * by_den;
        // y = start + h num / den, by t, s and the slopes.
        let g = d_y * h * by_den;
        let y_t = d_y * h * s * slope_num * by_den * by_den;
        let y_s = g * fma::<S>(-ratio, 1.0 - 2.0 * tt, t * t);
        let y_0 = g * tt * (1.0 - ratio);
        let y_1 = -g * tt * ratio;
        // log = 2 ln s + ln slope_num - 2 ln den
        let l = d_log * by_slope;
        let m = 2.0 * d_log * by_den;
        let turn = 1.0 - 2.0 * t;
        let l_t = fma::<S>(2.0 * l, fma::<S>(d1, t, fma::<S>(s, turn, -d0 * rest)), -m * q * turn);
        let l_s = 2.0 * d_log / s + 2.0 * l * tt - m * (1.0 - 2.0 * tt);
        let l_0 = fma::<S>(l, rest * rest, -m * tt);
        let l_1 = fma::<S>(l, t * t, -m * tt);
        let (d_t, d_s) = (y_t + l_t, y_s + l_s);
        let by_width = 1.0 / w;
        OfBin {
            start: -d_t * by_width,
            width: -fma::<S>(d_t, t, d_s * s) * by_width,
            height: fma::<S>(d_s, by_width, d_y * ratio),
            slopes: [y_0 + l_0, y_1 + l_1],
        }
    }
}

impl<const ROOM: usize> Kernel for Backward<'_, ROOM> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, form, first, buffers: b } = self;
        for at in (0..shape.width).step_by(LANES) {
            let parameters = Parameters { shape, values: b.st, first, at, bins: form.bins };
            let x = lanes(b.x, at);
            let widths = Softmax::<ROOM>::of::<S>(parameters, Side::Widths);
            let (number, width) = bin_of::<S, ROOM, true>(form, &widths, x);
            let heights = Softmax::<ROOM>::of::<S>(parameters, Side::Heights);
            let (_, height) = bin_of::<S, ROOM, false>(form, &heights, &number);
            let slopes = Slopes::of::<S>(form, parameters, &number);
            let (d_to, d_log_det) = (lanes(b.d_to, at), lanes(b.d_log_det, at));
            let mut of_x = [[0.0; LANES]; 2];
            let mut of_y = [[0.0; LANES]; 2];
            let mut of_slopes = [[0.0; LANES]; 2];
            let d_x = lanes_mut(b.d_x, at);
            for i in 0..LANES {
                let (w, h) = (width.size[i], height.size[i]);
                let d = [slopes.slope[0][i], slopes.slope[1][i]];
                let t = ((x[i] - width.start[i]) / w).clamp(0.0, 1.0);
                let point = Point::new::<S>(t, h / w, d[0], d[1]);
                let inside = form.holds(x[i]);
                let none = |g: f32| select(inside, g, 0.0);
                let g = point.backward::<S>(w, h, d, d_to[i], d_log_det[i]);
                d_x[i] = select(inside, -g.start, d_to[i]);
                (of_x[0][i], of_x[1][i]) = (none(g.start), none(g.width));
                (of_y[0][i], of_y[1][i]) = (none(d_to[i]), none(g.height));
                for (side, of_slopes) in of_slopes.iter_mut().enumerate() {
                    of_slopes[i] = none(g.slopes[side] * slopes.derivative[side][i]);
                }
            }
            let mut d = |row: usize, values: LaneArray| {
                *lanes_mut(b.d_st, (first as usize + row) * shape.stride + at) = values;
            };
            softmax_backward::<S, ROOM>(form, &widths, &number, &of_x, &mut d);
            softmax_backward::<S, ROOM>(form, &heights, &number, &of_y, |k, values| d(form.bins + k, values));
            for knot in 1..form.bins {
                let mut values = [0.0; LANES];
                for i in 0..LANES {
                    let left = select(number[i] == knot as f32, of_slopes[0][i], 0.0);
                    let right = select(number[i] == (knot - 1) as f32, of_slopes[1][i], 0.0);
                    values[i] = left + right;
                }
                d(2 * form.bins + knot - 1, values);
            }
        }
    }
}

/// Gradients of the parameters of one side from those of where a sample's bin begins, which all bins before it move,
/// and of its size.
#[inline(always)]
fn softmax_backward<S: Simd, const ROOM: usize>(
    form: Form,
    softmax: &Softmax<ROOM>,
    number: &LaneArray,
    [start, size]: &[LaneArray; 2],
    mut put: impl FnMut(usize, LaneArray),
) {
    // The gradient of each share, and their mean by the shares.
    let mut mean = [0.0; LANES];
    for k in 0..form.bins {
        for i in 0..LANES {
            let bin = k as f32;
            let moves = select(bin < number[i], start[i], 0.0);
            let own = select(bin == number[i], size[i], moves);
            mean[i] = fma::<S>(softmax.exps[k][i], own, mean[i]);
        }
    }
    for (mean, inverse_sum) in mean.iter_mut().zip(&softmax.inverse_sum) {
        *mean *= inverse_sum;
    }
    for k in 0..form.bins {
        let mut values = [0.0; LANES];
        for i in 0..LANES {
            let bin = k as f32;
            let moves = select(bin < number[i], start[i], 0.0);
            let own = select(bin == number[i], size[i], moves);
            values[i] = form.rest * softmax.exps[k][i] * softmax.inverse_sum[i] * (own - mean[i]);
        }
        put(k, values);
    }
}

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

use super::super::math::{LaneArray, exp, fma, lanes, lanes_mut, ln};
use super::super::simd::{self, Kernel, Simd};
use super::super::{LANES, Shape};
use super::Gradients;
use crate::plan::{Node, Spline, Stage};

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

/// What a spline is made of but for its parameters.
#[derive(Clone, Copy)]
pub(crate) struct Form {
    /// K.
    pub(crate) bins: usize,
    /// b: the box is [-b, b].
    pub(crate) half_width: f32,
    /// Smallest width and height of a bin.
    pub(crate) least: f32,
    /// What is left of 2 b for the softmax.
    pub(crate) rest: f32,
    /// Smallest slope at a knot.
    pub(crate) min_slope: f32,
    /// Makes the slope of a parameter of 0 equal to 1.
    pub(crate) shift: f32,
}

impl Form {
    pub(crate) fn of(spline: Spline) -> Self {
        let Spline { bins, half_width, min_slope } = spline;
        let least = 2.0 * half_width * Spline::MIN_BIN;
        Self {
            bins: bins as usize,
            half_width,
            least,
            rest: 2.0 * half_width - bins as f32 * least,
            min_slope,
            shift: (1.0 - f64::from(min_slope)).exp_m1().ln() as f32,
        }
    }

    /// Whether a value lies in the box. NaN does not, and so goes through as it is.
    #[inline(always)]
    fn holds(self, x: f32) -> bool {
        x > -self.half_width && x < self.half_width
    }
}

/// The parameters of a column for sixteen samples.
#[derive(Clone, Copy)]
struct Parameters<'a> {
    shape: Shape,
    values: &'a [f32],
    /// Row of the first one.
    first: u32,
    /// The first sample.
    at: usize,
    bins: usize,
}

impl<'a> Parameters<'a> {
    #[inline(always)]
    fn row(self, i: usize) -> &'a LaneArray {
        lanes(self.values, (self.first as usize + i) * self.shape.stride + self.at)
    }

    /// Parameter of the slope at knot `i`, from 1 to K - 1.
    #[inline(always)]
    fn slope(self, i: usize) -> &'a LaneArray {
        self.row(2 * self.bins + i - 1)
    }
}

/// Which of the two softmaxes.
#[derive(Clone, Copy)]
enum Side {
    Widths,
    Heights,
}

/// e^(a - max a) of the parameters a of one side, and one over their sum.
struct Softmax<const ROOM: usize> {
    exps: [LaneArray; ROOM],
    inverse_sum: LaneArray,
}

impl<const ROOM: usize> Softmax<ROOM> {
    #[inline(always)]
    fn of<S: Simd>(parameters: Parameters<'_>, side: Side) -> Self {
        let first = match side {
            Side::Widths => 0,
            Side::Heights => parameters.bins,
        };
        let mut most = *parameters.row(first);
        for k in 1..parameters.bins {
            let a = parameters.row(first + k);
            for i in 0..LANES {
                // A NaN must reach the sum, which it does by its own exponential.
                most[i] = if a[i] > most[i] { a[i] } else { most[i] };
            }
        }
        let mut exps = [[0.0; LANES]; ROOM];
        let mut sum = [0.0; LANES];
        for (k, e) in exps.iter_mut().enumerate().take(parameters.bins) {
            let a = parameters.row(first + k);
            for i in 0..LANES {
                e[i] = exp::<S>(a[i] - most[i]);
                sum[i] += e[i];
            }
        }
        let mut inverse_sum = [0.0; LANES];
        for i in 0..LANES {
            inverse_sum[i] = 1.0 / sum[i];
        }
        Self { exps, inverse_sum }
    }

    /// Size of bin `k`.
    #[inline(always)]
    fn size<S: Simd>(&self, form: Form, k: usize) -> LaneArray {
        let mut size = [0.0; LANES];
        for (i, size) in size.iter_mut().enumerate() {
            *size = fma::<S>(form.rest, self.exps[k][i] * self.inverse_sum[i], form.least);
        }
        size
    }
}

/// One bin of each sample along one side.
struct Edge {
    /// Where it begins.
    start: LaneArray,
    /// Its size.
    size: LaneArray,
}

/// Finds the bin of `x` along one side: its number, and the bin.
#[inline(always)]
fn search<S: Simd, const ROOM: usize>(form: Form, softmax: &Softmax<ROOM>, x: &LaneArray) -> (LaneArray, Edge) {
    let mut number = [0.0; LANES];
    let mut edge = Edge { start: [-form.half_width; LANES], size: softmax.size::<S>(form, 0) };
    let mut next = [0.0; LANES];
    for (i, next) in next.iter_mut().enumerate() {
        *next = edge.start[i] + edge.size[i];
    }
    for k in 1..form.bins {
        let size = softmax.size::<S>(form, k);
        for i in 0..LANES {
            let beyond = x[i] >= next[i];
            number[i] = if beyond { k as f32 } else { number[i] };
            edge.start[i] = if beyond { next[i] } else { edge.start[i] };
            edge.size[i] = if beyond { size[i] } else { edge.size[i] };
            next[i] += size[i];
        }
    }
    (number, edge)
}

/// The bins of that number along the other side.
#[inline(always)]
fn pick<S: Simd, const ROOM: usize>(form: Form, softmax: &Softmax<ROOM>, number: &LaneArray) -> Edge {
    let mut edge = Edge { start: [-form.half_width; LANES], size: softmax.size::<S>(form, 0) };
    let mut next = [0.0; LANES];
    for (i, next) in next.iter_mut().enumerate() {
        *next = edge.start[i] + edge.size[i];
    }
    for k in 1..form.bins {
        let size = softmax.size::<S>(form, k);
        for i in 0..LANES {
            let beyond = number[i] >= k as f32;
            edge.start[i] = if beyond { next[i] } else { edge.start[i] };
            edge.size[i] = if beyond { size[i] } else { edge.size[i] };
            next[i] += size[i];
        }
    }
    edge
}

/// Slopes at both ends of a bin, and their derivatives by the parameters; 1 and 0 at the ends of the box.
struct Slopes {
    slope: [LaneArray; 2],
    derivative: [LaneArray; 2],
}

impl Slopes {
    #[inline(always)]
    fn of<S: Simd>(form: Form, parameters: Parameters<'_>, number: &LaneArray) -> Self {
        let mut raw = [[0.0; LANES]; 2];
        for knot in 1..form.bins {
            let e = parameters.slope(knot);
            for i in 0..LANES {
                raw[0][i] = if number[i] == knot as f32 { e[i] } else { raw[0][i] };
                raw[1][i] = if number[i] == (knot - 1) as f32 { e[i] } else { raw[1][i] };
            }
        }
        let mut slopes = Self { slope: [[1.0; LANES]; 2], derivative: [[0.0; LANES]; 2] };
        let ends = [0.0, (form.bins - 1) as f32];
        for side in 0..2 {
            for i in 0..LANES {
                let u = raw[side][i] + form.shift;
                let e = exp::<S>(-u.abs());
                let one = 1.0 + e;
                let softplus = u.max(0.0) + ln::<S>(one);
                let sigmoid = (if u > 0.0 { 1.0 } else { e }) / one;
                let at_end = number[i] == ends[side];
                slopes.slope[side][i] = if at_end { 1.0 } else { form.min_slope + softplus };
                slopes.derivative[side][i] = if at_end { 0.0 } else { sigmoid };
            }
        }
        slopes
    }
}

/// A sample in its bin.
struct Point {
    /// Place in the bin, 0 to 1.
    t: f32,
    /// t (1 - t).
    tt: f32,
    /// Height over width.
    s: f32,
    /// d0 + d1 - 2 s.
    q: f32,
    /// s + q t (1 - t).
    den: f32,
    /// s t^2 + d0 t (1 - t).
    num: f32,
    /// d1 t^2 + 2 s t (1 - t) + d0 (1 - t)^2.
    slope_num: f32,
}

impl Point {
    #[inline(always)]
    fn new<S: Simd>(t: f32, s: f32, d0: f32, d1: f32) -> Self {
        let rest = 1.0 - t;
        let tt = t * rest;
        let q = d0 + d1 - 2.0 * s;
        Self {
            t,
            tt,
            s,
            q,
            den: fma::<S>(q, tt, s),
            num: fma::<S>(s, t * t, d0 * tt),
            slope_num: fma::<S>(d1, t * t, fma::<S>(2.0 * s, tt, d0 * rest * rest)),
        }
    }

    /// Log-derivative of the spline.
    #[inline(always)]
    fn log_slope<S: Simd>(&self) -> f32 {
        let ratio = self.s / self.den;
        ln::<S>(ratio * ratio * self.slope_num)
    }
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
    for (c, first) in stage.sums.iter().enumerate() {
        let (x, to) = (shape.row(x, c), shape.row_mut(to, c));
        match *first {
            None => to.copy_from_slice(x),
            Some(first) => run_with!(spline, Forward { shape, form: Form::of(spline), first, x, sums, to, log_det }),
        }
    }
    // What was computed where there is no sample must not reach the gradients.
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
            let (number, width) = search::<S, ROOM>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Widths), x);
            let height = pick::<S, ROOM>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Heights), &number);
            let Slopes { slope: [d0, d1], .. } = Slopes::of::<S>(form, parameters, &number);
            let (to, log_det) = (lanes_mut(to, at), lanes_mut(log_det, at));
            for i in 0..LANES {
                let t = ((x[i] - width.start[i]) / width.size[i]).clamp(0.0, 1.0);
                let point = Point::new::<S>(t, height.size[i] / width.size[i], d0[i], d1[i]);
                let y = fma::<S>(height.size[i], point.num / point.den, height.start[i]);
                let log_slope = point.log_slope::<S>();
                let inside = form.holds(x[i]);
                to[i] = if inside { y } else { x[i] };
                log_det[i] += if inside { log_slope } else { 0.0 };
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
            let (number, height) = search::<S, ROOM>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Heights), y);
            let width = pick::<S, ROOM>(form, &Softmax::<ROOM>::of::<S>(parameters, Side::Widths), &number);
            let Slopes { slope: [d0, d1], .. } = Slopes::of::<S>(form, parameters, &number);
            for i in 0..LANES {
                // The root of a t^2 + b t + c in the form that does not cancel.
                let (h, w) = (height.size[i], width.size[i]);
                let s = h / w;
                let v = (y[i] - height.start[i]).clamp(0.0, h);
                let q = d0[i] + d1[i] - 2.0 * s;
                let a = fma::<S>(v, q, h * (s - d0[i]));
                let b = fma::<S>(-v, q, h * d0[i]);
                let c = -s * v;
                let root = fma::<S>(b, b, -4.0 * a * c).max(0.0).sqrt();
                let t = (2.0 * c / (-b - root)).clamp(0.0, 1.0);
                y[i] = if form.holds(y[i]) { fma::<S>(t, w, width.start[i]) } else { y[i] };
            }
        }
    }
}

/// Writes the gradients of `x` and of the parameters.
pub(super) fn backward(shape: Shape, stage: &Stage, spline: Spline, buffers: Gradients<'_>) {
    let Gradients { x, st, d_to, d_log_det, d_x, d_st } = buffers;
    for (c, first) in stage.sums.iter().enumerate() {
        let (x, d_to, d_x) = (shape.row(x, c), shape.row(d_to, c), shape.row_mut(d_x, c));
        match *first {
            None => d_x.copy_from_slice(d_to),
            Some(first) => {
                let buffers = Gradients { x, st, d_to, d_log_det, d_x, d_st: &mut *d_st };
                run_with!(spline, Backward { shape, form: Form::of(spline), first, buffers });
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
            let (number, width) = search::<S, ROOM>(form, &widths, x);
            let heights = Softmax::<ROOM>::of::<S>(parameters, Side::Heights);
            let height = pick::<S, ROOM>(form, &heights, &number);
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
                let none = |g: f32| if inside { g } else { 0.0 };
                let g = point.backward::<S>(w, h, d, d_to[i], d_log_det[i]);
                d_x[i] = if inside { -g.start } else { d_to[i] };
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
                    let left = if number[i] == knot as f32 { of_slopes[0][i] } else { 0.0 };
                    let right = if number[i] == (knot - 1) as f32 { of_slopes[1][i] } else { 0.0 };
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
            let moves = if bin < number[i] { start[i] } else { 0.0 };
            let own = if bin == number[i] { size[i] } else { moves };
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
            let moves = if bin < number[i] { start[i] } else { 0.0 };
            let own = if bin == number[i] { size[i] } else { moves };
            values[i] = form.rest * softmax.exps[k][i] * softmax.inverse_sum[i] * (own - mean[i]);
        }
        put(k, values);
    }
}

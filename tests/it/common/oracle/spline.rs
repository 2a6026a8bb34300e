//! Monotonic rational-quadratic splines (Durkan et al., "Neural Spline Flows", 2019) and couplings made of them.
//!
//! A spline bends the box -b..b onto itself, bin by bin, with slope 1 at both ends, and is the identity beyond.

use super::coupling::Image;
use super::network::{Network, Trace};
use super::spec::{SplineSettings, Tensors};

/// The smallest share of a bin in the width, and in the height, of the box.
const SMALLEST_SHARE: f64 = 1e-3;

/// The spline of one column.
pub(super) struct Spline {
    settings: SplineSettings,
    /// K: softmax of the raw widths, and of the raw heights.
    width_shares: Vec<f64>,
    height_shares: Vec<f64>,
    widths: Vec<f64>,
    heights: Vec<f64>,
    /// K + 1: where the bins end.
    x_knots: Vec<f64>,
    y_knots: Vec<f64>,
    /// K + 1.
    slopes: Vec<f64>,
    /// K + 1: the derivative of each slope with respect to its raw parameter; 0 at both ends, which have none.
    slope_gains: Vec<f64>,
}

/// A place in a bin, and all that its equations need.
struct Place {
    bin: usize,
    /// Share of the bin's width to the left.
    t: f64,
    width: f64,
    height: f64,
    /// Slope of the chord.
    s: f64,
    /// Slopes at the left and at the right knot.
    left: f64,
    right: f64,
    /// left + right - 2 s
    q: f64,
}

/// Derivatives with respect to what a bin is made of.
#[derive(Clone, Copy)]
struct Partial {
    t: f64,
    s: f64,
    left: f64,
    right: f64,
}

impl Spline {
    /// The spline of `[K widths, K heights, K - 1 slopes]`, all raw.
    pub(super) fn new(settings: SplineSettings, raw: &[f64]) -> Self {
        let SplineSettings { bins, min_slope, .. } = settings;
        assert_eq!(raw.len(), settings.parameters(), "raw parameters of a column");
        let (width_shares, height_shares) = (softmax(&raw[..bins]), softmax(&raw[bins..2 * bins]));
        let (widths, heights) = (sizes(settings, &width_shares), sizes(settings, &height_shares));
        // Raw zeros are slopes of 1.
        let shift = ((1.0 - min_slope).exp() - 1.0).ln();
        let (mut slopes, mut slope_gains) = (vec![1.0], vec![0.0]);
        for e in &raw[2 * bins..] {
            slopes.push(min_slope + softplus(e + shift));
            slope_gains.push(1.0 / (1.0 + (-(e + shift)).exp()));
        }
        slopes.push(1.0);
        slope_gains.push(0.0);
        Self {
            settings,
            x_knots: knots(settings, &widths),
            y_knots: knots(settings, &heights),
            width_shares,
            height_shares,
            widths,
            heights,
            slopes,
            slope_gains,
        }
    }

    /// y and the logarithm of dy/dx.
    pub(super) fn forward(&self, x: f64) -> (f64, f64) {
        if !self.bends(x) {
            return (x, 0.0);
        }
        let place = self.place(x);
        let y = self.y_knots[place.bin] + place.height * place.numerator() / place.denominator();
        (y, 2.0 * place.s.ln() + place.rise().ln() - 2.0 * place.denominator().ln())
    }

    /// The x that `forward` takes to y: the root of a quadratic equation.
    pub(super) fn inverse(&self, y: f64) -> f64 {
        if !self.bends(y) {
            return y;
        }
        let bin = bin_of(&self.y_knots, y);
        let Place { width, height, s, left, q, .. } = self.of_bin(bin, 0.0);
        let v = y - self.y_knots[bin];
        let (a, b, c) = (height * (s - left) + v * q, height * left - v * q, -s * v);
        let t = 2.0 * c / (-b - (b * b - 4.0 * a * c).max(0.0).sqrt());
        self.x_knots[bin] + t.clamp(0.0, 1.0) * width
    }

    /// Gradients of x and of the raw parameters for those of y and of log dy/dx.
    pub(super) fn backward(&self, x: f64, d_y: f64, d_log: f64) -> (f64, Vec<f64>) {
        let bins = self.settings.bins;
        if !self.bends(x) {
            return (d_y, vec![0.0; self.settings.parameters()]);
        }
        let place = self.place(x);
        let (k, t, width, height) = (place.bin, place.t, place.width, place.height);
        let (n, m, d) = (place.numerator(), place.rise(), place.denominator());
        let [d_n, d_m, d_d] = [place.numerator_slopes(), place.rise_slopes(), place.denominator_slopes()];
        // y = y_k + height n / d; log = 2 ln s + ln m - 2 ln d
        let total = |pick: fn(Partial) -> f64| {
            let (n_slope, m_slope, d_slope) = (pick(d_n), pick(d_m), pick(d_d));
            d_y * height * (n_slope * d - n * d_slope) / (d * d) + d_log * (m_slope / m - 2.0 * d_slope / d)
        };
        let (d_t, d_left, d_right) = (total(|p| p.t), total(|p| p.left), total(|p| p.right));
        let d_s = total(|p| p.s) + d_log * 2.0 / place.s;

        // t = (x - x_k) / width, s = height / width; x_k and y_k are sums of what is to the left.
        let d_x = d_t / width;
        let (mut d_widths, mut d_heights) = (vec![0.0; bins], vec![0.0; bins]);
        d_widths[..k].fill(-d_x);
        d_widths[k] = -(d_t * t + d_s * place.s) / width;
        d_heights[..k].fill(d_y);
        d_heights[k] = d_y * n / d + d_s / width;
        let mut d_slopes = vec![0.0; bins + 1];
        d_slopes[k] = d_left * self.slope_gains[k];
        d_slopes[k + 1] = d_right * self.slope_gains[k + 1];

        let d_raw = [
            sizes_backward(self.settings, &self.width_shares, &d_widths),
            sizes_backward(self.settings, &self.height_shares, &d_heights),
            d_slopes[1..bins].to_vec(),
        ];
        (d_x, d_raw.concat())
    }

    /// How near the nearest knot is to x: there the second derivative jumps.
    pub(super) fn knot_margin(&self, x: f64) -> f64 {
        self.x_knots.iter().fold(f64::INFINITY, |margin, knot| margin.min((x - knot).abs()))
    }

    /// Whether x is in the box; a NaN is not.
    fn bends(&self, x: f64) -> bool {
        -self.settings.half_width < x && x < self.settings.half_width
    }

    fn place(&self, x: f64) -> Place {
        let bin = bin_of(&self.x_knots, x);
        self.of_bin(bin, (x - self.x_knots[bin]) / self.widths[bin])
    }

    fn of_bin(&self, bin: usize, t: f64) -> Place {
        let (width, height) = (self.widths[bin], self.heights[bin]);
        let (s, left, right) = (height / width, self.slopes[bin], self.slopes[bin + 1]);
        Place { bin, t, width, height, s, left, right, q: left + right - 2.0 * s }
    }
}

impl Place {
    /// s t^2 + d_k t (1 - t)
    fn numerator(&self) -> f64 {
        self.s * self.t * self.t + self.left * self.t * (1.0 - self.t)
    }

    fn numerator_slopes(&self) -> Partial {
        let &Self { t, s, left, .. } = self;
        Partial { t: 2.0 * s * t + left * (1.0 - 2.0 * t), s: t * t, left: t * (1.0 - t), right: 0.0 }
    }

    /// s + q t (1 - t)
    fn denominator(&self) -> f64 {
        self.s + self.q * self.t * (1.0 - self.t)
    }

    fn denominator_slopes(&self) -> Partial {
        let &Self { t, q, .. } = self;
        let both = t * (1.0 - t);
        Partial { t: q * (1.0 - 2.0 * t), s: 1.0 - 2.0 * both, left: both, right: both }
    }

    /// d_{k+1} t^2 + 2 s t (1 - t) + d_k (1 - t)^2, which times s^2 over the denominator's square is dy/dx.
    fn rise(&self) -> f64 {
        let &Self { t, s, left, right, .. } = self;
        right * t * t + 2.0 * s * t * (1.0 - t) + left * (1.0 - t) * (1.0 - t)
    }

    fn rise_slopes(&self) -> Partial {
        let &Self { t, s, left, right, .. } = self;
        Partial {
            t: 2.0 * right * t + 2.0 * s * (1.0 - 2.0 * t) - 2.0 * left * (1.0 - t),
            s: 2.0 * t * (1.0 - t),
            left: (1.0 - t) * (1.0 - t),
            right: t * t,
        }
    }
}

/// Widths or heights of bins of these shares.
fn sizes(settings: SplineSettings, shares: &[f64]) -> Vec<f64> {
    let (box_size, free) = (2.0 * settings.half_width, 1.0 - SMALLEST_SHARE * settings.bins as f64);
    shares.iter().map(|share| box_size * (SMALLEST_SHARE + free * share)).collect()
}

/// The gradient of what the softmax behind `sizes` was given.
fn sizes_backward(settings: SplineSettings, shares: &[f64], d_sizes: &[f64]) -> Vec<f64> {
    let gain = 2.0 * settings.half_width * (1.0 - SMALLEST_SHARE * settings.bins as f64);
    let mean: f64 = shares.iter().zip(d_sizes).map(|(share, d)| share * d).sum();
    shares.iter().zip(d_sizes).map(|(share, d)| gain * share * (d - mean)).collect()
}

fn knots(settings: SplineSettings, sizes: &[f64]) -> Vec<f64> {
    let mut knots = vec![-settings.half_width];
    for (i, size) in sizes.iter().enumerate() {
        knots.push(knots[i] + size);
    }
    knots
}

/// The bin of a place in the box. The last one takes the rest, as rounding may end it before the box does.
fn bin_of(knots: &[f64], place: f64) -> usize {
    let inner = &knots[1..knots.len() - 1];
    inner.iter().take_while(|knot| place >= **knot).count()
}

fn softmax(raw: &[f64]) -> Vec<f64> {
    let largest = raw.iter().fold(f64::NEG_INFINITY, |largest, a| largest.max(*a));
    let exps: Vec<f64> = raw.iter().map(|a| (a - largest).exp()).collect();
    let sum: f64 = exps.iter().sum();
    exps.iter().map(|exp| exp / sum).collect()
}

/// ln(1 + e^a), without overflow.
fn softplus(a: f64) -> f64 {
    a.max(0.0) + (-a.abs()).exp().ln_1p()
}

/// `u' = spline(u)` for each column, the splines' raw parameters given by one network of v.
pub(super) struct SplineCoupling<'a> {
    pub(super) settings: SplineSettings,
    pub(super) network: Network<'a>,
}

impl<'a> SplineCoupling<'a> {
    /// The coupling whose network is called `{name}.spline`.
    pub(super) fn new(settings: SplineSettings, params: &'a Tensors, name: &str) -> Self {
        Self { settings, network: Network::new(params, format!("{name}.spline")) }
    }

    pub(super) fn forward(&self, u: &[f64], v: &[f64]) -> Image {
        let trace = self.network.forward(v);
        let splines = self.splines(&trace);
        let mut image =
            Image { value: vec![], log_det: 0.0, relu_margin: trace.relu_margin(), knot_margin: f64::INFINITY };
        for (spline, &u) in splines.iter().zip(u) {
            image.push(spline, u);
        }
        image
    }

    pub(super) fn inverse(&self, u: &[f64], v: &[f64]) -> Vec<f64> {
        let splines = self.splines(&self.network.forward(v));
        splines.iter().zip(u).map(|(spline, &u)| spline.inverse(u)).collect()
    }

    /// Gradients of (u, v) for those of u' and of the log-det.
    pub(super) fn backward(
        &self,
        u: &[f64],
        v: &[f64],
        d_value: &[f64],
        d_log_det: f64,
        grads: &mut Tensors,
    ) -> (Vec<f64>, Vec<f64>) {
        let trace = self.network.forward(v);
        let (mut d_u, mut d_raws) = (Vec::new(), Vec::new());
        for ((spline, &u), &d_value) in self.splines(&trace).iter().zip(u).zip(d_value) {
            let (d, d_raw) = spline.backward(u, d_value, d_log_det);
            d_u.push(d);
            d_raws.extend(d_raw);
        }
        (d_u, self.network.backward(&trace, &d_raws, grads))
    }

    /// One for each lower column, whose parameters follow each other.
    fn splines(&self, trace: &Trace) -> Vec<Spline> {
        trace.output.chunks_exact(self.settings.parameters()).map(|raw| Spline::new(self.settings, raw)).collect()
    }
}

impl Image {
    /// Appends what a spline makes of a column.
    pub(super) fn push(&mut self, spline: &Spline, x: f64) {
        let (y, log_slope) = spline.forward(x);
        self.value.push(y);
        self.log_det += log_slope;
        self.knot_margin = self.knot_margin.min(spline.knot_margin(x));
    }
}

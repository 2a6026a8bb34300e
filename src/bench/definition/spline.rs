//! A rational-quadratic spline of one value in f64, from its definition (Durkan et al. 2019, section 3.1).

use crate::plan::{Link, Spline};

/// The parameters of a column: sums over the nodes that transform it, if any do.
pub(crate) fn summed(spline: Spline, chain: &[Link], st: &[f64]) -> Option<Vec<f64>> {
    let sum = |p| chain.iter().map(|link| st[link.row(p) as usize]).sum();
    (!chain.is_empty()).then(|| (0..spline.parameters()).map(sum).collect())
}

/// Sizes of the bins along one side, and their softmax.
fn sizes(spline: Spline, raw: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let [least, bins] = [Spline::MIN_BIN, raw.len() as f32].map(f64::from);
    let box_size = 2.0 * f64::from(spline.half_width);
    let most = raw.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let exps: Vec<f64> = raw.iter().map(|a| (a - most).exp()).collect();
    let sum: f64 = exps.iter().sum();
    let shares: Vec<f64> = exps.iter().map(|e| e / sum).collect();
    (shares.iter().map(|share| box_size * (least + (1.0 - least * bins) * share)).collect(), shares)
}

/// Everything about the bin of a value.
struct Bin {
    number: usize,
    widths: Vec<f64>,
    width_shares: Vec<f64>,
    heights: Vec<f64>,
    height_shares: Vec<f64>,
    /// Slopes at its ends, and their derivatives by the parameters.
    slopes: [(f64, f64); 2],
    start: [f64; 2],
}

fn bin(spline: Spline, parameters: &[f64], x: f64) -> Bin {
    let bins = spline.bins as usize;
    let (widths, width_shares) = sizes(spline, &parameters[..bins]);
    let (heights, height_shares) = sizes(spline, &parameters[bins..2 * bins]);
    let edge = |sizes: &[f64], k: usize| sizes[..k].iter().sum::<f64>() - f64::from(spline.half_width);
    let number = (1..bins).filter(|&k| x >= edge(&widths, k)).count();
    let least = f64::from(spline.min_slope);
    let slope = |knot: usize| {
        if knot == 0 || knot == bins {
            return (1.0, 0.0);
        }
        let u = parameters[2 * bins + knot - 1] + (1.0 - least).exp_m1().ln();
        (least + u.max(0.0) + (-u.abs()).exp().ln_1p(), 1.0 / (1.0 + (-u).exp()))
    };
    let start = [edge(&widths, number), edge(&heights, number)];
    Bin { number, widths, width_shares, heights, height_shares, slopes: [slope(number), slope(number + 1)], start }
}

/// The spline of a value, in place; returns its log-derivative.
pub(crate) fn forward(spline: Spline, parameters: &[f64], value: &mut f64) -> f64 {
    if value.abs() >= f64::from(spline.half_width) {
        return 0.0;
    }
    let bin = bin(spline, parameters, *value);
    let (w, h) = (bin.widths[bin.number], bin.heights[bin.number]);
    let [(d0, _), (d1, _)] = bin.slopes;
    let (s, t) = (h / w, (*value - bin.start[0]) / w);
    let den = s + (d0 + d1 - 2.0 * s) * t * (1.0 - t);
    *value = bin.start[1] + h * (s * t * t + d0 * t * (1.0 - t)) / den;
    2.0 * s.ln() + (d1 * t * t + 2.0 * s * t * (1.0 - t) + d0 * (1.0 - t) * (1.0 - t)).ln() - 2.0 * den.ln()
}

/// Gradients of the parameters for that of the result, `d`, which becomes that of the value, and of the log-derivative.
pub(crate) fn backward(spline: Spline, parameters: &[f64], value: f64, d: &mut f64, d_log: f64) -> Vec<f64> {
    let mut gradients = vec![0.0; parameters.len()];
    if value.abs() >= f64::from(spline.half_width) {
        return gradients;
    }
    let bin = bin(spline, parameters, value);
    let (k, bins) = (bin.number, spline.bins as usize);
    let (w, h) = (bin.widths[k], bin.heights[k]);
    let [(d0, d0_raw), (d1, d1_raw)] = bin.slopes;
    let (s, t) = (h / w, (value - bin.start[0]) / w);
    let (r, tt, turn) = (1.0 - t, t * (1.0 - t), 1.0 - 2.0 * t);
    let q = d0 + d1 - 2.0 * s;
    let (num, den) = (s * t * t + d0 * tt, s + q * tt);
    let slope = d1 * t * t + 2.0 * s * tt + d0 * r * r;
    // y = start + h num / den and log = 2 ln s + ln slope - 2 ln den, by t, s, d0 and d1.
    let by = |num_by: f64, den_by: f64, slope_by: f64, s_by: f64| {
        let y = h * (num_by * den - num * den_by) / (den * den);
        *d * y + d_log * (2.0 * s_by / s + slope_by / slope - 2.0 * den_by / den)
    };
    let by_t = by(2.0 * s * t + d0 * turn, q * turn, 2.0 * (d1 * t + s * turn - d0 * r), 0.0);
    let by_s = by(t * t, 1.0 - 2.0 * tt, 2.0 * tt, 1.0);
    let by_slopes = [by(tt, tt, r * r, 0.0) * d0_raw, by(0.0, tt, t * t, 0.0) * d1_raw];
    for (knot, by_slope) in (k..).zip(by_slopes) {
        if (1..bins).contains(&knot) {
            gradients[2 * bins + knot - 1] = by_slope;
        }
    }
    // t = (x - start) / w, s = h / w; the bins before this one move where it starts.
    let of_bins = |start: f64, own: f64, shares: &[f64], gradients: &mut [f64]| {
        let size = 2.0 * f64::from(spline.half_width) * (1.0 - f64::from(Spline::MIN_BIN) * bins as f64);
        let of = |i: usize| {
            if i < k {
                start
            } else if i == k {
                own
            } else {
                0.0
            }
        };
        let mean: f64 = shares.iter().enumerate().map(|(i, share)| share * of(i)).sum();
        for (i, (gradient, share)) in gradients.iter_mut().zip(shares).enumerate() {
            *gradient = size * share * (of(i) - mean);
        }
    };
    of_bins(-by_t / w, -(by_t * t + by_s * s) / w, &bin.width_shares, &mut gradients[..bins]);
    of_bins(*d, *d * num / den + by_s / w, &bin.height_shares, &mut gradients[bins..2 * bins]);
    *d = by_t / w;
    gradients
}

//! Drawing in what is far out: beyond `c` a distance `r` becomes `a ln(1 + r / a)`, on both sides.
//!
//! The function is odd, smooth to its first derivative and has an inverse. After the standardisation, with `a = 1`, it
//! brings heavy tails within reach of couplings that end in a box, and lets the log-density of an outlier fall like the
//! square of a logarithm.

/// The value of the function.
pub(super) fn draw_in(u: f64, c: f64, a: f64) -> f64 {
    let r = u.abs() - c;
    if r > 0.0 { (c + a * (r / a).ln_1p()).copysign(u) } else { u }
}

/// Its derivative.
pub(super) fn slope(u: f64, c: f64, a: f64) -> f64 {
    let r = u.abs() - c;
    if r > 0.0 { 1.0 / (1.0 + r / a) } else { 1.0 }
}

/// Its inverse; may overflow to infinity.
pub(super) fn let_out(v: f64, c: f64, a: f64) -> f64 {
    let r = v.abs() - c;
    if r > 0.0 { (c + a * (r / a).exp_m1()).copysign(v) } else { v }
}

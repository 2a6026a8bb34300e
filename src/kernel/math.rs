//! `exp` and `atan` as branch-free polynomials that the compiler vectorises. The shaders have their own
//! (`shaders/shared/elementary.wgsl`): both are held to f64, not to each other.
//!
//! Polynomials and range reduction are those of the Cephes library (S. Moshier): relative error about 1e-7.

/// e^x. Infinite above 88.72, zero below -87.33 (no subnormal results), NaN for NaN.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let clamped = x.clamp(-87.33, 88.72);
    // Adding and subtracting 1.5 * 2^23 rounds to an integer without a call.
    const ROUND: f32 = 12_582_912.0;
    let shifted = clamped * std::f32::consts::LOG2_E + ROUND;
    let n = shifted - ROUND;
    let r = clamped - n * 0.693_359_4 - n * -2.121_944_4e-4;
    let p = 1.987_569_1e-4;
    let p = p * r + 1.398_199_9e-3;
    let p = p * r + 8.333_452e-3;
    let p = p * r + 4.166_579_6e-2;
    let p = p * r + 1.666_666_5e-1;
    let p = p * r + 0.5;
    let mantissa = p * r * r + r + 1.0;
    // The integer n sits in the low bits of `shifted`; n = 128 is reached below 88.72 and needs two factors.
    let n = shifted.to_bits().wrapping_sub(ROUND.to_bits()) as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits(((n + 127) as u32) << 23);
    let result = mantissa * power(half) * power(n - half);
    let result = if x > 88.72 { f32::INFINITY } else { result };
    if x < -87.33 { 0.0 } else { result }
}

/// Arc tangent.
#[inline(always)]
pub(crate) fn atan(x: f32) -> f32 {
    let a = x.abs();
    // One division for all three ranges: x, (x - 1) / (x + 1) about pi/4, -1 / x about pi/2.
    let far = a > 2.414_213_6;
    let near = a > 0.414_213_57;
    let numerator = if far {
        -1.0
    } else if near {
        a - 1.0
    } else {
        a
    };
    let denominator = if far {
        a
    } else if near {
        a + 1.0
    } else {
        1.0
    };
    let offset = if far {
        std::f32::consts::FRAC_PI_2
    } else if near {
        std::f32::consts::FRAC_PI_4
    } else {
        0.0
    };
    let t = numerator / denominator;
    let z = t * t;
    let p = 8.053_744_5e-2;
    let p = p * z - 1.387_768_6e-1;
    let p = p * z + 1.997_771_1e-1;
    let p = p * z - 3.333_295e-1;
    (offset + (p * z * t + t)).copysign(x)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worst(f: impl Fn(f32) -> f32, exact: impl Fn(f64) -> f64, from: f64, to: f64) -> f64 {
        let n = 400_000;
        let mut worst = 0.0;
        for i in 0..=n {
            let x = (from + (to - from) * f64::from(i) / f64::from(n)) as f32;
            let want = exact(f64::from(x));
            let error = (f64::from(f(x)) - want).abs() / want.abs().max(f64::from(f32::MIN_POSITIVE));
            assert!(error.is_finite(), "at {x}");
            worst = f64::max(worst, error);
        }
        worst
    }

    #[test]
    fn exp_is_accurate_over_its_whole_range() {
        let error = worst(exp, f64::exp, -87.0, 88.7);
        assert!(error < 2e-7, "{error}");
        assert_eq!((exp(100.0), exp(-100.0)), (f32::INFINITY, 0.0));
        assert!(exp(f32::NAN).is_nan());
        assert_eq!(exp(0.0), 1.0);
    }

    #[test]
    fn atan_is_accurate() {
        let error = worst(atan, f64::atan, -20.0, 20.0).max(worst(atan, f64::atan, -1e-3, 1e-3));
        assert!(error < 2e-7, "{error}");
        assert_eq!(atan(f32::INFINITY), std::f32::consts::FRAC_PI_2);
        assert!(atan(f32::NAN).is_nan());
    }
}

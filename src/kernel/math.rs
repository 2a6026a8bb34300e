//! Elementary functions as branch-free polynomials that the compiler vectorises. The shaders have their own
//! (`shaders/shared/elementary.wgsl`): both are held to f64, not to each other.
//!
//! Polynomials and range reduction of `exp` and `atan` are those of the Cephes library (S. Moshier): relative error
//! about 1e-7.

use super::LANES;
use super::simd::Simd;

/// Values side by side. Loops over them have a fixed number of turns, so that nothing is left over for scalar code,
/// which would take longer than all the vectors before it.
pub(crate) type LaneArray = [f32; LANES];

/// The lanes of a row from `at` on.
#[inline(always)]
pub(crate) fn lanes(row: &[f32], at: usize) -> &LaneArray {
    match row[at..].first_chunk() {
        Some(lanes) => lanes,
        None => unreachable!("rows have whole groups of lanes"),
    }
}

/// The lanes of a row from `at` on, writable.
#[inline(always)]
pub(crate) fn lanes_mut(row: &mut [f32], at: usize) -> &mut LaneArray {
    match row[at..].first_chunk_mut() {
        Some(lanes) => lanes,
        None => unreachable!("rows have whole groups of lanes"),
    }
}

/// `a * b + c`, fused where the instruction set can.
#[inline(always)]
pub(crate) fn fma<S: Simd>(a: f32, b: f32, c: f32) -> f32 {
    if S::FUSED { a.mul_add(b, c) } else { a * b + c }
}

/// `a` if `is`, else `b`, by the bits of both: of an `if` with values in memory compilers make a choice of addresses, and
/// then a loop over single lanes.
#[inline(always)]
pub(crate) fn select(is: bool, a: f32, b: f32) -> f32 {
    let mask = 0u32.wrapping_sub(u32::from(is));
    f32::from_bits((a.to_bits() & mask) | (b.to_bits() & !mask))
}

/// e^x. Infinite above 88.72, zero below -87.33 (no subnormal results), NaN for NaN.
#[inline(always)]
pub(crate) fn exp<S: Simd>(x: f32) -> f32 {
    let clamped = x.clamp(-87.33, 88.72);
    // Adding and subtracting 1.5 * 2^23 rounds to an integer without a call.
    const ROUND: f32 = 12_582_912.0;
    let shifted = fma::<S>(clamped, std::f32::consts::LOG2_E, ROUND);
    let n = shifted - ROUND;
    let r = fma::<S>(n, -0.693_359_4, clamped);
    let r = fma::<S>(n, 2.121_944_4e-4, r);
    let p = 1.987_569_1e-4;
    let p = fma::<S>(p, r, 1.398_199_9e-3);
    let p = fma::<S>(p, r, 8.333_452e-3);
    let p = fma::<S>(p, r, 4.166_579_6e-2);
    let p = fma::<S>(p, r, 1.666_666_5e-1);
    let p = fma::<S>(p, r, 0.5);
    let mantissa = fma::<S>(p, r * r, r) + 1.0;
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
pub(crate) fn atan<S: Simd>(x: f32) -> f32 {
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
    let p = fma::<S>(p, z, -1.387_768_6e-1);
    let p = fma::<S>(p, z, 1.997_771_1e-1);
    let p = fma::<S>(p, z, -3.333_295e-1);
    (offset + fma::<S>(p * z, t, t)).copysign(x)
}

/// Natural logarithm of a normal x > 0: exponent and mantissa m in [sqrt(1/2), sqrt(2)), then 2 atanh((m - 1) / (m +
/// 1)) by its series.
#[inline(always)]
pub(crate) fn ln<S: Simd>(x: f32) -> f32 {
    const ROOT_HALF: i32 = 0x3f35_04f3;
    let bits = x.to_bits() as i32 - ROOT_HALF;
    let n = (bits >> 23) as f32;
    let m = f32::from_bits(((bits & 0x7f_ffff) + ROOT_HALF) as u32);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let p = fma::<S>(z, 2.0 / 9.0, 2.0 / 7.0);
    let p = fma::<S>(p, z, 0.4);
    let p = fma::<S>(p, z, 2.0 / 3.0);
    let fraction = fma::<S>(s, p * z, 2.0 * s);
    // ln 2 in two parts, the product with the first of which is exact.
    fma::<S>(n, 0.693_359_4, fma::<S>(n, -2.121_944_4e-4, fraction))
}

/// Cosine and sine of 2 pi f, 0 <= f <= 1: Taylor series about the nearest quarter turn, the distance to which is
/// exact.
#[inline(always)]
pub(crate) fn cos_sin_turn<S: Simd>(f: f32) -> [f32; 2] {
    let quarter = (f * 4.0 + 0.5) as i32;
    let a = std::f32::consts::TAU * (f - quarter as f32 * 0.25);
    let z = a * a;
    let p = fma::<S>(z, 1.0 / 362_880.0, -1.0 / 5_040.0);
    let p = fma::<S>(p, z, 1.0 / 120.0);
    let p = fma::<S>(p, z, -1.0 / 6.0);
    let sin = fma::<S>(a * z, p, a);
    let p = fma::<S>(z, -1.0 / 3_628_800.0, 1.0 / 40_320.0);
    let p = fma::<S>(p, z, -1.0 / 720.0);
    let p = fma::<S>(p, z, 1.0 / 24.0);
    let p = fma::<S>(p, z, -0.5);
    let cos = fma::<S>(p, z, 1.0);
    // One quarter on, the cosine is minus the sine, and the sine the cosine.
    let (c, s) = if quarter & 1 == 0 { (cos, sin) } else { (-sin, cos) };
    if quarter & 2 == 0 { [c, s] } else { [-c, -s] }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::simd::{self, Kernel, Level};

    /// An elementary function, for every instruction set.
    trait Function: Copy {
        fn at<S: Simd>(self, x: f32) -> f32;
    }

    macro_rules! function {
        ($name:ident, $x:ident => $value:expr) => {
            #[derive(Clone, Copy)]
            struct $name;
            impl Function for $name {
                #[inline(always)]
                fn at<S: Simd>(self, $x: f32) -> f32 {
                    $value
                }
            }
        };
    }
    function!(Exp, x => exp::<S>(x));
    function!(Atan, x => atan::<S>(x));
    function!(Ln, x => ln::<S>(x));
    function!(Cos, x => cos_sin_turn::<S>(x)[0]);
    function!(Sin, x => cos_sin_turn::<S>(x)[1]);

    struct Map<'a, F>(F, &'a mut [f32]);

    impl<F: Function> Kernel for Map<'_, F> {
        #[inline(always)]
        fn run<S: Simd>(self) {
            for x in self.1.iter_mut() {
                *x = self.0.at::<S>(*x);
            }
        }
    }

    fn one(f: impl Function, x: f32) -> f32 {
        let mut value = [x];
        simd::run(Map(f, &mut value));
        value[0]
    }

    /// Largest error between two bounds: relative to the exact value, or to `scale` where that is larger.
    fn worst(f: impl Function, exact: impl Fn(f64) -> f64, [from, to]: [f64; 2], scale: f64) -> f64 {
        let n = 400_000;
        let x: Vec<f32> = (0..=n).map(|i| (from + (to - from) * f64::from(i) / f64::from(n)) as f32).collect();
        let mut values = x.clone();
        simd::run(Map(f, &mut values));
        let errors = x.iter().zip(values).map(|(&x, value)| {
            let want = exact(f64::from(x));
            let error = (f64::from(value) - want).abs() / want.abs().max(scale);
            assert!(error.is_finite(), "at {x}");
            error
        });
        errors.fold(0.0, f64::max)
    }

    fn for_every_level(check: impl Fn()) {
        Level::available().for_each(|level| level.force(&check));
    }

    const TINY: f64 = f32::MIN_POSITIVE as f64;

    #[test]
    fn exp_is_accurate_over_its_whole_range() {
        for_every_level(|| {
            let error = worst(Exp, f64::exp, [-87.0, 88.7], TINY);
            assert!(error < 2e-7, "{error}");
            assert_eq!((one(Exp, 100.0), one(Exp, -100.0)), (f32::INFINITY, 0.0));
            assert!(one(Exp, f32::NAN).is_nan());
            assert_eq!(one(Exp, 0.0), 1.0);
        });
    }

    #[test]
    fn atan_is_accurate() {
        for_every_level(|| {
            let error = worst(Atan, f64::atan, [-20.0, 20.0], TINY).max(worst(Atan, f64::atan, [-1e-3, 1e-3], TINY));
            assert!(error < 2e-7, "{error}");
            assert_eq!(one(Atan, f32::INFINITY), std::f32::consts::FRAC_PI_2);
            assert!(one(Atan, f32::NAN).is_nan());
        });
    }

    /// Over the uniform numbers that normals are made of, from 2^-25 to 1.
    #[test]
    fn ln_cos_and_sin_are_accurate() {
        let turn = std::f64::consts::TAU;
        for_every_level(|| {
            let error = worst(Ln, f64::ln, [f64::from(f32::EPSILON) / 4.0, 1.0], TINY);
            assert!(error < 3e-7, "{error}");
            assert_eq!(one(Ln, 1.0), 0.0);
            let cos = worst(Cos, |f| (turn * f).cos(), [0.0, 1.0], 1.0);
            let sin = worst(Sin, |f| (turn * f).sin(), [0.0, 1.0], 1.0);
            assert!(cos < 2e-7 && sin < 2e-7, "{cos}, {sin}");
        });
    }
}

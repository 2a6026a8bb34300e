// Elementary functions with the accuracy of float32.
//
// WGSL lets a device be off by 4096 ULP in atan and by 2^-11 in sin and cos; on software Vulkan the logarithm near 1
// is off as well. These are within a few ULP wherever +, * and / are. The native engine has polynomials of its own
// (`src/kernel/math.rs`), so the engines agree to rounding and not bit for bit. Largest errors against float64,
// measured on llvmpipe by `src/engine/gpu/tests/elementary.rs`: exponential 1.74 ULP, arctangent 2.41, natural_log
// 1.76, cos_sin_turn 1.78.

// exp(x) = 2^n exp(r), n the nearest integer to x / ln 2; exp(r) by its Taylor series to r^7, |r| <= ln 2 / 2.
fn exponential(x: vec4<f32>) -> vec4<f32> {
    // Beyond these the result is infinite or zero in float32.
    let bounded = clamp(x, vec4<f32>(-104.0), vec4<f32>(89.0));
    let n = floor(fma(bounded, vec4<f32>(1.44269504), vec4<f32>(0.5)));
    // ln 2 in two parts, 355/512 and the rest. The product with the first is exact, and made of integers because a
    // compiler would merge two products of floats with n into one that is not.
    let r = fma(n, vec4<f32>(2.12194440e-4), bounded - vec4<f32>(vec4<i32>(n) * 355) * 0.001953125);
    var p = fma(r, vec4<f32>(1.98412698e-4), vec4<f32>(1.38888889e-3));
    p = fma(p, r, vec4<f32>(8.33333333e-3));
    p = fma(p, r, vec4<f32>(4.16666667e-2));
    p = fma(p, r, vec4<f32>(1.66666667e-1));
    p = fma(p, r, vec4<f32>(0.5));
    p = fma(p, r * r, r) + 1.0;
    // In two steps, since 2^n alone leaves the range of float32 before the result does.
    let half = vec4<i32>(n) >> vec4<u32>(1u);
    let rest = vec4<i32>(n) - half;
    let value = p * power_of_two(half) * power_of_two(rest);
    // clamp may turn NaN into a bound, and compilers take x != x for false.
    let magnitude = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return select(value, x, magnitude > vec4<u32>(0x7f800000u));
}

fn power_of_two(n: vec4<i32>) -> vec4<f32> {
    return bitcast<vec4<f32>>((n + 127) << vec4<u32>(23u));
}

fn arctangent(x: vec4<f32>) -> vec4<f32> {
    let a = abs(x);
    // |x| > 1: pi/2 - atan(1/x). Then t > tan(pi/8): pi/4 + atan((t - 1) / (t + 1)).
    let large = a > vec4<f32>(1.0);
    let t = select(a, 1.0 / a, large);
    let middle = t > vec4<f32>(0.41421356);
    let u = select(t, (t - 1.0) / (t + 1.0), middle);
    let z = u * u;
    // Interpolates (atan(u) / u - 1) / u^2 at the Chebyshev nodes of the remaining interval; relative error 2.5e-9.
    var p = fma(z, vec4<f32>(-0.0645172187), vec4<f32>(0.1074366833));
    p = fma(p, z, vec4<f32>(-0.1426394975));
    p = fma(p, z, vec4<f32>(0.1999954031));
    p = fma(p, z, vec4<f32>(-0.3333333176));
    var y = fma(p * z, u, u);
    y += select(vec4<f32>(0.0), vec4<f32>(0.785398163), middle);
    y = select(y, 1.57079633 - y, large);
    return select(y, -y, x < vec4<f32>(0.0));
}

// ln(x) for normal x > 0: exponent and mantissa m in [sqrt(1/2), sqrt(2)), then 2 atanh(s) with s = (m - 1) / (m + 1)
// by its series to s^9. Infinity and NaN stay as they are.
fn natural_log(x: vec4<f32>) -> vec4<f32> {
    let bits = bitcast<vec4<i32>>(x) - 0x3f3504f3;
    let exponent = bits >> vec4<u32>(23u);
    let m = bitcast<vec4<f32>>((bits & vec4<i32>(0x7fffff)) + 0x3f3504f3);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    var p = fma(z, vec4<f32>(0.22222222), vec4<f32>(0.28571429));
    p = fma(z, p, vec4<f32>(0.4));
    p = z * fma(z, p, vec4<f32>(0.66666667));
    let n = vec4<f32>(exponent);
    let value = fma(n, vec4<f32>(0.693359375), fma(s, p, 2.0 * s) - n * 2.12194440e-4);
    let magnitude = bitcast<vec4<u32>>(x) & vec4<u32>(0x7fffffffu);
    return select(value, x, magnitude >= vec4<u32>(0x7f800000u));
}

// (cos, sin) of 2 pi f, 0 <= f <= 1: Taylor series to a^9 and a^10, |a| <= pi / 4. The distance to the nearest quarter
// turn is exact.
fn cos_sin_turn(f: f32) -> vec2<f32> {
    let quarter = floor(fma(f, 4.0, 0.5));
    let a = 6.28318531 * fma(quarter, -0.25, f);
    let z = a * a;
    let sine = fma(a * z, fma(z, fma(z, fma(z, 2.75573192e-6, -1.98412698e-4), 8.33333333e-3), -1.66666667e-1), a);
    let cosine =
        fma(z, fma(z, fma(z, fma(z, fma(z, -2.75573192e-7, 2.48015873e-5), -1.38888889e-3), 4.16666667e-2), -0.5), 1.0);
    switch u32(quarter) & 3u {
        case 1u: { return vec2<f32>(-sine, cosine); }
        case 2u: { return vec2<f32>(-cosine, -sine); }
        case 3u: { return vec2<f32>(sine, -cosine); }
        default: { return vec2<f32>(cosine, sine); }
    }
}

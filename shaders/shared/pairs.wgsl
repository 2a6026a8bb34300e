// Sums of which nothing is lost: numbers as sums of two floats, the second being what rounding took from the first.
// Needs a `launch` with `rows`.

// The same value. Compilers that reckon as with real numbers take it for another: no launch has so many rows.
fn opaque(value: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(value) ^ vec4<u32>(launch.rows >> 31u));
}

// What rounding took from `sum = x + y`, exactly (D. Knuth, "The Art of Computer Programming", volume 2, 4.2.2).
fn lost_by(x: vec4<f32>, y: vec4<f32>, sum: vec4<f32>) -> vec4<f32> {
    let z = opaque(sum - x);
    return (x - opaque(sum - z)) + (y - z);
}

// Products of numbers as sums of two floats. Needs `pairs.wgsl`.

struct Pairs {
    high: vec4<f32>,
    low: vec4<f32>,
}

// The same number four times.
fn all_four(pair: vec2<f32>) -> Pairs {
    return Pairs(vec4<f32>(pair.x), vec4<f32>(pair.y));
}

// The upper 12 bits of 24, and the others: products of halves are exact.
fn upper_half(x: vec4<f32>) -> vec4<f32> {
    return bitcast<vec4<f32>>(bitcast<vec4<u32>>(x) & vec4<u32>(0xfffff000u));
}

// What rounding took from `product = x * y` (T. J. Dekker, "A floating-point technique for extending the available
// precision", 1971). Not by `fma`, which may round twice.
fn lost_of(x: vec4<f32>, y: vec4<f32>, product: vec4<f32>) -> vec4<f32> {
    let u = upper_half(x);
    let v = upper_half(y);
    return (((u * v - product) + u * (y - v)) + (x - u) * v) + (x - u) * (y - v);
}

// sum + x y
fn add_product(sum: Pairs, x: vec4<f32>, y: Pairs) -> Pairs {
    let product = opaque(x * y.high);
    let high = opaque(sum.high + product);
    let lost = lost_by(sum.high, product, high) + (lost_of(x, y.high, product) + x * y.low);
    return Pairs(high, sum.low + lost);
}

// x y
fn times(x: Pairs, y: Pairs) -> Pairs {
    let product = opaque(x.high * y.high);
    return Pairs(product, lost_of(x.high, y.high, product) + (x.high * y.low + x.low * y.high));
}

// 2 / x; zero for zero.
fn twice_reciprocal(x: Pairs) -> Pairs {
    let high = opaque(2.0 / x.high);
    let product = opaque(high * x.high);
    let rest = ((2.0 - product) - lost_of(high, x.high, product)) - high * x.low;
    let zero = x.high == vec4<f32>();
    return Pairs(select(high, vec4<f32>(), zero), select(rest / x.high, vec4<f32>(), zero));
}

// The sum of all four, in each place.
fn sum_of_four(x: Pairs) -> Pairs {
    let two = opaque(x.high + x.high.yxwz);
    let lost_of_two = (x.low + x.low.yxwz) + lost_by(x.high, x.high.yxwz, two);
    let four = opaque(two + two.zwxy);
    return Pairs(four, (lost_of_two + lost_of_two.zwxy) + lost_by(two, two.zwxy, four));
}

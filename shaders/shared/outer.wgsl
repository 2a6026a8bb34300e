// One quad of samples of a gradient of weights: an output's `l` times four inputs, sample after sample.

fn add_quad(start: vec4<f32>, l: vec4<f32>, r0: vec4<f32>, r1: vec4<f32>, r2: vec4<f32>, r3: vec4<f32>) -> vec4<f32> {
    var sum = fma(vec4<f32>(l.x), vec4<f32>(r0.x, r1.x, r2.x, r3.x), start);
    sum = fma(vec4<f32>(l.y), vec4<f32>(r0.y, r1.y, r2.y, r3.y), sum);
    sum = fma(vec4<f32>(l.z), vec4<f32>(r0.z, r1.z, r2.z, r3.z), sum);
    return fma(vec4<f32>(l.w), vec4<f32>(r0.w, r1.w, r2.w, r3.w), sum);
}

// Adds the samples of a quad of gradients of an output.
fn add_bias(start: f32, l: vec4<f32>) -> f32 {
    var sum = start + l.x;
    sum = sum + l.y;
    sum = sum + l.z;
    return sum + l.w;
}

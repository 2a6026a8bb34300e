// ReLU, forward and backward, of one quad of samples.

// Lets NaN through, so that a diverged network is seen.
fn rectify(v: vec4<f32>) -> vec4<f32> {
    return select(v, vec4<f32>(), v <= vec4<f32>());
}

// The gradient of what went in, from that of the `activation` that came out.
fn masked(gradient: vec4<f32>, activation: vec4<f32>) -> vec4<f32> {
    return select(vec4<f32>(), gradient, activation > vec4<f32>());
}

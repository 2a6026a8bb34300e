// The log-scale of a coupling, sigma(a) = slope * atan(a); slope 0 stands for sigma(a) = a.

fn sigma(a: vec4<f32>, slope: f32) -> vec4<f32> {
    if (slope == 0.0) { return a; }
    return slope * arctangent(a);
}

fn sigma_derivative(a: vec4<f32>, slope: f32) -> vec4<f32> {
    if (slope == 0.0) { return vec4<f32>(1.0); }
    return slope / fma(a, a, vec4<f32>(1.0));
}

// The chain of affine maps v <- v * exp(sigma(s)) + t of one column of one quad of samples; see `chain.wgsl`. Needs the
// binding `arena`, `launch.tile`, `elementary.wgsl`.

// The log-scale of a map, sigma(a) = SLOPE * atan(a); 0 stands for sigma(a) = a.
override SLOPE: f32 = 0.0;

fn sigma(a: vec4<f32>) -> vec4<f32> {
    if (SLOPE == 0.0) { return a; }
    return SLOPE * arctangent(a);
}

fn sigma_derivative(a: vec4<f32>) -> vec4<f32> {
    if (SLOPE == 0.0) { return vec4<f32>(1.0); }
    return SLOPE / fma(a, a, vec4<f32>(1.0));
}

fn couple_column(chain: Chain, start: Through, st: u32) -> Through {
    let stride = launch.tile.stride;
    var now = start;
    for (var i = 0u; i < chain.count; i++) {
        let link = link_at(chain.links + i * LINK_WORDS);
        let log_scale = sigma(arena[st + link.first * stride]);
        now.v = fma(now.v, exponential(log_scale), arena[st + (link.first + link.step) * stride]);
        now.log_det += log_scale;
    }
    return now;
}

fn uncouple(link: Link, v: vec4<f32>, st: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    let log_scale = sigma(arena[st + link.first * stride]);
    return (v - arena[st + (link.first + link.step) * stride]) * exponential(-log_scale);
}

fn uncouple_column(chain: Chain, value: vec4<f32>, st: u32) -> vec4<f32> {
    var v = value;
    for (var left = chain.count; left > 0u; left--) {
        v = uncouple(link_at(chain.links + (left - 1u) * LINK_WORDS), v, st);
    }
    return v;
}

// Gradient of what the inverse of a map read, of x, which it made; writes those of its parameters.
fn uncouple_back(link: Link, x: vec4<f32>, d_x: vec4<f32>, st: u32, d_st: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    let s = arena[st + link.first * stride];
    let back = d_x * exponential(-sigma(s));
    arena[d_st + link.first * stride] = -(d_x * x) * sigma_derivative(s);
    arena[d_st + (link.first + link.step) * stride] = -back;
    return back;
}

// The node's own map.
fn uncouple_node(chain: Chain, own: Link, value: vec4<f32>, st: u32) -> vec4<f32> {
    return uncouple(own, value, st);
}

// On the way along the chain the value that enters a link waits in the gradient's place of its s, and exp(sigma(s)) in
// that of its t.
fn couple_back(chain: Chain, x: vec4<f32>, g: vec4<f32>, d_log_det: vec4<f32>, st: u32, d_st: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var v = x;
    for (var i = 0u; i < chain.count; i++) {
        let link = link_at(chain.links + i * LINK_WORDS);
        let s = link.first * stride;
        let t = (link.first + link.step) * stride;
        let e = exponential(sigma(arena[st + s]));
        arena[d_st + s] = v;
        arena[d_st + t] = e;
        v = fma(v, e, arena[st + t]);
    }
    var back = g;
    for (var left = chain.count; left > 0u; left--) {
        let link = link_at(chain.links + (left - 1u) * LINK_WORDS);
        let s = link.first * stride;
        let t = (link.first + link.step) * stride;
        let through = back * arena[d_st + t];
        let d_scale = fma(through, arena[d_st + s], d_log_det);
        arena[d_st + s] = d_scale * sigma_derivative(arena[st + s]);
        arena[d_st + t] = back;
        back = through;
    }
    return back;
}

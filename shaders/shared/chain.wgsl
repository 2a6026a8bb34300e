// The chain of affine maps of one column of one quad of samples, forward and backward. Needs the bindings `arena` and
// `tables`, `launch.tile`, `scale.wgsl`.

struct Chain {
    links: u32, // where the links begin in the tables: rows of s and of t within the stage's buffers
    count: u32,
}

fn chain_at(chains: u32, column: u32) -> Chain {
    return Chain(tables[chains + 2u * column], tables[chains + 2u * column + 1u]);
}

struct Through {
    v: vec4<f32>,
    log_det: vec4<f32>,
}

// v <- v * exp(sigma(s)) + t along the chain, and `log_det` plus the sum of sigma(s). `st`: arena index of the first
// row.
fn couple_column(chain: Chain, start: Through, st: u32, slope: f32) -> Through {
    let stride = launch.tile.stride;
    var now = start;
    for (var i = 0u; i < chain.count; i++) {
        let s = st + tables[chain.links + 2u * i] * stride;
        let t = st + tables[chain.links + 2u * i + 1u] * stride;
        let log_scale = sigma(arena[s], slope);
        now.v = fma(now.v, exponential(log_scale), arena[t]);
        now.log_det += log_scale;
    }
    return now;
}

// Gradients of s and t, to the rows from arena index `d_st` on, and of the column, from the column's value `x`, and the
// gradients `g` of the result and of the log-determinant. On the way along the chain the value that enters a link waits
// in the gradient's place of its s, and exp(sigma(s)) in that of its t.
fn couple_back(chain: Chain, x: vec4<f32>, g: vec4<f32>, d_log_det: vec4<f32>, st: u32, d_st: u32, slope: f32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var v = x;
    for (var i = 0u; i < chain.count; i++) {
        let s = tables[chain.links + 2u * i] * stride;
        let t = tables[chain.links + 2u * i + 1u] * stride;
        let e = exponential(sigma(arena[st + s], slope));
        arena[d_st + s] = v;
        arena[d_st + t] = e;
        v = fma(v, e, arena[st + t]);
    }
    var back = g;
    for (var left = chain.count; left > 0u; left--) {
        let s = tables[chain.links + 2u * (left - 1u)] * stride;
        let t = tables[chain.links + 2u * (left - 1u) + 1u] * stride;
        let through = back * arena[d_st + t];
        let d_scale = fma(through, arena[d_st + s], d_log_det);
        arena[d_st + s] = d_scale * sigma_derivative(arena[st + s], slope);
        arena[d_st + t] = back;
        back = through;
    }
    return back;
}

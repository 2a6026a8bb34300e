// Backward of `couple.wgsl`. One thread: one column of one quad of samples. On the way along the chain, the value that
// enters a link waits in the gradient's place of its s, and exp(sigma(s)) in that of its t.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    d_to: u32,
    d_log_det: u32,
    d_x: u32,
    d_st: u32,
    chains: u32, // per column: where its links begin in the tables, and their number
    slope: f32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let column = id.y;
    let stride = launch.tile.stride;
    let st = launch.st * stride + quad;
    let d_st = launch.d_st * stride + quad;
    let links = tables[launch.chains + 2u * column];
    let count = tables[launch.chains + 2u * column + 1u];
    var v = arena[(launch.x + column) * stride + quad];
    for (var i = 0u; i < count; i++) {
        let s = tables[links + 2u * i] * stride;
        let t = tables[links + 2u * i + 1u] * stride;
        let e = exponential(sigma(arena[st + s], launch.slope));
        arena[d_st + s] = v;
        arena[d_st + t] = e;
        v = fma(v, e, arena[st + t]);
    }
    let d_log_det = arena[launch.d_log_det * stride + quad];
    var g = arena[(launch.d_to + column) * stride + quad];
    for (var left = count; left > 0u; left--) {
        let s = tables[links + 2u * (left - 1u)] * stride;
        let t = tables[links + 2u * (left - 1u) + 1u] * stride;
        let through = g * arena[d_st + t];
        let d_scale = fma(through, arena[d_st + s], d_log_det);
        arena[d_st + s] = d_scale * sigma_derivative(arena[st + s], launch.slope);
        arena[d_st + t] = g;
        g = through;
    }
    arena[(launch.d_x + column) * stride + quad] = g;
}

// to = Q from, or Q^T from: `out_step` and `in_step` are the distances in Q from one output or input to the next.
// Workgroup: 16 quads of samples x 8 groups of 4 outputs.
struct Launch {
    tile: TileJob,
    input: u32,
    to: u32,
    columns: u32,
    q: u32,
    out_step: u32,
    in_step: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(1) var<storage, read> weights: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = wg.y * 16u + thread % 16u;
    let o = (wg.x * 8u + thread / 16u) * 4u;
    if (quad >= launch.tile.quads || o >= launch.columns) { return; }
    let outputs = four_from(o, launch.columns);
    let stride = launch.tile.stride;
    let at = outputs * launch.out_step + launch.q;
    let sum = dense(zero_four(), at, launch.in_step, launch.input * stride + quad, launch.columns);
    store_four(sum, (launch.to + o) * stride + quad, launch.columns - o);
}

// First part of the gradient of the reflections: dQ of every mixing, summed over the slices in fixed order.
// One thread: one element; grid y: mixings.
struct Launch {
    mixes: u32,  // where the mixings begin in the tables: dim, Q, reflections
    first: u32,
    slices: u32,
    length: u32, // length of one copy of the gradients
    pitch: u32,  // floats of scratch per mixing
}
var<immediate> launch: Launch;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>; // per mixing: dQ (N, N), skew (N, N), product (N)

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let mix = launch.mixes + (launch.first + wg.y) * 3u;
    let n = tables[mix];
    let i = wg.x * 256u + thread;
    if (i >= n * n) { return; }
    var sum = 0.0;
    for (var s = 0u; s < launch.slices; s++) {
        sum += partials[s * launch.length + tables[mix + 1u] + i];
    }
    scratch[(launch.first + wg.y) * launch.pitch + i] = sum;
}

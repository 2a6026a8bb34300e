// Second part of the gradient of the reflections: B = dQ Q^T - Q dQ^T. One thread: one element; grid y: mixings.
struct Launch {
    mixes: u32, // where the mixings begin in the tables: dim, Q, reflections
    first: u32,
    pitch: u32, // floats of scratch per mixing
}
var<immediate> launch: Launch;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>; // per mixing: dQ (N, N), skew (N, N), product (N)

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let mix = launch.mixes + (launch.first + wg.y) * 3u;
    let n = tables[mix];
    let i = wg.x * 256u + thread;
    if (i >= n * n) { return; }
    let q = tables[mix + 1u];
    let d = (launch.first + wg.y) * launch.pitch;
    let a = (i / n) * n;
    let b = (i % n) * n;
    var forth = 0.0;
    var back = 0.0;
    for (var k = 0u; k < n; k++) {
        forth = fma(scratch[d + a + k], weights[q + b + k], forth);
        back = fma(scratch[d + b + k], weights[q + a + k], back);
    }
    scratch[d + n * n + i] = forth - back;
}

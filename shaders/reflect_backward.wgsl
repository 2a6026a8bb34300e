// Last part of the gradient of the reflections, from B = dQ Q^T - Q dQ^T.
//
// With Q = H_1 M, dH_1 = dQ M^T, and M = H_1 Q; so everything the vector v of H_1 needs is A = dQ Q^T:
// d v = beta (A - A^T) v, beta = 2 / (v . v). The same A for the rest M is H_1 A H_1, and B = A - A^T is skew, so that
// H_1 B H_1 = B + beta (v p^T - p v^T) with p = B v. One product and one update of B per reflection, H_1 first.
// Workgroup: one mixing, 32 rows at a time x 8 threads. One dispatch does the reflections from `begin`, `count` of
// them.
struct Launch {
    mixes: u32,  // where the mixings begin in the tables: dim, Q, reflections
    first: u32,
    pitch: u32,  // floats of scratch per mixing
    begin: u32,
    count: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>; // per mixing: dQ (N, N), skew (N, N), product (N)
var<workgroup> dots: array<vec2<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let mix = launch.mixes + (launch.first + wg.x) * 3u;
    let n = tables[mix];
    let b = (launch.first + wg.x) * launch.pitch + n * n;
    let product = b + n * n;
    let lane = thread % 32u;
    let part = thread / 32u;
    for (var r = launch.begin; r < launch.begin + launch.count; r++) {
        let v = tables[mix + 2u] + r * n;
        var norm = 0.0;
        for (var i0 = 0u; i0 < n; i0 += 32u) {
            let i = i0 + lane;
            // (-(B v)_i, v . v): B is skew, and reading along rows puts neighbouring threads on neighbouring elements.
            var sums = vec2<f32>();
            for (var j = part; j < n; j += 8u) {
                let vj = weights[v + j];
                sums = fma(vec2<f32>(vj), vec2<f32>(scratch[b + j * n + min(i, n - 1u)], vj), sums);
            }
            dots[thread] = sums;
            workgroupBarrier();
            var total = dots[lane];
            for (var p = 1u; p < 8u; p++) {
                total += dots[lane + 32u * p];
            }
            workgroupBarrier();
            norm = total.y;
            if (part == 0u && i < n) {
                scratch[product + i] = -total.x;
            }
        }
        storageBarrier();
        // A reflection along nothing is the identity.
        var beta = 0.0;
        if (norm > 0.0) { beta = 2.0 / norm; }
        for (var i = lane; i < n; i += 32u) {
            let vi = weights[v + i];
            let pi = scratch[product + i];
            if (part == 0u) {
                partials[v + i] = beta * pi;
            }
            for (var j = part; j < n; j += 8u) {
                let at = b + j * n + i;
                let change = weights[v + j] * pi - scratch[product + j] * vi;
                scratch[at] = fma(beta, change, scratch[at]);
            }
        }
        storageBarrier();
    }
}

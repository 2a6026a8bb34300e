// Q = H_1 H_2 ... H_N of the trained reflections, the last applied first; a column of Q depends on no other.
// Workgroup: 32 columns x 8 threads that share out the rows; grid (columns, mixings). One dispatch applies `count`
// reflections, the numbers below `end`, so that no dispatch runs for long; the last one writes the panels.
struct Launch {
    mixes: u32, // where the mixings begin in the tables: dim, Q, reflections
    first: u32, // number of the first mixing of this dispatch
    end: u32,   // one more than the number of the first reflection to apply, counted from the last of the mixing
    count: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read_write> panels: array<f32>;
@group(0) @binding(10) var<storage, read> packed_offsets: array<vec2<u32>>;
var<workgroup> dots: array<vec2<f32>, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let mix = launch.mixes + (launch.first + wg.y) * 3u;
    let n = tables[mix];
    let q = tables[mix + 1u];
    let reflections = tables[mix + 2u];
    let column = wg.x * 32u + thread % 32u;
    let part = thread / 32u;
    let live = column < n;
    if (live && launch.end == n) {
        for (var k = part; k < n; k += 8u) {
            weights[q + k * n + column] = select(0.0, 1.0, k == column);
        }
    }
    for (var i = 0u; i < launch.count; i++) {
        let v = reflections + (launch.end - 1u - i) * n;
        // (v . column, v . v)
        var sums = vec2<f32>();
        if (live) {
            for (var k = part; k < n; k += 8u) {
                let vk = weights[v + k];
                sums = fma(vec2<f32>(vk), vec2<f32>(weights[q + k * n + column], vk), sums);
            }
        }
        dots[thread] = sums;
        workgroupBarrier();
        var total = dots[thread % 32u];
        for (var p = 1u; p < 8u; p++) {
            total += dots[thread % 32u + 32u * p];
        }
        workgroupBarrier();
        if (live && total.y > 0.0) {
            let factor = -2.0 * total.x / total.y;
            for (var k = part; k < n; k += 8u) {
                let at = q + k * n + column;
                weights[at] = fma(factor, weights[v + k], weights[at]);
            }
        }
    }
    if (live && launch.count == launch.end) {
        for (var k = part; k < n; k += 8u) {
            let at = q + k * n + column;
            write_panels(at, weights[at]);
        }
    }
}

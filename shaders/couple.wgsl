// Every column through its chain of affine maps, v <- v * exp(sigma(s)) + t; adds the sum of sigma(s) to log_det, or
// writes it there.
// Workgroup: 8 quads of samples x 16 groups of threads that share out the columns.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    to: u32,
    log_det: u32,
    columns: u32,
    chains: u32, // per column: where its links begin in the tables, and their number
    slope: f32,
    add: u32,    // 1: add to log_det; 0: write it
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
var<workgroup> parts: array<vec4<f32>, 128>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread % 8u;
    let group = thread / 8u;
    let wanted = wg.x * 8u + lane;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let stride = launch.tile.stride;
    let st = launch.st * stride + quad;
    var log_det = vec4<f32>();
    if (live) {
        for (var column = group; column < launch.columns; column += 16u) {
            var link = tables[launch.chains + 2u * column];
            var v = arena[(launch.x + column) * stride + quad];
            for (var left = tables[launch.chains + 2u * column + 1u]; left > 0u; left--) {
                let log_scale = sigma(arena[st + tables[link] * stride], launch.slope);
                v = fma(v, exponential(log_scale), arena[st + tables[link + 1u] * stride]);
                log_det += log_scale;
                link += 2u;
            }
            arena[(launch.to + column) * stride + quad] = v;
        }
    }
    parts[thread] = log_det;
    workgroupBarrier();
    if (group == 0u && live) {
        var sum = parts[lane];
        for (var g = 1u; g < 16u; g++) {
            sum += parts[g * 8u + lane];
        }
        let at = launch.log_det * stride + quad;
        if (launch.add == 1u) { sum += arena[at]; }
        arena[at] = sum;
    }
}

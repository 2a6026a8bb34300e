// loss = |z|^2 / 2 - log_det per sample, and its gradients for the mean over the batch. Every workgroup leaves the sum of
// its losses; the host adds these up, in an order that no tile changes.
// Workgroup: 8 quads of samples x 16 groups of threads that share out the columns.
struct Launch {
    tile: TileJob,
    z: u32,
    log_det: u32,
    loss: u32,
    d_z: u32,
    d_log_det: u32,
    columns: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;
var<workgroup> parts: array<vec4<f32>, 128>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread % 8u;
    let group = thread / 8u;
    let wanted = wg.x * 8u + lane;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let stride = launch.tile.stride;
    var squares = vec4<f32>();
    if (live) {
        for (var column = group; column < launch.columns; column += 16u) {
            let z = arena[(launch.z + column) * stride + quad];
            squares = fma(z, z, squares);
            arena[(launch.d_z + column) * stride + quad] = z * launch.tile.inverse_batch;
        }
    }
    parts[thread] = squares;
    workgroupBarrier();
    if (group == 0u) {
        var loss = vec4<f32>();
        if (live) {
            var sum = parts[lane];
            for (var g = 1u; g < 16u; g++) {
                sum += parts[g * 8u + lane];
            }
            loss = fma(sum, vec4<f32>(0.5), -arena[launch.log_det * stride + quad]);
            arena[launch.loss * stride + quad] = loss;
            arena[launch.d_log_det * stride + quad] = vec4<f32>(-launch.tile.inverse_batch);
        }
        let exists = vec4<u32>(wanted * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
        parts[lane] = select(vec4<f32>(), loss, exists);
    }
    workgroupBarrier();
    if (thread == 0u && launch.tile.loss_cell != NO_LOSS) {
        var sum = parts[0];
        for (var l = 1u; l < 8u; l++) {
            sum += parts[l];
        }
        scratch[launch.tile.loss_cell + launch.tile.first / 32u + wg.x] = (sum.x + sum.y) + (sum.z + sum.w);
    }
}

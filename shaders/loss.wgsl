// loss = |z|^2 / 2 - log_det per sample, and its gradients for the mean over the batch.
// Workgroup: 8 quads of samples x 16 groups of threads that share out the columns.
struct Launch {
    tile: Tile,
    z: u32,
    log_det: u32,
    loss: u32,
    d_z: u32,
    d_log_det: u32,
    columns: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
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
    if (group == 0u && live) {
        var sum = parts[lane];
        for (var g = 1u; g < 16u; g++) {
            sum += parts[g * 8u + lane];
        }
        let log_det = arena[launch.log_det * stride + quad];
        arena[launch.loss * stride + quad] = fma(sum, vec4<f32>(0.5), -log_det);
        arena[launch.d_log_det * stride + quad] = vec4<f32>(-launch.tile.inverse_batch);
    }
}

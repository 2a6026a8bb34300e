// loss = |z|^2 / 2 - log_det per sample, and its gradients for the mean over the batch. Every workgroup leaves the sum
// of its losses; the host adds these up, in an order that no tile changes. Workgroup: 8 quads of samples x 16 groups of
// threads that share out the columns.
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

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread % 8u;
    let group = thread / 8u;
    let wanted = wg.x * 8u + lane;
    let live = wanted < launch.tile.quads;
    let stride = launch.tile.stride;
    var squares = vec4<f32>();
    if (live) { squares = seed_columns(launch.z, launch.d_z, launch.columns, wanted, group); }
    let sum = over_groups(squares, thread);
    workgroupBarrier();
    if (group == 0u) {
        var loss = vec4<f32>();
        if (live) {
            let log_det = arena[launch.log_det * stride + wanted];
            loss = put_loss(sum, log_det, launch.loss * stride + wanted, launch.d_log_det * stride + wanted);
        }
        parts[lane] = existing(loss, wanted);
    }
    workgroupBarrier();
    if (thread == 0u) { put_loss_sum(wg.x); }
}

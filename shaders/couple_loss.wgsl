// The last coupling (`couple.wgsl`), the loss (`loss.wgsl`) and where it is asked for the coupling's backward
// (`couple_backward.wgsl`), in one dispatch: all three need nothing but a thread's own columns and the log-determinant.
// Workgroup: 8 quads of samples x 16 groups of threads that share out the columns.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    z: u32,
    log_det: u32,
    loss: u32,
    d_z: u32,
    d_log_det: u32,
    columns: u32,
    chains: u32, // where the columns' chains begin in the tables
    add: u32,    // 1: add to log_det; 0: write it
    d_x: u32,    // or NONE: no backward
    d_st: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let lane = thread % 8u;
    let group = thread / 8u;
    let wanted = wg.x * 8u + lane;
    let live = wanted < launch.tile.quads;
    let stride = launch.tile.stride;
    let coupling = Coupling(launch.x, launch.st, launch.z, launch.columns, launch.chains);
    var log_det = vec4<f32>();
    var squares = vec4<f32>();
    if (live) {
        log_det = couple_columns(coupling, wanted, group);
        squares = seed_columns(launch.z, launch.d_z, launch.columns, wanted, group);
    }
    var total = over_groups(log_det, thread);
    if (group == 0u && live) {
        total = put_log_det(total, launch.log_det * stride + wanted, launch.add);
    }
    workgroupBarrier();
    let sum = over_groups(squares, thread);
    workgroupBarrier();
    if (group == 0u) {
        var loss = vec4<f32>();
        if (live) {
            loss = put_loss(sum, total, launch.loss * stride + wanted, launch.d_log_det * stride + wanted);
        }
        parts[lane] = existing(loss, wanted);
    }
    workgroupBarrier();
    if (thread == 0u) { put_loss_sum(wg.x); }
    if (live && launch.d_x != NONE) {
        let d_log_det = vec4<f32>(-launch.tile.inverse_batch);
        for (var column = group; column < launch.columns; column += 16u) {
            let x = arena[(launch.x + column) * stride + wanted];
            let g = arena[(launch.d_z + column) * stride + wanted];
            let chain = chain_at(launch.chains + column * CHAIN_WORDS);
            let st = launch.st * stride + wanted;
            let d_st = launch.d_st * stride + wanted;
            arena[(launch.d_x + column) * stride + wanted] = couple_back(chain, x, g, d_log_det, st, d_st);
        }
    }
}

// A coupling (`couple.wgsl`), then the mixing of the next block (`mix.wgsl`; of two lanes, both), in one dispatch.
// Workgroup: 8 quads of samples x 16 groups of threads that share out the columns.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    to: u32,
    log_det: u32,
    columns: u32,
    chains: u32, // where the columns' chains begin in the tables
    add: u32,    // 1: add to log_det; 0: write it
    mixed: u32,
    split: u32,  // columns of the first lane, or all
    panel0: u32,
    panel1: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let wanted = wg.x * 8u + thread % 8u;
    let live = wanted < launch.tile.quads;
    let group = thread / 8u;
    let coupling = Coupling(launch.x, launch.st, launch.to, launch.columns, launch.chains);
    var log_det = vec4<f32>();
    if (live) { log_det = couple_columns(coupling, wanted, group); }
    let sum = over_groups(log_det, thread);
    if (thread < 8u && live) { put_log_det(sum, launch.log_det * launch.tile.stride + wanted, launch.add); }
    storageBarrier();
    let quad = min(wanted, launch.tile.quads - 1u);
    let mixings = Mixings(launch.to, launch.mixed, launch.columns, launch.split, launch.panel0, launch.panel1);
    run_mixings(mixings, quad, group, 16u, live);
}

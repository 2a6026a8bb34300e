// What lies between the networks of two stages, backwards and in one dispatch: the slots of the later stage to d_mixed
// (`slot_sum.wgsl`), its mixing to d_to (`mix.wgsl`; of two lanes, both), the coupling of the earlier stage
// (`couple_backward.wgsl`).
// Workgroup: 8 quads of samples x 32 groups of threads that share out the columns.
struct Launch {
    tile: TileJob,
    slots: u32,
    lists: u32,   // per column: where its list of slot rows begins in the tables, and its length
    d_mixed: u32,
    d_to: u32,    // d_mixed if there is no mixing
    split: u32,   // columns of the first lane, or all
    panel0: u32,  // or NONE: no mixing
    panel1: u32,
    columns: u32,
    x: u32,
    st: u32,
    d_log_det: u32,
    d_x: u32,
    d_st: u32,
    chains: u32,  // where the columns' chains begin in the tables
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let wanted = wg.x * 8u + thread % 8u;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let group = thread / 8u;
    let stride = launch.tile.stride;
    if (live) {
        for (var column = group; column < launch.columns; column += 32u) {
            sum_slots(launch.lists, column, launch.slots, launch.d_mixed, quad);
        }
    }
    if (launch.panel0 != NONE) {
        storageBarrier();
        let mixings =
            Mixings(launch.d_mixed, launch.d_to, launch.columns, launch.split, launch.panel0, launch.panel1);
        run_mixings(mixings, quad, group, 32u, live);
        storageBarrier();
    }
    if (live) {
        let d_log_det = arena[launch.d_log_det * stride + quad];
        let st = launch.st * stride + quad;
        let d_st = launch.d_st * stride + quad;
        for (var column = group; column < launch.columns; column += 32u) {
            let x = arena[(launch.x + column) * stride + quad];
            let g = arena[(launch.d_to + column) * stride + quad];
            let chain = chain_at(launch.chains + column * CHAIN_WORDS);
            arena[(launch.d_x + column) * stride + quad] = couple_back(chain, x, g, d_log_det, st, d_st);
        }
    }
}

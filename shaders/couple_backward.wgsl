// Backward of `couple.wgsl`. One thread: one column of one quad of samples.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    d_to: u32,
    d_log_det: u32,
    d_x: u32,
    d_st: u32,
    chains: u32, // where the columns' chains begin in the tables
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let x = arena[(launch.x + id.y) * stride + quad];
    let g = arena[(launch.d_to + id.y) * stride + quad];
    let d_log_det = arena[launch.d_log_det * stride + quad];
    let chain = chain_at(launch.chains + id.y * CHAIN_WORDS);
    let st = launch.st * stride + quad;
    let d_st = launch.d_st * stride + quad;
    arena[(launch.d_x + id.y) * stride + quad] = couple_back(chain, x, g, d_log_det, st, d_st);
}

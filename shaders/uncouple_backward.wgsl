// Backward of `uncouple.wgsl`, for affine maps, at most one for a column: x = (v - t) exp(-sigma(s)). One thread: one
// column of one quad of samples.
struct Launch {
    tile: TileJob,
    x: u32,
    st: u32,
    d_x: u32,
    d_input: u32,
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
    let d_x = arena[(launch.d_x + id.y) * stride + quad];
    let d_input = (launch.d_input + id.y) * stride + quad;
    let chain = chain_at(launch.chains + id.y * CHAIN_WORDS);
    if (chain.count == 0u) {
        arena[d_input] = d_x;
        return;
    }
    let st = launch.st * stride + quad;
    let d_st = launch.d_st * stride + quad;
    let x = arena[(launch.x + id.y) * stride + quad];
    arena[d_input] = uncouple_back(link_at(chain.links), x, d_x, st, d_st);
}

// Inverse of `couple.wgsl` for given parameters; `x` may be `input`. One thread: one column of one quad of samples.
struct Launch { tile: TileJob, input: u32, x: u32, st: u32, chains: u32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let st = launch.st * stride + quad;
    let value = arena[(launch.input + id.y) * stride + quad];
    let chain = chain_at(launch.chains + id.y * CHAIN_WORDS);
    arena[(launch.x + id.y) * stride + quad] = uncouple_column(chain, value, st);
}

// Inverse of `couple.wgsl` for given parameters, in place. One thread: one column of one quad of samples.
struct Launch { tile: TileJob, x: u32, st: u32, chains: u32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let st = launch.st * stride + quad;
    let at = (launch.x + id.y) * stride + quad;
    arena[at] = uncouple_column(chain_at(launch.chains, id.y), arena[at], st);
}

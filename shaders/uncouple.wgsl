// Inverse of `couple.wgsl` for given s and t: the chains backwards, v <- (v - t) * exp(-sigma(s)), in place.
// One thread: one column of one quad of samples.
struct Launch { tile: TileJob, x: u32, st: u32, chains: u32, slope: f32 }
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
    let links = tables[launch.chains + 2u * id.y];
    var v = arena[at];
    for (var left = tables[launch.chains + 2u * id.y + 1u]; left > 0u; left--) {
        let link = links + 2u * (left - 1u);
        let log_scale = sigma(arena[st + tables[link] * stride], launch.slope);
        v = (v - arena[st + tables[link + 1u] * stride]) * exponential(-log_scale);
    }
    arena[at] = v;
}

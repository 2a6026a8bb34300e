// Sets every element of a buffer to a constant.
struct Launch { tile: TileJob, to: u32, value: f32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    if (id.x >= launch.tile.quads) { return; }
    arena[(launch.to + id.y) * launch.tile.stride + id.x] = vec4<f32>(launch.value);
}

// Adds to d_x what the networks of a stage sent to each column, in fixed order. One thread: one column of one quad.
struct Launch {
    tile: TileJob,
    slots: u32,
    d_x: u32,
    lists: u32, // per column: where its list of slot rows begins in the tables, and its length
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let list = tables[launch.lists + 2u * id.y];
    let count = tables[launch.lists + 2u * id.y + 1u];
    let at = (launch.d_x + id.y) * stride + quad;
    var sum = arena[at];
    for (var i = 0u; i < count; i++) {
        sum += arena[(launch.slots + tables[list + i]) * stride + quad];
    }
    arena[at] = sum;
}

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
    if (id.x >= launch.tile.quads) { return; }
    sum_slots(launch.lists, id.y, launch.slots, launch.d_x, id.x);
}

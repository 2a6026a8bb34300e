// Copies every weight to its places in the panels, from which networks and mixings are computed. One thread: one
// weight.
struct Launch {
    count: u32, // number of weights
    pitch: u32, // threads of one row of the grid
}
var<immediate> launch: Launch;
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(9) var<storage, read_write> panels: array<f32>;
@group(0) @binding(10) var<storage, read> packed_offsets: array<vec2<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.y * launch.pitch + id.x;
    if (i >= launch.count) { return; }
    write_panels(i, weights[i]);
}

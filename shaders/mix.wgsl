// to = Q x, or Q^T x with the transposed panels. Workgroup: 16 quads of samples x 8 groups of 4 outputs.
struct Launch {
    tile: TileJob,
    input: u32,
    to: u32,
    columns: u32,
    panel: u32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = wg.x * 16u + thread % 16u;
    if (quad >= launch.tile.quads) { return; }
    let mixing = Mixing(launch.input, launch.to, launch.columns, launch.panel);
    // One pass: the grid has a group for all outputs.
    run_mixing(mixing, quad, wg.y * 8u + thread / 16u, launch.columns, true);
}

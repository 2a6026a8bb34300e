// First part of the gradient of the reflections: G = dQ of every mixing, summed over the slices in fixed order, into
// the near room. Workgroup: 256 elements; grid (elements, mixings).
struct Launch {
    mixes: u32,  // where the mixings begin in the tables
    first: u32,  // number of the first mixing of this dispatch
    room: u32,   // where in scratch the room of this dispatch begins: two matrices per mixing
    slices: u32,
    length: u32, // length of one copy of the gradients
}
var<immediate> launch: Launch;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read> partials: array<f32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let mix = launch.mixes + (launch.first + wg.y) * MIXING_WORDS;
    let n = mixing_dim(mix);
    let i = wg.x * 256u + thread;
    if (i >= n * n) { return; }
    scratch[launch.room + wg.y * 2u * n * n + i] = sum_of_copies(mixing_q(mix) + i);
}

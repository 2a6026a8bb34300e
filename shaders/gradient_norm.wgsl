// Sums of the squares of the gradient's elements, one per workgroup: the first half of clipping. Slices are added up in
// the order of `adam.wgsl`; which elements meet in which sum depends on nothing but the number of weights.
struct Launch {
    trained: u32, // number of trained weights
    slices: u32,
    length: u32,  // length of one copy of the gradients
    sums: u32,    // number of workgroups
}
var<immediate> launch: Launch;
@group(0) @binding(3) var<storage, read> partials: array<f32>;
@group(0) @binding(11) var<storage, read_write> extras: array<f32>;
var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    var squares = 0.0;
    for (var i = wg.x * 256u + thread; i < launch.trained; i += launch.sums * 256u) {
        let g = sum_of_copies(i);
        squares = fma(g, g, squares);
    }
    let sum = sum_of_group(squares, thread);
    if (thread == 0u) { extras[EXTRA_SUMS + wg.x] = sum; }
}

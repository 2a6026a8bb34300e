// Gradients of the activations of a stage whose nodes are too wide for `networks_packed_backward.wgsl`: d_hidden1 from
// d_st, d_hidden0 from d_hidden1, both zero if ReLU was; then the slots, what the networks of a node send to its
// upper columns. Workgroup: one node x 16 quads of samples; of two networks even groups of threads work for the first,
// odd ones for the second.
struct Launch {
    tile: TileJob,
    hidden0: u32,
    hidden1: u32,
    d_st: u32,
    d_hidden0: u32,
    d_hidden1: u32,
    slots: u32, // or NONE: nobody asks for the gradients of the columns
    nodes: u32, // where the stage's nodes begin in the tables
    first: u32, // number of the first node of this dispatch
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

// A layer backwards through the ReLU before it: gradients of its `n_in` inputs from those of its `n_out` outputs.
fn back(panel: u32, n_in: u32, n_out: u32, d_out: u32, activation: u32, d_in: u32, group: u32, live: bool) {
    let stride = launch.tile.stride;
    for (var k = group * 8u; k < n_in; k += 128u / NETWORKS) {
        let sum = add_arena(zero_eight(), panel + (k / 8u) * 2u * n_out, d_out, n_out);
        if (live) {
            let d = scale_eight(masked_eight(sum, activation + k * stride, n_in - k));
            store_eight(d, d_in + k * stride, n_in - k);
        }
    }
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let node = launch.nodes + (launch.first + wg.y) * NODE_WORDS;
    let wanted = wg.x * 16u + thread % 16u;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let group = thread / 16u;
    let stride = launch.tile.stride;
    let net = net_at(node, group % NETWORKS);
    let h0 = (launch.hidden0 + net.hidden_first) * stride + quad;
    let h1 = (launch.hidden1 + net.hidden_first) * stride + quad;
    let d_st = (launch.d_st + net.sum) * stride + quad;
    let d0 = (launch.d_hidden0 + net.hidden_first) * stride + quad;
    let d1 = (launch.d_hidden1 + net.hidden_first) * stride + quad;
    back(net.back.z, net.hidden, net.outputs, d_st, h1, d1, group / NETWORKS, live);
    storageBarrier();
    back(net.back.y, net.hidden, net.hidden, d1, h0, d0, group / NETWORKS, live);
    if (launch.slots == NONE) { return; }
    storageBarrier();
    let first = net_at(node, 0u);
    let last = net_at(node, NETWORKS - 1u);
    let d_first = (launch.d_hidden0 + first.hidden_first) * stride + quad;
    let d_last = (launch.d_hidden0 + last.hidden_first) * stride + quad;
    for (var k = group * 8u; k < first.upper; k += 128u) {
        let panel = (k / 8u) * 2u * first.hidden;
        var sum = add_arena(zero_eight(), first.back.x + panel, d_first, first.hidden);
        if (NETWORKS == 2u) { sum = add_arena(sum, last.back.x + panel, d_last, last.hidden); }
        if (live) { store_eight(sum, (launch.slots + first.slot + k) * stride + quad, first.upper - k); }
    }
}

// All networks of a stage whose nodes are too wide for `networks_packed.wgsl`: hidden activations go through the arena.
// Workgroup: one network x 16 quads of samples; within it 8 groups of threads share out the outputs of a layer.
struct Launch {
    tile: TileJob,
    x: u32,
    given: u32, // conditions
    st: u32,
    hidden0: u32,
    hidden1: u32,
    nodes: u32, // where the stage's nodes begin in the tables
    first: u32, // number of the first network of this dispatch, counted over the nodes
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let number = launch.first + wg.y;
    let net = net_at(launch.nodes + (number / NETWORKS) * NODE_WORDS, number % NETWORKS);
    let wanted = wg.x * 16u + thread % 16u;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let group = thread / 16u;
    let stride = launch.tile.stride;
    let x = (launch.x + net.upper_first) * stride + quad;
    let h0 = (launch.hidden0 + net.hidden_first) * stride + quad;
    let h1 = (launch.hidden1 + net.hidden_first) * stride + quad;
    let st = (launch.st + net.st) * stride + quad;
    run_first_layer(net, x, launch.given * stride + quad, h0, quad, group, 8u, live);
    storageBarrier();
    run_layer(Layer(net.panel.y, net.hidden, net.hidden, h0, h1, net.dropout + 1u), true, quad, group, 8u, live);
    storageBarrier();
    run_layer(Layer(net.panel.z, net.hidden, net.outputs, h1, st, NONE), false, quad, group, 8u, live);
}

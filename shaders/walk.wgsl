// Inverse of a stage whose networks see the block's input: visits the nodes in order, runs both networks of each on the
// columns inverted so far and inverts the node's lower columns, in place.
// Workgroup: 8 quads of samples x 32 groups of threads that share out the outputs; even groups run s, odd ones t.
struct Launch {
    tile: TileJob,
    x: u32,
    given: u32, // conditions
    st: u32,
    hidden0: u32,
    hidden1: u32,
    nodes: u32, // where the stage's nodes begin in the tables
    walk: u32,  // where the order of the visits begins
    count: u32, // number of nodes
    slope: f32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let wanted = wg.x * 8u + thread % 8u;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let group = thread / 8u;
    let stride = launch.tile.stride;
    for (var i = 0u; i < launch.count; i++) {
        let net = net_at(launch.nodes + tables[launch.walk + i] * NODE_WORDS, group % 2u);
        let x = (launch.x + net.upper_first) * stride + quad;
        let h0 = (launch.hidden0 + net.hidden_first) * stride + quad;
        let h1 = (launch.hidden1 + net.hidden_first) * stride + quad;
        let st = (launch.st + net.st) * stride + quad;
        run_first_layer(net, x, launch.given * stride + quad, h0, group / 2u, 16u, live);
        storageBarrier();
        run_layer(Layer(net.panel.y, net.hidden, net.hidden, h0, h1), true, group / 2u, 16u, live);
        storageBarrier();
        run_layer(Layer(net.panel.z, net.hidden, net.lower, h1, st), false, group / 2u, 16u, live);
        storageBarrier();
        if (live) {
            // The node's rows of s, whichever network this thread ran.
            let s = (launch.st + net.st - (group % 2u) * net.lower) * stride + quad;
            for (var c = group; c < net.lower; c += 32u) {
                let at = (launch.x + net.lower_first + c) * stride + quad;
                let log_scale = sigma(arena[s + c * stride], launch.slope);
                arena[at] = (arena[at] - arena[s + (net.lower + c) * stride]) * exponential(-log_scale);
            }
        }
        storageBarrier();
    }
}

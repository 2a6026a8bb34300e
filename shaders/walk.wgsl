// Inverse of a stage whose networks see the block's input: visits the nodes in order, runs the networks of each on the
// columns inverted so far and inverts of the node's lower columns what can be inverted then, in place.
// Workgroup: 8 quads of samples x 32 groups of threads that share out the outputs; of two networks even groups run the
// first, odd ones the second.
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
    chains: u32, // where the columns' chains begin in the tables
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
        let node = launch.nodes + visit_node(launch.walk + i * VISIT_WORDS) * NODE_WORDS;
        let net = net_at(node, group % NETWORKS);
        let x = (launch.x + net.upper_first) * stride + quad;
        let h0 = (launch.hidden0 + net.hidden_first) * stride + quad;
        let h1 = (launch.hidden1 + net.hidden_first) * stride + quad;
        let st = (launch.st + net.st) * stride + quad;
        let own = group / NETWORKS;
        let groups = 32u / NETWORKS;
        run_first_layer(net, x, launch.given * stride + quad, h0, quad, own, groups, live);
        storageBarrier();
        let middle = Layer(net.panel.y, net.hidden, net.hidden, h0, h1, net.dropout + 1u);
        run_layer(middle, true, quad, own, groups, live);
        storageBarrier();
        run_layer(Layer(net.panel.z, net.hidden, net.outputs, h1, st, NONE), false, quad, own, groups, live);
        storageBarrier();
        if (live) {
            // The node's rows, whichever network this thread ran.
            let first = net_at(node, 0u);
            let per_column = first.outputs / first.lower;
            for (var c = group; c < first.lower; c += 32u) {
                let column = first.lower_first + c;
                let at = (launch.x + column) * stride + quad;
                let link = Link(first.st + c * per_column, first.outputs);
                let chain = chain_at(launch.chains + column * CHAIN_WORDS);
                arena[at] = uncouple_node(chain, link, arena[at], launch.st * stride + quad);
            }
        }
        storageBarrier();
    }
}

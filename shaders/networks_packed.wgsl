// The networks of a stage. Workgroup: one network of each node of a pack x QUADS quads of samples; the pack's hidden
// outputs are shared out among groups of QUADS threads, eight for each. Hidden activations stay in the workgroup.
struct Launch {
    tile: TileJob,
    x: u32,
    given: u32,   // conditions
    st: u32,
    hidden0: u32,
    hidden1: u32,
    packs: u32,   // where the packs begin in the tables
    first: u32,   // number of the first part of a pack of this dispatch: pack * NETWORKS + network
    kept: u32,    // number of packs, the first ones, whose hidden activations are read again
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let number = launch.first + wg.y;
    let pack = pack_at(launch.packs + (number / NETWORKS) * PACK_WORDS);
    let which = number % NETWORKS;
    let lane = thread % QUADS;
    let group = thread / QUADS;
    let wanted = wg.x * QUADS + lane;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let stride = launch.tile.stride;
    let kept = live && number / NETWORKS < launch.kept;

    let works = group < pack.hidden_count;
    let item = item_at(pack.hidden + min(group, pack.hidden_count - 1u) * ITEM_WORDS);
    let net = net_at(item.node, which);
    let left = net.hidden - item.first;
    let rows = item.row * QUADS + lane;
    let own = rows + item.first * QUADS;
    let hidden = (net.hidden_first + item.first) * stride + quad;
    var sum = zero_eight();
    if (works) {
        let panel = net.panel.x + (item.first / 8u) * panel_length(net.upper + net.given);
        sum = add_arena(biases(panel), panel + 2u, (launch.x + net.upper_first) * stride + quad, net.upper);
        sum = add_arena(sum, panel + 2u + 2u * net.upper, launch.given * stride + quad, net.given);
        sum = drop_eight(rectify_eight(sum), net.dropout, item.first, quad);
        keep_eight(sum, own, QUADS, left);
        if (kept) { store_eight(sum, launch.hidden0 * stride + hidden, left); }
    }
    workgroupBarrier();
    if (works) {
        let panel = net.panel.y + (item.first / 8u) * panel_length(net.hidden);
        sum = rectify_eight(add_act(biases(panel), panel + 2u, rows, QUADS, net.hidden));
        sum = drop_eight(sum, net.dropout + 1u, item.first, quad);
        if (kept) { store_eight(sum, launch.hidden1 * stride + hidden, left); }
    }
    workgroupBarrier();
    if (works) { keep_eight(sum, own, QUADS, left); }
    workgroupBarrier();
    // Few outputs: four for each group, so that more of the groups have some.
    for (var i = group; i < pack.outs_count; i += THREADS / QUADS) {
        let out = item_at(pack.outs + i * ITEM_WORDS);
        let owner = net_at(out.node, which);
        let panel = owner.panel.z + (out.first / 8u) * panel_length(owner.hidden) + (out.first / 4u) % 2u;
        let four = add_act_four(biases_four(panel), panel + 2u, out.row * QUADS + lane, QUADS, owner.hidden);
        if (live) { store_four(four, (launch.st + owner.st + out.first) * stride + quad, owner.outputs - out.first); }
    }
}

// Gradients of the activations of a stage's networks: d_hidden1 from d_st, d_hidden0 from d_hidden1, both zero where
// ReLU was; then the slots, what the networks of a node send to its upper columns.
// Workgroup: a pack of nodes x QUADS quads of samples, one network of each node after the other. The gradients on their
// way stay in the workgroup; those of the hidden layers also go to the arena, for the gradients of the weights.
struct Launch {
    tile: TileJob,
    hidden0: u32,
    hidden1: u32,
    d_st: u32,
    d_hidden0: u32,
    d_hidden1: u32,
    slots: u32, // or NONE: nobody asks for the gradients of the columns
    packs: u32, // where the packs begin in the tables
    first: u32, // number of the first pack of this dispatch
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pack = pack_at(launch.packs + (launch.first + wg.y) * PACK_WORDS);
    let lane = thread % QUADS;
    let group = thread / QUADS;
    let wanted = wg.x * QUADS + lane;
    let live = wanted < launch.tile.quads;
    let quad = min(wanted, launch.tile.quads - 1u);
    let stride = launch.tile.stride;
    let works = group < pack.hidden_count;
    let item = item_at(pack.hidden + min(group, pack.hidden_count - 1u) * ITEM_WORDS);
    let rows = item.row * QUADS + lane;
    let own = rows + item.first * QUADS;
    for (var which = 0u; which < NETWORKS; which++) {
        let net = net_at(item.node, which);
        let left = net.hidden - item.first;
        let hidden = (net.hidden_first + item.first) * stride + quad;
        var sum = zero_eight();
        if (works) {
            let panel = net.back.z + (item.first / 8u) * 2u * net.outputs;
            sum = add_arena(sum, panel, (launch.d_st + net.sum) * stride + quad, net.outputs);
            sum = scale_eight(masked_eight(sum, launch.hidden1 * stride + hidden, left));
            if (live) { store_eight(sum, launch.d_hidden1 * stride + hidden, left); }
        }
        // `act` has been read for the slots of the network before.
        workgroupBarrier();
        if (works) { keep_eight(sum, own, QUADS, left); }
        workgroupBarrier();
        if (works) {
            let panel = net.back.y + (item.first / 8u) * 2u * net.hidden;
            sum = add_act(zero_eight(), panel, rows, QUADS, net.hidden);
            sum = scale_eight(masked_eight(sum, launch.hidden0 * stride + hidden, left));
            if (live) { store_eight(sum, launch.d_hidden0 * stride + hidden, left); }
        }
        if (launch.slots != NONE) {
            workgroupBarrier();
            if (works) { keep_eight(sum, own, QUADS, left); }
            workgroupBarrier();
            for (var i = group; i < pack.upper_count; i += THREADS / QUADS) {
                let upper = item_at(pack.upper + i * ITEM_WORDS);
                let owner = net_at(upper.node, which);
                let slot = (launch.slots + owner.slot + upper.first) * stride + quad;
                // What this very thread left there for the network before.
                var start = zero_eight();
                if (which > 0u && live) { start = load_eight(slot, owner.upper - upper.first); }
                let panel = owner.back.x + (upper.first / 8u) * 2u * owner.hidden;
                let both = add_act(start, panel, upper.row * QUADS + lane, QUADS, owner.hidden);
                if (live) { store_eight(both, slot, owner.upper - upper.first); }
            }
        }
    }
}

fn load_eight(at: u32, count: u32) -> Eight {
    let stride = launch.tile.stride;
    let last = count - 1u;
    return Eight(
        arena[at],
        arena[at + min(1u, last) * stride],
        arena[at + min(2u, last) * stride],
        arena[at + min(3u, last) * stride],
        arena[at + min(4u, last) * stride],
        arena[at + min(5u, last) * stride],
        arena[at + min(6u, last) * stride],
        arena[at + min(7u, last) * stride],
    );
}

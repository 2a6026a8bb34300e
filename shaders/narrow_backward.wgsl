// Backward of the narrow networks of a stage, from their inputs: what a wide network reads from memory is cheaper to
// compute again here, and gradients of weights stay in registers. Sums have the order of `weight_gradient.wgsl`, so the
// bits are the same.
// Workgroup: a pack of nodes x one slice of the batch, all samples for one network of each node after the other. 8
// quads of samples at a time: columns and gradients of the outputs to workgroup memory, hidden activations (front,
// rear), gradient of the last layer; d_hidden1 takes the place of the rear, gradient of the middle layer; d_hidden0
// that of the front, gradient of the first layer, slots.
struct Launch {
    tile: TileJob,
    x: u32,
    given: u32,  // conditions
    d_st: u32,
    slots: u32,  // or NONE: nobody asks for the gradients of the columns
    packs: u32,  // where the packs begin in the tables
    first: u32,  // number of the first pack of this dispatch
    length: u32, // length of one copy of the gradients
    add: u32,    // 1: these weights have had gradients from this tile already
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(9) var<storage, read> panels: array<vec4<f32>>;

const QUADS: u32 = 8u; // mirrors `narrow::QUADS`
// Quads from one row to the next: odd, so that threads that read the same quad of different rows meet different banks.
const PITCH: u32 = QUADS + 1u;
override THREADS: u32 = 256u;
override SIZE: u32 = 720u; // PITCH for each row
var<workgroup> act: array<vec4<f32>, SIZE>;

fn rectify_four(s: Four) -> Four {
    return Four(rectify(s.a), rectify(s.b), rectify(s.c), rectify(s.d));
}

fn masked_four(g: Four, h: Four) -> Four {
    return Four(masked(g.a, h.a), masked(g.b, h.b), masked(g.c, h.c), masked(g.d, h.d));
}

// The half panel of four outputs from `first` on, of panels with that many vec4 each.
fn half_panel(at: u32, first: u32, length: u32) -> u32 {
    return at + (first / 8u) * length + (first / 4u) % 2u;
}

// A row to fetch.
struct Fetch {
    to: u32,  // where it goes in workgroup memory, or NONE: there is no such row
    row: u32, // where it is in the arena
}

// That of a list with that number. One that does not exist stands for the last one, and nobody keeps it.
fn fetch_at(sources: u32, number: u32, which: u32) -> Fetch {
    let count = list_count(sources);
    let source = list_begin(sources) + min(number, count - 1u) * SOURCE_WORDS;
    var first = launch.x;
    if (source_kind(source) == OF_D_ST) { first = launch.d_st; }
    if (source_kind(source) == OF_GIVEN) { first = launch.given; }
    let row = first + source_row(source) + which * source_step(source);
    return Fetch(select(NONE, source_to(source) * PITCH, number < count), row * launch.tile.stride);
}

// Keeps a quad of it, with zeros for samples that do not exist.
fn keep_row(fetch: Fetch, lane: u32, quad: vec4<f32>, exists: vec4<bool>) {
    if (fetch.to != NONE) { act[fetch.to + lane] = select(vec4<f32>(), quad, exists); }
}

@compute @workgroup_size(THREADS)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let pack = launch.packs + (launch.first + wg.x) * NARROW_PACK_WORDS;
    let lane = thread % QUADS;
    let group = thread / QUADS;
    let stride = launch.tile.stride;
    let slice = launch.tile.first / 4u / launch.tile.slice + wg.y;
    // The slice's quads within this tile.
    let tile_first = launch.tile.first / 4u;
    let slice_first = slice * launch.tile.slice;
    let begin = max(slice_first, tile_first) - tile_first;
    let end = min(max(slice_first + launch.tile.slice, tile_first) - tile_first, launch.tile.quads);
    let added = launch.add == 1u;
    if (begin >= end && added) { return; }
    let goes_on = added || slice_first < tile_first;

    let parts = narrow_pack_hidden(pack);
    let works = group < list_count(parts);
    let item = part_at(list_begin(parts) + min(group, list_count(parts) - 1u) * PART_WORDS);
    let place = place_at(item.place);
    let front = place.front * PITCH + lane;
    let rear = place.rear * PITCH + lane;
    let own_front = front + item.first * PITCH;
    let own_rear = rear + item.first * PITCH;
    let inputs = place.inputs * PITCH + lane;
    let outs = place.outs * PITCH + lane;
    let sources = narrow_pack_sources(pack);
    let groups = THREADS / QUADS;
    for (var which = 0u; which < NETWORKS; which++) {
        let net = net_at(place.node, which);
        let left = net.hidden - item.first;
        let copy = slice * launch.length;
        let middle = block_at(narrow_pack_middle(pack), thread, which, copy);
        let outer = block_at(narrow_pack_outer(pack), thread, which, copy);
        let last = outer.layer == 2u;
        let bias = biases_at(narrow_pack_biases(pack), thread, which, copy);
        var d_middle = zero_block();
        var d_outer = zero_block();
        var d_bias = vec3<f32>();
        if (goes_on) {
            d_middle = load_block(middle);
            d_outer = load_block(outer);
            d_bias = vec3<f32>(load(bias.at.x), load(bias.at.y), load(bias.at.z));
        }
        // The first row that a group of threads fetches; there are seldom more than two. To keep the second at hand, too,
        // takes registers that some devices do not have.
        let first = fetch_at(sources, group, which);
        for (var base = begin; base < end; base += QUADS) {
            let quad = base + lane;
            let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
            let inside = quad < end;
            var first_quad = vec4<f32>();
            if (inside) { first_quad = arena[first.row + quad]; }
            for (var i = group + groups; i < list_count(sources); i += groups) {
                let more = fetch_at(sources, i, which);
                var v = vec4<f32>();
                if (inside) { v = arena[more.row + quad]; }
                keep_row(more, lane, v, exists);
            }
            // After the loop, which looks up rows in the meantime.
            keep_row(first, lane, first_quad, exists);
            workgroupBarrier();
            var hidden = zero_four();
            if (works) {
                let n_in = net.upper + net.given;
                let panel = half_panel(net.panel.x, item.first, panel_length(n_in));
                hidden = rectify_four(add_act_four(biases_four(panel), panel + 2u, inputs, PITCH, n_in));
                hidden = drop_four(hidden, net.dropout, item.first, quad);
                keep_four(hidden, own_front, PITCH, left);
            }
            workgroupBarrier();
            if (works) {
                let panel = half_panel(net.panel.y, item.first, panel_length(net.hidden));
                hidden = rectify_four(add_act_four(biases_four(panel), panel + 2u, front, PITCH, net.hidden));
                hidden = drop_four(hidden, net.dropout + 1u, item.first, quad);
                keep_four(hidden, own_rear, PITCH, left);
            }
            workgroupBarrier();
            if (last && outer.live) { add_products(&d_outer, outer); }
            d_bias.z = add_row(d_bias.z, bias.rows.z);
            if (works) {
                let panel = half_panel(net.back.z, item.first, 2u * net.outputs);
                hidden = masked_four(add_act_four(zero_four(), panel, outs, PITCH, net.outputs), hidden);
                hidden = scale_four(hidden);
            }
            workgroupBarrier();
            if (works) { keep_four(hidden, own_rear, PITCH, left); }
            workgroupBarrier();
            if (middle.live) { add_products(&d_middle, middle); }
            d_bias.y = add_row(d_bias.y, bias.rows.y);
            if (works) {
                let panel = half_panel(net.back.y, item.first, 2u * net.hidden);
                let h = Four(
                    act[own_front],
                    act[own_front + PITCH],
                    act[own_front + 2u * PITCH],
                    act[own_front + 3u * PITCH],
                );
                hidden = scale_four(masked_four(add_act_four(zero_four(), panel, rear, PITCH, net.hidden), h));
            }
            workgroupBarrier();
            if (works) { keep_four(hidden, own_front, PITCH, left); }
            workgroupBarrier();
            if (!last && outer.live) { add_products(&d_outer, outer); }
            d_bias.x = add_row(d_bias.x, bias.rows.x);
            if (launch.slots != NONE && inside) { send(pack, group, lane, which, quad); }
            // The columns have been read.
            workgroupBarrier();
        }
        // Looked up again: where gradients go would take a dozen registers all along, and GCN would have one wave.
        save_block(block_at(narrow_pack_middle(pack), thread, which, copy), d_middle);
        save_block(block_at(narrow_pack_outer(pack), thread, which, copy), d_outer);
        let home = biases_at(narrow_pack_biases(pack), thread, which, copy).at;
        save(home.x, d_bias.x);
        save(home.y, d_bias.y);
        save(home.z, d_bias.z);
    }
}

// What the networks send to the columns they read, four at a time.
fn send(pack: u32, group: u32, lane: u32, which: u32, quad: u32) {
    let stride = launch.tile.stride;
    let parts = narrow_pack_upper(pack);
    for (var i = group; i < list_count(parts); i += THREADS / QUADS) {
        let upper = list_begin(parts) + i * UPPER_WORDS;
        let count = upper_count(upper);
        let last = count - 1u;
        let at = (launch.slots + upper_slot(upper)) * stride + quad;
        var sum = zero_four();
        // What this very thread left there for the network before; all loads at once, and those of columns that do not
        // exist are of no use.
        if (which > 0u) {
            sum = Four(
                arena[at],
                arena[at + min(1u, last) * stride],
                arena[at + min(2u, last) * stride],
                arena[at + min(3u, last) * stride],
            );
        }
        let front = upper_front(upper) * PITCH + lane;
        store_four(add_act_four(sum, upper_panels(upper, which), front, PITCH, upper_hidden(upper)), at, count);
    }
}

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
        for (var base = begin; base < end; base += QUADS) {
            let quad = base + lane;
            let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
            let inside = quad < end;
            let sources = narrow_pack_sources(pack);
            for (var i = group; i < list_count(sources); i += THREADS / QUADS) {
                let source = list_begin(sources) + i * SOURCE_WORDS;
                var first = launch.x;
                if (source_kind(source) == OF_D_ST) { first = launch.d_st; }
                if (source_kind(source) == OF_GIVEN) { first = launch.given; }
                let row = first + source_row(source) + which * source_step(source);
                var v = vec4<f32>();
                if (inside) { v = select(v, arena[row * stride + quad], exists); }
                act[source_to(source) * PITCH + lane] = v;
            }
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
        save_block(middle, d_middle);
        save_block(outer, d_outer);
        save(bias.at.x, d_bias.x);
        save(bias.at.y, d_bias.y);
        save(bias.at.z, d_bias.z);
    }
}

// What the networks send to the columns they read, four at a time.
fn send(pack: u32, group: u32, lane: u32, which: u32, quad: u32) {
    let stride = launch.tile.stride;
    let parts = narrow_pack_upper(pack);
    for (var i = group; i < list_count(parts); i += THREADS / QUADS) {
        let upper = part_at(list_begin(parts) + i * PART_WORDS);
        let place = place_at(upper.place);
        let net = net_at(place.node, which);
        let count = net.upper - upper.first;
        let at = (launch.slots + net.slot + upper.first) * stride + quad;
        var sum = zero_four();
        // What this very thread left there for the network before.
        if (which > 0u) {
            sum.a = arena[at];
            if (count > 1u) { sum.b = arena[at + stride]; }
            if (count > 2u) { sum.c = arena[at + 2u * stride]; }
            if (count > 3u) { sum.d = arena[at + 3u * stride]; }
        }
        let panel = half_panel(net.back.x, upper.first, 2u * net.hidden);
        store_four(add_act_four(sum, panel, place.front * PITCH + lane, PITCH, net.hidden), at, count);
    }
}

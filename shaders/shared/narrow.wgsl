// Gradients of the weights of narrow networks in registers, for `narrow_backward.wgsl`. Needs the binding `tables`.

// What a row to fetch is of, if it is not of x: of the gradient of `st`, of the conditions.
const OF_D_ST: u32 = 1u;
const OF_GIVEN: u32 = 2u;

// 4 x 4 weights of a layer: outputs a, a + da, ..., inputs b, b + db, ...
struct Block {
    live: bool,
    layer: u32,
    left: u32,   // where row a is in workgroup memory
    right: u32,
    a: u32,
    b: u32,
    da: u32,
    db: u32,
    n_out: u32,
    n_in: u32,
    weight: u32, // where the gradients are
}

// Block `number` of a list; one that is not there is not live.
fn block_at(list: u32, number: u32, which: u32, copy: u32) -> Block {
    let count = list_count(list);
    if (number >= count) { return Block(false, 0u, 0u, 0u, 0u, 0u, 1u, 1u, 0u, 0u, 0u); }
    let at = list_begin(list) + number * WEIGHT_BLOCK_WORDS;
    let place = place_at(weight_block_place(at));
    let layer = weight_block_layer(at);
    let a = weight_block_output(at);
    let b = weight_block_input(at);
    let inputs = node_upper(place.node) + node_given(place.node);
    let hidden = node_hidden(place.node);
    let outputs = node_outputs(place.node);
    let n_out = select(hidden, outputs, layer == 2u);
    let n_in = select(hidden, inputs, layer == 0u);
    var left = place.front;
    var right = place.inputs;
    if (layer == 1u) { left = place.rear; right = place.front; }
    if (layer == 2u) { left = place.outs; right = place.rear; }
    return Block(
        true,
        layer,
        (left + a) * PITCH,
        (right + b) * PITCH,
        a,
        b,
        (n_out + 3u) / 4u,
        (n_in + 3u) / 4u,
        n_out,
        n_in,
        copy + offsets_weight(node_offsets(place.node, which), layer),
    );
}

struct Sums {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn zero_block() -> Sums {
    let z = vec4<f32>();
    return Sums(z, z, z, z);
}

// Adds 8 quads of samples. Rows past the end of a node are others', and their sums are of no use.
fn add_products(sums: ptr<function, Sums>, block: Block) {
    let dl = block.da * PITCH;
    let dr = block.db * PITCH;
    for (var q = 0u; q < QUADS; q++) {
        let l = block.left + q;
        let r = block.right + q;
        let r0 = act[r];
        let r1 = act[r + dr];
        let r2 = act[r + 2u * dr];
        let r3 = act[r + 3u * dr];
        (*sums).a = add_quad((*sums).a, act[l], r0, r1, r2, r3);
        (*sums).b = add_quad((*sums).b, act[l + dl], r0, r1, r2, r3);
        (*sums).c = add_quad((*sums).c, act[l + 2u * dl], r0, r1, r2, r3);
        (*sums).d = add_quad((*sums).d, act[l + 3u * dl], r0, r1, r2, r3);
    }
}

// Where the gradient of row i, column j of a block is, if there is such a weight.
fn weight_place(block: Block, i: u32, j: u32) -> u32 {
    let o = block.a + i * block.da;
    let k = block.b + j * block.db;
    return select(NONE, block.weight + o * block.n_in + k, block.live && o < block.n_out && k < block.n_in);
}

fn load_weights(block: Block, i: u32) -> vec4<f32> {
    return vec4<f32>(
        load(weight_place(block, i, 0u)),
        load(weight_place(block, i, 1u)),
        load(weight_place(block, i, 2u)),
        load(weight_place(block, i, 3u)),
    );
}

fn load_block(block: Block) -> Sums {
    return Sums(load_weights(block, 0u), load_weights(block, 1u), load_weights(block, 2u), load_weights(block, 3u));
}

fn save_weights(block: Block, i: u32, sums: vec4<f32>) {
    save(weight_place(block, i, 0u), sums.x);
    save(weight_place(block, i, 1u), sums.y);
    save(weight_place(block, i, 2u), sums.z);
    save(weight_place(block, i, 3u), sums.w);
}

fn save_block(block: Block, sums: Sums) {
    save_weights(block, 0u, sums.a);
    save_weights(block, 1u, sums.b);
    save_weights(block, 2u, sums.c);
    save_weights(block, 3u, sums.d);
}

// Biases of a thread, by layer: their rows in workgroup memory, and where their gradients are.
struct Biases {
    rows: vec3<u32>,
    at: vec3<u32>,
}

// Number `number` of a list: output `first` of all three layers, as far as they have one.
fn biases_at(list: u32, number: u32, which: u32, copy: u32) -> Biases {
    var biases = Biases(vec3<u32>(NONE), vec3<u32>(NONE));
    if (number >= list_count(list)) { return biases; }
    let part = part_at(list_begin(list) + number * PART_WORDS);
    let place = place_at(part.place);
    let offsets = node_offsets(place.node, which);
    if (part.first < node_hidden(place.node)) {
        biases.rows.x = (place.front + part.first) * PITCH;
        biases.rows.y = (place.rear + part.first) * PITCH;
        biases.at.x = copy + offsets_bias(offsets, 0u) + part.first;
        biases.at.y = copy + offsets_bias(offsets, 1u) + part.first;
    }
    if (part.first < node_outputs(place.node)) {
        biases.rows.z = (place.outs + part.first) * PITCH;
        biases.at.z = copy + offsets_bias(offsets, 2u) + part.first;
    }
    return biases;
}

fn add_row(start: f32, row: u32) -> f32 {
    if (row == NONE) { return start; }
    var sum = start;
    for (var q = 0u; q < QUADS; q++) {
        sum = add_bias(sum, act[row + q]);
    }
    return sum;
}

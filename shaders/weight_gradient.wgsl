// Gradients of weights: dW[o, k] += sum over samples of left[o, r] * right[k, r]; that of a bias is the sum of left.
// Workgroup: four tiles of 16 x 16 weights x one slice of the batch; each tile has 16 threads with 4 x 4 weights each,
// and one bias. A slice's sums go to its own copy of the gradients, so that no cell has two writers. A slice that began
// in an earlier tile of samples goes on from what that left, sample after sample, so that the cut of a batch into tiles
// changes no bit.
//
// Per quad a thread has 64 multiply-adds, 4 additions and 9 loads from workgroup memory; per 4 quads 8 loads and stores
// to get them there. Of what AMD's compiler makes of the loop 67 % of the instructions are multiply-adds, and 87 % of
// those for the unit that does them; the loads, of 16 bytes for a thread, may take as long. Tiles of 32 x 32 with a
// workgroup each, the bias as one more input, took 1.8 times the work for lens2 (155,648 weights a block instead of
// 85,504, of 50,112 that exist): narrow networks left most of a tile empty, and 32 + 1 inputs took two.
struct Launch {
    tile: TileJob,
    left0: u32,  // rows of the gradients of the outputs, by layer
    left1: u32,
    left2: u32,
    right0: u32, // rows of the inputs, by layer
    right1: u32,
    right2: u32,
    given: u32,  // rows of the conditions
    jobs: u32,   // where the weight tiles begin in the tables
    count: u32,  // number of weight tiles
    first: u32,  // number of the first workgroup of this dispatch
    length: u32, // length of one copy of the gradients
    add: u32,    // 1: these weights have had gradients from this tile already
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;

// Four quads of 16 rows for each of the four weight tiles: quad q of a tile's row i at 64 q + 16 tile + (i xor 2 q), so
// that threads that write different quads side by side meet different banks, as do those that read one quad of different
// rows. (A row of four quads and a fifth between rows does the same and takes a quarter more; how much there is decides
// on how many workgroups run at a time.)
var<workgroup> left: array<vec4<f32>, 256>;
var<workgroup> right: array<vec4<f32>, 256>;

// Quads of four rows.
struct Rows {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

// Those at these places of the arena.
fn fetch(at: vec4<u32>) -> Rows {
    return Rows(arena[at.x], arena[at.y], arena[at.z], arena[at.w]);
}

// The same with zeros for samples that do not exist.
fn only(rows: Rows, exists: vec4<bool>) -> Rows {
    let z = vec4<f32>();
    return Rows(
        select(z, rows.a, exists),
        select(z, rows.b, exists),
        select(z, rows.c, exists),
        select(z, rows.d, exists),
    );
}

// Keeps four rows of outputs and of inputs at the same places.
fn keep(outs: Rows, ins: Rows, at: vec4<u32>) {
    left[at.x] = outs.a;
    left[at.y] = outs.b;
    left[at.z] = outs.c;
    left[at.w] = outs.d;
    right[at.x] = ins.a;
    right[at.y] = ins.b;
    right[at.z] = ins.c;
    right[at.w] = ins.d;
}

// Gradients of 4 x 4 weights and of a bias.
struct Sums {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
    bias: f32,
}

// Adds a quad of samples. Row 0 of the outputs is at l, of the inputs at r, and the others after them in steps of 4,
// with `flip` two by two the other way round; the bias has a row of its own.
fn add(sums: Sums, l: u32, r: u32, bias: u32, flip: u32) -> Sums {
    let r0 = right[r + flip];
    let r1 = right[r + (4u ^ flip)];
    let r2 = right[r + 8u + flip];
    let r3 = right[r + 8u + (4u ^ flip)];
    let l0 = left[l + flip];
    let l1 = left[l + (4u ^ flip)];
    let l2 = left[l + 8u + flip];
    let l3 = left[l + 8u + (4u ^ flip)];
    return Sums(
        add_quad(sums.a, l0, r0, r1, r2, r3),
        add_quad(sums.b, l1, r0, r1, r2, r3),
        add_quad(sums.c, l2, r0, r1, r2, r3),
        add_quad(sums.d, l3, r0, r1, r2, r3),
        add_bias(sums.bias, left[bias]),
    );
}

// Where a thread finds quads in workgroup memory, even ones and odd ones.
struct Own {
    left: vec2<u32>,
    right: vec2<u32>,
    bias: vec2<u32>,
}

// Adds four quads of samples.
fn add_quads(sums: Sums, own: Own) -> Sums {
    var some = add(sums, own.left.x, own.right.x, own.bias.x, 0u);
    some = add(some, own.left.y + 64u, own.right.y + 64u, own.bias.y + 64u, 0u);
    some = add(some, own.left.x + 128u, own.right.x + 128u, (own.bias.x ^ 4u) + 128u, 4u);
    return add(some, own.left.y + 192u, own.right.y + 192u, (own.bias.y ^ 4u) + 192u, 4u);
}

// The row of the arena that holds input k of a layer: one of the rows from `right` on, or a condition.
fn input_row(right: u32, k: u32, columns: u32) -> u32 {
    return select(right + k, launch.given + k - columns, k >= columns);
}

// The weights of a tile, and where their gradients are.
struct Weights {
    copy: u32, // where the slice's copy of the gradients begins
    weight: u32,
    n_out: u32,
    n_in: u32,
}

// Where the gradient of output o and input k is, if there is such a weight.
fn place(w: Weights, o: u32, k: u32) -> u32 {
    return select(NONE, w.copy + w.weight + o * w.n_in + k, o < w.n_out && k < w.n_in);
}

fn load_four(w: Weights, o: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(
        load(place(w, o, k)),
        load(place(w, o, k + 4u)),
        load(place(w, o, k + 8u)),
        load(place(w, o, k + 12u)),
    );
}

fn save_four(w: Weights, o: u32, k: u32, sum: vec4<f32>) {
    save(place(w, o, k), sum.x);
    save(place(w, o, k + 4u), sum.y);
    save(place(w, o, k + 8u), sum.z);
    save(place(w, o, k + 12u), sum.w);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let number = (launch.first + wg.x) * 4u + thread / 16u;
    let exists = number < launch.count;
    let job = launch.jobs + min(number, launch.count - 1u) * WEIGHT_TILE_WORDS;
    let layer = weight_tile_layer(job);
    let n_out = weight_tile_n_out(job);
    let n_in = weight_tile_n_in(job);
    let slice = launch.tile.first / 4u / launch.tile.slice + wg.y;
    let w = Weights(slice * launch.length, weight_tile_weight(job), n_out, n_in);
    let o0 = weight_tile_output(job);
    let k0 = weight_tile_input(job);
    let columns = weight_tile_columns(job);
    var left_row = launch.left0;
    var right_row = launch.right0;
    if (layer == 1u) { left_row = launch.left1; right_row = launch.right1; }
    if (layer == 2u) { left_row = launch.left2; right_row = launch.right2; }
    left_row += weight_tile_left(job);
    right_row += weight_tile_right(job);

    // Row i of the result is output a + 4 i, component j input b + 4 j; the bias is that of output a + 4 b.
    let a = (thread % 16u) / 4u;
    let b = thread % 4u;
    let o = o0 + a;
    let k = k0 + b;
    var bias_at = NONE;
    if (k0 == 0u && weight_tile_bias(job) != NONE && o + 4u * b < n_out) {
        bias_at = w.copy + weight_tile_bias(job) + o + 4u * b;
    }
    var sums = Sums();
    // The slice's quads within this tile.
    let tile_first = launch.tile.first / 4u;
    let slice_first = slice * launch.tile.slice;
    let begin = max(slice_first, tile_first) - tile_first;
    let end = min(max(slice_first + launch.tile.slice, tile_first) - tile_first, launch.tile.quads);
    let added = launch.add == 1u;
    // One without any samples is zero.
    if (begin >= end && added) { return; }
    if (added || slice_first < tile_first) {
        sums = Sums(
            load_four(w, o, k),
            load_four(w, o + 4u, k),
            load_four(w, o + 8u, k),
            load_four(w, o + 12u, k),
            load(bias_at),
        );
    }
    // What this thread fetches: quad b of rows a, a + 4, a + 8, a + 12. Rows that do not exist stand for the last one,
    // so their sums are of no use and nobody stores them.
    let stride = launch.tile.stride;
    let last_out = n_out - 1u;
    let last_in = max(n_in, 1u) - 1u;
    let four = vec4<u32>(0u, 4u, 8u, 12u);
    let outs = (left_row + min(o + four, vec4<u32>(last_out))) * stride + b;
    let k_rows = min(k0 + a + four, vec4<u32>(last_in));
    let ins = b + stride * vec4<u32>(
        input_row(right_row, k_rows.x, columns),
        input_row(right_row, k_rows.y, columns),
        input_row(right_row, k_rows.z, columns),
        input_row(right_row, k_rows.w, columns),
    );
    let tile = (thread / 16u) * 16u;
    let to = 64u * b + tile + vec4<u32>(a ^ ((2u * b) & 2u)) + (four ^ vec4<u32>((2u * b) & 4u));
    let own = Own(
        tile + vec2<u32>(a, a ^ 2u),
        tile + vec2<u32>(b, b ^ 2u),
        tile + vec2<u32>(a, a ^ 2u) + 4u * b,
    );
    // Quads that are whole, four at a time: no samples to leave out, and all loads before the first is waited for.
    let whole = max(min(end, launch.tile.rows / 4u), begin);
    var base = begin;
    for (; base + 4u <= whole; base += 4u) {
        keep(fetch(outs + base), fetch(ins + base), to);
        workgroupBarrier();
        sums = add_quads(sums, own);
        workgroupBarrier();
    }
    // Of the last four some may not exist, and some samples of the last one.
    if (base < end) {
        let at = min(base + b, end - 1u) - b;
        // None of a quad that is not this slice's.
        let rows = select(0u, launch.tile.rows, base + b < end);
        let of_rows = vec4<u32>((base + b) * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(rows);
        keep(only(fetch(outs + at), of_rows), only(fetch(ins + at), of_rows), to);
        workgroupBarrier();
        sums = add_quads(sums, own);
    }
    if (!exists) { return; }
    save_four(w, o, k, sums.a);
    save_four(w, o + 4u, k, sums.b);
    save_four(w, o + 8u, k, sums.c);
    save_four(w, o + 12u, k, sums.d);
    save(bias_at, sums.bias);
}

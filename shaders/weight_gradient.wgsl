// Gradients of weights: dW[o, k] += sum over samples of left[o, r] * right[k, r]; the bias is one more k whose right is 1.
// Workgroup: a tile of 32 x 32 weights x one slice of the batch; a thread has 4 x 4 of them. A slice's sums go to its own
// copy of the gradients, so that no cell has two writers. A slice that began in an earlier tile of samples goes on from
// what that left, sample after sample, so that the cut of a batch into tiles changes no bit.
struct Launch {
    tile: TileJob,
    left0: u32,  // rows of the gradients of the outputs, by layer
    left1: u32,
    left2: u32,
    right0: u32, // rows of the inputs, by layer
    right1: u32,
    right2: u32,
    jobs: u32,   // where the weight tiles begin in the tables
    first: u32,  // number of the first weight tile of this dispatch
    length: u32, // length of one copy of the gradients
    add: u32,    // 1: these weights have had gradients from this tile already
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;

// A weight tile; mirrors `tables::JOB`.
const JOB_WORDS: u32 = 9u;
const NO_BIAS: u32 = 0xffffffffu;
const NOWHERE: u32 = 0xffffffffu;

// 8 quads of 32 rows each; a row takes 9, so that threads that read different rows meet different banks.
var<workgroup> left: array<vec4<f32>, 288>;
var<workgroup> right: array<vec4<f32>, 288>;

// The samples of a quad that exist.
fn cut(v: vec4<f32>, quad: u32) -> vec4<f32> {
    let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
    return select(vec4<f32>(), v, exists);
}

// The weights of a tile, and where their gradients are.
struct Weights {
    copy: u32,   // where the slice's copy of the gradients begins
    weight: u32,
    bias: u32,
    n_out: u32,
    n_in: u32,
}

// Where the gradient of output o and input k is, if there is such a weight; input n_in is the bias.
fn place(w: Weights, o: u32, k: u32) -> u32 {
    if (o < w.n_out && k < w.n_in) { return w.copy + w.weight + o * w.n_in + k; }
    if (o < w.n_out && k == w.n_in && w.bias != NO_BIAS) { return w.copy + w.bias + o; }
    return NOWHERE;
}

fn load(at: u32) -> f32 {
    if (at == NOWHERE) { return 0.0; }
    return partials[at];
}

fn save(at: u32, value: f32) {
    if (at != NOWHERE) { partials[at] = value; }
}

fn load_four(w: Weights, o: u32, k: u32) -> vec4<f32> {
    return vec4<f32>(
        load(place(w, o, k)),
        load(place(w, o, k + 8u)),
        load(place(w, o, k + 16u)),
        load(place(w, o, k + 24u)),
    );
}

fn save_four(w: Weights, o: u32, k: u32, sum: vec4<f32>) {
    save(place(w, o, k), sum.x);
    save(place(w, o, k + 8u), sum.y);
    save(place(w, o, k + 16u), sum.z);
    save(place(w, o, k + 24u), sum.w);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let job = launch.jobs + (launch.first + wg.x) * JOB_WORDS;
    let layer = tables[job];
    let n_out = tables[job + 3u];
    let n_in = tables[job + 4u];
    let slice = launch.tile.first / 4u / launch.tile.slice + wg.y;
    let w = Weights(slice * launch.length, tables[job + 5u], tables[job + 6u], n_out, n_in);
    let o0 = tables[job + 7u];
    let k0 = tables[job + 8u];
    var left_row = launch.left0;
    var right_row = launch.right0;
    if (layer == 1u) { left_row = launch.left1; right_row = launch.right1; }
    if (layer == 2u) { left_row = launch.left2; right_row = launch.right2; }
    left_row += tables[job + 1u] + o0;
    right_row += tables[job + 2u] + k0;

    let stride = launch.tile.stride;
    let i0 = (thread / 8u) * 9u;
    let j0 = (thread % 8u) * 9u;
    // Row i of the result is output thread / 8 + 8 i, component j input thread % 8 + 8 j.
    let o = o0 + thread / 8u;
    let k = k0 + thread % 8u;
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();
    // The slice's quads within this tile.
    let tile_first = launch.tile.first / 4u;
    let slice_first = slice * launch.tile.slice;
    let begin = max(slice_first, tile_first) - tile_first;
    let end = min(max(slice_first + launch.tile.slice, tile_first) - tile_first, launch.tile.quads);
    let added = launch.add == 1u;
    // One without any samples is zero.
    if (begin >= end && added) { return; }
    if (added || slice_first < tile_first) {
        sum0 = load_four(w, o, k);
        sum1 = load_four(w, o + 8u, k);
        sum2 = load_four(w, o + 16u, k);
        sum3 = load_four(w, o + 24u, k);
    }
    for (var base = begin; base < end; base += 8u) {
        for (var i = thread; i < 256u; i += 64u) {
            let row = i / 8u;
            let quad = base + i % 8u;
            var l = vec4<f32>();
            var r = vec4<f32>();
            if (quad < end) {
                if (o0 + row < n_out) { l = cut(arena[(left_row + row) * stride + quad], quad); }
                if (k0 + row < n_in) { r = cut(arena[(right_row + row) * stride + quad], quad); }
                if (k0 + row == n_in) { r = vec4<f32>(1.0); }
            }
            left[row * 9u + i % 8u] = l;
            right[row * 9u + i % 8u] = r;
        }
        workgroupBarrier();
        for (var q = 0u; q < 8u; q++) {
            let l0 = left[i0 + q];
            let l1 = left[i0 + 72u + q];
            let l2 = left[i0 + 144u + q];
            let l3 = left[i0 + 216u + q];
            let r0 = right[j0 + q];
            let r1 = right[j0 + 72u + q];
            let r2 = right[j0 + 144u + q];
            let r3 = right[j0 + 216u + q];
            sum0 += vec4<f32>(dot(l0, r0), dot(l0, r1), dot(l0, r2), dot(l0, r3));
            sum1 += vec4<f32>(dot(l1, r0), dot(l1, r1), dot(l1, r2), dot(l1, r3));
            sum2 += vec4<f32>(dot(l2, r0), dot(l2, r1), dot(l2, r2), dot(l2, r3));
            sum3 += vec4<f32>(dot(l3, r0), dot(l3, r1), dot(l3, r2), dot(l3, r3));
        }
        workgroupBarrier();
    }

    save_four(w, o, k, sum0);
    save_four(w, o + 8u, k, sum1);
    save_four(w, o + 16u, k, sum2);
    save_four(w, o + 24u, k, sum3);
}

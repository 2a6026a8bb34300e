// Gradients of weights: dW[o, k] += sum over samples of left[o, r] * right[k, r]; the bias is one more k whose right is 1.
// Workgroup: a tile of 32 x 32 weights x one slice of the samples; a thread has 4 x 4 of them. A slice's sums go to its
// own copy of the gradients, so that no cell has two writers.
struct Launch {
    tile: Tile,
    left0: u32,  // rows of the gradients of the outputs, by layer
    left1: u32,
    left2: u32,
    right0: u32, // rows of the inputs, by layer
    right1: u32,
    right2: u32,
    jobs: u32,   // where the weight tiles begin in the tables
    first: u32,  // number of the first weight tile of this dispatch
    slice: u32,  // quads per slice, a multiple of 8
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

// 8 quads of 32 rows each; a row takes 9, so that threads that read different rows meet different banks.
var<workgroup> left: array<vec4<f32>, 288>;
var<workgroup> right: array<vec4<f32>, 288>;

// The samples of a quad that exist.
fn cut(v: vec4<f32>, quad: u32) -> vec4<f32> {
    let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
    return select(vec4<f32>(), v, exists);
}

fn put(at: u32, value: f32) {
    partials[at] = select(0.0, partials[at], (launch.tile.accumulate | launch.add) == 1u) + value;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let job = launch.jobs + (launch.first + wg.x) * JOB_WORDS;
    let layer = tables[job];
    let n_out = tables[job + 3u];
    let n_in = tables[job + 4u];
    let weight = tables[job + 5u];
    let bias = tables[job + 6u];
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
    var sum0 = vec4<f32>();
    var sum1 = vec4<f32>();
    var sum2 = vec4<f32>();
    var sum3 = vec4<f32>();
    let begin = wg.y * launch.slice;
    let end = min(begin + launch.slice, launch.tile.quads);
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

    let copy = wg.y * launch.length;
    for (var i = 0u; i < 4u; i++) {
        let o = o0 + thread / 8u + 8u * i;
        if (o < n_out) {
            var sum = sum0;
            if (i == 1u) { sum = sum1; }
            if (i == 2u) { sum = sum2; }
            if (i == 3u) { sum = sum3; }
            let k = k0 + thread % 8u;
            put_one(copy, weight, bias, n_in, o, k, sum.x);
            put_one(copy, weight, bias, n_in, o, k + 8u, sum.y);
            put_one(copy, weight, bias, n_in, o, k + 16u, sum.z);
            put_one(copy, weight, bias, n_in, o, k + 24u, sum.w);
        }
    }
}

fn put_one(copy: u32, weight: u32, bias: u32, n_in: u32, o: u32, k: u32, value: f32) {
    if (k < n_in) {
        put(copy + weight + o * n_in + k, value);
    } else if (k == n_in && bias != NO_BIAS) {
        put(copy + bias + o, value);
    }
}

// Q of at most 32 reflections, with its panels, and A and C of the backward pass: one reflection after the other, in
// sums of which nothing is lost. So an element of Q has the error of its rounding alone; plain sums left six times as
// much, the products for more columns up to nine times. Small models are those that stack many mixings. On a software
// adapter it takes as long as the three kernels of those products.
//
// Column c of H_1 H_2 ... H_N begins as that of I; what reflection r takes from it, in units of u_r, is column c of row
// r of A. With the reflections in the other order that is Q^T, and C.
// Workgroup: all columns, a thread each; grid (Q and A, then C; mixings).
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;
@group(0) @binding(9) var<storage, read_write> panels: array<f32>;
@group(0) @binding(10) var<storage, read> packed_offsets: array<vec2<u32>>;

const MOST: u32 = 32u;
const QUADS: u32 = 8u;
// By rows, zeros behind each.
var<workgroup> vectors: array<vec4<f32>, 256>;
// 2 / |u_r|^2
var<workgroup> betas: array<vec2<f32>, 32>;
// Quad k of column c at k * MOST + c.
var<workgroup> highs: array<vec4<f32>, 256>;
var<workgroup> lows: array<vec4<f32>, 256>;

const FOUR: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);

fn vector_quad(at: u32, k: u32, n: u32) -> vec4<f32> {
    let i = vec4<u32>(at) + min(vec4<u32>(4u * k) + FOUR, vec4<u32>(n - 1u));
    let value = vec4<f32>(weights[i.x], weights[i.y], weights[i.z], weights[i.w]);
    return select(vec4<f32>(), value, vec4<u32>(4u * k) + FOUR < vec4<u32>(n));
}

@compute @workgroup_size(32)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let own = reflections_of(wg.y);
    let n = own.n;
    let quads = (n + 3u) / 4u;
    let transposed = wg.x == 1u;
    let live = thread < n;
    let row = min(thread, n - 1u);
    var square = Pairs();
    for (var k = 0u; k < quads; k++) {
        let u = vector_quad(own.vectors + row * n, k, n);
        vectors[thread * QUADS + k] = u;
        square = add_product(square, u, Pairs(u, vec4<f32>()));
        highs[k * MOST + thread] = select(vec4<f32>(), vec4<f32>(1.0), vec4<u32>(4u * k) + FOUR == vec4<u32>(thread));
        lows[k * MOST + thread] = vec4<f32>();
    }
    let beta = twice_reciprocal(sum_of_four(square));
    betas[thread] = vec2<f32>(beta.high.x, beta.low.x);
    workgroupBarrier();
    for (var s = 0u; s < n; s++) {
        let r = select(n - 1u - s, s, transposed);
        var dot = Pairs();
        for (var k = 0u; k < quads; k++) {
            let at = k * MOST + thread;
            dot = add_product(dot, vectors[r * QUADS + k], Pairs(highs[at], lows[at]));
        }
        let part = times(all_four(betas[r]), sum_of_four(dot));
        let taken = Pairs(-part.high, -part.low);
        for (var k = 0u; k < quads; k++) {
            let at = k * MOST + thread;
            let column = add_product(Pairs(highs[at], lows[at]), vectors[r * QUADS + k], taken);
            highs[at] = column.high;
            lows[at] = column.low;
        }
        if (live) { scratch[select(own.a, own.c, transposed) + r * n + thread] = part.high.x + part.low.x; }
    }
    if (transposed || !live) { return; }
    for (var k = 0u; k < n; k++) {
        let place = (k / 4u) * MOST + thread;
        let at = own.q + k * n + thread;
        let q = highs[place][k % 4u] + lows[place][k % 4u];
        weights[at] = q;
        write_panels(at, q);
    }
}

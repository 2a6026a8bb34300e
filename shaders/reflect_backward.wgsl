// Last part of the gradient of the reflections: dU = S U - (C G + A G^T), S the M of the third part with its mirror
// image. Workgroup: a tile; grid (tiles, mixings).
//
// With T = R^-1, dQ = -(dU^T A + C^T dU + U^T dT U) and dT = -T dR T, so that the loss changes by
// - sum (A G^T + C G) dU + sum M dR, and R depends on every u_i twice: dR is dU U^T + U dU^T above the diagonal, and
// half of it on the diagonal.
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(7) var<storage, read> scratch: array<f32>;

const CAREFUL: bool = false;
var<private> own: Reflections;

fn left_at(at: u32) -> f32 { return scratch[at]; }
fn right_at(at: u32) -> f32 { return weights[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row >= own.n || column >= own.n) { return; }
    let at = own.vectors + row * own.n + column;
    // Of one column Q is -1 whatever the vector: what rounding leaves would become whole steps of Adam.
    partials[at] = select(value - partials[at], 0.0, own.n == 1u);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let corner = tile_at(wg.x, n);
    let sums = product(along_rows(own.near, n, corner.x), along_columns(own.vectors, n, corner.y), n, thread);
    put_all(sums, corner.x, corner.y, thread);
}

// Second part of the gradient of the reflections: what either side of Q = I - U^T A = I - C^T U has of G = dQ. C G goes
// to the far room, C G + A G^T to where the gradient of U will be. Workgroup: a tile; grid (tiles, mixings).
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

const CAREFUL: bool = false;
var<private> own: Reflections;
var<private> both: bool; // whether `put` gets the sum

fn left_at(at: u32) -> f32 { return scratch[at]; }
fn right_at(at: u32) -> f32 { return scratch[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row >= own.n || column >= own.n) { return; }
    let i = row * own.n + column;
    if (both) { partials[own.vectors + i] = value; } else { scratch[own.far + i] = value; }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let corner = tile_at(wg.x, n);
    let right = product(along_rows(own.c, n, corner.x), along_columns(own.near, n, corner.y), n, thread);
    both = false;
    put_all(right, corner.x, corner.y, thread);
    let left = product(along_rows(own.a, n, corner.x), along_rows(own.near, n, corner.y), n, thread);
    both = true;
    put_all(plus(right, left), corner.x, corner.y, thread);
}

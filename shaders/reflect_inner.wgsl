// Third part of the gradient of the reflections: that of R, M = C G A^T on and above the diagonal, mirrored below it;
// in place of G in the near room. Workgroup: a tile of M, if it is not below the diagonal; grid (tiles, mixings).
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

const CAREFUL: bool = false;
var<private> own: Reflections;

fn left_at(at: u32) -> f32 { return scratch[at]; }
fn right_at(at: u32) -> f32 { return scratch[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row > column || column >= own.n) { return; }
    scratch[own.near + row * own.n + column] = value;
    scratch[own.near + column * own.n + row] = value;
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let corner = tile_at(wg.x, n);
    if (corner.x > corner.y) { return; }
    let sums = product(along_rows(own.far, n, corner.x), along_rows(own.a, n, corner.y), n, thread);
    put_all(sums, corner.x, corner.y, thread);
}

// R of the reflections, with care: its rounding errors alone would be a quarter of those of Q. Workgroup: a tile of R,
// if it is not below the diagonal; grid (tiles, mixings).
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

const CAREFUL: bool = true;
var<private> own: Reflections;

fn left_at(at: u32) -> f32 { return weights[at]; }
fn right_at(at: u32) -> f32 { return weights[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row > column || column >= own.n) { return; }
    scratch[own.near + row * own.n + column] = select(value, 0.5 * value, row == column);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let corner = tile_at(wg.x, n);
    if (corner.x > corner.y) { return; }
    let sums = product(along_rows(own.vectors, n, corner.x), along_rows(own.vectors, n, corner.y), n, thread);
    put_all(sums, corner.x, corner.y, thread);
}

// Q = I - U^T A of the reflections, and its panels. Workgroup: a tile of Q; grid (tiles, mixings).
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read> scratch: array<f32>;
@group(0) @binding(9) var<storage, read_write> panels: array<f32>;
@group(0) @binding(10) var<storage, read> packed_offsets: array<vec2<u32>>;

const CAREFUL: bool = false;
var<private> own: Reflections;

fn left_at(at: u32) -> f32 { return weights[at]; }
fn right_at(at: u32) -> f32 { return scratch[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row >= own.n || column >= own.n) { return; }
    let at = own.q + row * own.n + column;
    let q = select(0.0, 1.0, row == column) - value;
    weights[at] = q;
    write_panels(at, q);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let corner = tile_at(wg.x, n);
    let sums = product(along_columns(own.vectors, n, corner.x), along_columns(own.a, n, corner.y), n, thread);
    put_all(sums, corner.x, corner.y, thread);
}

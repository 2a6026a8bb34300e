// R of the reflections, with the inverses of its 32 x 32 blocks on the diagonal in their place: solving needs nothing
// else of them. Workgroup: a tile of R, if it is not below the diagonal; grid (tiles, mixings).
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

var<private> own: Reflections;
var<private> corner: vec2<u32>;
// A block on the diagonal: element (i, j) at 33 i + j, and element (j, i) of its inverse at 33 (i + 1) + j: neither has
// any below the diagonal.
const PITCH: u32 = 33u;
var<workgroup> block: array<f32, 1089>;

fn left_at(at: u32) -> f32 { return weights[at]; }
fn right_at(at: u32) -> f32 { return weights[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row > column || column >= own.n) { return; }
    if (corner.x == corner.y) {
        block[(row - corner.x) * PITCH + column - corner.y] = select(value, 0.5 * value, row == column);
    } else {
        scratch[own.near + row * own.n + column] = value;
    }
}

// Column `c` of the inverse, from the diagonal up.
fn invert(c: u32) {
    let column = (c + 1u) * PITCH;
    for (var i = c + 1u; i > 0u; i--) {
        let row = (i - 1u) * PITCH;
        var sum = select(0.0, 1.0, i == c + 1u);
        for (var j = i; j <= c; j++) {
            sum = fma(-block[row + j], block[column + j], sum);
        }
        // A vector of zeros has no part in anything.
        let half = block[row + i - 1u];
        block[column + i - 1u] = select(sum / half, 0.0, half == 0.0);
    }
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    corner = tile_at(wg.x, n);
    if (corner.x > corner.y) { return; }
    let sums = product(along_rows(own.vectors, n, corner.x), along_rows(own.vectors, n, corner.y), n, thread);
    put_all(sums, corner.x, corner.y, thread);
    if (corner.x < corner.y) { return; }
    workgroupBarrier();
    let count = min(TILE, n - corner.x);
    if (thread < count) { invert(thread); }
    workgroupBarrier();
    for (var e = thread; e < count * count; e += 64u) {
        let i = e / count;
        let j = e % count;
        let value = select(0.0, block[(j + 1u) * PITCH + min(i, j)], i <= j);
        scratch[own.near + (corner.x + i) * n + corner.x + j] = value;
    }
}

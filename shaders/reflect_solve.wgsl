// A = R^-1 U and, where the backward pass follows, C = R^-T U: 32 rows after 32 rows, A's from the last ones up, C's from
// the first ones down. What the rows solved before contribute is one product, the inverse of the block on the diagonal
// times the rest another. Workgroup: 32 columns; grid (columns of A, then of C; mixings).
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

var<private> own: Reflections;
var<private> solution: u32; // where A or C begins
var<private> solved: bool;  // whether `put` gets the solution, or what is to be subtracted from U

fn left_at(at: u32) -> f32 { return scratch[at]; }
fn right_at(at: u32) -> f32 { return scratch[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row >= own.n || column >= own.n) { return; }
    let i = row * own.n + column;
    scratch[solution + i] = select(weights[own.vectors + i] - value, value, solved);
}

// R from that row and column on, or R^T.
fn triangle(row: u32, column: u32, transposed: bool) -> Factor {
    let n = own.n;
    if (transposed) { return Factor(own.near + column * n + row, 1u, n, n - row); }
    return Factor(own.near + row * n + column, n, 1u, n - row);
}

// Columns of the solution from that row on.
fn known(row: u32, column: u32) -> Factor {
    return Factor(solution + row * own.n + column, 1u, own.n, own.n - column);
}

@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let these = reflections_of(wg.y);
    own = these;
    let n = these.n;
    let blocks = (n + TILE - 1u) / TILE;
    let transposed = wg.x >= blocks;
    let column = (wg.x % blocks) * TILE;
    solution = select(own.a, own.c, transposed);
    for (var s = launch.row; s < launch.row + launch.rows; s++) {
        let row = select(blocks - 1u - s, s, transposed) * TILE;
        let end = min(row + TILE, n);
        let first = select(end, 0u, transposed);
        let terms = select(n - end, row, transposed);
        let before = product(triangle(row, first, transposed), known(first, column), terms, thread);
        solved = false;
        put_all(before, row, column, thread);
        storageBarrier();
        let now = product(triangle(row, row, transposed), known(row, column), end - row, thread);
        solved = true;
        put_all(now, row, column, thread);
        storageBarrier();
    }
}

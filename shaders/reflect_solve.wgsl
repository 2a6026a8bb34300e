// A = R^-1 U and, where the backward pass follows, C = R^-T U: 32 rows after 32 rows, A's from the last ones up, C's
// from the first ones down. What the rows solved before contribute is a product; then a thread solves one column.
// (Products with the inverses of the blocks on the diagonal instead had rounding errors a third as large again.)
// Workgroup: 32 columns; grid (columns of A, then of C; mixings).
@group(0) @binding(1) var<storage, read> weights: array<f32>;
@group(0) @binding(2) var<storage, read> tables: array<u32>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

const CAREFUL: bool = false;
var<private> own: Reflections;
var<private> solution: u32; // where A or C begins
var<private> corner: vec2<u32>;
// The 32 rows that are being solved.
var<workgroup> block: array<f32, 1024>;

fn left_at(at: u32) -> f32 { return scratch[at]; }
fn right_at(at: u32) -> f32 { return scratch[at]; }

fn put(row: u32, column: u32, value: f32) {
    if (row >= own.n || column >= own.n) { return; }
    block[(row - corner.x) * TILE + column - corner.y] = weights[own.vectors + row * own.n + column] - value;
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

// Solves column c of `count` rows.
fn solve(c: u32, count: u32, transposed: bool) {
    let n = own.n;
    let square = own.near + corner.x * n + corner.x;
    // In which direction, within the column and within R, the rows solved before row i lie.
    let back = select(TILE, 0u - TILE, transposed);
    let along = select(1u, 0u - n, transposed);
    for (var s = 0u; s < count; s++) {
        let i = select(count - 1u - s, s, transposed);
        let at = i * TILE + c;
        let diagonal = square + i * n + i;
        var sum = vec4<f32>();
        for (var d = 1u; d <= s; d += 4u) {
            let apart = min(vec4<u32>(d) + FOUR, vec4<u32>(s));
            let r = vec4<u32>(diagonal) + apart * along;
            let x = vec4<u32>(at) + apart * back;
            let values = vec4<f32>(scratch[r.x], scratch[r.y], scratch[r.z], scratch[r.w]);
            let solved = vec4<f32>(block[x.x], block[x.y], block[x.z], block[x.w]);
            sum = fma(values, select(vec4<f32>(), solved, vec4<u32>(d) + FOUR <= vec4<u32>(s)), sum);
        }
        // A vector of zeros has no part in anything.
        let half = scratch[diagonal];
        let rest = block[at] - ((sum.x + sum.y) + (sum.z + sum.w));
        block[at] = select(rest / half, 0.0, half == 0.0);
        scratch[solution + (corner.x + i) * n + corner.y + c] = block[at];
    }
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
        corner = vec2<u32>(row, column);
        put_all(product(triangle(row, first, transposed), known(first, column), terms, thread), row, column, thread);
        workgroupBarrier();
        if (thread < min(TILE, n - column)) { solve(thread, end - row, transposed); }
        workgroupBarrier();
        storageBarrier();
    }
}

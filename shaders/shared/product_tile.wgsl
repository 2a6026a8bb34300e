// A product of two matrices, 32 x 32 of its elements per workgroup of 64 threads: each has 4 x 4 of them, 8 rows and 8
// columns apart. Needs `outer.wgsl`, `pairs.wgsl`, a `launch` with the `row` of tiles it begins with, and of the kernel
// `left_at` and `right_at`, which read what lies at an index, `put`, which takes an element of the result, and
// `CAREFUL`: whether sums are kept with what rounding takes from them, which is twice the work or more.
//
// Per quad of terms a thread has 64 multiply-adds and 8 loads of 16 bytes from workgroup memory; per 8 quads 8 stores
// to get them there. A row takes 9 quads, so that threads that read different rows meet different banks.
const TILE: u32 = 32u;
const ROW: u32 = 9u;
var<workgroup> left_tile: array<vec4<f32>, 288>;
var<workgroup> right_tile: array<vec4<f32>, 288>;

// A factor: term k of row i of the result (left) or of its column i (right) is at `at + i * outer + k * inner`; one of
// the two distances is 1. There are `count` rows or columns from the tile's first one on.
struct Factor {
    at: u32,
    outer: u32,
    inner: u32,
    count: u32,
}

// First row and column of a tile of this dispatch.
fn tile_at(number: u32, n: u32) -> vec2<u32> {
    let across = (n + TILE - 1u) / TILE;
    return vec2<u32>(launch.row + number / across, number % across) * TILE;
}

// As a factor whose rows the sums run along: rows of the matrix that begins at `at` and has n columns, from `first` on.
fn along_rows(at: u32, n: u32, first: u32) -> Factor {
    return Factor(at + first * n, n, 1u, n - first);
}

// As a factor whose columns the sums run along, from column `first` on.
fn along_columns(at: u32, n: u32, first: u32) -> Factor {
    return Factor(at + first, 1u, n, n - first);
}

// What a thread has: its rows r, r + 8, r + 16, r + 24; of each the columns c, c + 8, c + 16, c + 24.
struct Sums {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn plus(x: Sums, y: Sums) -> Sums {
    return Sums(x.a + y.a, x.b + y.b, x.c + y.c, x.d + y.d);
}

// Which quads of a factor a thread fetches: neighbouring threads read what lies side by side.
struct Share {
    row: u32,  // the first one's row
    quad: u32,
    rows: u32, // from one to the next
    quads: u32,
}

fn share_of(factor: Factor, thread: u32) -> Share {
    if (factor.inner == 1u) { return Share(thread / 8u, thread % 8u, 8u, 0u); }
    return Share(thread % 32u, thread / 32u, 0u, 2u);
}

const FOUR: vec4<u32> = vec4<u32>(0u, 1u, 2u, 3u);

// Where four terms of a row are. Rows and terms that do not exist stand for the last ones: nobody stores such a row,
// and such a term is zero on the left side.
fn places(factor: Factor, row: u32, k: u32, terms: u32) -> vec4<u32> {
    let at = factor.at + min(row, factor.count - 1u) * factor.outer;
    return vec4<u32>(at) + min(vec4<u32>(k) + FOUR, vec4<u32>(terms - 1u)) * factor.inner;
}

fn fetch_left(factor: Factor, row: u32, quad: u32, base: u32, terms: u32) {
    let k = base + quad * 4u;
    let at = places(factor, row, k, terms);
    let value = vec4<f32>(left_at(at.x), left_at(at.y), left_at(at.z), left_at(at.w));
    left_tile[row * ROW + quad] = select(vec4<f32>(), value, vec4<u32>(k) + FOUR < vec4<u32>(terms));
}

fn fetch_right(factor: Factor, row: u32, quad: u32, base: u32, terms: u32) {
    let at = places(factor, row, base + quad * 4u, terms);
    right_tile[row * ROW + quad] = vec4<f32>(right_at(at.x), right_at(at.y), right_at(at.z), right_at(at.w));
}

// Adds four terms, whose quads of the thread's first row and column are at `i` and `j`.
fn add_terms(start: Sums, i: u32, j: u32) -> Sums {
    let r0 = right_tile[j];
    let r1 = right_tile[j + 8u * ROW];
    let r2 = right_tile[j + 16u * ROW];
    let r3 = right_tile[j + 24u * ROW];
    return Sums(
        add_quad(start.a, left_tile[i], r0, r1, r2, r3),
        add_quad(start.b, left_tile[i + 8u * ROW], r0, r1, r2, r3),
        add_quad(start.c, left_tile[i + 16u * ROW], r0, r1, r2, r3),
        add_quad(start.d, left_tile[i + 24u * ROW], r0, r1, r2, r3),
    );
}

// The sums over that many terms. All threads of the workgroup take part; they have read both factors when it returns.
fn product(left: Factor, right: Factor, terms: u32, thread: u32) -> Sums {
    let l = share_of(left, thread);
    let r = share_of(right, thread);
    let i = (thread / 8u) * ROW;
    let j = (thread % 8u) * ROW;
    var sum = Sums();
    var lost = Sums();
    for (var base = 0u; base < terms; base += TILE) {
        fetch_left(left, l.row, l.quad, base, terms);
        fetch_left(left, l.row + l.rows, l.quad + l.quads, base, terms);
        fetch_left(left, l.row + 2u * l.rows, l.quad + 2u * l.quads, base, terms);
        fetch_left(left, l.row + 3u * l.rows, l.quad + 3u * l.quads, base, terms);
        fetch_right(right, r.row, r.quad, base, terms);
        fetch_right(right, r.row + r.rows, r.quad + r.quads, base, terms);
        fetch_right(right, r.row + 2u * r.rows, r.quad + 2u * r.quads, base, terms);
        fetch_right(right, r.row + 3u * r.rows, r.quad + 3u * r.quads, base, terms);
        workgroupBarrier();
        // Sums of 8 terms, of four of those, then of these: their rounding errors are smaller.
        var part = Sums();
        let eights = min((terms - base + 7u) / 8u, 4u);
        for (var e = 0u; e < eights; e++) {
            let four = add_terms(Sums(), i + 2u * e, j + 2u * e);
            let eight = add_terms(four, i + 2u * e + 1u, j + 2u * e + 1u);
            if (CAREFUL) {
                let total = Sums(
                    opaque(sum.a + eight.a),
                    opaque(sum.b + eight.b),
                    opaque(sum.c + eight.c),
                    opaque(sum.d + eight.d),
                );
                lost.a += lost_by(sum.a, eight.a, total.a);
                lost.b += lost_by(sum.b, eight.b, total.b);
                lost.c += lost_by(sum.c, eight.c, total.c);
                lost.d += lost_by(sum.d, eight.d, total.d);
                sum = total;
            } else {
                part = plus(part, eight);
            }
        }
        if (!CAREFUL) { sum = plus(sum, part); }
        workgroupBarrier();
    }
    if (CAREFUL) { return plus(sum, lost); }
    return sum;
}

fn put_four(row: u32, column: u32, value: vec4<f32>) {
    put(row, column, value.x);
    put(row, column + 8u, value.y);
    put(row, column + 16u, value.z);
    put(row, column + 24u, value.w);
}

// Hands over what a thread has of the tile that begins at that row and column.
fn put_all(sums: Sums, first_row: u32, first_column: u32, thread: u32) {
    let row = first_row + thread / 8u;
    let column = first_column + thread % 8u;
    put_four(row, column, sums.a);
    put_four(row + 8u, column, sums.b);
    put_four(row + 16u, column, sums.c);
    put_four(row + 24u, column, sums.d);
}

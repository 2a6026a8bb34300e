// Every column of a quad of samples through its maps, by 16 groups of threads, and the log-determinants. Needs what
// `chain.wgsl` needs.

struct Coupling {
    x: u32,
    st: u32,
    to: u32,
    columns: u32,
    chains: u32, // where the columns' chains begin in the tables
}

// Writes the columns of this thread; returns the sum of their log-derivatives.
fn couple_columns(c: Coupling, quad: u32, group: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var log_det = vec4<f32>();
    for (var column = group; column < c.columns; column += 16u) {
        let start = Through(arena[(c.x + column) * stride + quad], log_det);
        let end = couple_column(chain_at(c.chains + column * CHAIN_WORDS), start, c.st * stride + quad);
        log_det = end.log_det;
        arena[(c.to + column) * stride + quad] = end.v;
    }
    return log_det;
}

// Writes a log-determinant, or adds to it where `add` is 1; returns what is there then.
fn put_log_det(value: vec4<f32>, at: u32, add: u32) -> vec4<f32> {
    var sum = value;
    if (add == 1u) { sum += arena[at]; }
    arena[at] = sum;
    return sum;
}

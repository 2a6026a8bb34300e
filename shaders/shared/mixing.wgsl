// Q x, or Q^T x with the transposed panels, for one quad of samples; four outputs at a time, which `groups` groups of
// threads share out. Needs what `product_arena.wgsl` needs.

struct Mixing {
    input: u32, // first row of x
    to: u32,    // first row of the result
    columns: u32,
    panel: u32, // where the panels begin
}

fn run_mixing(m: Mixing, quad: u32, group: u32, groups: u32, live: bool) {
    let stride = launch.tile.stride;
    for (var o = group * 4u; o < m.columns; o += groups * 4u) {
        let panel = m.panel + (o / 8u) * 2u * m.columns + (o / 4u) % 2u;
        let sum = add_arena_four(zero_four(), panel, m.input * stride + quad, m.columns);
        if (live) { store_four(sum, (m.to + o) * stride + quad, m.columns - o); }
    }
}

// Mixings of one or two lanes side by side: of the first `split` columns, and of the others if there are any.
struct Mixings {
    input: u32,
    to: u32,
    columns: u32,
    split: u32,
    first: u32,  // where the panels of the first lane begin
    second: u32, // where those of the second lane begin
}

fn run_mixings(m: Mixings, quad: u32, group: u32, groups: u32, live: bool) {
    run_mixing(Mixing(m.input, m.to, m.split, m.first), quad, group, groups, live);
    if (m.split < m.columns) {
        let rest = Mixing(m.input + m.split, m.to + m.split, m.columns - m.split, m.second);
        run_mixing(rest, quad, group, groups, live);
    }
}

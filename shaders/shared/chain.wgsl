// Where the parameters of a column are that the networks of a stage have left. What becomes of the column is in
// `affine.wgsl` or in `spline.wgsl`, of which every shader that needs this one gets the one of its model. They have the
// same functions:
//
// couple_column: the column's value through its maps, and `log_det` plus their log-derivatives
// uncouple_column: the inverse
// uncouple_node: as much of the inverse as is possible, on the inverse walk, once the networks of a node have run
// couple_back: gradients of the column and of the parameters, from those of the result and of the log-determinant
//
// In them `st` and `d_st` are the arena indices of the first rows for this quad. Needs the binding `tables`.

struct Chain {
    links: u32, // where the links begin in the tables, that of the deepest node first
    count: u32,
    sum: u32,   // where parameters are summed, the row of the gradient of the first one
}

fn chain_at(chains: u32, column: u32) -> Chain {
    let at = chains + 3u * column;
    return Chain(tables[at], tables[at + 1u], tables[at + 2u]);
}

// What a node has for the column.
struct Link {
    first: u32, // row of the first parameter
    step: u32,  // rows from one parameter to the next
}

fn link_at(chain: Chain, number: u32) -> Link {
    let at = chain.links + 2u * number;
    return Link(tables[at], tables[at + 1u]);
}

struct Through {
    v: vec4<f32>,
    log_det: vec4<f32>,
}

// A network of a coupling node, read from the tables; mirrors `tables::NODE`, whose words 20 to 31 are offsets of
// weights and biases. Needs the binding `tables`.

const NODE_WORDS: u32 = 33u;

struct Net {
    upper_first: u32,   // first column read
    upper: u32,         // columns read
    given: u32,         // conditions read after them: none or all
    lower_first: u32,   // first column transformed
    lower: u32,         // columns transformed, outputs of the network
    hidden: u32,        // hidden width
    st: u32,            // this network's first row in the stage's st
    hidden_first: u32,  // this network's first row in each of the stage's hidden buffers
    slot: u32,          // the node's first row in the stage's slots
    panel: vec3<u32>,   // where the three layers' panels begin: biases, then the weights of each input
    back: vec3<u32>,    // the transposed panels: eight inputs each, the weights of each output
}

// Length of the panel of eight outputs, biases included.
fn panel_length(n_in: u32) -> u32 {
    return 2u + 2u * n_in;
}

// Network `which` (0: s, 1: t) of the node whose words begin at `at`.
fn net_at(at: u32, which: u32) -> Net {
    let lower = tables[at + 3u];
    let hidden = tables[at + 4u];
    let w = at + 8u + 6u * which;
    return Net(
        tables[at],
        tables[at + 1u],
        tables[at + 32u],
        tables[at + 2u],
        lower,
        hidden,
        tables[at + 5u] + which * lower,
        tables[at + 6u] + which * hidden,
        tables[at + 7u],
        vec3<u32>(tables[w], tables[w + 1u], tables[w + 2u]),
        vec3<u32>(tables[w + 3u], tables[w + 4u], tables[w + 5u]),
    );
}

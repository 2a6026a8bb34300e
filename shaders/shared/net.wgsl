// A network of a coupling node, read from the tables; mirrors `tables::NODE`. Needs the binding `tables`.

// Networks of a node: one or two.
override NETWORKS: u32 = 2u;
const NODE_WORDS: u32 = 36u;
// Where in a node's words its panels begin, and the offsets of its weights and biases: six words for each network.
const NODE_PANELS: u32 = 12u;
const NODE_OFFSETS: u32 = 24u;

struct Net {
    upper_first: u32,   // first column read
    upper: u32,         // columns read
    given: u32,         // conditions read after them: none or all
    lower_first: u32,   // first column transformed
    lower: u32,         // columns transformed
    hidden: u32,        // hidden width
    outputs: u32,       // outputs of the network
    st: u32,            // this network's first row in the stage's st
    sum: u32,           // the same in the gradient of st, where parameters may be summed
    hidden_first: u32,  // this network's first row in each of the stage's hidden buffers
    slot: u32,          // the node's first row in the stage's slots
    dropout: u32,       // number of its first counter; see `dropout.wgsl`
    panel: vec3<u32>,   // where the three layers' panels begin: biases, then the weights of each input
    back: vec3<u32>,    // the transposed panels: eight inputs each, the weights of each output
}

// Length of the panel of eight outputs, biases included.
fn panel_length(n_in: u32) -> u32 {
    return 2u + 2u * n_in;
}

// Network `which` (of two, 0: s, 1: t) of the node whose words begin at `at`.
fn net_at(at: u32, which: u32) -> Net {
    let hidden = tables[at + 5u];
    let outputs = tables[at + 6u];
    let w = at + NODE_PANELS + 6u * which;
    return Net(
        tables[at],
        tables[at + 1u],
        tables[at + 2u],
        tables[at + 3u],
        tables[at + 4u],
        hidden,
        outputs,
        tables[at + 7u] + which * outputs,
        tables[at + 8u] + which * outputs,
        tables[at + 9u] + which * hidden,
        tables[at + 10u],
        tables[at + 11u] + 2u * which * hidden,
        vec3<u32>(tables[w], tables[w + 1u], tables[w + 2u]),
        vec3<u32>(tables[w + 3u], tables[w + 4u], tables[w + 5u]),
    );
}

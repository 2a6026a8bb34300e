// A network of a coupling node, read from the tables. Needs the binding `tables`.

// Networks of a node: one or two.
override NETWORKS: u32 = 2u;

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

// Network `which` (of two, 0: s, 1: t) of the node that begins at `at`.
fn net_at(at: u32, which: u32) -> Net {
    let hidden = node_hidden(at);
    let outputs = node_outputs(at);
    let panels = node_panels(at, which);
    return Net(
        node_upper_first(at),
        node_upper(at),
        node_given(at),
        node_lower_first(at),
        node_lower(at),
        hidden,
        outputs,
        node_st(at) + which * outputs,
        node_sum(at) + which * outputs,
        node_hidden_first(at) + which * hidden,
        node_slot(at),
        node_dropout(at) + 2u * which * hidden,
        vec3<u32>(panels_forward(panels, 0u), panels_forward(panels, 1u), panels_forward(panels, 2u)),
        vec3<u32>(panels_back(panels, 0u), panels_back(panels, 1u), panels_back(panels, 2u)),
    );
}

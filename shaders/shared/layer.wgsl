// One layer of a network for one quad of samples; the outputs are shared out among `groups` groups of threads, this one
// being number `group`. Needs what `product_arena.wgsl` needs, `dropout.wgsl`.

struct Layer {
    panel: u32,  // index of the panel of the first eight outputs
    n_in: u32,
    n_out: u32,
    input: u32,  // arena index of the first input of this quad
    output: u32, // arena index of the first output of this quad
    dropout: u32, // of a hidden layer, number of its first counter
}

// `live`: whether this thread's quad exists; others compute along and store nothing.
fn run_layer(layer: Layer, is_hidden: bool, quad: u32, group: u32, groups: u32, live: bool) {
    for (var o = group * 8u; o < layer.n_out; o += groups * 8u) {
        let panel = layer.panel + (o / 8u) * panel_length(layer.n_in);
        var sum = add_arena(biases(panel), panel + 2u, layer.input, layer.n_in);
        if (is_hidden) { sum = drop_eight(rectify_eight(sum), layer.dropout, o, quad); }
        if (live) { store_eight(sum, layer.output + o * launch.tile.stride, layer.n_out - o); }
    }
}

// The first layer of a network, whose inputs are some columns, the first at arena index `x`, and then conditions, the
// first at `given`. Needs what `net.wgsl` needs.
fn run_first_layer(net: Net, x: u32, given: u32, output: u32, quad: u32, group: u32, groups: u32, live: bool) {
    let length = panel_length(net.upper + net.given);
    for (var o = group * 8u; o < net.hidden; o += groups * 8u) {
        let panel = net.panel.x + (o / 8u) * length;
        var sum = add_arena(biases(panel), panel + 2u, x, net.upper);
        sum = rectify_eight(add_arena(sum, panel + 2u + 2u * net.upper, given, net.given));
        sum = drop_eight(sum, net.dropout, o, quad);
        if (live) { store_eight(sum, output + o * launch.tile.stride, net.hidden - o); }
    }
}

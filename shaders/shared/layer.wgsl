// One layer of a network for one quad of samples; the outputs are shared out among `groups` groups of threads, this one
// being number `group`. Needs what `dense.wgsl` needs.

struct Layer {
    weight: u32, // row-major (n_out, n_in)
    bias: u32,
    n_in: u32,
    n_out: u32,
    input: u32,  // arena index of the first input of this quad
    output: u32, // arena index of the first output of this quad
}

// `live`: whether this thread's quad exists; others compute along and store nothing.
fn run_layer(layer: Layer, relu: bool, group: u32, groups: u32, live: bool) {
    for (var o = group * 4u; o < layer.n_out; o += groups * 4u) {
        let outputs = four_from(o, layer.n_out);
        let bias = outputs + layer.bias;
        let start = Four(
            vec4<f32>(weights[bias.x]),
            vec4<f32>(weights[bias.y]),
            vec4<f32>(weights[bias.z]),
            vec4<f32>(weights[bias.w]),
        );
        var sum = dense(start, outputs * layer.n_in + layer.weight, 1u, layer.input, layer.n_in);
        if (relu) {
            sum = Four(rectify(sum.a), rectify(sum.b), rectify(sum.c), rectify(sum.d));
        }
        if (live) {
            store_four(sum, layer.output + o * launch.tile.stride, layer.n_out - o);
        }
    }
}

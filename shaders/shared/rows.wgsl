// Products of half panels with activations in the memory of a workgroup. Needs the bindings of `four.wgsl` and `act`.

// Adds the inputs act[first + k * step], k < count, times the half panel's weights from `at` on.
fn add_rows(start: Four, at: u32, first: u32, step: u32, count: u32) -> Four {
    var sum = start;
    var w = at;
    var row = first;
    for (var k = count / 4u; k > 0u; k--) {
        add_input_four(&sum, w, act[row]);
        add_input_four(&sum, w + 2u, act[row + step]);
        add_input_four(&sum, w + 4u, act[row + 2u * step]);
        add_input_four(&sum, w + 6u, act[row + 3u * step]);
        w += 8u;
        row += 4u * step;
    }
    for (var k = count % 4u; k > 0u; k--) {
        add_input_four(&sum, w, act[row]);
        w += 2u;
        row += step;
    }
    return sum;
}

// The biases at the head of half a panel.
fn biases_four(at: u32) -> Four {
    let u = panels[at];
    return Four(vec4<f32>(u.x), vec4<f32>(u.y), vec4<f32>(u.z), vec4<f32>(u.w));
}

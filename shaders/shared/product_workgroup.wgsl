// Products of panels with activations in the memory of a workgroup, eight or four outputs at a time; rows lie `step`
// quads apart. Needs the binding `panels`, `act`, `eight.wgsl`, `four.wgsl`.

// Adds the inputs act[first + k * step], k < count, times the panel's weights from `at` on.
fn add_act(start: Eight, at: u32, first: u32, step: u32, count: u32) -> Eight {
    var sum = start;
    var w = at;
    var row = first;
    for (var k = count / 4u; k > 0u; k--) {
        add_input(&sum, w, act[row]);
        add_input(&sum, w + 2u, act[row + step]);
        add_input(&sum, w + 4u, act[row + 2u * step]);
        add_input(&sum, w + 6u, act[row + 3u * step]);
        w += 8u;
        row += 4u * step;
    }
    for (var k = count % 4u; k > 0u; k--) {
        add_input(&sum, w, act[row]);
        w += 2u;
        row += step;
    }
    return sum;
}

// Keeps the outputs of `value` that exist from index `at` on; `count` of them.
fn keep_eight(value: Eight, at: u32, step: u32, count: u32) {
    act[at] = value.a;
    if (count > 1u) { act[at + step] = value.b; }
    if (count > 2u) { act[at + 2u * step] = value.c; }
    if (count > 3u) { act[at + 3u * step] = value.d; }
    if (count > 4u) { act[at + 4u * step] = value.e; }
    if (count > 5u) { act[at + 5u * step] = value.f; }
    if (count > 6u) { act[at + 6u * step] = value.g; }
    if (count > 7u) { act[at + 7u * step] = value.h; }
}

// Adds the inputs act[first + k * step], k < count, times the half panel's weights from `at` on.
fn add_act_four(start: Four, at: u32, first: u32, step: u32, count: u32) -> Four {
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

// Keeps the outputs of `value` that exist from index `at` on; `count` of them.
fn keep_four(value: Four, at: u32, step: u32, count: u32) {
    act[at] = value.a;
    if (count > 1u) { act[at + step] = value.b; }
    if (count > 2u) { act[at + 2u * step] = value.c; }
    if (count > 3u) { act[at + 3u * step] = value.d; }
}

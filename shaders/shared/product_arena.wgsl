// Products of panels with activations in the arena, eight or four outputs at a time. Needs the bindings `arena` and
// `panels`, `launch.tile`, `eight.wgsl`, `four.wgsl`. WGSL has no generics, so here and in `product_workgroup.wgsl` the
// loop is written out for every memory and number of outputs.

// Adds the inputs arena[first + k * stride], k < count, times the panel's weights from `at` on.
fn add_arena(start: Eight, at: u32, first: u32, count: u32) -> Eight {
    let stride = launch.tile.stride;
    var sum = start;
    var w = at;
    var row = first;
    // Four inputs per iteration: fewer of them, and loads that do not wait for each other.
    for (var k = count / 4u; k > 0u; k--) {
        add_input(&sum, w, arena[row]);
        add_input(&sum, w + 2u, arena[row + stride]);
        add_input(&sum, w + 4u, arena[row + 2u * stride]);
        add_input(&sum, w + 6u, arena[row + 3u * stride]);
        w += 8u;
        row += 4u * stride;
    }
    for (var k = count % 4u; k > 0u; k--) {
        add_input(&sum, w, arena[row]);
        w += 2u;
        row += stride;
    }
    return sum;
}

// Stores the outputs of `value` that exist from arena index `at` on; `count` of them.
fn store_eight(value: Eight, at: u32, count: u32) {
    let stride = launch.tile.stride;
    arena[at] = value.a;
    if (count > 1u) { arena[at + stride] = value.b; }
    if (count > 2u) { arena[at + 2u * stride] = value.c; }
    if (count > 3u) { arena[at + 3u * stride] = value.d; }
    if (count > 4u) { arena[at + 4u * stride] = value.e; }
    if (count > 5u) { arena[at + 5u * stride] = value.f; }
    if (count > 6u) { arena[at + 6u * stride] = value.g; }
    if (count > 7u) { arena[at + 7u * stride] = value.h; }
}

// Gradients through the ReLU whose results begin at arena index `at`; `count` of them exist.
fn masked_eight(g: Eight, at: u32, count: u32) -> Eight {
    let stride = launch.tile.stride;
    let last = count - 1u;
    return Eight(
        masked(g.a, arena[at]),
        masked(g.b, arena[at + min(1u, last) * stride]),
        masked(g.c, arena[at + min(2u, last) * stride]),
        masked(g.d, arena[at + min(3u, last) * stride]),
        masked(g.e, arena[at + min(4u, last) * stride]),
        masked(g.f, arena[at + min(5u, last) * stride]),
        masked(g.g, arena[at + min(6u, last) * stride]),
        masked(g.h, arena[at + min(7u, last) * stride]),
    );
}

// Adds the inputs arena[first + k * stride], k < count, times the half panel's weights from `at` on.
fn add_arena_four(start: Four, at: u32, first: u32, count: u32) -> Four {
    let stride = launch.tile.stride;
    var sum = start;
    var w = at;
    var row = first;
    for (var k = count / 4u; k > 0u; k--) {
        add_input_four(&sum, w, arena[row]);
        add_input_four(&sum, w + 2u, arena[row + stride]);
        add_input_four(&sum, w + 4u, arena[row + 2u * stride]);
        add_input_four(&sum, w + 6u, arena[row + 3u * stride]);
        w += 8u;
        row += 4u * stride;
    }
    for (var k = count % 4u; k > 0u; k--) {
        add_input_four(&sum, w, arena[row]);
        w += 2u;
        row += stride;
    }
    return sum;
}

// Stores the outputs of `value` that exist from arena index `at` on; `count` of them.
fn store_four(value: Four, at: u32, count: u32) {
    let stride = launch.tile.stride;
    arena[at] = value.a;
    if (count > 1u) { arena[at + stride] = value.b; }
    if (count > 2u) { arena[at + 2u * stride] = value.c; }
    if (count > 3u) { arena[at + 3u * stride] = value.d; }
}

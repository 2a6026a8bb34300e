// Four outputs of one quad of samples at a time: half a panel (`panels.rs`). Needs the bindings `arena` (quads), `panels`
// and `launch.tile`.

struct Four {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

fn zero_four() -> Four {
    let z = vec4<f32>();
    return Four(z, z, z, z);
}

fn add_input_four(sum: ptr<function, Four>, at: u32, x: vec4<f32>) {
    let u = panels[at];
    (*sum).a = fma(vec4<f32>(u.x), x, (*sum).a);
    (*sum).b = fma(vec4<f32>(u.y), x, (*sum).b);
    (*sum).c = fma(vec4<f32>(u.z), x, (*sum).c);
    (*sum).d = fma(vec4<f32>(u.w), x, (*sum).d);
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

// Products of weights with activations: four outputs of one quad of samples at a time, in registers.
// Needs the bindings `arena` (quads) and `weights`, and `launch.tile`.

struct Four {
    a: vec4<f32>,
    b: vec4<f32>,
    c: vec4<f32>,
    d: vec4<f32>,
}

// Adds sum over k < count of weights[at[i] + k * step] * arena[input + k * stride] to output i.
fn dense(start: Four, at: vec4<u32>, step: u32, input: u32, count: u32) -> Four {
    let stride = launch.tile.stride;
    var a = start.a;
    var b = start.b;
    var c = start.c;
    var d = start.d;
    var w = at;
    var row = input;
    // Four inputs per turn: fewer turns, and loads that do not wait for each other.
    for (var k = count / 4u; k > 0u; k--) {
        let w1 = w + step;
        let w2 = w1 + step;
        let w3 = w2 + step;
        let x0 = arena[row];
        let x1 = arena[row + stride];
        let x2 = arena[row + 2u * stride];
        let x3 = arena[row + 3u * stride];
        a = fma(vec4<f32>(weights[w.x]), x0, a);
        b = fma(vec4<f32>(weights[w.y]), x0, b);
        c = fma(vec4<f32>(weights[w.z]), x0, c);
        d = fma(vec4<f32>(weights[w.w]), x0, d);
        a = fma(vec4<f32>(weights[w1.x]), x1, a);
        b = fma(vec4<f32>(weights[w1.y]), x1, b);
        c = fma(vec4<f32>(weights[w1.z]), x1, c);
        d = fma(vec4<f32>(weights[w1.w]), x1, d);
        a = fma(vec4<f32>(weights[w2.x]), x2, a);
        b = fma(vec4<f32>(weights[w2.y]), x2, b);
        c = fma(vec4<f32>(weights[w2.z]), x2, c);
        d = fma(vec4<f32>(weights[w2.w]), x2, d);
        a = fma(vec4<f32>(weights[w3.x]), x3, a);
        b = fma(vec4<f32>(weights[w3.y]), x3, b);
        c = fma(vec4<f32>(weights[w3.z]), x3, c);
        d = fma(vec4<f32>(weights[w3.w]), x3, d);
        w = w3 + step;
        row += 4u * stride;
    }
    for (var k = count % 4u; k > 0u; k--) {
        let x = arena[row];
        a = fma(vec4<f32>(weights[w.x]), x, a);
        b = fma(vec4<f32>(weights[w.y]), x, b);
        c = fma(vec4<f32>(weights[w.z]), x, c);
        d = fma(vec4<f32>(weights[w.w]), x, d);
        w += step;
        row += stride;
    }
    return Four(a, b, c, d);
}

fn zero_four() -> Four {
    let z = vec4<f32>();
    return Four(z, z, z, z);
}

// Numbers of the outputs from `first` on; those past the end stand for the last one, which exists.
fn four_from(first: u32, count: u32) -> vec4<u32> {
    return min(vec4<u32>(first) + vec4<u32>(0u, 1u, 2u, 3u), vec4<u32>(count - 1u));
}

// Stores the outputs of `value` that exist from arena index `at` on; `count` of them.
fn store_four(value: Four, at: u32, count: u32) {
    let stride = launch.tile.stride;
    arena[at] = value.a;
    if (count > 1u) { arena[at + stride] = value.b; }
    if (count > 2u) { arena[at + 2u * stride] = value.c; }
    if (count > 3u) { arena[at + 3u * stride] = value.d; }
}

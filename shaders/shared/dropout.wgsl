// Hidden units that a training step drops, as `src/kernel/dropout.rs`: the byte of a unit in a counter for sixteen, of
// its sample's position in the batch, below DROPOUT. Needs `launch.tile`, `eight.wgsl`, `four.wgsl`.

override DROPOUT: u32 = 0u; // probability of a unit to be dropped, in parts of 256; 0: none is
const STREAM_DROPOUT: u32 = 9u;

// What is not dropped is multiplied by this.
fn scale_of_rest() -> f32 {
    return 256.0 / (256.0 - f32(DROPOUT));
}

// Counters of a quad of samples, or their results.
struct Counters {
    a: vec4<u32>,
    b: vec4<u32>,
    c: vec4<u32>,
    d: vec4<u32>,
}

// High word of a 64-bit product.
fn multiply_high(a: u32, b: vec4<u32>) -> vec4<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & vec4<u32>(0xffffu);
    let b1 = b >> vec4<u32>(16u);
    let low = a0 * b0;
    let left = a1 * b0;
    let right = a0 * b1;
    let low_word = vec4<u32>(0xffffu);
    let middle = (low >> vec4<u32>(16u)) + (left & low_word) + (right & low_word);
    return a1 * b1 + (left >> vec4<u32>(16u)) + (right >> vec4<u32>(16u)) + (middle >> vec4<u32>(16u));
}

// A round of Philox4x32 (`philox.wgsl`) with the key of that number.
fn philox_round(n: Counters, number: u32) -> Counters {
    let key = vec2<u32>(launch.tile.seed_lo, launch.tile.seed_hi) + number * vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    let p = multiply_high(0xD2511F53u, n.a);
    let q = multiply_high(0xCD9E8D57u, n.c);
    return Counters(q ^ n.b ^ vec4<u32>(key.x), 0xCD9E8D57u * n.c, p ^ n.d ^ vec4<u32>(key.y), 0xD2511F53u * n.a);
}

// The words of the counter with that number.
fn words_of(number: u32, quad: u32) -> Counters {
    let samples = vec4<u32>(launch.tile.first + 4u * quad) + vec4<u32>(0u, 1u, 2u, 3u);
    var n = Counters(samples, vec4<u32>(number), vec4<u32>(launch.tile.step), vec4<u32>(STREAM_DROPOUT));
    // Not a loop: llvmpipe counts iterations.
    n = philox_round(n, 0u);
    n = philox_round(n, 1u);
    n = philox_round(n, 2u);
    n = philox_round(n, 3u);
    n = philox_round(n, 4u);
    n = philox_round(n, 5u);
    n = philox_round(n, 6u);
    n = philox_round(n, 7u);
    n = philox_round(n, 8u);
    return philox_round(n, 9u);
}

// One unit, whose byte is that of the words. A NaN stays one, dropped or not.
fn drop_unit(h: vec4<f32>, words: vec4<u32>, byte: u32) -> vec4<f32> {
    let stays = ((words >> vec4<u32>(8u * byte)) & vec4<u32>(255u)) >= vec4<u32>(DROPOUT);
    return h * select(vec4<f32>(), vec4<f32>(scale_of_rest()), stays);
}

// Eight units of a layer from `first` on; `number`: that of the layer's first counter. The layers of a network take
// turns.
fn drop_eight(h: Eight, number: u32, first: u32, quad: u32) -> Eight {
    if (DROPOUT == 0u) { return h; }
    let words = words_of(number + 2u * (first / 16u), quad);
    var u = words.a;
    var v = words.b;
    if (first % 16u != 0u) { u = words.c; v = words.d; }
    return Eight(
        drop_unit(h.a, u, 0u),
        drop_unit(h.b, u, 1u),
        drop_unit(h.c, u, 2u),
        drop_unit(h.d, u, 3u),
        drop_unit(h.e, v, 0u),
        drop_unit(h.f, v, 1u),
        drop_unit(h.g, v, 2u),
        drop_unit(h.h, v, 3u),
    );
}

// The same of four.
fn drop_four(h: Four, number: u32, first: u32, quad: u32) -> Four {
    if (DROPOUT == 0u) { return h; }
    let words = words_of(number + 2u * (first / 16u), quad);
    var u = words.a;
    if (first % 16u == 4u) { u = words.b; }
    if (first % 16u == 8u) { u = words.c; }
    if (first % 16u == 12u) { u = words.d; }
    return Four(drop_unit(h.a, u, 0u), drop_unit(h.b, u, 1u), drop_unit(h.c, u, 2u), drop_unit(h.d, u, 3u));
}

// Gradients of units, of which those of dropped ones are zero.
fn scale_eight(g: Eight) -> Eight {
    if (DROPOUT == 0u) { return g; }
    let s = scale_of_rest();
    return Eight(g.a * s, g.b * s, g.c * s, g.d * s, g.e * s, g.f * s, g.g * s, g.h * s);
}

fn scale_four(g: Four) -> Four {
    if (DROPOUT == 0u) { return g; }
    let s = scale_of_rest();
    return Four(g.a * s, g.b * s, g.c * s, g.d * s);
}

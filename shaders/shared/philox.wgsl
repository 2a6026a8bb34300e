// Random numbers as functions of (seed, purpose, step, index): Philox4x32-10 (Salmon et al. 2011) and Box-Muller.
// Word by word what `rng.rs` computes on the host. Logarithm, sine and cosine are our own (`elementary.wgsl`).

const STREAM_NOISE: u32 = 4u;
const STREAM_LATENT: u32 = 5u;

// High and low word of a 64-bit product; WGSL has no such instruction.
fn multiply_wide(a: u32, b: u32) -> vec2<u32> {
    let a0 = a & 0xffffu;
    let a1 = a >> 16u;
    let b0 = b & 0xffffu;
    let b1 = b >> 16u;
    let low = a0 * b0;
    let left = a1 * b0;
    let right = a0 * b1;
    let middle = (low >> 16u) + (left & 0xffffu) + (right & 0xffffu);
    return vec2<u32>(a1 * b1 + (left >> 16u) + (right >> 16u) + (middle >> 16u), a * b);
}

fn philox(counter: vec4<u32>, seed: vec2<u32>) -> vec4<u32> {
    var c = counter;
    var key = seed;
    for (var round = 0u; round < 10u; round++) {
        let p = multiply_wide(0xD2511F53u, c.x);
        let q = multiply_wide(0xCD9E8D57u, c.z);
        c = vec4<u32>(q.x ^ c.y ^ key.x, q.y, p.x ^ c.w ^ key.y, p.y);
        key += vec2<u32>(0x9E3779B9u, 0xBB67AE85u);
    }
    return c;
}

// A word as a uniform number in (0, 1].
fn unit(word: u32) -> f32 {
    return (f32(word >> 8u) + 0.5) * 5.9604644775390625e-8;
}

fn box_muller(u: vec4<u32>) -> vec4<f32> {
    // The last two are of no use.
    let logs = natural_log(vec4<f32>(unit(u.x), unit(u.z), 1.0, 1.0));
    let a = sqrt(max(-2.0 * logs.x, 0.0)) * cos_sin_turn(unit(u.y));
    let b = sqrt(max(-2.0 * logs.y, 0.0)) * cos_sin_turn(unit(u.w));
    return vec4<f32>(a, b);
}

// Number of the group of four normals that holds column group `c4` of a row with `groups` of them: row * groups + c4.
fn group_number(row: vec2<u32>, groups: u32, c4: u32) -> vec2<u32> {
    let product = multiply_wide(row.x, groups);
    let low = product.y + c4;
    let carry = select(0u, 1u, low < c4);
    return vec2<u32>(low, product.x + row.y * groups + carry);
}

// 64-bit sum of a number and a small one; x is the low word.
fn add_wide(a: vec2<u32>, b: u32) -> vec2<u32> {
    let low = a.x + b;
    return vec2<u32>(low, a.y + select(0u, 1u, low < b));
}

fn normals(group: vec2<u32>, step: u32, stream: u32, seed: vec2<u32>) -> vec4<f32> {
    return box_muller(philox(vec4<u32>(group, step, stream), seed));
}

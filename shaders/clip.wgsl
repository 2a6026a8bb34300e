// The second half of clipping: the factor of the gradient from the sums of `gradient_norm.wgsl`. A negative one says that
// the update is to be left out, and the updates left out are counted. One workgroup.
struct Launch {
    update: Update,
    sums: u32, // at most 256
}
// mirrors `launch::Update`
struct Update {
    rate: f32,
    root: f32,
    beta1: f32,
    beta2: f32,
    eps: f32,
    l2: f32,
    grad_clamp: f32,
    clip_norm: f32,
    shrink: f32,
    follow: f32,
}
var<immediate> launch: Launch;
@group(0) @binding(11) var<storage, read_write> extras: array<f32>;
var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    var part = 0.0;
    if (thread < launch.sums) { part = extras[EXTRA_SUMS + thread]; }
    let square = sum_of_group(part, thread);
    if (thread != 0u) { return; }
    // By its bits: compilers may take it that there is nothing but numbers.
    if ((bitcast<u32>(square) & 0x7f800000u) == 0x7f800000u) {
        extras[EXTRA_SCALE] = -1.0;
        extras[EXTRA_SKIPPED] += 1.0;
        extras[EXTRA_IN_A_ROW] += 1.0;
        return;
    }
    let norm = sqrt(square);
    var scale = 1.0;
    if (norm > launch.update.clip_norm) { scale = launch.update.clip_norm / norm; }
    extras[EXTRA_SCALE] = scale;
    extras[EXTRA_IN_A_ROW] = 0.0;
}

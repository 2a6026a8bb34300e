// One update of every trained weight: sums the gradient's slices in fixed order, clips by `clip.wgsl`, clamps, adds L2,
// moves the moments. Weight matrices decay before it, averages follow after it, where that is asked for.
struct Launch {
    update: Update,
    trained: u32, // number of trained weights
    slices: u32,
    length: u32,  // length of one copy of the gradients
    pitch: u32,   // threads of one row of the grid
    clipped: u32, // whether `clip.wgsl` has run
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
@group(0) @binding(1) var<storage, read_write> weights: array<f32>;
@group(0) @binding(3) var<storage, read_write> partials: array<f32>;
@group(0) @binding(4) var<storage, read_write> first_moments: array<f32>;
@group(0) @binding(8) var<storage, read_write> second_moments: array<f32>;
@group(0) @binding(9) var<storage, read_write> panels: array<f32>;
@group(0) @binding(10) var<storage, read> packed_offsets: array<vec2<u32>>;
@group(0) @binding(11) var<storage, read_write> extras: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let i = id.y * launch.pitch + id.x;
    if (i >= launch.trained) { return; }
    var sum = sum_of_copies(i);
    if (launch.clipped != 0u) {
        let scale = extras[EXTRA_SCALE];
        if (scale < 0.0) { return; }
        sum *= scale;
    }
    var p = weights[i];
    // Of the trained weights, matrices alone are in transposed panels (`panels.rs`).
    if (launch.update.shrink > 0.0 && packed_offsets[i].y != NONE) {
        p -= launch.update.shrink * p;
    }
    let limit = launch.update.grad_clamp;
    // Not `clamp`, which may turn NaN into a bound and hide that the training diverged.
    var g = select(sum, limit, sum > limit);
    g = select(g, -limit, g < -limit);
    g = fma(launch.update.l2, p, g);
    let m = fma(launch.update.beta1, first_moments[i] - g, g);
    let v = fma(launch.update.beta2, second_moments[i] - g * g, g * g);
    first_moments[i] = m;
    second_moments[i] = v;
    let value = p - launch.update.rate * m / fma(sqrt(v), launch.update.root, launch.update.eps);
    weights[i] = value;
    write_panels(i, value);
    if (launch.update.follow > 0.0) {
        let average = extras[EXTRA_AVERAGES + i];
        extras[EXTRA_AVERAGES + i] = fma(launch.update.follow, value - average, average);
    }
}

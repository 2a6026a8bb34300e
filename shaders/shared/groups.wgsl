// Sums over 16 groups of threads that share out the columns of 8 quads of samples.

var<workgroup> parts: array<vec4<f32>, 128>;

// Sum of the groups' values in order. Everybody has read `parts` only after a further barrier.
fn over_groups(value: vec4<f32>, thread: u32) -> vec4<f32> {
    parts[thread] = value;
    workgroupBarrier();
    var sum = parts[thread % 8u];
    for (var g = 1u; g < 16u; g++) {
        sum += parts[g * 8u + thread % 8u];
    }
    return sum;
}

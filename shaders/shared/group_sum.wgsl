// The sum of one value of each of 256 threads, for the first of them, in an order of its own. Needs `parts` in workgroup
// memory. All threads must call it.

fn sum_of_group(value: f32, thread: u32) -> f32 {
    parts[thread] = value;
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if (thread < half) { parts[thread] += parts[thread + half]; }
        workgroupBarrier();
    }
    return parts[0];
}

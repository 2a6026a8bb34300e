// The parts of the loss. Needs the bindings `arena` and `scratch`, `launch.tile`, `groups.wgsl`.

// Gradients of this thread's columns of z; returns the sum of their squares.
fn seed_columns(z_first: u32, d_z: u32, columns: u32, quad: u32, group: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var squares = vec4<f32>();
    for (var column = group; column < columns; column += 16u) {
        let z = arena[(z_first + column) * stride + quad];
        squares = fma(z, z, squares);
        arena[(d_z + column) * stride + quad] = z * launch.tile.inverse_batch;
    }
    return squares;
}

fn put_loss(squares: vec4<f32>, log_det: vec4<f32>, at: u32, d_log_det: u32) -> vec4<f32> {
    let loss = fma(squares, vec4<f32>(0.5), -log_det);
    arena[at] = loss;
    arena[d_log_det] = vec4<f32>(-launch.tile.inverse_batch);
    return loss;
}

// Zero if there is no such sample.
fn existing(loss: vec4<f32>, quad: u32) -> vec4<f32> {
    let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
    return select(vec4<f32>(), loss, exists);
}

// Leaves the sum over the 8 quads of workgroup `wg`, whose losses are in `parts`.
fn put_loss_sum(wg: u32) {
    if (launch.tile.loss_cell == NONE) { return; }
    var sum = parts[0];
    for (var l = 1u; l < 8u; l++) {
        sum += parts[l];
    }
    scratch[launch.tile.loss_cell + launch.tile.first / 32u + wg] = (sum.x + sum.y) + (sum.z + sum.w);
}

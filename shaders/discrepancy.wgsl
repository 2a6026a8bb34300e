// The squared maximum mean discrepancy of two sets of samples, with the kernel k(d) = sum of s / (s + d^2): adds to each
// sample's loss its share, and leaves the gradient for the first columns. All samples of the batch are in this tile. One
// thread: a quad of samples; of the first row of threads the loss, of each other one the gradient of a column.
struct Launch {
    tile: TileJob,
    input: u32,
    target_first: u32,
    loss: u32,
    d_input: u32,
    columns: u32,
    wanted: u32, // columns that get a gradient
    weight: f32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;

// Squared distances of a quad of one set from sample j of another.
fn squares(a: u32, quad: u32, b: u32, j: u32) -> vec4<f32> {
    let stride = launch.tile.stride;
    var sum = vec4<f32>();
    for (var c = 0u; c < launch.columns; c++) {
        let difference = arena[(a + c) * stride + quad] - vec4<f32>(arena[(b + c) * stride + j / 4u][j % 4u]);
        sum = fma(difference, difference, sum);
    }
    return sum;
}

fn value(square: vec4<f32>) -> vec4<f32> {
    return 0.0625 / (0.0625 + square) + 0.5 / (0.5 + square) + 4.0 / (4.0 + square);
}

// The derivative of the kernel in the squared distance.
fn slope(square: vec4<f32>) -> vec4<f32> {
    let a = 1.0 / (0.0625 + square);
    let b = 1.0 / (0.5 + square);
    let c = 1.0 / (4.0 + square);
    return -(0.0625 * a * a + 0.5 * b * b + 4.0 * c * c);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let mean = launch.weight * launch.tile.inverse_batch;
    var sum = vec4<f32>();
    if (id.y == 0u) {
        for (var j = 0u; j < launch.tile.rows; j++) {
            let other = value(squares(launch.input, quad, launch.target_first, j));
            let own = value(squares(launch.input, quad, launch.input, j));
            let targets = value(squares(launch.target_first, quad, launch.target_first, j));
            sum += (own - other) + (targets - other);
        }
        arena[launch.loss * stride + quad] += mean * sum;
        return;
    }
    let c = id.y - 1u;
    let here = arena[(launch.input + c) * stride + quad];
    for (var j = 0u; j < launch.tile.rows; j++) {
        let own = slope(squares(launch.input, quad, launch.input, j));
        let other = slope(squares(launch.input, quad, launch.target_first, j));
        let own_j = vec4<f32>(arena[(launch.input + c) * stride + j / 4u][j % 4u]);
        let target_j = vec4<f32>(arena[(launch.target_first + c) * stride + j / 4u][j % 4u]);
        sum += own * (here - own_j) - other * (here - target_j);
    }
    arena[(launch.d_input + c) * stride + quad] = 4.0 * mean * launch.tile.inverse_batch * sum;
}

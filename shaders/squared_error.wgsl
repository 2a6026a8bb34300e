// loss += weight |input - target|^2 per sample, and the gradient of its mean over the batch. One thread: one quad of
// samples.
struct Launch {
    tile: TileJob,
    input: u32,
    target_first: u32,
    loss: u32,
    d_input: u32,
    columns: u32,
    weight: f32,
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let stride = launch.tile.stride;
    let share = 2.0 * launch.weight * launch.tile.inverse_batch;
    var loss = arena[launch.loss * stride + quad];
    for (var c = 0u; c < launch.columns; c++) {
        let difference = arena[(launch.input + c) * stride + quad] - arena[(launch.target_first + c) * stride + quad];
        loss += launch.weight * difference * difference;
        arena[(launch.d_input + c) * stride + quad] = share * difference;
    }
    arena[launch.loss * stride + quad] = loss;
}

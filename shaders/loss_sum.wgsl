// Sum of the losses of a tile, in an order that depends on nothing but the number of samples. One workgroup.
struct Launch { tile: Tile, loss: u32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;
var<workgroup> parts: array<f32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    var sum = vec4<f32>();
    for (var quad = thread; quad < launch.tile.quads; quad += 256u) {
        let exists = vec4<u32>(quad * 4u) + vec4<u32>(0u, 1u, 2u, 3u) < vec4<u32>(launch.tile.rows);
        sum += select(vec4<f32>(), arena[launch.loss * launch.tile.stride + quad], exists);
    }
    parts[thread] = (sum.x + sum.y) + (sum.z + sum.w);
    workgroupBarrier();
    for (var half = 128u; half > 0u; half /= 2u) {
        if (thread < half) {
            parts[thread] += parts[thread + half];
        }
        workgroupBarrier();
    }
    if (thread == 0u) {
        let cell = launch.tile.loss_cell;
        scratch[cell] = select(0.0, scratch[cell], launch.tile.accumulate == 1u) + parts[0];
    }
}

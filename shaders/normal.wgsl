// Normals. Those of the stream `Latent` go by number of the sample within its group; others belong to a training step and
// go by position in the batch. One thread: four columns of one quad of samples.
struct Launch { tile: TileJob, to: u32, columns: u32, stream: u32, deviation: f32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;

fn values(sample: u32, column: u32) -> vec4<f32> {
    var start = vec2<u32>(launch.tile.start_lo, launch.tile.start_hi);
    if (launch.stream != STREAM_LATENT) { start = vec2<u32>(); }
    var number = add_wide(start, launch.tile.first + sample);
    var step = launch.tile.step;
    if (launch.tile.group_rows > 0u) {
        // Groups are small enough for one word.
        step += number.x / launch.tile.group_rows;
        number = vec2<u32>(number.x % launch.tile.group_rows, 0u);
    }
    let group = group_number(number, (launch.columns + 3u) / 4u, column / 4u);
    let seed = vec2<u32>(launch.tile.seed_lo, launch.tile.seed_hi);
    return launch.deviation * normals(group, step, launch.stream, seed);
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let column = id.y * 4u;
    let count = min(launch.columns - column, 4u);
    let a = values(quad * 4u, column);
    let b = values(quad * 4u + 1u, column);
    let c = values(quad * 4u + 2u, column);
    let d = values(quad * 4u + 3u, column);
    let stride = launch.tile.stride;
    let at = (launch.to + column) * stride + quad;
    arena[at] = vec4<f32>(a.x, b.x, c.x, d.x);
    if (count > 1u) { arena[at + stride] = vec4<f32>(a.y, b.y, c.y, d.y); }
    if (count > 2u) { arena[at + 2u * stride] = vec4<f32>(a.z, b.z, c.z, d.z); }
    if (count > 3u) { arena[at + 3u * stride] = vec4<f32>(a.w, b.w, c.w, d.w); }
}

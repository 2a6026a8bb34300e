// to[c, r] = data[row, c], row the r-th of the batch, plus noise * normal in the columns behind the conditions.
// One thread: four columns of one quad of samples, all of them conditions or none.
struct Launch {
    tile: TileJob,
    to: u32,
    columns: u32,
    conditions: u32, // number of the first columns, which get no noise
}
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(5) var<storage, read> data: array<f32>;
@group(0) @binding(6) var<storage, read> order: array<u32>;

// Up to four columns of one sample.
fn values(sample: u32, column: u32, count: u32) -> vec4<f32> {
    // Samples past the end repeat the last one, so that nothing outside the data is read.
    let r = min(sample, launch.tile.rows - 1u);
    var row = r;
    if (launch.tile.resident == 1u) {
        row = order[launch.tile.start_lo + launch.tile.first + r];
    }
    let at = row * launch.columns + column;
    var v = vec4<f32>(data[at], 0.0, 0.0, 0.0);
    if (count > 1u) { v.y = data[at + 1u]; }
    if (count > 2u) { v.z = data[at + 2u]; }
    if (count > 3u) { v.w = data[at + 3u]; }
    if (launch.tile.noise != 0.0 && column >= launch.conditions) {
        // Counted among the columns that get noise.
        let groups = (launch.columns - launch.conditions + 3u) / 4u;
        let number = (column - launch.conditions) / 4u;
        let group = group_number(vec2<u32>(launch.tile.first + r, 0u), groups, number);
        let seed = vec2<u32>(launch.tile.seed_lo, launch.tile.seed_hi);
        v = fma(vec4<f32>(launch.tile.noise), normals(group, launch.tile.step, STREAM_NOISE, seed), v);
    }
    return v;
}

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    let quad = id.x;
    if (quad >= launch.tile.quads) { return; }
    let of_conditions = (launch.conditions + 3u) / 4u;
    var column = id.y * 4u;
    var end = launch.conditions;
    if (id.y >= of_conditions) {
        column = launch.conditions + (id.y - of_conditions) * 4u;
        end = launch.columns;
    }
    let count = min(end - column, 4u);
    let a = values(quad * 4u, column, count);
    let b = values(quad * 4u + 1u, column, count);
    let c = values(quad * 4u + 2u, column, count);
    let d = values(quad * 4u + 3u, column, count);
    let stride = launch.tile.stride;
    let at = (launch.to + column) * stride + quad;
    arena[at] = vec4<f32>(a.x, b.x, c.x, d.x);
    if (count > 1u) { arena[at + stride] = vec4<f32>(a.y, b.y, c.y, d.y); }
    if (count > 2u) { arena[at + 2u * stride] = vec4<f32>(a.z, b.z, c.z, d.z); }
    if (count > 3u) { arena[at + 3u * stride] = vec4<f32>(a.w, b.w, c.w, d.w); }
}

// Every workgroup leaves the sum of the losses of 8 quads of samples; the host adds these up, in an order that no tile
// changes. One thread in 16: a quad.
struct Launch { tile: TileJob, loss: u32 }
var<immediate> launch: Launch;
@group(0) @binding(0) var<storage, read_write> arena: array<vec4<f32>>;
@group(0) @binding(7) var<storage, read_write> scratch: array<f32>;

@compute @workgroup_size(128)
fn main(@builtin(workgroup_id) wg: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let quad = wg.x * 8u + thread;
    if (thread < 8u) {
        var loss = vec4<f32>();
        if (quad < launch.tile.quads) { loss = arena[launch.loss * launch.tile.stride + quad]; }
        parts[thread] = existing(loss, quad);
    }
    workgroupBarrier();
    if (thread == 0u) { put_loss_sum(wg.x); }
}

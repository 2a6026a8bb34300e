// What changes from tile to tile and from step to step; mirrors `launch::TileJob`.
//
// Samples lie side by side in groups of four, a quad. Element (row f, sample r) of the activation arena is component
// r % 4 of `arena[f * stride + r / 4]`. The last quad of a tile may hold fewer than four samples; what its other
// components hold is never looked at, except by sums over samples, which mask them.
struct TileJob {
    rows: u32,          // samples in this tile
    quads: u32,         // quads that hold them
    stride: u32,        // quads from one row of the arena to the next
    first: u32,         // number of the tile's first sample within the batch, a multiple of 32
    slice: u32,         // quads of the batch whose gradients are summed in one copy, a multiple of 8
    slices: u32,        // slices that have samples of this tile; the last tile has those without any samples, too
    resident: u32,      // 1: the whole data set is on the device; 0: only the rows of this tile, in order
    seed_lo: u32,
    seed_hi: u32,
    step: u32,          // number of the training step
    start_lo: u32,      // gather: position of the batch in the order; normal: number of the first sample
    start_hi: u32,
    noise: f32,         // deviation of the noise added to x
    inverse_batch: f32, // 1 / samples of the whole batch
    loss_cell: u32,     // where in `scratch` the batch's sums of the loss begin, one per 8 quads, or NONE: nobody asks
    group_rows: u32,    // normal: samples of a group, 0 if all are one; then `step` is the number of the first group
}

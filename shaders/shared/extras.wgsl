// Where things lie in `extras`. Mirrors `src/engine/gpu/kernels/extras.rs`.
const EXTRA_SCALE: u32 = 0u;    // factor of the gradient; negative: no update
const EXTRA_SKIPPED: u32 = 1u;  // updates left out
const EXTRA_IN_A_ROW: u32 = 2u; // those since the last that was done
const EXTRA_SUMS: u32 = 4u;     // squares of the gradient, per workgroup
const EXTRA_AVERAGES: u32 = 260u;

//! The three matrix products of a linear layer on feature-major tiles.
//!
//! In a tile (features, samples) the samples are contiguous; `w` is row-major `[n_out, n_in]`. Forward and data
//! gradient are the same loop with other strides ([`linear`]); the gradient of the weights is a product of its own
//! ([`weights`]).
//!
//! # What decided the speed
//!
//! Per core of a server processor with AVX-512 on which a loop of nothing but multiply-adds reaches 215 GFLOP/s (AVX2:
//! 110), layers of 152 x 152 on 160 samples reach 150 to 170 forward, 140 to 155 for data gradients and 140 for weight
//! gradients (AVX2: 98, 90, 89). Matrices are used once or twice while they are in cache, so packing does not pay;
//! bounds are checked once per register tile, which made products of one to ten inputs up to 1.6 times as fast.
//!
//! Products of more than 192 features ([`Matrix::wide`]) wait for memory. In the order of a training step of cross4d0,
//! data gradients of 452 x 452 reached 105 GFLOP/s, though 143 by themselves. The following make its step 9 % shorter:
//!
//! - Data gradients read the weights of successive outputs half a page apart. Parts of 96 outputs keep weights and
//!   samples in the first-level cache, and their pages among those whose addresses it knows: 126 (160 outputs: 109, 64:
//!   120).
//! - What a register tile touches only at its end is fetched at its beginning: masks (50 outputs: 65 to 86), outputs of
//!   forward products (452 to 50: 105 to 129), gradients of weights (143 to 163).
//!
//! # What did not help
//!
//! - Weights of a register tile gathered side by side, then all samples past them: 152 x 152 at 122 instead of 153
//!   GFLOP/s, 452 x 452 forward at 122 instead of 137; the samples come from the second-level cache each time.
//! - Inputs in blocks of 192, so that samples stay in the first-level cache: 452 x 452 at 133 instead of 130, no
//!   difference beyond noise. Two base pointers for eight weights, to save address arithmetic: none either.
//! - Forward products of 452 inputs in parts, once outputs are fetched: none. Weights of data gradients fetched 24
//!   outputs ahead, gradients of weights before other products of the same activations: none. Nor all weights of the
//!   next network and all gradients of this one, before its products: cross4 at 617 instead of 618 ms. The first two in
//!   the code of narrow layers, behind a flag: lens1, lens2 and small up to 7 % slower.
//! - Weights of layers wider than 160 transposed before their data gradient, so that they are read in order: cross4d0
//!   at 495 instead of 490 ms, cross4 at 640 instead of 653.
//! - One vector of samples left over, in a tile of its own: its loads take longer than its products, 9 % of the whole
//!   at 160 samples. Two tiles now have two vectors each.
//! - Intrinsics in closures (`array::from_fn`): closures do not inherit the instruction set, so each became a call;
//!   with AVX2 these calls were a seventh of a step. Loops over arrays are unrolled just as well.
//! - The `gemm` crate: lens1 took twice the time, since layers of 5 to 80 features are mostly packing to it.

mod linear;
#[cfg(test)]
mod tests;
mod weights;

pub(crate) use linear::{End, Start, data_gradient, forward};
pub(crate) use weights::weight_gradient;

/// A weight matrix, or some columns of one side by side: its first weight is the first of the slice that goes with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Matrix {
    /// n_out.
    pub(crate) outputs: usize,
    /// n_in, or the number of columns.
    pub(crate) inputs: usize,
    /// Weights from one output to the next.
    pub(crate) pitch: usize,
}

impl Matrix {
    /// A whole matrix.
    pub(crate) fn whole(outputs: usize, inputs: usize) -> Self {
        Self { outputs, inputs, pitch: inputs }
    }

    /// Whether 48 samples of the wider side, with the weights that go with them, overflow a first-level cache of 48 KB.
    #[inline(always)]
    fn wide(self) -> bool {
        self.outputs.max(self.inputs) > 192
    }
}

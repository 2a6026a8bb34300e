//! Dropout (Srivastava et al. 2014): hidden activations that a training step sets to zero, by counter-based random numbers.
//!
//! Whether a unit of a sample is dropped is a function of seed, step, position in the batch and unit, so the backward
//! pass finds the same ones again, on any number of threads. A counter has sixteen bytes, for sixteen units side by
//! side; the rate is a multiple of 1/256. What is not dropped is scaled up, so that inference has nothing to do.

use super::math::lanes_mut;
use super::normals::philox;
use super::simd::{self, Kernel, Simd};
use super::{LANES, Shape};
use crate::plan::Node;
use crate::rng::{self, Stream};

/// Units that a counter is for.
const UNITS: u32 = 16;

/// What the hidden units of a tile lose in a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Dropout {
    /// Probability of a unit to be dropped, in parts of 256; below 256.
    pub(crate) rate: u8,
    pub(crate) seed: u64,
    pub(crate) step: u32,
    /// Position of the tile's first sample in the batch.
    pub(crate) first_row: u32,
    /// Number of the first group of sixteen units; of a stage, later of a layer.
    pub(crate) group: u32,
}

/// Groups of sixteen units of a layer.
fn groups(hidden: u32) -> u32 {
    hidden.div_ceil(UNITS)
}

impl Dropout {
    /// A rate between 0 and 1 in parts of 256, the nearest that is not everything.
    pub(crate) fn parts(rate: f32) -> u8 {
        (rate * 256.0).round().clamp(0.0, 255.0) as u8
    }

    /// Of one network: both its layers have whole groups to themselves.
    pub(super) fn of(self, node: &Node, network: u32) -> Self {
        // Groups of other networks begin at other hidden rows, and a network has no more groups than rows in both
        // layers but for one per layer.
        Self { group: self.group + 2 * node.hidden_of(network), ..self }
    }

    /// Of a layer of a network.
    pub(super) fn layer(self, layer: u32) -> Self {
        Self { group: self.group + layer, ..self }
    }

    /// Of the samples from a place on.
    pub(super) fn from(self, at: usize) -> Self {
        Self { first_row: self.first_row + at as u32, ..self }
    }

    /// What is not dropped is multiplied by this.
    fn factor(self) -> f32 {
        256.0 / (256.0 - f32::from(self.rate))
    }

    /// Drops units of a layer (hidden, samples), and scales the others.
    pub(super) fn apply(self, shape: Shape, hidden: u32, h: &mut [f32]) {
        simd::run(Apply { dropout: self, shape, hidden, h });
    }

    /// Scales gradients of a layer (hidden, samples), of which those of dropped units are zero.
    pub(super) fn scale(self, shape: Shape, hidden: u32, d_h: &mut [f32]) {
        simd::run(Scale { factor: self.factor(), shape, hidden, d_h });
    }
}

struct Apply<'a> {
    dropout: Dropout,
    shape: Shape,
    hidden: u32,
    h: &'a mut [f32],
}

impl Kernel for Apply<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { dropout, shape, hidden, h } = self;
        let key = rng::key(dropout.seed);
        let (threshold, factor) = (u32::from(dropout.rate), dropout.factor());
        for at in (0..shape.width).step_by(LANES) {
            let mut rows = [0; LANES];
            for (i, row) in rows.iter_mut().enumerate() {
                *row = dropout.first_row.wrapping_add((at + i) as u32);
            }
            for group in 0..groups(hidden) {
                // The layers of a network take turns.
                let number = [dropout.group + 2 * group; LANES];
                let words = philox([rows, number, [dropout.step; LANES], [Stream::Dropout as u32; LANES]], key);
                for unit in group * UNITS..((group + 1) * UNITS).min(hidden) {
                    let byte = unit % UNITS;
                    let words = &words[byte as usize / 4];
                    let h = lanes_mut(h, unit as usize * shape.stride + at);
                    for i in 0..LANES {
                        let stays = (words[i] >> (8 * (byte % 4))) & 255 >= threshold;
                        // A NaN stays one, dropped or not.
                        h[i] *= if stays { factor } else { 0.0 };
                    }
                }
            }
        }
    }
}

struct Scale<'a> {
    factor: f32,
    shape: Shape,
    hidden: u32,
    d_h: &'a mut [f32],
}

impl Kernel for Scale<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        for unit in 0..self.hidden as usize {
            for at in (0..self.shape.width).step_by(LANES) {
                for d in lanes_mut(self.d_h, unit * self.shape.stride + at) {
                    *d *= self.factor;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::simd::Level;

    fn dropped(dropout: Dropout, shape: Shape, hidden: u32) -> Vec<f32> {
        let mut h = vec![1.0; hidden as usize * shape.stride];
        dropout.apply(shape, hidden, &mut h);
        h
    }

    #[test]
    fn the_rate_is_met_and_the_mean_stays() {
        let shape = Shape { stride: 1008, width: 1008, rows: 1000 };
        for rate in [0.0, 0.1, 0.5, 0.97] {
            let dropout = Dropout { rate: Dropout::parts(rate), seed: 5, step: 9, first_row: 0, group: 4 };
            let h = dropped(dropout, shape, 100);
            let zeros = h.iter().filter(|&&v| v == 0.0).count() as f32 / h.len() as f32;
            assert!((zeros - rate).abs() < 0.005, "{rate}: {zeros}");
            assert!((h.iter().sum::<f32>() / h.len() as f32 - 1.0).abs() < 0.03, "{rate}");
        }
        assert_eq!([0.0, 0.001, 0.1, 1.0].map(Dropout::parts), [0, 0, 26, 255]);
    }

    /// A unit's fate depends on its sample and number alone, and is the same on every instruction set.
    #[test]
    fn samples_and_layers_have_numbers_of_their_own() {
        let dropout = Dropout { rate: 128, seed: 5, step: 9, first_row: 32, group: 4 };
        let shape = Shape { stride: 64, width: 64, rows: 64 };
        let whole = dropped(dropout, shape, 40);
        let part = dropped(dropout.from(16), Shape { width: 32, rows: 32, ..shape }, 40);
        for unit in 0..40 {
            assert_eq!(whole[unit * 64 + 16..][..32], part[unit * 64..][..32], "unit {unit}");
        }
        for level in Level::available() {
            assert!(level_of(level, || dropped(dropout, shape, 40)) == whole, "{level:?}");
        }
        let others = [
            dropout.layer(1),
            Dropout { step: 10, ..dropout },
            Dropout { seed: 6, ..dropout },
            Dropout { first_row: 33, ..dropout },
        ];
        for other in others {
            let same = dropped(other, shape, 40).iter().zip(&whole).filter(|(a, b)| a == b).count();
            assert!(same.abs_diff(1280) < 200, "{other:?}: {same} of 2560");
        }
    }

    fn level_of<R>(level: Level, f: impl FnOnce() -> R) -> R {
        let mut result = None;
        level.force(|| result = Some(f()));
        result.unwrap()
    }

    #[test]
    fn a_nan_is_not_dropped() {
        let shape = Shape { stride: 16, width: 16, rows: 16 };
        let mut h = vec![f32::NAN; 16];
        Dropout { rate: 255, seed: 1, step: 0, first_row: 0, group: 0 }.apply(shape, 1, &mut h);
        assert!(h.iter().all(|v| v.is_nan()));
    }
}

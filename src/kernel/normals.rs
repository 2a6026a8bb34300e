//! Standard normals for a tile, the numbers of [`crate::rng::normals4`] with many samples side by side. The random
//! words are the same; logarithm, sine and cosine are this room's own, so values agree to rounding.

use super::math::{LaneArray, cos_sin_turn, lanes_mut, ln};
use super::simd::{self, Kernel, Simd};
use super::{LANES, Shape};
use crate::rng::{self, Stream};

/// Which normals: a sample has whole groups of four to itself, so that its values depend on its number and the columns
/// alone.
#[derive(Clone, Copy)]
pub(crate) struct Numbers {
    pub(crate) seed: u64,
    pub(crate) stream: Stream,
    pub(crate) step: u32,
    /// Number of the tile's first sample.
    pub(crate) first_row: u64,
    /// Where it is not 0, samples are counted in groups of so many, from 0 in each, and every group has a step of its
    /// own.
    pub(crate) group_rows: u32,
}

/// Adds `factor` times a normal to every element of `to` (N, samples), padding included.
pub(crate) fn add(shape: Shape, numbers: Numbers, factor: f32, to: &mut [f32]) {
    simd::run(Add { shape, numbers, factor, to });
}

struct Add<'a> {
    shape: Shape,
    numbers: Numbers,
    factor: f32,
    to: &'a mut [f32],
}

impl Kernel for Add<'_> {
    #[inline(always)]
    fn run<S: Simd>(self) {
        let Self { shape, numbers, factor, to } = self;
        let columns = to.len() / shape.stride;
        let groups = columns.div_ceil(4);
        let key = rng::key(numbers.seed);
        for at in (0..shape.width).step_by(LANES) {
            for group in 0..groups {
                let (mut low, mut high, mut step) = ([0; LANES], [0; LANES], [numbers.step; LANES]);
                for i in 0..LANES {
                    // Numbers beyond the last wrap, rather than fail: nobody draws 2^64 samples.
                    let mut row = numbers.first_row.wrapping_add((at + i) as u64);
                    if numbers.group_rows > 0 {
                        // Behind the last group only padding follows, for which there may be no number.
                        step[i] = step[i].wrapping_add((row / u64::from(numbers.group_rows)) as u32);
                        row %= u64::from(numbers.group_rows);
                    }
                    let number = row.wrapping_mul(groups as u64).wrapping_add(group as u64);
                    (low[i], high[i]) = (number as u32, (number >> 32) as u32);
                }
                let words = philox([low, high, step, [numbers.stream as u32; LANES]], key);
                let mut normals = [[0.0; LANES]; 4];
                for pair in 0..2 {
                    let [first, second] = box_muller::<S>(&words[2 * pair], &words[2 * pair + 1]);
                    normals[2 * pair] = first;
                    normals[2 * pair + 1] = second;
                }
                for (c, normals) in (group * 4..columns).zip(&normals) {
                    let to = lanes_mut(to, c * shape.stride + at);
                    for i in 0..LANES {
                        to[i] += factor * normals[i];
                    }
                }
            }
        }
    }
}

/// [`rng::philox4x32_10`] for many counters.
#[inline(always)]
pub(super) fn philox(counter: [[u32; LANES]; 4], mut key: [u32; 2]) -> [[u32; LANES]; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    for _ in 0..rng::ROUNDS {
        for i in 0..LANES {
            let p = u64::from(rng::MULTIPLIERS[0]) * u64::from(c0[i]);
            let q = u64::from(rng::MULTIPLIERS[1]) * u64::from(c2[i]);
            (c0[i], c2[i]) = ((q >> 32) as u32 ^ c1[i] ^ key[0], (p >> 32) as u32 ^ c3[i] ^ key[1]);
            (c1[i], c3[i]) = (q as u32, p as u32);
        }
        key = [key[0].wrapping_add(rng::WEYL[0]), key[1].wrapping_add(rng::WEYL[1])];
    }
    [c0, c1, c2, c3]
}

/// Two rows of words to two rows of standard normals.
#[inline(always)]
fn box_muller<S: Simd>(u0: &[u32; LANES], u1: &[u32; LANES]) -> [LaneArray; 2] {
    let mut normals = [[0.0; LANES]; 2];
    for i in 0..LANES {
        let r = (-2.0 * ln::<S>(rng::unit_f32(u0[i]))).max(0.0).sqrt();
        let [cos, sin] = cos_sin_turn::<S>(rng::unit_f32(u1[i]));
        normals[0][i] = r * cos;
        normals[1][i] = r * sin;
    }
    normals
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::simd::Level;

    /// Against the scalar numbers, across the border of 2^32 groups.
    #[test]
    fn normals_are_those_of_the_scalar_generator() {
        let shape = Shape { stride: 48, width: 32, rows: 21 };
        for (columns, first_row) in [(1, 0), (4, 7), (6, (1 << 31) - 3), (13, 5)] {
            let numbers =
                Numbers { seed: 0x1234_5678_9abc_def0, stream: Stream::Noise, step: 9, first_row, group_rows: 0 };
            for level in Level::available() {
                let mut to = vec![1.0; columns * shape.stride];
                level.force(|| add(shape, numbers, 0.5, &mut to));
                for r in 0..shape.width {
                    let groups = columns.div_ceil(4) as u64;
                    for c in 0..columns {
                        let group = (first_row + r as u64) * groups + c as u64 / 4;
                        let want = 1.0 + 0.5 * rng::normals4(numbers.seed, numbers.stream, numbers.step, group)[c % 4];
                        let got = to[c * shape.stride + r];
                        assert!((got - want).abs() < 2e-6, "{level:?}, column {c}, sample {r}: {got} or {want}");
                    }
                }
            }
        }
    }

    /// Normals of a group do not depend on what comes before and after it.
    #[test]
    fn groups_have_numbers_of_their_own() {
        let shape = Shape { stride: 48, width: 48, rows: 48 };
        let fill = |step, first_row, group_rows| {
            let mut to = vec![0.0; 5 * shape.stride];
            add(shape, Numbers { seed: 3, stream: Stream::Latent, step, first_row, group_rows }, 1.0, &mut to);
            to
        };
        let (all, alone, later) = (fill(7, 4, 10), fill(8, 0, 10), fill(8, 0, 0));
        for c in 0..5 {
            // The first group ends after six samples.
            assert_eq!(all[c * 48 + 6..][..10], alone[c * 48..][..10]);
            assert_eq!(all[c * 48 + 6..][..10], later[c * 48..][..10]);
            assert_ne!(all[c * 48 + 16..][..10], alone[c * 48..][..10]);
        }
    }
}

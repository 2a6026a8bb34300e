//! Random numbers as pure functions of (seed, purpose, step, index): Philox4x32-10 and what is built on it.
//!
//! Nothing here has hidden state, so a value depends neither on the order in which values are drawn nor on the number
//! of threads, and the shaders can compute the same value on their own (`shaders/shared` mirrors [`philox4x32_10`] and
//! [`normals4`] word by word).
//!
//! # Counter layout
//!
//! The key is the seed: `[seed as u32, (seed >> 32) as u32]`. The counter has four words:
//!
//! | word | indexed use ([`normals4`], [`uniform01`]) | sequential use ([`Counter`]) |
//! |---|---|---|
//! | 0 | group of values, low half | block, counts up from 0 |
//! | 1 | group of values, high half | `part` (the low half of a data row) |
//! | 2 | step or epoch | step or epoch (the high half of a data row) |
//! | 3 | [`Stream`] | [`Stream`] |
//!
//! One stream must keep to one use: the two would meet in the same counters.
//!
//! # Normals
//!
//! Four per counter, value `4 * group + j`, by Box-Muller on the words `(0, 1)` and `(2, 3)`, all in f32:
//!
//! ```text
//! f(u) = (f32(u >> 8) + 0.5) * 2^-24            in (0, 1]: the sum rounds to even from 2^23 on
//! r    = sqrt(max(-2 ln f(u0), 0))              the max is for devices whose ln(1) is not exactly 0
//! z0, z1 = r cos(2 pi f(u1)), r sin(2 pi f(u1))
//! ```
//!
//! The smallest uniform is 2^-25, so no normal is larger than 5.9. The words are the same everywhere; `ln`, `sin` and
//! `cos` may differ in the last bits between devices and system libraries.

use std::convert::Infallible;
use std::f32::consts::TAU;

use rand::TryRng;

/// What a random number is for. Each purpose has numbers of its own, so that a change in one place (say, a larger
/// batch) leaves all others as they were.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub(crate) enum Stream {
    /// Initial values of the trained parameters.
    InitParameters = 1,
    /// Fixed orthogonal matrices between blocks.
    Mixing = 2,
    /// Order of the training rows in an epoch.
    Shuffle = 3,
    /// Noise added to a training batch.
    Noise = 4,
    /// Latent vectors that are decoded to samples.
    Latent = 5,
    /// Simulated data sets, one substream per row.
    Data = 6,
    /// Choice of the validation rows.
    Split = 7,
    /// Noise added once to the rows that a training is scored on.
    TestNoise = 8,
    /// Hidden units that a training step drops: word 0 is the position in the batch, word 1 the group of sixteen units.
    Dropout = 9,
    /// States of an ensemble that is filtered: the step is that of the filter, the part the row.
    Ensemble = 10,
    /// The same of a particle filter, so that it shares no number with the filters it judges.
    Particles = 11,
    /// Where systematic resampling begins.
    Resampling = 12,
    /// Latent vectors of the training steps of an INN, by position in the batch.
    TrainingLatent = 13,
    /// Padding of the training steps of an INN, on either side.
    Padding = 14,
    /// Gaps between ranks of a diagnosis, and labels that it shuffles.
    Diagnosis = 15,
}

pub(crate) const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
pub(crate) const WEYL: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
pub(crate) const ROUNDS: usize = 10;

/// The Philox4x32-10 bijection (Salmon et al. 2011): four random words for a counter and a key.
pub(crate) fn philox4x32_10(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    let [mut c0, mut c1, mut c2, mut c3] = counter;
    let [mut k0, mut k1] = key;
    for _ in 0..ROUNDS {
        let p0 = u64::from(MULTIPLIERS[0]) * u64::from(c0);
        let p1 = u64::from(MULTIPLIERS[1]) * u64::from(c2);
        (c0, c1, c2, c3) = ((p1 >> 32) as u32 ^ c1 ^ k0, p1 as u32, (p0 >> 32) as u32 ^ c3 ^ k1, p0 as u32);
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3]
}

/// A seed as the two key words of [`philox4x32_10`].
pub(crate) fn key(seed: u64) -> [u32; 2] {
    [seed as u32, (seed >> 32) as u32]
}

/// The four words of a group of values.
fn words(seed: u64, stream: Stream, step: u32, group: u64) -> [u32; 4] {
    philox4x32_10([group as u32, (group >> 32) as u32, step, stream as u32], key(seed))
}

/// A word as a uniform number in (0, 1], the `f` of the module's formula.
#[inline(always)]
pub(crate) fn unit_f32(word: u32) -> f32 {
    ((word >> 8) as f32 + 0.5) * (1.0 / 16_777_216.0)
}

/// 64 random bits as a uniform number in [0, 1): a multiple of 2^-53.
pub(crate) fn unit_f64(bits: u64) -> f64 {
    (bits >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
}

/// Uniform number `index` of a stream and step, in [0, 1). Two per counter.
#[cfg(test)]
pub(crate) fn uniform01(seed: u64, stream: Stream, step: u32, index: u64) -> f64 {
    let w = words(seed, stream, step, index / 2);
    let [lo, hi] = if index.is_multiple_of(2) { [w[0], w[1]] } else { [w[2], w[3]] };
    unit_f64(u64::from(lo) | u64::from(hi) << 32)
}

/// Box-Muller: two words to two standard normals.
fn box_muller(u0: u32, u1: u32) -> [f32; 2] {
    let r = (-2.0 * unit_f32(u0).ln()).max(0.0).sqrt();
    let (sin, cos) = (TAU * unit_f32(u1)).sin_cos();
    [r * cos, r * sin]
}

/// Standard normals number `4 * group .. 4 * group + 4` of a stream and step.
pub(crate) fn normals4(seed: u64, stream: Stream, step: u32, group: u64) -> [f32; 4] {
    let [u0, u1, u2, u3] = words(seed, stream, step, group);
    let [a, b] = box_muller(u0, u1);
    let [c, d] = box_muller(u2, u3);
    [a, b, c, d]
}

/// Standard normals number `first_index ..` of a stream and step. Any cut of the range into calls gives the same
/// values.
pub(crate) fn fill_normals(seed: u64, stream: Stream, step: u32, first_index: u64, out: &mut [f32]) {
    let mut group = first_index / 4;
    let skip = (first_index % 4) as usize;
    let (head, rest) = out.split_at_mut(if skip == 0 { 0 } else { (4 - skip).min(out.len()) });
    if !head.is_empty() {
        let four = normals4(seed, stream, step, group);
        head.copy_from_slice(&four[skip..skip + head.len()]);
        group += 1;
    }
    for (values, group) in rest.chunks_mut(4).zip(group..) {
        values.copy_from_slice(&normals4(seed, stream, step, group)[..values.len()]);
    }
}

/// A sequential generator over one substream, for host code that draws an unknown number of values (a data row, a
/// shuffle).
///
/// Implements [`rand::TryRng`] without errors and so [`rand::Rng`]. A substream has 2^34 words; drawing more panics
/// rather than repeat itself.
#[derive(Debug, Clone)]
pub(crate) struct Counter {
    key: [u32; 2],
    /// The three fixed words: part, step, stream.
    address: [u32; 3],
    /// Number of the next block; `u64` so that the end is seen.
    next_block: u64,
    block: [u32; 4],
    /// Words of `block` already handed out.
    used: usize,
}

impl Counter {
    /// The substream `part` of a stream and step.
    pub(crate) fn new(seed: u64, stream: Stream, step: u32, part: u32) -> Self {
        Self { key: key(seed), address: [part, step, stream as u32], next_block: 0, block: [0; 4], used: 4 }
    }

    /// The substream of one row of a data set.
    pub(crate) fn for_row(seed: u64, stream: Stream, row: u64) -> Self {
        Self::new(seed, stream, (row >> 32) as u32, row as u32)
    }

    fn word(&mut self) -> u32 {
        if self.used == 4 {
            let block = u32::try_from(self.next_block).expect("a random substream has no more than 2^32 blocks");
            let [part, step, stream] = self.address;
            self.block = philox4x32_10([block, part, step, stream], self.key);
            self.next_block += 1;
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// Two words, the first as the low half.
    fn double_word(&mut self) -> u64 {
        let low = u64::from(self.word());
        low | u64::from(self.word()) << 32
    }

    /// A uniform number in [0, 1).
    pub(crate) fn uniform01(&mut self) -> f64 {
        unit_f64(self.double_word())
    }

    /// A uniform number in [low, high).
    pub(crate) fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform01()
    }

    /// Two independent standard normals in f64 (Box-Muller on 53-bit uniforms).
    pub(crate) fn normal_pair(&mut self) -> [f64; 2] {
        // 1 - u is in (0, 1], so the logarithm is finite.
        let r = (-2.0 * (1.0 - self.uniform01()).ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * self.uniform01()).sin_cos();
        [r * cos, r * sin]
    }

    /// A uniform integer below `bound`, without the bias of a remainder (Lemire 2019). `bound` must not be 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        assert_ne!(bound, 0, "there is no integer below 0");
        // The product's high half is the result; low halves under 2^32 mod bound would be hit once too often.
        let biased = bound.wrapping_neg() % bound;
        loop {
            let product = u64::from(self.word()) * u64::from(bound);
            if product as u32 >= biased {
                return (product >> 32) as u32;
            }
        }
    }
}

impl TryRng for Counter {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.word())
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.double_word())
    }

    fn try_fill_bytes(&mut self, out: &mut [u8]) -> Result<(), Infallible> {
        for bytes in out.chunks_mut(4) {
            bytes.copy_from_slice(&self.word().to_le_bytes()[..bytes.len()]);
        }
        Ok(())
    }
}

/// A uniformly random order of `0..n` for an epoch (Fisher-Yates on [`Stream::Shuffle`]).
pub(crate) fn permutation(seed: u64, epoch: u32, n: u32) -> Vec<u32> {
    permutation_on(seed, Stream::Shuffle, epoch, n)
}

/// A uniformly random order of `0..n` for a step of any stream.
pub(crate) fn permutation_on(seed: u64, stream: Stream, step: u32, n: u32) -> Vec<u32> {
    let mut rng = Counter::new(seed, stream, step, 0);
    let mut order: Vec<u32> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last as usize, rng.below(last + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;
    use std::collections::HashMap;

    #[test]
    fn philox_matches_the_known_answers_of_random123() {
        let cases = [
            ([0; 4], [0; 2], [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]),
            ([u32::MAX; 4], [u32::MAX; 2], [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]),
            (
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
                [0xa409_3822, 0x299f_31d0],
                [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
            ),
        ];
        for (counter, key, expected) in cases {
            assert_eq!(philox4x32_10(counter, key), expected);
        }
    }

    #[test]
    fn counter_words_are_where_the_documentation_says() {
        let seed = 0x0123_4567_89ab_cdef;
        let got = normals4(seed, Stream::Latent, 9, 0x5_0000_0003);
        let w = philox4x32_10([3, 5, 9, 5], [0x89ab_cdef, 0x0123_4567]);
        let expected = [box_muller(w[0], w[1]), box_muller(w[2], w[3])].concat();
        assert_eq!(got.as_slice(), expected);

        let mut rows = Counter::for_row(seed, Stream::Data, 0x7_0000_0002);
        let first: Vec<u32> = (0..8).map(|_| rows.next_u32()).collect();
        let blocks = [0, 1].map(|block| philox4x32_10([block, 2, 7, 6], [0x89ab_cdef, 0x0123_4567]));
        assert_eq!(first, blocks.concat());
    }

    #[test]
    fn box_muller_follows_the_formula_at_its_ends() {
        assert_eq!(unit_f32(0), 2f32.powi(-25));
        assert_eq!(unit_f32(u32::MAX), 1.0);
        assert_eq!(unit_f32(1 << 31), 0.5); // 2^23 + 0.5 rounds to even
        let largest = box_muller(0, u32::MAX);
        assert!((largest[0] - (50.0 * 2f32.ln()).sqrt()).abs() < 1e-5, "{largest:?}");
        assert_eq!(box_muller(u32::MAX, 0), [0.0, 0.0]);
        // A quarter turn: sin 1, cos 0; radius 1 for f = exp(-1/2).
        let word = ((-0.5f64).exp() * 16_777_216.0) as u32;
        let [c, s] = box_muller(word << 8, 0x4000_0000);
        assert!(c.abs() < 1e-6 && (s - 1.0).abs() < 1e-6, "{c} {s}");
    }

    #[test]
    fn any_cut_of_a_range_gives_the_same_normals() {
        let mut whole = vec![f32::NAN; 41];
        fill_normals(3, Stream::Noise, 8, 5, &mut whole);
        for cut in 0..=whole.len() {
            let mut parts = vec![f32::NAN; whole.len()];
            let (left, right) = parts.split_at_mut(cut);
            fill_normals(3, Stream::Noise, 8, 5, left);
            fill_normals(3, Stream::Noise, 8, 5 + cut as u64, right);
            assert_eq!(parts, whole, "cut at {cut}");
        }
        for (j, &value) in whole.iter().enumerate() {
            let index = 5 + j as u64;
            assert_eq!(value, normals4(3, Stream::Noise, 8, index / 4)[(index % 4) as usize]);
        }
    }

    #[test]
    fn normals_have_the_moments_and_tails_of_a_normal() {
        let n = 400_000;
        let mut z = vec![0.0f32; n];
        fill_normals(1, Stream::Latent, 0, 0, &mut z);
        let moment = |p: i32| z.iter().map(|&v| f64::from(v).powi(p)).sum::<f64>() / n as f64;
        // Five standard errors of each moment.
        for (p, expected, variance) in [(1, 0.0, 1.0), (2, 1.0, 2.0), (3, 0.0, 15.0), (4, 3.0, 96.0)] {
            let tolerance = 5.0 * (variance / n as f64).sqrt();
            assert!((moment(p) - expected).abs() <= tolerance, "moment {p}: {}", moment(p));
        }
        let neighbours = z.windows(2).map(|w| f64::from(w[0]) * f64::from(w[1])).sum::<f64>() / n as f64;
        assert!(neighbours.abs() <= 5.0 / (n as f64).sqrt(), "{neighbours}");
        let beyond2 = z.iter().filter(|v| v.abs() > 2.0).count() as f64 / n as f64;
        assert!((beyond2 - 0.045_500).abs() <= 5.0 * (0.0455f64 / n as f64).sqrt(), "{beyond2}");
    }

    #[test]
    fn uniforms_and_seeds_differ_by_every_coordinate() {
        let mut seen = HashMap::new();
        for seed in [0, 1, 1 << 32] {
            for stream in [Stream::Data, Stream::Split] {
                for step in 0..3 {
                    for index in 0..5 {
                        let u = uniform01(seed, stream, step, index);
                        assert!((0.0..1.0).contains(&u));
                        let before = seen.insert(u.to_bits(), (seed, stream, step, index));
                        assert_eq!(before, None);
                    }
                }
            }
        }
        let mut sequential = Counter::new(4, Stream::Data, 0, 0);
        assert_eq!(uniform01(4, Stream::Data, 0, 0), sequential.uniform01());
        assert_eq!(uniform01(4, Stream::Data, 0, 1), sequential.uniform01());
    }

    #[test]
    fn counter_serves_bytes_and_words_alike() {
        let mut a = Counter::new(11, Stream::Split, 2, 3);
        let mut b = a.clone();
        let mut bytes = [0u8; 20];
        a.fill_bytes(&mut bytes);
        let words: Vec<u8> = (0..5).flat_map(|_| b.next_u32().to_le_bytes()).collect();
        assert_eq!(bytes.as_slice(), words);
        assert_eq!(a.next_u64(), b.next_u64());
    }

    #[test]
    #[should_panic(expected = "2^32 blocks")]
    fn a_spent_substream_does_not_start_over() {
        let mut rng = Counter::new(0, Stream::Data, 0, 0);
        rng.next_block = u64::from(u32::MAX) + 1;
        rng.next_u32();
    }

    #[test]
    fn permutations_are_permutations_and_uniform() {
        for n in [0, 1, 2, 37, 1000] {
            let mut order = permutation(5, 1, n);
            order.sort_unstable();
            assert!(order.into_iter().eq(0..n));
        }
        assert_ne!(permutation(5, 1, 50), permutation(5, 2, 50));
        assert_ne!(permutation(5, 1, 50), permutation(6, 1, 50));
        assert_eq!(permutation(5, 1, 50), permutation(5, 1, 50));

        // All 24 orders of 4, chi-squared with 23 degrees of freedom: 99.99 % lie below 56.
        let draws = 24_000;
        let mut counts: HashMap<Vec<u32>, u32> = HashMap::new();
        for epoch in 0..draws {
            *counts.entry(permutation(9, epoch, 4)).or_default() += 1;
        }
        assert_eq!(counts.len(), 24);
        let expected = f64::from(draws) / 24.0;
        let chi2: f64 = counts.values().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert!(chi2 < 56.0, "{chi2}");
    }

    #[test]
    fn integers_below_a_bound_are_unbiased() {
        // 3 * 2^30 is the worst case of a plain product: a third of the values would come twice as often.
        let bound = 3 << 30;
        let mut rng = Counter::new(2, Stream::Data, 0, 0);
        let n = 90_000;
        let mut thirds = [0u32; 3];
        for _ in 0..n {
            thirds[(rng.below(bound) % 3) as usize] += 1;
        }
        for count in thirds {
            assert!((f64::from(count) - 30_000.0).abs() < 5.0 * 20_000f64.sqrt(), "{thirds:?}");
        }
    }
}

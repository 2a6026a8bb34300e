//! NumPy's legacy generator, `numpy.random.RandomState`: the Mersenne Twister MT19937 (Matsumoto and Nishimura 1998).
//!
//! The public preprocessing of POWER shuffles rows and adds noise with `RandomState(42)`, so that the same numbers give
//! the same rows to everybody. Nothing else of the crate draws from here; see [`crate::rng`].

const WORDS: usize = 624;
const SHIFT: usize = 397;

/// A generator in the state that NumPy's has after as many draws.
pub(super) struct RandomState {
    words: [u32; WORDS],
    next: usize,
}

impl RandomState {
    /// `RandomState(seed)`.
    pub(super) fn new(seed: u32) -> Self {
        let mut words = [seed; WORDS];
        for i in 1..WORDS {
            let last = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(last ^ last >> 30).wrapping_add(i as u32);
        }
        Self { words, next: WORDS }
    }

    fn word(&mut self) -> u32 {
        if self.next == WORDS {
            self.twist();
        }
        let mut word = self.words[self.next];
        self.next += 1;
        word ^= word >> 11;
        word ^= word << 7 & 0x9d2c_5680;
        word ^= word << 15 & 0xefc6_0000;
        word ^ word >> 18
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let mixed = self.words[i] & 0x8000_0000 | self.words[(i + 1) % WORDS] & 0x7fff_ffff;
            let odd = if mixed & 1 == 1 { 0x9908_b0df } else { 0 };
            self.words[i] = self.words[(i + SHIFT) % WORDS] ^ mixed >> 1 ^ odd;
        }
        self.next = 0;
    }

    /// One number of `rand`: uniform in [0, 1), a multiple of 2^-53.
    pub(super) fn uniform01(&mut self) -> f64 {
        let (high, low) = (self.word() >> 5, self.word() >> 6);
        (f64::from(high) * 67_108_864.0 + f64::from(low)) / 9_007_199_254_740_992.0
    }

    /// A uniform integer from 0 to `most`, by rejection of what is too large of so many bits.
    fn to(&mut self, most: u32) -> u32 {
        let mask = u32::MAX.checked_shr(most.leading_zeros()).unwrap_or(0);
        loop {
            let value = self.word() & mask;
            if value <= most {
                return value;
            }
        }
    }

    /// `shuffle` of `rows` rows: `swap` exchanges two of them.
    pub(super) fn shuffle(&mut self, rows: u32, mut swap: impl FnMut(usize, usize)) {
        for last in (1..rows).rev() {
            let other = self.to(last);
            if other != last {
                swap(last as usize, other as usize);
            }
        }
    }

    /// `permutation(rows)`.
    pub(super) fn permutation(&mut self, rows: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..rows).collect();
        self.shuffle(rows, |i, j| order.swap(i, j));
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All of NumPy 2.4.
    #[test]
    fn numbers_are_numpys() {
        let mut rng = RandomState::new(42);
        let drawn = [0; 3].map(|_| rng.uniform01());
        assert_eq!(drawn, [0.374_540_118_847_362_5, 0.950_714_306_409_916_2, 0.731_993_941_811_405_1]);
        assert_eq!(RandomState::new(0).uniform01(), 0.548_813_503_927_324_8);
        assert_eq!(RandomState::new(42).permutation(10), [8, 1, 5, 0, 7, 2, 9, 4, 3, 6]);
        assert_eq!(RandomState::new(7).permutation(5), [0, 3, 2, 1, 4]);
        // Many twists.
        let mut rng = RandomState::new(42);
        let order = rng.permutation(100_000);
        assert_eq!(order[..5], [75_721, 80_184, 19_864, 76_699, 92_991]);
        assert_eq!(order[99_997..], [76_820, 860, 15_795]);
        assert_eq!(rng.uniform01(), 0.574_866_639_908_496_7);
    }
}

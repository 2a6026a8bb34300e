//! SIMD without compiler flags: a kernel is written once over [`Simd`] and compiled per instruction set, and the best
//! one is chosen when the program runs.
//!
//! [`run`] is the only place that calls code of an instruction set, after asking the processor ([`Level`]).

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod level;
mod portable;

pub(crate) use level::Level;
pub(crate) use portable::Portable;

/// A vector of `f32` of one instruction set.
pub(crate) trait Simd: Copy {
    /// Values in a vector: 4, 8 or 16.
    const WIDTH: usize;
    /// Vector registers, which decide the shape of a register tile: 16 or 32.
    const REGISTERS: usize;
    /// Whether a multiplication and an addition are one instruction, rounded once.
    const FUSED: bool;
    /// The vector.
    type Vector: Copy;
    /// All lanes `value`.
    fn splat(value: f32) -> Self::Vector;
    /// Reads `WIDTH` values.
    ///
    /// # Safety
    /// `from` points to `WIDTH` values. (A slice would cost a bounds check and a register in the innermost loops.)
    unsafe fn load(from: *const f32) -> Self::Vector;
    /// Writes the `WIDTH` values.
    ///
    /// # Safety
    /// `to` points to `WIDTH` values.
    unsafe fn store(vector: Self::Vector, to: *mut f32);
    /// Writes the first values, at most `WIDTH`.
    fn store_first(vector: Self::Vector, to: &mut [f32]);
    /// Adds the first values, at most `WIDTH`, to what is there.
    fn add_to(vector: Self::Vector, to: &mut [f32]);
    /// `a * b + c`.
    fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// ReLU: zero if negative. NaN stays NaN: a broken weight must show in the loss.
    fn relu(a: Self::Vector) -> Self::Vector;
    /// `a` where `by > 0`, else 0.
    fn keep_positive(a: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// Sums of the lanes of four vectors, each in a fixed order.
    fn sums(of: [Self::Vector; 4]) -> [f32; 4];
    /// Transposes a square block: value `j` of row `i` goes to value `i` of row `j`. Of the rows of the source only the
    /// first `rows`, at most `WIDTH`, are read, and the others taken as zeros.
    ///
    /// # Safety
    /// Each row of the source and of the target holds `WIDTH` values; rows are `from_stride` and `to_stride` apart.
    unsafe fn transpose(from: *const f32, from_stride: usize, rows: usize, to: *mut f32, to_stride: usize);
}

/// A computation that is compiled once per instruction set. `run` must be `#[inline(always)]`, and so must be what it
/// calls: only then does it become code of that instruction set.
pub(crate) trait Kernel {
    fn run<S: Simd>(self);
}

/// Runs a kernel with the instruction set of this thread: the best of the processor, or a lower one that was asked for.
pub(crate) fn run(kernel: impl Kernel) {
    match Level::current() {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a level is current only where the processor has its instructions.
        Level::Avx512 => unsafe { avx512::run(kernel) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2::run(kernel) },
        Level::Portable => kernel.run::<Portable>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the operations of an instruction set put out, sixteen lanes of each whatever its width.
    struct Outputs<'a>(&'a mut Vec<[f32; 16]>);

    impl Kernel for Outputs<'_> {
        #[inline(always)]
        fn run<S: Simd>(self) {
            let w = S::WIDTH;
            // Whole numbers, so that every sum is exact and no order of summation shows.
            let numbers: Vec<f32> = (0..16 * 40).map(|i| (i * i % 251) as f32 - 100.0).collect();
            // SAFETY: every place used below has 16 numbers after it.
            let load = |at: usize| unsafe { S::load(numbers[at..at + w].as_ptr()) };
            let mut lanes = |f: &dyn Fn(usize) -> S::Vector| {
                let mut to = [0.0; 16];
                for at in (0..16).step_by(w) {
                    // SAFETY: `w` divides 16.
                    unsafe { S::store(f(at), to[at..at + w].as_mut_ptr()) };
                }
                self.0.push(to);
            };
            lanes(&|at| S::mul_add(load(at), load(at + 40), load(at + 80)));
            lanes(&|at| S::relu(load(at)));
            lanes(&|at| S::keep_positive(load(at), load(at + 40)));
            lanes(&|_| S::relu(S::splat(f32::NAN)));
            lanes(&|at| S::keep_positive(load(at), S::splat(f32::NAN)));
            for n in 0..=4 {
                let mut to = [1.0; 16];
                S::add_to(load(3), &mut to[..n]);
                S::store_first(load(3), &mut to[8..8 + n]);
                self.0.push(to);
            }
            let mut to = [1.0; 16];
            to.chunks_mut(w).enumerate().for_each(|(i, to)| S::add_to(load(7 + i * w), to));
            self.0.push(to);
            let sum_of_16 = |first: usize| {
                let parts = (first..first + 16).step_by(w).map(load);
                parts.reduce(|a, b| S::mul_add(S::splat(1.0), a, b)).unwrap_or(S::splat(0.0))
            };
            let mut to = [0.0; 16];
            to[..4].copy_from_slice(&S::sums([0, 40, 80, 120].map(sum_of_16)));
            self.0.push(to);
            for rows in [16usize, 11, 1] {
                let mut to = [[0.0; 16]; 16];
                for i in (0..16).step_by(w) {
                    for j in (0..16).step_by(w) {
                        let rows = rows.saturating_sub(i).min(w);
                        // SAFETY: blocks of 16 x 16 numbers, rows 40 and 16 apart.
                        unsafe {
                            S::transpose(numbers[40 * i + j..].as_ptr(), 40, rows, (&raw mut to[j][i]), 16);
                        }
                    }
                }
                self.0.extend(to);
            }
        }
    }

    fn outputs(level: Level) -> Vec<[f32; 16]> {
        let mut out = Vec::new();
        level.force(|| run(Outputs(&mut out)));
        out
    }

    /// The portable operations against plain arithmetic, the others against them.
    #[test]
    fn all_instruction_sets_agree() {
        let number = |i: usize| (i * i % 251) as f32 - 100.0;
        let want = outputs(Level::Portable);
        for i in 0..16 {
            assert_eq!(want[0][i], number(i) * number(i + 40) + number(i + 80));
            assert_eq!(want[1][i], number(i).max(0.0));
            assert_eq!(want[2][i], if number(i + 40) > 0.0 { number(i) } else { 0.0 });
            assert!(want[3][i].is_nan());
            assert_eq!(want[4][i], 0.0);
            assert_eq!(want[10][i], 1.0 + number(7 + i));
            // Eleven rows: row i of the result holds value i of those, then zeros.
            assert_eq!(want[12 + 16 + i][10], number(40 * 10 + i));
            assert_eq!(want[12 + 16 + i][11], 0.0);
        }
        for (n, to) in want[5..10].iter().enumerate() {
            assert!(to[..8].iter().enumerate().all(|(i, &v)| v == 1.0 + if i < n { number(3 + i) } else { 0.0 }));
            assert!(to[8..].iter().enumerate().all(|(i, &v)| v == if i < n { number(3 + i) } else { 1.0 }));
        }
        for (i, sum) in want[11][..4].iter().enumerate() {
            assert_eq!(*sum, (0..16).map(|lane| number(40 * i + lane)).sum::<f32>());
        }
        for level in Level::available() {
            let got = outputs(level);
            assert_eq!(got.len(), want.len());
            for (i, (got, want)) in got.iter().zip(&want).enumerate() {
                let same = got.iter().zip(want).all(|(g, w)| g == w || g.is_nan() && w.is_nan());
                assert!(same, "{level:?}, output {i}: {got:?} instead of {want:?}");
            }
        }
    }
}

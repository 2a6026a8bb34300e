//! SIMD without compiler flags: a kernel is written once over [`Simd`] and compiled per instruction set, and the best
//! one is chosen when the program runs.
//!
//! [`run`] is the only place that calls code of an instruction set, after asking the processor.

/// A vector of `f32` of one instruction set.
pub(crate) trait Simd: Copy {
    /// Values in a vector.
    const WIDTH: usize;
    /// The vector.
    type Vector: Copy;
    /// All lanes `value`.
    fn splat(value: f32) -> Self::Vector;
    /// Reads `WIDTH` values.
    ///
    /// # Safety
    /// `from` points to `WIDTH` values. (A slice would cost a bounds check and a register in the innermost loops.)
    unsafe fn load(from: *const f32) -> Self::Vector;
    /// Writes the first `WIDTH` values.
    fn store(vector: Self::Vector, to: &mut [f32]);
    /// `a * b + c`.
    fn mul_add(a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// ReLU: zero where negative. NaN stays NaN: a broken weight must show in the loss.
    fn relu(a: Self::Vector) -> Self::Vector;
    /// `a` where `by > 0`, else 0.
    fn keep_positive(a: Self::Vector, by: Self::Vector) -> Self::Vector;
    /// Sum of the lanes, in a fixed order.
    fn sum(a: Self::Vector) -> f32;
}

/// A computation that is compiled once per instruction set. `run` must be `#[inline(always)]`, and so must be what it
/// calls: only then does it become code of that instruction set.
pub(crate) trait Kernel {
    fn run<S: Simd>(self);
}

/// Runs a kernel with the best instruction set of this processor.
pub(crate) fn run(kernel: impl Kernel) {
    #[cfg(test)]
    if portable::forced() {
        return kernel.run::<Portable>();
    }
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        // SAFETY: the processor has the instructions.
        unsafe { avx2::run(kernel) };
        return;
    }
    kernel.run::<Portable>();
}

/// Lets a test run kernels as they run on a processor without wider vectors.
#[cfg(test)]
pub(crate) mod portable {
    use std::cell::Cell;

    thread_local! {
        static FORCED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn forced() -> bool {
        FORCED.get()
    }

    /// Runs `f` with the portable kernels on this thread.
    pub(crate) fn force(f: impl FnOnce()) {
        FORCED.set(true);
        f();
        FORCED.set(false);
    }
}

/// Name of the instruction set that [`run`] chooses.
pub(crate) fn instruction_set() -> &'static str {
    #[cfg(target_arch = "x86_64")]
    if avx2::available() {
        return "AVX2";
    }
    if cfg!(target_arch = "aarch64") { "NEON" } else { "portable" }
}

/// Plain arrays, which the compiler turns into the vectors of its baseline: SSE2 on x86-64, NEON on AArch64.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Simd for Portable {
    const WIDTH: usize = 4;
    type Vector = [f32; 4];

    #[inline(always)]
    fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> [f32; 4] {
        // SAFETY: the caller's promise; an array of f32 is aligned like one f32.
        unsafe { from.cast::<[f32; 4]>().read() }
    }
    #[inline(always)]
    fn store(vector: [f32; 4], to: &mut [f32]) {
        to[..4].copy_from_slice(&vector);
    }
    #[inline(always)]
    fn mul_add(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        // A fused multiply-add is one instruction on AArch64 and a slow library call on baseline x86-64.
        let one = |i: usize| if cfg!(target_arch = "aarch64") { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] };
        std::array::from_fn(one)
    }
    #[inline(always)]
    fn relu(a: [f32; 4]) -> [f32; 4] {
        a.map(|v| if v < 0.0 { 0.0 } else { v })
    }
    #[inline(always)]
    fn keep_positive(a: [f32; 4], by: [f32; 4]) -> [f32; 4] {
        std::array::from_fn(|i| if by[i] > 0.0 { a[i] } else { 0.0 })
    }
    #[inline(always)]
    fn sum(a: [f32; 4]) -> f32 {
        (a[0] + a[2]) + (a[1] + a[3])
    }
}

#[cfg(target_arch = "x86_64")]
mod avx2 {
    //! 256-bit vectors with fused multiply-add.

    use std::arch::x86_64::*;

    use super::{Kernel, Simd};

    #[derive(Clone, Copy)]
    pub(super) struct Avx2;

    pub(super) fn available() -> bool {
        std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")
    }

    #[target_feature(enable = "avx2,fma")]
    pub(super) fn run(kernel: impl Kernel) {
        kernel.run::<Avx2>();
    }

    // The intrinsics below are safe in functions with the right target feature, but trait methods cannot have one.
    // SAFETY of every block: `Avx2` is private to this module and reaches a kernel through `run` alone, which the caller
    // may enter only on a processor with AVX2 and FMA; loads and stores are within slices whose length is checked.
    impl Simd for Avx2 {
        const WIDTH: usize = 8;
        type Vector = __m256;

        #[inline(always)]
        fn splat(value: f32) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_set1_ps(value) }
        }
        #[inline(always)]
        unsafe fn load(from: *const f32) -> __m256 {
            // SAFETY: see above, and the caller's promise.
            unsafe { _mm256_loadu_ps(from) }
        }
        #[inline(always)]
        fn store(vector: __m256, to: &mut [f32]) {
            let to = &mut to[..8];
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), vector) }
        }
        #[inline(always)]
        fn mul_add(a: __m256, b: __m256, c: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_fmadd_ps(a, b, c) }
        }
        #[inline(always)]
        fn relu(a: __m256) -> __m256 {
            // SAFETY: see above. `max` returns its second operand where one is NaN.
            unsafe { _mm256_max_ps(_mm256_setzero_ps(), a) }
        }
        #[inline(always)]
        fn keep_positive(a: __m256, by: __m256) -> __m256 {
            // SAFETY: see above.
            unsafe { _mm256_and_ps(a, _mm256_cmp_ps::<_CMP_GT_OQ>(by, _mm256_setzero_ps())) }
        }
        #[inline(always)]
        fn sum(a: __m256) -> f32 {
            // SAFETY: see above.
            unsafe {
                let quarter = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps::<1>(a));
                let half = _mm_add_ps(quarter, _mm_movehl_ps(quarter, quarter));
                _mm_cvtss_f32(_mm_add_ss(half, _mm_shuffle_ps::<1>(half, half)))
            }
        }
    }
}

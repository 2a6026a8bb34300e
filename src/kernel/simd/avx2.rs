//! 256-bit vectors with fused multiply-add.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

#[derive(Clone, Copy)]
struct Avx2;

#[target_feature(enable = "avx2,fma")]
pub(super) fn run(kernel: impl Kernel) {
    kernel.run::<Avx2>();
}

// The intrinsics below are safe in functions with the right target feature, but trait methods cannot have one.
// SAFETY of every block: `Avx2` is private to this module and reaches a kernel through `run` alone, which the caller
// may enter only on a processor with AVX2 and FMA; pointers are the caller's promise, lengths of slices are checked.
impl Simd for Avx2 {
    const WIDTH: usize = 8;
    const REGISTERS: usize = 16;
    const FUSED: bool = true;
    type Vector = __m256;

    #[inline(always)]
    fn splat(value: f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m256 {
        // SAFETY: see above.
        unsafe { _mm256_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(vector: __m256, to: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm256_storeu_ps(to, vector) }
    }
    #[inline(always)]
    fn store_first(vector: __m256, to: &mut [f32]) {
        if to.len() == 8 {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), vector) }
        } else {
            let mut values = [0.0; 8];
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) };
            to.iter_mut().zip(values).for_each(|(to, v)| *to = v);
        }
    }
    #[inline(always)]
    fn add_to(vector: __m256, to: &mut [f32]) {
        if to.len() == 8 {
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(to.as_mut_ptr(), _mm256_add_ps(_mm256_loadu_ps(to.as_ptr()), vector)) }
        } else {
            let mut values = [0.0; 8];
            // SAFETY: see above.
            unsafe { _mm256_storeu_ps(values.as_mut_ptr(), vector) };
            to.iter_mut().zip(values).for_each(|(to, v)| *to += v);
        }
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
    fn sums([a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        // SAFETY: see above.
        unsafe {
            // Each half holds one half of every sum.
            let halves = _mm256_hadd_ps(_mm256_hadd_ps(a, b), _mm256_hadd_ps(c, d));
            let sums = _mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves));
            std::mem::transmute(sums)
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, rows: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: see above, and the caller's promise.
        unsafe {
            let mut r = [_mm256_setzero_ps(); 8];
            for (i, row) in r.iter_mut().enumerate().take(rows) {
                *row = Self::load(from.add(i * from_stride));
            }
            // Pairs of rows, then pairs of pairs, within the halves; then the halves.
            let mut fours = [[_mm256_setzero_ps(); 4]; 2];
            for (fours, r) in fours.iter_mut().zip(r.chunks_exact(4)) {
                let [a, b] = [_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpacklo_ps(r[2], r[3])];
                let [c, d] = [_mm256_unpackhi_ps(r[0], r[1]), _mm256_unpackhi_ps(r[2], r[3])];
                *fours = [
                    _mm256_shuffle_ps::<0x44>(a, b),
                    _mm256_shuffle_ps::<0xee>(a, b),
                    _mm256_shuffle_ps::<0x44>(c, d),
                    _mm256_shuffle_ps::<0xee>(c, d),
                ];
            }
            let [upper, lower] = fours;
            for (j, (a, b)) in upper.into_iter().zip(lower).enumerate() {
                Self::store(_mm256_permute2f128_ps::<0x20>(a, b), to.add(j * to_stride));
                Self::store(_mm256_permute2f128_ps::<0x31>(a, b), to.add((j + 4) * to_stride));
            }
        }
    }
}

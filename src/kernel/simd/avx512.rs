//! 512-bit vectors: twice the lanes of AVX2, twice the registers.

use std::arch::x86_64::*;

use super::{Kernel, Simd};

#[derive(Clone, Copy)]
struct Avx512;

#[target_feature(enable = "avx512f,avx2,fma")]
pub(super) fn run(kernel: impl Kernel) {
    kernel.run::<Avx512>();
}

/// The mask of the first `n` lanes.
#[inline(always)]
fn first(n: usize) -> u16 {
    if n >= 16 { u16::MAX } else { (1 << n) - 1 }
}

// The intrinsics below are safe in functions with the right target feature, but trait methods cannot have one.
// SAFETY of every block: `Avx512` is private to this module and reaches a kernel through `run` alone, which the caller
// may enter only on a processor with AVX-512F; pointers are the caller's promise, lengths of slices are checked.
impl Simd for Avx512 {
    const WIDTH: usize = 16;
    const REGISTERS: usize = 32;
    const FUSED: bool = true;
    type Vector = __m512;

    #[inline(always)]
    fn splat(value: f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_set1_ps(value) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_loadu_ps(from) }
    }
    #[inline(always)]
    unsafe fn store(vector: __m512, to: *mut f32) {
        // SAFETY: see above.
        unsafe { _mm512_storeu_ps(to, vector) }
    }
    #[inline(always)]
    fn store_first(vector: __m512, to: &mut [f32]) {
        // SAFETY: see above; lanes beyond the slice are masked.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), first(to.len()), vector) }
    }
    #[inline(always)]
    fn add_to(vector: __m512, to: &mut [f32]) {
        let mask = first(to.len());
        // SAFETY: see above; lanes beyond the slice are masked.
        unsafe {
            let sum = _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to.as_ptr()), vector);
            _mm512_mask_storeu_ps(to.as_mut_ptr(), mask, sum);
        }
    }
    #[inline(always)]
    fn mul_add(a: __m512, b: __m512, c: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn relu(a: __m512) -> __m512 {
        // SAFETY: see above. `max` returns its second operand where one is NaN.
        unsafe { _mm512_max_ps(_mm512_setzero_ps(), a) }
    }
    #[inline(always)]
    fn keep_positive(a: __m512, by: __m512) -> __m512 {
        // SAFETY: see above.
        unsafe { _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(by, _mm512_setzero_ps()), a) }
    }
    #[inline(always)]
    fn sums([a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        // SAFETY: see above.
        unsafe {
            // Quarters of two vectors meet in one, then halves of those, so that quarter i has a part of sum i in each
            // lane.
            let ab = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(a, b), _mm512_shuffle_f32x4::<0xee>(a, b));
            let cd = _mm512_add_ps(_mm512_shuffle_f32x4::<0x44>(c, d), _mm512_shuffle_f32x4::<0xee>(c, d));
            let all = _mm512_add_ps(_mm512_shuffle_f32x4::<0x88>(ab, cd), _mm512_shuffle_f32x4::<0xdd>(ab, cd));
            let all = _mm512_add_ps(all, _mm512_permute_ps::<0x4e>(all));
            let all = _mm512_add_ps(all, _mm512_permute_ps::<0xb1>(all));
            // One lane of each quarter.
            let sums = _mm512_castps512_ps128(_mm512_maskz_compress_ps(0x1111, all));
            std::mem::transmute(sums)
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, rows: usize, to: *mut f32, to_stride: usize) {
        // SAFETY: see above, and the caller's promise.
        unsafe {
            for k in 0..4 {
                // Quarter g of q[i]: row 4 g + i, columns 4 k .. 4 k + 4. Broadcasts under a mask need no shuffle, of
                // which there is one in a cycle: gradients of 32 x 32 weights at 116 instead of 110 GFLOP/s.
                let mut q = [_mm512_setzero_ps(); 4];
                for (i, q) in q.iter_mut().enumerate() {
                    for g in 0..4 {
                        let row = 4 * g + i;
                        if row < rows {
                            let quarter = _mm_loadu_ps(from.add(row * from_stride + 4 * k));
                            *q = _mm512_mask_broadcast_f32x4(*q, 0xf << (4 * g), quarter);
                        }
                    }
                }
                // Within quarters: pairs of rows, then pairs of pairs.
                let [a, b] = [_mm512_unpacklo_ps(q[0], q[1]), _mm512_unpacklo_ps(q[2], q[3])];
                let [c, d] = [_mm512_unpackhi_ps(q[0], q[1]), _mm512_unpackhi_ps(q[2], q[3])];
                let to = to.add(4 * k * to_stride);
                Self::store(_mm512_shuffle_ps::<0x44>(a, b), to);
                Self::store(_mm512_shuffle_ps::<0xee>(a, b), to.add(to_stride));
                Self::store(_mm512_shuffle_ps::<0x44>(c, d), to.add(2 * to_stride));
                Self::store(_mm512_shuffle_ps::<0xee>(c, d), to.add(3 * to_stride));
            }
        }
    }
}

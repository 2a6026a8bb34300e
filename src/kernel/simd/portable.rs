//! Plain arrays, which the compiler turns into the vectors of its baseline: SSE2 on x86-64, NEON on AArch64.

use super::Simd;

#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Simd for Portable {
    const WIDTH: usize = 4;
    const REGISTERS: usize = 16;
    const FUSED: bool = cfg!(target_arch = "aarch64");
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
    unsafe fn store(vector: [f32; 4], to: *mut f32) {
        // SAFETY: as above.
        unsafe { to.cast::<[f32; 4]>().write(vector) }
    }
    #[inline(always)]
    fn store_first(vector: [f32; 4], to: &mut [f32]) {
        to.iter_mut().zip(vector).for_each(|(to, v)| *to = v);
    }
    #[inline(always)]
    fn add_to(vector: [f32; 4], to: &mut [f32]) {
        to.iter_mut().zip(vector).for_each(|(to, v)| *to += v);
    }
    #[inline(always)]
    fn mul_add(a: [f32; 4], b: [f32; 4], c: [f32; 4]) -> [f32; 4] {
        // A fused multiply-add is one instruction on AArch64 and a slow library call on baseline x86-64.
        let one = |i: usize| if Self::FUSED { a[i].mul_add(b[i], c[i]) } else { a[i] * b[i] + c[i] };
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
    fn sums(of: [[f32; 4]; 4]) -> [f32; 4] {
        of.map(|a| (a[0] + a[2]) + (a[1] + a[3]))
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, rows: usize, to: *mut f32, to_stride: usize) {
        for i in 0..4 {
            // SAFETY: the caller's promise.
            let row = if i < rows { unsafe { Self::load(from.add(i * from_stride)) } } else { [0.0; 4] };
            for (j, value) in row.into_iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { to.add(j * to_stride + i).write(value) };
            }
        }
    }
}

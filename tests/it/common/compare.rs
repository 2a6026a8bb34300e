//! The one way in which tests compare arrays of numbers.

/// How far an element may be from the wanted one: `max(relative * max|want|, floor)`.
///
/// The scale is the largest entry of the whole array: small entries of an array of large ones carry its rounding.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tolerance {
    relative: f64,
    floor: f64,
}

impl Tolerance {
    /// Relative to the largest entry of what is wanted. Where that is all zeros, only exact zeros pass.
    pub(crate) const fn relative(relative: f64) -> Self {
        Self { relative, floor: 0.0 }
    }

    /// The same with an absolute floor, for arrays that may be zero up to rounding.
    pub(crate) const fn floor(self, floor: f64) -> Self {
        Self { floor, ..self }
    }
}

/// Fails unless `got` is `want` within the tolerance, element by element, and everything is finite.
///
/// The message names the worst element: one that is not finite, else the one with the largest difference.
#[track_caller]
pub(crate) fn assert_close<T: Copy + Into<f64>>(what: &str, got: &[T], want: &[f64], tolerance: Tolerance) {
    assert_eq!(got.len(), want.len(), "{what}: {} elements, expected {}", got.len(), want.len());
    if let Some(index) = want.iter().position(|value| !value.is_finite()) {
        panic!("{what}: the expected value at index {index} is {}", want[index]);
    }
    let scale = want.iter().fold(0.0_f64, |largest, value| largest.max(value.abs()));
    let allowed = (tolerance.relative * scale).max(tolerance.floor);

    let mut worst = (0, 0.0_f64);
    for (index, (&got, &want)) in got.iter().zip(want).enumerate() {
        let got: f64 = got.into();
        // What is not finite is worse than anything; a `>` of differences alone would let a NaN pass.
        let difference = if got.is_finite() { (got - want).abs() } else { f64::INFINITY };
        if difference > worst.1 {
            worst = (index, difference);
        }
    }
    let (index, difference) = worst;
    // Neither a tolerance that is NaN nor one that is infinite lets everything pass.
    let close = difference <= allowed && difference.is_finite();
    if !close {
        let (got, want): (f64, f64) = (got[index].into(), want[index]);
        panic!(
            "{what}: at index {index} got {got:e}, expected {want:e}; \
             the difference of {difference:e} exceeds {allowed:e} (largest expected entry {scale:e})"
        );
    }
}

//! Comparison of gradients as whole vectors.

/// Fails unless the distance of `got` from `want` is at most `relative` times the length of `want`, as vectors.
///
/// For a gradient as a whole: sums that cancel leave single tensors with little but the rounding of what was summed.
#[track_caller]
pub(crate) fn assert_close_on_the_whole(what: &str, got: &[f64], want: &[f64], relative: f64) {
    assert_eq!(got.len(), want.len(), "{what}: {} elements, expected {}", got.len(), want.len());
    let square = |values: &mut dyn Iterator<Item = f64>| values.map(|v| v * v).sum::<f64>();
    let distance = square(&mut got.iter().zip(want).map(|(got, want)| got - want)).sqrt();
    let length = square(&mut want.iter().copied()).sqrt();
    // A NaN compares with nothing, and an infinity with everything.
    let close = distance <= relative * length && length.is_finite();
    assert!(close, "{what}: {distance:e} away from a vector of length {length:e}, more than {relative:e} of it");
}

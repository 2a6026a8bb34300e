//! `Loss`: negative log-likelihood without its constant (docs/model.md, Loss), and the gradients that start the backward
//! pass; `SquaredError`: one of the losses of an INN (docs/model.md, INN).

use super::Shape;

/// Writes the loss of each sample and seeds `d_z` and `d_log_det` for a batch of `batch` samples; padding gets 0.
pub(crate) fn loss(
    shape: Shape,
    batch: usize,
    z: &[f32],
    log_det: &[f32],
    loss: &mut [f32],
    d_z: &mut [f32],
    d_log_det: &mut [f32],
) {
    let columns = z.len() / shape.stride;
    let share = 1.0 / batch as f32;
    let loss = shape.row_mut(loss, 0);
    for (l, j) in loss.iter_mut().zip(shape.row(log_det, 0)) {
        *l = -j;
    }
    for c in 0..columns {
        let d = shape.row_mut(d_z, c);
        for ((l, d), z) in loss.iter_mut().zip(d.iter_mut()).zip(shape.row(z, c)) {
            *l += 0.5 * z * z;
            *d = z * share;
        }
        d[shape.rows..].fill(0.0);
    }
    loss[shape.rows..].fill(0.0);
    let d_log_det = shape.row_mut(d_log_det, 0);
    d_log_det.fill(-share);
    d_log_det[shape.rows..].fill(0.0);
}

/// Adds `weight |from - target|^2` to the loss of each sample and writes `d_from`, for a batch of `batch` samples; padding
/// gets 0.
pub(crate) fn squared_error(
    shape: Shape,
    batch: usize,
    weight: f32,
    [from, target]: [&[f32]; 2],
    loss: &mut [f32],
    d_from: &mut [f32],
) {
    let share = 2.0 * weight / batch as f32;
    let loss = shape.row_mut(loss, 0);
    for c in 0..from.len() / shape.stride {
        let d = shape.row_mut(d_from, c);
        let pairs = shape.row(from, c).iter().zip(shape.row(target, c));
        for ((l, d), (from, target)) in loss.iter_mut().zip(d.iter_mut()).zip(pairs) {
            let difference = from - target;
            *l += weight * difference * difference;
            *d = share * difference;
        }
        d[shape.rows..].fill(0.0);
    }
    loss[shape.rows..].fill(0.0);
}

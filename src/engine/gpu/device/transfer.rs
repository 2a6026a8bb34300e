//! Values between the host, sample by sample, and the arena, feature by feature.

/// Row-major samples (rows, features) to feature-major: feature f of sample r at `f * pitch + r`. The rest of each row
/// is filled with zeros.
pub(crate) fn to_arena(values: &[f32], features: usize, pitch: usize, out: &mut Vec<f32>) {
    out.clear();
    out.resize(features * pitch, 0.0);
    for (r, sample) in values.chunks_exact(features.max(1)).enumerate() {
        for (f, &value) in sample.iter().enumerate() {
            out[f * pitch + r] = value;
        }
    }
}

/// The way back: appends `rows` samples to `out`.
pub(crate) fn from_arena(values: &[f32], features: usize, pitch: usize, rows: usize, out: &mut Vec<f32>) {
    let start = out.len();
    out.resize(start + rows * features, 0.0);
    for f in 0..features {
        let column = &values[f * pitch..f * pitch + rows];
        for (sample, &value) in out[start..].chunks_exact_mut(features).zip(column) {
            sample[f] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_and_back() {
        let samples: Vec<f32> = (0..15).map(|i| i as f32).collect();
        let mut arena = vec![9.0];
        to_arena(&samples, 3, 8, &mut arena);
        assert_eq!(arena.len(), 24);
        assert_eq!(arena[8..13], [1.0, 4.0, 7.0, 10.0, 13.0]);
        let mut back = vec![-1.0];
        from_arena(&arena, 3, 8, 5, &mut back);
        assert_eq!(back[0], -1.0);
        assert_eq!(back[1..], samples);
    }
}

//! The order in which an epoch takes the training rows.

use crate::rng;

/// Row numbers of one epoch: `count` of them out of `rows` rows.
///
/// Shuffled, an epoch goes through as many permutations as it needs, each used once in a training. Unshuffled, epochs
/// follow each other through the data in its order, beginning anew at its end.
pub(super) fn of_epoch(shuffle: bool, seed: u64, epoch: u64, rows: usize, count: usize) -> Vec<u32> {
    if shuffle {
        let passes = count.div_ceil(rows) as u64;
        let permutation = |pass: u64| rng::permutation(seed, (epoch * passes + pass) as u32, rows as u32);
        let mut order: Vec<u32> = (0..passes).flat_map(permutation).collect();
        order.truncate(count);
        order
    } else {
        let first = (epoch as u128 * count as u128 % rows as u128) as usize;
        (0..count).map(|i| ((first + i) % rows) as u32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffled_epochs_take_every_row_before_one_comes_again() {
        for (rows, count) in [(10, 10), (10, 25), (10, 3), (1, 4)] {
            let order = of_epoch(true, 3, 2, rows, count);
            assert_eq!(order.len(), count);
            for pass in order.chunks(rows) {
                let mut seen = pass.to_vec();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), pass.len());
            }
        }
        assert_ne!(of_epoch(true, 3, 0, 50, 50), of_epoch(true, 3, 1, 50, 50));
        assert_ne!(of_epoch(true, 3, 0, 50, 100)[..50], of_epoch(true, 3, 0, 50, 100)[50..]);
    }

    #[test]
    fn unshuffled_epochs_follow_the_file() {
        assert_eq!(of_epoch(false, 0, 0, 5, 5), [0, 1, 2, 3, 4]);
        assert_eq!(of_epoch(false, 0, 1, 5, 4), [4, 0, 1, 2]);
        assert_eq!(of_epoch(false, 0, 0, 2, 5), [0, 1, 0, 1, 0]);
    }
}

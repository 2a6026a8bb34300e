//! The order in which the partial sums of a batch are added: a binary tree over their numbers.
//!
//! Part 2i is added to part 2i + 1, pair 2i to pair 2i + 1, and so on; if a node has no right half, it is its left
//! one. The order depends on the number of parts alone, and any run of neighbours is a few whole nodes of the tree
//! ([`nodes`]). So several processes that own neighbouring parts can add up what they have before they send it, and the
//! sum has the same bits for any number of them.

use std::ops::{Add, Range};

/// Values added side by side.
pub(crate) const BLOCK: usize = 64;

/// Most levels of a tree: that of 2^12 parts.
const LEVELS: usize = 13;

/// A whole node: the parts `first..first + 2^level`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) first: usize,
    pub(crate) level: u32,
}

impl Node {
    /// The parts that it is the sum of.
    pub(crate) fn parts(self) -> Range<usize> {
        self.first..self.first + (1 << self.level)
    }
}

/// The fewest whole nodes that neighbouring parts are.
pub(crate) fn nodes(parts: Range<usize>) -> impl Iterator<Item = Node> + Clone {
    let mut first = parts.start;
    std::iter::from_fn(move || {
        let left = parts.end.checked_sub(first).filter(|&left| left > 0)?;
        let level = first.trailing_zeros().min(left.ilog2());
        let node = Node { first, level };
        first = node.parts().end;
        Some(node)
    })
}

/// The sum of numbers; zero if there are none.
pub(crate) fn sum<T: Copy + Default + Add<Output = T>>(parts: impl Iterator<Item = T>) -> T {
    let mut waiting = [T::default(); LEVELS];
    let mut count = 0usize;
    for part in parts {
        let mut sum = part;
        let mut level = 0;
        while count >> level & 1 == 1 {
            sum = waiting[level] + sum;
            level += 1;
        }
        waiting[level] = sum;
        count += 1;
    }
    let left = (0..LEVELS).filter(|level| count >> level & 1 == 1).map(|level| waiting[level]);
    left.reduce(|right, left| left + right).unwrap_or_default()
}

/// Adds up blocks of values.
pub(crate) struct Sums {
    /// Nodes whose right halves are still to come, the largest first.
    waiting: [[f32; BLOCK]; LEVELS],
    levels: [u32; LEVELS],
}

impl Sums {
    pub(crate) fn new() -> Self {
        Self { waiting: [[0.0; BLOCK]; LEVELS], levels: [0; LEVELS] }
    }

    /// The sum of a range, at most [`BLOCK`] long, of the parts; then zeros.
    #[inline(always)]
    pub(crate) fn of_parts<'p>(
        &mut self,
        range: &Range<usize>,
        mut parts: impl Iterator<Item = &'p [f32]>,
    ) -> &[f32; BLOCK] {
        let mut count = 0;
        // Two at a time: what waits is written and read half as often.
        while let Some(left) = parts.next() {
            let mut sum = taken(&left[range.clone()]);
            let level = match parts.next() {
                Some(right) => {
                    add(&mut sum, &right[range.clone()]);
                    1
                }
                None => 0,
            };
            count = self.push(count, sum, level);
        }
        self.rest(count)
    }

    /// The same of neighbouring nodes from the first part on, each with its level.
    #[inline(always)]
    pub(crate) fn of_nodes<'p>(
        &mut self,
        range: &Range<usize>,
        nodes: impl Iterator<Item = (u32, &'p [f32])>,
    ) -> &[f32; BLOCK] {
        let count = nodes.fold(0, |count, (level, node)| self.push(count, taken(&node[range.clone()]), level));
        self.rest(count)
    }

    /// Adds a node to those of `count` waiting ones whose right half it completes; returns how many wait then.
    #[inline(always)]
    fn push(&mut self, mut count: usize, mut sum: [f32; BLOCK], mut level: u32) -> usize {
        while count > 0 && self.levels[count - 1] == level {
            count -= 1;
            add(&mut sum, &self.waiting[count]);
            level += 1;
        }
        (self.waiting[count], self.levels[count]) = (sum, level);
        count + 1
    }

    /// The sum of the nodes that still wait.
    #[inline(always)]
    fn rest(&mut self, count: usize) -> &[f32; BLOCK] {
        if count == 0 {
            self.waiting[0] = [0.0; BLOCK];
        }
        for last in (1..count).rev() {
            let (left, right) = self.waiting.split_at_mut(last);
            add(&mut left[last - 1], &right[0]);
        }
        &self.waiting[0]
    }
}

/// A block with these values, then zeros.
#[inline(always)]
fn taken(values: &[f32]) -> [f32; BLOCK] {
    // Of a length that the compiler knows, as nearly all are: a copy of any length is a call.
    if let Ok(whole) = values.try_into() {
        return whole;
    }
    let mut block = [0.0; BLOCK];
    block[..values.len()].copy_from_slice(values);
    block
}

#[inline(always)]
fn add(sum: &mut [f32; BLOCK], values: &[f32]) {
    match <&[f32; BLOCK]>::try_from(values) {
        Ok(whole) => sum.iter_mut().zip(whole).for_each(|(sum, value)| *sum += value),
        Err(_) => sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tree by its definition.
    fn defined(parts: &[f32]) -> f32 {
        match parts {
            [one] => *one,
            _ => {
                let (left, right) = parts.split_at(parts.len().next_power_of_two() / 2);
                defined(left) + defined(right)
            }
        }
    }

    fn parts(count: usize) -> Vec<f32> {
        (0..count).map(|i| (i as f32 * 1.7).sin() * 10f32.powi(i as i32 % 5)).collect()
    }

    #[test]
    fn the_order_is_that_of_the_tree() {
        for count in 1..=40 {
            let parts = parts(count);
            let by_block: Vec<[f32; 1]> = parts.iter().map(|&part| [part]).collect();
            let block = Sums::new().of_parts(&(0..1), by_block.iter().map(|part| &part[..]))[0];
            assert_eq!(sum(parts.iter().copied()).to_bits(), defined(&parts).to_bits(), "{count}");
            assert_eq!(block.to_bits(), defined(&parts).to_bits(), "{count}");
        }
        assert_eq!(sum(std::iter::empty::<f64>()), 0.0);
        assert_eq!(Sums::new().of_parts(&(0..3), std::iter::empty())[..4], [0.0; 4]);
    }

    #[test]
    fn nodes_of_any_shares_make_the_same_sum() {
        for count in 1..=20 {
            let parts = parts(count);
            for shares in 1..=count + 2 {
                let of_share = |s: usize| s * count / shares..(s + 1) * count / shares;
                let nodes: Vec<Node> = (0..shares).flat_map(|s| nodes(of_share(s))).collect();
                assert!(nodes.iter().flat_map(|node| node.parts()).eq(0..count));
                let values: Vec<[f32; 1]> = nodes.iter().map(|node| [defined(&parts[node.parts()])]).collect();
                let nodes = nodes.iter().zip(&values).map(|(node, value)| (node.level, &value[..]));
                let sum = Sums::new().of_nodes(&(0..1), nodes)[0];
                assert_eq!(sum.to_bits(), defined(&parts).to_bits(), "{count} in {shares}");
            }
        }
    }
}
